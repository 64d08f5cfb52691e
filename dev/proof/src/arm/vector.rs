//! Operations on the elements of vector registers; AES and carry-less products.

use std::array::from_fn;

use yaxpeax_arm::armv8::a64::{Instruction, Opcode, Operand};

use super::operands::{Block, Lanes, constant, lanes};
use crate::machine::{Kind, Machine, Step, Stop};
use crate::value::{Domain, Flag, Number, Shift};

/// Executes an instruction; `None` if it is of another family.
pub(super) fn execute<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Option<Step> {
    use Opcode::*;
    let to = lanes(i.operands[0])?;
    Some(match i.opcode {
        AND | BIC | ORR | ORN | EOR => logic(m, i, to),
        EOR3 => three(m, i, to),
        BIF | BIT => merge(m, i, to),
        NOT => with_source(m, i, |m, x| {
            let inverted = x.map(|byte| m.domain.not(byte));
            m.set_lanes(to, &inverted);
        }),
        ADD | SUB => each_element(m, i, to, |m, x, y| {
            let before = x.to_vec();
            let mut y = y.to_vec();
            let subtracts = i.opcode == SUB;
            if subtracts {
                y.iter_mut().for_each(|byte| *byte = m.domain.not(*byte));
            }
            m.domain.add(&before, &y, Flag::new(subtracts, false), x);
            Ok(())
        }),
        // The sign of each element.
        CMLT if constant(i.operands[2]) == Some(0) => shift(m, i, to),
        CMEQ | CMHI => each_element(m, i, to, |m, x, y| {
            compare(m, i.opcode, x, y);
            Ok(())
        }),
        USHL => each_element(m, i, to, |m, x, y| {
            let count = m.public(Kind::Time, "number of bits to shift by", &y[..1])? as u8 as i8;
            let kind = if count < 0 { Shift::Right } else { Shift::Left };
            m.domain.shift(x, kind, count.unsigned_abs().into());
            Ok(())
        }),
        SHL | USHR => shift(m, i, to),
        USHLL => lengthen(m, i, to),
        XTN => narrow(m, i, to),
        SADDLV | UMAXV => reduce(m, i, to),
        AESE | AESD => round(m, i, to),
        AESMC | AESIMC => with_source(m, i, |m, mut x| {
            for column in x.as_chunks_mut().0 {
                *column = m.domain.mix_column(*column, i.opcode == AESIMC);
            }
            m.set_lanes(to, &x);
        }),
        PMULL | PMULL2 => carryless(m, i, to),
        MOVI => set_constant(m, i, to),
        FCSEL => select(m, i, to),
        _ => return None,
    })
}

impl<D: Domain> Machine<D> {
    /// The vector register of a source operand.
    pub(super) fn source(&self, i: &Instruction, operand: usize) -> Result<(Block<D>, Lanes), Stop> {
        match lanes(i.operands[operand]) {
            Some(lanes) => Ok((self.vector_number(lanes.register), lanes)),
            None => self.no_form(i),
        }
    }
}

/// Calls an operation with the source of an instruction that has one.
fn with_source<D: Domain>(
    m: &mut Machine<D>,
    i: &Instruction,
    operation: impl FnOnce(&mut Machine<D>, Block<D>),
) -> Step {
    let (x, _) = m.source(i, 1)?;
    operation(m, x);
    Ok(())
}

/// MOVI: each element is a constant.
fn set_constant<D: Domain>(m: &mut Machine<D>, i: &Instruction, to: Lanes) -> Step {
    let Some(value) = constant(i.operands[1]) else { return m.no_form(i) };
    let bytes = value.to_le_bytes();
    m.set_lanes(to, &from_fn(|place| D::constant(bytes[place % to.element.min(8)])));
    Ok(())
}

fn logic<D: Domain>(m: &mut Machine<D>, i: &Instruction, to: Lanes) -> Step {
    use Opcode::{AND, BIC, EOR, ORN};
    let (x, mut y) = match i.operands[1] {
        // BIC and ORR with a constant change the register of the result.
        Operand::ImmShift(..) => {
            let value = constant(i.operands[1]).unwrap_or_default().to_le_bytes();
            (m.source(i, 0)?.0, from_fn(|place| D::constant(value[place % to.element])))
        }
        _ => (m.source(i, 1)?.0, m.source(i, 2)?.0),
    };
    if matches!(i.opcode, BIC | ORN) {
        y = y.map(|byte| m.domain.not(byte));
    }
    let result = from_fn(|place| match i.opcode {
        AND | BIC => m.domain.and(x[place], y[place]),
        EOR => m.domain.xor(x[place], y[place]),
        _ => m.domain.or(x[place], y[place]),
    });
    m.set_lanes(to, &result);
    Ok(())
}

/// EOR3.
fn three<D: Domain>(m: &mut Machine<D>, i: &Instruction, to: Lanes) -> Step {
    let (x, y, z) = (m.source(i, 1)?.0, m.source(i, 2)?.0, m.source(i, 3)?.0);
    let result = from_fn(|place| {
        let sum = m.domain.xor(x[place], y[place]);
        m.domain.xor(sum, z[place])
    });
    m.set_lanes(to, &result);
    Ok(())
}

/// BIF and BIT: the bits of the first source where the mask in the second source is 0 (BIF) or 1 (BIT), otherwise those of the result
/// before.
fn merge<D: Domain>(m: &mut Machine<D>, i: &Instruction, to: Lanes) -> Step {
    let (before, source, mask) = (m.source(i, 0)?.0, m.source(i, 1)?.0, m.source(i, 2)?.0);
    let (ones, zeros) = if i.opcode == Opcode::BIT { (source, before) } else { (before, source) };
    let result = from_fn(|place| {
        let inverted = m.domain.not(mask[place]);
        let (one, zero) = (m.domain.and(ones[place], mask[place]), m.domain.and(zeros[place], inverted));
        m.domain.or(one, zero)
    });
    m.set_lanes(to, &result);
    Ok(())
}

/// An operation on each element of two sources. It writes the result to the element of the first source. The second source may be a
/// constant.
fn each_element<D: Domain>(
    m: &mut Machine<D>,
    i: &Instruction,
    to: Lanes,
    operation: impl Fn(&mut Machine<D>, &mut [D::Byte], &[D::Byte]) -> Step,
) -> Step {
    let (mut x, _) = m.source(i, 1)?;
    let y = match constant(i.operands[2]) {
        Some(0) => [D::constant(0); 16],
        Some(_) => return m.no_form(i),
        None => m.source(i, 2)?.0,
    };
    for start in (0..to.size).step_by(to.element) {
        let range = start..start + to.element;
        operation(m, &mut x[range.clone()], &y[range])?;
    }
    m.set_lanes(to, &x);
    Ok(())
}

/// CMEQ and CMHI: sets an element to all ones if the elements are equal, or if the first one is greater as an unsigned number, otherwise
/// to all zeros.
fn compare<D: Domain>(m: &mut Machine<D>, opcode: Opcode, x: &mut [D::Byte], y: &[D::Byte]) {
    let (a, b) = (Number::of::<D>(x), Number::of::<D>(y));
    let holds = if opcode == Opcode::CMEQ { a.value == b.value } else { a.value > b.value };
    let secret = if a.is_secret() || b.is_secret() { 0xff } else { 0 };
    x.fill_with(|| m.domain.opaque(if holds { 0xff } else { 0 }, secret));
}

/// The constant by which an instruction shifts.
fn count<D: Domain>(m: &Machine<D>, i: &Instruction) -> Result<u32, Stop> {
    constant(i.operands[2]).map_or_else(|| m.no_form(i), |count| Ok(count as u32))
}

/// SHL, USHR, and CMLT with zero.
fn shift<D: Domain>(m: &mut Machine<D>, i: &Instruction, to: Lanes) -> Step {
    let ((mut x, _), count) = (m.source(i, 1)?, count(m, i)?);
    let (kind, count) = match i.opcode {
        Opcode::SHL => (Shift::Left, count),
        Opcode::USHR => (Shift::Right, count),
        _ => (Shift::Arithmetic, 8 * to.element as u32 - 1),
    };
    for element in x[..to.size].chunks_mut(to.element) {
        m.domain.shift(element, kind, count);
    }
    m.set_lanes(to, &x);
    Ok(())
}

/// USHLL: extends the elements of the low half by zeros to twice their size, and shifts them to the left.
fn lengthen<D: Domain>(m: &mut Machine<D>, i: &Instruction, to: Lanes) -> Step {
    let ((x, from), count) = (m.source(i, 1)?, count(m, i)?);
    let mut result = [D::constant(0); 16];
    for (wide, element) in result.chunks_mut(to.element).zip(x.chunks(from.element)) {
        wide[..from.element].copy_from_slice(element);
        m.domain.shift(wide, Shift::Left, count);
    }
    m.set_lanes(to, &result);
    Ok(())
}

/// XTN: the low half of each element.
fn narrow<D: Domain>(m: &mut Machine<D>, i: &Instruction, to: Lanes) -> Step {
    let (x, from) = m.source(i, 1)?;
    let place_of = |place: usize| place / to.element * from.element + place % to.element;
    m.set_lanes(to, &from_fn(|place| x[place_of(place) % 16]));
    Ok(())
}

/// SADDLV and UMAXV: the sum of all elements as signed numbers, and the largest element.
fn reduce<D: Domain>(m: &mut Machine<D>, i: &Instruction, to: Lanes) -> Step {
    let (x, from) = m.source(i, 1)?;
    let numbers = x[..from.size].chunks(from.element).map(Number::of::<D>);
    let is_secret = numbers.clone().any(Number::is_secret);
    let unused = 64 - 8 * from.element;
    let value = match i.opcode {
        Opcode::UMAXV => numbers.map(|number| number.value).max().unwrap_or_default(),
        _ => numbers.map(|number| (number.value << unused) as i64 >> unused).sum::<i64>() as u64,
    };
    let word = m.opaque_word(value, is_secret);
    m.set_lanes(to, &from_fn(|place| word[place % 8]));
    Ok(())
}

/// AESE and AESD: AddRoundKey, ShiftRows and SubBytes, or their inverses.
fn round<D: Domain>(m: &mut Machine<D>, i: &Instruction, to: Lanes) -> Step {
    let (state, key) = (m.source(i, 0)?.0, m.source(i, 1)?.0);
    let inverse = i.opcode == Opcode::AESD;
    let result = from_fn(|place| {
        // ShiftRows: row r moves by r columns, to the left or, in the inverse, to the right.
        let (column, row) = (place / 4, place % 4);
        let from = (column + if inverse { 4 - row } else { row }) % 4 * 4 + row;
        let sum = m.domain.xor(state[from], key[from]);
        m.domain.sub_byte(sum, inverse)
    });
    m.set_lanes(to, &result);
    Ok(())
}

/// PMULL and PMULL2 of doublewords.
fn carryless<D: Domain>(m: &mut Machine<D>, i: &Instruction, to: Lanes) -> Step {
    let ((x, lanes), (y, _)) = (m.source(i, 1)?, m.source(i, 2)?);
    if lanes.element != 8 {
        return m.no_form(i);
    }
    let half = if i.opcode == Opcode::PMULL2 { 8 } else { 0 };
    let product = m.domain.carryless(&x, &y, [half, half]);
    m.set_lanes(to, &product);
    Ok(())
}

fn select<D: Domain>(m: &mut Machine<D>, i: &Instruction, to: Lanes) -> Step {
    let ((x, _), (y, _)) = (m.source(i, 1)?, m.source(i, 2)?);
    let Operand::ConditionCode(condition) = i.operands[3] else { return m.no_form(i) };
    let flag = m.holds(condition)?;
    let result = from_fn(|place| m.domain.select(flag, x[place], y[place]));
    m.set_lanes(to, &result);
    Ok(())
}
