//! ECB, either direction.

use std::arch::x86_64::__m128i;
use std::marker::PhantomData;

use super::cipher::{Direction, Extent, Pass, drive, drive_short, middle, opaque};
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
    unsafe fn step<const N: usize, R: Extent>(&mut self, extent: R, src: *const u8, dst: *mut u8) {
        let keys = opaque(self.keys);
        // SAFETY: the caller guarantees that the processor has the instructions, and the memory of N vectors. There are
        // `rounds` + 1 keys.
        unsafe {
            let (first, last) = (V::broadcast(keys), V::broadcast(keys.add(self.rounds)));
            let mut x = [first; N];
            for i in 0..N {
                x[i] = first.xor(extent.load(src.add(i * V::BYTES)));
            }
            middle::<D, V, N>(keys, self.rounds, &mut x);
            for i in 0..N {
                extent.store(D::last(x[i], last), dst.add(i * V::BYTES));
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
/// The same as for [`Vector`].
#[inline(always)]
pub(super) unsafe fn ecb<D: Direction, V: Vector>(schedule: &Schedule, data: Span<'_>) {
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe { drive::<V, _>(Ecb::<D>::new(schedule), data) };
}

/// ECB of whole blocks, for less than [`SHORT`](super::cipher::SHORT) bytes.
///
/// # Safety
///
/// The same as for [`Vector`], with [`Xmm`](super::vector::Xmm) as the vector.
#[inline(always)]
pub(super) unsafe fn ecb_short<D: Direction>(schedule: &Schedule, data: Span<'_>) {
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe { drive_short(Ecb::<D>::new(schedule), data) };
}
