//! OCB3 (RFC 7253) of whole blocks: the masks of a key, the state of a message, and the default implementation of
//! [`Kernel::ocb`].

use lockstep_core::ocb::{Masks, xor};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::wiped::Wiped;
use super::{Block, Kernel, Span};

/// Number of blocks that are masked at once without a loop for OCB3; they stay in the L1 cache.
pub(crate) const CHUNK: usize = 64;

/// Number of blocks of the widest step of a kernel.
pub(crate) const STEP: usize = 32;

/// The masks of a key. The default value is zeros, for `OcbKey::fill`.
#[derive(Default)]
pub struct OcbKey {
    pub(crate) masks: Masks,
    /// The differences between the offset before a block whose number is a multiple of [`STEP`] and the offsets of the next
    /// [`STEP`] blocks. The mask of the last block depends on its number: the last difference contains L_5, the mask of block
    /// 32, which a step replaces by the mask of its own last block.
    pub(crate) steps: Steps,
}

/// Differences of offsets, aligned for the widest vectors.
#[derive(Default, Zeroize, ZeroizeOnDrop)]
#[repr(C, align(64))]
pub(crate) struct Steps(pub(crate) [Block; STEP]);

impl OcbKey {
    /// The masks of a key that encrypts the block of zeros to `star`. They are on the heap, because moving them would leave a
    /// copy in the old place.
    pub fn new(star: &Block) -> Box<OcbKey> {
        let mut key = Box::<OcbKey>::default();
        key.fill(star);
        key
    }

    /// Replaces these masks by a copy of others, which is written to its final place only.
    pub(crate) fn copy_from(&mut self, other: &OcbKey) {
        self.masks.copy_from(&other.masks);
        self.steps.0 = other.steps.0;
    }

    /// Makes these the masks of a key that encrypts the block of zeros to `star`.
    pub(crate) fn fill(&mut self, star: &Block) {
        self.masks.fill(star);
        let mut offset = Zeroizing::new([0; 16]);
        for (number, step) in (1..).zip(&mut self.steps.0) {
            self.masks.advance(&mut offset, number);
            *step = *offset;
        }
    }
}

/// The state between two calls on whole blocks.
#[derive(Default)]
pub struct OcbState {
    /// The offset of the last processed block; before the first block, the offset that is derived from the nonce.
    pub(crate) offset: Wiped<1>,
    /// The XOR of all plaintext blocks.
    pub(crate) checksum: Wiped<1>,
    /// Number of blocks so far.
    pub(crate) blocks: u64,
}

/// OCB3 of whole blocks by ECB: the default implementation of [`Kernel::ocb`].
pub(crate) fn by_ecb<K: Kernel>(
    kernel: K,
    schedule: &K::Schedule,
    key: &OcbKey,
    state: &mut OcbState,
    encrypts: bool,
    data: Span<'_>,
) {
    let mut offsets = Wiped::<CHUNK>::zero();
    by_masked_blocks(key, state, encrypts, data, &mut offsets[..], |blocks| {
        kernel.ecb(schedule, encrypts, blocks);
    });
}

/// OCB3 of whole blocks by a function that encrypts or decrypts masked blocks, as many at once as there is space for `offsets`.
pub(crate) fn by_masked_blocks(
    key: &OcbKey,
    state: &mut OcbState,
    encrypts: bool,
    data: Span<'_>,
    offsets: &mut [Block],
    mut ecb: impl FnMut(Span<'_>),
) {
    assert!(data.len().is_multiple_of(16), "whole blocks");
    let mut rest = data;
    while !rest.is_empty() {
        let len = rest.len().min(16 * offsets.len());
        let (piece, after) = rest.split_at(len);
        let offsets = &mut offsets[..len / 16];
        for offset in &mut *offsets {
            state.blocks += 1;
            key.masks.advance(&mut state.offset[0], state.blocks);
            *offset = state.offset[0];
        }
        let mut piece = piece.into_host();
        if encrypts {
            piece.input().as_chunks().0.iter().for_each(|block| xor(&mut state.checksum[0], block));
        }
        piece.xor_with(offsets.as_flattened());
        let output = piece.output();
        ecb(Span::in_place(output));
        for (block, offset) in output.as_chunks_mut().0.iter_mut().zip(&*offsets) {
            xor(block, offset);
            if !encrypts {
                xor(&mut state.checksum[0], block);
            }
        }
        rest = after;
    }
}
