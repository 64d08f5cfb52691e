//! Wiping the stack after calls that handle keys.

use std::hint::black_box;

/// Bytes of stack that the calls which expand, copy and move keys use, and some more: residue.c found round keys at
/// depths below 8 KiB, where GCM's powers of H are moved with them.
const DEPTH: usize = 16 << 10;

/// Overwrites the stack below the caller, which may contain copies of moved keys: Rust moves values by copying them,
/// and only the final value wipes itself.
#[inline(never)]
pub(crate) fn wipe_below() {
    let mut below = [0u8; DEPTH];
    // Keeps the compiler from removing the writes.
    black_box(&mut below);
}
