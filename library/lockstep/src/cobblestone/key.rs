//! The user's key.

use std::fmt;

use lockstep_core::{Key, KeySize};
use zeroize::Zeroizing;

use super::format::Suite;
use crate::error::{Error, Result};

/// A file key: 32 random bytes for Cobblestone-256, or 16 random bytes for Cobblestone-128. One key can encrypt any number of
/// messages. The key is wiped on drop, and the `Debug` output does not contain the key.
#[derive(Clone)]
pub struct FileKey(Key);

impl FileKey {
    /// Generates a key for [`Suite::Cobblestone256`] with the operating system's random generator.
    ///
    /// # Errors
    /// [`Error::Random`].
    pub fn generate() -> Result<FileKey> {
        FileKey::generate_for(Suite::Cobblestone256)
    }

    /// Generates a key for this suite with the operating system's random generator.
    ///
    /// # Errors
    /// [`Error::Random`].
    pub fn generate_for(suite: Suite) -> Result<FileKey> {
        let mut bytes = Zeroizing::new([0; 32]);
        let bytes = &mut bytes[..suite.key_len()];
        random(bytes)?;
        FileKey::from_bytes(bytes)
    }

    /// Creates a key from its 32 or 16 bytes, which must be uniformly random. They must not be a password or the hash
    /// of a password.
    ///
    /// # Errors
    /// [`Error::KeyLength`] for any other length.
    pub fn from_bytes(bytes: &[u8]) -> Result<FileKey> {
        match bytes.len() {
            16 | 32 => Ok(FileKey(Key::new(bytes)?)),
            got => Err(Error::KeyLength { got }),
        }
    }

    /// The Cobblestone suite that the length of the key selects.
    pub fn suite(&self) -> Suite {
        match self.0.size() {
            KeySize::Aes128 => Suite::Cobblestone128,
            _ => Suite::Cobblestone256,
        }
    }

    /// The bytes of the key, to be stored or wrapped. Keep them secret.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl fmt::Debug for FileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileKey({})", self.suite())
    }
}

/// Fills memory with random bytes from the operating system.
///
/// # Errors
/// [`Error::Random`].
pub fn random(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes).map_err(|error| Error::Random { reason: error.to_string() })
}

#[cfg(test)]
mod tests;
