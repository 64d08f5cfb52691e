//! GCM and GMAC (SP 800-38D): CTR and GHASH, in one fused kernel if the device has such a kernel.
//!
//! Tags have 4, 8 or 12 to 16 bytes. Nonces have any length except 0; 12 bytes are recommended.
//! A nonce must never be used twice with the same key: two messages with the same nonce reveal the authentication key.
//! Random 96-bit nonces are safe for 2^32 messages per key.

use zeroize::Zeroizing;

use crate::absorb::Side;
use crate::composed;
use crate::executor::Executor;
use crate::incremental::{CtrMac, Planned};
use crate::{Direction, absorb, run_fused, run_mode};
use lockstep_core::data::Data;
pub use lockstep_core::gcm::{MAX_AAD_OR_IV, MAX_DATA, counter_block, lengths_block, settle};
use lockstep_core::lengths::{Lengths, check_limit};
use lockstep_core::work::{AeadMessage, FusedAead, Pass, Status, Tag};
use lockstep_core::{Block, Key, Result};

/// The lengths of tags (SP 800-38D, 5.2.1.2).
pub const TAGS: Lengths = Lengths { ranges: &[4..=4, 8..=8, 12..=16], words: "4, 8 or 12 to 16" };
/// The lengths of nonces (SP 800-38D, 5.2.1.1).
// The limit is 2^61 - 1, so the conversion makes it the largest number if a `usize` has 32 bits.
pub const NONCES: Lengths = Lengths { ranges: &[1..=MAX_AAD_OR_IV as usize], words: "12 (or 1 to 2^61 - 1)" };

/// The fused AEADs of GCM: sealing and opening.
pub(crate) const FUSED: [FusedAead; 2] = [FusedAead::GcmSeal, FusedAead::GcmOpen];

/// Computes the GMAC of `data`: the tag of a message that consists only of associated data.
///
/// # Errors
/// [`lockstep_core::Error::Unsupported`] if the device that the user has named lacks GHASH and cannot use fused GCM instead,
/// [`lockstep_core::Error::TagLength`], [`lockstep_core::Error::IvLength`], [`lockstep_core::Error::TooLong`] before anything is
/// done; [`lockstep_core::Error::NotSealed`]; errors of devices.
pub fn gmac(executor: &dyn Executor, key: &Key, nonce: &[u8], data: &[u8], tag: &mut [u8]) -> Result<()> {
    let (none, tag, status) = (Data::in_place(&mut []), Tag::Write(tag), Status::Pending);
    let message = AeadMessage { key, nonce, aad: data, data: none, tag, status };
    let direction = Direction::Encrypt;
    run_mode(executor, direction, &mut [message], check_message, |messages| {
        if nonce.len() != 12 || !run_fused(executor, FusedAead::GcmSeal, messages)? {
            executor.check_mac(Pass::Ghash, key.size())?;
            run(executor, direction, messages)?;
        }
        Ok(())
    })
}

/// Seals or opens messages. Their keys must have the same size, and their lengths must have been checked. Uses the fused AEAD
/// if the executor supports it, otherwise passes. Nonces and associated data are short, so those of each message are processed
/// separately.
///
/// # Errors
/// Errors of devices.
pub fn run(executor: &dyn Executor, direction: Direction, messages: &mut [AeadMessage<'_>]) -> Result<()> {
    let fits = messages.iter().all(|message| message.nonce.len() == 12);
    if fits && run_fused(executor, FUSED[direction as usize], messages)? {
        return Ok(());
    }
    // The capacity is reserved, because a vector that grows would leave copies of hashes that are not wiped.
    let mut states = Vec::with_capacity(messages.len());
    for message in &*messages {
        let mut state = CtrMac::gcm(first_counter(executor, message.key, message.nonce)?);
        let mut keyed = Planned::new(executor, message.key);
        state.aad(&mut keyed, message.aad)?;
        state.pad();
        state.mac.flush(&mut keyed)?;
        states.push(state);
    }
    composed::run(executor, direction, Pass::Ctr32, Side::Output, messages, states)
}

/// Checks the lengths of a message.
pub(crate) fn check_message(message: &AeadMessage<'_>) -> Result<()> {
    check(message.nonce.len(), message.tag.len(), message.data.len() as u64)?;
    check_aad(message.aad.len() as u64)
}

/// Checks the lengths of nonce, tag and data against SP 800-38D, 5.2.1.
pub(crate) fn check(nonce: usize, tag: usize, data: u64) -> Result<()> {
    TAGS.check_tag("GCM", tag)?;
    NONCES.check_nonce("GCM", nonce)?;
    check_limit("GCM", "data", data, MAX_DATA)
}

/// Checks the length of the associated data.
pub(crate) fn check_aad(aad: u64) -> Result<()> {
    check_limit("GCM", "associated data", aad, MAX_AAD_OR_IV)
}

/// Returns the pre-counter block J0 (SP 800-38D, 7.1, step 2). If the nonce does not have 12 bytes, J0 is a hash of the nonce.
/// The authentication key can be computed from this hash and the nonce, so J0 is wiped.
pub(crate) fn first_counter(executor: &dyn Executor, key: &Key, nonce: &[u8]) -> Result<Zeroizing<Block>> {
    if nonce.len() == 12 {
        return Ok(Zeroizing::new(counter_block(nonce, 1)));
    }
    let mut counter = Zeroizing::new([0; 16]);
    absorb::bytes(executor, Pass::Ghash, key, &mut counter, nonce)?;
    absorb::bytes(executor, Pass::Ghash, key, &mut counter, &lengths_block(0, nonce.len() as u64))?;
    Ok(counter)
}

#[cfg(test)]
mod tests;
