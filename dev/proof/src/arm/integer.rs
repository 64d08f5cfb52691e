//! Operations on general registers.

use std::array::from_fn;

use yaxpeax_arm::armv8::a64::{Instruction, Opcode, Operand};

use super::operands::{Word, constant, truncated, width};
use crate::machine::{Flags, Kind, Machine, Step};
use crate::value::{Domain, Flag, Number, Shift};

/// Executes an instruction; `None` if it is of another family.
pub(super) fn execute<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Option<Step> {
    use Opcode::*;
    let size = width(i.operands[0])?;
    Some(match i.opcode {
        ADD | ADDS | SUB | SUBS => add(m, i, size),
        AND | ANDS | BIC | BICS | ORR | ORN | EOR => logic(m, i, size),
        MADD | MSUB => multiply_add(m, i, size, size),
        UMADDL | UMSUBL | SMADDL => multiply_add(m, i, 4, 8),
        UMULH => multiply_high(m, i),
        UDIV => divide(m, i, size),
        LSLV | LSRV => shift(m, i, size),
        UBFM | SBFM | BFM => bit_field(m, i, size),
        EXTR => extract(m, i, size),
        CLZ | RBIT | REV => of_one(m, i, size),
        MOVZ | MOVN | MOVK => wide(m, i, size),
        CSEL | CSINC | CSINV => select(m, i, size),
        CCMP => compare_if(m, i, size),
        _ => return None,
    })
}

impl<D: Domain> Machine<D> {
    /// The sum or the difference of two words of `size` bytes, whose flags are set. The carry of a difference is the inverse of the borrow.
    fn sum_of(&mut self, x: &Word<D>, y: &Word<D>, subtracts: bool, size: usize) -> Word<D> {
        let sum = self.sum(&x[..size], &y[..size], Flag::new(false, false), subtracts);
        if subtracts {
            self.flags.carry.value = !self.flags.carry.value;
        }
        from_fn(|place| sum[place])
    }

    /// Bytes of a word by an operation on two words.
    fn each(
        &mut self,
        x: &Word<D>,
        y: &Word<D>,
        operation: fn(&mut D, D::Byte, D::Byte) -> D::Byte,
    ) -> Word<D> {
        from_fn(|place| operation(&mut self.domain, x[place], y[place]))
    }
}

fn add<D: Domain>(m: &mut Machine<D>, i: &Instruction, size: usize) -> Step {
    let (x, y, before) = (m.value(i, 1, size)?, m.value(i, 2, size)?, m.flags);
    let sum = m.sum_of(&x, &y, matches!(i.opcode, Opcode::SUB | Opcode::SUBS), size);
    if !matches!(i.opcode, Opcode::ADDS | Opcode::SUBS) {
        m.flags = before;
    }
    m.set(i, 0, sum)
}

fn logic<D: Domain>(m: &mut Machine<D>, i: &Instruction, size: usize) -> Step {
    use Opcode::{AND, ANDS, BIC, BICS, EOR, ORN};
    let (x, mut y) = (m.value(i, 1, size)?, m.value(i, 2, size)?);
    if matches!(i.opcode, BIC | BICS | ORN) {
        y = y.map(|byte| m.domain.not(byte));
    }
    let operation = match i.opcode {
        AND | ANDS | BIC | BICS => D::and,
        EOR => D::xor,
        _ => D::or,
    };
    let result = m.each(&x, &y, operation);
    if matches!(i.opcode, ANDS | BICS) {
        let clear = Flag::new(false, false);
        (m.flags.carry, m.flags.overflow) = (clear, clear);
        m.set_result_flags(&result[..size]);
    }
    m.set(i, 0, result)
}

/// The product of two numbers as its low and its high word. The time of a multiplication does not depend on its operands if DIT is set.
fn product<D: Domain>(m: &mut Machine<D>, x: Word<D>, y: Word<D>) -> [Word<D>; 2] {
    let (x, y) = (Number::of::<D>(&x), Number::of::<D>(&y));
    let product = u128::from(x.value) * u128::from(y.value);
    let is_zero = |x: Number| x.value | x.secret == 0;
    let is_secret = (x.is_secret() || y.is_secret()) && !is_zero(x) && !is_zero(y);
    [product as u64, (product >> 64) as u64].map(|part| m.opaque_word(part, is_secret))
}

/// MADD, MSUB, UMADDL, UMSUBL and SMADDL: a product of words of `from` bytes is added to, or subtracted from, a word of `size` bytes.
fn multiply_add<D: Domain>(m: &mut Machine<D>, i: &Instruction, from: usize, size: usize) -> Step {
    let (x, y, z, before) = (m.value(i, 1, from)?, m.value(i, 2, from)?, m.value(i, 3, size)?, m.flags);
    let is_signed = i.opcode == Opcode::SMADDL;
    let (x, y) = (m.extended(x, from, is_signed), m.extended(y, from, is_signed));
    let [low, _] = product(m, x, y);
    let sum =
        m.sum_of(&z, &truncated::<D>(low, size), matches!(i.opcode, Opcode::MSUB | Opcode::UMSUBL), size);
    m.flags = before;
    m.set(i, 0, sum)
}

fn multiply_high<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let (x, y) = (m.value(i, 1, 8)?, m.value(i, 2, 8)?);
    let [_, high] = product(m, x, y);
    m.set(i, 0, high)
}

/// UDIV, whose time depends on its operands. The quotient of a division by zero is zero.
fn divide<D: Domain>(m: &mut Machine<D>, i: &Instruction, size: usize) -> Step {
    let (x, y) = (m.value(i, 1, size)?, m.value(i, 2, size)?);
    let is_secret = [x, y].iter().any(|word| Number::of::<D>(word).is_secret());
    let (x, y) = (m.public(Kind::Time, "division", &x)?, m.public(Kind::Time, "division", &y)?);
    let quotient = m.opaque_word(x.checked_div(y).unwrap_or(0), is_secret);
    m.set(i, 0, quotient)
}

/// LSLV and LSRV. The analysis demands that the number of bits is public, although the time does not depend on it.
fn shift<D: Domain>(m: &mut Machine<D>, i: &Instruction, size: usize) -> Step {
    let (mut x, count) = (m.value(i, 1, size)?, m.value(i, 2, size)?);
    let count = m.public(Kind::Time, "number of bits to shift by", &count[..1])? as u32 % (8 * size as u32);
    let kind = if i.opcode == Opcode::LSLV { Shift::Left } else { Shift::Right };
    m.domain.shift(&mut x[..size], kind, count);
    m.set(i, 0, x)
}

/// UBFM, SBFM and BFM: moves a field of bits. The constants are the number of bits of a rotation to the right, and the last bit of the
/// field.
fn bit_field<D: Domain>(m: &mut Machine<D>, i: &Instruction, size: usize) -> Step {
    let mut x = m.value(i, 1, size)?;
    let (Some(rotation), Some(last)) = (constant(i.operands[2]), constant(i.operands[3])) else {
        return m.no_form(i);
    };
    let (bits, rotation, last) = (8 * size as u32, rotation as u32, last as u32);
    // The field is bits `rotation` to `last`, moved to bit 0; or, if this is empty, bits 0 to `last`, moved to bit `bits - rotation`.
    let (len, to) = if last >= rotation { (last - rotation + 1, 0) } else { (last + 1, bits - rotation) };
    let extension = if i.opcode == Opcode::SBFM { Shift::Arithmetic } else { Shift::Right };
    m.domain.shift(&mut x[..size], Shift::Left, bits - 1 - last);
    m.domain.shift(&mut x[..size], extension, bits - len);
    m.domain.shift(&mut x[..size], Shift::Left, to);
    if i.opcode == Opcode::BFM {
        let field = u64::MAX >> (64 - len) << to;
        let kept = m.value(i, 0, size)?;
        let kept = m.each(&kept, &Machine::<D>::word(!field), D::and);
        x = m.each(&x, &kept, D::or);
    }
    m.set(i, 0, x)
}

fn extract<D: Domain>(m: &mut Machine<D>, i: &Instruction, size: usize) -> Step {
    let (high, low) = (m.value(i, 1, size)?, m.value(i, 2, size)?);
    let Some(count) = constant(i.operands[3]) else { return m.no_form(i) };
    let result = m.extracted(high, low, count as u32, size);
    m.set(i, 0, result)
}

/// CLZ, RBIT and REV.
fn of_one<D: Domain>(m: &mut Machine<D>, i: &Instruction, size: usize) -> Step {
    let x = m.value(i, 1, size)?;
    let mut result = match i.opcode {
        Opcode::CLZ => {
            let number = Number::of::<D>(&x);
            m.opaque_word(
                u64::from(number.value.leading_zeros()) - (64 - 8 * size as u64),
                number.is_secret(),
            )
        }
        _ => from_fn(|place| if place < size { x[size - 1 - place] } else { D::constant(0) }),
    };
    if i.opcode == Opcode::RBIT {
        // Swaps the halves of each byte, then the halves of the halves, then neighbouring bits.
        for (count, mask) in [(4, 0x0f), (2, 0x33), (1, 0x55)] {
            for byte in &mut result {
                let (mut left, mut right) = ([m.domain.and(*byte, D::constant(mask))], [*byte]);
                m.domain.shift(&mut left, Shift::Left, count);
                m.domain.shift(&mut right, Shift::Right, count);
                let right = m.domain.and(right[0], D::constant(mask));
                *byte = m.domain.or(left[0], right);
            }
        }
    }
    m.set(i, 0, result)
}

/// MOVZ, MOVN and MOVK: a constant of 16 bits at a multiple of 16 bits.
fn wide<D: Domain>(m: &mut Machine<D>, i: &Instruction, size: usize) -> Step {
    let Operand::ImmShift(value, shift) = i.operands[1] else { return m.no_form(i) };
    let value = u64::from(value) << shift;
    let word = match i.opcode {
        Opcode::MOVZ => Machine::<D>::word(value),
        Opcode::MOVN => Machine::<D>::word(!value),
        _ => {
            let (before, start) = (m.value(i, 0, size)?, usize::from(shift) / 8);
            let constant = Machine::<D>::word(value);
            from_fn(|place| if place / 2 == start / 2 { constant[place] } else { before[place] })
        }
    };
    m.set(i, 0, word)
}

fn select<D: Domain>(m: &mut Machine<D>, i: &Instruction, size: usize) -> Step {
    let (x, mut y, before) = (m.value(i, 1, size)?, m.value(i, 2, size)?, m.flags);
    let Operand::ConditionCode(condition) = i.operands[3] else { return m.no_form(i) };
    let flag = m.holds(condition)?;
    if i.opcode == Opcode::CSINV {
        y = y.map(|byte| m.domain.not(byte));
    }
    if i.opcode == Opcode::CSINC {
        y = m.sum_of(&y, &Machine::<D>::word(1), false, size);
        m.flags = before;
    }
    let result = from_fn(|place| m.domain.select(flag, x[place], y[place]));
    m.set(i, 0, result)
}

/// CCMP: if the condition holds, the flags of a comparison, otherwise a constant.
fn compare_if<D: Domain>(m: &mut Machine<D>, i: &Instruction, size: usize) -> Step {
    let (x, y) = (m.value(i, 0, size)?, m.value(i, 1, size)?);
    let (Some(flags), Operand::ConditionCode(condition)) = (constant(i.operands[2]), i.operands[3]) else {
        return m.no_form(i);
    };
    let condition = m.holds(condition)?;
    m.sum_of(&x, &y, true, size);
    let compared = m.flags;
    let chosen = |compared: Flag, bit: u32| {
        let other = flags >> bit & 1 == 1;
        let value = if condition.value { compared.value } else { other };
        let secret = condition.secret && (compared.secret || compared.value != other);
        Flag::new(value, secret || condition.value && compared.secret)
    };
    m.flags = Flags {
        sign: chosen(compared.sign, 3),
        zero: chosen(compared.zero, 2),
        carry: chosen(compared.carry, 1),
        overflow: chosen(compared.overflow, 0),
        ..Flags::UNDEFINED
    };
    Ok(())
}
