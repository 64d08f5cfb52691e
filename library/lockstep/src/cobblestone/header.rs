//! The header, and the values derived from it.

use hmac::{Hmac, KeyInit, Mac};
use lockstep_core::stack;
use lockstep_modes::aead::{Aead, AeadKey};
use sha2::Sha512;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::format::{COMMITMENT, SALT, Suite};
use super::key::{FileKey, random};
use crate::error::{Error, Result};
use crate::foreign;

const NONCE: usize = 12;

/// The key and base nonce for the chunks of one message. They are for programs whose AES cannot be called by this crate, such as
/// the asynchronous AES of a browser. Such a program must seal each chunk once, mark the end by a chunk of fewer than
/// [`CHUNK`](super::CHUNK) bytes, and release no plaintext of a chunk before its tag is verified.
pub struct MessageKey {
    pub(super) key: AeadKey,
    base_nonce: Zeroizing<[u8; NONCE]>,
}

impl MessageKey {
    /// Creates the header of a new message, with a random salt, and derives the key of the message.
    ///
    /// # Errors
    /// [`Error::Random`].
    pub fn create(key: &FileKey, context: &[u8]) -> Result<(Vec<u8>, MessageKey)> {
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
    pub fn check(
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

    /// The key of AES-GCM for all chunks.
    pub fn aead_key(&self) -> &AeadKey {
        &self.key
    }

    /// The nonce of a chunk: the base nonce XOR the number of the chunk, big-endian.
    pub fn nonce(&self, chunk: u64) -> [u8; NONCE] {
        let mut nonce = *self.base_nonce;
        for (n, k) in nonce[NONCE - 8..].iter_mut().zip(chunk.to_be_bytes()) {
            *n ^= k;
        }
        nonce
    }
}

/// key || base nonce || commitment = HKDF-Expand(input key, info).
fn derive(key: &FileKey, salt: &[u8; SALT], context: &[u8]) -> (MessageKey, [u8; COMMITMENT]) {
    let derived = derive_in_own_frame(key, salt, context);
    // The stack is wiped, because HMAC moves its state by value, and each move can leave a copy on the stack.
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
    expand(key.as_bytes(), &info, output);
    let (key, rest) = output.split_at(suite.key_len());
    let (base_nonce, commitment) = rest.split_at(NONCE);
    let message_key = MessageKey {
        key: AeadKey::new(Aead::Gcm, key).expect("the suites have AES key lengths"),
        base_nonce: Zeroizing::new(base_nonce.try_into().expect("split there")),
    };
    (message_key, commitment.try_into().expect("the rest"))
}

/// HKDF-Expand with SHA-512 (RFC 5869, 2.3), for an output of at most 255 * 64 bytes. The crate `hkdf` is not used, because it refuses
/// keys shorter than the hash.
fn expand(key: &[u8], info: &[&[u8]], output: &mut [u8]) {
    let mut block = Zeroizing::new([0; 64]);
    for (number, part) in (1_u8..).zip(output.chunks_mut(64)) {
        let mut hmac = Hmac::<Sha512>::new_from_slice(key).expect("HMAC takes keys of any length");
        if number > 1 {
            hmac.update(&*block);
        }
        info.iter().for_each(|piece| hmac.update(piece));
        hmac.update(&[number]);
        block.copy_from_slice(&hmac.finalize().into_bytes());
        part.copy_from_slice(&block[..part.len()]);
    }
}

#[cfg(test)]
mod tests;
