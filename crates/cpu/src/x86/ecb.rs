//! ECB, either direction.

use std::arch::x86_64::__m128i;
use std::marker::PhantomData;

use super::cipher::{Direction, FEW, Pass, Reach, drive, drive_few, middle, opaque, with_rounds};
use super::schedule::Schedule;
use super::vector::Vector;
use crate::kernel::Span;

struct Ecb<D, const ROUNDS: usize> {
    keys: *const __m128i,
    direction: PhantomData<D>,
}

impl<D: Direction, V: Vector, const ROUNDS: usize> Pass<V> for Ecb<D, ROUNDS> {
    #[inline(always)]
    unsafe fn step<const N: usize, R: Reach>(&mut self, reach: R, src: *const u8, dst: *mut u8) {
        let keys = opaque(self.keys);
        // SAFETY: the caller vouches for the instructions and for N vectors; the schedule has ROUNDS + 1 keys.
        unsafe {
            let (first, last) = (V::broadcast(keys), V::broadcast(keys.add(ROUNDS)));
            let mut x = [first; N];
            for i in 0..N {
                x[i] = first.xor(reach.load(src.add(i * V::BYTES)));
            }
            middle::<D, V, ROUNDS, N>(keys, &mut x);
            for i in 0..N {
                reach.store(D::last(x[i], last), dst.add(i * V::BYTES));
            }
        }
    }
}

/// ECB of whole blocks.
///
/// # Safety
///
/// As [`Vector`].
#[inline(always)]
pub(super) unsafe fn ecb<D: Direction, V: Vector>(schedule: &Schedule, data: Span<'_>) {
    let keys = D::keys(schedule);
    // SAFETY: the caller vouches for the instructions.
    with_rounds!(schedule, ROUNDS => unsafe {
        let pass = Ecb::<D, ROUNDS> { keys, direction: PhantomData };
        if data.len() < FEW {
            drive_few(pass, data);
        } else {
            drive::<V, _>(pass, data);
        }
    });
}
