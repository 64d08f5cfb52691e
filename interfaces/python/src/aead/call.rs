//! One message: from the arguments of a call to its result.

use lockstep::aead::{Direction, Error as CoreError, HostData, Tag};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{Attached, Cipher, TAG};
use crate::buffer::{Export, Memory, is_apart, new_bytes, overlap, read_shared, slice, slice_mut};
use crate::error::{InvalidTag, from_core};
use crate::tensor::is_tensor;

/// Nonce and associated data of a message.
#[derive(Clone, Copy)]
pub(super) struct Header<'a> {
    pub(super) nonce: &'a [u8],
    pub(super) aad: &'a [&'a [u8]],
    /// The memory of the arguments above. The slices can be copies.
    pub(super) places: &'a [Memory],
}

impl Header<'_> {
    fn overlaps(&self, output: Memory) -> bool {
        self.places.iter().any(|place| place.overlaps(output))
    }
}

impl Cipher {
    /// Returns ciphertext and tag as new `bytes`, or as a new array if the data are one.
    #[inline]
    pub(super) fn encrypt<'py>(
        &self,
        header: Header<'_>,
        data: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if is_tensor(data) {
            return self.encrypt_array(header, data);
        }
        let (py, mut export) = (data.py(), Export::new());
        let data = export.read(data)?;
        let len = self.sealed_len(data.len())?;
        let sealed = new_bytes(py, len, |output| {
            self.check_nonce(header.nonce)?;
            self.key().seal_into(&Attached(py), header.nonce, header.aad, data, output).map_err(from_core)
        });
        sealed.map(Bound::into_any)
    }

    /// Returns the plaintext as new `bytes`, or as a new array if the data are one.
    #[inline]
    pub(super) fn decrypt<'py>(
        &self,
        header: Header<'_>,
        data: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if is_tensor(data) {
            return self.decrypt_array(header, data);
        }
        let (py, mut export) = (data.py(), Export::new());
        let data = export.read(data)?;
        let plain: PyResult<Bound<'py, PyBytes>> = new_bytes(py, self.opened_len(data.len())?, |output| {
            self.check_nonce(header.nonce)?;
            self.key().open_into(&Attached(py), header.nonce, header.aad, data, output).map_err(not_opened)
        });
        plain.map(Bound::into_any)
    }

    /// Writes ciphertext and tag to a buffer or an array; returns their length in bytes.
    pub(super) fn encrypt_into(
        &self,
        header: Header<'_>,
        data: &Bound<'_, PyAny>,
        output: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        if is_tensor(data) || is_tensor(output) {
            return self.run_array_into(header, data, output, Direction::Encrypt);
        }
        let (mut from, mut to) = (Export::new(), Export::new());
        self.encrypt_memory(data.py(), header, from.locate(data)?, to.write(output)?)
    }

    /// Writes the plaintext to a buffer or an array; returns its length in bytes.
    pub(super) fn decrypt_into(
        &self,
        header: Header<'_>,
        data: &Bound<'_, PyAny>,
        output: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        if is_tensor(data) || is_tensor(output) {
            return self.run_array_into(header, data, output, Direction::Decrypt);
        }
        let (mut from, mut to) = (Export::new(), Export::new());
        self.decrypt_memory(data.py(), header, from.locate(data)?, to.write(output)?)
    }

    /// Writes ciphertext and tag to memory of the host.
    pub(super) fn encrypt_memory(
        &self,
        py: Python<'_>,
        header: Header<'_>,
        data: Memory,
        output: Memory,
    ) -> PyResult<usize> {
        let len = self.sealed_len(data.len)?;
        check_output(len, output.len)?;
        let (body, tag) = self.mode().layout(data.len, self.key.tag_len());
        let (body, tag) = (output.part(body), output.part(tag));
        let is_apart = check_apart(header, data, body, output)?;
        self.check_nonce(header.nonce)?;
        // SAFETY: the output is an exported writable buffer, and body and tag are disjoint parts of it. The data are valid for
        // reads. They either do not overlap the output, or are its body. In the second case, only the slice of the body is made.
        let (data, tag) = unsafe { (host_data(data, body, is_apart)?, slice_mut(tag)) };
        self.key().run(&Attached(py), header.nonce, header.aad, data, Tag::Write(tag)).map_err(from_core)?;
        Ok(len)
    }

    /// Writes the plaintext to memory of the host.
    pub(super) fn decrypt_memory(
        &self,
        py: Python<'_>,
        header: Header<'_>,
        data: Memory,
        output: Memory,
    ) -> PyResult<usize> {
        let len = self.opened_len(data.len)?;
        check_output(len, output.len)?;
        let (body, tag) = self.mode().layout(len, self.key.tag_len());
        let (body, tag) = (data.part(body), data.part(tag));
        let is_apart = check_apart(header, body, output, output)?;
        if tag.overlaps(output) {
            return Err(overlap());
        }
        self.check_nonce(header.nonce)?;
        // Other threads can change the tag.
        let mut tag_copy = [0; TAG];
        let tag_copy = &mut tag_copy[..tag.len];
        // SAFETY: the output is an exported writable buffer, and body and tag are disjoint parts of the data, which are valid for
        // reads. The tag does not overlap the output. The body does not either, or it is the output. In the second case, only the
        // slice of the output is made.
        let data = unsafe {
            read_shared(tag, tag_copy);
            host_data(body, output, is_apart)?
        };
        self.key()
            .run(&Attached(py), header.nonce, header.aad, data, Tag::Expect(tag_copy))
            .map_err(not_opened)?;
        Ok(len)
    }

    /// The length of ciphertext and tag.
    pub(super) fn sealed_len(&self, len: usize) -> PyResult<usize> {
        let sealed = len.checked_add(self.key.tag_len());
        sealed.ok_or_else(|| PyOverflowError::new_err("the data are too long"))
    }

    /// The length of the plaintext.
    pub(super) fn opened_len(&self, len: usize) -> PyResult<usize> {
        len.checked_sub(self.key.tag_len()).ok_or_else(invalid)
    }
}

/// Input and output of a message.
///
/// # Safety
/// During `'a`, the output is initialised and valid for reads and writes, and the input is valid for reads. The two do not overlap, or
/// they are the same memory and `is_apart` is false. Nothing else in this crate refers to the output.
unsafe fn host_data<'a>(from: Memory, to: Memory, is_apart: bool) -> PyResult<HostData<'a>> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let to = slice_mut(to);
        if is_apart { HostData::copy(slice(from), to).map_err(from_core) } else { Ok(HostData::InPlace(to)) }
    }
}

/// True if the input and the output do not overlap, false if they are the same memory.
fn check_apart(header: Header<'_>, from: Memory, to: Memory, output: Memory) -> PyResult<bool> {
    if header.overlaps(output) {
        return Err(overlap());
    }
    if from.overlaps(output) { is_apart(from, to) } else { Ok(true) }
}

pub(super) fn check_output(len: usize, got: usize) -> PyResult<()> {
    if got == len { Ok(()) } else { Err(PyValueError::new_err(format!("buffer must be {len} bytes"))) }
}

/// The exception for the error of a decryption. No message that is too long can be authentic.
pub(super) fn not_opened(error: CoreError) -> PyErr {
    if matches!(error, CoreError::TooLong { .. }) { invalid() } else { from_core(error) }
}

fn invalid() -> PyErr {
    InvalidTag::new_err(())
}
