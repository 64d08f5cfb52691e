//! Logic, shifts and counts on general registers.

use iced_x86::{Instruction, Mnemonic, OpKind};

use super::operands::{are_same, filled};
use crate::machine::{Flags, Kind, Machine, Step, Stop};
use crate::value::{Domain, Flag, Number, Shift, low_bits};

pub(super) fn logic<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let size = m.size(i, 0);
    let first = u32::from(i.mnemonic() == Mnemonic::Andn);
    let (x, y) = (m.read(i, first)?, m.read(i, first + 1)?);
    let result = filled::<D>(size, |place| match i.mnemonic() {
        Mnemonic::Xor if are_same(i, 0, 1) => D::constant(0),
        Mnemonic::Xor => m.domain.xor(x[place], y[place]),
        Mnemonic::Or => m.domain.or(x[place], y[place]),
        Mnemonic::Andn => {
            let inverted = m.domain.not(x[place]);
            m.domain.and(inverted, y[place])
        }
        _ => m.domain.and(x[place], y[place]),
    });
    let clear = Flag::new(false, false);
    (m.flags.carry, m.flags.overflow) = (clear, clear);
    m.set_result_flags(&result[..size]);
    if i.mnemonic() == Mnemonic::Test { Ok(()) } else { m.write(i, 0, &result) }
}

pub(super) fn invert<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let x = m.read(i, 0)?;
    let result = x.map(|byte| m.domain.not(byte));
    m.write(i, 0, &result)
}

/// The number of bits by which an instruction shifts, modulo 32 or 64. The analysis demands that this number is public, although
/// shifts by a register take the same time for all numbers.
fn shift_count<D: Domain>(
    m: &mut Machine<D>,
    i: &Instruction,
    operand: u32,
    size: usize,
) -> Result<u32, Stop> {
    let count = m.read(i, operand)?;
    let count = m.public(Kind::Time, "number of bits to shift by", &count[..1])?;
    Ok(count as u32 & if size == 8 { 63 } else { 31 })
}

/// The kind of shift of a mnemonic.
fn kind(mnemonic: Mnemonic) -> Shift {
    use Mnemonic::{Sal, Sar, Sarx, Shl, Shlx};
    match mnemonic {
        Shl | Sal | Shlx => Shift::Left,
        Sar | Sarx => Shift::Arithmetic,
        _ => Shift::Right,
    }
}

/// Bit `index` of a lane, as a flag.
fn bit<D: Domain>(lane: &[D::Byte], index: u32) -> Flag {
    let number = Number::of::<D>(lane);
    let is_set = |bits: u64| bits.checked_shr(index).unwrap_or(0) & 1 == 1;
    Flag::new(is_set(number.value), is_set(number.secret))
}

pub(super) fn shift<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let size = m.size(i, 0);
    let bits = 8 * size as u32;
    let (x, count) = (m.read(i, 0)?, shift_count(m, i, 1, size)?);
    if count == 0 {
        return m.write(i, 0, &x);
    }
    let mut result = x;
    let kind = kind(i.mnemonic());
    m.domain.shift(&mut result[..size], kind, count);
    // The carry is the last bit that is shifted out of the operand.
    let carry = match kind {
        Shift::Left if count > bits => Flag::new(false, false),
        Shift::Left => bit::<D>(&x[..size], bits - count),
        Shift::Arithmetic => bit::<D>(&x[..size], (count - 1).min(bits - 1)),
        Shift::Right => bit::<D>(&x[..size], count - 1),
    };
    m.flags.carry = carry;
    m.set_result_flags(&result[..size]);
    let (sign, before) = (m.flags.sign, bit::<D>(&x[..size], bits - 1));
    m.flags.overflow = match kind {
        _ if count != 1 => Flag::UNDEFINED,
        Shift::Left => Flag::new(sign.value != carry.value, sign.secret || carry.secret),
        Shift::Right => before,
        Shift::Arithmetic => Flag::new(false, false),
    };
    m.write(i, 0, &result)
}

pub(super) fn shift_without_flags<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let size = m.size(i, 0);
    let (mut x, count) = (m.read(i, 1)?, shift_count(m, i, 2, size)?);
    m.domain.shift(&mut x[..size], kind(i.mnemonic()), count);
    m.write(i, 0, &x)
}

/// Rotates a lane to the left.
pub(super) fn rotated<D: Domain>(domain: &mut D, lane: &mut [D::Byte], count: u32) {
    let bits = 8 * lane.len() as u32;
    let mut entering = [D::constant(0); 8];
    let entering = &mut entering[..lane.len()];
    entering.copy_from_slice(lane);
    domain.shift(entering, Shift::Right, bits - count % bits);
    domain.shift(lane, Shift::Left, count % bits);
    for (byte, entering) in lane.iter_mut().zip(entering) {
        *byte = domain.or(*byte, *entering);
    }
}

pub(super) fn rotate<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let size = m.size(i, 0);
    let bits = 8 * size as u32;
    let keeps_flags = i.mnemonic() == Mnemonic::Rorx;
    let operand = u32::from(keeps_flags);
    let (mut x, count) = (m.read(i, operand)?, shift_count(m, i, operand + 1, size)?);
    let goes_left = i.mnemonic() == Mnemonic::Rol;
    let left = if goes_left { count % bits } else { (bits - count % bits) % bits };
    rotated(&mut m.domain, &mut x[..size], left);
    if !keeps_flags && count != 0 {
        let (top, next) = (bit::<D>(&x[..size], bits - 1), bit::<D>(&x[..size], bits - 2));
        m.flags.carry = if goes_left { bit::<D>(&x[..size], 0) } else { top };
        let other = if goes_left { m.flags.carry } else { next };
        m.flags.overflow = match count {
            1 => Flag::new(top.value != other.value, top.secret || other.secret),
            _ => Flag::UNDEFINED,
        };
    }
    m.write(i, 0, &x)
}

/// SHLD and SHRD: the bits that enter come from the second operand.
pub(super) fn double_shift<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let size = m.size(i, 0);
    let bits = 8 * size as u32;
    let (mut x, mut entering, count) = (m.read(i, 0)?, m.read(i, 1)?, shift_count(m, i, 2, size)?);
    if count == 0 {
        return m.write(i, 0, &x);
    }
    if count > bits {
        return Err(m.stop("a shift by more bits than the operand has is undefined"));
    }
    let goes_left = i.mnemonic() == Mnemonic::Shld;
    let (forth, back) = if goes_left { (Shift::Left, Shift::Right) } else { (Shift::Right, Shift::Left) };
    let carry = bit::<D>(&x[..size], if goes_left { bits - count } else { count - 1 });
    let before = bit::<D>(&x[..size], bits - 1);
    m.domain.shift(&mut x[..size], forth, count);
    m.domain.shift(&mut entering[..size], back, bits - count);
    for place in 0..size {
        x[place] = m.domain.or(x[place], entering[place]);
    }
    m.flags.carry = carry;
    m.set_result_flags(&x[..size]);
    m.flags.overflow = match count {
        1 => Flag::new(before.value != m.flags.sign.value, before.secret || m.flags.sign.secret),
        _ => Flag::UNDEFINED,
    };
    m.write(i, 0, &x)
}

/// BT, BTS, BTR and BTC.
pub(super) fn test<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let size = m.size(i, 0);
    if i.op0_kind() == OpKind::Memory && i.op1_kind() == OpKind::Register {
        return Err(m.stop("a bit of memory at an index in a register has no semantics"));
    }
    let (mut x, index) = (m.read(i, 0)?, m.read(i, 1)?);
    let index = m.public(Kind::Time, "index of a bit", &index[..1])? as usize % (8 * size);
    m.flags.carry = bit::<D>(&x[..size], index as u32);
    let (byte, mask) = (&mut x[index / 8], 1u8 << (index % 8));
    *byte = match i.mnemonic() {
        Mnemonic::Bts => m.domain.or(*byte, D::constant(mask)),
        Mnemonic::Btr => m.domain.and(*byte, D::constant(!mask)),
        Mnemonic::Btc => m.domain.xor(*byte, D::constant(mask)),
        _ => return Ok(()),
    };
    m.write(i, 0, &x)
}

/// BSF, BSR, TZCNT, LZCNT and POPCNT: the position of a set bit, or a number of bits.
pub(super) fn count<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let size = m.size(i, 0);
    let bits = 8 * size as u32;
    let x = m.read(i, 1)?;
    let x = Number::of::<D>(&x[..size]);
    let is_zero = Flag::new(x.value == 0, x.is_secret());
    let trailing = x.value.trailing_zeros().min(bits);
    let leading = x.value.leading_zeros() - (64 - bits);
    let (result, flags) = match i.mnemonic() {
        Mnemonic::Popcnt => {
            let clear = Flag::new(false, false);
            let flags = Flags { carry: clear, parity: clear, zero: is_zero, sign: clear, overflow: clear };
            (x.value.count_ones(), flags)
        }
        Mnemonic::Tzcnt | Mnemonic::Lzcnt => {
            let result = if i.mnemonic() == Mnemonic::Tzcnt { trailing } else { leading };
            let zero = Flag::new(result == 0, x.is_secret());
            (result, Flags { carry: is_zero, zero, ..Flags::UNDEFINED })
        }
        _ if x.value == 0 && x.secret == 0 => {
            return Err(m.stop("the position of a bit in zero is undefined"));
        }
        Mnemonic::Bsf => (trailing, Flags { zero: is_zero, ..Flags::UNDEFINED }),
        _ => ((bits - 1).wrapping_sub(leading), Flags { zero: is_zero, ..Flags::UNDEFINED }),
    };
    m.flags = flags;
    let bytes = m.opaque(result.into(), x.is_secret());
    m.write(i, 0, &bytes)
}

/// BLSR, BLSI and BLSMSK.
pub(super) fn lowest<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let size = m.size(i, 0);
    let x = m.read(i, 1)?;
    let x = Number::of::<D>(&x[..size]);
    let less = x.value.wrapping_sub(1);
    let (result, carry) = match i.mnemonic() {
        Mnemonic::Blsr => (x.value & less, x.value == 0),
        Mnemonic::Blsmsk => (x.value ^ less, x.value == 0),
        _ => (x.value & x.value.wrapping_neg(), x.value != 0),
    };
    let bytes = m.opaque(result & low_bits(size), x.is_secret());
    m.set_result_flags(&bytes[..size]);
    m.flags.carry = Flag::new(carry, x.is_secret());
    m.flags.overflow = Flag::new(false, false);
    m.write(i, 0, &bytes)
}
