//! CTR with a counter of 128 or of 32 bits.
//!
//! Counters are kept as little-endian numbers, one a block, and are reversed on their way into the cipher. Only their
//! low 64 bits are added to: the data is cut where the bits that count would wrap (at most once in any call that ends),
//! so that one loop does for both widths.

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
                self.counters = self.counters.add64(self.stride);
            }
            middle::<Encrypt, V, N>(keys, self.rounds, &mut x);
            for i in 0..N {
                let text: V = reach.load(src.add(i * V::BYTES));
                reach.store(x[i].aesenclast(last.xor(text)), dst.add(i * V::BYTES));
            }
        }
    }
}

/// CTR of less than [`FEW`] bytes, in which the low 64 bits of the counter do not wrap. The counter goes from memory to a vector and back as a whole: a load of
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

/// True if [`ctr_few`] is to be used: for little data in which the bits of the counter that count, or the low 64 bits, do not
/// wrap. Where there are masks, they cut a block off faster than it does.
#[inline(always)]
pub(super) fn is_few<V: Vector>(counter: &Block, bits: u32, len: usize) -> bool {
    let low = u64::from_be_bytes([8, 9, 10, 11, 12, 13, 14, 15].map(|i: usize| counter[i]));
    let room = counting(bits) - (low & counting(bits));
    len < FEW && (V::BLOCKS < 4 || len.is_multiple_of(16)) && room >= FEW as u64 / 16
}

/// The bits of the low half of a counter that count, if `bits` of the whole do.
#[inline(always)]
fn counting(bits: u32) -> u64 {
    if bits == 32 { u32::MAX.into() } else { u64::MAX }
}

/// CTR of any length with a counter of which the last `bits` bits count: 32 or all 128.
///
/// # Safety
///
/// As [`Vector`].
#[inline(always)]
pub(super) unsafe fn ctr<V: Vector>(schedule: &Schedule, counter: &mut Block, bits: u32, data: Span<'_>) {
    let advance = |counter: u128, blocks: u64| match bits {
        32 => Low32::advance(counter, blocks.into()),
        _ => Whole::advance(counter, blocks.into()),
    };
    let mut start = u128::from_be_bytes(*counter);
    *counter = advance(start, data.len().div_ceil(16) as u64).to_be_bytes();
    let (keys, rounds) = (schedule.encrypt(), schedule.rounds());
    let mut rest = data;
    loop {
        // One less than the blocks until the bits wrap that are added to and count.
        let before_wrap = counting(bits) - (start as u64 & counting(bits));
        let cut = rest.len().div_ceil(16) as u64 > before_wrap;
        let part = if cut { rest.len().min(16 * (before_wrap as usize + 1)) } else { rest.len() };
        let (head, tail) = rest.split_at(part);
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let counters = V::splat(Xmm::number(start)).add64(V::numbers([0, 1, 2, 3]));
            let stride = V::numbers([V::BLOCKS as u128; 4]);
            drive::<V, _>(Ctr::<V> { keys, rounds, counters, stride }, head);
        }
        if tail.is_empty() {
            return;
        }
        (start, rest) = (advance(start, before_wrap + 1), tail);
    }
}
