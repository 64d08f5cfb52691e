//! The authenticated modes: the classes of `lockstep.aead`.

mod call;
mod classes;
mod gcm;
mod many;
mod tensor;

pub(crate) use classes::{AESCCM, AESGCM, AESGCMSIV, AESOCB3, AESSIV, XAES256GCM};
pub(crate) use many::{many_in_buffer, many_in_list};

use std::borrow::Cow;

use lockstep::hazmat::mode::{Aead, AeadKey};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::buffer::new_bytes;
use crate::error::from_core;
use crate::forks::Origin;
use crate::modes::class_name;
use gcm::SmallGcm;

/// The lengths of the tags of CCM in bytes (SP 800-38C, appendix A.1).
const CCM_TAGS: [usize; 7] = [4, 6, 8, 10, 12, 14, 16];

/// A key with the parameters of its mode.
pub(crate) struct Cipher {
    key: AeadKey,
    /// The length of tags in bytes.
    tag: usize,
    /// GCM for small calls.
    gcm: Option<SmallGcm>,
    origin: Origin,
}

impl Cipher {
    fn new(mode: Aead, key: &[u8], tag: usize) -> PyResult<Cipher> {
        if !mode.key_lengths().contains(&key.len()) {
            return Err(PyValueError::new_err(format!(
                "{} key must be {} bits.",
                class_name(mode),
                bits(mode)
            )));
        }
        let key = AeadKey::new(mode, key).map_err(from_core)?;
        Ok(Cipher { key, tag, gcm: (mode == Aead::Gcm).then(SmallGcm::new), origin: Origin::new() })
    }

    fn mode(&self) -> Aead {
        self.key.mode()
    }

    /// The key for a call. In a child process it is a copy if another thread may have been expanding the key during the fork.
    fn key(&self) -> Cow<'_, AeadKey> {
        if self.origin.is_usable() { Cow::Borrowed(&self.key) } else { Cow::Owned(self.key.clone()) }
    }

    /// Checks the length of a nonce.
    #[inline]
    fn check_nonce(&self, nonce: &[u8]) -> PyResult<()> {
        let (lengths, rule) = match self.mode() {
            Aead::Gcm => (8..=128, "Nonce must be between 8 and 128 bytes"),
            Aead::GcmSiv => (12..=12, "Nonce must be 12 bytes long"),
            Aead::Ocb => (12..=15, "Nonce must be between 12 and 15 bytes"),
            Aead::Ccm => (7..=13, "Nonce must be between 7 and 13 bytes"),
            Aead::Xaes => (24..=24, "Nonce must be 24 bytes long"),
            Aead::Siv => (0..=usize::MAX, ""),
        };
        if lengths.contains(&nonce.len()) { Ok(()) } else { Err(PyValueError::new_err(rule)) }
    }
}

/// The lengths of a mode's keys in bits, in words.
fn bits(mode: Aead) -> &'static str {
    match mode {
        Aead::Gcm | Aead::Ocb | Aead::Ccm => "128, 192, or 256",
        Aead::GcmSiv => "128 or 256",
        Aead::Siv => "256, 384, or 512",
        Aead::Xaes => "256",
    }
}

/// A random key from the operating system.
fn generate_key(py: Python<'_>, mode: Aead, bit_length: usize) -> PyResult<Bound<'_, PyBytes>> {
    if !bit_length.is_multiple_of(8) || !mode.key_lengths().contains(&(bit_length / 8)) {
        return Err(PyValueError::new_err(format!("bit_length must be {}", bits(mode))));
    }
    new_bytes(py, bit_length / 8, |key| {
        getrandom::fill(key).map_err(|error| {
            let message = format!("the operating system returned no random bytes: {error}");
            pyo3::exceptions::PyOSError::new_err(message)
        })
    })
}
