//! Sizes and offsets of the format.

use crate::error::{Error, Result, ensure};

/// Plaintext bytes of each chunk except the last chunk, which has fewer bytes.
pub const CHUNK: usize = 16384;
/// Bytes of the tag that ends each chunk.
pub const TAG: usize = 16;
/// Bytes of a full chunk with its tag.
pub const ENCRYPTED_CHUNK: usize = CHUNK + TAG;
/// Bytes of the salt.
pub(super) const SALT: usize = 24;
/// Bytes of the commitment.
pub(super) const COMMITMENT: usize = 32;
/// Bytes before the first chunk: salt and commitment.
pub const HEADER: usize = SALT + COMMITMENT;
const _: () = assert!(HEADER as u64 == crate::error::HEADER);
/// Maximum number of chunks of a message.
pub const MAX_CHUNKS: u64 = 1 << 38;
/// Maximum plaintext bytes of a message. This is one byte less than the size of all chunks, since the last chunk is
/// never full.
pub const MAX_PLAINTEXT: u64 = MAX_CHUNKS * CHUNK as u64 - 1;

/// The two parameter sets of the format that this crate supports. Both parameter sets derive keys by HKDF-Expand with SHA-512.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Suite {
    /// AES-128-GCM and keys of 16 bytes.
    Cobblestone128,
    /// AES-256-GCM and keys of 32 bytes; the default.
    Cobblestone256,
}

impl Suite {
    /// Bytes of a key.
    pub const fn key_len(self) -> usize {
        self.select(16, 32)
    }

    /// The name, such as `Cobblestone-256`.
    pub const fn name(self) -> &'static str {
        self.select("Cobblestone-128", "Cobblestone-256")
    }

    /// The name of the AEAD in IANA's registry, which is an input of the key derivation.
    pub(super) const fn aead_name(self) -> &'static [u8] {
        self.select(b"AEAD_AES_128_GCM", b"AEAD_AES_256_GCM")
    }

    const fn select<T: Copy>(self, of_128: T, of_256: T) -> T {
        match self {
            Suite::Cobblestone128 => of_128,
            Suite::Cobblestone256 => of_256,
        }
    }
}

impl std::fmt::Display for Suite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Length of the message for a plaintext of this length, in bytes.
///
/// # Errors
/// [`Error::TooLong`] beyond [`MAX_PLAINTEXT`].
pub fn ciphertext_len(plaintext_len: u64) -> Result<u64> {
    ensure(plaintext_len <= MAX_PLAINTEXT, || Error::TooLong)?;
    let chunks = plaintext_len / CHUNK as u64 + 1;
    Ok(HEADER as u64 + plaintext_len + chunks * TAG as u64)
}

/// Length of the plaintext of a message of this length, in bytes.
///
/// # Errors
/// [`Error::Truncated`] for a length that no complete message has: the end of the message must be missing.
/// [`Error::TooLong`] for more than [`MAX_CHUNKS`] chunks.
pub fn plaintext_len(ciphertext_len: u64) -> Result<u64> {
    let truncated = Error::Truncated { got: ciphertext_len };
    let Some(body) = ciphertext_len.checked_sub(HEADER as u64) else { return Err(truncated) };
    let (full, last) = (body / ENCRYPTED_CHUNK as u64, body % ENCRYPTED_CHUNK as u64);
    match last.checked_sub(TAG as u64) {
        None if full <= MAX_CHUNKS => Err(truncated),
        Some(last) if full < MAX_CHUNKS => Ok(full * CHUNK as u64 + last),
        _ => Err(Error::TooLong),
    }
}

/// The offset of a chunk in a message.
pub(super) const fn chunk_offset(chunk: u64) -> u64 {
    HEADER as u64 + chunk * ENCRYPTED_CHUNK as u64
}

/// Checks that a message may have this number of full chunks before its last chunk.
pub(super) fn check_full_chunks(full: u64) -> Result<()> {
    ensure(full < MAX_CHUNKS, || Error::TooLong)
}

#[cfg(test)]
mod tests;
