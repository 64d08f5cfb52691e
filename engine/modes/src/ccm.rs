//! CCM (SP 800-38C): CTR with a CBC-MAC. The CBC-MAC is serial within a message and parallel across messages.
//!
//! Nonces have 7 to 13 bytes and must never repeat under one key. The longer the nonce, the shorter the maximum message. Tags
//! have 4, 6, 8, 10, 12, 14 or 16 bytes.

use crate::absorb::Side;
use crate::composed;
use crate::executor::Executor;
use crate::incremental::CtrMac;
use crate::message::Direction;
use crate::run_pass;
use lockstep_core::Result;
use lockstep_core::data::Data;
use lockstep_core::lengths::{Lengths, check_limit};
use lockstep_core::work::{AeadMessage, Pass};

/// The lengths of nonces (SP 800-38C, A.1).
pub const NONCES: Lengths = Lengths { ranges: &[7..=13], words: "7 to 13" };
/// The lengths of tags (SP 800-38C, A.1).
pub const TAGS: Lengths = Lengths {
    ranges: &[4..=4, 6..=6, 8..=8, 10..=10, 12..=12, 14..=14, 16..=16],
    words: "4, 6, 8, 10, 12, 14 or 16",
};

/// Seals or opens messages. Their keys must have the same size, and their lengths must have been checked.
///
/// # Errors
/// Errors of devices.
pub fn run(executor: &dyn Executor, direction: Direction, messages: &mut [AeadMessage<'_>]) -> Result<()> {
    // The capacity is reserved, because a vector that grows would leave copies of MACs that are not wiped.
    let mut states = Vec::with_capacity(messages.len());
    let mut starts = Vec::with_capacity(messages.len());
    for message in &*messages {
        let (aad, data) = (message.aad.len() as u64, message.data.len() as u64);
        let state = CtrMac::ccm(message.nonce);
        let (first, length, bytes) = state.ccm_prefix(message.tag.len(), aad, data);
        let mut blocks = [&first[..], &length[16 - bytes..], message.aad].concat();
        blocks.resize(blocks.len().next_multiple_of(16), 0);
        starts.push(blocks);
        states.push(state);
    }
    let parts = messages.iter().zip(&mut states).zip(&starts);
    let parts =
        parts.map(|((message, state), start)| (message.key, &mut state.mac.state, Data::read_only(start)));
    run_pass(executor, Pass::CbcMac, parts)?;
    composed::run(executor, direction, Pass::Ctr, Side::Input, messages, states)
}

/// Checks the lengths of a message.
pub(crate) fn check_message(message: &AeadMessage<'_>) -> Result<()> {
    check(message.nonce.len(), message.tag.len(), message.data.len() as u64)
}

/// Checks the lengths of nonce, tag and data against SP 800-38C, A.1.
pub(crate) fn check(nonce: usize, tag: usize, data: u64) -> Result<()> {
    NONCES.check_nonce("CCM", nonce)?;
    TAGS.check_tag("CCM", tag)?;
    // With a nonce of n bytes, the length field has 15 - n bytes.
    let limit = 1u64.checked_shl(8 * (15 - nonce as u32)).map_or(u64::MAX, |size| size - 1);
    check_limit("CCM", "data with a nonce of this length", data, limit)
}

#[cfg(test)]
mod tests;
