//! Parameters of programs as bytes, in the layout of `shaders/common.wgsl`.

use lockstep_core::Block;

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
    /// Offset of `state` in bytes.
    pub(crate) const STATE: usize = 16;

    pub(crate) fn bytes(&self) -> [u8; Tile::SIZE] {
        let mut bytes = [0; Tile::SIZE];
        for (place, word) in bytes.chunks_exact_mut(4).zip([self.at, self.blocks, self.key, self.extra]) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes[Tile::STATE..].copy_from_slice(&self.state);
        bytes
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

    /// Workgroups.
    pub(crate) fn workgroups(&self) -> u32 {
        self.invocations.div_ceil(self.program.workgroup()) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_the_shaders() {
        let bytes = Tile { at: 1, blocks: 2, key: 3, extra: 4, state: [7; 16] }.bytes();
        assert_eq!(bytes[..16], [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0]);
        assert_eq!(bytes[16..], [7; 16]);
        let program = Program::GhashRuns;
        let (first, tiles, rounds, option) = (1, 2, 3, 4);
        let (to, scratch, step, steps) = (5, 6, 7, 8);
        let (invocations, bytes) = (65, 0);
        let launch =
            Launch { program, first, tiles, rounds, option, to, scratch, step, steps, invocations, bytes };
        assert_eq!(launch.bytes()[20..], [6, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0]);
        assert_eq!(launch.workgroups(), 2);
    }
}
