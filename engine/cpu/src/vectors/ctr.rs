//! CTR with a counter of 128 or of 32 bits.
//!
//! Counters are kept as little-endian numbers, one for each block. Except for GCM-SIV, whose counters are little-endian,
//! they are byte-reversed before encryption. Additions are modulo 2^32, as GCM requires. For a 128-bit counter, the data are
//! split where the low 32 bits wrap (at most once in 64 GiB), so that counters of both widths share one loop.
//!
//! In GCM, the counter depends on the hash key if the IV does not have 12 bytes. The counter is then secret, so no branch
//! depends on a 32-bit counter.

use super::cipher::{Extent, Keys, Pass, SHORT, drive};
use super::schedule::Schedule;
use super::single_stream::load_words;
use super::vector::{Single, Vector};
use crate::kernel::counter::{Counting, Low32, Whole};
use crate::kernel::{Block, Span};

/// The counters of the next vectors, and the keys that encrypt them.
pub(super) struct Ctr<V, const BIG_ENDIAN: bool> {
    keys: Keys,
    /// Counters of the next vector.
    counters: V,
    /// Number of blocks in a vector.
    stride: V,
}

impl<V: Vector, const BIG_ENDIAN: bool> Ctr<V, BIG_ENDIAN> {
    /// CTR from a counter, which is given as a little-endian number.
    ///
    /// # Safety
    ///
    /// The same as for [`Vector`].
    #[inline(always)]
    pub(super) unsafe fn new(schedule: &Schedule, start: Single) -> Self {
        // SAFETY: the caller guarantees that the processor has the instructions.
        unsafe {
            let counters = V::splat(start).add32(V::numbers([0, 1, 2, 3]));
            let [counters, stride] = [counters, V::numbers([V::BLOCKS as u128; 4])]
                .map(|numbers| if BIG_ENDIAN { numbers.native() } else { numbers });
            Ctr { keys: Keys::of::<true>(schedule), counters, stride }
        }
    }

    /// The keystream of the next N vectors before the last round, and the key of the last round.
    ///
    /// # Safety
    ///
    /// The same as for [`Vector`]. In addition, the schedule exists.
    #[inline(always)]
    pub(super) unsafe fn next<const N: usize>(&mut self) -> ([V; N], V) {
        let keys = self.keys.opaque();
        // SAFETY: the caller guarantees the conditions of this function.
        unsafe {
            let (first, last): (V, V) = keys.ends();
            let mut x = [first; N];
            for x in &mut x {
                *x = first.xor(if BIG_ENDIAN { self.counters.reversed().native() } else { self.counters });
                self.counters = self.counters.add32(self.stride);
            }
            keys.middle::<true, V, N>(&mut x);
            (x, last)
        }
    }
}

impl<V: Vector, const BIG_ENDIAN: bool> Pass<V> for Ctr<V, BIG_ENDIAN> {
    const BYTES: bool = true;

    #[inline(always)]
    unsafe fn step<const N: usize>(&mut self, extent: Extent, src: *const u8, dst: *mut u8) {
        // SAFETY: the caller guarantees that the processor has the instructions, and the memory of N vectors. The schedule
        // exists.
        unsafe {
            let (x, last) = self.next::<N>();
            for i in 0..N {
                let text: V = extent.load(src.add(i * V::BYTES));
                extent.store(x[i].aesenclast(last.xor(text)), dst.add(i * V::BYTES));
            }
        }
    }
}

/// CTR of less than [`SHORT`] bytes, with a 32-bit counter, or with a 128-bit counter whose low 32 bits do not wrap.
///
/// The counter is loaded as two words, because a vector load cannot be forwarded from two smaller stores.
///
/// # Safety
///
/// The same as for [`Vector`], with [`Single`] as the vector.
#[inline(always)]
unsafe fn ctr_short(schedule: &Schedule, counter: &mut Block, data: Span<'_>) {
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe {
        let start = Single::number(u128::from_be_bytes(*counter));
        let pass = Ctr::<Single, true>::new(schedule, start);
        drive::<_, _, true>(pass, data).counters.reversed().native().store(counter.as_mut_ptr());
    }
}

/// True if [`ctr_short`] applies, for a counter of `BITS` bits. It does not apply to a partial block if the vector type has
/// masks, since processing the block with masks is faster.
#[inline(always)]
pub(super) fn is_short<V: Vector, const BITS: u32>(counter: &Block, len: usize) -> bool {
    len < SHORT
        && (V::BLOCKS < 4 || len.is_multiple_of(16))
        && (BITS == 32 || blocks_before_wrap(u128::from_be_bytes(*counter)) >= SHORT as u64 / 16)
}

/// Number of blocks until the low 32 bits are all ones.
#[inline(always)]
fn blocks_before_wrap(counter: u128) -> u64 {
    u64::from(!(counter as u32))
}

/// CTR of any length with a counter of `BITS` bits, 32 or 128. If FEW is set, [`is_short`] is true, and `V` is [`Single`].
///
/// # Safety
///
/// The same as for [`Vector`].
#[inline(always)]
pub(super) unsafe fn ctr<V: Vector, const BITS: u32, const FEW: bool>(
    schedule: &Schedule,
    counter: &mut Block,
    data: Span<'_>,
) {
    if FEW {
        // SAFETY: the caller guarantees that the processor has the instructions.
        return unsafe { ctr_short(schedule, counter, data) };
    }
    let advance = |counter: u128, blocks: u64| match BITS {
        32 => Low32::advance(counter, blocks.into()),
        _ => Whole::advance(counter, blocks.into()),
    };
    let mut start = u128::from_be_bytes(*counter);
    *counter = advance(start, data.len().div_ceil(16) as u64).to_be_bytes();
    let mut rest = data;
    loop {
        let room = if BITS == 32 { u64::MAX } else { blocks_before_wrap(start) + 1 };
        let cut = rest.len().div_ceil(16) as u64 > room;
        let part = if cut { 16 * room as usize } else { rest.len() };
        let (head, tail) = rest.split_at(part);
        // SAFETY: the caller guarantees that the processor has the instructions.
        unsafe { drive::<_, _, false>(Ctr::<V, true>::new(schedule, Single::number(start)), head) };
        if tail.is_empty() {
            return;
        }
        (start, rest) = (advance(start, room), tail);
    }
}

/// CTR of any length whose first 32 bits are a little-endian counter (RFC 8452, section 4).
///
/// # Safety
///
/// The same as for [`Vector`].
#[inline(always)]
pub(super) unsafe fn ctr_little32<V: Vector>(schedule: &Schedule, counter: &mut Block, data: Span<'_>) {
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe {
        let start = load_words(counter);
        start.add32(Single::number(data.len().div_ceil(16) as u32 as u128)).store(counter.as_mut_ptr());
        drive::<_, _, false>(Ctr::<V, false>::new(schedule, start), data);
    }
}
