//! Increments of counter blocks, for CTR and for GCM.

use super::Block;

/// A way to increment a counter block, which is a big-endian number.
pub(crate) trait Counting {
    /// The counter after `n` blocks.
    fn advance(counter: u128, n: u128) -> u128;
}

/// All 128 bits are incremented (SP 800-38A, B.1 with m = 128).
pub(crate) struct Whole;

impl Counting for Whole {
    #[inline(always)]
    fn advance(counter: u128, n: u128) -> u128 {
        counter.wrapping_add(n)
    }
}

/// Only the last 32 bits are incremented (inc32 of SP 800-38D, 6.2).
pub(crate) struct Low32;

impl Counting for Low32 {
    #[inline(always)]
    fn advance(counter: u128, n: u128) -> u128 {
        const LOW: u128 = 0xffff_ffff;
        (counter & !LOW) | (counter.wrapping_add(n) & LOW)
    }
}

/// Passes the counters of the next `blocks` blocks to `each` and advances `counter` past them.
#[inline(always)]
pub(crate) fn take<C: Counting>(counter: &mut Block, blocks: usize, mut each: impl FnMut(usize, Block)) {
    let first = u128::from_be_bytes(*counter);
    for i in 0..blocks {
        each(i, C::advance(first, i as u128).to_be_bytes());
    }
    *counter = C::advance(first, blocks as u128).to_be_bytes();
}

#[cfg(test)]
mod tests;
