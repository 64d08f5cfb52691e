//! The kernels: their passes, the shapes of their launches, and their names in the machine code.

mod family;
pub(crate) mod helper;
mod options;
mod part;
#[cfg(all(test, feature = "emulator"))]
mod tests;
mod tiling;

pub(crate) use family::{FAMILIES, Family};
pub(crate) use options::LAUNCH_OPTIONS;
pub use options::{LaunchOptions, Products};
pub(crate) use part::Part;
pub(crate) use tiling::Tiling;

use crate::machine::Shape;

/// Returns the shape of a launch with one thread for each of `count` items.
pub(crate) fn one_each(count: u64) -> Option<Shape> {
    const THREADS: u32 = 128;
    let grid = i32::try_from(count.div_ceil(THREADS.into())).ok()?;
    Some(Shape { grid: grid as u32, threads: THREADS, shared: 0 })
}

/// Messages per thread of `kernels/chain`.
pub(crate) const CHAIN_MESSAGES: usize = 32;
/// Threads per thread block of `kernels/chain`.
pub(crate) const CHAIN_LANES: usize = 32;

/// Blocks of 16 bytes per tile of GHASH.
pub(crate) const GHASH_TILE_BLOCKS: u64 = 512;
/// Tiles per thread block of GHASH, one for each warp.
pub(crate) const GHASH_WARPS: u32 = 4;
/// Maximum number of levels of GHASH. Four levels cover 512^4 blocks, which are 2^40 bytes.
pub(crate) const GHASH_LEVELS: usize = 4;
/// Bytes of the powers of a hash key: 33 blocks for each level.
pub(crate) const GHASH_ROWS: usize = GHASH_LEVELS * 33 * 16;
/// Bytes of the matrices of a hash key: 16 matrices of 128 x 128 bits.
pub(crate) const GHASH_MATRICES_BYTES: usize = 16 * 128 * 128 / 8;
/// Threads that make the matrices of a hash key: one for each input bit of each matrix.
pub(crate) const GHASH_MATRICES_THREADS: u64 = 16 * 128;

/// Bytes of the masks of a key of OCB3: L_*, L_$ and 48 masks L_i (RFC 7253).
pub(crate) const OCB_MASKS: usize = 50 * 16;
