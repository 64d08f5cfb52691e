//! OCB3 (RFC 7253) on a kernel: whole blocks, messages in pieces, and the associated data.

pub(crate) mod messages;

use lockstep_core::ocb::{Masks, first_offset, nonce_block_of_number, xor};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::inline::SingleStreamKernel;
use crate::kernel::{Block, Kernel, Span};
use crate::partial;
use crate::wiped::Wiped;

/// Number of blocks that are masked at once if the kernel has no loop for OCB3; they stay in the L1 cache.
const CHUNK: usize = 64;

/// Number of blocks of the widest step of a kernel.
pub(crate) const STEP: usize = 32;

/// The masks of a key.
pub struct OcbKey {
    pub(crate) masks: Masks,
    /// The differences between the offset before a block whose number is a multiple of [`STEP`] and the offsets of the next
    /// [`STEP`] blocks. The mask of the last block depends on its number: the last difference contains L_5, the mask of block
    /// 32, which a step replaces by the mask of its own last block.
    pub(crate) steps: Steps,
}

/// Differences of offsets, aligned for the widest vectors.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
#[repr(C, align(64))]
pub(crate) struct Steps(pub(crate) [Block; STEP]);

impl OcbKey {
    /// The masks of a key that encrypts the block of zeros to `star`. They are on the heap, because moving them would leave a
    /// copy in the old place.
    pub fn new(star: &Block) -> Box<OcbKey> {
        let mut key = Box::new(OcbKey::zero());
        key.fill(star);
        key
    }

    /// Zeros, for [`OcbKey::fill`].
    pub(crate) fn zero() -> OcbKey {
        OcbKey { masks: Masks::default(), steps: Steps([[0; 16]; STEP]) }
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

    /// A copy of this value.
    pub(crate) fn duplicate(&self) -> OcbKey {
        OcbKey { masks: self.masks.clone(), steps: self.steps.clone() }
    }
}

/// The state between two calls on whole blocks.
#[derive(Clone, Default)]
pub struct OcbState {
    /// The offset of the last processed block; before the first block, the offset that is derived from the nonce.
    pub(crate) offset: Wiped<1>,
    /// The XOR of all plaintext blocks.
    pub(crate) checksum: Wiped<1>,
    /// Number of blocks so far.
    pub(crate) blocks: u64,
}

impl OcbState {
    /// The state before the first block.
    pub(crate) fn start<K: SingleStreamKernel>(
        kernel: K,
        schedule: &K::Schedule,
        nonce: &[u8],
        tag_len: usize,
    ) -> OcbState {
        // SAFETY: the nonce is valid for reads of its length. If it is longer than 16 bytes, only 16 bytes are read, and the
        // next call refuses it.
        let number = unsafe { partial::load(nonce.as_ptr(), nonce.len().min(16)) };
        let (block, bottom) = nonce_block_of_number(number, nonce.len(), tag_len);
        let mut ktop = Wiped::<1>::zero();
        ktop[0] = block;
        kernel.encrypt_block(schedule, &mut ktop[0]);
        let mut state = OcbState::default();
        state.offset[0] = first_offset(&ktop[0], bottom);
        state
    }

    /// Encrypts or decrypts the last, partial block of 1 to 15 bytes.
    pub(crate) fn partial<K: SingleStreamKernel>(
        &mut self,
        kernel: K,
        schedule: &K::Schedule,
        key: &OcbKey,
        encrypts: bool,
        data: Span<'_>,
    ) {
        let len = data.len();
        debug_assert!((1..=15).contains(&len), "a partial block");
        xor(&mut self.offset[0], &key.masks.star);
        let mut pad = self.offset.clone();
        kernel.encrypt_block(schedule, &mut pad[0]);
        // SAFETY: the span is valid for reads and writes of its length, which is less than 16.
        let (text, result) = unsafe {
            let text = partial::load(data.src(), len);
            let result = text ^ u128::from_le_bytes(pad[0]);
            partial::store(result, data.dst(), len);
            (text, result)
        };
        let plaintext = if encrypts { text } else { result & ((1 << (8 * len)) - 1) };
        xor(&mut self.checksum[0], &(plaintext | 0x80 << (8 * len)).to_le_bytes());
    }

    /// The tag of 16 bytes. `hash` is the hash of the associated data.
    pub(crate) fn tag<K: SingleStreamKernel>(
        &self,
        kernel: K,
        schedule: &K::Schedule,
        key: &OcbKey,
        hash: &Block,
    ) -> Wiped<1> {
        let mut tag = self.checksum.clone();
        xor(&mut tag[0], &self.offset[0]);
        xor(&mut tag[0], &key.masks.dollar);
        kernel.encrypt_block(schedule, &mut tag[0]);
        xor(&mut tag[0], hash);
        tag
    }
}

/// HASH of associated data (RFC 7253, section 4.1), in pieces.
#[derive(Clone, Default)]
pub(crate) struct OcbHash {
    offset: Wiped<1>,
    sum: Wiped<1>,
    blocks: u64,
    /// A block that is not complete.
    partial: Wiped<1>,
    partial_len: usize,
}

impl OcbHash {
    /// Adds bytes.
    pub(crate) fn update<K: SingleStreamKernel>(
        &mut self,
        kernel: K,
        schedule: &K::Schedule,
        key: &OcbKey,
        mut bytes: &[u8],
    ) {
        if self.partial_len > 0 {
            let (head, rest) = bytes.split_at(bytes.len().min(16 - self.partial_len));
            self.partial[0][self.partial_len..][..head.len()].copy_from_slice(head);
            self.partial_len += head.len();
            bytes = rest;
            if self.partial_len < 16 {
                return;
            }
            self.partial_len = 0;
            let block = self.partial.clone();
            self.whole(kernel, schedule, key, &block[0]);
        }
        let (blocks, tail) = bytes.split_at(bytes.len() & !15);
        self.whole(kernel, schedule, key, blocks);
        self.partial[0][..tail.len()].copy_from_slice(tail);
        self.partial_len = tail.len();
    }

    fn whole<K: SingleStreamKernel>(
        &mut self,
        kernel: K,
        schedule: &K::Schedule,
        key: &OcbKey,
        blocks: &[u8],
    ) {
        if blocks.is_empty() {
            return;
        }
        let mut masked = Wiped::<CHUNK>::zero();
        for chunk in blocks.as_chunks().0.chunks(CHUNK) {
            for (masked, block) in masked.iter_mut().zip(chunk) {
                self.blocks += 1;
                key.masks.advance(&mut self.offset[0], self.blocks);
                *masked = *block;
                xor(masked, &self.offset[0]);
            }
            kernel.ecb_encrypt(schedule, Span::in_place(masked[..chunk.len()].as_flattened_mut()));
            masked[..chunk.len()].iter().for_each(|block| xor(&mut self.sum[0], block));
        }
    }

    /// The hash of all bytes so far.
    pub(crate) fn finish<K: SingleStreamKernel>(
        &self,
        kernel: K,
        schedule: &K::Schedule,
        key: &OcbKey,
    ) -> Wiped<1> {
        let mut sum = self.sum.clone();
        if self.partial_len > 0 {
            let mut last = Wiped::<1>::zero();
            last[0][..self.partial_len].copy_from_slice(&self.partial[0][..self.partial_len]);
            last[0][self.partial_len] = 0x80;
            xor(&mut last[0], &self.offset[0]);
            xor(&mut last[0], &key.masks.star);
            kernel.encrypt_block(schedule, &mut last[0]);
            xor(&mut sum[0], &last[0]);
        }
        sum
    }
}

/// OCB3 of whole blocks by ECB: the default implementation of [`Kernel::ocb`].
pub(crate) fn ocb_by_ecb<K: Kernel>(
    kernel: K,
    schedule: &K::Schedule,
    key: &OcbKey,
    state: &mut OcbState,
    encrypts: bool,
    data: Span<'_>,
) {
    assert!(data.len().is_multiple_of(16), "whole blocks");
    let mut offsets = Wiped::<CHUNK>::zero();
    let mut rest = data;
    while !rest.is_empty() {
        let len = rest.len().min(16 * CHUNK);
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
        if encrypts {
            kernel.ecb_encrypt(schedule, Span::in_place(output));
        } else {
            kernel.ecb_decrypt(schedule, Span::in_place(output));
        }
        for (block, offset) in output.as_chunks_mut().0.iter_mut().zip(&*offsets) {
            xor(block, offset);
            if !encrypts {
                xor(&mut state.checksum[0], block);
            }
        }
        rest = after;
    }
}
