use super::*;

#[test]
fn differences_are_seen_beyond_the_spread() {
    let rate = |median, half| Rate { median, least: median - half, most: median + half };
    let (difference, spread) = compare(&[rate(10.0, 0.5), rate(9.8, 0.5), rate(10.1, 0.2)]);
    assert!(difference <= spread && (difference - 0.03 / 1.01).abs() < 1e-9, "{difference} {spread}");
    let (difference, spread) = compare(&[rate(10.0, 0.1), rate(9.0, 0.1)]);
    assert!(difference > spread);
}
