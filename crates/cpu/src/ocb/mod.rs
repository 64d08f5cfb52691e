//! OCB3 (RFC 7253) on a kernel: whole blocks, messages in pieces, and the associated data.

pub(crate) mod messages;

use lockstep_core::ocb::{Masks, first_offset, nonce_block, xor};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::inline::SingleStreamKernel;
use crate::kernel::{Block, Kernel, Span};

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
    /// The masks of a key that encrypts the block of zeros to `star`.
    pub fn new(star: &Block) -> OcbKey {
        let masks = Masks::new(star);
        let mut steps = Steps([[0; 16]; STEP]);
        let mut offset = Zeroizing::new([0; 16]);
        for (number, step) in (1..).zip(&mut steps.0) {
            masks.advance(&mut offset, number);
            *step = *offset;
        }
        OcbKey { masks, steps }
    }

    /// A copy of this value.
    pub(crate) fn duplicate(&self) -> OcbKey {
        OcbKey { masks: self.masks.clone(), steps: self.steps.clone() }
    }
}

/// The state between two calls on whole blocks.
#[derive(Clone, Default, Zeroize, ZeroizeOnDrop)]
pub struct OcbState {
    /// The offset of the last block, or of the nonce before the first block.
    pub(crate) offset: Block,
    /// The XOR of all plaintext blocks.
    pub(crate) checksum: Block,
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
        let (block, bottom) = nonce_block(nonce, tag_len);
        let mut ktop = Zeroizing::new(block);
        kernel.encrypt_block(schedule, &mut ktop);
        OcbState { offset: first_offset(&ktop, bottom), checksum: [0; 16], blocks: 0 }
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
        xor(&mut self.offset, &key.masks.star);
        let mut pad = Zeroizing::new(self.offset);
        kernel.encrypt_block(schedule, &mut pad);
        let mut plaintext = Zeroizing::new([0; 16]);
        for i in 0..len {
            // SAFETY: the byte lies in the span, which is valid for reads and writes.
            unsafe {
                let text = data.src().add(i).read();
                let result = text ^ pad[i];
                plaintext[i] = if encrypts { text } else { result };
                data.dst().add(i).write(result);
            }
        }
        plaintext[len] = 0x80;
        xor(&mut self.checksum, &plaintext);
    }

    /// The tag of 16 bytes. `hash` is that of the associated data.
    pub(crate) fn tag<K: SingleStreamKernel>(
        &self,
        kernel: K,
        schedule: &K::Schedule,
        key: &OcbKey,
        hash: &Block,
    ) -> Zeroizing<Block> {
        let mut tag = Zeroizing::new(self.checksum);
        xor(&mut tag, &self.offset);
        xor(&mut tag, &key.masks.dollar);
        kernel.encrypt_block(schedule, &mut tag);
        xor(&mut tag, hash);
        tag
    }
}

/// HASH of associated data (RFC 7253, section 4.1), in pieces.
#[derive(Clone, Default, Zeroize, ZeroizeOnDrop)]
pub(crate) struct OcbHash {
    offset: Block,
    sum: Block,
    blocks: u64,
    /// A block that is not complete.
    partial: Block,
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
            self.partial[self.partial_len..][..head.len()].copy_from_slice(head);
            self.partial_len += head.len();
            bytes = rest;
            if self.partial_len < 16 {
                return;
            }
            self.partial_len = 0;
            let block = self.partial;
            self.whole(kernel, schedule, key, &block);
        }
        let (blocks, tail) = bytes.split_at(bytes.len() & !15);
        self.whole(kernel, schedule, key, blocks);
        self.partial[..tail.len()].copy_from_slice(tail);
        self.partial_len = tail.len();
    }

    fn whole<K: SingleStreamKernel>(
        &mut self,
        kernel: K,
        schedule: &K::Schedule,
        key: &OcbKey,
        blocks: &[u8],
    ) {
        let mut masked = Zeroizing::new([[0; 16]; CHUNK]);
        for chunk in blocks.as_chunks().0.chunks(CHUNK) {
            for (masked, block) in masked.iter_mut().zip(chunk) {
                self.blocks += 1;
                key.masks.advance(&mut self.offset, self.blocks);
                *masked = *block;
                xor(masked, &self.offset);
            }
            kernel.ecb_encrypt(schedule, Span::in_place(masked[..chunk.len()].as_flattened_mut()));
            masked[..chunk.len()].iter().for_each(|block| xor(&mut self.sum, block));
        }
    }

    /// The hash of all bytes so far.
    pub(crate) fn finish<K: SingleStreamKernel>(
        &self,
        kernel: K,
        schedule: &K::Schedule,
        key: &OcbKey,
    ) -> Zeroizing<Block> {
        let mut sum = Zeroizing::new(self.sum);
        if self.partial_len > 0 {
            let mut last = Zeroizing::new([0; 16]);
            last[..self.partial_len].copy_from_slice(&self.partial[..self.partial_len]);
            last[self.partial_len] = 0x80;
            xor(&mut last, &self.offset);
            xor(&mut last, &key.masks.star);
            kernel.encrypt_block(schedule, &mut last);
            xor(&mut sum, &last);
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
    let mut offsets = Zeroizing::new([[0; 16]; CHUNK]);
    let mut rest = data;
    while !rest.is_empty() {
        let len = rest.len().min(16 * CHUNK);
        let (piece, after) = rest.split_at(len);
        let offsets = &mut offsets[..len / 16];
        for offset in &mut *offsets {
            state.blocks += 1;
            key.masks.advance(&mut state.offset, state.blocks);
            *offset = state.offset;
        }
        let mut piece = piece.into_host();
        if encrypts {
            piece.input().as_chunks().0.iter().for_each(|block| xor(&mut state.checksum, block));
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
                xor(&mut state.checksum, block);
            }
        }
        rest = after;
    }
}
