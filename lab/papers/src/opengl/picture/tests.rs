
use super::*;

#[test]
fn the_letters_are_within_the_picture() {
    let pixels = plain();
    assert_eq!(pixels.len(), 4 * EDGE * EDGE);
    let is_white = |x: usize, y: usize| pixels[4 * (y * EDGE + x)] == 255;
    // Only the squares of the letters are white.
    let squares: u32 = LETTERS.iter().flatten().map(|row| row.count_ones()).sum();
    let white = (0..EDGE * EDGE).filter(|at| is_white(at % EDGE, at / EDGE)).count();
    assert_eq!(white, squares as usize * SQUARE * SQUARE);
    assert!((0..EDGE).all(|at| !is_white(0, at) && !is_white(EDGE - 1, at) && !is_white(at, 0)));
}
