//! What calls leave behind on the stack.

use std::hint::black_box;

/// Bytes that the calls which expand, copy and move keys use of the stack, and some more: residue.c found round keys below
/// 8 KiB, where GCM's powers of H move with them.
const DEPTH: usize = 16 << 10;

/// Overwrites the stack below the caller, where moved keys have left copies: Rust moves values by copying them, and only
/// what stays at the end wipes itself.
#[inline(never)]
pub(crate) fn wipe_below() {
    let mut below = [0u8; DEPTH];
    // Nobody reads it, but the compiler does not know.
    black_box(&mut below);
}
