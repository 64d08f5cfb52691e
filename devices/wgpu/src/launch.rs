//! Parameters of programs as bytes, in the layout of `shaders/common.wgsl`.

use std::ops::{Deref, DerefMut, Range};

use lockstep_core::Block;
use zeroize::{DefaultIsZeroes, Zeroize};

use crate::kernel::Program;

/// `struct Tile` of the shaders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tile {
    pub(crate) at: u32,
    pub(crate) blocks: u32,
    pub(crate) key: u32,
    pub(crate) extra: u32,
    pub(crate) state: Block,
}

impl Tile {
    pub(crate) const SIZE: usize = 32;

    /// Writes the bytes of the structure, to memory that the caller wipes.
    pub(crate) fn write_to(&self, bytes: &mut [u8; Tile::SIZE]) {
        for (place, word) in bytes.chunks_exact_mut(4).zip([self.at, self.blocks, self.key, self.extra]) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes[16..].copy_from_slice(&self.state);
    }
}

impl DefaultIsZeroes for Tile {}

/// A list of tiles. It is wiped, because the state of a tile can be secret: in GHASH, and in CTR with a first counter that is a hash. A
/// vector alone would leave a copy of its tiles whenever it grows.
#[derive(Default)]
pub(crate) struct Tiles(Vec<Tile>);

impl Tiles {
    pub(crate) fn push(&mut self, tile: Tile) {
        if self.0.len() == self.0.capacity() {
            let mut larger = Vec::with_capacity((2 * self.0.len()).max(16));
            larger.extend_from_slice(&self.0);
            // The shorter list is wiped when it is dropped.
            drop(Tiles(std::mem::replace(&mut self.0, larger)));
        }
        self.0.push(tile);
    }

    /// Appends copies of the tiles in a range of the list.
    pub(crate) fn repeat(&mut self, range: Range<usize>) {
        range.for_each(|index| self.push(self[index]));
    }
}

impl Extend<Tile> for Tiles {
    fn extend<I: IntoIterator<Item = Tile>>(&mut self, tiles: I) {
        tiles.into_iter().for_each(|tile| self.push(tile));
    }
}

impl Deref for Tiles {
    type Target = [Tile];

    fn deref(&self) -> &[Tile] {
        &self.0
    }
}

impl DerefMut for Tiles {
    fn deref_mut(&mut self) -> &mut [Tile] {
        &mut self.0
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        self.0.iter_mut().zeroize();
    }
}

/// `struct Launch` of the shaders, and the program that is launched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Launch {
    pub(crate) program: Program,
    pub(crate) first: u32,
    pub(crate) tiles: u32,
    pub(crate) rounds: u32,
    pub(crate) option: u32,
    pub(crate) to: u32,
    pub(crate) scratch: u32,
    pub(crate) step: u32,
    pub(crate) steps: u32,
    /// Number of invocations. This is not a parameter of the program.
    pub(crate) invocations: usize,
    /// Bytes of data, for the counters.
    pub(crate) bytes: u64,
}

impl Launch {
    pub(crate) const SIZE: usize = 32;

    pub(crate) fn bytes(&self) -> [u8; Launch::SIZE] {
        let mut bytes = [0; Launch::SIZE];
        let words: [u32; 8] =
            [self.first, self.tiles, self.rounds, self.option, self.to, self.scratch, self.step, self.steps];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn workgroups(&self) -> u32 {
        self.invocations.div_ceil(self.program.workgroup()) as u32
    }
}

#[cfg(test)]
mod tests;
