//! CTR with a counter of 128 or of 32 bits.
//!
//! Counters are kept as little-endian numbers, one a block, and are reversed on their way into the cipher. Both
//! widths add one machine word: 32 bits wrap as GCM wants it, and 64 bits never wrap, since data is cut where they
//! would (at most once in any call that ends).

use std::arch::x86_64::__m128i;

use super::cipher::{Encrypt, FEW, Pass, Reach, drive, drive_few, middle, opaque, with_rounds};
use super::schedule::Schedule;
use super::vector::{Vector, Xmm};
use crate::counter::{self, Counting};
use crate::kernel::{Block, Span};

struct Ctr<V, const ROUNDS: usize, const BITS: u32> {
    keys: *const __m128i,
    /// Counters of the next vector.
    counters: V,
    /// Blocks in a vector.
    stride: V,
}

impl<V: Vector, const ROUNDS: usize, const BITS: u32> Pass<V> for Ctr<V, ROUNDS, BITS> {
    #[inline(always)]
    unsafe fn step<const N: usize, R: Reach>(&mut self, reach: R, src: *const u8, dst: *mut u8) {
        let keys = opaque(self.keys);
        // SAFETY: the caller vouches for the instructions and for N vectors; the schedule has ROUNDS + 1 keys.
        unsafe {
            let (first, last) = (V::broadcast(keys), V::broadcast(keys.add(ROUNDS)));
            let mut x = [first; N];
            for x in &mut x {
                *x = first.xor(self.counters.reversed());
                self.counters = if BITS == 32 {
                    self.counters.add32(self.stride)
                } else {
                    self.counters.add64(self.stride)
                };
            }
            middle::<Encrypt, V, ROUNDS, N>(keys, &mut x);
            for i in 0..N {
                let text: V = reach.load(src.add(i * V::BYTES));
                reach.store(x[i].aesenclast(last.xor(text)), dst.add(i * V::BYTES));
            }
        }
    }
}

/// CTR from `counter` on, of which `BITS` bits count; those above the lowest 64 stay.
///
/// # Safety
///
/// As [`Vector`].
#[inline(always)]
unsafe fn run<V: Vector, const BITS: u32>(schedule: &Schedule, counter: u128, data: Span<'_>) {
    let keys = schedule.encrypt();
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        let places = V::numbers([0, 1, 2, 3]);
        let first = V::splat(Xmm::number(counter));
        let counters = if BITS == 32 { first.add32(places) } else { first.add64(places) };
        let stride = V::numbers([V::BLOCKS as u128; 4]);
        with_rounds!(schedule, ROUNDS => {
            drive::<V, _>(Ctr::<V, ROUNDS, BITS> { keys, counters, stride }, data);
        });
    }
}

/// True if [`run_few`] is to be taken. Where there are masks, they cut a block off faster than it does.
#[inline(always)]
fn is_few<V: Vector>(len: usize) -> bool {
    len < FEW && (V::BLOCKS < 4 || len.is_multiple_of(16))
}

/// The same for less than [`FEW`] bytes, moving the counter on. It goes from memory to a vector and back as a whole: a load of
/// what was stored in parts would wait for all that came before.
///
/// # Safety
///
/// As [`Vector`] for [`Xmm`].
#[inline(always)]
unsafe fn run_few<const BITS: u32>(schedule: &Schedule, counter: &mut Block, data: Span<'_>) {
    let keys = schedule.encrypt();
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        let (counters, stride) = (Xmm::load(counter.as_ptr()).reversed(), Xmm::number(1));
        let after = with_rounds!(schedule, ROUNDS => {
            drive_few(Ctr::<Xmm, ROUNDS, BITS> { keys, counters, stride }, data).counters
        });
        after.reversed().store(counter.as_mut_ptr());
    }
}

/// CTR with a counter of 128 bits; any length.
///
/// # Safety
///
/// As [`Vector`].
#[inline(always)]
pub(super) unsafe fn ctr<V: Vector>(schedule: &Schedule, counter: &mut Block, data: Span<'_>) {
    let low = u64::from_be_bytes([8, 9, 10, 11, 12, 13, 14, 15].map(|i: usize| counter[i]));
    if is_few::<V>(data.len()) && low.checked_add(FEW as u64 / 16).is_some() {
        // SAFETY: the caller vouches for the instructions.
        return unsafe { run_few::<64>(schedule, counter, data) };
    }
    let start = u128::from_be_bytes(*counter);
    let blocks = data.len().div_ceil(16);
    *counter = counter::Whole::advance(start, blocks as u128).to_be_bytes();
    let (mut start, mut rest) = (start, data);
    loop {
        // Blocks until the low 64 bits wrap.
        let room = (1 << 64) - u128::from(start as u64);
        let part = rest.len().min(usize::try_from(16 * room).unwrap_or(usize::MAX));
        let (head, tail) = rest.split_at(part);
        // SAFETY: the caller vouches for the instructions.
        unsafe { run::<V, 64>(schedule, start, head) };
        if tail.is_empty() {
            return;
        }
        (start, rest) = (start.wrapping_add(room), tail);
    }
}

/// CTR of which only the last 32 bits count; any length.
///
/// # Safety
///
/// As [`Vector`].
#[inline(always)]
pub(super) unsafe fn ctr32<V: Vector>(schedule: &Schedule, counter: &mut Block, data: Span<'_>) {
    if is_few::<V>(data.len()) {
        // SAFETY: the caller vouches for the instructions.
        return unsafe { run_few::<32>(schedule, counter, data) };
    }
    let start = u128::from_be_bytes(*counter);
    *counter = counter::Low32::advance(start, data.len().div_ceil(16) as u128).to_be_bytes();
    // SAFETY: the caller vouches for the instructions.
    unsafe { run::<V, 32>(schedule, start, data) }
}
