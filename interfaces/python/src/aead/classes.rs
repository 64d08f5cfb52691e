//! The classes, with the names and the order of arguments of pyca cryptography.

use lockstep::hazmat::mode::Aead;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::call::Header;
use super::{CCM_TAGS, Cipher, generate_key};
use crate::buffer::{Export, Memory};
use crate::modes::TAG;
use crate::tensor::is_tensor;

/// Calls a method of a cipher with the arguments of a call as slices. If there is an output, the data are passed as memory, since they
/// may be the memory of the output.
macro_rules! with_arguments {
    ($self:ident.$method:ident($py:ident, $nonce:ident, $data:ident, $aad:ident $(, $output:ident)?)) => {{
        let mut data = Export::new();
        let data = data_of!(data, $data $(, $output)?);
        $(
            let mut output = Export::new();
            let $output = output.write($output)?;
        )?
        with_arrays!($self.$method($py, $nonce, data, $aad $(, $output)?))
    }};
}

/// Data as a slice, or as memory if there is an output.
macro_rules! data_of {
    ($export:ident, $data:ident) => {
        $export.read($data)?
    };
    ($export:ident, $data:ident, $output:ident) => {
        $export.locate($data)?
    };
}

/// Calls a method of a cipher with data, and an output, as they are.
macro_rules! with_arrays {
    ($self:ident.$method:ident($py:ident, $nonce:ident, $data:ident, $aad:ident $(, $output:ident)?)) => {{
        let (mut nonce_export, mut aad_export) = (Export::new(), Export::new());
        let (nonce, nonce_place) = nonce_export.read_and_locate($nonce)?;
        let (aad, aad_place) = match $aad {
            Some(object) => aad_export.read_and_locate(object)?,
            None => (&[][..], Memory::EMPTY),
        };
        let header = Header { nonce, aad: &[aad], places: &[nonce_place, aad_place] };
        $self.0.$method($py, header, $data $(, $output)?)
    }};
}

/// A class of a mode with a nonce.
macro_rules! class {
    ($(#[$doc:meta])* $name:ident, $mode:expr, ($($argument:ident: $type:ty = $default:expr)?), $tag:expr, $($bits:literal)?) => {
        $(#[$doc])*
        #[allow(clippy::upper_case_acronyms, reason = "the name in Python")]
        #[pyclass(frozen, module = "lockstep.aead")]
        pub(crate) struct $name(pub(super) Cipher);

        #[pymethods]
        impl $name {
            #[new]
            #[pyo3(signature = (key $(, $argument = $default)?))]
            fn new(key: &Bound<'_, PyAny> $(, $argument: $type)?) -> PyResult<$name> {
                let tag = $tag;
                Ok($name(Cipher::new($mode, Export::new().read(key)?, tag)?))
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
                py: Python<'py>,
                nonce: &Bound<'py, PyAny>,
                data: &Bound<'py, PyAny>,
                associated_data: Option<&Bound<'py, PyAny>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                if is_tensor(data) {
                    return with_arrays!(self.encrypt_array(py, nonce, data, associated_data));
                }
                with_arguments!(self.encrypt(py, nonce, data, associated_data)).map(Bound::into_any)
            }

            /// Checks data, which are ciphertext and tag, and associated_data, and decrypts.
            ///
            /// Returns the plaintext. Raises InvalidTag if anything is not authentic, ValueError for a nonce of a wrong length.
            fn decrypt<'py>(
                &self,
                py: Python<'py>,
                nonce: &Bound<'py, PyAny>,
                data: &Bound<'py, PyAny>,
                associated_data: Option<&Bound<'py, PyAny>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                if is_tensor(data) {
                    return with_arrays!(self.decrypt_array(py, nonce, data, associated_data));
                }
                with_arguments!(self.decrypt(py, nonce, data, associated_data)).map(Bound::into_any)
            }

            /// Does the same as encrypt, but writes the result to buf, a writable buffer with the length of data and tag.
            /// For work in place, data is the memory of the first len(data) bytes of buf.
            ///
            /// Returns the number of bytes written. Raises ValueError also for a buffer of another length or one that partly
            /// overlaps an argument, TypeError for a read-only buffer.
            fn encrypt_into(
                &self,
                py: Python<'_>,
                nonce: &Bound<'_, PyAny>,
                data: &Bound<'_, PyAny>,
                associated_data: Option<&Bound<'_, PyAny>>,
                buf: &Bound<'_, PyAny>,
            ) -> PyResult<usize> {
                if is_tensor(data) || is_tensor(buf) {
                    return with_arrays!(self.encrypt_into_array(py, nonce, data, associated_data, buf));
                }
                with_arguments!(self.encrypt_into(py, nonce, data, associated_data, buf))
            }

            /// Does the same as decrypt, but writes the result to buf, a writable buffer with the length of data without the
            /// tag. For work in place, buf is the memory of the ciphertext in data. The buffer is zeroed if InvalidTag is
            /// raised.
            ///
            /// Returns the number of bytes written. Raises ValueError also for a buffer of another length or one that partly
            /// overlaps an argument, TypeError for a read-only buffer.
            fn decrypt_into(
                &self,
                py: Python<'_>,
                nonce: &Bound<'_, PyAny>,
                data: &Bound<'_, PyAny>,
                associated_data: Option<&Bound<'_, PyAny>>,
                buf: &Bound<'_, PyAny>,
            ) -> PyResult<usize> {
                if is_tensor(data) || is_tensor(buf) {
                    return with_arrays!(self.decrypt_into_array(py, nonce, data, associated_data, buf));
                }
                with_arguments!(self.decrypt_into(py, nonce, data, associated_data, buf))
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
    AESCCM, Aead::Ccm, (tag_length: Option<usize> = None), match tag_length.unwrap_or(TAG) {
        tag if CCM_TAGS.contains(&tag) => tag,
        _ => return Err(PyValueError::new_err("Invalid tag_length")),
    },
}

class! {
    /// XAES-256-GCM (C2SP) with a key of 32 bytes, nonces of 24 bytes, which may be random, and tags of 16 bytes.
    ///
    /// A nonce must never be used twice with one key.
    XAES256GCM, Aead::Xaes, (), TAG, 256
}

/// AES-SIV (RFC 5297) with a key of 32, 48 or 64 bytes and tags of 16 bytes, which precede the ciphertext.
///
/// There is no nonce: the same message is encrypted to the same bytes, unless the associated data differ.
#[allow(clippy::upper_case_acronyms, reason = "the name in Python")]
#[pyclass(frozen, module = "lockstep.aead")]
pub(crate) struct AESSIV(pub(super) Cipher);

/// Calls a method of SIV with the arguments of a call as slices, as `with_arguments` does.
macro_rules! with_strings {
    ($self:ident.$method:ident($py:ident, $data:ident, $aad:ident $(, $output:ident)?)) => {{
        let mut data = Export::new();
        let data = data_of!(data, $data $(, $output)?);
        $(
            let mut output = Export::new();
            let $output = output.write($output)?;
        )?
        with_strings_and_arrays!($self.$method($py, data, $aad $(, $output)?))
    }};
}

/// Calls a method of SIV with data, and an output, as they are.
macro_rules! with_strings_and_arrays {
    ($self:ident.$method:ident($py:ident, $data:ident, $aad:ident $(, $output:ident)?)) => {{
        let objects: Vec<Bound<'_, PyAny>> = $aad.map_or_else(Vec::new, |list| list.iter().collect());
        let mut exports: Vec<Export> = objects.iter().map(|_| Export::new()).collect();
        let strings = exports.iter_mut().zip(&objects).map(|(export, object)| export.read_and_locate(object));
        let (strings, places): (Vec<&[u8]>, Vec<Memory>) =
            strings.collect::<PyResult<Vec<_>>>()?.into_iter().unzip();
        $self.0.$method($py, Header { nonce: &[], aad: &strings, places: &places }, $data $(, $output)?)
    }};
}

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
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        associated_data: Option<&Bound<'py, PyList>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if is_tensor(data) {
            return with_strings_and_arrays!(self.encrypt_array(py, data, associated_data));
        }
        with_strings!(self.encrypt(py, data, associated_data)).map(Bound::into_any)
    }

    /// Checks data, which are tag and ciphertext, and associated_data, and decrypts.
    ///
    /// Returns the plaintext. Raises InvalidTag if anything is not authentic.
    fn decrypt<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        associated_data: Option<&Bound<'py, PyList>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if is_tensor(data) {
            return with_strings_and_arrays!(self.decrypt_array(py, data, associated_data));
        }
        with_strings!(self.decrypt(py, data, associated_data)).map(Bound::into_any)
    }

    /// Does the same as encrypt, but writes the result to buf, a writable buffer of 16 + len(data) bytes. For work in place,
    /// data is the memory of buf from byte 16.
    ///
    /// Returns the number of bytes written.
    fn encrypt_into(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        associated_data: Option<&Bound<'_, PyList>>,
        buf: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        if is_tensor(data) || is_tensor(buf) {
            return with_strings_and_arrays!(self.encrypt_into_array(py, data, associated_data, buf));
        }
        with_strings!(self.encrypt_into(py, data, associated_data, buf))
    }

    /// Does the same as decrypt, but writes the result to buf, a writable buffer of len(data) - 16 bytes, which is zeroed if
    /// InvalidTag is raised.
    ///
    /// Returns the number of bytes written.
    fn decrypt_into(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        associated_data: Option<&Bound<'_, PyList>>,
        buf: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        if is_tensor(data) || is_tensor(buf) {
            return with_strings_and_arrays!(self.decrypt_into_array(py, data, associated_data, buf));
        }
        with_strings!(self.decrypt_into(py, data, associated_data, buf))
    }
}
