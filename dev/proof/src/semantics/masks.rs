//! Mask registers, and comparisons whose result is a mask.

use std::array::from_fn;

use iced_x86::{Instruction, Mnemonic, OpKind};

use crate::machine::{Machine, Step};
use crate::value::{Domain, Flag, Number, Shift};

/// Moves of N bytes to or from a mask register.
pub(super) fn moved<D: Domain, const N: usize>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let mut bytes = m.read(i, 1)?;
    bytes[N..].fill(D::constant(0));
    if i.op0_kind() == OpKind::Register && i.op0_register().is_k() {
        m.masks[i.op0_register().number()] = from_fn(|place| bytes[place]);
        return Ok(());
    }
    m.write(i, 0, &bytes)
}

/// KUNPCK: the low N bytes of both sources. Those of the second source are the low part of the result.
pub(super) fn unpack<D: Domain, const N: usize>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let (high, low) = (m.read(i, 1)?, m.read(i, 2)?);
    m.masks[i.op0_register().number()] = from_fn(|place| match place / N {
        0 => low[place],
        1 => high[place - N],
        _ => D::constant(0),
    });
    Ok(())
}

/// KSHIFTL and KSHIFTR of N bytes by a constant.
pub(super) fn shift<D: Domain, const N: usize>(m: &mut Machine<D>, i: &Instruction) -> Step {
    use Mnemonic::{Kshiftlb, Kshiftld, Kshiftlq, Kshiftlw};
    let (mut bytes, count) = (m.read(i, 1)?, m.constant(i)?);
    let goes_left = matches!(i.mnemonic(), Kshiftlb | Kshiftlw | Kshiftld | Kshiftlq);
    if count >= 8 * N {
        bytes.fill(D::constant(0));
    }
    let shift = if goes_left { Shift::Left } else { Shift::Right };
    m.domain.shift(&mut bytes[..N], shift, count as u32 % (8 * N as u32));
    m.masks[i.op0_register().number()] =
        from_fn(|place| if place < N { bytes[place] } else { D::constant(0) });
    Ok(())
}

/// KORTEST of N bytes: ZF if both masks are zero, CF if their bits together are all ones.
pub(super) fn test_either<D: Domain, const N: usize>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let (x, y) = (m.read(i, 0)?, m.read(i, 1)?);
    let either: [D::Byte; N] = from_fn(|place| m.domain.or(x[place], y[place]));
    m.set_result_flags(&either);
    let ones = either.iter().all(|byte| D::value(*byte) == 0xff);
    // A public bit that is clear makes the result different from all ones.
    let is_known = either.iter().any(|byte| !D::value(*byte) & !D::secret(*byte) != 0);
    let is_secret = either.iter().any(|byte| D::secret(*byte) != 0);
    let clear = Flag::new(false, false);
    m.flags.carry = Flag::new(ones, is_secret && !is_known);
    (m.flags.overflow, m.flags.sign, m.flags.parity) = (clear, clear, clear);
    Ok(())
}

/// Sets the destination to the mask of a condition on each lane of N bytes of operands 1 and 2.
fn mask_of_lanes<D: Domain, const N: usize>(
    m: &mut Machine<D>,
    i: &Instruction,
    holds: impl Fn(u64, u64) -> bool,
) -> Step {
    if i.has_op_mask() || i.op0_kind() != OpKind::Register || !i.op0_register().is_k() {
        return Err(m.stop("this comparison with a mask has no semantics"));
    }
    let (x, y, size) = (m.read(i, 1)?, m.read(i, 2)?, m.size(i, 1));
    let mut mask = [D::constant(0); 8];
    for (lane, (x, y)) in x[..size].as_chunks::<N>().0.iter().zip(y.as_chunks::<N>().0).enumerate() {
        let (a, b) = (Number::of::<D>(x), Number::of::<D>(y));
        let flag = Flag::new(holds(a.value, b.value), a.is_secret() || b.is_secret());
        let bit = m.domain.select(flag, D::constant(1 << (lane % 8)), D::constant(0));
        mask[lane / 8] = m.domain.or(mask[lane / 8], bit);
    }
    m.masks[i.op0_register().number()] = mask;
    Ok(())
}

/// VPCMPUD and VPCMPUQ: compare unsigned numbers. The constant selects the kind of comparison.
pub(super) fn compare<D: Domain, const N: usize>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let predicate = m.constant(i)? & 7;
    mask_of_lanes::<D, N>(m, i, |x, y| {
        let holds = match predicate & 3 {
            0 => x == y,
            1 => x < y,
            2 => x <= y,
            _ => false,
        };
        // Predicate p + 4 holds if predicate p does not.
        holds != (predicate >= 4)
    })
}

/// VPTESTM sets the mask bit if two lanes have a common bit. VPTESTNM sets it if they have none.
pub(super) fn test_lanes<D: Domain, const N: usize>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let negates = matches!(i.mnemonic(), Mnemonic::Vptestnmd | Mnemonic::Vptestnmq);
    mask_of_lanes::<D, N>(m, i, |x, y| (x & y != 0) != negates)
}
