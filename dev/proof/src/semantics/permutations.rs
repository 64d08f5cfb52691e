//! Permutations of the lanes of vector registers.

use std::array::from_fn;

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use super::lanes::source;
use super::operands::{filled, is_legacy};
use crate::machine::{Machine, Step};
use crate::value::{Domain, Flag, Shift};

/// PSHUFB: each byte of the second source selects a byte of the first in the same lane of 16 bytes, or zero if its top bit is set.
pub(super) fn bytes<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let ((x, indexes), size) = (m.sources(i)?, m.size(i, 0));
    let result = filled::<D>(size, |place| {
        let (lane, index) = (place / 16 * 16, indexes[place]);
        let found = m.domain.look_up(&x[lane..lane + 16], index);
        // If the top bit is secret, the domain does not separate it from the other bits. The whole byte is then secret.
        match (D::value(index) & 0x80 != 0, D::secret(index)) {
            (false, _) => found,
            (true, 0) => D::constant(0),
            (true, secret) => m.domain.opaque(0, secret),
        }
    });
    m.write(i, 0, &result)
}

/// PSHUFD: a constant selects doublewords within each lane of 16 bytes.
pub(super) fn doublewords<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let (x, order) = (m.read(i, 1)?, m.constant(i)?);
    let from = |place: usize| place / 16 * 16 + (order >> (place % 16 / 4 * 2) & 3) * 4 + place % 4;
    m.write(i, 0, &from_fn(|place| x[from(place)]))
}

/// PSHUFLW and PSHUFHW: a constant selects words within one half of each lane of 16 bytes.
pub(super) fn words<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let (x, order) = (m.read(i, 1)?, m.constant(i)?);
    let half = usize::from(matches!(i.mnemonic(), Mnemonic::Pshufhw | Mnemonic::Vpshufhw));
    let from = |place: usize| {
        if place % 16 / 8 != half {
            return place;
        }
        place / 8 * 8 + (order >> (place % 8 / 2 * 2) & 3) * 2 + place % 2
    };
    m.write(i, 0, &from_fn(|place| x[from(place)]))
}

/// SHUFPS and SHUFPD: the low half of each lane from the first source, the high half from the second.
pub(super) fn two_sources<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let ((x, y), order) = (m.sources(i)?, m.constant(i)?);
    let is_single = matches!(i.mnemonic(), Mnemonic::Shufps | Mnemonic::Vshufps);
    let result = from_fn(|place| {
        let (lane, within) = (place / 16 * 16, place % 16);
        let source = if within < 8 { &x } else { &y };
        if is_single {
            source[lane + (order >> (within / 4 * 2) & 3) * 4 + within % 4]
        } else {
            source[lane + (order >> (place / 8) & 1) * 8 + within % 8]
        }
    });
    m.write(i, 0, &result)
}

/// PSLLDQ and PSRLDQ: shifts of lanes of 16 bytes by whole bytes.
pub(super) fn byte_shift<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let (x, count) = (source(m, i)?, m.constant(i)?);
    let goes_left = matches!(i.mnemonic(), Mnemonic::Pslldq | Mnemonic::Vpslldq);
    let result = from_fn(|place| {
        let within = place % 16;
        let from = if goes_left { within.checked_sub(count) } else { Some(within + count) };
        let from = from.filter(|from| *from < 16);
        from.map_or(D::constant(0), |from| x[place / 16 * 16 + from])
    });
    m.write(i, 0, &result)
}

/// PALIGNR: selects 16 consecutive bytes of each pair of lanes. The low lane of a pair belongs to the second source.
pub(super) fn align_bytes<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let ((high, low), count) = (m.sources(i)?, m.constant(i)?);
    let result = from_fn(|place| {
        let (lane, from) = (place / 16 * 16, place % 16 + count);
        match from {
            0..16 => low[lane + from],
            16..32 => high[lane + from - 16],
            _ => D::constant(0),
        }
    });
    m.write(i, 0, &result)
}

/// VALIGND and VALIGNQ: select consecutive lanes of N bytes of the two sources together. The second source is the low
/// half.
pub(super) fn align_lanes<D: Domain, const N: usize>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let ((high, low), size) = (m.sources(i)?, m.size(i, 0));
    let count = m.constant(i)? % (size / N) * N;
    let byte = |place: usize| if place < size { low[place] } else { high[(place - size) % 64] };
    m.write(i, 0, &filled::<D>(size, |place| byte(place + count)))
}

/// PUNPCKL and PUNPCKH: lanes of N bytes of one half of each 16 bytes, alternately from the two sources.
pub(super) fn interleave<D: Domain, const N: usize, const HIGH: bool>(
    m: &mut Machine<D>,
    i: &Instruction,
) -> Step {
    let (x, y) = m.sources(i)?;
    let half = if HIGH { 8 } else { 0 };
    let result = from_fn(|place| {
        let within = place % 16 / N;
        let source = if within.is_multiple_of(2) { &x } else { &y };
        source[place / 16 * 16 + half + within / 2 * N + place % N]
    });
    m.write(i, 0, &result)
}

/// VSHUFI64X2 and similar: lanes of 16 bytes. The low half comes from the first source, and the high half from the second.
pub(super) fn vectors<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let ((x, y), size, order) = (m.sources(i)?, m.size(i, 0), m.constant(i)?);
    let (lanes, bits) = (size / 16, if size == 64 { 2 } else { 1 });
    let result = from_fn(|place| {
        let lane = place / 16;
        let source = if lane < lanes / 2 { &x } else { &y };
        source[(order >> (lane % 4 * bits) & (lanes - 1)) * 16 + place % 16]
    });
    m.write(i, 0, &result)
}

/// VPERM2I128: each half is one of the four halves of the sources, or zero.
pub(super) fn two_vectors<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let ((x, y), order) = (m.sources(i)?, m.constant(i)?);
    let result = from_fn(|place| {
        let choice = order >> (place / 16 % 2 * 4);
        let source = if choice & 2 == 0 { &x } else { &y };
        if choice & 8 != 0 { D::constant(0) } else { source[(choice & 1) * 16 + place % 16] }
    });
    m.write(i, 0, &result)
}

/// VPERMQ. A constant selects quadwords within each 32 bytes; a register selects among all quadwords.
pub(super) fn quadwords<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    if i.op_kind(2) != OpKind::Immediate8 {
        return by_register::<D, 8>(m, i);
    }
    let (x, order) = (m.read(i, 1)?, m.constant(i)?);
    let from = |place: usize| place / 32 * 32 + (order >> (place % 32 / 8 * 2) & 3) * 8 + place % 8;
    m.write(i, 0, &from_fn(|place| x[from(place)]))
}

/// VPERMD and VPERMQ by a register: the low bits of the lanes of the first source select lanes of N bytes of the second source.
pub(super) fn by_register<D: Domain, const N: usize>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let (indexes, x, size) = (m.read(i, 1)?, m.read(i, 2)?, m.size(i, 0));
    let result = filled::<D>(size, |place| {
        let table: Vec<D::Byte> = (0..size / N).map(|lane| x[N * lane + place % N]).collect();
        m.domain.look_up(&table, indexes[place / N * N])
    });
    m.write(i, 0, &result)
}

/// VPERMI2D and VPERMT2D: doublewords of two sources. The indexes are in the destination or in the second operand.
pub(super) fn of_two_by_register<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let (destination, second, high, size) = (m.read(i, 0)?, m.read(i, 1)?, m.read(i, 2)?, m.size(i, 0));
    let (indexes, low) = match i.mnemonic() {
        Mnemonic::Vpermi2d => (destination, second),
        _ => (second, destination),
    };
    let lanes = size / 4;
    let result = filled::<D>(size, |place| {
        let byte = |lane: usize| {
            if lane < lanes { low[4 * lane + place % 4] } else { high[4 * (lane - lanes) + place % 4] }
        };
        let table: Vec<D::Byte> = (0..2 * lanes).map(byte).collect();
        m.domain.look_up(&table, indexes[place / 4 * 4])
    });
    m.write(i, 0, &result)
}

/// Blends by a constant. If a bit of the constant is set, the lane comes from the second source, otherwise from the
/// first.
pub(super) fn blend<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    use Mnemonic::{Blendpd, Blendps, Pblendw, Vblendpd, Vblendps, Vpblendd, Vpblendw};
    let ((x, y), order) = (m.sources(i)?, m.constant(i)?);
    let size = match i.mnemonic() {
        Pblendw | Vpblendw => 2,
        Vpblendd | Blendps | Vblendps => 4,
        Blendpd | Vblendpd => 8,
        _ => return Err(m.stop("this blend has no semantics")),
    };
    // The immediate has 8 bits. PBLENDW blends 8 words with them, and VPBLENDW uses the same 8 bits for the second 16
    // bytes.
    let result = from_fn(|place| if order >> (place / size % 8) & 1 == 1 { y[place] } else { x[place] });
    m.write(i, 0, &result)
}

/// Blends by the top bits of lanes of N bytes in a register, which is XMM0 in the encoding of SSE.
pub(super) fn blend_by_sign<D: Domain, const N: usize>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let ((mut x, y), size) = (m.sources(i)?, m.size(i, 0));
    let signs = if is_legacy(i) { m.register(Register::XMM0) } else { m.read(i, 3)? };
    for place in 0..size {
        let top = signs[place / N * N + N - 1];
        let is_second = Flag::new(D::value(top) & 0x80 != 0, D::secret(top) & 0x80 != 0);
        x[place] = m.domain.select(is_second, y[place], x[place]);
    }
    m.write(i, 0, &x)
}

/// PMOVZX and PMOVSX: lanes of the low part become longer.
pub(super) fn extend<D: Domain, const FROM: usize, const TO: usize, const SIGNED: bool>(
    m: &mut Machine<D>,
    i: &Instruction,
) -> Step {
    let (x, size) = (m.read(i, 1)?, m.size(i, 0));
    let mut result = [D::constant(0); 64];
    for (lane, source) in result[..size].chunks_mut(TO).zip(x.chunks(FROM)) {
        if SIGNED {
            lane[TO - FROM..].copy_from_slice(source);
            m.domain.shift(lane, Shift::Arithmetic, 8 * (TO - FROM) as u32);
        } else {
            lane[..FROM].copy_from_slice(source);
        }
    }
    m.write(i, 0, &result)
}
