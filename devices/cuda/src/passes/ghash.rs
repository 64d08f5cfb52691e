//! GHASH and POLYVAL. The hash keys of GHASH are the encryptions of zero blocks by ECB. The caller provides the hash keys of
//! POLYVAL. Then either one thread hashes each message, or messages are hashed in tiles, level by level. GCM uses the same
//! hashing.

use lockstep_core::Result;

use super::Batch;
use crate::kernel::{GHASH_LEVELS, GHASH_MATRICES_THREADS, GHASH_TILE_BLOCKS, GHASH_WARPS, helper, one_each};
use crate::launch::Parameters;
use crate::machine::{Entry, Limits, Shape};

/// Resident threads of a multiprocessor, as set by `KERNEL_BOUNDS` of `ghash_tiles` and `ghash_each`.
const RESIDENT: u64 = 512;

/// Products that a lane computes for a whole tile. There is one for each of its 16 blocks, because a tile has 512 blocks and 32 lanes. One
/// more product multiplies by the power of the hash key for the lane.
const TILE_PRODUCTS: u64 = 17;

/// Products that a lane computes for a key and a level. It uses square-and-multiply: a square and a product for each of the six bits of an
/// exponent, and three more squares.
const POWER_PRODUCTS: u64 = 15;

/// Products that a thread computes for a column of a matrix: up to eight for the power of the hash key, and one for
/// the column.
const MATRIX_PRODUCTS: u64 = 9;

/// The cost of a tile by matrices, in products of a lane. The instructions of a tile correspond to about two products
/// (`docs/kernels.md`). The constant is larger because fewer warps are resident.
const TENSOR_TILE_PRODUCTS: u64 = 4;

/// True if level 0 is hashed by matrices. This requires that the tensor units multiply bits, and that the tiles save more
/// products than the computation of the matrices of the keys requires. For one key, this is the case for 45 tiles or more (360
/// KiB).
pub(crate) fn by_matrices(limits: &Limits, tiles: u64, keys: u64) -> bool {
    let saved = tiles.saturating_mul(32 * (TILE_PRODUCTS - TENSOR_TILE_PRODUCTS));
    limits.tensor_bits && saved > keys.saturating_mul(GHASH_MATRICES_THREADS * MATRIX_PRODUCTS)
}

/// The tiles of each message at each level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Levels(Vec<Vec<u64>>);

impl Levels {
    /// Returns the levels for messages with these numbers of blocks and for this number of keys, or `None` if one thread for each message
    /// is faster.
    pub(crate) fn of(limits: &Limits, blocks: &[u64], keys: usize) -> Option<Levels> {
        let longest = blocks.iter().copied().max().unwrap_or(0);
        let tiles = blocks.iter().map(|blocks| blocks.div_ceil(GHASH_TILE_BLOCKS).max(1)).sum();
        if by_messages(limits, longest, blocks.len() as u64, tiles, keys as u64) {
            return None;
        }
        let mut levels = Vec::new();
        let mut blocks = blocks.to_vec();
        loop {
            let mut sum = 0;
            let first = std::iter::once(0).chain(blocks.iter().map(|blocks| {
                // Each message has at least one tile. The tile of an empty message leaves the chaining state unchanged.
                sum += blocks.div_ceil(GHASH_TILE_BLOCKS).max(1);
                sum
            }));
            levels.push(first.collect());
            if blocks.iter().all(|&blocks| blocks <= GHASH_TILE_BLOCKS) {
                return Some(Levels(levels));
            }
            blocks.iter_mut().for_each(|blocks| *blocks = blocks.div_ceil(GHASH_TILE_BLOCKS));
        }
    }

    /// Returns for each level the first tile of each message, followed by the number of tiles.
    pub(crate) fn first_tiles(&self) -> &[Vec<u64>] {
        &self.0
    }

    /// Returns the number of tiles of a level.
    pub(crate) fn tiles(level: &[u64]) -> u64 {
        level.last().copied().unwrap_or(0)
    }
}

/// True if one thread for each message is faster than one warp for each tile. For both methods, the function estimates the
/// number of products that one thread computes in sequence while all resident threads of the device work, and compares these
/// numbers.
pub(crate) fn by_messages(limits: &Limits, longest: u64, messages: u64, tiles: u64, keys: u64) -> bool {
    let lanes = RESIDENT * u64::from(limits.multiprocessors.max(1));
    let rounds = |threads: u64| threads.div_ceil(lanes).max(1);
    let each = longest.saturating_mul(rounds(messages));
    let powers = rounds(keys.saturating_mul(32)) * POWER_PRODUCTS;
    let in_tiles = rounds(tiles.saturating_mul(32)).saturating_mul(TILE_PRODUCTS.min(longest)) + powers;
    each <= in_tiles
}

/// A level of hashing in tiles.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Level {
    /// Address of the first tiles of messages.
    pub(crate) first_tile: u64,
    /// Address of the results, one block for each tile.
    pub(crate) output: u64,
    pub(crate) tiles: u64,
}

/// The parameters of GHASH other than the segments.
pub(crate) struct Hashing {
    pub(crate) keys: u32,
    /// Address of the hash keys. For GHASH, kernels compute them before the hashing.
    pub(crate) hash_keys: u64,
    /// Bytes from one hash key to the next.
    pub(crate) stride: u32,
    /// The levels of hashing in tiles; empty if each message is hashed by one thread.
    pub(crate) levels: Vec<Level>,
    /// Address of the powers of hash keys.
    pub(crate) rows: u64,
    /// Address of the matrices of hash keys, if level 0 is hashed by matrices.
    pub(crate) matrices: Option<u64>,
    /// True for POLYVAL, false for GHASH.
    pub(crate) polyval: bool,
    /// True if the carry-less multiply-add computes all products. In this case there are no matrices.
    pub(crate) carry_less: bool,
}

impl Hashing {
    /// Returns the kernels for the powers of keys, for tiles and for short messages.
    fn entries(&self) -> [Entry; 3] {
        match self.carry_less {
            true => [helper::CARRY_LESS_POWERS, helper::CARRY_LESS_TILES, helper::CARRY_LESS_EACH],
            false => [helper::GHASH_POWERS, helper::GHASH_TILES, helper::GHASH_EACH],
        }
    }
}

/// Hashes the segments and writes the results to the segments. For GCM, also hashes the associated data and the
/// lengths.
pub(super) fn hash(batch: &Batch<'_>) -> Result<()> {
    let Some(hashing) = batch.hashing else { return Err(batch.undescribed()) };
    let (segments, count) = (batch.work.segments, batch.work.count);
    let extras = batch.aead.map_or(0, |aead| aead.extras);
    let [powers_entry, tiles_entry, each_entry] = hashing.entries();
    if hashing.levels.is_empty() {
        let parameters = Parameters::default()
            .long(segments)
            .long(hashing.hash_keys)
            .long(extras)
            .word(count)
            .word(hashing.stride)
            .word(hashing.polyval.into());
        return batch.launch(each_entry, one_each(count.into()), &parameters, batch.bytes);
    }
    let wanted = hashing.levels.len();
    if wanted > GHASH_LEVELS {
        return Err(batch.gpu.failed("a message is too long for GHASH on this device"));
    }
    let powers = Parameters::default()
        .long(hashing.hash_keys)
        .long(hashing.rows)
        .word(hashing.keys)
        .word(wanted as u32)
        .word(hashing.stride)
        .word(hashing.polyval.into());
    batch.launch(powers_entry, one_each(32 * u64::from(hashing.keys)), &powers, 0)?;
    if let Some(matrices) = hashing.matrices {
        let parameters = Parameters::default()
            .long(hashing.rows)
            .long(matrices)
            .word(hashing.keys)
            .word(hashing.polyval.into());
        let threads = GHASH_MATRICES_THREADS * u64::from(hashing.keys);
        batch.launch(helper::GHASH_MATRICES, one_each(threads), &parameters, 0)?;
    }
    let mut below: Option<Level> = None;
    for (number, &level) in hashing.levels.iter().enumerate() {
        let parameters = Parameters::default()
            .long(segments)
            .long(level.first_tile)
            .long(below.map_or(0, |below| below.first_tile))
            .long(below.map_or(0, |below| below.output))
            .long(level.output)
            .long(hashing.rows)
            .long(extras)
            .long(hashing.matrices.unwrap_or(0))
            .long(level.tiles)
            .word(count)
            .word(number as u32)
            .word(hashing.polyval.into())
            .word(0);
        let grid = i32::try_from(level.tiles.div_ceil(u64::from(GHASH_WARPS))).ok();
        let shape = grid.map(|grid| Shape { grid: grid as u32, threads: 32 * GHASH_WARPS, shared: 0 });
        let entry = match hashing.matrices {
            Some(_) if number == 0 => helper::GHASH_TENSOR_TILES,
            _ => tiles_entry,
        };
        batch.launch(entry, shape, &parameters, if number == 0 { batch.bytes } else { 0 })?;
        below = Some(level);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
