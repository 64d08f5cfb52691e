//! Writes the parameters of kernels as bytes, in the layout of `kernels/common/work.cuh`.

use lockstep_core::Block;

/// `struct Segment` of `kernels/common/work.cuh`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Segment {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) bytes: u64,
    pub(crate) position: u64,
    pub(crate) key: u32,
    pub(crate) tweak_key: u32,
    pub(crate) state: Block,
}

impl Segment {
    pub(crate) const SIZE: usize = 80;
    /// Offsets of the fields `state` and `next` of `struct Segment`.
    pub(crate) const STATE: usize = 48;
    const NEXT: usize = 64;

    /// Writes the segment to the first [`Segment::SIZE`] bytes of `place`, in the layout that the kernels read.
    pub(crate) fn write(&self, place: &mut [u8]) {
        for (at, value) in [(0, self.from), (8, self.to), (16, self.bytes), (24, self.position)] {
            place[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        place[32..36].copy_from_slice(&self.key.to_ne_bytes());
        place[36..40].copy_from_slice(&self.tweak_key.to_ne_bytes());
        place[40..48].fill(0);
        place[Self::STATE..Self::NEXT].copy_from_slice(&self.state);
        place[Self::NEXT..Self::SIZE].fill(0);
    }

    /// Reads the next chaining state from a segment. The segment was copied back after a kernel had updated it.
    pub(crate) fn next(bytes: &[u8]) -> Block {
        let mut next = Block::default();
        next.copy_from_slice(&bytes[Self::NEXT..Self::SIZE]);
        next
    }
}

/// `struct Launch` of `kernels/common/work.cuh`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Launch {
    pub(crate) segments: u64,
    pub(crate) first_tile: u64,
    pub(crate) schedules: u64,
    pub(crate) scratch: u64,
    pub(crate) tiles: u64,
    pub(crate) count: u32,
    pub(crate) option: u32,
}

impl Launch {
    pub(crate) fn parameters(&self) -> Parameters {
        Parameters::default()
            .long(self.segments)
            .long(self.first_tile)
            .long(self.schedules)
            .long(self.scratch)
            .long(self.tiles)
            .word(self.count)
            .word(self.option)
    }
}

/// A parameter buffer. The offset of each parameter is a multiple of its size.
#[derive(Debug, Clone, Default)]
pub(crate) struct Parameters(Vec<u8>);

impl Parameters {
    /// Appends a 64-bit integer or an address, at a multiple of 8 bytes.
    pub(crate) fn long(mut self, value: u64) -> Self {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        self.0.extend(value.to_ne_bytes());
        self
    }

    /// Appends a 32-bit integer, at a multiple of 4 bytes.
    pub(crate) fn word(mut self, value: u32) -> Self {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests;
