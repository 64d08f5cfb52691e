//! Authenticated encryption of many messages in one array: `lockstep.tensor.seal` and `open`.
//!
//! On a device GCM takes a `Table`, whose arrays describe the messages. The offsets, and a key and nonces that are on the host, are
//! copied to page-locked memory, which the device reads at the address of the host (unified addressing). So the call does not wait for
//! earlier work on the stream. For all other modes, no device reads a table: keys, nonces and tags pass through the host, and the call
//! waits for the end of the work. The data stay on the device.

use std::ops::Range;

use lockstep::Engine;
use lockstep::aead::{Aead, AeadKey, Data, Direction, Error as CoreError, Message, Status, Tag};
use lockstep::hazmat::KeySize;
use lockstep::hazmat::backend::DeviceId;
use lockstep::hazmat::data::{DeviceSlice, PinnedBuffer};
use lockstep::hazmat::mode::Executor;
use lockstep::hazmat::planner::OnStream;
use lockstep::hazmat::timing::Shape;
use lockstep::hazmat::work::{FusedAead, Operation, Table};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::TAG;
use super::classes::{mode_of_class, name};
use super::many::{Batch, Strings};
use crate::buffer::{Input, host_data, read_shared, slice_mut};
use crate::engine;
use crate::error::{ensure, from_core};
use crate::forks::detached;
use crate::hazmat::direction;
use crate::tensor::{Imported, Keep, Place, start_in_background};

/// The length of a nonce of GCM in bytes.
const NONCE: usize = 12;
/// The alignment of arrays that a device reads in words of 16 bytes.
const ALIGNMENT: u64 = 16;

/// The arrays of a call.
struct Call {
    mode: Aead,
    key: Imported,
    nonces: Imported,
    from: Imported,
    to: Imported,
    tags: Imported,
    status: Imported,
    /// The messages, as ranges of the data.
    ranges: Vec<Range<usize>>,
    /// The length of a key in bytes.
    key_len: usize,
    /// The length of a nonce, and the distance from one nonce to the next, in bytes.
    nonce_len: usize,
    nonce_stride: usize,
}

/// Encrypts or decrypts messages by the mode of a class of `lockstep.aead`. `key` contains one key for all messages, or one key for
/// each message. `nonces` contains a nonce, or a row with a nonce for each message; of rows of 16 bytes, the first 12 bytes are the
/// nonce. Without offsets the messages have equal lengths. `out` has the size of `data` and may be the same array. For each message,
/// `tags` has 16 bytes, and `status` has one byte.
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
        let lengths = mode.key_lengths().iter().map(usize::to_string).collect::<Vec<_>>().join(" or ");
        PyValueError::new_err(format!(
            "the key must be {lengths} bytes, or an array of bytes with {count} rows of this length"
        ))
    })?;
    let ranges = ranges(count, from.len(), offsets)?;
    let to = Imported::write(out, stream)?;
    let status = Imported::write(status, stream)?;
    let call = Call { mode, key, nonces, from, to, tags, status, ranges, key_len, nonce_len, nonce_stride };
    call.check(seals)?;
    if count == 0 {
        return Ok(());
    }
    match call.from.place.device() {
        Some(device) if mode == Aead::Gcm => call.run_table(py, seals, device),
        Some(device) => call.run_messages(py, direction(seals), device),
        None => call.run_on_host(py, direction(seals)),
    }
}

/// Returns the length in bytes of the nonces of a mode.
fn nonce_len(mode: Aead) -> PyResult<usize> {
    let row = mode.row();
    let class = name(mode);
    ensure(!row.nonce_is_optional, || {
        format!("messages in one array cannot be encrypted by {class}: call its encrypt for each message")
    })?;
    Ok(if row.nonces.contains(NONCE) { NONCE } else { *row.nonces.ranges[0].start() })
}

/// Returns the distance in bytes from one nonce to the next, and the number of nonces. `len` is the length of a nonce.
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

/// Returns the ranges of the messages in the data: equal parts, or the parts between the offsets.
fn ranges(count: usize, len: usize, offsets: Option<Vec<usize>>) -> PyResult<Vec<Range<usize>>> {
    let Some(offsets) = offsets else {
        let are_equal = count > 0 && len.is_multiple_of(count);
        ensure(are_equal, || format!("{len} bytes are not {count} messages of equal lengths: pass offsets"))?;
        let size = len / count;
        return Ok((0..count).map(|index| index * size..(index + 1) * size).collect());
    };
    let needed = count + 1;
    ensure(offsets.len() == needed && offsets.is_sorted() && offsets[count] <= len, || {
        format!("offsets must be {needed} numbers in ascending order, at most the {len} bytes of the data")
    })?;
    Ok(offsets.windows(2).map(|pair| pair[0]..pair[1]).collect())
}

/// Returns the memory of an array. `check` has found that this memory is on the device of the data.
fn on_device(array: &Imported) -> DeviceSlice {
    array.place.on_device().expect("`check` found the array on the device").clone()
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
            ensure(got == needed, || format!("{name} must have {needed} bytes, not {got}"))?;
        }
        let device = self.from.place.device();
        let are_on_device =
            [&self.to, &self.tags, &self.status].iter().all(|array| array.place.device() == device);
        ensure(are_on_device, || "data, out, tags and status must be on the same device")?;
        let is_readable = |array: &&Imported| array.place.device().is_none_or(|of| Some(of) == device);
        let are_readable = [&self.key, &self.nonces].into_iter().all(|array| is_readable(&array));
        ensure(are_readable, || "key and nonces must be on the host or on the device of the data")?;
        let (mut read, mut written) = (vec![&self.key, &self.nonces], vec![&self.to, &self.status]);
        let with_tags = if seals { &mut written } else { &mut read };
        with_tags.push(&self.tags);
        if self.from.addresses() != self.to.addresses() {
            read.push(&self.from);
        }
        let clashes = written
            .iter()
            .enumerate()
            .any(|(index, array)| read.iter().chain(&written[..index]).any(|other| array.overlaps(other)));
        ensure(!clashes, || "arrays overlap: out may be the data, all others must be separate")
    }

    /// Runs messages on the host.
    fn run_on_host(&self, py: Python<'_>, direction: Direction) -> PyResult<()> {
        let memory = |array: &Imported| match array.place {
            Place::Host(memory) => memory,
            Place::Device(_) => unreachable!("`check` found all arrays on the host"),
        };
        let (from, to, tags) = (memory(&self.from), memory(&self.to), memory(&self.tags));
        // SAFETY: the memory is valid for reads while the arrays are imported, and the memory of the outputs also for writes. `check` has
        // found that the outputs overlap nothing, except that `to` can be `from`; no slice of them is in use.
        let (input, status) =
            unsafe { (|array: &Imported| Input::of(memory(array)), slice_mut(memory(&self.status))) };
        let key = input(&self.key);
        let keys = match key.len() == self.key_len {
            true => Strings::Shared(key),
            false => Strings::Rows(key, self.key_len, self.key_len),
        };
        let nonces = Strings::Rows(input(&self.nonces), self.nonce_stride, self.nonce_len);
        let (mode, count, aads) = (self.mode, self.ranges.len(), Strings::Shared(Input::EMPTY));
        // The batch is not interruptible: if `to` is `from`, an exception would leave an unknown part of the data encrypted.
        let batch = Batch { mode, direction, tag: TAG, count, keys, nonces, aads, is_interruptible: false };
        // All statuses are set first, because a status of an earlier call must not look like a status of this call.
        status.fill(Status::Pending as u8);
        let expected = input(&self.tags);
        let statuses = batch.run(py, |index| {
            let (range, tag) = (self.ranges[index].clone(), index * TAG..(index + 1) * TAG);
            // SAFETY: as above. The parts of the messages are disjoint.
            let data = unsafe { host_data(from.part(range.clone()), to.part(range))? };
            let tag = match direction {
                // SAFETY: as above.
                Direction::Encrypt => Tag::Write(unsafe { slice_mut(tags.part(tag)) }),
                Direction::Decrypt => Tag::Expect(&expected[tag]),
            };
            Ok(Some((data, tag)))
        })?;
        status.iter_mut().zip(statuses).for_each(|(to, status)| *to = status as u8);
        Ok(())
    }

    /// Runs messages on a device that does not read a table of them, and returns when the work has ended.
    fn run_messages(&self, py: Python<'_>, direction: Direction, device: DeviceId) -> PyResult<()> {
        let (engine, mode, stream) = (engine::current(py)?, self.mode, self.from.stream);
        let executor = detached(py, || OnStream::new(engine.planner(), device, stream)).map_err(from_core)?;
        let memory = executor.device_memory();
        let read = |array: &Imported| match &array.place {
            // SAFETY: the memory is valid while the array is imported.
            Place::Host(bytes) => Ok(unsafe { Input::of(*bytes) }),
            Place::Device(slice) => Input::filled(slice.len(), |bytes| {
                detached(py, || memory.download(slice, bytes, stream)).map_err(from_core)
            }),
        };
        let write = |array: &Imported, bytes: &[u8]| {
            let slice = on_device(array);
            detached(py, || memory.upload(bytes, &slice, stream)).map_err(from_core)
        };
        let (key, nonces) = (read(&self.key)?, read(&self.nonces)?);
        let (from, to) = (on_device(&self.from), on_device(&self.to));
        let keys = key.chunks_exact(self.key_len).map(|key| AeadKey::new(mode, key));
        let keys = keys.collect::<Result<Vec<_>, _>>().map_err(from_core)?;
        let seals = direction == Direction::Encrypt;
        let mut tags = if seals { vec![0; self.tags.len()] } else { read(&self.tags)?.to_vec() };
        // A single key is used for all messages.
        let parts = self.ranges.iter().zip(tags.chunks_exact_mut(TAG)).zip(keys.iter().cycle()).enumerate();
        let messages = parts.map(|(index, ((range, tag), key))| {
            let tag = if seals { Tag::Write(tag) } else { Tag::Expect(tag) };
            let nonce = &nonces[index * self.nonce_stride..][..self.nonce_len];
            let data = Data::on_device(from.slice(range.clone()), to.slice(range.clone()))?;
            Ok(Message { key, nonce, aad: &[], data, tag, status: Status::Pending })
        });
        let mut messages = messages.collect::<Result<Vec<_>, _>>().map_err(from_core)?;
        let outcome = detached(py, || mode.run(&executor, direction, &mut messages));
        let statuses: Vec<u8> = messages.iter().map(|message| message.status as u8).collect();
        drop(messages);
        let failure = match outcome {
            // The statuses show which messages are not authentic.
            Ok(()) | Err(CoreError::AuthenticationFailed) => None,
            Err(error) => Some(from_core(error)),
        };
        if seals && failure.is_none() {
            write(&self.tags, &tags)?;
        }
        // The statuses are written also after a failure, so that no status of an earlier call remains.
        write(&self.status, &statuses)?;
        failure.map_or(Ok(()), Err)
    }

    /// Starts the work on a device that reads a table of messages.
    fn run_table(self, py: Python<'_>, seals: bool, device: DeviceId) -> PyResult<()> {
        let engine = engine::current(py)?;
        for (name, array) in [("key", &self.key), ("nonces", &self.nonces), ("tags", &self.tags)] {
            let place = array.place.on_device();
            let is_aligned = place.is_none_or(|slice| slice.offset().is_multiple_of(ALIGNMENT));
            ensure(is_aligned, || format!("{name} must start at a multiple of 16 bytes: make a copy"))?;
        }
        let is_readable = self.nonces.place.device().is_none() || self.nonce_stride == 16;
        ensure(
            is_readable || self.ranges.len() <= 1,
            || "nonces on the device must have the shape (n, 16), with 12 bytes for the nonce in each row",
        )?;
        let (table, pinned) = self.table(&engine, device)?;
        let operation = Operation::Fused(if seals { FusedAead::GcmSeal } else { FusedAead::GcmOpen });
        let (stream, shape) = (self.from.stream, Shape::of(self.ranges.iter().map(|range| range.len())));
        let arrays = [self.key, self.nonces, self.from, self.to, self.tags, self.status];
        let used = arrays.into_iter().filter(|array| array.place.device().is_some());
        let keep: Vec<Keep> = used.map(|array| array.keep).collect();
        start_in_background(py, keep, move |submitted| {
            let plan = engine.planner().plan(operation, table.key_size, shape, Some(device))?;
            let completion = plan.device.submit_table(plan.kernel, stream, operation, &table)?;
            submitted();
            let outcome = completion.wait();
            drop(pinned);
            outcome
        })
    }

    /// Returns the table of the messages that a device reads, and the page-locked memory to which the table refers. This memory
    /// contains the offsets and the lengths. It also contains the nonces and the key if they are on the host.
    fn table(&self, engine: &Engine, device: DeviceId) -> PyResult<(Table, PinnedBuffer)> {
        let count = self.ranges.len();
        let (nonces_at, key_at) = (16 * count, 32 * count);
        let memory = engine.planner().memory(device).map_err(from_core)?;
        let pinned = memory.allocate_pinned(key_at + self.key.len()).map_err(from_core)?;
        let mut bytes = pinned.lock();
        for (index, range) in self.ranges.iter().enumerate() {
            for (place, number) in [(index, range.start), (count + index, range.len())] {
                bytes[8 * place..][..8].copy_from_slice(&(number as u64).to_le_bytes());
            }
            if let Place::Host(nonces) = self.nonces.place {
                let start = self.nonce_stride * index;
                let to = &mut bytes[nonces_at + 16 * index..][..NONCE];
                // SAFETY: the memory is valid while the array is imported.
                unsafe { read_shared(nonces.part(start..start + NONCE), to) };
            }
        }
        if let Place::Host(key) = self.key.place {
            // SAFETY: as above.
            unsafe { read_shared(key, &mut bytes[key_at..][..key.len]) };
        }
        drop(bytes);
        let key_size = KeySize::ALL.into_iter().find(|size| size.bytes() == self.key_len);
        // SAFETY: the device reads page-locked memory at the address of the host (unified addressing); the job holds the buffer
        // until the work has ended, and nothing writes to it.
        let part = |at: usize, len: usize| unsafe {
            DeviceSlice::from_raw(device, pinned.address() + at as u64, len)
        };
        let table = Table {
            messages: count,
            key_size: key_size.expect("GCM has keys of the sizes of AES"),
            keys: self.key.place.on_device().cloned().unwrap_or_else(|| part(key_at, self.key.len())),
            states: self.nonces.place.on_device().cloned().unwrap_or_else(|| part(nonces_at, 16 * count)),
            offsets: part(0, 8 * count),
            lengths: part(8 * count, 8 * count),
            longest: self.ranges.iter().map(|range| range.len()).max().unwrap_or(0),
            from: on_device(&self.from),
            to: on_device(&self.to),
            tags: Some(on_device(&self.tags)),
            status: on_device(&self.status),
        };
        Ok((table, pinned))
    }
}
