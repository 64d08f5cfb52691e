//! Wiping the stack after calls that handle keys.

use std::hint::black_box;

/// Number of bytes that are wiped. It exceeds the stack use of the calls that expand, copy and move keys. The test
/// program residue.c found round keys at depths of less than 8 KiB, in calls that move the round keys together with
/// GCM's powers of H.
const DEPTH: usize = 16 << 10;

/// Overwrites the stack below the caller. This memory may contain copies of moved keys: Rust moves values by copying
/// them, and only the final value wipes itself.
#[inline(never)]
pub(crate) fn wipe_below() {
    let mut below = [0u8; DEPTH];
    // This prevents the compiler from removing the writes.
    black_box(&mut below);
}
