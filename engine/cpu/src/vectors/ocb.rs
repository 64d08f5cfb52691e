//! OCB3 of whole blocks (RFC 7253, sections 4.2 and 4.3).
//!
//! The offsets of a step differ from the offset before the step by values that depend on the key only, if the number of the
//! step's first block is a multiple of the step's size: the masks L_0, L_1, ... follow a Gray code. Only the offset of the
//! step's last block depends on the position. These differences are loaded from a table, so that the offsets of a step do not
//! depend on each other.

use super::cipher::{Extent, Keys, Pass, drive, in_memory, opaque};
use super::schedule::Schedule;
use super::single_stream::load_words;
use super::vector::{Single, Vector};
use crate::kernel::ocb::STEP;
use crate::kernel::{OcbKey, OcbState, Span};

struct Ocb<'k, const ENCRYPTS: bool> {
    keys: Keys,
    key: &'k OcbKey,
    /// Offset and checksum stay in the memory of the caller, which wipes them: with 16 registers, the compiler would copy them to the
    /// stack.
    state: &'k mut OcbState,
}

impl<V: Vector, const ENCRYPTS: bool> Pass<V> for Ocb<'_, ENCRYPTS> {
    // [`ocb`] aligns the number of blocks, so that it is a multiple of the number of blocks in a step.
    #[inline(always)]
    unsafe fn step<const N: usize>(&mut self, extent: Extent, src: *const u8, dst: *mut u8) {
        let (keys, state) = (self.keys.opaque(), in_memory(&mut *self.state));
        let count = N * V::BLOCKS;
        // SAFETY: the caller guarantees that the processor has the instructions, and the memory of N vectors. The schedule
        // exists. The table has STEP blocks, and a step has at most as many.
        unsafe {
            // The masks are loaded in each step, and the text to encrypt twice: 16 registers would not hold them.
            let key = &*opaque(self.key);
            // The last block of the step has the number `blocks` + `count`. Its value in the table contains the mask L of the number
            // `count`, which is replaced by that of its own number.
            let number = state.blocks + count as u64;
            let l = |i| Single::load(key.masks.l(i).as_ptr());
            let change = l(count.trailing_zeros()).xor(l(number.trailing_zeros()));
            let zero = change.xor(change);
            let mut places = [zero; 4];
            places[V::BLOCKS - 1] = change;
            let change_of_last = V::join(places);
            // The offsets are computed before and after the rounds for the same reason.
            macro_rules! offsets {
                ($round_key:expr) => {{
                    let table = opaque(key.steps.0.as_ptr());
                    let offset = V::splat(Single::load(opaque(state.offset.as_ptr()).cast()));
                    // Hidden, because the compiler would add the round key to each offset of the table instead.
                    let offset_and_key = offset.xor($round_key).pinned();
                    move |i: usize| {
                        let offset = offset_and_key.xor(V::load(table.add(i * V::BLOCKS).cast()));
                        if i == N - 1 { offset.xor(change_of_last) } else { offset }
                    }
                }};
            }
            let mut sum = V::splat(zero);
            if ENCRYPTS {
                for i in 0..N {
                    sum = sum.xor(extent.load(src.add(i * V::BYTES)));
                }
            }
            let (offset, src) = (offsets!(keys.get(0)), opaque(src));
            let mut x = [sum; N];
            for i in 0..N {
                x[i] = offset(i).xor(extent.load(src.add(i * V::BYTES)));
            }
            keys.middle::<ENCRYPTS, V, N>(&mut x);
            let offset = offsets!(keys.get(keys.rounds));
            for i in 0..N {
                let text = x[i].last::<ENCRYPTS>(offset(i));
                if !ENCRYPTS {
                    sum = sum.xor(text);
                }
                extent.store(text, dst.add(i * V::BYTES));
            }
            let step = Single::load(key.steps.0.as_ptr().add(count - 1).cast());
            let offset = state.offset[0].as_mut_ptr();
            Single::load(offset).xor(step).xor(change).store(offset);
            let checksum = state.checksum[0].as_mut_ptr();
            Single::load(checksum).xor(sum.folded()).store(checksum);
            state.blocks = number;
        }
    }
}

/// Encrypts or decrypts whole blocks, one by one if FEW is set.
///
/// # Safety
///
/// The same as for [`Vector`], both for `V` and for [`Single`].
#[inline(always)]
pub(super) unsafe fn ocb<const ENCRYPTS: bool, V: Vector, const FEW: bool>(
    schedule: &Schedule,
    key: &OcbKey,
    state: &mut OcbState,
    data: Span<'_>,
) {
    assert!(data.len().is_multiple_of(16), "whole blocks");
    // The offset may have been stored as words, and two stores are not forwarded to the load of a block.
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe { load_words(&state.offset[0]).store(state.offset[0].as_mut_ptr()) };
    // Blocks before the first step, and blocks after the last whole vector.
    let before = 16 * (state.blocks.wrapping_neg() as usize % STEP);
    let head = if FEW { data.len() } else { data.len().min(before) };
    let (head, rest) = data.split_at(head);
    let whole = rest.len() / V::BYTES * V::BYTES;
    let (body, tail) = rest.split_at(whole);
    let mut pass = Ocb::<ENCRYPTS> { keys: Keys::of::<ENCRYPTS>(schedule), key, state };
    // SAFETY: the caller guarantees that the processor has the instructions; the blocks lie in the span. Single blocks may have any
    // number. The number of the first block of the body is a multiple of the blocks in a step.
    unsafe {
        singles(&mut pass, head);
        if FEW {
            return;
        }
        pass = drive::<V, _, false>(pass, body);
        singles(&mut pass, tail);
    }
}

/// Encrypts or decrypts blocks one by one.
///
/// # Safety
///
/// The same as for [`Vector`], with [`Single`] as the vector.
#[inline(always)]
unsafe fn singles<const ENCRYPTS: bool>(pass: &mut Ocb<'_, ENCRYPTS>, data: Span<'_>) {
    for at in (0..data.len()).step_by(16) {
        // SAFETY: the caller guarantees that the processor has the instructions; the blocks lie in the span.
        unsafe { Pass::<Single>::step::<1>(pass, Extent::Whole, data.src().add(at), data.dst().add(at)) };
    }
}
