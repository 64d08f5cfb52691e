//! Wiping of secret bytes, in words. `zeroize` writes each byte, which takes longer than a pass over a block.
#![allow(unsafe_code, reason = "volatile writes, and bytes that are written as words")]

use std::ptr::from_mut;
use std::sync::atomic::{Ordering, compiler_fence};

/// Zeroes bytes by volatile writes, which the compiler does not remove. If the compiler knows the alignment and the length, it writes words
/// only, without a branch.
#[inline(always)]
pub fn wipe(bytes: &mut [u8]) {
    // SAFETY: a word of any bytes is valid, and so are the bytes of any word.
    let (before, words, after) = unsafe { bytes.align_to_mut::<u64>() };
    for byte in before.iter_mut().chain(after) {
        // SAFETY: the reference is valid for writes.
        unsafe { from_mut(byte).write_volatile(0) };
    }
    for word in words {
        // SAFETY: as above.
        unsafe { from_mut(word).write_volatile(0) };
    }
    // Later accesses are not moved before the writes.
    compiler_fence(Ordering::SeqCst);
}

#[cfg(test)]
mod tests;
