//! Secret blocks that are wiped on drop.

use std::ops::{Deref, DerefMut};

use lockstep_core::wiping::wipe;

use super::Block;

/// N blocks, wiped on drop. The alignment lets the compiler write whole words without a branch.
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
        wipe(self.0.as_flattened_mut());
    }
}

#[cfg(test)]
mod tests;
