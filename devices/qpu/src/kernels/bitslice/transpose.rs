//! Converts between planes and bytes. For each byte position of eight registers, the 8 x 8 bits are transposed.

use super::ops::Ops;
use super::rounds::Planes;
use crate::compiler::Variable;
use crate::isa::AddOp;

/// Transposes: bit k of each byte of register b becomes bit b of the same byte of register k of the result.
pub(super) fn transposed(ops: &mut Ops<'_>, mut planes: Planes, to: Planes) {
    for distance in [4, 2, 1] {
        // The bits whose number has a zero at the bit of `distance`.
        let mask = ops.constant(match distance {
            4 => 0x0f0f_0f0f,
            2 => 0x3333_3333,
            _ => 0x5555_5555,
        });
        // If the lowest n bits of a byte are zero, a product with the fraction 2^(8 - n) / 255 shifts the byte right by n.
        let factor = ops.constant((0x0100_u32 >> distance) * 0x0101_0101);
        for low in (0..8).filter(|register| register & distance == 0) {
            let pair = [planes[low], planes[low + distance]];
            let result = if distance == 1 {
                [to[low], to[low + distance]]
            } else {
                [ops.code.variable(), ops.code.variable()]
            };
            exchange(ops, pair, mask, factor, distance, result);
            [planes[low], planes[low + distance]] = result;
        }
    }
}

/// Exchanges the upper bits of one register with the lower bits of another.
fn exchange(
    ops: &mut Ops<'_>,
    [a, b]: [Variable; 2],
    mask: Variable,
    factor: Variable,
    distance: usize,
    to: [Variable; 2],
) {
    let (a_low, b_low) = (ops.and(a, mask), ops.and(b, mask));
    let (a_high, b_high) = (ops.difference(a, a_low), ops.difference(b, b_low));
    let moved_up = match distance {
        1 => ops.sum(b_low, b_low),
        2 => {
            let double = ops.sum(b_low, b_low);
            ops.sum(double, double)
        }
        _ => ops.with_small(AddOp::Shl, b_low, 4),
    };
    let moved_down = ops.product(a_high, factor);
    ops.sum(a_low, moved_up);
    ops.last_to(to[0]);
    ops.sum(moved_down, b_high);
    ops.last_to(to[1]);
}
