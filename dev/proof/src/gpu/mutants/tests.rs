use super::*;
use crate::gpu::code;

/// The bits of an operand whose change matters.
fn bits(text: &str, operand: usize) -> Vec<usize> {
    let code = code::functions(&format!("Function : f\n/*0000*/ {text} ;")).expect("an instruction");
    (0..8).filter(|bit| matters(&code["f"][0], operand, *bit)).collect()
}

#[test]
fn only_bits_of_tables_that_can_be_selected_are_changed() {
    assert_eq!(bits("LOP3.LUT R14, R21, R3, R17, 0x5a, !PT", 4), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(bits("LOP3.LUT R14, R21, RZ, R17, 0x5a, !PT", 4), [0, 1, 4, 5]);
    // The second input is a mask, all of whose bits are changed.
    assert_eq!(bits("LOP3.LUT P0, RZ, R1, 0x1, RZ, 0xc0, !PT", 3), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(bits("LOP3.LUT P0, RZ, R1, 0x1, RZ, 0xc0, !PT", 5), [0, 2, 4, 6]);
    assert_eq!(bits("PLOP3.LUT P0, PT, PT, !PT, UP0, 0x80, 0x0", 5), [4, 5]);
    // The second result is not written.
    assert_eq!(bits("PLOP3.LUT P0, PT, PT, PT, UP0, 0x80, 0x0", 6), []);
    assert_eq!(bits("PLOP3.LUT P0, P1, PT, PT, UP0, 0x80, 0x0", 6), [6, 7]);
}
