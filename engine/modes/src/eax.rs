//! EAX (Bellare, Rogaway and Wagner, "The EAX Mode of Operation", FSE 2004): CTR, whose counter starts with a MAC of the nonce, and
//! CMACs of the nonce, the associated data and the ciphertext. The MACs are serial within a message and parallel across messages.
//!
//! A nonce must never be used twice with the same key.

use zeroize::Zeroizing;

use crate::absorb::Side;
use crate::cmac::{self, CmacMessage};
use crate::executor::Executor;
use crate::lengths::Lengths;
use crate::{Direction, invalidate, run_mode, zero_failed};
use lockstep_core::data::Data;
use lockstep_core::error::Result;
use lockstep_core::gcm::settle;
use lockstep_core::key::Block;
use lockstep_core::work::{AeadMessage, Pass, Segment, Status};

/// The lengths of tags.
pub const TAGS: Lengths = Lengths { ranges: &[1..=16], words: "1 to 16" };

/// Encrypts and authenticates each message. Nonces have any length; 16 random bytes are recommended. Tags have 1 to 16
/// bytes.
///
/// # Errors
/// [`TagLength`](lockstep_core::Error::TagLength) before anything is done;
/// [`NotSealed`](lockstep_core::Error::NotSealed); errors of devices.
///
#[doc = include_str!("after_error.md")]
pub fn seal(executor: &dyn Executor, messages: &mut [AeadMessage<'_>]) -> Result<()> {
    run_mode(executor, Direction::Encrypt, messages, check, |messages| {
        let mut states = State::of_all(executor, messages)?;
        ctr(executor, messages, &mut states)
            .and_then(|()| tags(executor, messages, &states, Side::Output))
            .inspect_err(|_| invalidate(executor, messages))
    })
}

/// Checks and decrypts each message. The output of a message whose tag is wrong is zeroed; the other outputs are valid. The
/// field `status` of each message has its result.
///
/// # Errors
/// [`AuthenticationFailed`](lockstep_core::Error::AuthenticationFailed) if any tag was wrong; otherwise the errors of [`seal`].
///
#[doc = include_str!("after_error.md")]
pub fn open(executor: &dyn Executor, messages: &mut [AeadMessage<'_>]) -> Result<()> {
    run_mode(executor, Direction::Decrypt, messages, check, |messages| {
        let mut states = State::of_all(executor, messages)?;
        // Nothing is written before the tags have been compared.
        tags(executor, messages, &states, Side::Input)?;
        ctr(executor, messages, &mut states)
            .and_then(|()| zero_failed(executor, messages))
            .inspect_err(|_| invalidate(executor, messages))
    })
}

fn check(message: &AeadMessage<'_>) -> Result<()> {
    TAGS.check_tag("EAX", message.tag.len())
}

/// The string before the nonce (0), the associated data (1) or the ciphertext (2) in their MAC: OMAC^t of the paper.
const fn prefix(number: u8) -> Block {
    (number as u128).to_be_bytes()
}

struct State {
    /// The MAC of the nonce, from which the counter starts.
    counter: Zeroizing<Block>,
    /// The XOR of the MACs of the nonce and of the associated data.
    tag: Zeroizing<Block>,
}

impl State {
    /// The states of all messages.
    fn of_all(executor: &dyn Executor, messages: &[AeadMessage<'_>]) -> Result<Vec<State>> {
        let nonces = omac(executor, messages, 0, |message| message.nonce)?;
        let aads = omac(executor, messages, 1, |message| message.aad)?;
        let states = nonces.iter().zip(&*aads).map(|(nonce, aad)| {
            let mut tag = Zeroizing::new(*nonce);
            xor(&mut tag, aad);
            State { counter: Zeroizing::new(*nonce), tag }
        });
        Ok(states.collect())
    }
}

/// OMAC^t of a string in memory of the host, for each message.
fn omac(
    executor: &dyn Executor,
    messages: &[AeadMessage<'_>],
    number: u8,
    string: for<'m> fn(&'m AeadMessage<'m>) -> &'m [u8],
) -> Result<Zeroizing<Vec<Block>>> {
    let strings: Vec<Vec<u8>> =
        messages.iter().map(|message| [&prefix(number), string(message)].concat()).collect();
    let mut macs = Zeroizing::new(vec![[0; 16]; messages.len()]);
    let parts = messages.iter().zip(&strings).zip(&mut *macs);
    let parts = parts.map(|((message, data), mac)| CmacMessage { key: message.key, data, mac });
    cmac::cmac(executor, &mut parts.collect::<Vec<_>>())?;
    Ok(macs)
}

/// Computes the tags, and writes or compares them.
fn tags(
    executor: &dyn Executor,
    messages: &mut [AeadMessage<'_>],
    states: &[State],
    ciphertext: Side,
) -> Result<()> {
    const PREFIX: Block = prefix(2);
    let mut macs = Zeroizing::new(vec![[0; 16]; messages.len()]);
    // The last 1 to 16 bytes of each ciphertext; the prefix before an empty one.
    let mut ends = vec![(PREFIX, 16); messages.len()];
    for (message, (end, end_len)) in messages.iter_mut().zip(&mut ends) {
        let len = message.data.len();
        if len > 0 {
            *end_len = len - before(len);
            ciphertext.fetch(executor, &mut message.data, before(len), &mut end[..*end_len])?;
        }
    }
    let with_data = messages.iter().zip(&mut *macs).filter(|(message, _)| !message.data.is_empty());
    let prefixes = with_data.map(|(message, state)| Segment {
        key: message.key,
        tweak: None,
        state,
        data: Data::read_only(&PREFIX),
    });
    executor.run_pass(Pass::CbcMac, &mut prefixes.collect::<Vec<_>>())?;
    let long = messages.iter_mut().zip(&mut *macs).filter(|(message, _)| message.data.len() > 16);
    let segments = long.map(|(message, state)| {
        let before = before(message.data.len());
        let data = ciphertext.of(&mut message.data).split_at(before).0;
        Segment { key: message.key, tweak: None, state, data }
    });
    executor.run_pass(Pass::CbcMac, &mut segments.collect::<Vec<_>>())?;
    let lasts = messages.iter().zip(&mut *macs).zip(&ends);
    let lasts =
        lasts.map(|((message, mac), (end, len))| cmac::End { key: message.key, mac, last: &end[..*len] });
    cmac::finish(executor, &mut lasts.collect::<Vec<_>>())?;
    for ((message, state), mac) in messages.iter_mut().zip(states).zip(&mut *macs) {
        xor(mac, &state.tag);
        message.status = settle(&mut message.tag, mac);
    }
    Ok(())
}

/// The length of the whole blocks before the last 1 to 16 bytes of data.
fn before(len: usize) -> usize {
    (len - 1) & !15
}

/// CTR over the data of all messages that have not failed.
fn ctr(executor: &dyn Executor, messages: &mut [AeadMessage<'_>], states: &mut [State]) -> Result<()> {
    let good = messages.iter_mut().zip(states).filter(|(m, _)| m.status != Status::AuthenticationFailed);
    let good = good.map(|(message, state)| (message.key, &mut *state.counter, &mut message.data));
    crate::ctr(executor, Pass::Ctr, good)
}

fn xor(block: &mut Block, mask: &Block) {
    block.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
}
