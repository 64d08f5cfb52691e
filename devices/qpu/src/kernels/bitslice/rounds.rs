//! The rounds of AES on bit planes. Element i of plane b contains bit b of byte i of 32 blocks.

use super::gates::{self, Circuit, Kind};
use super::ops::Ops;
use crate::compiler::{Input, Read, Variable};
use crate::isa::{AddOp, Condition};

/// The planes of the eight bits of a byte, with the lowest bit first.
pub(super) type Planes = [Variable; 8];

/// The kind of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    Encrypt,
    EncryptLast,
    Decrypt,
    DecryptLast,
}

impl Round {
    fn is_inverse(self) -> bool {
        matches!(self, Round::Decrypt | Round::DecryptLast)
    }
}

/// Applies a circuit, which is the S-box or its inverse, to each byte of the planes.
fn substituted(ops: &mut Ops<'_>, circuit: &Circuit, planes: Planes) -> Planes {
    let mut values: Vec<Option<Variable>> = vec![None; circuit.values];
    for (value, plane) in values.iter_mut().zip(planes) {
        *value = Some(plane);
    }
    for gate in &circuit.gates {
        let [a, b] = gate.inputs.map(|input| values[input].expect("gates are in order"));
        values[gate.value] = Some(match gate.kind {
            Kind::And => ops.and(a, b),
            Kind::Xor => ops.xor(a, b),
            Kind::Sum => ops.sum(a, b),
            Kind::Difference => ops.difference(a, b),
        });
    }
    circuit.outputs.map(|output| values[output].expect("all gates are computed"))
}

/// For each row, a word that sets a different flag if it is shifted left by one. Row 0 sets no flag, row 1 sets N, row 2 sets
/// C, and row 3 sets Z.
pub(super) const ROWS: [u32; 4] = [1, 0x4000_0000, 0x8000_0001, 0];

/// Computes ShiftRows, or InvShiftRows. The row of a byte is the number of its element modulo four. ShiftRows moves row r by r
/// columns, which are 4 r elements, towards lower elements. All planes stay in accumulators during this function.
fn shift_rows_in_place(ops: &mut Ops<'_>, planes: Planes, is_inverse: bool) {
    // Shifting the number of an element left by 31 sets N to bit 0 of the number, and C to bit 1.
    ops.flags(AddOp::Shl, Input::Read(Read::Element), 31u32.wrapping_sub(32));
    for plane in planes {
        // Rows 1 and 3 move by one column. Then rows 2 and 3 move by two columns.
        ops.rotate_if(plane, plane, if is_inverse { 4 } else { 12 }, Condition::Negative);
        ops.rotate_if(plane, plane, 8, Condition::Carry);
    }
}

/// Computes ShiftRows, or InvShiftRows, of planes that may be in any register. For each plane, this requires one operation more
/// than [`shift_rows_in_place`]. `rows` contains the words [`ROWS`].
fn shift_rows(ops: &mut Ops<'_>, planes: Planes, rows: Variable, is_inverse: bool) {
    ops.flags(AddOp::Shl, Input::Variable(rows), 1);
    for plane in planes {
        let whole = ops.moved(plane);
        for (row, condition) in [(1, Condition::Negative), (2, Condition::Carry), (3, Condition::Zero)] {
            ops.rotate_if(plane, whole, if is_inverse { 4 * row } else { 16 - 4 * row }, condition);
        }
    }
}

/// XORs the received round key into planes. The bytes of the round key are in the highest bits of the elements.
pub(super) fn add_key(ops: &mut Ops<'_>, planes: Planes) {
    for pair in (0..4).rev() {
        // Shifting left by n sets C to bit 32 - n and N to bit 31 - n. These are the bits of planes 2 pair + 1 and 2 pair.
        ops.flags(AddOp::Shl, Input::Received, 7 - 2 * pair as u32);
        ops.complement_if(planes[2 * pair + 1], Condition::Carry);
        ops.complement_if(planes[2 * pair], Condition::Negative);
    }
}

/// To each byte of a column, adds four times the sum of this byte and the byte two rows below, in the field of AES.
/// InvMixColumns consists of this step and MixColumns.
fn prepare_inverse_mix(ops: &mut Ops<'_>, planes: Planes) -> Planes {
    let opposite = planes.map(|plane| ops.quad(plane, 2));
    let sums: Planes = std::array::from_fn(|bit| ops.xor(planes[bit], opposite[bit]));
    let high = ops.xor(sums[6], sums[7]);
    std::array::from_fn(|bit| {
        // Bit b of 4 x is bit b - 2 of x; bits 8 and 9 are reduced by x^8 = x^4 + x^3 + x + 1.
        let quadruple = match bit {
            0 => sums[6],
            1 => high,
            2 => ops.xor(sums[0], sums[7]),
            3 => ops.xor(sums[1], sums[6]),
            4 => ops.xor(sums[2], high),
            5 => ops.xor(sums[3], sums[7]),
            _ => sums[bit - 2],
        };
        ops.xor(planes[bit], quadruple)
    })
}

/// Computes MixColumns and XORs the received round key. The result is written to the variables `to`.
fn mix_columns(ops: &mut Ops<'_>, planes: Planes, to: Planes) {
    // `next` is the byte one row below. `opposite` is the sum of the bytes two and three rows below.
    let next = planes.map(|plane| ops.quad(plane, 3));
    let sums: Planes = std::array::from_fn(|bit| ops.xor(planes[bit], next[bit]));
    let opposite = sums.map(|plane| ops.quad(plane, 2));
    add_key(ops, next);
    for bit in 0..8 {
        // The result is twice the sum of the byte and the next byte, plus `next` and `opposite`.
        let below = sums[(bit + 7) % 8];
        let mut double = below;
        if matches!(bit, 1 | 3 | 4) {
            double = ops.xor(below, sums[7]);
        }
        let rest = ops.xor(next[bit], opposite[bit]);
        ops.xor(double, rest);
        ops.last_to(to[bit]);
    }
}

/// Executes a round, which ends with the addition of the received round key. The planes are variables that keep their values
/// between rounds. After the last round, the result is in the returned variables.
pub(super) fn round(ops: &mut Ops<'_>, planes: Planes, rows: Variable, round: Round) -> Planes {
    let circuit = if round.is_inverse() { gates::inverse() } else { gates::forward() };
    let substituted = substituted(ops, &circuit, planes);
    match round {
        Round::EncryptLast | Round::DecryptLast => {
            shift_rows(ops, substituted, rows, round.is_inverse());
            add_key(ops, substituted);
            substituted
        }
        Round::Encrypt => {
            shift_rows_in_place(ops, substituted, false);
            mix_columns(ops, substituted, planes);
            planes
        }
        Round::Decrypt => {
            shift_rows_in_place(ops, substituted, true);
            let prepared = prepare_inverse_mix(ops, substituted);
            mix_columns(ops, prepared, planes);
            planes
        }
    }
}
