
use super::*;

const A: u128 = 0x8123_4567_89ab_cdef_fedc_ba98_7654_3210;
const B: u128 = 0x0f1e_2d3c_4b5a_6978_8796_a5b4_c3d2_e1f0;

fn v(x: u128) -> Vector {
    Vector::from_block(x.to_le_bytes())
}

fn n(x: Vector) -> u128 {
    u128::from_le_bytes(x.to_block())
}

#[test]
fn vectors_and_integers_agree() {
    assert_eq!((n(v(A) ^ v(B)), n(v(A) & v(B)), n(v(A) | v(B))), (A ^ B, A & B, A | B));
    // No bit passes from a lane to another.
    let lanes = |lane: u32| n(Vector::splat(lane));
    assert_eq!(n(v(A).shift_left::<5>()), A << 5 & lanes(u32::MAX << 5));
    assert_eq!(n(v(A).shift_right::<5>()), A >> 5 & lanes(u32::MAX >> 5));
    for turns in 0..4 {
        assert_eq!(n(v(A).rotate(turns)), A.rotate_right(32 * turns as u32));
    }
}
