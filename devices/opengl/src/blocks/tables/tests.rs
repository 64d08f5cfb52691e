
use super::*;

#[test]
fn tables_are_those_of_the_standard() {
    // FIPS 197, figure 7 and figure 14.
    assert_eq!((SBOX[0x00], SBOX[0x53], SBOX[0xff]), (0x63, 0xed, 0x16));
    assert_eq!((INVERSE_SBOX[0x63], INVERSE_SBOX[0x52]), (0x00, 0x48));
    assert_eq!((MIX_COLUMNS[1], INVERSE_MIX_COLUMNS[1]), (0x0301_0102, 0x0b0d_090e));
    // Section 4.2: {57} times {83} is {c1}.
    assert_eq!(times(0x57, 0x83), 0xc1);
}
