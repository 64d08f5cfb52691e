//! Decryption of CBC and CFB128: both combine a block with the preceding ciphertext block.

use super::cipher::{Extent, Keys, Pass, drive};
use super::schedule::Schedule;
use super::single_stream;
use super::vector::Vector;
use crate::kernel::{Block, Span};

/// CBC, or CFB128 if CFB is set.
struct Feedback<V, const CFB: bool> {
    /// The keys of the cipher for CFB128, and of the inverse cipher for CBC.
    keys: Keys,
    /// The last block of this vector is the preceding ciphertext block.
    before: V,
}

impl<V: Vector, const CFB: bool> Feedback<V, CFB> {
    /// For each block of vector i of a step, the preceding ciphertext block. The ciphertext is loaded again, which is cheaper
    /// than keeping 2 N vectors in 16 registers.
    ///
    /// # Safety
    ///
    /// The same as for [`Pass::step`]. In addition, i is below the number of vectors of the step.
    #[inline(always)]
    unsafe fn preceding(&self, extent: Extent, src: *const u8, i: usize) -> V {
        // SAFETY: the caller guarantees the conditions of this function. If i is not 0, the extent is a whole vector, and
        // the load stays within the vectors at `src`.
        unsafe {
            match i {
                0 => extent.load::<V>(src).after(self.before),
                _ => V::load(src.add(i * V::BYTES - 16)),
            }
        }
    }
}

impl<V: Vector, const CFB: bool> Pass<V> for Feedback<V, CFB> {
    #[inline(always)]
    unsafe fn step<const N: usize>(&mut self, extent: Extent, src: *const u8, dst: *mut u8) {
        let keys = self.keys.opaque();
        // SAFETY: the caller guarantees that the processor has the instructions, and the memory of N vectors. The schedule
        // exists.
        unsafe {
            let (first, last): (V, V) = keys.ends();
            let mut x = [first; N];
            for i in 0..N {
                let text = src.add(i * V::BYTES);
                x[i] = first.xor(if CFB { self.preceding(extent, src, i) } else { extent.load(text) });
            }
            keys.middle::<CFB, V, N>(&mut x);
            for i in 0..N {
                let text = src.add(i * V::BYTES);
                let other = if CFB { extent.load(text) } else { self.preceding(extent, src, i) };
                x[i] = x[i].last::<CFB>(last.xor(other));
            }
            self.before = extent.load(src.add((N - 1) * V::BYTES));
            for i in 0..N {
                extent.store(x[i], dst.add(i * V::BYTES));
            }
        }
    }
}

/// Decryption of whole blocks: of CBC, or of CFB128 if CFB is set.
///
/// # Safety
///
/// The same as for [`drive`], and for [`Vector`] with `Single` as the vector.
#[inline(always)]
pub(super) unsafe fn decrypt<const CFB: bool, V: Vector, const FEW: bool>(
    schedule: &Schedule,
    iv: &mut Block,
    data: Span<'_>,
) {
    if data.len() < 16 {
        return;
    }
    // SAFETY: the caller guarantees the conditions of this function. The span is valid for its length, which is at least a
    // block; its last block is read before it is overwritten.
    unsafe {
        let before = V::splat(single_stream::load_words(iv));
        *iv = data.src().add(data.len() - 16).cast::<Block>().read();
        drive::<V, _, FEW>(Feedback::<V, CFB> { keys: Keys::of::<CFB>(schedule), before }, data);
    }
}
