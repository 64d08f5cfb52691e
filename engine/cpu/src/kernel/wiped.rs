//! Secret blocks that are wiped on drop, with a write for each block. `zeroize` would write each byte, which takes longer than
//! encrypting a short message.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{Ordering, compiler_fence};

use super::Block;

/// N blocks, wiped on drop.
#[derive(Clone)]
#[repr(align(16))]
pub(crate) struct Wiped<const N: usize>([Block; N]);

impl<const N: usize> Wiped<N> {
    /// Blocks of zeros.
    #[inline(always)]
    pub(crate) const fn zero() -> Self {
        Wiped([[0; 16]; N])
    }
}

impl<const N: usize> Default for Wiped<N> {
    #[inline(always)]
    fn default() -> Self {
        Wiped::zero()
    }
}

impl<const N: usize> Deref for Wiped<N> {
    type Target = [Block; N];

    #[inline(always)]
    fn deref(&self) -> &[Block; N] {
        &self.0
    }
}

impl<const N: usize> DerefMut for Wiped<N> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [Block; N] {
        &mut self.0
    }
}

impl<const N: usize> Drop for Wiped<N> {
    #[inline(always)]
    fn drop(&mut self) {
        const { assert!(align_of::<Wiped<N>>() >= align_of::<u128>()) };
        for block in &mut self.0 {
            // SAFETY: the block is valid for writes of 16 bytes. It has the alignment of a u128, because the type has this
            // alignment.
            unsafe { std::ptr::from_mut(block).cast::<u128>().write_volatile(0) };
        }
        compiler_fence(Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests;
