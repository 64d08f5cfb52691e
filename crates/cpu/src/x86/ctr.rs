//! CTR with a counter of 128 or of 32 bits.
//!
//! Counters are kept as little-endian numbers, one a block, and are reversed on their way into the cipher. Only their
//! low 32 bits are added to, which wrap as GCM wants it. A counter of 128 bits has its data cut where they would wrap (at most
//! once in 64 GiB), so that one loop does for both widths.
//!
//! GCM may keep its counter secret: it comes from the hash key if the IV has not 12 bytes. So nothing branches on a counter of 32
//! bits.

use std::arch::x86_64::__m128i;

use super::cipher::{Encrypt, FEW, Pass, Reach, drive, drive_few, middle, opaque};
use super::schedule::Schedule;
use super::vector::{Vector, Xmm};
use crate::counter::{Counting, Low32, Whole};
use crate::kernel::{Block, Span};

struct Ctr<V> {
    keys: *const __m128i,
    rounds: usize,
    /// Counters of the next vector.
    counters: V,
    /// Blocks in a vector.
    stride: V,
}

impl<V: Vector> Pass<V> for Ctr<V> {
    const BYTES: bool = true;

    #[inline(always)]
    unsafe fn step<const N: usize, R: Reach>(&mut self, reach: R, src: *const u8, dst: *mut u8) {
        let keys = opaque(self.keys);
        // SAFETY: the caller vouches for the instructions and for N vectors; there are `rounds` + 1 keys.
        unsafe {
            let (first, last) = (V::broadcast(keys), V::broadcast(keys.add(self.rounds)));
            let mut x = [first; N];
            for x in &mut x {
                *x = first.xor(self.counters.reversed());
                self.counters = self.counters.add32(self.stride);
            }
            middle::<Encrypt, V, N>(keys, self.rounds, &mut x);
            for i in 0..N {
                let text: V = reach.load(src.add(i * V::BYTES));
                reach.store(x[i].aesenclast(last.xor(text)), dst.add(i * V::BYTES));
            }
        }
    }
}

/// CTR of less than [`FEW`] bytes with a counter of 32 bits, or of 128 of which the low 32 do not wrap. It goes from memory to a vector and back as a whole: a load of
/// what was stored in parts would wait for all that came before.
///
/// # Safety
///
/// As [`Vector`] for [`Xmm`].
#[inline(always)]
pub(super) unsafe fn ctr_few(schedule: &Schedule, counter: &mut Block, data: Span<'_>) {
    let (keys, rounds) = (schedule.encrypt(), schedule.rounds());
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        let (counters, stride) = (Xmm::load(counter.as_ptr()).reversed(), Xmm::number(1));
        let after = drive_few(Ctr::<Xmm> { keys, rounds, counters, stride }, data).counters;
        after.reversed().store(counter.as_mut_ptr());
    }
}

/// True if [`ctr_few`] is to be used, for a counter of which the last `BITS` bits count. Where there are masks, they cut a block
/// off faster than it does.
#[inline(always)]
pub(super) fn is_few<V: Vector, const BITS: u32>(counter: &Block, len: usize) -> bool {
    len < FEW
        && (V::BLOCKS < 4 || len.is_multiple_of(16))
        && (BITS == 32 || blocks_before_wrap(u128::from_be_bytes(*counter)) >= FEW as u64 / 16)
}

/// Blocks until the low 32 bits are all ones.
#[inline(always)]
fn blocks_before_wrap(counter: u128) -> u64 {
    u64::from(!(counter as u32))
}

/// CTR of any length with a counter of which the last `BITS` bits count: 32 or all 128.
///
/// # Safety
///
/// As [`Vector`].
#[inline(always)]
pub(super) unsafe fn ctr<V: Vector, const BITS: u32>(
    schedule: &Schedule,
    counter: &mut Block,
    data: Span<'_>,
) {
    let advance = |counter: u128, blocks: u64| match BITS {
        32 => Low32::advance(counter, blocks.into()),
        _ => Whole::advance(counter, blocks.into()),
    };
    let mut start = u128::from_be_bytes(*counter);
    *counter = advance(start, data.len().div_ceil(16) as u64).to_be_bytes();
    let (keys, rounds) = (schedule.encrypt(), schedule.rounds());
    let mut rest = data;
    loop {
        let room = if BITS == 32 { u64::MAX } else { blocks_before_wrap(start) + 1 };
        let cut = rest.len().div_ceil(16) as u64 > room;
        let part = if cut { 16 * room as usize } else { rest.len() };
        let (head, tail) = rest.split_at(part);
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let counters = V::splat(Xmm::number(start)).add32(V::numbers([0, 1, 2, 3]));
            let stride = V::numbers([V::BLOCKS as u128; 4]);
            drive::<V, _>(Ctr::<V> { keys, rounds, counters, stride }, head);
        }
        if tail.is_empty() {
            return;
        }
        (start, rest) = (advance(start, room), tail);
    }
}
