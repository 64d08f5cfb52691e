//! The AES modes of operation, each composed of passes that an [`Executor`] runs.
//!
//! [`Cipher`] implements the modes without authentication, for one message or a batch. [`hctr2`] and [`cbc_cts`] (CBC with
//! ciphertext stealing) are two further modes without authentication. [`gcm`], [`gcm_siv`], [`ocb`], [`siv`], [`xaes`], [`ccm`]
//! and [`eax`] implement the authenticated modes. The functions `run` of these modules require messages whose lengths have been
//! checked. [`Aead::run`] and [`Aead::run_messages`] check the lengths. [`key_wrap`] wraps keys. [`cmac`] and [`gcm::gmac`]
//! compute MACs. These functions take whole messages and return when the messages have been processed. [`stream`] contains the
//! incremental forms of the modes, which use the engine in [`incremental`].
#![forbid(unsafe_code)]

mod absorb;
pub mod aead;
pub mod cbc_cts;
pub mod ccm;
mod cipher;
pub mod cmac;
mod composed;
pub mod eax;
pub mod executor;
pub mod gcm;
pub mod gcm_siv;
pub mod hctr2;
pub mod incremental;
pub mod key_wrap;
mod message;
pub mod ocb;
pub mod padding;
mod pieces;
pub mod siv;
pub mod stream;
pub mod transfer;
pub mod xaes;
pub mod xts;

use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, FusedAead, Pass, Segment, Status, Tag};
use lockstep_core::{Block, Error, Key, KeySize, Result};

pub use aead::{Aead, AeadKey};
pub use executor::Executor;

pub use message::{Cipher, CipherKey, Direction, Message};

/// Seals or opens messages in a mode with one AES key. First checks the messages with `check`. Then processes the messages of
/// each key size separately, because kernels depend on the key size. Finally checks that every message has been processed.
fn run_mode(
    executor: &dyn Executor,
    direction: Direction,
    messages: &mut [AeadMessage<'_>],
    check: impl Fn(&AeadMessage<'_>) -> Result<()>,
    process: impl Fn(&mut [AeadMessage<'_>]) -> Result<()>,
) -> Result<()> {
    messages.iter().try_for_each(check)?;
    check_tags(messages, direction)?;
    by_key_size(messages, process)?;
    if messages.iter().all(|message| message.status == Status::Done) {
        return Ok(());
    }
    // A device can report success without having processed a message. Its output must not look like a result.
    invalidate(executor, messages.iter_mut().filter(|message| message.status == Status::Pending));
    Err(match direction {
        Direction::Encrypt => Error::NotSealed,
        Direction::Decrypt => Error::AuthenticationFailed,
    })
}

/// Calls `run` for the messages of each key size. Batches rarely mix key sizes, so the common case is a single call.
fn by_key_size(
    messages: &mut [AeadMessage<'_>],
    run: impl Fn(&mut [AeadMessage<'_>]) -> Result<()>,
) -> Result<()> {
    if messages.windows(2).all(|two| two[0].key.size() == two[1].key.size()) {
        return run(messages);
    }
    for size in KeySize::ALL {
        let of_size = |message: &&mut AeadMessage<'_>| message.key.size() == size;
        let mut same: Vec<_> = messages.iter_mut().filter(of_size).map(AeadMessage::reborrow).collect();
        if same.is_empty() {
            continue;
        }
        let outcome = run(&mut same);
        let statuses = statuses(same);
        for (message, status) in messages.iter_mut().filter(of_size).zip(statuses) {
            message.status = status;
        }
        outcome?;
    }
    Ok(())
}

/// Returns the statuses of messages, and drops the messages, which ends their borrows of the data of other messages.
fn statuses(messages: Vec<AeadMessage<'_>>) -> Vec<Status> {
    messages.iter().map(|message| message.status).collect()
}

/// Checks that each message has a tag to write when sealing, and a tag to compare with when opening. Sets the status of all
/// messages to [`Status::Pending`].
fn check_tags(messages: &mut [AeadMessage<'_>], direction: Direction) -> Result<()> {
    let (seals, what) = match direction {
        Direction::Encrypt => (true, "sealing needs a tag to write to"),
        Direction::Decrypt => (false, "opening needs a tag to compare with"),
    };
    for message in messages {
        if matches!(message.tag, Tag::Write(_)) != seals {
            return Err(Error::Order { what });
        }
        message.status = Status::Pending;
    }
    Ok(())
}

/// Runs the fused AEAD if the executor supports it. After an error, the messages are invalidated.
fn run_fused(executor: &dyn Executor, fused: FusedAead, messages: &mut [AeadMessage<'_>]) -> Result<bool> {
    executor.run_fused(fused, messages).inspect_err(|_| invalidate(executor, messages))
}

/// Checks that data consist of at least one block.
fn check_block(mode: &'static str, got: usize) -> Result<()> {
    if got >= 16 { Ok(()) } else { Err(Error::DataLength { mode, expected: "at least 16 bytes", got }) }
}

/// Marks all messages as not processed, and zeroes their tags and outputs, so that no partial result remains. An authenticated
/// mode calls this function after an error of a fused AEAD, of the first pass that writes outputs, or of any later step: the
/// outputs, including data in place, are then invalid. After an error of an earlier step, the messages are unchanged, so this
/// function is not called. The memory of a lost device cannot be zeroed.
#[cold]
fn invalidate<'m, 'd: 'm>(
    executor: &dyn Executor,
    messages: impl IntoIterator<Item = &'m mut AeadMessage<'d>>,
) {
    for message in messages {
        message.invalidate(true);
        let _ = transfer::zero_output(executor, &mut message.data);
    }
}

/// Zeroes the output of every message that has failed. If one output cannot be zeroed, the outputs of all other failed messages
/// are still zeroed.
fn zero_failed(executor: &dyn Executor, messages: &mut [AeadMessage<'_>]) -> Result<()> {
    let failed = messages.iter_mut().filter(|message| message.status != Status::Done);
    failed.map(|message| transfer::zero_output(executor, &mut message.data)).fold(Ok(()), Result::and)
}

/// Runs a pass in one call over several parts. Each part has a key, a chaining state and data. All keys have the same size.
fn run_pass<'d>(
    executor: &dyn Executor,
    pass: Pass,
    parts: impl Iterator<Item = (&'d Key, &'d mut Block, Data<'d>)>,
) -> Result<()> {
    let segments = parts.map(|(key, state, data)| Segment { key, tweak: None, state, data });
    executor.run_pass(pass, &mut segments.collect::<Vec<_>>())
}

/// Encrypts or decrypts blocks in host memory, each independently of all others.
fn ecb(executor: &dyn Executor, direction: Direction, key: &Key, blocks: &mut [u8]) -> Result<()> {
    let (state, data) = (&mut Block::default(), Data::in_place(blocks));
    let segment = Segment { key, tweak: None, state, data };
    executor.run_pass(Cipher::Ecb.pass(direction), &mut [segment])
}

/// Encrypts blocks under several keys, with the same number of blocks for each key. All keys have the same size.
fn encrypt_blocks<'d>(
    executor: &dyn Executor,
    keys: impl ExactSizeIterator<Item = &'d Key>,
    blocks: &'d mut [Block],
) -> Result<()> {
    let count = (blocks.len() / keys.len().max(1)).max(1);
    let mut unused = vec![Block::default(); keys.len()];
    let parts = keys.zip(blocks.chunks_mut(count)).zip(&mut unused);
    let parts = parts.map(|((key, blocks), state)| (key, state, Data::in_place(blocks.as_flattened_mut())));
    run_pass(executor, Pass::EcbEncrypt, parts)
}
