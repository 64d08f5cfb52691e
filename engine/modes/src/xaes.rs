//! XAES-256-GCM (C2SP): GCM with a nonce of 24 bytes. The key of GCM is derived from the first half of the nonce, and the
//! second half is the nonce of GCM.
//!
//! Keys have 32 bytes, nonces have 24 bytes, and tags have 16 bytes. Random nonces are safe for 2^80 messages per key.

use zeroize::Zeroizing;

use crate::executor::Executor;
use crate::message::Direction;
use crate::{encrypt_blocks, gcm, statuses};
use lockstep_core::lengths::{FULL_TAGS, Lengths};
use lockstep_core::ocb::{double, xor};
use lockstep_core::work::AeadMessage;
use lockstep_core::{Error, Key, KeySize, Result};

/// The length of nonces.
pub const NONCES: Lengths = Lengths { ranges: &[24..=24], words: "24" };

/// Seals or opens messages with GCM and the keys that are derived from the nonces. The lengths of the messages must have been
/// checked.
///
/// # Errors
/// Errors of devices.
pub fn run(executor: &dyn Executor, direction: Direction, messages: &mut [AeadMessage<'_>]) -> Result<()> {
    let keys = derive(executor, messages)?;
    let derived = messages.iter_mut().zip(&keys).map(|(message, key)| {
        let nonce = &message.nonce[12..];
        AeadMessage { key, nonce, ..message.reborrow() }
    });
    let mut derived: Vec<_> = derived.collect();
    let outcome = gcm::run(executor, direction, &mut derived);
    let statuses = statuses(derived);
    messages.iter_mut().zip(statuses).for_each(|(message, status)| message.status = status);
    outcome
}

/// Checks the lengths of a message.
pub(crate) fn check_message(message: &AeadMessage<'_>) -> Result<()> {
    if message.key.size() != KeySize::Aes256 {
        let got = message.key.size().bytes();
        return Err(Error::ModeKey { mode: "XAES-256-GCM", expected: "a key of 32 bytes", got });
    }
    NONCES.check_nonce("XAES-256-GCM", message.nonce.len())?;
    FULL_TAGS.check_tag("XAES-256-GCM", message.tag.len())?;
    gcm::check(12, 16, message.data.len() as u64)?;
    gcm::check_aad(message.aad.len() as u64)
}

/// Derives the keys of all messages with the key derivation function of SP 800-108r1 in counter mode with CMAC. Each key
/// consists of two output blocks.
fn derive(executor: &dyn Executor, messages: &[AeadMessage<'_>]) -> Result<Vec<Key>> {
    let mut subkeys = Zeroizing::new(vec![[0; 16]; messages.len()]);
    encrypt_blocks(executor, messages.iter().map(|message| message.key), &mut subkeys)?;
    let mut keys = Zeroizing::new(vec![[0; 16]; 2 * messages.len()]);
    for ((message, subkey), blocks) in messages.iter().zip(&mut *subkeys).zip(keys.chunks_mut(2)) {
        // The input of CMAC is one whole block, so this block is masked with the first subkey (SP 800-38B, 6.1).
        *subkey = double(subkey);
        for (counter, block) in (1..).zip(blocks) {
            block[..4].copy_from_slice(&[0, counter, b'X', 0]);
            block[4..].copy_from_slice(&message.nonce[..12]);
            xor(block, subkey);
        }
    }
    encrypt_blocks(executor, messages.iter().map(|message| message.key), &mut keys)?;
    keys.chunks(2).map(|key| Key::new(key.as_flattened())).collect()
}
