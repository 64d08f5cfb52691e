//! The classes, with the names and the order of arguments of pyca cryptography.

use lockstep::aead::{Aead, Direction};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use super::call::Header;
use super::{Cipher, TAG, generate_key};
use crate::buffer::{Input, Memory};
use crate::error::ensure;

/// The name of the class of a mode, and the smallest and the largest length of its nonces in bytes. The lengths are those of pyca
/// cryptography; the mode can have more.
#[inline]
fn class_of(mode: Aead) -> (&'static str, usize, usize) {
    match mode {
        Aead::Gcm => ("AESGCM", 8, 128),
        Aead::GcmSiv => ("AESGCMSIV", 12, 12),
        Aead::Ocb => ("AESOCB3", 12, 15),
        Aead::Siv => ("AESSIV", 0, usize::MAX),
        Aead::Ccm => ("AESCCM", 7, 13),
        Aead::Xaes => ("XAES256GCM", 24, 24),
        Aead::Eax => ("AESEAX", 8, 128),
    }
}

/// The name of the class of a mode.
pub(super) fn name(mode: Aead) -> &'static str {
    class_of(mode).0
}

/// The mode of a class.
///
/// # Errors
/// `TypeError` if no class has this name.
pub(super) fn mode_of_class(class: &str) -> PyResult<Aead> {
    let mode = Aead::ALL.into_iter().find(|mode| name(*mode) == class);
    mode.ok_or_else(|| PyTypeError::new_err("the mode must be a class of lockstep.aead"))
}

/// True if the class of a mode has tags of this length. Only the class of CCM has tags of less than 16 bytes: short tags are easy to
/// forge.
pub(super) fn has_tag(mode: Aead, len: usize) -> bool {
    len == TAG || mode == Aead::Ccm && mode.row().tags.contains(len)
}

/// Checks the length of a nonce.
#[inline]
pub(super) fn check_nonce(mode: Aead, nonce: &[u8]) -> PyResult<()> {
    let (_, first, last) = class_of(mode);
    ensure((first..=last).contains(&nonce.len()), || match first == last {
        true => format!("Nonce must be {first} bytes long"),
        false => format!("Nonce must be between {first} and {last} bytes"),
    })
}

/// Calls a function with a nonce and a string of associated data.
#[inline]
fn with_nonce<T>(
    nonce: &Bound<'_, PyAny>,
    aad: Option<&Bound<'_, PyAny>>,
    call: impl FnOnce(Header<'_>) -> PyResult<T>,
) -> PyResult<T> {
    let nonce = Input::new(nonce)?;
    let aad = if let Some(aad) = aad { Input::new(aad)? } else { Input::EMPTY };
    call(Header { nonce: &nonce, aad: &[&aad], places: &[nonce.memory(), aad.memory()] })
}

/// Calls a function with a list of strings of associated data.
fn with_strings<T>(
    aad: Option<&Bound<'_, PyList>>,
    call: impl FnOnce(Header<'_>) -> PyResult<T>,
) -> PyResult<T> {
    let inputs = aad.into_iter().flatten().map(Input::owned).collect::<PyResult<Vec<_>>>()?;
    let (strings, places): (Vec<&[u8]>, Vec<Memory>) =
        inputs.iter().map(|input| (&**input, input.memory())).unzip();
    call(Header { nonce: &[], aad: &strings, places: &places })
}

/// Defines the classes of the modes. The elements of an entry are: the name of the class; its mode; the function that reads the nonce
/// and the associated data; the name of the argument for the nonce, if the mode has nonces; the type of the associated data; the name
/// of the argument for the length of tags, if it can be chosen, and this length; the default of `bit_length`, if there is a default.
macro_rules! classes {
    ($(
        $(#[$doc:meta])*
        $name:ident, $mode:ident, $with:ident $([$nonce:ident])?, $Strings:ty,
        ($($tag_length:ident)?), $tag:expr $(, $bits:literal)?;
    )*) => {$(
        $(#[$doc])*
        #[allow(clippy::upper_case_acronyms, reason = "the name in Python")]
        #[pyclass(frozen, module = "lockstep.aead")]
        struct $name(Cipher);

        #[pymethods]
        impl $name {
            #[new]
            #[pyo3(signature = (key $(, $tag_length = None)?))]
            fn new(key: Input<'_> $(, $tag_length: Option<usize>)?) -> PyResult<$name> {
                Ok($name(Cipher::new(Aead::$mode, &key, $tag)?))
            }

            fn __repr__(&self) -> String {
                self.0.repr()
            }

            /// A random key of bit_length bits, from the operating system.
            ///
            /// Raises ValueError for a length that the mode does not have.
            #[staticmethod]
            #[pyo3(signature = (bit_length $(= $bits)?))]
            fn generate_key(py: Python<'_>, bit_length: usize) -> PyResult<Bound<'_, PyBytes>> {
                generate_key(py, Aead::$mode, bit_length)
            }

            /// Encrypts and authenticates data; authenticates associated_data (None for no data).
            ///
            /// Returns ciphertext and tag: len(data) bytes and the tag, which AESSIV puts before the ciphertext.
            /// Raises ValueError for a nonce of a wrong length, for data that are too long, and for more than 126 buffers (AESSIV).
            fn encrypt<'py>(
                &self,
                $($nonce: &Bound<'_, PyAny>,)?
                data: &Bound<'py, PyAny>,
                associated_data: Option<$Strings>,
            ) -> PyResult<Bound<'py, PyAny>> {
                $with($($nonce,)? associated_data, |header| self.0.run(Direction::Encrypt, header, data))
            }

            /// Checks data, which are ciphertext and tag, and associated_data, and decrypts.
            ///
            /// Returns the plaintext. Raises InvalidTag if anything is not authentic, ValueError for a nonce of a wrong length.
            fn decrypt<'py>(
                &self,
                $($nonce: &Bound<'_, PyAny>,)?
                data: &Bound<'py, PyAny>,
                associated_data: Option<$Strings>,
            ) -> PyResult<Bound<'py, PyAny>> {
                $with($($nonce,)? associated_data, |header| self.0.run(Direction::Decrypt, header, data))
            }

            /// Does the same as encrypt, but writes the result to buf, a writable buffer with the length of data and tag.
            /// For work in place, data is the memory of the ciphertext in buf: its first len(data) bytes, or the last ones for AESSIV.
            ///
            /// Returns the number of bytes written. Raises ValueError also for a buffer of another length or one that partly
            /// overlaps an argument, TypeError for a read-only buffer.
            fn encrypt_into(
                &self,
                $($nonce: &Bound<'_, PyAny>,)?
                data: &Bound<'_, PyAny>,
                associated_data: Option<$Strings>,
                buf: &Bound<'_, PyAny>,
            ) -> PyResult<usize> {
                $with($($nonce,)? associated_data, |header| self.0.run_into(Direction::Encrypt, header, data, buf))
            }

            /// Does the same as decrypt, but writes the result to buf, a writable buffer with the length of data without the
            /// tag. For work in place, buf is the memory of the ciphertext in data. The buffer is zeroed if InvalidTag is
            /// raised.
            ///
            /// Returns the number of bytes written. Raises ValueError also for a buffer of another length or one that partly
            /// overlaps an argument, TypeError for a read-only buffer.
            fn decrypt_into(
                &self,
                $($nonce: &Bound<'_, PyAny>,)?
                data: &Bound<'_, PyAny>,
                associated_data: Option<$Strings>,
                buf: &Bound<'_, PyAny>,
            ) -> PyResult<usize> {
                $with($($nonce,)? associated_data, |header| self.0.run_into(Direction::Decrypt, header, data, buf))
            }
        }
    )*

    /// Adds the classes to the module, and adds `AEADS`, the tuple of all classes.
    ///
    /// # Errors
    /// `AttributeError` if a mode has no class.
    pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
        $(module.add_class::<$name>()?;)*
        let classes = Aead::ALL.iter().map(|mode| module.getattr(name(*mode)));
        module.add("AEADS", PyTuple::new(module.py(), classes.collect::<PyResult<Vec<_>>>()?)?)
    }};
}

classes! {
    /// AES-GCM (SP 800-38D) with a key of 16, 24 or 32 bytes, nonces of 8 to 128 bytes (12 are best) and tags of 16 bytes.
    ///
    /// A nonce must never be used twice with one key.
    AESGCM, Gcm, with_nonce [nonce], &Bound<'_, PyAny>, (), TAG;

    /// AES-GCM-SIV (RFC 8452) with a key of 16 or 32 bytes, nonces of 12 bytes and tags of 16 bytes.
    ///
    /// A nonce that is used twice reveals only whether two messages are equal.
    AESGCMSIV, GcmSiv, with_nonce [nonce], &Bound<'_, PyAny>, (), TAG;

    /// AES-OCB3 (RFC 7253) with a key of 16, 24 or 32 bytes, nonces of 12 to 15 bytes and tags of 16 bytes.
    ///
    /// A nonce must never be used twice with one key.
    AESOCB3, Ocb, with_nonce [nonce], &Bound<'_, PyAny>, (), TAG;

    /// AES-CCM (SP 800-38C) with a key of 16, 24 or 32 bytes, nonces of 7 to 13 bytes and tags of 4, 6, 8, 10, 12, 14 or 16
    /// bytes.
    ///
    /// A nonce must never be used twice with one key. With a nonce of n bytes, a message has less than 2 ** (8 * (15 - n)) bytes.
    AESCCM, Ccm, with_nonce [nonce], &Bound<'_, PyAny>, (tag_length), tag_length.unwrap_or(TAG);

    /// XAES-256-GCM (C2SP) with a key of 32 bytes, nonces of 24 bytes, which may be random, and tags of 16 bytes.
    ///
    /// A nonce must never be used twice with one key.
    XAES256GCM, Xaes, with_nonce [nonce], &Bound<'_, PyAny>, (), TAG, 256;

    /// AES-EAX (Bellare, Rogaway and Wagner, 2004) with a key of 16, 24 or 32 bytes, nonces of 8 to 128 bytes, which may be random if
    /// they have 16 bytes, and tags of 16 bytes.
    ///
    /// A nonce must never be used twice with one key.
    AESEAX, Eax, with_nonce [nonce], &Bound<'_, PyAny>, (), TAG;

    /// AES-SIV (RFC 5297) with a key of 32, 48 or 64 bytes and tags of 16 bytes, which precede the ciphertext. The associated data are a
    /// list of at most 126 buffers.
    ///
    /// There is no nonce: the same message is encrypted to the same bytes, unless the associated data differ.
    AESSIV, Siv, with_strings, &Bound<'_, PyList>, (), TAG;
}
