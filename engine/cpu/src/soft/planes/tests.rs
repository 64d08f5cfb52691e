
use super::super::vector::Vector;
use super::*;

#[test]
fn every_bit_has_its_place() {
    let mut seed = 1u128;
    let blocks: [Vector; 8] = std::array::from_fn(|_| {
        seed = seed.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645).wrapping_add(1);
        Vector::from_block((seed ^ (seed >> 61)).to_le_bytes())
    });
    let mut planes = blocks;
    // SAFETY: every processor of the target has the instructions of `Vector`.
    unsafe { transpose(&mut planes) };
    for (b, plane) in planes.iter().enumerate() {
        for (j, block) in blocks.iter().enumerate() {
            for (i, byte) in block.to_block().into_iter().enumerate() {
                let bit = (plane.to_block()[i] >> j) & 1;
                assert_eq!(bit, (byte >> b) & 1, "bit {b} of byte {i} of block {j}");
            }
        }
    }
    // SAFETY: as above.
    unsafe { transpose(&mut planes) };
    assert_eq!(planes.map(Vector::to_block), blocks.map(Vector::to_block));
}
