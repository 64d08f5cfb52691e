//! AES rounds and carry-less multiplication.

use std::array::from_fn;

use iced_x86::{Instruction, Mnemonic};

use crate::machine::{Machine, Step};
use crate::value::Domain;

/// An operation on each lane of 16 bytes of two sources.
fn each_block<D: Domain>(
    m: &mut Machine<D>,
    i: &Instruction,
    operation: impl Fn(&mut D, &[D::Byte; 16], &[D::Byte; 16]) -> [D::Byte; 16],
) -> Step {
    let ((mut x, y), size) = (m.sources(i)?, m.size(i, 0));
    for (x, y) in x[..size].as_chunks_mut().0.iter_mut().zip(y.as_chunks().0) {
        *x = operation(&mut m.domain, x, y);
    }
    m.write(i, 0, &x)
}

/// MixColumns of a block, or its inverse.
fn mix_columns<D: Domain>(domain: &mut D, block: &[D::Byte; 16], inverse: bool) -> [D::Byte; 16] {
    let mut mixed = *block;
    for column in mixed.as_chunks_mut().0 {
        *column = domain.mix_column(*column, inverse);
    }
    mixed
}

/// AESENC, AESENCLAST, AESDEC and AESDECLAST.
pub(super) fn round<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    use Mnemonic::{Aesdec, Aesdeclast, Aesenclast, Vaesdec, Vaesdeclast, Vaesenclast};
    let inverse = matches!(i.mnemonic(), Aesdec | Vaesdec | Aesdeclast | Vaesdeclast);
    let is_last = matches!(i.mnemonic(), Aesenclast | Vaesenclast | Aesdeclast | Vaesdeclast);
    each_block(m, i, |domain, state, key| {
        // ShiftRows: row r moves by r columns, to the left or, in the inverse, to the right.
        let from = |place: usize| {
            let (column, row) = (place / 4, place % 4);
            (column + if inverse { 4 - row } else { row }) % 4 * 4 + row
        };
        let mut state = from_fn(|place| domain.sub_byte(state[from(place)], inverse));
        if !is_last {
            state = mix_columns(domain, &state, inverse);
        }
        from_fn(|place| domain.xor(state[place], key[place]))
    })
}

pub(super) fn inverse_mix_columns<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let mut x = m.read(i, 1)?;
    for block in x[..16].as_chunks_mut().0 {
        *block = mix_columns(&mut m.domain, block, true);
    }
    m.write(i, 0, &x)
}

/// AESKEYGENASSIST: SubWord of doublewords 1 and 3; and the rotation of each of these two results, XORed with the constant.
pub(super) fn key_assist<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let x = m.read(i, 1)?;
    let constant = D::constant(m.constant(i)? as u8);
    let mut result = [D::constant(0); 64];
    for (from, to) in [(4, 0), (12, 8)] {
        for place in 0..4 {
            let substituted = m.domain.sub_byte(x[from + place], false);
            result[to + place] = substituted;
            result[to + 4 + (place + 3) % 4] = substituted;
        }
        result[to + 4] = m.domain.xor(result[to + 4], constant);
    }
    m.write(i, 0, &result)
}

/// PCLMULQDQ: the constant selects the halves of the sources.
pub(super) fn carryless<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let halves = m.constant(i)?;
    let start = |bit: usize| (halves >> bit & 1) * 8;
    let starts = [start(0), start(4)];
    each_block(m, i, |domain, x, y| domain.carryless(x, y, starts))
}
