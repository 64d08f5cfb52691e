//! Wiping the stack after calls that handle keys.
//!
//! Rust moves values by copying them, and only the final value wipes itself. Kernels and other libraries also store round keys and
//! keys on the stack if they do not fit into registers. A call that can leave such copies is made by a function of its own, which is
//! not inlined, and [`wipe_below`] is called after it.

use std::hint::black_box;
use std::mem::MaybeUninit;

/// Number of bytes that are wiped. It exceeds the stack use of the calls that expand, copy and move keys. The test
/// program residue.c found round keys at depths of less than 8 KiB, in calls that move the round keys together with
/// GCM's powers of H.
const DEPTH: usize = 16 << 10;

/// Overwrites the stack below the caller: 16 KiB, which takes about 0.17 microseconds on a Zen 3.
pub fn wipe_below() {
    wipe::<{ DEPTH / PIECE }>();
}

/// Bytes that are written at once. For 2 KiB and more, memset of the GNU C library uses `rep stosb`: 4 KiB would take 76 nanoseconds
/// instead of 42.
const PIECE: usize = 1 << 10;

/// Overwrites this number of KiB of the stack below the caller: 2 KiB take about 21 nanoseconds on a Zen 3, 4 KiB about 42.
#[inline(never)]
pub fn wipe<const KIB: usize>() {
    let mut below = [const { MaybeUninit::<[u8; PIECE]>::uninit() }; KIB];
    for piece in &mut below {
        piece.write([0; PIECE]);
        // This prevents the compiler from removing the writes, and from joining them.
        black_box(piece);
    }
}
