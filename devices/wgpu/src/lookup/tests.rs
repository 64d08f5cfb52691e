
use super::*;

#[test]
fn the_s_box_is_that_of_fips_197() {
    let (sbox, inverse) = substitutions();
    assert_eq!([0x00, 0x53, 0xff, 0x9a].map(|b: usize| sbox[b]), [0x63, 0xed, 0x16, 0xb8]);
    assert!((0..=255u8).all(|b| inverse[usize::from(sbox[usize::from(b)])] == b));
}
