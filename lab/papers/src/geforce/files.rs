//! The eight files of the thesis (Table 6.2.1). Each block of a file is computed from its number, so a part of a file can be made without
//! the other parts.

use lockstep_core::Block;

/// The contents of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// The bytes 0 to 255, repeated: 16 different blocks.
    Counting,
    /// The byte 0xAA: one block, repeated.
    Constant,
    /// Random bytes whose range grows from 0 at the start of the file to 0..=255 at its end. The thesis prints "increasing
    /// range", without the rate.
    Growing,
    /// Random bytes, each from 0 to 255.
    Random,
    /// This number of different random blocks, repeated. The thesis has no such file.
    Repeating(u64),
}

/// A file of the thesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File {
    /// The number of the file in Table 6.2.1.
    pub number: u32,
    /// The length of the file in bytes.
    pub bytes: u64,
    /// The contents of the file.
    pub content: Content,
}

/// The eight files of Table 6.2.1, in the order of their numbers.
pub const FILES: [File; 8] = [
    File { number: 1, bytes: 884_736_000, content: Content::Counting },
    File { number: 2, bytes: 884_736_000, content: Content::Constant },
    File { number: 3, bytes: 884_736_000, content: Content::Growing },
    File { number: 4, bytes: 884_736_000, content: Content::Random },
    File { number: 5, bytes: 442_368_000, content: Content::Random },
    File { number: 6, bytes: 442_368_000, content: Content::Random },
    File { number: 7, bytes: 117_964_800, content: Content::Random },
    File { number: 8, bytes: 58_982_400, content: Content::Random },
];

impl File {
    /// The file with this number.
    ///
    /// # Panics
    /// If there is no such file: numbers are 1 to 8.
    pub fn of(number: u32) -> File {
        FILES[number as usize - 1]
    }

    /// Returns the number of blocks of the file.
    pub fn blocks(&self) -> u64 {
        self.bytes / 16
    }

    /// Returns the block with this index. Files of random bytes differ from each other. The contents continue beyond the end of the file.
    pub fn block(&self, index: u64) -> Block {
        self.content.block(u64::from(self.number), index, self.blocks())
    }

    /// Returns the number of passes with textures of `edge` x `edge` texels. The engine always encrypts a whole texture, and the padding of
    /// the file (16 bytes) is a separate pass (sections 5.2.1 and 5.3).
    pub fn passes(&self, edge: u32) -> u64 {
        self.bytes.div_ceil(16 * u64::from(edge).pow(2)) + 1
    }
}

impl Content {
    fn block(self, seed: u64, index: u64, blocks: u64) -> Block {
        match self {
            Content::Counting => std::array::from_fn(|at| (16 * index) as u8 + at as u8),
            Content::Constant => [0xaa; 16],
            Content::Random => random(seed, index),
            Content::Repeating(different) => random(seed, index % different),
            Content::Growing => {
                let limit = 256 * index.min(blocks - 1) / blocks + 1;
                random(seed, index).map(|byte| (u64::from(byte) * limit / 256) as u8)
            }
        }
    }

    /// A short description of the contents for tables.
    pub fn description(self) -> &'static str {
        match self {
            Content::Counting => "bytes 0 to 255",
            Content::Constant => "0xAA",
            Content::Growing => "random, growing range",
            Content::Random => "random",
            Content::Repeating(_) => "random blocks, repeated",
        }
    }
}

/// Pseudo-random bytes: SplitMix64 of seed and index.
fn random(seed: u64, index: u64) -> Block {
    let word = |which: u64| {
        let mut z = (seed << 48).wrapping_add(2 * index + which + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    (u128::from(word(0)) << 64 | u128::from(word(1))).to_be_bytes()
}

#[cfg(test)]
mod tests;
