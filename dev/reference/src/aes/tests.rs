
use super::*;

/// Corner values of both tables (FIPS 197, sections 5.1.1 and 5.3.2), and the example of section 5.1.1.
#[test]
fn sboxes() {
    assert_eq!([SBOX[0x00], SBOX[0x0f], SBOX[0xf0], SBOX[0xff]], [0x63, 0x76, 0x8c, 0x16]);
    assert_eq!([INV_SBOX[0x00], INV_SBOX[0x0f], INV_SBOX[0xf0], INV_SBOX[0xff]], [0x52, 0xfb, 0x17, 0x7d]);
    assert_eq!(SBOX[0x53], 0xed);
    for b in 0..=255 {
        assert_eq!(INV_SBOX[sub_byte(b) as usize], b);
    }
}

/// Every step is undone by its inverse.
#[test]
fn steps_invert() {
    let state: Block = std::array::from_fn(|i| (37 * i + 11) as u8);
    assert_eq!(inv_sub_bytes(sub_bytes(state)), state);
    assert_eq!(inv_shift_rows(shift_rows(state)), state);
    assert_eq!(inv_mix_columns(mix_columns(state)), state);
}
