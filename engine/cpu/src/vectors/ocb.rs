//! OCB3 of whole blocks (RFC 7253, sections 4.2 and 4.3).
//!
//! The offsets of a step differ from the offset before the step by values that depend on the key only, if the number of the
//! step's first block is a multiple of the step's size: the masks L_0, L_1, ... follow a Gray code. Only the offset of the
//! step's last block depends on the position. These differences are loaded from a table, so that the offsets of a step do not
//! depend on each other.

use super::cipher::{Extent, Keys, Pass, drive};
use super::schedule::Schedule;
use super::vector::{Single, Vector};
use crate::kernel::ocb::STEP;
use crate::kernel::{OcbKey, OcbState, Span};

struct Ocb<'k, V, const ENCRYPTS: bool> {
    keys: Keys,
    key: &'k OcbKey,
    /// The offset of the last block.
    offset: Single,
    /// Number of blocks so far.
    blocks: u64,
    checksum: V,
}

/// The mask L_i of a key.
///
/// # Safety
///
/// The same as for [`Vector`], with [`Single`] as the vector.
#[inline(always)]
unsafe fn l(key: &OcbKey, i: u32) -> Single {
    // SAFETY: the caller guarantees that the processor has the instruction.
    unsafe { Single::load(key.masks.l(i).as_ptr()) }
}

impl<V: Vector, const ENCRYPTS: bool> Pass<V> for Ocb<'_, V, ENCRYPTS> {
    // [`ocb`] aligns the number of blocks, so that it is a multiple of the number of blocks in a step.
    #[inline(always)]
    unsafe fn step<const N: usize>(&mut self, extent: Extent, src: *const u8, dst: *mut u8) {
        let keys = self.keys.opaque();
        let count = N * V::BLOCKS;
        // SAFETY: the caller guarantees that the processor has the instructions, and the memory of N vectors. The schedule
        // exists. The table has STEP blocks, and a step has at most as many.
        unsafe {
            let (first, last): (V, V) = keys.ends();
            let table = self.key.steps.0.as_ptr().cast::<u8>();
            let before = V::splat(self.offset);
            // The table has the mask of block `count` where the mask of block `blocks` + `count` is needed.
            let number = self.blocks + count as u64;
            let change = l(self.key, count.trailing_zeros()).xor(l(self.key, number.trailing_zeros()));
            let zero = change.xor(change);
            let mut places = [zero; 4];
            places[V::BLOCKS - 1] = change;
            let change_of_last = V::join(places);
            let offset = |i: usize| {
                let offset = before.xor(V::load(table.add(i * V::BYTES)));
                if i == N - 1 { offset.xor(change_of_last) } else { offset }
            };
            let mut x = [first; N];
            for i in 0..N {
                let text: V = extent.load(src.add(i * V::BYTES));
                if ENCRYPTS {
                    self.checksum = self.checksum.xor(text);
                }
                x[i] = first.xor(offset(i)).xor(text);
            }
            keys.middle::<ENCRYPTS, V, N>(&mut x);
            for i in 0..N {
                let text = x[i].last::<ENCRYPTS>(last.xor(offset(i)));
                if !ENCRYPTS {
                    self.checksum = self.checksum.xor(text);
                }
                extent.store(text, dst.add(i * V::BYTES));
            }
            let step = Single::load(table.add(16 * (count - 1)));
            self.offset = self.offset.xor(step).xor(change);
            self.blocks = number;
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
    // Blocks before the first step, and blocks after the last whole vector.
    let before = 16 * (state.blocks.wrapping_neg() as usize % STEP);
    let head = if FEW { data.len() } else { data.len().min(before) };
    let (head, rest) = data.split_at(head);
    let whole = rest.len() / V::BYTES * V::BYTES;
    let (body, tail) = rest.split_at(whole);
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe {
        part::<ENCRYPTS, Single, true>(schedule, key, state, head);
        if FEW {
            return;
        }
        part::<ENCRYPTS, V, false>(schedule, key, state, body);
        part::<ENCRYPTS, Single, true>(schedule, key, state, tail);
    }
}

/// Encrypts or decrypts whole vectors. If SINGLES is set, the vectors are processed one by one, and they may start with any block;
/// otherwise the number of the first block is a multiple of the blocks in a step.
///
/// # Safety
///
/// The same as for [`Vector`], both for `V` and for [`Single`].
#[inline(always)]
unsafe fn part<const ENCRYPTS: bool, V: Vector, const SINGLES: bool>(
    schedule: &Schedule,
    key: &OcbKey,
    state: &mut OcbState,
    data: Span<'_>,
) {
    if data.is_empty() {
        return;
    }
    // SAFETY: the caller guarantees that the processor has the instructions; the blocks lie in the span.
    unsafe {
        let offset = Single::load(state.offset[0].as_ptr());
        let (keys, zero) = (Keys::of::<ENCRYPTS>(schedule), V::splat(offset.xor(offset)));
        let mut pass = Ocb::<V, ENCRYPTS> { keys, key, offset, blocks: state.blocks, checksum: zero };
        if SINGLES {
            let (src, dst) = (data.src(), data.dst());
            for at in (0..data.len()).step_by(V::BYTES) {
                pass.step::<1>(Extent::Whole, src.add(at), dst.add(at));
            }
        } else {
            pass = drive::<_, _, false>(pass, data);
        }
        pass.offset.store(state.offset[0].as_mut_ptr());
        let checksum = Single::load(state.checksum[0].as_ptr()).xor(pass.checksum.folded());
        checksum.store(state.checksum[0].as_mut_ptr());
        state.blocks = pass.blocks;
    }
}
