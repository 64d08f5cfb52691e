//! AES-GCM-SIV (RFC 8452): the tag is the encrypted POLYVAL hash of the plaintext. The tag, with one bit set, is also the
//! first counter block.
//!
//! If a nonce is used twice with the same key, an observer learns only whether the two messages are equal. The nonces should
//! nevertheless differ: the limits in section 6 of the RFC are for distinct nonces. The tag depends on the whole plaintext,
//! so a message cannot be encrypted in pieces, and it cannot be authenticated before it has been decrypted.

use zeroize::Zeroizing;

use crate::absorb::{self, Absorbed, Side};
use crate::executor::Executor;
use crate::{Direction, encrypt_blocks, invalidate, run_fused, run_mode, zero_failed};
use lockstep_core::data::Data;
use lockstep_core::error::Result;
use lockstep_core::gcm::settle;
use lockstep_core::key::{Block, Key, KeySize};
use lockstep_core::work::{AeadMessage, FusedAead, Pass, Segment};

pub use lockstep_core::gcm::MAX_GCM_SIV as MAX_DATA;

/// Encrypts and authenticates each message. Keys have 16 or 32 bytes as in the RFC, or 24 bytes as in OpenSSL. Nonces have
/// 12 bytes, and tags have 16 bytes.
///
/// # Errors
/// [`Error::TagLength`](lockstep_core::Error::TagLength), [`Error::IvLength`](lockstep_core::Error::IvLength), [`Error::TooLong`](lockstep_core::Error::TooLong) before anything is done; [`Error::NotSealed`](lockstep_core::Error::NotSealed); errors of
/// devices.
///
#[doc = include_str!("after_error.md")]
pub fn seal(executor: &dyn Executor, messages: &mut [AeadMessage<'_>]) -> Result<()> {
    run_mode(executor, Direction::Encrypt, messages, check, |messages| {
        if run_fused(executor, FusedAead::GcmSivSeal, messages)? {
            return Ok(());
        }
        let mut states = State::derive(executor, messages)?;
        tags(executor, messages, &mut states, Side::Input)?;
        for (message, state) in messages.iter_mut().zip(&states) {
            message.status = settle(&mut message.tag, &state.tag);
        }
        ctr(executor, messages, &mut states).inspect_err(|_| invalidate(executor, messages))
    })
}

/// Decrypts and checks each message. The output of a message whose tag is wrong is zeroed before this function returns; the
/// other outputs are valid. The field `status` of each message has its result.
///
/// # Errors
/// [`Error::AuthenticationFailed`](lockstep_core::Error::AuthenticationFailed) if any tag was wrong; otherwise the errors of [`seal`].
///
#[doc = include_str!("after_error.md")]
pub fn open(executor: &dyn Executor, messages: &mut [AeadMessage<'_>]) -> Result<()> {
    run_mode(executor, Direction::Decrypt, messages, check, |messages| {
        if run_fused(executor, FusedAead::GcmSivOpen, messages)? {
            return Ok(());
        }
        let mut states = State::derive(executor, messages)?;
        open_checked(executor, messages, &mut states).inspect_err(|_| invalidate(executor, messages))
    })
}

/// Decrypts, and compares the tags. The plaintext exists before its tag is checked. It must be zeroed if the check fails or does
/// not happen.
fn open_checked(
    executor: &dyn Executor,
    messages: &mut [AeadMessage<'_>],
    states: &mut [State],
) -> Result<()> {
    for (message, state) in messages.iter().zip(&mut *states) {
        state.counter = message.tag.bytes().try_into().expect("the length was checked");
        state.counter[15] |= 0x80;
    }
    ctr(executor, messages, states)?;
    tags(executor, messages, states, Side::Output)?;
    for (message, state) in messages.iter_mut().zip(states) {
        message.status = settle(&mut message.tag, &state.tag);
    }
    zero_failed(executor, messages)
}

fn check(message: &AeadMessage<'_>) -> Result<()> {
    FusedAead::GcmSivSeal.check_lengths(message)
}

/// The keys of a message, and its tag.
struct State {
    /// The message-authentication key, which is a key of POLYVAL.
    authentication: Key,
    /// The message-encryption key.
    encryption: Key,
    /// The hash, then the tag.
    tag: Zeroizing<Block>,
    /// The counter block.
    counter: Block,
}

impl State {
    /// Derives the keys of all messages (RFC 8452, section 4). All keys have the same size.
    fn derive(executor: &dyn Executor, messages: &[AeadMessage<'_>]) -> Result<Vec<State>> {
        let Some(size) = messages.first().map(|message| message.key.size()) else { return Ok(Vec::new()) };
        // Half of each block is used: two blocks make the authentication key, and the others the encryption key.
        let count = 2 + size.bytes() / 8;
        let mut blocks = Zeroizing::new(vec![[0; 16]; count * messages.len()]);
        for (message, blocks) in messages.iter().zip(blocks.chunks_mut(count)) {
            for (number, block) in (0u32..).zip(blocks) {
                block[..4].copy_from_slice(&number.to_le_bytes());
                block[4..].copy_from_slice(message.nonce);
            }
        }
        encrypt_blocks(executor, messages, &mut blocks)?;
        // A vector that grows would leave copies of keys that are not wiped.
        let mut states = Vec::with_capacity(messages.len());
        for blocks in blocks.chunks(count) {
            states.push(State::of(blocks, size)?);
        }
        Ok(states)
    }

    fn of(blocks: &[Block], size: KeySize) -> Result<State> {
        let mut bytes = Zeroizing::new([0; 48]);
        for (half, block) in bytes.chunks_mut(8).zip(blocks) {
            half.copy_from_slice(&block[..8]);
        }
        Ok(State {
            authentication: Key::new(&bytes[..16])?,
            encryption: Key::new(&bytes[16..16 + size.bytes()])?,
            tag: Zeroizing::new([0; 16]),
            counter: [0; 16],
        })
    }
}

/// Computes the tags of the plaintexts, and the first counter block of each message (RFC 8452, section 4).
fn tags(
    executor: &dyn Executor,
    messages: &mut [AeadMessage<'_>],
    states: &mut [State],
    plaintext: Side,
) -> Result<()> {
    for (message, state) in messages.iter().zip(&mut *states) {
        absorb::padded(executor, Pass::Polyval, &state.authentication, &mut state.tag, message.aad)?;
    }
    let data = messages.iter_mut().zip(&mut *states).map(|(message, state)| {
        let bits = |len: usize| u128::from(8 * len as u64);
        let lengths = (bits(message.data.len()) << 64 | bits(message.aad.len())).to_le_bytes();
        let (key, state, data) = (&state.authentication, &mut *state.tag, &mut message.data);
        (Absorbed { key, state, data }, Some(lengths))
    });
    absorb::data(executor, Pass::Polyval, plaintext, data)?;
    for (message, state) in messages.iter().zip(&mut *states) {
        state.tag.iter_mut().zip(message.nonce).for_each(|(byte, nonce)| *byte ^= nonce);
        state.tag[15] &= 0x7f;
    }
    let segments = states.iter_mut().map(|state| Segment {
        key: &state.encryption,
        tweak: None,
        state: &mut state.counter,
        data: Data::in_place(&mut *state.tag),
    });
    executor.run_pass(Pass::EcbEncrypt, &mut segments.collect::<Vec<_>>())?;
    for state in states {
        state.counter = *state.tag;
        state.counter[15] |= 0x80;
    }
    Ok(())
}

/// CTR over the data of all messages.
fn ctr(executor: &dyn Executor, messages: &mut [AeadMessage<'_>], states: &mut [State]) -> Result<()> {
    let data = messages.iter_mut().zip(states);
    let data = data.map(|(message, state)| (&state.encryption, &mut state.counter, &mut message.data));
    crate::ctr(executor, Pass::CtrLittle32, data)
}
