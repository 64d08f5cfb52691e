//! ECB, either direction.

use std::arch::x86_64::__m128i;
use std::marker::PhantomData;

use super::cipher::{Direction, Pass, Reach, drive, drive_few, middle, opaque};
use super::schedule::Schedule;
use super::vector::Vector;
use crate::kernel::Span;

struct Ecb<D> {
    keys: *const __m128i,
    rounds: usize,
    direction: PhantomData<D>,
}

impl<D: Direction, V: Vector> Pass<V> for Ecb<D> {
    #[inline(always)]
    unsafe fn step<const N: usize, R: Reach>(&mut self, reach: R, src: *const u8, dst: *mut u8) {
        let keys = opaque(self.keys);
        // SAFETY: the caller vouches for the instructions and for N vectors; there are `rounds` + 1 keys.
        unsafe {
            let (first, last) = (V::broadcast(keys), V::broadcast(keys.add(self.rounds)));
            let mut x = [first; N];
            for i in 0..N {
                x[i] = first.xor(reach.load(src.add(i * V::BYTES)));
            }
            middle::<D, V, N>(keys, self.rounds, &mut x);
            for i in 0..N {
                reach.store(D::last(x[i], last), dst.add(i * V::BYTES));
            }
        }
    }
}

impl<D: Direction> Ecb<D> {
    #[inline(always)]
    fn new(schedule: &Schedule) -> Self {
        Ecb { keys: D::keys(schedule), rounds: schedule.rounds(), direction: PhantomData }
    }
}

/// ECB of whole blocks.
///
/// # Safety
///
/// As [`Vector`].
#[inline(always)]
pub(super) unsafe fn ecb<D: Direction, V: Vector>(schedule: &Schedule, data: Span<'_>) {
    // SAFETY: the caller vouches for the instructions.
    unsafe { drive::<V, _>(Ecb::<D>::new(schedule), data) };
}

/// ECB of whole blocks, of less than [`FEW`](super::cipher::FEW) bytes.
///
/// # Safety
///
/// As [`Vector`] for [`Xmm`](super::vector::Xmm).
#[inline(always)]
pub(super) unsafe fn ecb_few<D: Direction>(schedule: &Schedule, data: Span<'_>) {
    // SAFETY: the caller vouches for the instructions.
    unsafe { drive_few(Ecb::<D>::new(schedule), data) };
}
