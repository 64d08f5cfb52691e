//! The offsets of a message of OCB3 that is too long for a chunk (RFC 7253, section 4.1).

use std::sync::{Arc, Mutex};

use lockstep_core::Block;
use lockstep_core::ocb::{Masks, xor};
use zeroize::Zeroizing;

use crate::calls::lock;

/// The offsets of a message, and the checksum of the chunks that have ended.
#[derive(Default)]
pub(crate) struct Offsets {
    pub(crate) masks: Masks,
    pub(crate) first: Zeroizing<Block>,
    pub(crate) checksum: Mutex<Zeroizing<Block>>,
}

impl Offsets {
    /// The number of masks L_i. Messages of up to 2^48 - 1 blocks need no further mask.
    pub(crate) const LEVELS: usize = 48;
    /// Number of blocks of [`Offsets::blocks`].
    pub(crate) const BLOCKS: usize = 3 + Offsets::LEVELS;

    /// The offsets of a message whose first offset is `first`. `star` is the encrypted block of zeros.
    pub(crate) fn new(star: &Block, first: &Block) -> Arc<Offsets> {
        let mut offsets = Arc::<Offsets>::default();
        // The masks are filled in their final place, because moving them would leave a copy.
        let new = Arc::get_mut(&mut offsets).expect("no other owner yet");
        new.masks.fill(star);
        *new.first = *first;
        offsets
    }

    /// The first offset, followed by the masks in the order of `shaders/ocb.wgsl`.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &Block> {
        let masks = &self.masks;
        [&*self.first, &masks.star, &masks.dollar]
            .into_iter()
            .chain((0..Offsets::LEVELS as u32).map(|i| masks.l(i)))
    }

    /// Adds the checksum of a chunk.
    pub(crate) fn add(&self, checksum: &Block) {
        xor(&mut lock(&self.checksum), checksum);
    }
}
