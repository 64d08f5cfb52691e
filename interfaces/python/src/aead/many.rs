//! Batches: many messages, with a key and a nonce each.

use std::ops::Range;

use lockstep::aead::{self, Aead, AeadKey, Data, Direction, Error as CoreError, Message, Status, Tag};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use super::classes::{check_nonce, has_tag, mode_of_class};
use super::{Attached, new_key};
use crate::buffer::{Export, Input, slice_mut, unfilled_bytes};
use crate::error::from_core;

/// Between two pieces of this many bytes, signal handlers run.
const PIECE: usize = 32 << 20;
/// The number of bytes that a message counts in addition to its data, for the preparation of its key.
const PREPARATION: usize = 512;

/// Strings of bytes, one for each message.
enum Strings<'py> {
    /// The same for all messages.
    Shared(Input<'py>),
    /// Rows of this width.
    Rows(Input<'py>, usize),
    List(Vec<Input<'py>>),
}

impl<'py> Strings<'py> {
    /// The strings of an argument: None, a buffer for all messages, a tuple of a buffer with rows and their width, or a list.
    /// None in a list is an empty string if `none_is_empty`. Otherwise it is a `TypeError`, because an empty message would hide a mistake.
    fn new(given: &Bound<'py, PyAny>, none_is_empty: bool) -> PyResult<Strings<'py>> {
        if given.is_none() {
            return Ok(Strings::Shared(Input::EMPTY));
        }
        if let Ok(rows) = given.cast::<PyTuple>() {
            return Ok(Strings::Rows(Input::owned(rows.get_item(0)?)?, rows.get_item(1)?.extract()?));
        }
        let Ok(list) = given.cast::<PyList>() else {
            return Ok(Strings::Shared(Input::owned(given.clone())?));
        };
        let mut strings = Vec::with_capacity(list.len());
        for object in list {
            let is_empty = none_is_empty && object.is_none();
            strings.push(if is_empty { Input::EMPTY } else { Input::owned(object)? });
        }
        Ok(Strings::List(strings))
    }

    fn get(&self, index: usize) -> &[u8] {
        match self {
            Strings::Shared(bytes) => bytes,
            Strings::Rows(bytes, width) => &bytes[index * width..][..*width],
            Strings::List(list) => &list[index],
        }
    }

    fn check(&self, count: usize, what: &str) -> PyResult<()> {
        let got = match self {
            Strings::Shared(_) => return Ok(()),
            Strings::Rows(bytes, width) => bytes.len().checked_div(*width).unwrap_or(count),
            Strings::List(list) => list.len(),
        };
        if got == count {
            return Ok(());
        }
        Err(PyValueError::new_err(format!("{got} {what} for {count} messages: give one for each message")))
    }
}

/// A batch of a mode, without the data.
struct Batch<'a> {
    mode: Aead,
    direction: Direction,
    tag: usize,
    /// One key for each run of messages with the same key.
    keys: Vec<AeadKey>,
    /// The index of the key of each message.
    numbers: Vec<usize>,
    nonces: &'a Strings<'a>,
    aads: Vec<[&'a [u8]; 1]>,
}

impl<'a> Batch<'a> {
    /// The arguments of `count` messages, which are checked.
    fn new(
        class: &str,
        encrypts: bool,
        tag: usize,
        count: usize,
        [keys, nonces, aads]: [&'a Strings<'a>; 3],
    ) -> PyResult<Batch<'a>> {
        let mode = mode_of_class(class)?;
        if !has_tag(mode, tag) {
            return Err(PyValueError::new_err(format!("{class} has no tags of {tag} bytes")));
        }
        let direction = if encrypts { Direction::Encrypt } else { Direction::Decrypt };
        keys.check(count, "keys")?;
        nonces.check(count, "nonces")?;
        aads.check(count, "strings of associated data")?;
        let mut made: Vec<AeadKey> = Vec::new();
        let mut numbers = Vec::with_capacity(count);
        let mut last: Option<&[u8]> = None;
        for index in 0..count {
            let key = keys.get(index);
            if last.is_none_or(|last| !std::ptr::eq(last, key)) {
                made.push(new_key(mode, key)?);
                last = Some(key);
            }
            numbers.push(made.len() - 1);
            check_nonce(mode, nonces.get(index))?;
        }
        let aads = (0..count).map(|index| [aads.get(index)]).collect();
        Ok(Batch { mode, direction, tag, keys: made, numbers, nonces, aads })
    }

    /// The length of the output for an input of `len` bytes; None for an encrypted message without a whole tag.
    fn output_len(&self, len: usize) -> Option<usize> {
        match self.direction {
            Direction::Encrypt => len.checked_add(self.tag),
            Direction::Decrypt => len.checked_sub(self.tag),
        }
    }

    /// The message of an index. The length of the output is that of [`Batch::output_len`].
    #[inline]
    fn message<'b>(&'b self, index: usize, from: &'b [u8], to: &'b mut [u8]) -> Message<'b> {
        const CHECKED: &str = "the length of the output is that for the input";
        let (data, tag) = match self.direction {
            Direction::Encrypt => {
                let (body, tag) = self.mode.split_mut(to, self.tag).expect(CHECKED);
                (Data::copy(from, body), Tag::Write(tag))
            }
            Direction::Decrypt => {
                let (body, tag) = self.mode.split(from, self.tag).expect(CHECKED);
                (Data::copy(body, to), Tag::Expect(tag))
            }
        };
        Message {
            key: &self.keys[self.numbers[index]],
            nonce: self.nonces.get(index),
            aad: &self.aads[index],
            data: data.expect(CHECKED),
            tag,
            status: Status::Pending,
        }
    }

    /// Runs all messages. Their statuses show which are authentic.
    fn run(&self, py: Python<'_>, mut messages: &mut [Message<'_>]) -> PyResult<()> {
        while !messages.is_empty() {
            let mut size = 0;
            let fitting = messages.iter().take_while(|message| {
                size += message.data.len() + PREPARATION;
                size <= PIECE
            });
            let count = fitting.count().max(1);
            let (piece, rest) = messages.split_at_mut(count);
            messages = rest;
            match aead::run(&Attached::new(py)?, self.direction, piece) {
                Ok(()) | Err(CoreError::AuthenticationFailed) => {}
                Err(error) => return Err(from_core(error)),
            }
            py.check_signals()?;
        }
        Ok(())
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
    let Strings::List(data) = Strings::new(data, false)? else { unreachable!("a list was given") };
    let (keys, nonces, aad) =
        (Strings::new(keys, false)?, Strings::new(nonces, false)?, Strings::new(aad, true)?);
    let batch = Batch::new(class, encrypts, tag, data.len(), [&keys, &nonces, &aad])?;
    let mut outputs: Vec<Option<Bound<'py, PyBytes>>> = Vec::with_capacity(data.len());
    let mut messages = Vec::with_capacity(data.len());
    for (index, from) in data.iter().enumerate() {
        let Some(len) = batch.output_len(from.len()) else {
            outputs.push(None);
            continue;
        };
        let (bytes, memory) = unfilled_bytes(py, len)?;
        outputs.push(Some(bytes));
        // SAFETY: the memory is initialised, and belongs to an object of this function, which nothing else has access to yet.
        let to = unsafe { slice_mut(memory) };
        messages.push(batch.message(index, from, to));
    }
    batch.run(py, &mut messages)?;
    let processed = outputs.iter_mut().filter(|output| output.is_some());
    for (output, _) in processed.zip(&messages).filter(|(_, message)| message.status != Status::Done) {
        *output = None;
    }
    PyList::new(py, outputs)
}

/// The messages in a buffer.
#[derive(FromPyObject)]
pub(crate) enum Places {
    /// The number of messages, which follow each other, and the length of each in bytes.
    Rows((usize, usize)),
    /// Message i is `data[offsets[i]:offsets[i + 1]]`.
    Offsets(Vec<usize>),
}

/// Encrypts or decrypts the messages in a buffer, which are at `places`: (number, length), or n + 1 offsets. The outputs follow each
/// other in `output`. `statuses` has a byte for each message, which is set to 1 if the message is authentic; other outputs are zeroed.
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
    let (keys, nonces, aad) =
        (Strings::new(keys, false)?, Strings::new(nonces, false)?, Strings::new(aad, true)?);
    let ranges: Vec<Range<usize>> = match places {
        Places::Rows((count, width)) => {
            (0..count).map(|row| row.saturating_mul(width)..(row + 1).saturating_mul(width)).collect()
        }
        Places::Offsets(offsets) => offsets.windows(2).map(|pair| pair[0]..pair[1]).collect(),
    };
    let batch = Batch::new(class, encrypts, tag, ranges.len(), [&keys, &nonces, &aad])?;
    let (mut output_export, mut status_export) = (Export::new(), Export::new());
    let (output, statuses) = (output_export.write(output)?, status_export.write(statuses)?);
    // SAFETY: exported writable buffers, which the Python part of this package has just made.
    let (mut output, statuses) = unsafe { (slice_mut(output), slice_mut(statuses)) };
    let bad = || PyValueError::new_err("offsets must ascend from 0 to at most len(data)");
    let mut messages = Vec::with_capacity(ranges.len());
    for (index, range) in ranges.iter().enumerate() {
        let from = data.get(range.clone()).ok_or_else(bad)?;
        let Some(len) = batch.output_len(from.len()) else { continue };
        let (to, rest) = std::mem::take(&mut output).split_at_mut_checked(len).ok_or_else(bad)?;
        output = rest;
        messages.push(batch.message(index, from, to));
    }
    batch.run(py, &mut messages)?;
    let mut done = messages.iter().map(|message| message.status == Status::Done);
    for (status, range) in statuses.iter_mut().zip(&ranges) {
        let is_processed = batch.output_len(range.len()).is_some();
        *status = u8::from(is_processed && done.next() == Some(true));
    }
    Ok(())
}
