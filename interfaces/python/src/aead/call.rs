//! One message: from the arguments of a call to its result.

use lockstep::aead::{Direction, Error as CoreError, Tag};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use super::classes::check_nonce;
use super::{Attached, Cipher, TAG};
use crate::buffer::{
    Export, Input, Memory, check_output, host_data, new_bytes, overlap, read_shared, slice_mut,
};
use crate::error::{InvalidTag, from_core};
use crate::tensor::{Imported, is_tensor};

/// Nonce and associated data of a message.
#[derive(Clone, Copy)]
pub(super) struct Header<'a> {
    pub(super) nonce: &'a [u8],
    pub(super) aad: &'a [&'a [u8]],
    /// The memory of the arguments above. The slices can be copies.
    pub(super) places: &'a [Memory],
}

impl Cipher {
    /// Returns ciphertext and tag, or the plaintext, as new `bytes`, or as a new array if the data are one.
    #[inline]
    pub(super) fn run<'py>(
        &self,
        direction: Direction,
        header: Header<'_>,
        data: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if is_tensor(data)? {
            return self.run_array(direction, header, data);
        }
        let (py, data) = (data.py(), &*Input::new(data)?);
        let output = new_bytes(py, self.output_len(direction, data.len())?, |output| {
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
        if is_tensor(data)? || is_tensor(output)? {
            return self.run_imported(direction, header, &Imported::read(data, None)?, output);
        }
        let (mut from, mut to) = (Export::new(), Export::new());
        self.run_memory(data.py(), direction, header, from.locate(data)?, to.write(output)?)
    }

    /// Writes ciphertext and tag, or the plaintext, to memory of the host; returns their length in bytes.
    pub(super) fn run_memory(
        &self,
        py: Python<'_>,
        direction: Direction,
        header: Header<'_>,
        data: Memory,
        output: Memory,
    ) -> PyResult<usize> {
        let len = self.output_len(direction, data.len)?;
        check_output(len, output.len)?;
        let (plain, sealed) = by_direction(direction, data, output);
        let (body, tag) = self.mode().layout(plain.len, self.key.tag_len());
        let (body, tag) = (sealed.part(body), sealed.part(tag));
        if tag.overlaps(plain) || header.places.iter().any(|place| place.overlaps(output)) {
            return Err(overlap());
        }
        let (from, to) = by_direction(direction, plain, body);
        let (key, caller) = (self.key(), Attached::new(py)?);
        // SAFETY: the output is an exported writable buffer, and the data are valid for reads. Body and tag are disjoint parts of one of
        // them, and the tag does not overlap the other one. No slice of the nonce or of the associated data overlaps the output.
        let done = unsafe {
            let data = host_data(from, to)?;
            check_nonce(self.mode(), header.nonce)?;
            match direction {
                Direction::Encrypt => {
                    key.run(&caller, header.nonce, header.aad, data, Tag::Write(slice_mut(tag)))
                }
                Direction::Decrypt => {
                    // Other threads can change the tag.
                    let mut copy = [0; TAG];
                    read_shared(tag, &mut copy[..tag.len]);
                    key.run(&caller, header.nonce, header.aad, data, Tag::Expect(&copy[..tag.len]))
                }
            }
        };
        done.map_err(|error| exception(direction, error))?;
        Ok(len)
    }

    /// The length of ciphertext and tag for that of the plaintext, or the reverse.
    pub(super) fn output_len(&self, direction: Direction, len: usize) -> PyResult<usize> {
        let tag = self.key.tag_len();
        match direction {
            Direction::Encrypt => {
                len.checked_add(tag).ok_or_else(|| PyOverflowError::new_err("the data are too long"))
            }
            Direction::Decrypt => len.checked_sub(tag).ok_or_else(|| InvalidTag::new_err(())),
        }
    }
}

/// The two in the same order for encryption, and in the opposite order for decryption: data and output are plaintext and sealed message,
/// and the reverse.
#[inline]
pub(super) fn by_direction<T>(direction: Direction, first: T, second: T) -> (T, T) {
    match direction {
        Direction::Encrypt => (first, second),
        Direction::Decrypt => (second, first),
    }
}

/// The exception for an error. No message that is too long can be authentic.
pub(super) fn exception(direction: Direction, error: CoreError) -> PyErr {
    match error {
        CoreError::TooLong { .. } if direction == Direction::Decrypt => InvalidTag::new_err(()),
        error => from_core(error),
    }
}
