//! XTS of whole blocks, either direction.
//!
//! To keep dependency chains short, the tweaks of each vector are computed from the tweaks of one of the first vectors of
//! the step, or of the previous step, by a multiplication by a power of alpha. The chain from the tweaks of one step to the
//! tweaks of the next step has at most two multiplications, whatever the number of vectors.
//!
//! A multiplication by a power of alpha^8 is a shift by whole bytes, which is reduced by shifts and exclusive ors. Only a
//! multiplication by a power of alpha below alpha^8 needs a carry-less product, which occupies AES units for two cycles on
//! Zen 4.

use super::cipher::{Extent, Keys, Pass, drive, extra_rounds, for_each};
use super::schedule::Schedule;
use super::single_stream;
use super::vector::{Single, Vector, prefetch};
use crate::kernel::tweak;
use crate::kernel::{Block, Span};

/// x^128 modulo the field polynomial.
const MODULUS: u128 = 0x87;

/// Distance of prefetches in bytes: two of the widest steps.
const AHEAD: usize = 1024;

struct Xts<V, const ENCRYPTS: bool> {
    keys: Keys,
    /// Tweaks of the next vector.
    tweaks: V,
    /// The tweaks of the next eight vectors, for the widest steps with vectors of four blocks. They are computed between the
    /// rounds of the previous step.
    following: [V; 8],
    modulus: V,
}

impl<V: Vector, const ENCRYPTS: bool> Xts<V, ENCRYPTS> {
    /// # Safety
    ///
    /// The same as for [`Vector`].
    #[inline(always)]
    unsafe fn new(schedule: &Schedule, tweaks: V) -> Self {
        // SAFETY: the caller guarantees that the processor has the instructions.
        let modulus = unsafe { V::numbers([MODULUS; 4]) };
        Xts { keys: Keys::of::<ENCRYPTS>(schedule), tweaks, following: [tweaks; 8], modulus }
    }

    /// Computes the tweaks of the first of the widest steps, if `len` bytes contain such a step.
    #[inline(always)]
    fn ready_for(mut self, len: usize) -> Self {
        if V::BLOCKS == 4 && len >= 8 * V::BYTES {
            let second = self.tweaks.times_alpha(4, self.modulus);
            let pair = [self.tweaks, second];
            for_each!(I < 8 => {
                self.following[I] = if I < 2 { pair[I % 2] } else { pair[I % 2].times_alpha_8(I / 2) }
            });
        }
        self
    }

    /// The tweaks of the vector that is `vectors` vectors ahead. `known` contains the tweaks of the vectors before it.
    #[inline(always)]
    fn tweaks_after(&self, vectors: usize, known: &[V]) -> V {
        // Number of vectors that hold eight blocks: a multiplication by alpha^8 shifts a tweak by one byte.
        let period = 8 / V::BLOCKS;
        let (whole, part) = (vectors / period, vectors % period);
        if whole == 0 {
            self.tweaks.times_alpha(part * V::BLOCKS, self.modulus)
        } else if part < known.len() {
            known[part].times_alpha_8(whole)
        } else {
            self.tweaks.times_alpha(part * V::BLOCKS, self.modulus).times_alpha_8(whole)
        }
    }

    /// A step of eight vectors of four blocks.
    ///
    /// The tweaks of the next step are computed between the rounds, where they use execution units that are idle. If they
    /// were computed before the rounds, they would fill the reorder buffer.
    ///
    /// # Safety
    ///
    /// The same as for [`Pass::step`].
    #[inline(always)]
    unsafe fn widest(&mut self, keys: Keys, src: *const u8, dst: *mut u8) {
        // SAFETY: the caller guarantees that the processor has the instructions, and the memory of eight vectors. The
        // schedule exists.
        unsafe {
            let (first, last): (V, V) = keys.ends();
            let tweaks = self.following;
            let mut x = [first; 8];
            for_each!(I < 8 => x[I] = first.xor(tweaks[I]).xor(V::load(src.add(I * V::BYTES))));
            // The additional rounds come first, so that the other rounds and the code that uses their result form one basic
            // block.
            extra_rounds!(keys.rounds, 1, round => {
                let key = keys.get(round);
                for_each!(I < 8 => x[I] = x[I].round::<ENCRYPTS>(key));
            });
            let keys = keys.without_extra();
            for_each!(ROUND < 8 => {
                let key = keys.get(ROUND + 1);
                for_each!(I < 8 => x[I] = x[I].round::<ENCRYPTS>(key));
                // Eight vectors of four blocks are 32 blocks. A multiplication by alpha^32 is a shift by four bytes.
                self.following[ROUND] = tweaks[ROUND].times_alpha_8(4);
            });
            let key = keys.get(9);
            for_each!(I < 8 => x[I] = x[I].round::<ENCRYPTS>(key));
            for_each!(I < 8 => x[I].last::<ENCRYPTS>(last.xor(tweaks[I])).store(dst.add(I * V::BYTES)));
            self.tweaks = self.following[0];
        }
    }
}

impl<V: Vector, const ENCRYPTS: bool> Pass<V> for Xts<V, ENCRYPTS> {
    /// Tweaks need registers too: 16 registers hold 6 vectors and their tweaks.
    const WIDEST: usize = if V::BLOCKS == 4 { 8 } else { 6 };

    #[inline(always)]
    unsafe fn step<const N: usize>(&mut self, extent: Extent, src: *const u8, dst: *mut u8) {
        let keys = self.keys.opaque();
        if N >= 4 && V::BLOCKS == 4 {
            // Tweaks and rounds fill the reorder buffer, so the processor does not reach the next loads early enough.
            for i in 0..N {
                // SAFETY: a prefetch never faults, so every address is allowed. All processors of both architectures have the instruction.
                unsafe { prefetch(src.wrapping_add(AHEAD + i * V::BYTES)) };
            }
        }
        if N == 8 && V::BLOCKS == 4 {
            // SAFETY: the caller guarantees the conditions of this function.
            return unsafe { self.widest(keys, src, dst) };
        }
        // SAFETY: the caller guarantees that the processor has the instructions, and the memory of N vectors. The schedule
        // exists.
        unsafe {
            let (first, last): (V, V) = keys.ends();
            let mut x = [first; N];
            let mut tweaks = [self.tweaks; N];
            for i in 0..N {
                tweaks[i] = self.tweaks_after(i, &tweaks);
                x[i] = first.xor(tweaks[i]).xor(extent.load(src.add(i * V::BYTES)));
            }
            if matches!(extent, Extent::Whole) {
                self.tweaks = self.tweaks_after(N, &tweaks);
            }
            keys.middle::<ENCRYPTS, V, N>(&mut x);
            for i in 0..N {
                extent.store(x[i].last::<ENCRYPTS>(last.xor(tweaks[i])), dst.add(i * V::BYTES));
            }
        }
    }
}

/// XTS under the data key, starting from an encrypted tweak.
///
/// # Safety
///
/// The same as for [`drive`], and for [`Vector`] with [`Single`] as the vector.
#[inline(always)]
pub(super) unsafe fn xts<const ENCRYPTS: bool, V: Vector, const FEW: bool>(
    schedule: &Schedule,
    register: &mut Block,
    data: Span<'_>,
) {
    let blocks = data.len() / 16;
    // SAFETY: the caller guarantees the conditions of this function.
    unsafe {
        let mut first = [Single::load(register.as_ptr()); 4];
        let mut next = u128::from_le_bytes(*register);
        for place in &mut first[1..V::BLOCKS] {
            next = tweak::double(next);
            *place = Single::number(next);
        }
        let pass = Xts::<V, ENCRYPTS>::new(schedule, V::join(first)).ready_for(data.len());
        let tweaks = drive::<V, _, FEW>(pass, data).tweaks;
        if V::BLOCKS == 1 {
            return tweaks.lowest().store(register.as_mut_ptr());
        }
        let mut next = [0u128; 4];
        tweaks.store((&raw mut next).cast());
        // After a partial vector, `tweaks` still holds the tweaks of that vector.
        *register = next[blocks % V::BLOCKS].to_le_bytes();
    }
}

/// XTS of the whole blocks of a data unit, from the start of the unit, for less than [`SHORT`](super::cipher::SHORT) bytes.
/// `number` is the number of the unit; `after` is set to the tweak of the block that follows the data.
///
/// The number is not copied first, because a vector load cannot be forwarded from a copy that two smaller stores made.
///
/// # Safety
///
/// The same as for [`Vector`], with [`Single`] as the vector.
#[inline(always)]
pub(super) unsafe fn unit_short<const ENCRYPTS: bool>(
    schedule: &Schedule,
    tweak_schedule: &Schedule,
    number: &Block,
    after: Option<&mut Block>,
    data: Span<'_>,
) {
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe {
        let tweak = single_stream::encrypted(tweak_schedule, Single::load(number.as_ptr()));
        let next = drive::<_, _, true>(Xts::<Single, ENCRYPTS>::new(schedule, tweak), data).tweaks;
        if let Some(after) = after {
            next.store(after.as_mut_ptr());
        }
    }
}
