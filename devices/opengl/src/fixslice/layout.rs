//! The places of the blocks of a chunk in textures.
//!
//! A tile has two halves, each in a separate texture, so that a fragment reads and writes the same position in both textures.

use std::ops::Range;

use lockstep_gpu_host::Piece;

/// The size of tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tiling {
    /// A tile has 2^half_shift blocks in each half.
    pub(crate) half_shift: u32,
}

impl Tiling {
    /// The tiling for long messages. The shader multiplies tweaks of XTS by at most x^63.
    pub(crate) const LARGE: Tiling = Tiling { half_shift: 5 };
    /// The tiling for short messages, which would fill only a small part of a large tile.
    pub(crate) const SMALL: Tiling = Tiling { half_shift: 0 };

    /// Number of blocks in both halves of a tile.
    pub(crate) const fn blocks(self) -> usize {
        2 << self.half_shift
    }

    /// Number of bytes in one half of a tile.
    pub(crate) const fn half(self) -> usize {
        16 << self.half_shift
    }

    /// Number of bytes in both halves of a tile.
    pub(crate) const fn bytes(self) -> usize {
        2 * self.half()
    }

    pub(crate) fn tiles_of(self, piece: &Piece) -> usize {
        piece.range.len().div_ceil(self.bytes())
    }

    /// The bytes of a piece that lie in one half of one of its tiles, as a range from the start of the piece; empty if the
    /// piece ends before this half.
    pub(crate) fn bytes_at(self, piece: &Piece, tile: usize, half: usize) -> Range<usize> {
        let start = tile * self.bytes() + half * self.half();
        let end = piece.range.len().min(start + self.half());
        start.min(end)..end
    }
}
