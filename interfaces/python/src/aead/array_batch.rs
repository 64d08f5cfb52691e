//! Authenticated encryption of many messages in one array: `lockstep.tensor.seal` and `open`.
//!
//! On a device GCM takes a `Table`, whose arrays describe the messages; `array_modes` has the other modes. What the host supplies
//! (a key, nonces, offsets) is in page-locked memory, which the device reads at its address (unified addressing), so nothing waits for
//! earlier work on the stream.

use std::ops::Range;

use lockstep::aead::{
    self, Aead, AeadKey, Data, Direction, Error as CoreError, Message, Result as CoreResult, Status, Tag,
};
use lockstep::hazmat::KeySize;
use lockstep::hazmat::backend::DeviceId;
use lockstep::hazmat::data::{DeviceSlice, PinnedBuffer};
use lockstep::hazmat::mode::Executor;
use lockstep::hazmat::timing::Shape;
use lockstep::hazmat::work::{FusedAead, Operation, Table, Task, Work};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::{Attached, Class, TAG, mode_of_class};
use crate::buffer::{input, read_shared, slice, slice_mut};
use crate::engine;
use crate::error::from_core;
use crate::tensor::{Imported, Keep, Place, start_in_background};

/// The bytes of a nonce of GCM.
const NONCE: usize = 12;
/// The alignment of arrays that a device reads in words of 16 bytes.
const ALIGNMENT: u64 = 16;

/// The arrays of a call.
pub(super) struct Call {
    pub(super) mode: Aead,
    pub(super) key: Imported,
    pub(super) nonces: Imported,
    pub(super) from: Imported,
    pub(super) to: Imported,
    pub(super) tags: Imported,
    pub(super) status: Imported,
    /// The messages, as ranges of the data.
    pub(super) ranges: Vec<Range<usize>>,
    /// The bytes of a key.
    pub(super) key_len: usize,
    /// The bytes of a nonce, and those from one nonce to the next.
    pub(super) nonce_len: usize,
    pub(super) nonce_stride: usize,
}

/// Encrypts or decrypts messages by the mode of a class of `lockstep.aead`. `key` has one key, or one for each message; `nonces` one
/// nonce, or rows of nonces; of rows of 16 bytes the first 12 are used. Without offsets the messages have equal lengths. `to` has the size of `from` and may be the
/// same array; `tags` has 16 bytes for each message and `status` one.
#[pyfunction]
#[pyo3(signature = (mode, seals, key, nonces, data, out, tags, status, offsets, stream))]
#[allow(clippy::too_many_arguments, reason = "the arguments of lockstep.tensor.seal and open")]
pub(crate) fn tensor_batch(
    py: Python<'_>,
    mode: &str,
    seals: bool,
    key: &Bound<'_, PyAny>,
    nonces: &Bound<'_, PyAny>,
    data: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
    tags: &Bound<'_, PyAny>,
    status: &Bound<'_, PyAny>,
    offsets: Option<Vec<usize>>,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let mode = mode_of_class(mode)?;
    let from = Imported::read(data, stream)?;
    let stream = from.stream_for_others(py, stream)?;
    let stream = stream.as_ref();
    let tags = if seals { Imported::write(tags, stream)? } else { Imported::read(tags, stream)? };
    let nonces = Imported::read(nonces, stream)?;
    let nonce_len = nonce_len(mode)?;
    let (nonce_stride, count) = nonces_of(&nonces, nonce_len)?;
    let key = Imported::read(key, stream)?;
    let row = match key.shape[..] {
        [size] => Some(size),
        [keys, size] if keys == count => Some(size),
        _ => None,
    };
    let is_key = |len: &usize| key.item == 1 && mode.key_lengths().contains(len);
    let key_len = row.filter(is_key).ok_or_else(|| {
        let lengths: Vec<_> = mode.key_lengths().iter().map(usize::to_string).collect();
        PyValueError::new_err(format!(
            "the key must be {} bytes, or an array of bytes with {count} rows of this length",
            lengths.join(" or ")
        ))
    })?;
    let ranges = ranges(count, from.len(), offsets)?;
    let to = Imported::write(out, stream)?;
    let status = Imported::write(status, stream)?;
    let call = Call { mode, key, nonces, from, to, tags, status, ranges, key_len, nonce_len, nonce_stride };
    call.check(seals)?;
    let direction = if seals { Direction::Encrypt } else { Direction::Decrypt };
    match call.from.device() {
        None => call.on_host(py, direction),
        Some(device) if mode == Aead::Gcm => call.on_device(py, direction, device),
        Some(device) => call.by_host(py, direction, device),
    }
}

/// The bytes of a mode's nonces in an array.
fn nonce_len(mode: Aead) -> PyResult<usize> {
    let row = mode.row();
    if row.nonce_is_optional {
        return Err(PyValueError::new_err(format!(
            "messages in one array cannot be encrypted by {}: call its encrypt for each message",
            Class::of(mode).name
        )));
    }
    Ok(if row.nonces.contains(NONCE) { NONCE } else { *row.nonces.ranges[0].start() })
}

/// The bytes from one nonce to the next, and the number of nonces.
fn nonces_of(nonces: &Imported, len: usize) -> PyResult<(usize, usize)> {
    match nonces.shape[..] {
        [one] if nonces.item == 1 && one == len => Ok((len, 1)),
        [count, stride] if nonces.item == 1 && (stride == len || (len == NONCE && stride == 16)) => {
            Ok((stride, count))
        }
        _ => {
            let rows = if len == NONCE { format!("(n, {len}) or (n, 16)") } else { format!("(n, {len})") };
            let text = format!("nonces must be {len} bytes, or an array of bytes of the shape {rows}");
            Err(PyValueError::new_err(text))
        }
    }
}

/// The messages: equal parts, or the parts between offsets.
fn ranges(count: usize, len: usize, offsets: Option<Vec<usize>>) -> PyResult<Vec<Range<usize>>> {
    match offsets {
        None if count == 0 || !len.is_multiple_of(count) => Err(PyValueError::new_err(format!(
            "{len} bytes are not {count} messages of equal lengths: pass offsets"
        ))),
        None => Ok((0..count).map(|index| index * (len / count)..(index + 1) * (len / count)).collect()),
        Some(offsets) => {
            let is_good = offsets.len() == count + 1
                && offsets.is_sorted()
                && offsets.last().is_some_and(|&last| last <= len);
            if !is_good {
                return Err(PyValueError::new_err(format!(
                    "offsets must be {} numbers in ascending order, at most the {len} bytes of the data",
                    count + 1
                )));
            }
            Ok(offsets.windows(2).map(|pair| pair[0]..pair[1]).collect())
        }
    }
}

impl Call {
    fn check(&self, seals: bool) -> PyResult<()> {
        let count = self.ranges.len();
        let lengths = [
            ("out", self.to.len(), self.from.len()),
            ("tags", self.tags.len(), TAG * count),
            ("status", self.status.len(), count),
        ];
        for (name, got, needed) in lengths {
            if got != needed {
                return Err(PyValueError::new_err(format!("{name} must have {needed} bytes, not {got}")));
            }
        }
        let device = self.from.device();
        if [&self.to, &self.tags, &self.status].iter().any(|array| array.device() != device) {
            return Err(PyValueError::new_err("data, out, tags and status must be on the same device"));
        }
        if [&self.key, &self.nonces].iter().any(|array| array.device().is_some_and(|of| Some(of) != device)) {
            return Err(PyValueError::new_err(
                "key and nonces must be on the host or on the device of the data",
            ));
        }
        let written =
            if seals { &[&self.to, &self.status, &self.tags][..] } else { &[&self.to, &self.status] };
        let all = [&self.key, &self.nonces, &self.from, &self.to, &self.status, &self.tags];
        let is_in_place = |one, other: &Imported| {
            std::ptr::eq(one, &self.to)
                && std::ptr::eq(other, &self.from)
                && other.addresses() == self.to.addresses()
        };
        let clashes = written.iter().any(|&one| {
            let mut others =
                all.iter().filter(|&&other| !std::ptr::eq(one, other) && !is_in_place(one, other));
            others.any(|other| one.overlaps(other))
        });
        if clashes {
            return Err(PyValueError::new_err(
                "arrays overlap: out may be the data, all others must be separate",
            ));
        }
        Ok(())
    }

    fn on_host(self, py: Python<'_>, direction: Direction) -> PyResult<()> {
        let host = |array: &Imported| match array.place {
            Place::Host(memory) => Ok(memory),
            Place::Device(_) => Err(PyValueError::new_err("all arrays must be on the host")),
        };
        let (from, to, tags, status) =
            (host(&self.from)?, host(&self.to)?, host(&self.tags)?, host(&self.status)?);
        let (key, nonces) = (host(&self.key)?, host(&self.nonces)?);
        let (mut key_copy, mut nonces_copy, mut tags_copy) = (None, None, None);
        let is_in_place = from.start == to.start;
        // SAFETY: the memory is valid while the arrays are imported, and `check` has found that what is written overlaps nothing,
        // except `from` for work in place, whose slice is not used then. When opening, the tags are only read.
        let (keys, nonces, from, to, status) = unsafe {
            (
                keys_of(self.mode, input(key, &mut key_copy), self.key_len).map_err(from_core)?,
                input(nonces, &mut nonces_copy),
                (!is_in_place).then(|| slice(from)),
                slice_mut(to),
                slice_mut(status),
            )
        };
        // SAFETY: as above.
        let tags: Box<dyn Iterator<Item = Tag<'_>>> = unsafe {
            match direction {
                Direction::Encrypt => Box::new(slice_mut(tags).chunks_exact_mut(TAG).map(Tag::Write)),
                Direction::Decrypt => {
                    Box::new(input(tags, &mut tags_copy).chunks_exact(TAG).map(Tag::Expect))
                }
            }
        };
        let (mut rest, mut at) = (to, 0);
        let mut messages = Vec::with_capacity(self.ranges.len());
        for (index, (range, tag)) in self.ranges.iter().zip(tags).enumerate() {
            let (_, tail) = std::mem::take(&mut rest).split_at_mut(range.start - at);
            let (part, tail) = tail.split_at_mut(range.len());
            (rest, at) = (tail, range.end);
            let data = match from {
                Some(from) => Data::copy(&from[range.clone()], part).map_err(from_core)?,
                None => Data::in_place(part),
            };
            let key = &keys[if keys.len() == 1 { 0 } else { index }];
            let nonce = &nonces[index * self.nonce_stride..][..self.nonce_len];
            messages.push(Message { key, nonce, aad: &[], data, tag, status: Status::Pending });
        }
        let outcome = aead::run(&Attached(py), direction, &mut messages);
        for (byte, message) in status.iter_mut().zip(&messages) {
            *byte = message.status as u8;
        }
        match outcome {
            // The statuses show which messages are not authentic.
            Ok(()) | Err(CoreError::AuthenticationFailed) => Ok(()),
            Err(error) => Err(from_core(error)),
        }
    }

    fn on_device(self, py: Python<'_>, direction: Direction, device: DeviceId) -> PyResult<()> {
        let engine = engine::current(py)?;
        let count = self.ranges.len();
        if count == 0 {
            return Ok(());
        }
        for (name, array) in [("key", &self.key), ("nonces", &self.nonces), ("tags", &self.tags)] {
            if let Place::Device(slice) = &array.place
                && !slice.offset().is_multiple_of(ALIGNMENT)
            {
                return Err(PyValueError::new_err(format!(
                    "{name} must start at a multiple of 16 bytes: make a copy"
                )));
            }
        }
        if self.nonces.device().is_some() && self.nonce_stride != 16 && count > 1 {
            return Err(PyValueError::new_err(
                "nonces on the device must have the shape (n, 16), with 12 bytes for the nonce in each row",
            ));
        }
        let pinned = self.described(&engine, device)?;
        let table = self.table(&pinned)?;
        let operation = Operation::Fused(match direction {
            Direction::Encrypt => FusedAead::GcmSeal,
            Direction::Decrypt => FusedAead::GcmOpen,
        });
        let (stream, shape) = (self.from.stream, Shape::of(self.ranges.iter().map(|range| range.len())));
        let arrays = [self.key, self.nonces, self.from, self.to, self.tags, self.status];
        let keep: Vec<Keep> = arrays.into_iter().filter_map(Imported::into_keep).collect();
        start_in_background(py, keep, move |submitted| {
            let plan = engine.planner().plan(operation, table.key_size, shape, Some(device))?;
            let work = Work { stream, task: Task::Table(operation, Box::new(table)) };
            let completion = plan.submit(work)?;
            submitted();
            let outcome = completion.wait();
            drop(pinned);
            outcome
        })
    }

    /// Page-locked memory with offsets and lengths, and with the key and the nonces if they are on the host.
    fn described(&self, engine: &lockstep::Engine, device: DeviceId) -> PyResult<PinnedBuffer> {
        let count = self.ranges.len();
        let memory = engine.planner().memory(device).map_err(from_core)?;
        let places = self.places();
        let pinned = memory.allocate_pinned(places.end).map_err(from_core)?;
        {
            let mut bytes = pinned.lock();
            for (index, range) in self.ranges.iter().enumerate() {
                let at = 8 * index;
                bytes[at..at + 8].copy_from_slice(&(range.start as u64).to_le_bytes());
                let at = 8 * (count + index);
                bytes[at..at + 8].copy_from_slice(&(range.len() as u64).to_le_bytes());
            }
            if let Place::Host(nonces) = self.nonces.place {
                for index in 0..count {
                    let at = places.nonces + 16 * index;
                    let from = self.nonce_stride * index;
                    let nonce = nonces.part(from..from + NONCE);
                    // SAFETY: the memory is valid while the array is imported.
                    unsafe { read_shared(nonce, &mut bytes[at..at + NONCE]) };
                }
            }
            if let Place::Host(key) = self.key.place {
                // SAFETY: as above.
                unsafe { read_shared(key, &mut bytes[places.key..places.key + key.len]) };
            }
        }
        Ok(pinned)
    }

    fn places(&self) -> Places {
        let count = self.ranges.len();
        let nonces = (16 * count).next_multiple_of(ALIGNMENT as usize);
        let key = nonces + 16 * count;
        Places { nonces, key, end: key + self.key.len() }
    }

    fn table(&self, pinned: &PinnedBuffer) -> PyResult<Table> {
        let (count, places) = (self.ranges.len(), self.places());
        let device_slice = |array: &Imported| match &array.place {
            Place::Device(slice) => Some(slice.clone()),
            Place::Host(_) => None,
        };
        let required = |array: &Imported| {
            device_slice(array)
                .ok_or_else(|| PyValueError::new_err("data, out, tags and status must be on the device"))
        };
        let (from, to, tags, status) =
            (required(&self.from)?, required(&self.to)?, required(&self.tags)?, required(&self.status)?);
        let device = from.device();
        let key_size = KeySize::ALL.into_iter().find(|size| size.bytes() == self.key_len);
        let key_size = key_size.ok_or_else(|| PyValueError::new_err("the key must be 16, 24 or 32 bytes"))?;
        // SAFETY: the device reads page-locked memory at the address of the host (unified addressing); the job holds the buffer
        // until the work has ended, and nothing writes to it.
        let part = |at: usize, len: usize| unsafe {
            DeviceSlice::from_raw(device, pinned.address() + at as u64, len)
        };
        Ok(Table {
            messages: count,
            key_size,
            keys: device_slice(&self.key).unwrap_or_else(|| part(places.key, self.key.len())),
            states: device_slice(&self.nonces).unwrap_or_else(|| part(places.nonces, 16 * count)),
            offsets: part(0, 8 * count),
            lengths: part(8 * count, 8 * count),
            longest: self.ranges.iter().map(|range| range.len()).max().unwrap_or(0),
            from,
            to,
            tags: Some(tags),
            status,
        })
    }
}

/// Places in the page-locked memory, in bytes. Offsets and lengths come first.
struct Places {
    nonces: usize,
    key: usize,
    end: usize,
}

/// One key, or one for each message.
///
/// # Errors
/// Those of [`AeadKey::new`].
pub(super) fn keys_of(mode: Aead, keys: &[u8], len: usize) -> CoreResult<Vec<AeadKey>> {
    keys.chunks_exact(len).map(|key| AeadKey::new(mode, key)).collect()
}
