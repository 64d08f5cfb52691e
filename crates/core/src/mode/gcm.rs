//! GCM and GMAC (SP 800-38D): CTR and GHASH, fused where the device offers it.
//!
//! A nonce must never be used twice with one key: two messages under one nonce give away the authentication key.
//! Random 96-bit nonces are safe for 2^32 messages a key.

use subtle::ConstantTimeEq;
use zeroize::Zeroize;

use crate::data::Data;
use crate::error::{Error, Result};
use crate::key::{Block, Key, KeySize};
use crate::mode::by_key_size;
use crate::mode::cipher::run_segments;
use crate::planner::Planner;
use crate::timing::Shape;
use crate::work::{AeadMessage, Operation, Pass, Recipe, Segment, Status, Tag, Task};

/// SP 800-38D, 5.2.1.1: 2^39 - 256 bits of plaintext.
pub const MAX_DATA: u64 = (1 << 36) - 32;

/// Encrypts and authenticates each message. Tags of 4, 8 or 12 to 16 bytes; nonces of any length but 0, of which
/// 12 is the one to take.
///
/// # Errors
/// [`Error::TagLength`], [`Error::IvLength`], [`Error::TooLong`] before anything is done; [`Error::NotSealed`]; those
/// of devices.
pub fn seal(planner: &Planner, messages: &mut [AeadMessage<'_>]) -> Result<()> {
    run(planner, Recipe::GcmSeal, messages)?;
    all_sealed(messages)
}

/// Nothing counts as encrypted that a device has not said is.
pub(crate) fn all_sealed(messages: &[AeadMessage<'_>]) -> Result<()> {
    if messages.iter().all(|message| message.status == Status::Done) { Ok(()) } else { Err(Error::NotSealed) }
}

/// Checks and decrypts each message. The output of a message whose tag is wrong is zeroed; that of the others is
/// good, and `status` tells which is which.
///
/// # Errors
/// [`Error::AuthenticationFailed`] if any tag was wrong; otherwise as [`seal`].
pub fn open(planner: &Planner, messages: &mut [AeadMessage<'_>]) -> Result<()> {
    run(planner, Recipe::GcmOpen, messages)?;
    if messages.iter().all(|message| message.status == Status::Done) {
        Ok(())
    } else {
        Err(Error::AuthenticationFailed)
    }
}

/// GMAC: the tag of associated data alone.
///
/// # Errors
/// As [`seal`].
pub fn gmac(planner: &Planner, key: &Key, nonce: &[u8], data: &[u8], tag: &mut [u8]) -> Result<()> {
    let message = AeadMessage {
        key,
        nonce,
        aad: data,
        data: Data::in_place(&mut []),
        tag: Tag::Write(tag),
        status: Status::Pending,
    };
    seal(planner, &mut [message])
}

fn run(planner: &Planner, recipe: Recipe, messages: &mut [AeadMessage<'_>]) -> Result<()> {
    for message in &mut *messages {
        check(message.nonce, message.tag.len(), message.data.len() as u64)?;
        check_direction(recipe, &message.tag)?;
        message.status = Status::Pending;
    }
    by_key_size(messages, |size, messages| run_sized(planner, recipe, size, messages))
}

/// Messages whose keys have one size.
pub(crate) fn run_sized(
    planner: &Planner,
    recipe: Recipe,
    size: KeySize,
    messages: &mut [AeadMessage<'_>],
) -> Result<()> {
    if messages.iter().all(|message| message.nonce.len() == 12) {
        let shape = Shape::of(messages.iter().map(|message| message.data.len()));
        let resident = messages.first().and_then(|message| message.data.device());
        match planner.plan(Operation::Recipe(recipe), size, shape, resident) {
            Ok(plan) => return plan.run(Task::Recipe(recipe, messages)),
            // No fused kernel where the data are, or none that proved itself: by passes then.
            Err(Error::Unsupported { .. } | Error::SelfTest { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    composed::run(planner, recipe, messages)
}

pub(crate) fn check(nonce: &[u8], tag: usize, data: u64) -> Result<()> {
    if !matches!(tag, 4 | 8 | 12..=16) {
        return Err(Error::TagLength { mode: "GCM", expected: "4, 8 or 12 to 16", got: tag });
    }
    if nonce.is_empty() {
        return Err(Error::IvLength { mode: "GCM", expected: "12 (or any number but 0)", got: 0 });
    }
    if data > MAX_DATA {
        return Err(Error::TooLong { mode: "GCM", what: "data", limit: MAX_DATA });
    }
    Ok(())
}

pub(crate) fn check_direction(recipe: Recipe, tag: &Tag<'_>) -> Result<()> {
    match (recipe, tag) {
        (Recipe::GcmSeal, Tag::Write(_)) | (Recipe::GcmOpen, Tag::Expect(_)) => Ok(()),
        (Recipe::GcmSeal, _) => Err(Error::Order { what: "sealing needs a tag to write to" }),
        (Recipe::GcmOpen, _) => Err(Error::Order { what: "opening needs a tag to compare with" }),
    }
}

/// Zeroes the output of every message that is not done: one that cannot be zeroed does not keep the others from it.
pub(crate) fn zero_failed(planner: &Planner, messages: &mut [AeadMessage<'_>]) -> Result<()> {
    let failed = messages.iter_mut().filter(|message| message.status != Status::Done);
    failed.map(|message| message.data.zero_output(planner)).fold(Ok(()), Result::and)
}

/// Writes the tag, or compares it in constant time.
pub fn settle(tag: &mut Tag<'_>, computed: &Block) -> Status {
    match tag {
        Tag::Write(tag) => {
            tag.copy_from_slice(&computed[..tag.len()]);
            Status::Done
        }
        Tag::Expect(tag) if bool::from(tag.ct_eq(&computed[..tag.len()])) => Status::Done,
        Tag::Expect(_) => Status::AuthenticationFailed,
    }
}

/// The block of two bit lengths that ends a GHASH (SP 800-38D, 7.1, step 5).
pub fn lengths_block(aad: u64, data: u64) -> Block {
    (u128::from(aad * 8) << 64 | u128::from(data * 8)).to_be_bytes()
}

/// The counter block before the first (SP 800-38D, 7.1, step 2).
pub(crate) fn first_counter(planner: &Planner, key: &Key, nonce: &[u8]) -> Result<Block> {
    let mut counter = [0; 16];
    if nonce.len() == 12 {
        counter[..12].copy_from_slice(nonce);
        counter[15] = 1;
        return Ok(counter);
    }
    ghash_padded(planner, key, &mut counter, nonce)?;
    ghash(planner, key, &mut counter, &lengths_block(0, nonce.len() as u64))?;
    Ok(counter)
}

/// Folds whole blocks of host memory into a GHASH.
pub(crate) fn ghash(planner: &Planner, key: &Key, state: &mut Block, blocks: &[u8]) -> Result<()> {
    if blocks.is_empty() {
        return Ok(());
    }
    let data = Data::read_only(blocks);
    run_segments(planner, Pass::Ghash, &mut [Segment { key, tweak: None, register: state, data }])
}

/// Folds any bytes of host memory into a GHASH, filled up with zeros.
pub(crate) fn ghash_padded(planner: &Planner, key: &Key, state: &mut Block, bytes: &[u8]) -> Result<()> {
    let (blocks, tail) = bytes.split_at(bytes.len() & !15);
    ghash(planner, key, state, blocks)?;
    if !tail.is_empty() {
        let mut last = [0; 16];
        last[..tail.len()].copy_from_slice(tail);
        ghash(planner, key, state, &last)?;
        last.zeroize();
    }
    Ok(())
}

/// The recipe by passes: over all messages at once for the data, message by message for nonces and associated data,
/// which are short.
mod composed {
    use super::*;

    pub(super) fn run(planner: &Planner, recipe: Recipe, messages: &mut [AeadMessage<'_>]) -> Result<()> {
        let mut states =
            messages.iter().map(|message| State::new(planner, message)).collect::<Result<Vec<_>>>()?;
        if recipe == Recipe::GcmSeal {
            ctr(planner, messages, &mut states)?;
        }
        hash(planner, recipe, messages, &mut states)?;
        mask(planner, messages, &mut states)?;
        for (message, state) in messages.iter_mut().zip(&states) {
            message.status = settle(&mut message.tag, &state.hash);
        }
        if recipe == Recipe::GcmSeal {
            return Ok(());
        }
        let outcome = ctr(planner, messages, &mut states);
        if outcome.is_err() {
            messages.iter_mut().for_each(|message| message.status = Status::Pending);
        }
        outcome.and(zero_failed(planner, messages))
    }

    struct State {
        /// The counter block whose keystream masks the tag.
        first: Block,
        /// The counter of the data.
        counter: Block,
        /// GHASH so far; at the end the tag.
        hash: Block,
        /// The last partial ciphertext block and the lengths.
        end: [u8; 32],
        end_len: usize,
    }

    impl State {
        fn new(planner: &Planner, message: &AeadMessage<'_>) -> Result<State> {
            let first = first_counter(planner, message.key, message.nonce)?;
            let mut counter = first;
            let low = u32::from_be_bytes(first[12..].try_into().expect("four bytes"));
            counter[12..].copy_from_slice(&low.wrapping_add(1).to_be_bytes());
            let mut hash = [0; 16];
            ghash_padded(planner, message.key, &mut hash, message.aad)?;
            Ok(State { first, counter, hash, end: [0; 32], end_len: 0 })
        }
    }

    impl Drop for State {
        fn drop(&mut self) {
            self.hash.zeroize();
        }
    }

    /// CTR over all messages that are still good.
    fn ctr(planner: &Planner, messages: &mut [AeadMessage<'_>], states: &mut [State]) -> Result<()> {
        let good = messages.iter_mut().zip(states).filter(|(m, _)| m.status != Status::AuthenticationFailed);
        let mut segments: Vec<_> = good
            .filter(|(message, _)| !message.data.is_empty())
            .map(|(message, state)| Segment {
                key: message.key,
                tweak: None,
                register: &mut state.counter,
                data: message.data.reborrow(),
            })
            .collect();
        run_segments(planner, Pass::Ctr32, &mut segments)
    }

    /// GHASH over all ciphertexts, with the lengths.
    fn hash(
        planner: &Planner,
        recipe: Recipe,
        messages: &mut [AeadMessage<'_>],
        states: &mut [State],
    ) -> Result<()> {
        for (message, state) in messages.iter_mut().zip(&mut *states) {
            let len = message.data.len();
            let tail = len % 16;
            let start = len - tail;
            match recipe {
                Recipe::GcmSeal => message.data.fetch_output(planner, start, &mut state.end[..tail])?,
                Recipe::GcmOpen => message.data.fetch_input(planner, start, &mut state.end[..tail])?,
            }
            let at = tail.next_multiple_of(16);
            state.end[at..at + 16].copy_from_slice(&lengths_block(message.aad.len() as u64, len as u64));
            state.end_len = at + 16;
        }
        let mut blocks = Vec::new();
        for (message, state) in messages.iter_mut().zip(&mut *states) {
            let whole = message.data.len() & !15;
            if whole > 0 {
                let data = match recipe {
                    Recipe::GcmSeal => message.data.output_only(),
                    Recipe::GcmOpen => message.data.input_only(),
                };
                let data = data.split_at(whole).0;
                blocks.push(Segment { key: message.key, tweak: None, register: &mut state.hash, data });
            }
        }
        run_segments(planner, Pass::Ghash, &mut blocks)?;
        drop(blocks);
        let ends = messages.iter().zip(states).map(|(message, state)| Segment {
            key: message.key,
            tweak: None,
            register: &mut state.hash,
            data: Data::read_only(&state.end[..state.end_len]),
        });
        run_segments(planner, Pass::Ghash, &mut ends.collect::<Vec<_>>())
    }

    /// Tag = keystream of the first counter XOR hash.
    fn mask(planner: &Planner, messages: &[AeadMessage<'_>], states: &mut [State]) -> Result<()> {
        let segments = messages.iter().zip(states).map(|(message, state)| Segment {
            key: message.key,
            tweak: None,
            register: &mut state.first,
            data: Data::in_place(&mut state.hash),
        });
        run_segments(planner, Pass::Ctr32, &mut segments.collect::<Vec<_>>())
    }
}
