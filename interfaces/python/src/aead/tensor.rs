//! One message in an array of another library, on the host or on a device: see `crate::tensor`.
//!
//! On a device, nonce, associated data and tag pass through the host, and a wrong tag must raise an exception. So these calls
//! wait for the end of the work. `lockstep.tensor` has calls that do not wait.

use lockstep::aead::{Data, Direction, Message, Result as CoreResult, Status, Tag};
use lockstep::hazmat::data::DeviceSlice;
use lockstep::hazmat::planner::OnStream;
use lockstep::hazmat::work::Stream;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::call::{Header, check_output, not_opened};
use super::{Cipher, TAG};
use crate::engine;
use crate::error::from_core;
use crate::forks::detached;
use crate::tensor::{Imported, Place, empty_like, result_like};

impl Cipher {
    /// Ciphertext and tag as a new array of the library of `data`.
    pub(super) fn encrypt_array<'py>(
        &self,
        header: Header<'_>,
        data: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let from = Imported::read(data, None)?;
        let output = empty_like(data, self.sealed_len(from.len())?)?;
        self.run_imported(header, &from, &output, Direction::Encrypt)?;
        result_like(&output, data)
    }

    /// The plaintext as a new array of the library of `data`.
    pub(super) fn decrypt_array<'py>(
        &self,
        header: Header<'_>,
        data: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let from = Imported::read(data, None)?;
        let output = empty_like(data, self.opened_len(from.len())?)?;
        self.run_imported(header, &from, &output, Direction::Decrypt)?;
        result_like(&output, data)
    }

    /// Ciphertext and tag into an array, or the plaintext; returns their length in bytes.
    pub(super) fn run_array_into(
        &self,
        header: Header<'_>,
        data: &Bound<'_, PyAny>,
        output: &Bound<'_, PyAny>,
        direction: Direction,
    ) -> PyResult<usize> {
        self.run_imported(header, &Imported::read(data, None)?, output, direction)
    }

    fn run_imported(
        &self,
        header: Header<'_>,
        from: &Imported,
        output: &Bound<'_, PyAny>,
        direction: Direction,
    ) -> PyResult<usize> {
        let py = output.py();
        let to = Imported::write(output, from.stream_for_others(py, None)?.as_ref())?;
        match (&from.place, &to.place, direction) {
            (&Place::Host(from), &Place::Host(to), Direction::Encrypt) => {
                self.encrypt_memory(py, header, from, to)
            }
            (&Place::Host(from), &Place::Host(to), Direction::Decrypt) => {
                self.decrypt_memory(py, header, from, to)
            }
            (Place::Device(data), Place::Device(whole), Direction::Encrypt) => {
                let len = self.sealed_len(data.len())?;
                check_output(len, whole.len())?;
                self.on_device(py, header, data, whole, from.stream, direction)?;
                Ok(len)
            }
            (Place::Device(whole), Place::Device(data), Direction::Decrypt) => {
                let len = self.opened_len(whole.len())?;
                check_output(len, data.len())?;
                self.on_device(py, header, data, whole, from.stream, direction)?;
                Ok(len)
            }
            _ => Err(PyValueError::new_err("data and buf must be on the same device")),
        }
    }

    /// Encrypts the plaintext `data` to ciphertext and tag in `whole`, or decrypts in the other direction.
    fn on_device(
        &self,
        py: Python<'_>,
        header: Header<'_>,
        data: &DeviceSlice,
        whole: &DeviceSlice,
        stream: Stream,
        direction: Direction,
    ) -> PyResult<()> {
        self.check_nonce(header.nonce)?;
        let engine = engine::current(py)?;
        let key = self.key();
        let (body, tag_place) = self.mode().layout(data.len(), key.tag_len());
        let (body, tag_place) = (whole.slice(body), whole.slice(tag_place));
        let work = || -> CoreResult<()> {
            let executor = OnStream::new(engine.planner(), data.device(), stream)?;
            let mut bytes = [0; TAG];
            let bytes = &mut bytes[..tag_place.len()];
            let (data, tag) = match direction {
                Direction::Encrypt => (Data::on_device(data.clone(), body)?, Tag::Write(&mut *bytes)),
                Direction::Decrypt => {
                    executor.device_memory().download(&tag_place, bytes, stream)?;
                    (Data::on_device(body, data.clone())?, Tag::Expect(&*bytes))
                }
            };
            let (nonce, aad, status) = (header.nonce, header.aad, Status::Pending);
            let mut messages = [Message { key: &key, nonce, aad, data, tag, status }];
            self.mode().run(&executor, direction, &mut messages)?;
            match direction {
                Direction::Encrypt => executor.device_memory().upload(bytes, &tag_place, stream),
                Direction::Decrypt => Ok(()),
            }
        };
        detached(py, work).map_err(|error| match direction {
            Direction::Encrypt => from_core(error),
            Direction::Decrypt => not_opened(error),
        })
    }
}
