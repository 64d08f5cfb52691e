//! Many messages in memory of a device, by the modes for which no device reads a table of messages: all but GCM.
//!
//! Keys, nonces and tags pass through the host, and the call waits for the end of the work. The data stay on the device.

use lockstep::aead::{Data, Direction, Error as CoreError, Message, Result as CoreResult, Status, Tag};
use lockstep::hazmat::backend::{DeviceId, DeviceMemory};
use lockstep::hazmat::data::DeviceSlice;
use lockstep::hazmat::planner::OnStream;
use lockstep::hazmat::work::Stream;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use zeroize::Zeroizing;

use super::TAG;
use super::array_batch::{Call, keys_of};
use crate::buffer::read_shared;
use crate::engine;
use crate::error::from_core;
use crate::forks::detached;
use crate::tensor::{Imported, Place};

/// The bytes of an array, which the host reads.
enum Source<'a> {
    Host(Zeroizing<Vec<u8>>),
    Device(&'a DeviceSlice),
}

impl Source<'_> {
    fn of(array: &Imported) -> Source<'_> {
        match &array.place {
            Place::Host(memory) => {
                let mut bytes = Zeroizing::new(vec![0; memory.len]);
                // SAFETY: the memory is valid while the array is imported.
                unsafe { read_shared(*memory, &mut bytes) };
                Source::Host(bytes)
            }
            Place::Device(slice) => Source::Device(slice),
        }
    }

    fn read(&self, memory: &dyn DeviceMemory, stream: Stream) -> CoreResult<Zeroizing<Vec<u8>>> {
        match self {
            Source::Host(bytes) => Ok(bytes.clone()),
            Source::Device(slice) => {
                let mut bytes = Zeroizing::new(vec![0; slice.len()]);
                memory.download(slice, &mut bytes, stream)?;
                Ok(bytes)
            }
        }
    }
}

impl Call {
    /// The call on a device, which has ended when this function returns.
    pub(super) fn by_host(&self, py: Python<'_>, direction: Direction, device: DeviceId) -> PyResult<()> {
        let engine = engine::current(py)?;
        if self.ranges.is_empty() {
            return Ok(());
        }
        let on_device = |array: &Imported| match &array.place {
            Place::Device(slice) => Ok(slice.clone()),
            Place::Host(_) => {
                Err(PyValueError::new_err("data, out, tags and status must be on the same device"))
            }
        };
        let (from, to) = (on_device(&self.from)?, on_device(&self.to)?);
        let (tags, status) = (on_device(&self.tags)?, on_device(&self.status)?);
        let (key, nonces, stream) = (Source::of(&self.key), Source::of(&self.nonces), self.from.stream);
        let (mode, ranges, key_len) = (self.mode, &self.ranges, self.key_len);
        let (nonce_len, nonce_stride) = (self.nonce_len, self.nonce_stride);
        let work = || -> CoreResult<()> {
            let executor = OnStream::new(engine.planner(), device, stream)?;
            let memory = executor.device_memory();
            let keys = keys_of(mode, &key.read(memory, stream)?, key_len)?;
            let nonces = nonces.read(memory, stream)?;
            let mut tag_bytes = vec![0; tags.len()];
            let parts: Box<dyn Iterator<Item = Tag<'_>>> = match direction {
                Direction::Encrypt => Box::new(tag_bytes.chunks_exact_mut(TAG).map(Tag::Write)),
                Direction::Decrypt => {
                    memory.download(&tags, &mut tag_bytes, stream)?;
                    Box::new(tag_bytes.chunks_exact(TAG).map(Tag::Expect))
                }
            };
            let messages = ranges.iter().zip(parts).enumerate().map(|(index, (range, tag))| {
                let key = &keys[if keys.len() == 1 { 0 } else { index }];
                let nonce = &nonces[index * nonce_stride..][..nonce_len];
                let data = Data::on_device(from.slice(range.clone()), to.slice(range.clone()))?;
                Ok(Message { key, nonce, aad: &[], data, tag, status: Status::Pending })
            });
            let mut messages = messages.collect::<CoreResult<Vec<_>>>()?;
            let outcome = mode.run(&executor, direction, &mut messages);
            let statuses: Vec<u8> = messages.iter().map(|message| message.status as u8).collect();
            match outcome {
                // The statuses show which messages are not authentic.
                Ok(()) | Err(CoreError::AuthenticationFailed) => {}
                Err(error) => return Err(error),
            }
            if direction == Direction::Encrypt {
                memory.upload(&tag_bytes, &tags, stream)?;
            }
            memory.upload(&statuses, &status, stream)
        };
        detached(py, work).map_err(from_core)
    }
}
