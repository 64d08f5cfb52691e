//! GCM and GMAC (SP 800-38D): CTR and GHASH, fused if the device supports it.
//!
//! A nonce must never be used twice with the same key: two messages with the same nonce reveal the authentication key.
//! Random 96-bit nonces are safe for 2^32 messages per key.

use zeroize::Zeroizing;

use crate::absorb::{self, Absorbed, Side};
use crate::executor::Executor;
use crate::lengths::Lengths;
use crate::{Direction, invalidate, run_fused, run_mode, zero_failed};
use lockstep_core::chaining::counter_after;
use lockstep_core::data::Data;
use lockstep_core::error::{Error, Result};
pub use lockstep_core::gcm::{MAX_AAD_OR_IV, MAX_DATA, lengths_block, settle};
use lockstep_core::key::{Block, Key};
use lockstep_core::work::{AeadMessage, FusedAead, Pass, Segment, Status, Tag};

/// The lengths of tags (SP 800-38D, 5.2.1.2).
pub const TAGS: Lengths = Lengths { ranges: &[4..=4, 8..=8, 12..=16], words: "4, 8 or 12 to 16" };
/// The lengths of nonces (SP 800-38D, 5.2.1.1).
pub const NONCES: Lengths = Lengths { ranges: &[1..=max_nonce()], words: "12 (or 1 to 2^61 - 1)" };

/// The maximum length of a nonce that fits into the address space.
const fn max_nonce() -> usize {
    if MAX_AAD_OR_IV > usize::MAX as u64 { usize::MAX } else { MAX_AAD_OR_IV as usize }
}

/// The fused AEADs of GCM: sealing and opening.
pub(crate) const FUSED: [FusedAead; 2] = [FusedAead::GcmSeal, FusedAead::GcmOpen];

/// Encrypts and authenticates each message. Tags have 4, 8 or 12 to 16 bytes. Nonces have any length except 0; 12 bytes are
/// recommended.
///
/// # Errors
/// [`Error::TagLength`], [`Error::IvLength`], [`Error::TooLong`] before anything is done; [`Error::NotSealed`]; errors
/// of devices.
///
#[doc = include_str!("after_error.md")]
pub fn seal(executor: &dyn Executor, messages: &mut [AeadMessage<'_>]) -> Result<()> {
    run(executor, Direction::Encrypt, messages)
}

/// Checks and decrypts each message. The output of a message whose tag is wrong is zeroed; the other outputs are valid. The
/// field `status` of each message has its result.
///
/// # Errors
/// [`Error::AuthenticationFailed`] if any tag was wrong; otherwise the errors of [`seal`].
///
#[doc = include_str!("after_error.md")]
pub fn open(executor: &dyn Executor, messages: &mut [AeadMessage<'_>]) -> Result<()> {
    run(executor, Direction::Decrypt, messages)
}

/// GMAC: the tag of associated data without a message.
///
/// # Errors
/// The errors of [`seal`].
pub fn gmac(executor: &dyn Executor, key: &Key, nonce: &[u8], data: &[u8], tag: &mut [u8]) -> Result<()> {
    let message = AeadMessage {
        key,
        nonce,
        aad: data,
        data: Data::in_place(&mut []),
        tag: Tag::Write(tag),
        status: Status::Pending,
    };
    seal(executor, &mut [message])
}

fn run(executor: &dyn Executor, direction: Direction, messages: &mut [AeadMessage<'_>]) -> Result<()> {
    let check = |message: &AeadMessage<'_>| {
        check(message.nonce.len(), message.tag.len(), message.data.len() as u64)?;
        check_aad(message.aad.len() as u64)
    };
    let fused = FUSED[direction as usize];
    run_mode(executor, direction, messages, check, |messages| seal_or_open(executor, fused, messages))
}

/// Seals or opens messages. Their keys must have the same size, and their lengths must have been checked. Uses the fused
/// AEAD if the executor supports it, otherwise passes.
///
/// # Errors
/// Errors of devices.
pub fn seal_or_open(
    executor: &dyn Executor,
    fused: FusedAead,
    messages: &mut [AeadMessage<'_>],
) -> Result<()> {
    let fits = messages.iter().all(|message| message.nonce.len() == 12);
    if fits && run_fused(executor, fused, messages)? {
        return Ok(());
    }
    composed::run(executor, fused, messages)
}

/// Checks the lengths that SP 800-38D, 5.2.1, allows, except that of the associated data.
pub(crate) fn check(nonce: usize, tag: usize, data: u64) -> Result<()> {
    TAGS.check_tag("GCM", tag)?;
    NONCES.check_nonce("GCM", nonce)?;
    if data > MAX_DATA {
        return Err(Error::TooLong { mode: "GCM", what: "data", limit: MAX_DATA });
    }
    Ok(())
}

/// Checks the length of the associated data.
pub(crate) fn check_aad(aad: u64) -> Result<()> {
    if aad > MAX_AAD_OR_IV {
        return Err(Error::TooLong { mode: "GCM", what: "associated data", limit: MAX_AAD_OR_IV });
    }
    Ok(())
}

/// The pre-counter block J0 (SP 800-38D, 7.1, step 2). Unless the nonce has 12 bytes, it is a hash of the nonce, from
/// which the authentication key can be computed. Therefore it is wiped.
pub(crate) fn first_counter(executor: &dyn Executor, key: &Key, nonce: &[u8]) -> Result<Zeroizing<Block>> {
    let mut counter = Zeroizing::new([0; 16]);
    if nonce.len() == 12 {
        counter[..12].copy_from_slice(nonce);
        counter[15] = 1;
        return Ok(counter);
    }
    absorb::padded(executor, Pass::Ghash, key, &mut counter, nonce)?;
    absorb::blocks(executor, Pass::Ghash, key, &mut counter, &lengths_block(0, nonce.len() as u64))?;
    Ok(counter)
}

/// The counter of the first block of data, which follows the pre-counter block.
pub(crate) fn data_counter(first: &Block) -> Zeroizing<Block> {
    Zeroizing::new(counter_after(Pass::Ctr32, first, 1))
}

/// The AEAD composed of passes. The data of all messages are processed at once. Nonces and associated data are short, so
/// they are processed message by message.
mod composed {
    use super::*;

    pub(super) fn run(
        executor: &dyn Executor,
        fused: FusedAead,
        messages: &mut [AeadMessage<'_>],
    ) -> Result<()> {
        // A vector that grows would leave copies of hashes that are not wiped.
        let mut states = Vec::with_capacity(messages.len());
        for message in &*messages {
            states.push(State::new(executor, message)?);
        }
        let states = &mut states[..];
        let outcome = if fused == FusedAead::GcmSeal {
            ctr(executor, messages, states).and_then(|()| tags(executor, fused, messages, states))
        } else {
            // Nothing is written before the tags have been compared.
            tags(executor, fused, messages, states)?;
            ctr(executor, messages, states).and_then(|()| zero_failed(executor, messages))
        };
        outcome.inspect_err(|_| invalidate(executor, messages))
    }

    /// Computes the tags, and writes or compares them.
    fn tags(
        executor: &dyn Executor,
        fused: FusedAead,
        messages: &mut [AeadMessage<'_>],
        states: &mut [State],
    ) -> Result<()> {
        hash(executor, fused, messages, states)?;
        mask(executor, messages, states)?;
        for (message, state) in messages.iter_mut().zip(states) {
            message.status = settle(&mut message.tag, &state.hash);
        }
        Ok(())
    }

    struct State {
        /// The counter block whose keystream masks the tag.
        first: Zeroizing<Block>,
        /// The counter of the data.
        counter: Zeroizing<Block>,
        /// The current GHASH; at the end the tag.
        hash: Zeroizing<Block>,
    }

    impl State {
        fn new(executor: &dyn Executor, message: &AeadMessage<'_>) -> Result<State> {
            let first = first_counter(executor, message.key, message.nonce)?;
            let counter = data_counter(&first);
            let mut hash = Zeroizing::new([0; 16]);
            absorb::padded(executor, Pass::Ghash, message.key, &mut hash, message.aad)?;
            Ok(State { first, counter, hash })
        }
    }

    /// CTR over all messages that have not failed.
    fn ctr(executor: &dyn Executor, messages: &mut [AeadMessage<'_>], states: &mut [State]) -> Result<()> {
        let good = messages.iter_mut().zip(states).filter(|(m, _)| m.status != Status::AuthenticationFailed);
        let good = good.map(|(message, state)| (message.key, &mut *state.counter, &mut message.data));
        crate::ctr(executor, Pass::Ctr32, good)
    }

    /// GHASH over all ciphertexts, with the lengths.
    fn hash(
        executor: &dyn Executor,
        fused: FusedAead,
        messages: &mut [AeadMessage<'_>],
        states: &mut [State],
    ) -> Result<()> {
        let ciphertext = if fused == FusedAead::GcmSeal { Side::Output } else { Side::Input };
        let data = messages.iter_mut().zip(states).map(|(message, state)| {
            let lengths = lengths_block(message.aad.len() as u64, message.data.len() as u64);
            let (key, state, data) = (message.key, &mut *state.hash, &mut message.data);
            (Absorbed { key, state, data }, Some(lengths))
        });
        absorb::data(executor, Pass::Ghash, ciphertext, data)
    }

    /// Tag = keystream of the first counter XOR hash.
    fn mask(executor: &dyn Executor, messages: &[AeadMessage<'_>], states: &mut [State]) -> Result<()> {
        let segments = messages.iter().zip(states).map(|(message, state)| Segment {
            key: message.key,
            tweak: None,
            state: &mut state.first,
            data: Data::in_place(&mut *state.hash),
        });
        executor.run_pass(Pass::Ctr32, &mut segments.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only the checks of the lengths are tested, because no machine has so much memory.
    #[cfg(target_pointer_width = "64")]
    #[test]
    fn associated_data_and_nonces_have_less_than_2_to_the_64_bits() {
        // SP 800-38D, 5.2.1.1.
        let most = (1 << 61) - 1;
        assert_eq!((check(most, 16, 0), check_aad(most as u64)), (Ok(()), Ok(())));
        assert!(matches!(check(most + 1, 16, 0), Err(Error::IvLength { got, .. }) if got == most + 1));
        let refused = check_aad(most as u64 + 1);
        assert!(matches!(refused, Err(Error::TooLong { limit, .. }) if limit == most as u64), "{refused:?}");
    }
}
