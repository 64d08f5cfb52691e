//! The encryption or decryption of one message: the checks of the arguments of a call, and its result.

use lockstep::aead::{Data, Direction, Error as CoreError, Message, Result as CoreResult, Status, Tag};
use lockstep::hazmat::data::DeviceSlice;
use lockstep::hazmat::planner::OnStream;
use lockstep::hazmat::work::Stream;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use super::classes::check_nonce;
use super::{Attached, Cipher, TAG};
use crate::buffer::{Input, Memory, host_data, new_bytes, overlap, read_shared, slice_mut};
use crate::engine;
use crate::error::{InvalidTag, from_core};
use crate::forks::detached;
use crate::tensor::{Transform, is_tensor};

/// Nonce and associated data of a message.
#[derive(Clone, Copy)]
pub(super) struct Header<'a> {
    pub(super) nonce: &'a [u8],
    pub(super) aad: &'a [&'a [u8]],
    /// The memory of the objects with the nonce and the associated data. The slices above can be copies of this memory.
    pub(super) places: &'a [Memory],
}

/// The encryption or decryption of a message.
struct Call<'a> {
    cipher: &'a Cipher,
    direction: Direction,
    header: Header<'a>,
}

impl Cipher {
    /// Returns ciphertext and tag, or the plaintext, as new `bytes`, or as a new array if the data are an array.
    #[inline]
    pub(super) fn run<'py>(
        &self,
        direction: Direction,
        header: Header<'_>,
        data: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let call = Call { cipher: self, direction, header };
        if is_tensor(data)? {
            return call.to_array(data);
        }
        let (py, data) = (data.py(), &*Input::new(data)?);
        let output = new_bytes(py, call.output_len(data.len())?, |output| {
            check_nonce(self.mode(), header.nonce)?;
            let (key, caller) = (self.key(), Attached::new(py)?);
            let done = match direction {
                Direction::Encrypt => key.seal_into(&caller, header.nonce, header.aad, data, output),
                Direction::Decrypt => key.open_into(&caller, header.nonce, header.aad, data, output),
            };
            done.map_err(|error| exception(direction, error))
        });
        output.map(Bound::into_any)
    }

    /// Writes ciphertext and tag, or the plaintext, to a buffer or an array; returns their length in bytes.
    pub(super) fn run_into(
        &self,
        direction: Direction,
        header: Header<'_>,
        data: &Bound<'_, PyAny>,
        output: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        Call { cipher: self, direction, header }.write_to(data, output)
    }
}

impl Transform for Call<'_> {
    #[inline]
    fn output_len(&self, len: usize) -> PyResult<usize> {
        let tag = self.cipher.key.tag_len();
        match self.direction {
            Direction::Encrypt => {
                len.checked_add(tag).ok_or_else(|| PyOverflowError::new_err("the data are too long"))
            }
            Direction::Decrypt => len.checked_sub(tag).ok_or_else(|| InvalidTag::new_err(())),
        }
    }

    fn on_host(&self, py: Python<'_>, data: Memory, output: Memory) -> PyResult<()> {
        let &Call { cipher, direction, header } = self;
        let (plain, sealed) = by_direction(direction, data, output);
        let (body, tag) = cipher.mode().layout(plain.len, cipher.key.tag_len());
        let (body, tag) = (sealed.part(body), sealed.part(tag));
        if tag.overlaps(plain) || header.places.iter().any(|place| place.overlaps(output)) {
            return Err(overlap());
        }
        let (from, to) = by_direction(direction, plain, body);
        let (key, caller, mut expected) = (cipher.key(), Attached::new(py)?, [0; TAG]);
        // SAFETY: the output is an exported writable buffer, and the data are valid for reads. The body and the tag are disjoint parts
        // of the sealed message, and the tag does not overlap the plaintext. No slice of the nonce or of the associated data overlaps
        // the output.
        let done = unsafe {
            let data = host_data(from, to)?;
            check_nonce(cipher.mode(), header.nonce)?;
            let tag = match direction {
                Direction::Encrypt => Tag::Write(slice_mut(tag)),
                Direction::Decrypt => {
                    // The tag is copied, because other threads can change it during the call.
                    read_shared(tag, &mut expected[..tag.len]);
                    Tag::Expect(&expected[..tag.len])
                }
            };
            key.run(&caller, header.nonce, header.aad, data, tag)
        };
        done.map_err(|error| exception(direction, error))
    }

    /// The nonce, the associated data and the tag pass through the host, and a wrong tag must raise an exception. So a call of this
    /// function waits for the end of the work. `lockstep.tensor` has calls that do not wait.
    fn on_device(
        &self,
        py: Python<'_>,
        data: &DeviceSlice,
        output: &DeviceSlice,
        stream: Stream,
    ) -> PyResult<()> {
        let &Call { cipher, direction, header: Header { nonce, aad, .. } } = self;
        check_nonce(cipher.mode(), nonce)?;
        let (plain, sealed) = by_direction(direction, data, output);
        let (body, tag) = cipher.mode().layout(plain.len(), cipher.key.tag_len());
        let (body, tag_place) = (sealed.slice(body), sealed.slice(tag));
        let (engine, key) = (engine::current(py)?, cipher.key());
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
            let mut messages = [Message { key: &key, nonce, aad, data, tag, status: Status::Pending }];
            cipher.mode().run(&executor, direction, &mut messages)?;
            match &messages[0].tag {
                Tag::Write(bytes) => memory.upload(bytes, &tag_place, stream),
                Tag::Expect(_) => Ok(()),
            }
        };
        detached(py, work).map_err(|error| exception(direction, error))
    }
}

/// Returns the arguments in the same order for encryption, and in the opposite order for decryption. It thus converts the pair (data,
/// output) of a call to (plaintext, sealed message), and the pair (plaintext, body of the sealed message) to (input, output).
#[inline]
fn by_direction<T>(direction: Direction, first: T, second: T) -> (T, T) {
    match direction {
        Direction::Encrypt => (first, second),
        Direction::Decrypt => (second, first),
    }
}

/// The exception for an error. A sealed message that is too long cannot be authentic, so its exception is `InvalidTag`.
fn exception(direction: Direction, error: CoreError) -> PyErr {
    match error {
        CoreError::TooLong { .. } if direction == Direction::Decrypt => InvalidTag::new_err(()),
        error => from_core(error),
    }
}
