//! The classes, with the names and the order of arguments of pyca cryptography.

use std::ops::RangeInclusive;

use lockstep::aead::Aead;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use super::call::Header;
use super::{Cipher, generate_key};
use crate::buffer::{Export, Memory};

/// The length of full tags in bytes.
pub(crate) const TAG: usize = 16;

/// The class of a mode. It can have fewer lengths than the mode: those of pyca cryptography.
pub(crate) struct Class {
    pub(crate) name: &'static str,
    /// The lengths of nonces in bytes.
    nonces: RangeInclusive<usize>,
    /// True if all lengths of tags can be used. The other modes could verify a part of a tag, which is easy to forge.
    takes_short_tags: bool,
}

/// The classes, in the order of [`Aead::ALL`].
static CLASSES: [Class; Aead::ALL.len()] = [
    Class { name: "AESGCM", nonces: 8..=128, takes_short_tags: false },
    Class { name: "AESGCMSIV", nonces: 12..=12, takes_short_tags: false },
    Class { name: "AESOCB3", nonces: 12..=15, takes_short_tags: false },
    Class { name: "AESSIV", nonces: 0..=usize::MAX, takes_short_tags: false },
    Class { name: "AESCCM", nonces: 7..=13, takes_short_tags: true },
    Class { name: "XAES256GCM", nonces: 24..=24, takes_short_tags: false },
    Class { name: "AESEAX", nonces: 8..=128, takes_short_tags: false },
];

impl Class {
    #[inline]
    pub(crate) fn of(mode: Aead) -> &'static Class {
        &CLASSES[mode as usize]
    }

    /// True if the class has tags of this length.
    pub(crate) fn has_tag(mode: Aead, len: usize) -> bool {
        len == TAG || Class::of(mode).takes_short_tags && mode.row().tags.contains(len)
    }

    /// Checks the length of a nonce.
    #[inline]
    pub(crate) fn check_nonce(&self, nonce: &[u8]) -> PyResult<()> {
        if self.nonces.contains(&nonce.len()) { Ok(()) } else { Err(self.bad_nonce()) }
    }

    #[cold]
    fn bad_nonce(&self) -> PyErr {
        let (first, last) = (self.nonces.start(), self.nonces.end());
        PyValueError::new_err(match first == last {
            true => format!("Nonce must be {first} bytes long"),
            false => format!("Nonce must be between {first} and {last} bytes"),
        })
    }
}

/// The mode of a class.
///
/// # Errors
/// `TypeError` if no class has this name.
pub(crate) fn mode_of_class(class: &str) -> PyResult<Aead> {
    let mode = Aead::ALL.into_iter().find(|mode| Class::of(*mode).name == class);
    mode.ok_or_else(|| PyTypeError::new_err("the mode must be a class of lockstep.aead"))
}

/// Adds the classes to the module, and the tuple `AEADS` of them.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<AESGCM>()?;
    module.add_class::<AESGCMSIV>()?;
    module.add_class::<AESOCB3>()?;
    module.add_class::<AESSIV>()?;
    module.add_class::<AESCCM>()?;
    module.add_class::<XAES256GCM>()?;
    module.add_class::<AESEAX>()?;
    let classes = CLASSES.iter().map(|class| module.getattr(class.name)).collect::<PyResult<Vec<_>>>()?;
    module.add("AEADS", PyTuple::new(module.py(), classes)?)
}

/// Calls a function with a nonce and a string of associated data as slices.
#[inline]
fn with_nonce<T>(
    nonce: &Bound<'_, PyAny>,
    aad: Option<&Bound<'_, PyAny>>,
    call: impl FnOnce(Header<'_>) -> PyResult<T>,
) -> PyResult<T> {
    let (mut nonce_export, mut aad_export) = (Export::new(), Export::new());
    let (nonce, nonce_place) = nonce_export.read_and_locate(nonce)?;
    let (aad, aad_place) = match aad {
        Some(object) => aad_export.read_and_locate(object)?,
        None => (&[][..], Memory::EMPTY),
    };
    call(Header { nonce, aad: &[aad], places: &[nonce_place, aad_place] })
}

/// Calls a function with a list of strings of associated data as slices.
fn with_strings<T>(
    aad: Option<&Bound<'_, PyList>>,
    call: impl FnOnce(Header<'_>) -> PyResult<T>,
) -> PyResult<T> {
    let objects: Vec<Bound<'_, PyAny>> = aad.map_or_else(Vec::new, |list| list.iter().collect());
    let mut exports: Vec<Export> = objects.iter().map(|_| Export::new()).collect();
    let strings = exports.iter_mut().zip(&objects).map(|(export, object)| export.read_and_locate(object));
    let (strings, places): (Vec<&[u8]>, Vec<Memory>) =
        strings.collect::<PyResult<Vec<_>>>()?.into_iter().unzip();
    call(Header { nonce: &[], aad: &strings, places: &places })
}

/// A class of a mode with a nonce.
macro_rules! class {
    ($(#[$doc:meta])* $name:ident, $mode:expr, ($($argument:ident: $type:ty = $default:expr)?), $tag:expr, $($bits:literal)?) => {
        $(#[$doc])*
        #[allow(clippy::upper_case_acronyms, reason = "the name in Python")]
        #[pyclass(frozen, module = "lockstep.aead")]
        struct $name(Cipher);

        #[pymethods]
        impl $name {
            #[new]
            #[pyo3(signature = (key $(, $argument = $default)?))]
            fn new(key: &Bound<'_, PyAny> $(, $argument: $type)?) -> PyResult<$name> {
                Ok($name(Cipher::new($mode, Export::new().read(key)?, $tag)?))
            }

            /// A random key of bit_length bits, from the operating system.
            ///
            /// Raises ValueError for a length that the mode does not have.
            #[staticmethod]
            #[pyo3(signature = (bit_length $(= $bits)?))]
            fn generate_key(py: Python<'_>, bit_length: usize) -> PyResult<Bound<'_, PyBytes>> {
                generate_key(py, $mode, bit_length)
            }

            /// Encrypts and authenticates data; authenticates associated_data (None for no data).
            ///
            /// Returns ciphertext and tag: len(data) bytes and the tag.
            /// Raises ValueError for a nonce of a wrong length or data that are too long.
            fn encrypt<'py>(
                &self,
                nonce: &Bound<'py, PyAny>,
                data: &Bound<'py, PyAny>,
                associated_data: Option<&Bound<'py, PyAny>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                with_nonce(nonce, associated_data, |header| self.0.encrypt(header, data))
            }

            /// Checks data, which are ciphertext and tag, and associated_data, and decrypts.
            ///
            /// Returns the plaintext. Raises InvalidTag if anything is not authentic, ValueError for a nonce of a wrong length.
            fn decrypt<'py>(
                &self,
                nonce: &Bound<'py, PyAny>,
                data: &Bound<'py, PyAny>,
                associated_data: Option<&Bound<'py, PyAny>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                with_nonce(nonce, associated_data, |header| self.0.decrypt(header, data))
            }

            /// Does the same as encrypt, but writes the result to buf, a writable buffer with the length of data and tag.
            /// For work in place, data is the memory of the first len(data) bytes of buf.
            ///
            /// Returns the number of bytes written. Raises ValueError also for a buffer of another length or one that partly
            /// overlaps an argument, TypeError for a read-only buffer.
            fn encrypt_into(
                &self,
                nonce: &Bound<'_, PyAny>,
                data: &Bound<'_, PyAny>,
                associated_data: Option<&Bound<'_, PyAny>>,
                buf: &Bound<'_, PyAny>,
            ) -> PyResult<usize> {
                with_nonce(nonce, associated_data, |header| self.0.encrypt_into(header, data, buf))
            }

            /// Does the same as decrypt, but writes the result to buf, a writable buffer with the length of data without the
            /// tag. For work in place, buf is the memory of the ciphertext in data. The buffer is zeroed if InvalidTag is
            /// raised.
            ///
            /// Returns the number of bytes written. Raises ValueError also for a buffer of another length or one that partly
            /// overlaps an argument, TypeError for a read-only buffer.
            fn decrypt_into(
                &self,
                nonce: &Bound<'_, PyAny>,
                data: &Bound<'_, PyAny>,
                associated_data: Option<&Bound<'_, PyAny>>,
                buf: &Bound<'_, PyAny>,
            ) -> PyResult<usize> {
                with_nonce(nonce, associated_data, |header| self.0.decrypt_into(header, data, buf))
            }
        }
    };
}

class! {
    /// AES-GCM (SP 800-38D) with a key of 16, 24 or 32 bytes, nonces of 8 to 128 bytes (12 are best) and tags of 16 bytes.
    ///
    /// A nonce must never be used twice with one key.
    AESGCM, Aead::Gcm, (), TAG,
}

class! {
    /// AES-GCM-SIV (RFC 8452) with a key of 16 or 32 bytes, nonces of 12 bytes and tags of 16 bytes.
    ///
    /// A nonce that is used twice reveals only whether two messages are equal.
    AESGCMSIV, Aead::GcmSiv, (), TAG,
}

class! {
    /// AES-OCB3 (RFC 7253) with a key of 16, 24 or 32 bytes, nonces of 12 to 15 bytes and tags of 16 bytes.
    ///
    /// A nonce must never be used twice with one key.
    AESOCB3, Aead::Ocb, (), TAG,
}

class! {
    /// AES-CCM (SP 800-38C) with a key of 16, 24 or 32 bytes, nonces of 7 to 13 bytes and tags of 4, 6, 8, 10, 12, 14 or 16
    /// bytes.
    ///
    /// A nonce must never be used twice with one key. With a nonce of n bytes, a message has less than 2 ** (8 * (15 - n)) bytes.
    AESCCM, Aead::Ccm, (tag_length: Option<usize> = None), tag_length.unwrap_or(TAG),
}

class! {
    /// XAES-256-GCM (C2SP) with a key of 32 bytes, nonces of 24 bytes, which may be random, and tags of 16 bytes.
    ///
    /// A nonce must never be used twice with one key.
    XAES256GCM, Aead::Xaes, (), TAG, 256
}

class! {
    /// AES-EAX (Bellare, Rogaway and Wagner, 2004) with a key of 16, 24 or 32 bytes, nonces of 8 to 128 bytes, which may be random if
    /// they have 16 bytes, and tags of 16 bytes.
    ///
    /// A nonce must never be used twice with one key.
    AESEAX, Aead::Eax, (), TAG,
}

/// AES-SIV (RFC 5297) with a key of 32, 48 or 64 bytes and tags of 16 bytes, which precede the ciphertext.
///
/// There is no nonce: the same message is encrypted to the same bytes, unless the associated data differ.
#[allow(clippy::upper_case_acronyms, reason = "the name in Python")]
#[pyclass(frozen, module = "lockstep.aead")]
struct AESSIV(Cipher);

#[pymethods]
impl AESSIV {
    #[new]
    fn new(key: &Bound<'_, PyAny>) -> PyResult<AESSIV> {
        Ok(AESSIV(Cipher::new(Aead::Siv, Export::new().read(key)?, TAG)?))
    }

    /// A random key of bit_length bits, from the operating system.
    ///
    /// Raises ValueError for a length other than 256, 384 and 512.
    #[staticmethod]
    fn generate_key(py: Python<'_>, bit_length: usize) -> PyResult<Bound<'_, PyBytes>> {
        generate_key(py, Aead::Siv, bit_length)
    }

    /// Encrypts and authenticates data; authenticates the list of at most 126 buffers associated_data (None for no buffers).
    ///
    /// Returns the tag of 16 bytes and the ciphertext. Raises ValueError for more buffers.
    fn encrypt<'py>(
        &self,
        data: &Bound<'py, PyAny>,
        associated_data: Option<&Bound<'py, PyList>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        with_strings(associated_data, |header| self.0.encrypt(header, data))
    }

    /// Checks data, which are tag and ciphertext, and associated_data, and decrypts.
    ///
    /// Returns the plaintext. Raises InvalidTag if anything is not authentic.
    fn decrypt<'py>(
        &self,
        data: &Bound<'py, PyAny>,
        associated_data: Option<&Bound<'py, PyList>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        with_strings(associated_data, |header| self.0.decrypt(header, data))
    }

    /// Does the same as encrypt, but writes the result to buf, a writable buffer of 16 + len(data) bytes. For work in place,
    /// data is the memory of buf from byte 16.
    ///
    /// Returns the number of bytes written.
    fn encrypt_into(
        &self,
        data: &Bound<'_, PyAny>,
        associated_data: Option<&Bound<'_, PyList>>,
        buf: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        with_strings(associated_data, |header| self.0.encrypt_into(header, data, buf))
    }

    /// Does the same as decrypt, but writes the result to buf, a writable buffer of len(data) - 16 bytes, which is zeroed if
    /// InvalidTag is raised.
    ///
    /// Returns the number of bytes written.
    fn decrypt_into(
        &self,
        data: &Bound<'_, PyAny>,
        associated_data: Option<&Bound<'_, PyList>>,
        buf: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        with_strings(associated_data, |header| self.0.decrypt_into(header, data, buf))
    }
}
