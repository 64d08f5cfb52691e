//! Batches: many messages, with a key and a nonce each.

use std::cell::RefCell;

use lockstep::aead::{self, Aead, Caller, Direction, Error as CoreError, HostData, HostMessage, Status, Tag};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use super::classes::{check_nonce, has_tag, mode_of_class};
use super::{Attached, wrong_key};
use crate::buffer::{Export, Input, Memory, slice, slice_mut, unfilled_bytes};
use crate::engine;
use crate::error::{ensure, from_core};
use crate::hazmat::direction;

/// A batch is processed in parts of this many bytes.
const PART: usize = 32 << 20;
/// The number of bytes of a part if one thread processes short messages. The descriptions of the messages of such a part fit in the
/// caches.
const PART_OF_ONE_THREAD: usize = 256 << 10;
/// The number of bytes that are added to the length of each message when parts are formed. The preparation of the key of a message
/// takes as long as processing this number of bytes.
const PREPARATION: usize = 512;

/// An argument: strings of bytes, one for each message.
pub(super) enum Strings<'py> {
    /// One string for all messages.
    Shared(Input<'py>),
    /// The bytes of all rows, the width of a row, and the length of the string at the start of each row.
    Rows(Input<'py>, usize, usize),
    List(Objects<'py>),
}

/// The objects that were in a list at the start of a call.
pub(super) struct Objects<'py> {
    objects: Bound<'py, PyTuple>,
    /// If true, the object None means an empty string. Otherwise None causes a `TypeError`, because treating it as an empty string
    /// would hide a mistake.
    none_is_empty: bool,
    /// Copies and exported buffers of the objects that are not `bytes`. No element is removed, so their memory stays valid.
    kept: RefCell<Vec<Input<'py>>>,
}

impl<'py> Objects<'py> {
    fn new(list: &Bound<'py, PyList>, none_is_empty: bool) -> Objects<'py> {
        Objects { objects: list.to_tuple(), none_is_empty, kept: RefCell::default() }
    }

    /// Returns the bytes of the object with this index.
    #[inline]
    fn get(&self, index: usize) -> PyResult<&[u8]> {
        let object = self.objects.get_borrowed_item(index)?;
        let memory = match object.cast_exact::<PyBytes>() {
            Ok(bytes) => Memory::of(bytes.as_bytes()),
            Err(_) if self.none_is_empty && object.is_none() => Memory::EMPTY,
            Err(_) => {
                let input = Input::owned(object.to_owned())?;
                let memory = Memory::of(&input);
                self.kept.borrow_mut().push(input);
                memory
            }
        };
        // SAFETY: `self` holds the object or the input, and a move of the input does not move its bytes.
        Ok(unsafe { slice(memory) })
    }
}

impl<'py> Strings<'py> {
    /// Reads the strings of an argument. The argument is None, a buffer for all messages, a list, or a tuple of a buffer with rows
    /// and the width of a row.
    ///
    /// # Errors
    /// Those of [`Input`]; `ValueError` if there is not one string for each of `count` messages.
    fn new(given: &Bound<'py, PyAny>, none_is_empty: bool, count: usize, what: &str) -> PyResult<Self> {
        let (strings, got) = if given.is_none() {
            (Strings::Shared(Input::EMPTY), count)
        } else if let Ok(rows) = given.cast::<PyTuple>() {
            let (bytes, width) = (Input::owned(rows.get_item(0)?)?, rows.get_item(1)?.extract()?);
            let got = bytes.len().checked_div(width).unwrap_or(count);
            (Strings::Rows(bytes, width, width), got)
        } else if let Ok(list) = given.cast::<PyList>() {
            let list = Objects::new(list, none_is_empty);
            let got = list.objects.len();
            (Strings::List(list), got)
        } else {
            (Strings::Shared(Input::owned(given.clone())?), count)
        };
        ensure(got == count, || format!("{got} {what} for {count} messages: give one for each message"))?;
        Ok(strings)
    }

    /// The string of a message.
    #[inline]
    fn get(&self, index: usize) -> PyResult<&[u8]> {
        match self {
            Strings::Shared(bytes) => Ok(bytes),
            Strings::Rows(bytes, width, len) => Ok(&bytes[index * width..][..*len]),
            Strings::List(list) => list.get(index),
        }
    }
}

/// A batch of a mode, without the data.
pub(super) struct Batch<'py> {
    pub(super) mode: Aead,
    pub(super) direction: Direction,
    /// The length of tags in bytes.
    pub(super) tag: usize,
    pub(super) count: usize,
    pub(super) keys: Strings<'py>,
    pub(super) nonces: Strings<'py>,
    pub(super) aads: Strings<'py>,
    /// If true, signal handlers run between parts, so that an exception can leave a part of the outputs.
    pub(super) is_interruptible: bool,
}

impl<'py> Batch<'py> {
    /// A batch in which ciphertext and tag of a message are one string.
    fn new(
        class: &str,
        encrypts: bool,
        tag: usize,
        count: usize,
        [keys, nonces, aads]: [&Bound<'py, PyAny>; 3],
    ) -> PyResult<Batch<'py>> {
        let mode = mode_of_class(class)?;
        ensure(has_tag(mode, tag), || format!("{class} has no tags of {tag} bytes"))?;
        let keys = Strings::new(keys, false, count, "keys")?;
        let nonces = Strings::new(nonces, false, count, "nonces")?;
        let aads = Strings::new(aads, true, count, "strings of associated data")?;
        let direction = direction(encrypts);
        Ok(Batch { mode, direction, tag, count, keys, nonces, aads, is_interruptible: true })
    }

    /// The length of the output for an input of `len` bytes; None if an encrypted message is shorter than its tag.
    fn output_len(&self, len: usize) -> Option<usize> {
        match self.direction {
            Direction::Encrypt => len.checked_add(self.tag),
            Direction::Decrypt => len.checked_sub(self.tag),
        }
    }

    /// Data and tag of a message. `to` has the length that [`Batch::output_len`] returns for `from`.
    #[inline]
    fn data<'a>(&self, from: &'a [u8], to: &'a mut [u8]) -> (HostData<'a>, Tag<'a>) {
        const CHECKED: &str = "the length of the output is that for the input";
        let (data, tag) = match self.direction {
            Direction::Encrypt => {
                let (body, tag) = self.mode.split_mut(to, self.tag).expect(CHECKED);
                (HostData::copy(from, body), Tag::Write(tag))
            }
            Direction::Decrypt => {
                let (body, tag) = self.mode.split(from, self.tag).expect(CHECKED);
                (HostData::copy(body, to), Tag::Expect(tag))
            }
        };
        (data.expect(CHECKED), tag)
    }

    /// Processes the messages. `memory` returns the data and the tag of a message; None if an encrypted message is shorter than its
    /// tag. Returns the outcome of each message.
    pub(super) fn run<'a>(
        &'a self,
        py: Python<'_>,
        mut memory: impl FnMut(usize) -> PyResult<Option<(HostData<'a>, Tag<'a>)>>,
    ) -> PyResult<Vec<Status>> {
        let caller = Attached::new(py)?;
        // For other modes and for long messages of GCM, the planner may choose another device, which needs many messages at once.
        let is_inline = self.mode == Aead::Gcm && engine::inline_kernel().is_some();
        let is_of_one_thread = is_inline && engine::current(py)?.threads() == 1;
        let mut statuses = vec![Status::Pending; self.count];
        // The messages of a part, and their indices.
        let (mut messages, mut indices) = (Vec::new(), Vec::new());
        let mut next = 0..self.count;
        while !next.is_empty() {
            messages.clear();
            indices.clear();
            let mut size = 0;
            // One long message makes the part larger: the planner may process the part, and needs many messages at once.
            let mut part = if is_of_one_thread { PART_OF_ONE_THREAD } else { PART };
            while size < part
                && let Some(index) = next.next()
            {
                let (key, nonce, aad) =
                    (self.keys.get(index)?, self.nonces.get(index)?, self.aads.get(index)?);
                if !self.mode.key_lengths().contains(&key.len()) {
                    return Err(wrong_key(self.mode));
                }
                check_nonce(self.mode, nonce)?;
                let Some((data, tag)) = memory(index)? else { continue };
                size += data.len() + PREPARATION;
                if data.len() > caller.batch_limit() {
                    part = PART;
                }
                messages.push(HostMessage { key, nonce, aad, data, tag, status: Status::Pending });
                indices.push(index);
            }
            match aead::run_on_host(&caller, self.mode, self.direction, &mut messages) {
                Ok(()) | Err(CoreError::AuthenticationFailed) => {}
                Err(error) => return Err(from_core(error)),
            }
            if self.is_interruptible {
                py.check_signals()?;
            }
            for (index, message) in indices.iter().zip(&messages) {
                statuses[*index] = message.status;
            }
        }
        Ok(statuses)
    }
}

/// Encrypts or decrypts the messages in a list. Returns a list of bytes, with None for a message that is not authentic.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the arguments of a batch")]
pub(crate) fn many_in_list<'py>(
    py: Python<'py>,
    class: &str,
    encrypts: bool,
    tag: usize,
    keys: &Bound<'py, PyAny>,
    nonces: &Bound<'py, PyAny>,
    data: &Bound<'py, PyList>,
    aad: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyList>> {
    let data = Objects::new(data, false);
    let batch = Batch::new(class, encrypts, tag, data.objects.len(), [keys, nonces, aad])?;
    let mut outputs = Vec::with_capacity(batch.count);
    let statuses = batch.run(py, |index| {
        let from = data.get(index)?;
        let Some(len) = batch.output_len(from.len()) else {
            outputs.push(None);
            return Ok(None);
        };
        let (bytes, memory) = unfilled_bytes(py, len)?;
        outputs.push(Some(bytes));
        // SAFETY: the memory is initialised, and belongs to a new object of this function, to which nothing else has access yet.
        Ok(Some(batch.data(from, unsafe { slice_mut(memory) })))
    })?;
    let outputs = outputs.into_iter().zip(statuses);
    PyList::new(py, outputs.map(|(output, status)| output.filter(|_| status == Status::Done)))
}

/// The messages in a buffer.
#[derive(FromPyObject)]
pub(crate) enum Places {
    /// The number of messages, which follow each other, and the length of each in bytes.
    Rows((usize, usize)),
    /// Message i is `data[offsets[i]:offsets[i + 1]]`.
    Offsets(Vec<usize>),
}

/// Encrypts or decrypts the messages in a buffer. `places` gives their positions: (number, length), or n + 1 offsets for n messages.
/// The outputs are stored one after the other in `output`. `statuses` has a byte for each message, which is set to 1 if the message
/// is authentic. The outputs of messages that are not authentic are zeroed.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the arguments of a batch")]
pub(crate) fn many_in_buffer(
    py: Python<'_>,
    class: &str,
    encrypts: bool,
    tag: usize,
    keys: &Bound<'_, PyAny>,
    nonces: &Bound<'_, PyAny>,
    data: Input<'_>,
    places: Places,
    aad: &Bound<'_, PyAny>,
    output: &Bound<'_, PyAny>,
    statuses: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let count = match &places {
        Places::Rows((count, _)) => *count,
        Places::Offsets(offsets) => offsets.len().saturating_sub(1),
    };
    let batch = Batch::new(class, encrypts, tag, count, [keys, nonces, aad])?;
    let (mut output_export, mut status_export) = (Export::new(), Export::new());
    let (output, statuses) = (output_export.write(output)?, status_export.write(statuses)?);
    // SAFETY: exported writable buffers, which the Python part of this package has just made.
    let (mut output, statuses) = unsafe { (slice_mut(output), slice_mut(statuses)) };
    let bad = || PyValueError::new_err("offsets must ascend from 0 to at most len(data)");
    let outcomes = batch.run(py, |index| {
        let range = match &places {
            Places::Rows((_, width)) => index.saturating_mul(*width)..(index + 1).saturating_mul(*width),
            Places::Offsets(offsets) => offsets[index]..offsets[index + 1],
        };
        let from = data.get(range).ok_or_else(bad)?;
        let Some(len) = batch.output_len(from.len()) else { return Ok(None) };
        let (to, rest) = std::mem::take(&mut output).split_at_mut_checked(len).ok_or_else(bad)?;
        output = rest;
        Ok(Some(batch.data(from, to)))
    })?;
    statuses.iter_mut().zip(outcomes).for_each(|(to, outcome)| *to = u8::from(outcome == Status::Done));
    Ok(())
}
