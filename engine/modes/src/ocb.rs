//! AES-OCB3 (RFC 7253): each block is masked with an offset that depends on its position, and is encrypted once.
//!
//! A nonce must never be used twice with the same key. The patents on OCB were abandoned in 2021.

use zeroize::Zeroizing;

use crate::executor::Executor;
use crate::{Direction, encrypt_blocks, invalidate, pieces, run_fused, run_mode, transfer, zero_failed};
use lockstep_core::data::Data;
use lockstep_core::error::Result;
use lockstep_core::gcm::settle;
use lockstep_core::key::{Block, Key};
pub use lockstep_core::ocb::MAX_DATA;
use lockstep_core::ocb::{Masks, first_offset, nonce_block, xor};
use lockstep_core::work::{AeadMessage, FusedAead, Pass, Segment};

/// Encrypts and authenticates each message. Nonces have 1 to 15 bytes, and tags have 1 to 16 bytes. The length of the tag is
/// part of the input: a tag is not the beginning of a longer tag.
///
/// # Errors
/// [`Error::TagLength`](lockstep_core::Error::TagLength), [`Error::IvLength`](lockstep_core::Error::IvLength), [`Error::TooLong`](lockstep_core::Error::TooLong) before anything is done; [`Error::NotSealed`](lockstep_core::Error::NotSealed); errors of
/// devices.
///
#[doc = include_str!("after_error.md")]
pub fn seal(executor: &dyn Executor, messages: &mut [AeadMessage<'_>]) -> Result<()> {
    run_as(executor, Direction::Encrypt, FusedAead::OcbSeal, messages)
}

/// Decrypts and checks each message. The output of a message whose tag is wrong is zeroed before this function returns; the
/// other outputs are valid. The field `status` of each message has its result.
///
/// # Errors
/// [`Error::AuthenticationFailed`](lockstep_core::Error::AuthenticationFailed) if any tag was wrong; otherwise the errors of [`seal`].
///
#[doc = include_str!("after_error.md")]
pub fn open(executor: &dyn Executor, messages: &mut [AeadMessage<'_>]) -> Result<()> {
    run_as(executor, Direction::Decrypt, FusedAead::OcbOpen, messages)
}

fn run_as(
    executor: &dyn Executor,
    direction: Direction,
    fused: FusedAead,
    messages: &mut [AeadMessage<'_>],
) -> Result<()> {
    let check = |message: &AeadMessage<'_>| fused.check_lengths(message);
    run_mode(executor, direction, messages, check, |messages| seal_or_open(executor, fused, messages))
}

/// Seals or opens messages. Their keys must have the same size, and their lengths must have been checked. Uses the fused
/// AEAD if the executor supports it, otherwise passes. The output of a message whose tag is wrong is zeroed.
///
/// # Errors
/// Errors of devices.
pub fn seal_or_open(
    executor: &dyn Executor,
    fused: FusedAead,
    messages: &mut [AeadMessage<'_>],
) -> Result<()> {
    if run_fused(executor, fused, messages)? {
        return Ok(());
    }
    let direction = if fused.opens() { Direction::Decrypt } else { Direction::Encrypt };
    let mut states = start(executor, messages)?;
    // The tag is computed from the plaintext. The plaintext must be zeroed if the check fails or does not happen.
    run(executor, direction, messages, &mut states)
        .and_then(|()| zero_failed(executor, messages))
        .inspect_err(|_| invalidate(executor, messages))
}

/// The state of a message.
#[derive(Default)]
struct State {
    masks: Masks,
    /// The offset of the last processed block; before the first block, the offset that is derived from the nonce.
    offset: Zeroizing<Block>,
    /// The XOR of all plaintext blocks, then the tag.
    checksum: Zeroizing<Block>,
}

/// Composes OCB of ECB, on messages whose keys have the same size.
fn run(
    executor: &dyn Executor,
    direction: Direction,
    messages: &mut [AeadMessage<'_>],
    states: &mut [State],
) -> Result<()> {
    for (message, state) in messages.iter_mut().zip(&mut *states) {
        let whole = message.data.len() & !15;
        let key = message.key;
        let State { masks, offset, checksum } = state;
        pieces::process(executor, &mut message.data, 0..whole, |at, piece| {
            if direction == Direction::Encrypt {
                add(checksum, piece);
            }
            masked(executor, direction, key, masks, offset, at as u64 / 16, piece)?;
            if direction == Direction::Decrypt {
                add(checksum, piece);
            }
            Ok(())
        })?;
    }
    partial_blocks(executor, direction, messages, states)?;
    let mut tags = Zeroizing::new(vec![[0; 16]; messages.len()]);
    for (tag, state) in tags.iter_mut().zip(&*states) {
        *tag = *state.checksum;
        xor(tag, &state.offset);
        xor(tag, &state.masks.dollar);
    }
    encrypt_blocks(executor, messages, &mut tags)?;
    for ((message, state), tag) in messages.iter_mut().zip(states).zip(&mut *tags) {
        xor(tag, &*hash(executor, message.key, &state.masks, message.aad)?);
        message.status = settle(&mut message.tag, tag);
    }
    Ok(())
}

/// The masks of the keys and the first offsets.
fn start(executor: &dyn Executor, messages: &[AeadMessage<'_>]) -> Result<Vec<State>> {
    let mut blocks = Zeroizing::new(vec![[0; 16]; 2 * messages.len()]);
    for (message, blocks) in messages.iter().zip(blocks.chunks_mut(2)) {
        blocks[1] = nonce_block(message.nonce, message.tag.len()).0;
    }
    encrypt_blocks(executor, messages, &mut blocks)?;
    // The states are filled in their final place, because moving them would leave copies of the masks.
    let mut states: Vec<State> = messages.iter().map(|_| State::default()).collect();
    for ((message, state), blocks) in messages.iter().zip(&mut states).zip(blocks.chunks(2)) {
        state.masks.fill(&blocks[0]);
        *state.offset = first_offset(&blocks[1], nonce_block(message.nonce, message.tag.len()).1);
    }
    Ok(states)
}

/// Encrypts or decrypts whole blocks, each masked with its offset. `before` is the number of blocks before them.
fn masked(
    executor: &dyn Executor,
    direction: Direction,
    key: &Key,
    masks: &Masks,
    offset: &mut Block,
    before: u64,
    blocks: &mut [u8],
) -> Result<()> {
    let first = Zeroizing::new(*offset);
    mask(masks, offset, before, blocks);
    let pass = if direction == Direction::Encrypt { Pass::EcbEncrypt } else { Pass::EcbDecrypt };
    let data = Data::in_place(blocks);
    executor.run_pass(pass, &mut [Segment { key, tweak: None, state: &mut [0; 16], data }])?;
    *offset = *first;
    mask(masks, offset, before, blocks);
    Ok(())
}

/// XORs each block with its offset.
fn mask(masks: &Masks, offset: &mut Block, before: u64, blocks: &mut [u8]) {
    for (number, block) in (before + 1..).zip(blocks.as_chunks_mut().0) {
        masks.advance(offset, number);
        xor(block, offset);
    }
}

/// Adds whole blocks to a checksum.
fn add(checksum: &mut Block, blocks: &[u8]) {
    blocks.as_chunks().0.iter().for_each(|block| xor(checksum, block));
}

/// Encrypts or decrypts the last, partial block of each message that has one.
fn partial_blocks(
    executor: &dyn Executor,
    direction: Direction,
    messages: &mut [AeadMessage<'_>],
    states: &mut [State],
) -> Result<()> {
    let mut pads = Zeroizing::new(vec![[0; 16]; messages.len()]);
    for ((message, state), pad) in messages.iter().zip(&mut *states).zip(&mut *pads) {
        if message.data.len() % 16 > 0 {
            xor(&mut state.offset, &state.masks.star);
            *pad = *state.offset;
        }
    }
    encrypt_blocks(executor, messages, &mut pads)?;
    for ((message, state), pad) in messages.iter_mut().zip(states).zip(&*pads) {
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
        xor(&mut state.checksum, plaintext);
        state.checksum[tail] ^= 0x80;
    }
    Ok(())
}

/// HASH of the associated data (RFC 7253, section 4.1).
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
    let data = Data::in_place(&mut blocks);
    executor.run_pass(Pass::EcbEncrypt, &mut [Segment { key, tweak: None, state: &mut [0; 16], data }])?;
    add(&mut sum, &blocks);
    Ok(sum)
}
