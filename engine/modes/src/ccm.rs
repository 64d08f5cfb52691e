//! CCM (SP 800-38C): CTR and a CBC-MAC, which is serial within a message and parallel across messages.
//!
//! Nonces have 7 to 13 bytes and must never repeat under one key. A longer nonce lowers the maximum message length.

use zeroize::Zeroizing;

use crate::absorb::{self, Absorbed, Side};
use crate::executor::Executor;
use crate::lengths::Lengths;
use crate::{Direction, invalidate, run_mode, zero_failed};
use lockstep_core::data::Data;
use lockstep_core::error::{Error, Result};
use lockstep_core::gcm::settle;
use lockstep_core::key::Block;
use lockstep_core::work::{AeadMessage, Pass, Segment};

/// The lengths of nonces (SP 800-38C, A.1).
pub const NONCES: Lengths = Lengths { ranges: &[7..=13], words: "7 to 13" };
/// The lengths of tags (SP 800-38C, A.1).
pub const TAGS: Lengths = Lengths {
    ranges: &[4..=4, 6..=6, 8..=8, 10..=10, 12..=12, 14..=14, 16..=16],
    words: "4, 6, 8, 10, 12, 14 or 16",
};

/// Encrypts and authenticates each message. Tags have 4, 6, 8, 10, 12, 14 or 16 bytes.
///
/// # Errors
/// [`Error::TagLength`], [`Error::IvLength`], [`Error::TooLong`] before anything is done; errors of devices.
///
#[doc = include_str!("after_error.md")]
pub fn seal(executor: &dyn Executor, messages: &mut [AeadMessage<'_>]) -> Result<()> {
    run_mode(executor, Direction::Encrypt, messages, check_message, |messages| {
        let mut states = State::of_all(executor, messages)?;
        mac(executor, messages, &mut states, Side::Input)?;
        ctr(executor, messages, &mut states)
            .and_then(|()| finish(executor, messages, &mut states))
            .inspect_err(|_| invalidate(executor, messages))
    })
}

/// Decrypts and checks each message. The output of a message whose tag is wrong is zeroed before this function returns.
///
/// # Errors
/// [`Error::AuthenticationFailed`] if any tag was wrong; otherwise the errors of [`seal`].
///
#[doc = include_str!("after_error.md")]
pub fn open(executor: &dyn Executor, messages: &mut [AeadMessage<'_>]) -> Result<()> {
    run_mode(executor, Direction::Decrypt, messages, check_message, |messages| {
        let mut states = State::of_all(executor, messages)?;
        // The MAC is computed over the plaintext, so the plaintext exists before the check. It must be zeroed if the check fails
        // or does not happen.
        ctr(executor, messages, &mut states)
            .and_then(|()| mac(executor, messages, &mut states, Side::Output))
            .and_then(|()| finish(executor, messages, &mut states))
            .and_then(|()| zero_failed(executor, messages))
            .inspect_err(|_| invalidate(executor, messages))
    })
}

fn check_message(message: &AeadMessage<'_>) -> Result<()> {
    check(message.nonce.len(), message.tag.len(), message.data.len() as u64)
}

/// Checks the lengths that SP 800-38C, A.1, allows.
pub(crate) fn check(nonce: usize, tag: usize, data: u64) -> Result<()> {
    NONCES.check_nonce("CCM", nonce)?;
    TAGS.check_tag("CCM", tag)?;
    // With a nonce of n bytes, the length field has 15 - n bytes.
    let limit = 1u64.checked_shl(8 * (15 - nonce as u32)).map_or(u64::MAX, |size| size - 1);
    if data > limit {
        return Err(Error::TooLong { mode: "CCM", what: "data with a nonce of this length", limit });
    }
    Ok(())
}

/// The first block of the MAC (SP 800-38C, A.2.1).
pub fn first_block(nonce: &[u8], tag: usize, has_aad: bool, data: u64) -> Block {
    let mut block = [0; 16];
    let length_bytes = 15 - nonce.len();
    block[0] = u8::from(has_aad) << 6 | (((tag - 2) / 2) as u8) << 3 | (length_bytes - 1) as u8;
    // The length is written first. Its high bytes are zero, and the nonce then overwrites them.
    block[8..].copy_from_slice(&data.to_be_bytes());
    block[1..=nonce.len()].copy_from_slice(nonce);
    block
}

/// The encoded length of the associated data (SP 800-38C, A.2.2), and the number of its bytes.
pub fn aad_length(aad: u64) -> ([u8; 10], usize) {
    let mut bytes = [0; 10];
    if aad < 0xff00 {
        bytes[..2].copy_from_slice(&(aad as u16).to_be_bytes());
        (bytes, 2)
    } else if let Ok(aad) = u32::try_from(aad) {
        bytes[..2].copy_from_slice(&[0xff, 0xfe]);
        bytes[2..6].copy_from_slice(&aad.to_be_bytes());
        (bytes, 6)
    } else {
        bytes[..2].copy_from_slice(&[0xff, 0xff]);
        bytes[2..].copy_from_slice(&aad.to_be_bytes());
        (bytes, 10)
    }
}

/// Counter block 0, which masks the tag; the data begin with counter 1 (SP 800-38C, A.3).
pub fn counter_block(nonce: &[u8], counter: u8) -> Block {
    let mut block = [0; 16];
    block[0] = (14 - nonce.len()) as u8;
    block[1..=nonce.len()].copy_from_slice(nonce);
    block[15] = counter;
    block
}

struct State {
    counter: Block,
    mac: Zeroizing<Block>,
}

impl State {
    /// The states of all messages.
    fn of_all(executor: &dyn Executor, messages: &[AeadMessage<'_>]) -> Result<Vec<State>> {
        // A vector that grows would leave copies of MACs that are not wiped.
        let mut states = Vec::with_capacity(messages.len());
        for message in messages {
            states.push(State::new(executor, message)?);
        }
        Ok(states)
    }

    /// Computes the MAC of everything before the data. This input is short, so it is processed message by message.
    fn new(executor: &dyn Executor, message: &AeadMessage<'_>) -> Result<State> {
        let data = message.data.len() as u64;
        let first = first_block(message.nonce, message.tag.len(), !message.aad.is_empty(), data);
        let mut mac = Zeroizing::new([0; 16]);
        let mut header = first.to_vec();
        if !message.aad.is_empty() {
            let (length, bytes) = aad_length(message.aad.len() as u64);
            header.extend(&length[..bytes]);
            header.extend(message.aad);
            header.resize(header.len().next_multiple_of(16), 0);
        }
        absorb::blocks(executor, Pass::CbcMac, message.key, &mut mac, &header)?;
        Ok(State { counter: counter_block(message.nonce, 1), mac })
    }
}

/// Adds the plaintexts, which are in the input or in the output, to the MACs.
fn mac(
    executor: &dyn Executor,
    messages: &mut [AeadMessage<'_>],
    states: &mut [State],
    plaintext: Side,
) -> Result<()> {
    let data = messages.iter_mut().zip(states).map(|(message, state)| {
        (Absorbed { key: message.key, state: &mut state.mac, data: &mut message.data }, None)
    });
    absorb::data(executor, Pass::CbcMac, plaintext, data)
}

/// CTR over the data. The length check ensures that the counter does not overflow into the nonce.
fn ctr(executor: &dyn Executor, messages: &mut [AeadMessage<'_>], states: &mut [State]) -> Result<()> {
    let data = messages.iter_mut().zip(states);
    let data = data.map(|(message, state)| (message.key, &mut state.counter, &mut message.data));
    crate::ctr(executor, Pass::Ctr, data)
}

/// Masks the MACs, and writes or compares them.
fn finish(executor: &dyn Executor, messages: &mut [AeadMessage<'_>], states: &mut [State]) -> Result<()> {
    let mut segments = Vec::new();
    for (message, state) in messages.iter().zip(&mut *states) {
        state.counter = counter_block(message.nonce, 0);
        segments.push(Segment {
            key: message.key,
            tweak: None,
            state: &mut state.counter,
            data: Data::in_place(&mut *state.mac),
        });
    }
    executor.run_pass(Pass::Ctr, &mut segments)?;
    drop(segments);
    for (message, state) in messages.iter_mut().zip(states) {
        message.status = settle(&mut message.tag, &state.mac);
    }
    Ok(())
}
