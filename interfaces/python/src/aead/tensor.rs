//! One message in an array of another library, on the host or on a device: see `crate::tensor`.
//!
//! On a device, nonce, associated data and tag pass through the host, and a wrong tag must raise an exception. So these calls
//! wait for the end of the work. `lockstep.tensor` has calls that do not wait.

use lockstep::hazmat::data::{Data, DeviceSlice};
use lockstep::hazmat::mode::Aead;
use lockstep::hazmat::mode::aead::Message;
use lockstep::hazmat::planner::OnStream;
use lockstep::hazmat::work::{Status, Stream, Tag};
use lockstep::hazmat::{Error as CoreError, Result as CoreResult};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::Cipher;
use super::call::{Header, check_output, invalid, too_long};
use crate::engine;
use crate::error::from_core;
use crate::forks::detached;
use crate::tensor::{Imported, Place, empty_like, result_like};

/// The parts of an encrypted message in memory of a device, and the stream.
struct Parts {
    body: DeviceSlice,
    tag: DeviceSlice,
    stream: Stream,
}

impl Cipher {
    /// Ciphertext and tag as a new array of the library of `data`.
    pub(super) fn encrypt_array<'py>(
        &self,
        py: Python<'py>,
        header: Header<'_>,
        data: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let from = Imported::read(data, None)?;
        let output = empty_like(data, from.len().checked_add(self.tag).ok_or_else(too_long)?)?;
        self.encrypt_imported(py, header, &from, &output)?;
        result_like(&output, data)
    }

    /// The plaintext as a new array of the library of `data`.
    pub(super) fn decrypt_array<'py>(
        &self,
        py: Python<'py>,
        header: Header<'_>,
        data: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let from = Imported::read(data, None)?;
        let output = empty_like(data, from.len().checked_sub(self.tag).ok_or_else(invalid)?)?;
        self.decrypt_imported(py, header, &from, &output)?;
        result_like(&output, data)
    }

    /// Ciphertext and tag into an array; returns their length in bytes.
    pub(super) fn encrypt_into_array(
        &self,
        py: Python<'_>,
        header: Header<'_>,
        data: &Bound<'_, PyAny>,
        output: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        self.encrypt_imported(py, header, &Imported::read(data, None)?, output)
    }

    /// The plaintext into an array; returns its length in bytes.
    pub(super) fn decrypt_into_array(
        &self,
        py: Python<'_>,
        header: Header<'_>,
        data: &Bound<'_, PyAny>,
        output: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        self.decrypt_imported(py, header, &Imported::read(data, None)?, output)
    }

    fn encrypt_imported(
        &self,
        py: Python<'_>,
        header: Header<'_>,
        from: &Imported,
        output: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let to = Imported::write(output, from.stream_for_others(py, None)?.as_ref())?;
        match (&from.place, &to.place) {
            (&Place::Host(from), &Place::Host(to)) => self.encrypt_into(py, header, from, to),
            (Place::Device(data), Place::Device(whole)) => {
                let len = data.len().checked_add(self.tag).ok_or_else(too_long)?;
                check_output(len, whole.len())?;
                let parts = self.parts(whole, from.stream);
                self.on_device(py, header, (data, &parts.body), &parts, true)?;
                Ok(len)
            }
            _ => Err(different_places()),
        }
    }

    fn decrypt_imported(
        &self,
        py: Python<'_>,
        header: Header<'_>,
        from: &Imported,
        output: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let to = Imported::write(output, from.stream_for_others(py, None)?.as_ref())?;
        match (&from.place, &to.place) {
            (&Place::Host(from), &Place::Host(to)) => self.decrypt_into(py, header, from, to),
            (Place::Device(whole), Place::Device(data)) => {
                let len = whole.len().checked_sub(self.tag).ok_or_else(invalid)?;
                check_output(len, data.len())?;
                let parts = self.parts(whole, from.stream);
                self.on_device(py, header, (&parts.body, data), &parts, false)?;
                Ok(len)
            }
            _ => Err(different_places()),
        }
    }

    /// Body and tag of an encrypted message; SIV has the tag first (RFC 5297, section 2.6).
    fn parts(&self, whole: &DeviceSlice, stream: Stream) -> Parts {
        let len = whole.len();
        let (body, tag) = match self.mode() {
            Aead::Siv => (self.tag..len, 0..self.tag),
            _ => (0..len - self.tag, len - self.tag..len),
        };
        Parts { body: whole.slice(body), tag: whole.slice(tag), stream }
    }

    fn on_device(
        &self,
        py: Python<'_>,
        header: Header<'_>,
        (from, to): (&DeviceSlice, &DeviceSlice),
        parts: &Parts,
        seals: bool,
    ) -> PyResult<()> {
        self.check_nonce(header.nonce)?;
        let engine = engine::current(py)?;
        let key = self.key();
        let work = || -> CoreResult<()> {
            let executor = OnStream::new(engine.planner(), to.device(), parts.stream)?;
            let mut tag = vec![0; self.tag];
            if !seals {
                executor.stream_memory().download(&parts.tag, &mut tag, parts.stream)?;
            }
            let data = Data::on_device(from.clone(), to.clone())?;
            let (nonce, aad, status) = (header.nonce, header.aad, Status::Pending);
            let place = if seals { Tag::Write(&mut tag) } else { Tag::Expect(&tag) };
            let mut messages = [Message { key: &key, nonce, aad, data, tag: place, status }];
            if !seals {
                return self.mode().open(&executor, &mut messages);
            }
            self.mode().seal(&executor, &mut messages)?;
            executor.stream_memory().upload(&tag, &parts.tag, parts.stream)
        };
        detached(py, work).map_err(|error| match error {
            // No message of this length can be authentic.
            CoreError::TooLong { .. } if !seals => invalid(),
            error => from_core(error),
        })
    }
}

fn different_places() -> PyErr {
    PyValueError::new_err("data and buf must be on the same device")
}
