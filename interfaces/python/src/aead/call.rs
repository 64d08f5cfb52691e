//! One message: from the arguments of a call to its result.

use lockstep::hazmat::data::{Data, HostData};
use lockstep::hazmat::mode::Aead;
use lockstep::hazmat::mode::aead::Message;
use lockstep::hazmat::work::{Status, Tag};
use lockstep::hazmat::{Error as CoreError, Result as CoreResult};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zeroize::Zeroize;

use super::{Cipher, gcm};
use crate::buffer::{Memory, is_apart, new_bytes, overlap, read_shared, slice, slice_mut};
use crate::engine;
use crate::error::{InvalidTag, from_core};
use crate::modes::TAG;
use crate::task::{RELEASES_FROM, run_detached_if_long};

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

    fn len(&self) -> usize {
        self.aad.iter().map(|aad| aad.len()).sum()
    }
}

impl Cipher {
    /// Returns ciphertext and tag as new `bytes`.
    #[inline]
    pub(super) fn encrypt<'py>(
        &self,
        py: Python<'py>,
        header: Header<'_>,
        data: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let len = data.len().checked_add(self.tag).ok_or_else(too_long)?;
        new_bytes(py, len, |output| {
            let (body, tag) = self.split(output);
            self.seal(py, header, HostData::copy(data, body).map_err(from_core)?, tag)
        })
    }

    /// Returns the plaintext as new `bytes`.
    #[inline]
    pub(super) fn decrypt<'py>(
        &self,
        py: Python<'py>,
        header: Header<'_>,
        data: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let len = data.len().checked_sub(self.tag).ok_or_else(invalid)?;
        let (body, tag) = if self.mode() == Aead::Siv {
            (&data[self.tag..], &data[..self.tag])
        } else {
            data.split_at(len)
        };
        new_bytes(py, len, |output| {
            self.open(py, header, HostData::copy(body, output).map_err(from_core)?, tag)
        })
    }

    /// Writes ciphertext and tag to `output`; returns their length in bytes.
    pub(super) fn encrypt_into(
        &self,
        py: Python<'_>,
        header: Header<'_>,
        data: Memory,
        output: Memory,
    ) -> PyResult<usize> {
        let len = data.len.checked_add(self.tag).ok_or_else(too_long)?;
        check_output(len, output.len)?;
        let body_start = if self.mode() == Aead::Siv { self.tag } else { 0 };
        let tag_start = if self.mode() == Aead::Siv { 0 } else { data.len };
        let part = |start: usize, len| output.part(start..start + len);
        let (body, tag) = (part(body_start, data.len), part(tag_start, self.tag));
        let is_apart = check_apart(header, data, body, output)?;
        // SAFETY: the output is an exported writable buffer, and body and tag are disjoint parts of it. The data are valid for
        // reads. They either do not overlap the output, or are its body. In the second case, only the slice of the body is made.
        let (data, tag) = unsafe {
            let body = slice_mut(body);
            let data = if is_apart { HostData::copy(slice(data), body) } else { Ok(HostData::InPlace(body)) };
            (data.map_err(from_core)?, slice_mut(tag))
        };
        self.seal(py, header, data, tag)?;
        Ok(len)
    }

    /// Writes the plaintext to `output`; returns its length in bytes.
    pub(super) fn decrypt_into(
        &self,
        py: Python<'_>,
        header: Header<'_>,
        data: Memory,
        output: Memory,
    ) -> PyResult<usize> {
        let len = data.len.checked_sub(self.tag).ok_or_else(invalid)?;
        check_output(len, output.len)?;
        let (start, tag) = if self.mode() == Aead::Siv { (self.tag, 0) } else { (0, len) };
        let part = |start: usize, len| data.part(start..start + len);
        let (body, tag) = (part(start, len), part(tag, self.tag));
        let is_apart = check_apart(header, body, output, output)?;
        if tag.overlaps(output) {
            return Err(overlap());
        }
        // Other threads can change the tag.
        let mut tag_copy = [0; TAG];
        let tag_copy = &mut tag_copy[..self.tag];
        // SAFETY: the output is an exported writable buffer, and body and tag are disjoint parts of the data, which are valid for
        // reads. The tag does not overlap the output. The body does not either, or it is the output. In the second case, only the
        // slice of the output is made.
        let data = unsafe {
            let output = slice_mut(output);
            let data =
                if is_apart { HostData::copy(slice(body), output) } else { Ok(HostData::InPlace(output)) };
            read_shared(tag, tag_copy);
            data.map_err(from_core)?
        };
        self.open(py, header, data, tag_copy)?;
        Ok(len)
    }

    /// Body and tag of an encrypted message; SIV has the tag first (RFC 5297, section 2.6).
    fn split<'a>(&self, message: &'a mut [u8]) -> (&'a mut [u8], &'a mut [u8]) {
        if self.mode() == Aead::Siv {
            let (tag, body) = message.split_at_mut(self.tag);
            (body, tag)
        } else {
            message.split_at_mut(message.len() - self.tag)
        }
    }

    #[inline]
    fn seal(&self, py: Python<'_>, header: Header<'_>, data: HostData<'_>, tag: &mut [u8]) -> PyResult<()> {
        self.check_nonce(header.nonce)?;
        let mut data = data;
        if let Some(done) =
            self.small(header, data.len(), |gcm, aad| gcm::seal(gcm, header.nonce, aad, data.reborrow(), tag))
        {
            return Ok(done);
        }
        self.run(py, header, Data::Host(data), Tag::Write(tag)).map_err(from_core)
    }

    #[inline]
    fn open(&self, py: Python<'_>, header: Header<'_>, data: HostData<'_>, tag: &[u8]) -> PyResult<()> {
        self.check_nonce(header.nonce)?;
        let mut data = data;
        if let Some(is_authentic) =
            self.small(header, data.len(), |gcm, aad| gcm::open(gcm, header.nonce, aad, data.reborrow(), tag))
        {
            return if is_authentic { Ok(()) } else { Err(invalid()) };
        }
        let mut data = Data::Host(data);
        let outcome = self.run(py, header, data.reborrow(), Tag::Expect(tag));
        if outcome.is_err()
            && let Data::Host(mut data) = data
        {
            data.output().zeroize();
        }
        outcome.map_err(|error| match error {
            // No message of this length can be authentic.
            CoreError::TooLong { .. } => invalid(),
            error => from_core(error),
        })
    }

    /// Runs a small message of GCM on the calling thread. None for other messages.
    #[inline]
    fn small<T>(
        &self,
        header: Header<'_>,
        len: usize,
        message: impl FnOnce(&mut lockstep::hazmat::inline::InlineGcm, &[u8]) -> Option<T>,
    ) -> Option<T> {
        let gcm = self.gcm.as_ref()?;
        if len + header.len() > RELEASES_FROM {
            return None;
        }
        let aad = header.aad.first().copied().unwrap_or_default();
        gcm.run(engine::inline_kernel()?, self.key.key()?.bytes(), |gcm| message(gcm, aad))
    }

    /// Runs a message by the planner, detached from the interpreter if it is not small.
    fn run(&self, py: Python<'_>, header: Header<'_>, data: Data<'_>, tag: Tag<'_>) -> CoreResult<()> {
        let engine = match engine::current(py) {
            Ok(engine) => engine,
            Err(error) => {
                return Err(CoreError::Unsupported { kernel: "lockstep", operation: error.to_string() });
            }
        };
        let len = data.len() + header.len();
        let seals = matches!(tag, Tag::Write(_));
        let key = self.key();
        let work = move || {
            let (nonce, aad, status) = (header.nonce, header.aad, Status::Pending);
            let mut messages = [Message { key: &key, nonce, aad, data, tag, status }];
            if seals {
                self.mode().seal(engine.planner(), &mut messages)
            } else {
                self.mode().open(engine.planner(), &mut messages)
            }
        };
        run_detached_if_long(py, len, work)
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

pub(super) fn too_long() -> PyErr {
    PyOverflowError::new_err("the data are too long")
}

pub(super) fn invalid() -> PyErr {
    InvalidTag::new_err(())
}
