//! AES-OCB3 (RFC 7253). Each block is masked with an offset that depends on the position of the block, and is encrypted once.
//!
//! Nonces have 1 to 15 bytes, and tags have 1 to 16 bytes. The tag length is part of the input of the mode, so a short tag is
//! not a prefix of a longer tag of the same message. A nonce must never be used twice with the same key. The patents on OCB
//! were abandoned in 2021.

use zeroize::Zeroizing;

use crate::executor::Executor;
use crate::{Direction, ecb, encrypt_blocks, invalidate, pieces, run_fused, transfer, zero_failed};
use lockstep_core::gcm::settle;
pub use lockstep_core::ocb::{MAX_DATA, NONCES};
use lockstep_core::ocb::{Masks, first_offset, nonce_block, xor};
use lockstep_core::work::{AeadMessage, FusedAead};
use lockstep_core::{Block, Key, Result};

/// The fused AEADs of OCB3: sealing and opening.
pub(crate) const FUSED: [FusedAead; 2] = [FusedAead::OcbSeal, FusedAead::OcbOpen];

/// Seals or opens messages. Their keys must have the same size, and their lengths must have been checked. Uses the fused
/// AEAD if the executor supports it, otherwise passes. The output of a message whose tag is wrong is zeroed.
///
/// # Errors
/// Errors of devices.
pub fn run(executor: &dyn Executor, direction: Direction, messages: &mut [AeadMessage<'_>]) -> Result<()> {
    if run_fused(executor, FUSED[direction as usize], messages)? {
        return Ok(());
    }
    let nonces: Vec<_> = messages.iter().map(|it| (it.key, it.nonce, it.tag.len())).collect();
    let mut offsets = Offsets::of(executor, &nonces)?;
    // The tag can only be checked after the plaintext has been written. If the check fails or cannot be made, the plaintext
    // must be zeroed.
    run_passes(executor, direction, messages, &mut offsets)
        .and_then(|()| zero_failed(executor, messages))
        .inspect_err(|_| invalidate(executor, messages))
}

/// The masks of a key, and the current offset of a message.
#[derive(Default)]
pub struct Offsets {
    /// The masks.
    pub masks: Masks,
    /// The offset of the last processed block. Before the first block, the offset that is derived from the nonce.
    pub offset: Zeroizing<Block>,
}

impl Offsets {
    /// Computes the masks and the first offset for each key, nonce and tag length. All keys have the same size.
    ///
    /// # Errors
    /// Errors of devices.
    pub fn of(executor: &dyn Executor, nonces: &[(&Key, &[u8], usize)]) -> Result<Vec<Offsets>> {
        let mut blocks = Zeroizing::new(vec![[0; 16]; 2 * nonces.len()]);
        for ((_, nonce, tag_len), blocks) in nonces.iter().zip(blocks.chunks_mut(2)) {
            blocks[1] = nonce_block(nonce, *tag_len).0;
        }
        encrypt_blocks(executor, nonces.iter().map(|(key, ..)| *key), &mut blocks)?;
        // The offsets are filled in their final place, because moving them would leave copies of the masks.
        let mut all: Vec<Offsets> = nonces.iter().map(|_| Offsets::default()).collect();
        for (((_, nonce, tag_len), offsets), blocks) in nonces.iter().zip(&mut all).zip(blocks.chunks(2)) {
            offsets.masks.fill(&blocks[0]);
            *offsets.offset = first_offset(&blocks[1], nonce_block(nonce, *tag_len).1);
        }
        Ok(all)
    }
}

/// Composes OCB of passes of ECB. All keys have the same size.
fn run_passes(
    executor: &dyn Executor,
    direction: Direction,
    messages: &mut [AeadMessage<'_>],
    all_offsets: &mut [Offsets],
) -> Result<()> {
    // For each message: first the XOR of all plaintext blocks, later the tag.
    let mut tags = Zeroizing::new(vec![[0; 16]; messages.len()]);
    for ((message, Offsets { masks, offset }), checksum) in
        messages.iter_mut().zip(&mut *all_offsets).zip(&mut *tags)
    {
        let whole = message.data.len() & !15;
        let key = message.key;
        pieces::process(executor, &mut message.data, 0..whole, |at, piece| {
            let (before, first) = (at as u64 / 16, offset.clone());
            if direction == Direction::Encrypt {
                add(checksum, piece);
            }
            mask(masks, offset, before, piece);
            ecb(executor, direction, key, piece)?;
            *offset = first;
            mask(masks, offset, before, piece);
            if direction == Direction::Decrypt {
                add(checksum, piece);
            }
            Ok(())
        })?;
    }
    partial_blocks(executor, direction, messages, all_offsets, &mut tags)?;
    for (tag, offsets) in tags.iter_mut().zip(&*all_offsets) {
        xor(tag, &offsets.offset);
        xor(tag, &offsets.masks.dollar);
    }
    encrypt_blocks(executor, messages.iter().map(|message| message.key), &mut tags)?;
    for ((message, offsets), tag) in messages.iter_mut().zip(all_offsets).zip(&mut *tags) {
        xor(tag, &*hash(executor, message.key, &offsets.masks, message.aad)?);
        message.status = settle(&mut message.tag, tag);
    }
    Ok(())
}

/// XORs each whole block with its offset. `before` is the number of blocks before them, and `offset` is the offset of the last of
/// these. It becomes the offset of the last whole block.
pub fn mask(masks: &Masks, offset: &mut Block, before: u64, blocks: &mut [u8]) {
    for (number, block) in (before + 1..).zip(blocks.as_chunks_mut().0) {
        masks.advance(offset, number);
        xor(block, offset);
    }
}

/// XORs whole blocks into a checksum.
fn add(checksum: &mut Block, blocks: &[u8]) {
    blocks.as_chunks().0.iter().for_each(|block| xor(checksum, block));
}

/// Encrypts or decrypts the partial block at the end of each message that has one.
fn partial_blocks(
    executor: &dyn Executor,
    direction: Direction,
    messages: &mut [AeadMessage<'_>],
    all_offsets: &mut [Offsets],
    checksums: &mut [Block],
) -> Result<()> {
    let mut pads = Zeroizing::new(vec![[0; 16]; messages.len()]);
    for ((message, Offsets { masks, offset }), pad) in messages.iter().zip(all_offsets).zip(&mut *pads) {
        if message.data.len() % 16 > 0 {
            xor(offset, &masks.star);
            *pad = **offset;
        }
    }
    encrypt_blocks(executor, messages.iter().map(|message| message.key), &mut pads)?;
    for ((message, checksum), pad) in messages.iter_mut().zip(checksums).zip(&*pads) {
        let tail = message.data.len() % 16;
        if tail == 0 {
            continue;
        }
        let at = message.data.len() - tail;
        let mut input = Zeroizing::new([0; 16]);
        transfer::fetch_input(executor, &message.data, at, &mut input[..tail])?;
        let mut output = Zeroizing::new([0; 16]);
        for ((output, input), pad) in output.iter_mut().zip(&*input).zip(pad).take(tail) {
            *output = input ^ pad;
        }
        transfer::store_output(executor, &mut message.data, at, &output[..tail])?;
        let plaintext = if direction == Direction::Encrypt { &input } else { &output };
        xor(checksum, plaintext);
        checksum[tail] ^= 0x80;
    }
    Ok(())
}

/// Computes the function HASH of the associated data (RFC 7253, section 4.1).
fn hash(executor: &dyn Executor, key: &Key, masks: &Masks, aad: &[u8]) -> Result<Zeroizing<Block>> {
    let mut sum = Zeroizing::new([0; 16]);
    if aad.is_empty() {
        return Ok(sum);
    }
    let mut blocks = Zeroizing::new(aad.to_vec());
    blocks.resize(aad.len().next_multiple_of(16), 0);
    let mut offset = Zeroizing::new([0; 16]);
    let (whole, last) = blocks.split_at_mut(aad.len() & !15);
    mask(masks, &mut offset, 0, whole);
    if let ([last], tail) = (last.as_chunks_mut().0, aad.len() % 16) {
        last[tail] = 0x80;
        xor(last, &offset);
        xor(last, &masks.star);
    }
    ecb(executor, Direction::Encrypt, key, &mut blocks)?;
    add(&mut sum, &blocks);
    Ok(sum)
}
