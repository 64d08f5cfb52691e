//! The header, and the values derived from it.

use aws_lc_rs::hkdf;
use lockstep_core::stack;
use lockstep_modes::aead::{Aead, AeadKey};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::format::{COMMITMENT, SALT, Suite};
use super::key::{FileKey, random};
use crate::error::{Error, Result};
use crate::foreign;

const NONCE: usize = 12;

/// The key and base nonce for the chunks of one message.
pub(super) struct MessageKey {
    pub(super) key: AeadKey,
    base_nonce: Zeroizing<[u8; NONCE]>,
}

impl MessageKey {
    /// The nonce of a chunk: the base nonce XOR the number of the chunk, big-endian.
    pub(super) fn nonce(&self, chunk: u64) -> [u8; NONCE] {
        let mut nonce = *self.base_nonce;
        for (n, k) in nonce[NONCE - 8..].iter_mut().zip(chunk.to_be_bytes()) {
            *n ^= k;
        }
        nonce
    }
}

/// Creates the header of a new message, with a random salt, and derives the key of the message.
pub(super) fn create(key: &FileKey, context: &[u8]) -> Result<(Vec<u8>, MessageKey)> {
    let mut salt = [0; SALT];
    random(&mut salt)?;
    let (message_key, commitment) = derive(key, &salt, context);
    Ok(([&salt[..], &commitment].concat(), message_key))
}

/// Derives the key of the message that begins with `header`: all bytes of a header, or fewer if the message ends there. If the
/// key does not open the message, `more` appends the bytes that follow, so that the formats of other programs are recognised.
///
/// # Errors
/// [`Error::WrongKeyOrContext`], [`Error::Truncated`], [`Error::OtherFormat`].
pub(super) fn check(
    key: &FileKey,
    context: &[u8],
    header: &[u8],
    more: impl FnOnce(&mut Vec<u8>),
) -> Result<MessageKey> {
    let error = match header.split_first_chunk() {
        Some((salt, stated)) if stated.len() == COMMITMENT => {
            let (message_key, commitment) = derive(key, salt, context);
            if bool::from(commitment[..].ct_eq(stated)) {
                return Ok(message_key);
            }
            Error::WrongKeyOrContext
        }
        _ => Error::Truncated { got: header.len() as u64 },
    };
    let mut start = header.to_vec();
    more(&mut start);
    Err(foreign::recognise(&start).map_or(error, Error::OtherFormat))
}

/// key || base nonce || commitment = HKDF-Expand(input key, info).
fn derive(key: &FileKey, salt: &[u8; SALT], context: &[u8]) -> (MessageKey, [u8; COMMITMENT]) {
    let derived = derive_in_own_frame(key, salt, context);
    // HKDF moves the key by value, and each move can leave a copy on the stack.
    stack::wipe_below();
    derived
}

/// A separate function, so that its stack frame can be wiped.
#[inline(never)]
fn derive_in_own_frame(key: &FileKey, salt: &[u8; SALT], context: &[u8]) -> (MessageKey, [u8; COMMITMENT]) {
    let suite: Suite = key.suite();
    let mut output = Zeroizing::new([0; 32 + NONCE + COMMITMENT]);
    let output = &mut output[..suite.key_len() + NONCE + COMMITMENT];
    let info = [b"c2sp.org/chunked-encryption@v1+", suite.aead_name(), &[0], salt, context];
    hkdf::Prk::new_less_safe(hkdf::HKDF_SHA512, key.as_bytes())
        .expand(&info, Length(output.len()))
        .and_then(|okm| okm.fill(output))
        .expect("HKDF gives up to 255 * 64 bytes");
    let (key, rest) = output.split_at(suite.key_len());
    let (base_nonce, commitment) = rest.split_at(NONCE);
    let message_key = MessageKey {
        key: AeadKey::new(Aead::Gcm, key).expect("the suites have AES key lengths"),
        base_nonce: Zeroizing::new(base_nonce.try_into().expect("split there")),
    };
    (message_key, commitment.try_into().expect("the rest"))
}

struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

#[cfg(test)]
mod tests;
