
use super::*;

#[test]
fn bytes_have_their_places() {
    let block: Block = std::array::from_fn(|at| at as u8);
    // FIPS 197, figure 8: row r moves r columns to the left.
    assert_eq!(shift_rows(&block, 1), [0, 5, 10, 15, 4, 9, 14, 3, 8, 13, 2, 7, 12, 1, 6, 11]);
    assert_eq!(shift_rows(&shift_rows(&block, 3), 1), block);
    let mut one = [0; 16];
    one[4 * 2 + 3] = 0x21;
    let planes = transposed(&one);
    assert_eq!((planes[0], planes[5]), (3 << (8 * 3 + 2 * 2), 3 << (8 * 3 + 2 * 2)));
    assert_eq!(planes.iter().filter(|&&plane| plane == 0).count(), 6);
}

#[test]
fn the_first_and_the_last_round_key_are_not_moved() {
    let key = Key::new(&[5; 24]).unwrap();
    for decrypts in [false, true] {
        let planes = planes(&key, decrypts);
        assert_eq!(planes.len(), PLANES * 13);
        let blocks = key.round_keys().as_blocks();
        let (first, last) = if decrypts { (12, 0) } else { (0, 12) };
        assert_eq!(planes[..PLANES], transposed(&blocks[first]));
        assert_eq!(planes[PLANES * 12..], transposed(&blocks[last]));
    }
}
