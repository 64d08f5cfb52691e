//! Tilings: the division of work among the threads of kernels, and the shapes of launches.

use lockstep_core::KeySize;

use super::part::{Entries, Part};
use crate::machine::{Entry, Limits, Shape};

/// A tiling states how the kernels of a source file divide work into tiles, and how their threads form groups. A tile is the
/// part of a segment that a group of threads processes at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tiling {
    pub(super) entries: &'static Entries,
    /// Bytes of a tile.
    pub(crate) tile: usize,
    /// Threads of a group.
    pub(super) tile_threads: u32,
    /// The number of groups in a thread block. Each group processes one tile at a time.
    pub(super) block_tiles: u32,
    /// Bytes of dynamic shared memory of a thread block.
    pub(super) shared: u32,
    /// The limit of thread blocks, for kernels whose blocks loop over tiles.
    pub(super) most: BlockLimit,
    /// The launches for which this tiling is used instead of the first tiling of its family.
    pub(super) instead: Instead,
    pub(super) option: KernelOption,
}

/// `Launch::option`.
#[derive(Debug, Clone, Copy)]
pub(super) enum KernelOption {
    Number(u32),
    /// The number of rounds of the key size.
    Rounds,
}

/// The launches for which a tiling is used although the tiling before it fits on the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Instead {
    Never,
    /// Launches whose segments have fewer bytes than this on average.
    ShortMessages(usize),
    /// Launches that have fewer bytes than this.
    SmallLaunches(usize),
}

impl Instead {
    pub(super) fn is_chosen(self, segments: usize, bytes: usize) -> bool {
        match self {
            Instead::Never => false,
            Instead::ShortMessages(limit) => bytes / segments.max(1) < limit,
            Instead::SmallLaunches(limit) => bytes < limit,
        }
    }
}

/// The limit of thread blocks of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockLimit {
    /// No limit.
    Any,
    /// At most this number of thread blocks for each multiprocessor.
    Resident(u32),
    /// At most this number of thread blocks.
    Blocks(u32),
}

impl Tiling {
    /// The function for a key size.
    pub(crate) fn entry(&self, part: Part, size: KeySize) -> Entry {
        self.entries[part as usize][size as usize]
    }

    /// `Launch::option` of this key size.
    pub(crate) fn option(&self, size: KeySize) -> u32 {
        match self.option {
            KernelOption::Number(number) => number,
            KernelOption::Rounds => size.rounds() as u32,
        }
    }

    /// The number of tiles of a segment with this number of bytes.
    pub(crate) fn tiles(&self, bytes: usize) -> u64 {
        bytes.div_ceil(self.tile) as u64
    }

    /// Returns the shape of a launch for this number of tiles, or `None` if there are too many tiles for one launch.
    pub(crate) fn shape(&self, limits: &Limits, tiles: u64) -> Option<Shape> {
        let (tiles_of_block, most) = match self.most {
            BlockLimit::Any => (self.block_tiles, u32::MAX),
            // In these kernels, each thread block processes one tile before any thread block processes a second tile. Therefore
            // even a small number of tiles uses all multiprocessors.
            BlockLimit::Resident(blocks) => (1, blocks * limits.multiprocessors.max(1)),
            BlockLimit::Blocks(blocks) => (self.block_tiles, blocks.max(1)),
        };
        let grid = i32::try_from(tiles.div_ceil(tiles_of_block.into())).ok()? as u32;
        let threads = self.tile_threads * self.block_tiles;
        Some(Shape { grid: grid.min(most), threads, shared: self.shared })
    }
}
