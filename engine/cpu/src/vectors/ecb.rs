//! ECB, either direction.

use super::cipher::{Extent, Keys, Pass, drive};
use super::schedule::Schedule;
use super::vector::Vector;
use crate::kernel::Span;

struct Ecb<const ENCRYPTS: bool>(Keys);

impl<const ENCRYPTS: bool, V: Vector> Pass<V> for Ecb<ENCRYPTS> {
    #[inline(always)]
    unsafe fn step<const N: usize>(&mut self, extent: Extent, src: *const u8, dst: *mut u8) {
        let keys = self.0.opaque();
        // SAFETY: the caller guarantees that the processor has the instructions, and the memory of N vectors. The schedule
        // exists.
        unsafe {
            let (first, last): (V, V) = keys.ends();
            let mut x = [first; N];
            for i in 0..N {
                x[i] = first.xor(extent.load(src.add(i * V::BYTES)));
            }
            keys.middle::<ENCRYPTS, V, N>(&mut x);
            for i in 0..N {
                extent.store(x[i].last::<ENCRYPTS>(last), dst.add(i * V::BYTES));
            }
        }
    }
}

/// ECB of whole blocks.
///
/// # Safety
///
/// The same as for [`drive`].
#[inline(always)]
pub(super) unsafe fn ecb<const ENCRYPTS: bool, V: Vector, const FEW: bool>(
    schedule: &Schedule,
    data: Span<'_>,
) {
    // SAFETY: the caller guarantees the conditions of this function.
    unsafe { drive::<V, _, FEW>(Ecb::<ENCRYPTS>(Keys::of::<ENCRYPTS>(schedule)), data) };
}
