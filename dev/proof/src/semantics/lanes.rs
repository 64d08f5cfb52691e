//! Operations on the lanes of vector registers.

use std::array::from_fn;

use iced_x86::{Instruction, Mnemonic, OpKind};

use super::bits::rotated;
use super::operands::{are_same, filled, first_source, is_legacy};
use crate::machine::{Bytes, Kind, Machine, Step};
use crate::value::{Domain, Flag, Number, Shift};

/// An operation on each byte of two sources.
fn each_byte<D: Domain>(
    m: &mut Machine<D>,
    i: &Instruction,
    operation: fn(&mut D, D::Byte, D::Byte) -> D::Byte,
) -> Step {
    let ((x, y), size) = (m.sources(i)?, m.size(i, 0));
    let result = filled::<D>(size, |place| operation(&mut m.domain, x[place], y[place]));
    m.write(i, 0, &result)
}

/// An operation on each lane of N bytes of two sources. It writes the result to the first lane.
fn each_lane<D: Domain, const N: usize>(
    m: &mut Machine<D>,
    i: &Instruction,
    operation: impl Fn(&mut D, &mut [D::Byte], &[D::Byte]),
) -> Step {
    let ((mut x, y), size) = (m.sources(i)?, m.size(i, 0));
    for (x, y) in x[..size].as_chunks_mut::<N>().0.iter_mut().zip(y.as_chunks::<N>().0) {
        operation(&mut m.domain, x, y);
    }
    m.write(i, 0, &x)
}

/// True if the two sources are the same register.
fn sources_are_same(i: &Instruction) -> bool {
    let first = first_source(i);
    are_same(i, first, first + 1)
}

pub(super) fn xor<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    if sources_are_same(i) {
        return m.write(i, 0, &[D::constant(0); 64]);
    }
    each_byte(m, i, D::xor)
}

pub(super) fn and<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    each_byte(m, i, D::and)
}

pub(super) fn or<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    each_byte(m, i, D::or)
}

pub(super) fn and_not<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    each_byte(m, i, |domain, x, y| {
        let inverted = domain.not(x);
        domain.and(inverted, y)
    })
}

pub(super) fn ternary<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let (x, y, z, size) = (m.read(i, 0)?, m.read(i, 1)?, m.read(i, 2)?, m.size(i, 0));
    let table = m.constant(i)? as u8;
    let result = filled::<D>(size, |place| {
        // This table is the XOR of three values. It is the most frequent table.
        if table == 0x96 {
            let sum = m.domain.xor(x[place], y[place]);
            return m.domain.xor(sum, z[place]);
        }
        m.domain.ternary(table, x[place], y[place], z[place])
    });
    m.write(i, 0, &result)
}

pub(super) fn add<D: Domain, const N: usize>(m: &mut Machine<D>, i: &Instruction) -> Step {
    each_lane::<D, N>(m, i, |domain, x, y| {
        let before: [D::Byte; N] = from_fn(|place| x[place]);
        domain.add(&before, y, Flag::new(false, false), x);
    })
}

pub(super) fn subtract<D: Domain, const N: usize>(m: &mut Machine<D>, i: &Instruction) -> Step {
    each_lane::<D, N>(m, i, |domain, x, y| {
        let before: [D::Byte; N] = from_fn(|place| x[place]);
        let inverted: [D::Byte; N] = from_fn(|place| domain.not(y[place]));
        domain.add(&before, &inverted, Flag::new(true, false), x);
    })
}

/// Sets a lane to all ones if the comparison of two signed numbers holds, otherwise to all zeros.
fn compare<D: Domain>(domain: &mut D, x: &mut [D::Byte], y: &[D::Byte], holds: impl Fn(i64, i64) -> bool) {
    let unused = 64 - 8 * x.len();
    let (a, b) = (Number::of::<D>(x), Number::of::<D>(y));
    let signed = |number: Number| (number.value << unused) as i64 >> unused;
    let value = if holds(signed(a), signed(b)) { 0xff } else { 0 };
    let secret = if a.is_secret() || b.is_secret() { 0xff } else { 0 };
    x.fill_with(|| domain.opaque(value, secret));
}

pub(super) fn equal<D: Domain, const N: usize>(m: &mut Machine<D>, i: &Instruction) -> Step {
    if sources_are_same(i) {
        return m.write(i, 0, &[D::constant(0xff); 64]);
    }
    each_lane::<D, N>(m, i, |domain, x, y| compare(domain, x, y, |x, y| x == y))
}

pub(super) fn greater<D: Domain, const N: usize>(m: &mut Machine<D>, i: &Instruction) -> Step {
    each_lane::<D, N>(m, i, |domain, x, y| compare(domain, x, y, |x, y| x > y))
}

/// The kind of shift of a mnemonic.
fn kind(mnemonic: Mnemonic) -> Shift {
    use Mnemonic::*;
    match mnemonic {
        Psllw | Pslld | Psllq | Vpsllw | Vpslld | Vpsllq | Vpsllvd | Vpsllvq => Shift::Left,
        Psraw | Psrad | Vpsraw | Vpsrad | Vpsraq | Vpsravd => Shift::Arithmetic,
        _ => Shift::Right,
    }
}

/// Shifts of all lanes by a constant, or by the low 8 bytes of a register.
pub(super) fn shift<D: Domain, const N: usize>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let last = i.op_count() - 1;
    let count = m.read(i, last)?;
    let size_of_count = if i.op_kind(last) == OpKind::Immediate8 { 1 } else { 8 };
    let count = m.public(Kind::Time, "number of bits to shift by", &count[..size_of_count])?;
    let (mut x, size) = (m.read(i, last - 1)?, m.size(i, 0));
    let count = count.min(u64::from(u8::MAX)) as u32;
    for lane in x[..size].as_chunks_mut::<N>().0 {
        shift_lane(&mut m.domain, lane, kind(i.mnemonic()), count);
    }
    m.write(i, 0, &x)
}

/// A shift by at least the number of bits of the lane moves all bits out.
fn shift_lane<D: Domain>(domain: &mut D, lane: &mut [D::Byte], kind: Shift, count: u32) {
    let bits = 8 * lane.len() as u32;
    match kind {
        Shift::Arithmetic => domain.shift(lane, kind, count.min(bits - 1)),
        _ if count >= bits => lane.fill(D::constant(0)),
        _ => domain.shift(lane, kind, count),
    }
}

pub(super) fn shift_by_lanes<D: Domain, const N: usize>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let ((mut x, counts), size) = (m.sources(i)?, m.size(i, 0));
    for (lane, count) in x[..size].as_chunks_mut::<N>().0.iter_mut().zip(counts.as_chunks::<N>().0) {
        let count = m.public(Kind::Time, "number of bits to shift by", count)?.min(u64::from(u8::MAX));
        shift_lane(&mut m.domain, lane, kind(i.mnemonic()), count as u32);
    }
    m.write(i, 0, &x)
}

pub(super) fn rotate<D: Domain, const N: usize>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let (mut x, size, bits) = (m.read(i, 1)?, m.size(i, 0), 8 * N as u32);
    let count = m.constant(i)? as u32 % bits;
    let goes_left = matches!(i.mnemonic(), Mnemonic::Vprold | Mnemonic::Vprolq);
    let left = if goes_left { count } else { (bits - count) % bits };
    for lane in x[..size].as_chunks_mut::<N>().0 {
        rotated(&mut m.domain, lane, left);
    }
    m.write(i, 0, &x)
}

/// The top bit of each lane: PMOVMSKB, MOVMSKPS and MOVMSKPD.
pub(super) fn signs<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    use Mnemonic::{Movmskpd, Movmskps, Vmovmskpd, Vmovmskps};
    let step = match i.mnemonic() {
        Movmskps | Vmovmskps => 4,
        Movmskpd | Vmovmskpd => 8,
        _ => 1,
    };
    let (bytes, size) = (m.read(i, 1)?, m.size(i, 1));
    let mut result = [D::constant(0); 64];
    for (index, place) in (0..size).step_by(step).enumerate() {
        let mut sign = [bytes[place + step - 1]];
        m.domain.shift(&mut sign, Shift::Right, 7);
        m.domain.shift(&mut sign, Shift::Left, index as u32 % 8);
        result[index / 8] = m.domain.or(result[index / 8], sign[0]);
    }
    m.write(i, 0, &result)
}

/// PTEST: ZF if x AND y is zero, CF if y AND NOT x is zero.
pub(super) fn test<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let (x, y, size) = (m.read(i, 0)?, m.read(i, 1)?, m.size(i, 0));
    let mut flag = |inverts: bool| {
        let (mut is_zero, mut is_secret, mut is_known) = (true, false, false);
        for place in 0..size {
            let x = if inverts { m.domain.not(x[place]) } else { x[place] };
            let both = m.domain.and(x, y[place]);
            is_zero &= D::value(both) == 0;
            is_secret |= D::secret(both) != 0;
            is_known |= D::value(both) & !D::secret(both) != 0;
        }
        Flag::new(is_zero, is_secret && !is_known)
    };
    (m.flags.zero, m.flags.carry) = (flag(false), flag(true));
    let clear = Flag::new(false, false);
    (m.flags.overflow, m.flags.sign, m.flags.parity) = (clear, clear, clear);
    Ok(())
}

/// PMULUDQ: products of the low halves of lanes of 8 bytes.
pub(super) fn multiply<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    each_lane::<D, 8>(m, i, |domain, x, y| {
        let (a, b) = (Number::of::<D>(&x[..4]), Number::of::<D>(&y[..4]));
        let is_zero = |number: Number| number.value | number.secret == 0;
        let is_secret = (a.is_secret() || b.is_secret()) && !is_zero(a) && !is_zero(b);
        for (byte, value) in x.iter_mut().zip((a.value * b.value).to_le_bytes()) {
            *byte = domain.opaque(value, if is_secret { 0xff } else { 0 });
        }
    })
}

/// PACKUSWB, PACKSSWB, PACKSSDW and PACKUSDW: each signed lane of N bytes becomes a lane of N / 2 bytes. A number outside `LOW..=HIGH`
/// becomes the nearest number of this range. Each 16 bytes of the result have 8 bytes from each source.
pub(super) fn pack<D: Domain, const N: usize, const LOW: i64, const HIGH: i64>(
    m: &mut Machine<D>,
    i: &Instruction,
) -> Step {
    let ((x, y), size) = (m.sources(i)?, m.size(i, 0));
    let mut result = [D::constant(0); 64];
    for (index, packed) in result[..size].chunks_mut(N / 2).enumerate() {
        let place = index * N / 2;
        let source = if place % 16 < 8 { &x } else { &y };
        let start = place / 16 * 16 + place % 8 * 2;
        let lane = &source[start..start + N];
        let number = Number::of::<D>(lane);
        let unused = 64 - 8 * N as u32;
        let nearest = ((number.value << unused) as i64 >> unused).clamp(LOW, HIGH);
        // If no value of the secret bits exceeds the range, packing changes no bit, and the lower bytes are copied.
        let is_kept = (number.value | number.secret) as i64 <= HIGH;
        for (place, byte) in packed.iter_mut().enumerate() {
            *byte = if is_kept {
                lane[place]
            } else {
                m.domain.opaque((nearest >> (8 * place)) as u8, if number.is_secret() { 0xff } else { 0 })
            };
        }
    }
    m.write(i, 0, &result)
}

/// The smaller of two unsigned numbers.
pub(super) fn minimum<D: Domain, const N: usize>(m: &mut Machine<D>, i: &Instruction) -> Step {
    each_lane::<D, N>(m, i, |domain, x, y| {
        let (a, b) = (Number::of::<D>(x), Number::of::<D>(y));
        let is_less = Flag::new(a.value <= b.value, a.is_secret() || b.is_secret());
        for (x, y) in x.iter_mut().zip(y) {
            *x = domain.select(is_less, *x, *y);
        }
    })
}

/// The bytes of a source of an instruction that has one source, in both encodings.
pub(super) fn source<D: Domain>(
    m: &mut Machine<D>,
    i: &Instruction,
) -> Result<Bytes<D>, crate::machine::Stop> {
    m.read(i, if is_legacy(i) { 0 } else { 1 })
}
