//! GHASH: the hash keys by ECB over zeros; then either a thread a message, or tiles, level upon level.

use lockstep_core::Result;

use super::{Batch, Kind, Plan, Register};
use crate::kernel::{GHASH_LEVELS, GHASH_TILE_BLOCKS, GHASH_WARPS, Part, helper, one_each};
use crate::launch::Parameters;
use crate::machine::Shape;

pub(super) static GHASH: Plan = Plan {
    part: Part::EcbEncrypt,
    kind: Kind::Ghash,
    register: Register::Told,
    edges: false,
    tweaks: false,
    run,
};

/// From so many messages on a thread for each keeps a device busy, if none is long.
const MANY: usize = 256;

/// Blocks of a message that is not long.
const SHORT: u64 = 4096;

/// How many tiles messages have at each level, if they are hashed in tiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Levels(Vec<Vec<u64>>);

impl Levels {
    /// For messages of so many blocks. None if they are better hashed by a thread each.
    pub(crate) fn of(blocks: &[u64]) -> Option<Levels> {
        if blocks.len() >= MANY && blocks.iter().all(|&blocks| blocks <= SHORT) {
            return None;
        }
        let mut levels = Vec::new();
        let mut blocks = blocks.to_vec();
        loop {
            let mut sum = 0;
            let first = std::iter::once(0).chain(blocks.iter().map(|blocks| {
                // One at least, which leaves the register of an empty message as it is.
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

    /// For each level, the first tile of each message, and behind them how many there are.
    pub(crate) fn first_tiles(&self) -> &[Vec<u64>] {
        &self.0
    }

    /// Tiles of a level.
    pub(crate) fn tiles(level: &[u64]) -> u64 {
        level.last().copied().unwrap_or(0)
    }
}

/// Where GHASH finds what it needs.
pub(crate) struct Hashing<'a> {
    pub(crate) keys: u32,
    /// In tiles, if not by a thread a message.
    pub(crate) levels: Option<&'a Levels>,
    /// For each level, where its first tiles are, and where its results go.
    pub(crate) first_tiles: Vec<u64>,
    pub(crate) outputs: Vec<u64>,
    /// Powers of each hash key.
    pub(crate) rows: u64,
}

fn run(batch: &Batch<'_>) -> Result<()> {
    let hash_keys = batch.prelude()?;
    let Some(hashing) = &batch.hashing else { return Ok(()) };
    let (segments, count) = (batch.work.segments, batch.work.count);
    let Some(levels) = hashing.levels else {
        let parameters = Parameters::default().long(segments).long(hash_keys).long(0).word(count);
        return batch.launch(helper::GHASH_EACH, one_each(count.into()), &parameters, batch.bytes);
    };
    let wanted = levels.first_tiles().len();
    if wanted > GHASH_LEVELS {
        return Err(batch.gpu.failed("a message too long for GHASH on a device"));
    }
    let powers =
        Parameters::default().long(hash_keys).long(hashing.rows).word(hashing.keys).word(wanted as u32);
    batch.launch(helper::GHASH_POWERS, one_each(32 * u64::from(hashing.keys)), &powers, 0)?;
    for (level, first) in levels.first_tiles().iter().enumerate() {
        let tiles = Levels::tiles(first);
        let below = level.checked_sub(1);
        let parameters = Parameters::default()
            .long(segments)
            .long(hashing.first_tiles[level])
            .long(below.map_or(0, |below| hashing.first_tiles[below]))
            .long(below.map_or(0, |below| hashing.outputs[below]))
            .long(hashing.outputs[level])
            .long(hashing.rows)
            .long(0)
            .long(tiles)
            .word(count)
            .word(level as u32);
        let grid = u32::try_from(tiles.div_ceil(u64::from(GHASH_WARPS))).ok();
        let shape = grid.map(|grid| Shape { grid, threads: 32 * GHASH_WARPS, shared: 0 });
        batch.launch(helper::GHASH_TILES, shape, &parameters, if level == 0 { batch.bytes } else { 0 })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_end_with_a_tile_each() {
        let of = |blocks: &[u64]| Levels::of(blocks).unwrap().0;
        assert_eq!(of(&[]), [[0]]);
        assert_eq!(of(&[0, 512]), [[0, 1, 2]]);
        assert_eq!(of(&[1, 513]), [[0, 1, 3], [0, 1, 2]]);
        assert_eq!(of(&[512 * 512 + 1]), [[0, 513], [0, 2], [0, 1]]);
        assert_eq!(Levels::of(&vec![9; MANY]), None);
    }
}
