//! Cobblestone: C2SP chunked encryption, version 1 (<https://c2sp.org/chunked-encryption>).
//!
//! A message is `salt (24) || commitment (32) || chunks`. Each chunk is 16384 bytes of plaintext under AES-GCM with its
//! tag of 16 bytes; the last is always shorter and may be empty, so that truncation at a chunk boundary is detected.

use crate::hkdf;
use crate::{Aes, gcm};

const SALT: usize = 24;
const NONCE: usize = 12;
const COMMITMENT: usize = 32;
const CHUNK: usize = 16384;
const TAG: usize = 16;

/// The two instances of C2SP chunked encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aead {
    /// AES-128-GCM, and an input key of 16 bytes.
    Cobblestone128,
    /// AES-256-GCM, and an input key of 32 bytes.
    Cobblestone256,
}

impl Aead {
    /// The name of the AEAD in the registry of RFC 5116.
    fn name(self) -> &'static [u8] {
        match self {
            Aead::Cobblestone128 => b"AEAD_AES_128_GCM",
            Aead::Cobblestone256 => b"AEAD_AES_256_GCM",
        }
    }

    fn key_len(self) -> usize {
        match self {
            Aead::Cobblestone128 => 16,
            Aead::Cobblestone256 => 32,
        }
    }
}

/// Encrypts a message with a given salt (C2SP chunked encryption, "Encryption").
///
/// # Panics
///
/// If `key` does not have the instance's length, 16 or 32 bytes.
pub fn seal(aead: Aead, key: &[u8], salt: &[u8; 24], context: &[u8], plaintext: &[u8]) -> Vec<u8> {
    assert_eq!(key.len(), aead.key_len(), "bytes of a key for {aead:?}");
    let derived = derive(aead, key, salt, context);
    let mut message = [&salt[..], &derived.commitment].concat();

    let full_chunks = plaintext.len() / CHUNK;
    for k in 0..=full_chunks {
        let chunk = &plaintext[k * CHUNK..plaintext.len().min((k + 1) * CHUNK)];
        let (ciphertext, tag) = gcm::seal(&derived.aes, &derived.nonce(k), &[], chunk);
        message.extend(ciphertext);
        message.extend(tag);
    }
    message
}

/// Decrypts a message (C2SP chunked encryption).
///
/// `None` if the key has the wrong length, the commitment does not match (another key or context), a tag is wrong, or the
/// message does not end with its last chunk.
pub fn open(aead: Aead, key: &[u8], context: &[u8], message: &[u8]) -> Option<Vec<u8>> {
    if key.len() != aead.key_len() {
        return None;
    }
    let (salt, rest) = message.split_first_chunk::<SALT>()?;
    let (commitment, chunks) = rest.split_first_chunk::<COMMITMENT>()?;
    let derived = derive(aead, key, salt, context);
    if derived.commitment != *commitment {
        return None;
    }

    let full_chunks = chunks.len() / (CHUNK + TAG);
    let mut plaintext = Vec::new();
    for k in 0..=full_chunks {
        let chunk = &chunks[k * (CHUNK + TAG)..chunks.len().min((k + 1) * (CHUNK + TAG))];
        let (ciphertext, tag) = chunk.split_last_chunk::<TAG>()?;
        plaintext.extend(gcm::open(&derived.aes, &derived.nonce(k), &[], ciphertext, tag)?);
    }
    Some(plaintext)
}

struct Derived {
    aes: Aes,
    base_nonce: [u8; NONCE],
    commitment: [u8; COMMITMENT],
}

impl Derived {
    /// The base nonce XOR the chunk's index as a big-endian integer.
    fn nonce(&self, k: usize) -> [u8; NONCE] {
        let mut nonce = self.base_nonce;
        for (n, k) in nonce.iter_mut().rev().zip((k as u64).to_le_bytes()) {
            *n ^= k;
        }
        nonce
    }
}

/// key || base nonce || commitment = HKDF-Expand(input key, info) with SHA-512 (C2SP chunked
/// encryption).
fn derive(aead: Aead, key: &[u8], salt: &[u8; SALT], context: &[u8]) -> Derived {
    let info = [b"c2sp.org/chunked-encryption@v1+", aead.name(), &[0x00], salt, context].concat();
    let okm = hkdf::expand(key, &info, aead.key_len() + NONCE + COMMITMENT);
    let (key, rest) = okm.split_at(aead.key_len());
    let (base_nonce, commitment) = rest.split_at(NONCE);
    Derived {
        aes: Aes::new(key),
        base_nonce: base_nonce.try_into().expect("split there"),
        commitment: commitment.try_into().expect("the rest"),
    }
}

#[cfg(test)]
mod tests;
