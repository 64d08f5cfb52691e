//! Wiping the stack after calls that handle keys.
//!
//! Rust moves values by copying them, and only the final value wipes itself. Kernels and other libraries also store round keys and
//! keys on the stack if they do not fit into registers. A call that can leave such copies is made by a function of its own, which is
//! not inlined, and [`wipe_below`] is called after it.

use std::hint::black_box;

/// Number of bytes that are wiped. It exceeds the stack use of the calls that expand, copy and move keys. The test
/// program residue.c found round keys at depths of less than 8 KiB, in calls that move the round keys together with
/// GCM's powers of H.
const DEPTH: usize = 16 << 10;

/// Overwrites the stack below the caller: 16 KiB, which takes about 0.2 microseconds on a Zen 3.
pub fn wipe_below() {
    wipe::<DEPTH>();
}

/// Overwrites this number of bytes of the stack below the caller: 2 KiB take about 25 nanoseconds on a Zen 3, 4 KiB about 80.
#[inline(never)]
pub fn wipe<const BYTES: usize>() {
    let mut below = [0u8; BYTES];
    // This prevents the compiler from removing the writes.
    black_box(&mut below);
}
