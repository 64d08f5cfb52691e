//! One message in an array of another library, on the host or on a device: see `crate::tensor`.
//!
//! On a device, nonce, associated data and tag pass through the host, and a wrong tag must raise an exception. So these calls
//! wait for the end of the work. `lockstep.tensor` has calls that do not wait.

use lockstep::aead::{Data, Direction, Message, Result as CoreResult, Status, Tag};
use lockstep::hazmat::planner::OnStream;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::call::{Header, by_direction, exception};
use super::classes::check_nonce;
use super::{Cipher, TAG};
use crate::buffer::check_output;
use crate::engine;
use crate::forks::detached;
use crate::tensor::{Imported, Place, empty_like, result_like};

impl Cipher {
    /// Ciphertext and tag, or the plaintext, as a new array of the library of `data`.
    pub(super) fn run_array<'py>(
        &self,
        direction: Direction,
        header: Header<'_>,
        data: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let from = Imported::read(data, None)?;
        let output = empty_like(data, self.output_len(direction, from.len())?)?;
        self.run_imported(direction, header, &from, &output)?;
        result_like(&output, data)
    }

    /// Writes ciphertext and tag, or the plaintext, to an array; returns their length in bytes.
    pub(super) fn run_imported(
        &self,
        direction: Direction,
        header: Header<'_>,
        data: &Imported,
        output: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let (py, stream) = (output.py(), data.stream);
        let output = Imported::write(output, data.stream_for_others(py, None)?.as_ref())?;
        let (from, to) = match (&data.place, &output.place) {
            (&Place::Host(from), &Place::Host(to)) => {
                return self.run_memory(py, direction, header, from, to);
            }
            (Place::Device(from), Place::Device(to)) => (from, to),
            _ => return Err(PyValueError::new_err("data and buf must be on the same device")),
        };
        let len = self.output_len(direction, from.len())?;
        check_output(len, to.len())?;
        check_nonce(self.mode(), header.nonce)?;
        let (plain, sealed) = by_direction(direction, from, to);
        let (body, tag) = self.mode().layout(plain.len(), self.key.tag_len());
        let (body, tag_place) = (sealed.slice(body), sealed.slice(tag));
        let (engine, key) = (engine::current(py)?, self.key());
        let work = || -> CoreResult<()> {
            let executor = OnStream::new(engine.planner(), plain.device(), stream)?;
            let memory = executor.device_memory();
            let mut bytes = [0; TAG];
            let bytes = &mut bytes[..tag_place.len()];
            let tag = match direction {
                Direction::Encrypt => Tag::Write(bytes),
                Direction::Decrypt => {
                    memory.download(&tag_place, bytes, stream)?;
                    Tag::Expect(bytes)
                }
            };
            let (from, to) = by_direction(direction, plain, &body);
            let data = Data::on_device(from.clone(), to.clone())?;
            let (nonce, aad, status) = (header.nonce, header.aad, Status::Pending);
            let mut messages = [Message { key: &key, nonce, aad, data, tag, status }];
            self.mode().run(&executor, direction, &mut messages)?;
            match &messages[0].tag {
                Tag::Write(bytes) => memory.upload(bytes, &tag_place, stream),
                Tag::Expect(_) => Ok(()),
            }
        };
        detached(py, work).map_err(|error| exception(direction, error))?;
        Ok(len)
    }
}
