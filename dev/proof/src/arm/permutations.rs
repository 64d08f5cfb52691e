//! Moves of vector registers and their elements, and permutations.

use std::array::from_fn;

use yaxpeax_arm::armv8::a64::{Instruction, Opcode, Operand};

use super::operands::{Block, Lanes, constant, lanes, list, width};
use crate::machine::{Machine, Step};
use crate::value::Domain;

/// Executes an instruction; `None` if it is of another family.
pub(super) fn execute<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Option<Step> {
    use Opcode::*;
    Some(match i.opcode {
        UMOV | FMOV if width(i.operands[0]).is_some() => to_general(m, i),
        // FMOV Vd.D[1], Xn keeps the low half.
        FMOV if matches!(i.operands[0], Operand::SIMDRegisterElementsLane(..)) => {
            insert(m, i, lanes(i.operands[0])?)
        }
        FMOV | DUP => duplicate(m, i, lanes(i.operands[0])?),
        INS => insert(m, i, lanes(i.operands[0])?),
        EXT => {
            let Some(from) = constant(i.operands[3]) else { return Some(m.no_form(i)) };
            of_two(m, i, |place, size| place + from as usize % size)
        }
        ZIP1 | ZIP2 => {
            let Lanes { element, size, .. } = lanes(i.operands[0])?;
            let start = if i.opcode == ZIP2 { size / 2 / element } else { 0 };
            of_two(m, i, |place, size| {
                let number = place / element;
                (start + number / 2) * element + place % element + number % 2 * size
            })
        }
        UZP1 => {
            let Lanes { element, .. } = lanes(i.operands[0])?;
            of_two(m, i, |place, _| 2 * (place / element) * element + place % element)
        }
        REV32 | REV64 => reverse(m, i, lanes(i.operands[0])?),
        TBL => look_up(m, i, lanes(i.operands[0])?),
        _ => return None,
    })
}

/// UMOV and FMOV to a general register.
fn to_general<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let (x, from) = m.source(i, 1)?;
    let start = from.index * from.element;
    let word = from_fn(|place| if place < from.element { x[start + place] } else { D::constant(0) });
    m.set(i, 0, word)
}

/// An element or a general register as an operand, in the lowest bytes.
fn element<D: Domain>(
    m: &mut Machine<D>,
    i: &Instruction,
    size: usize,
) -> Result<Block<D>, crate::machine::Stop> {
    let zero = D::constant(0);
    if width(i.operands[1]).is_some() {
        let word = m.value(i, 1, 8)?;
        return Ok(from_fn(|place| if place < size.min(8) { word[place] } else { zero }));
    }
    let (x, from) = m.source(i, 1)?;
    let start = from.index * from.element;
    Ok(from_fn(|place| if place < size { x[start + place] } else { zero }))
}

/// DUP of an element or a general register; FMOV to a vector register.
fn duplicate<D: Domain>(m: &mut Machine<D>, i: &Instruction, to: Lanes) -> Step {
    let element = element(m, i, to.element)?;
    m.set_lanes(to, &from_fn(|place| element[place % to.element]));
    Ok(())
}

/// INS, and FMOV to an element: keeps the other elements.
fn insert<D: Domain>(m: &mut Machine<D>, i: &Instruction, to: Lanes) -> Step {
    let element = element(m, i, to.element)?;
    let mut block = m.vector_number(to.register);
    let start = to.index * to.element;
    block[start..start + to.element].copy_from_slice(&element[..to.element]);
    m.set_vector_number(to.register, block);
    Ok(())
}

/// Each byte of the result is the byte of the concatenation of two registers whose place `from` states. It gets the place of the result and
/// the size of a register.
fn of_two<D: Domain>(m: &mut Machine<D>, i: &Instruction, from: impl Fn(usize, usize) -> usize) -> Step {
    let ((x, to), (y, _)) = (m.source(i, 1)?, m.source(i, 2)?);
    let Some(Lanes { register, .. }) = lanes(i.operands[0]) else { return m.no_form(i) };
    let to = Lanes { register, ..to };
    let result = from_fn(|place| {
        let place = if place < to.size { from(place, to.size) } else { 0 };
        if place < to.size { x[place] } else { y[place - to.size] }
    });
    m.set_lanes(to, &result);
    Ok(())
}

/// REV32 and REV64: reverses the order of the elements in each part of 4 or 8 bytes.
fn reverse<D: Domain>(m: &mut Machine<D>, i: &Instruction, to: Lanes) -> Step {
    let (x, _) = m.source(i, 1)?;
    let part = if i.opcode == Opcode::REV32 { 4 } else { 8 };
    let result = from_fn(|place| {
        let (start, number) = (place / part * part, place % part / to.element);
        x[start + (part / to.element - 1 - number) * to.element + place % to.element]
    });
    m.set_lanes(to, &result);
    Ok(())
}

/// TBL of one register: each byte of the second source selects a byte of the table, or zero if it is 16 or more. The time does not depend
/// on the bytes.
fn look_up<D: Domain>(m: &mut Machine<D>, i: &Instruction, to: Lanes) -> Step {
    let (Some((table, 1)), (indexes, _)) = (list(i.operands[1]), m.source(i, 2)?) else {
        return m.no_form(i);
    };
    let table = m.vector_number(table.register);
    let result = from_fn(|place| {
        let index = indexes[place];
        let found = m.domain.look_up(&table, index);
        match (D::value(index) >= 16, D::secret(index)) {
            (false, _) => found,
            (true, 0) => D::constant(0),
            (true, secret) => m.domain.opaque(0, secret),
        }
    });
    m.set_lanes(to, &result);
    Ok(())
}
