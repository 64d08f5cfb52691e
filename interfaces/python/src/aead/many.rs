//! Batches: many messages, with a key and a nonce each.

use std::ops::Range;

use lockstep::aead::{self, Aead, AeadKey, Data, Direction, Error as CoreError, Message, Status, Tag};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use super::classes::{check_nonce, has_tag, mode_of_class};
use super::{Attached, wrong_key};
use crate::buffer::{Export, Input, slice_mut, unfilled_bytes};
use crate::engine;
use crate::error::from_core;

/// Between two pieces of this many bytes, signal handlers run.
const PIECE: usize = 32 << 20;
/// The number of bytes that a message counts in addition to its data, for the preparation of its key.
const PREPARATION: usize = 512;

/// The number of messages whose keys and other arguments are prepared at once, if one thread does the work: those of more messages do not
/// fit in its caches.
const PART: usize = 256;
/// The same for each of several threads. `aead::run` starts a thread for 256 KiB of work, which are 512 short messages.
const PART_OF_THREAD: usize = 1024;

/// An argument: strings of bytes, one for each message.
enum Strings<'py> {
    /// The same for all messages.
    Shared(Input<'py>),
    /// Rows of this width.
    Rows(Input<'py>, usize),
    /// A list, in which None is an empty string if the flag is set.
    List(Bound<'py, PyList>, bool),
}

/// The strings of a part of the messages.
enum Part<'a> {
    Shared(&'a [u8]),
    Rows(&'a [u8], usize),
    List(Vec<Input<'a>>),
}

impl Part<'_> {
    /// The string of a message, by its index in the part.
    fn get(&self, index: usize) -> &[u8] {
        match self {
            Part::Shared(bytes) => bytes,
            Part::Rows(bytes, width) => &bytes[index * width..][..*width],
            Part::List(list) => &list[index],
        }
    }
}

impl<'py> Strings<'py> {
    /// The strings of an argument: None, a buffer for all messages, a tuple of a buffer with rows and their width, or a list.
    /// None in a list is an empty string if `none_is_empty`. Otherwise it is a `TypeError`, because an empty key would hide a mistake.
    fn new(given: &Bound<'py, PyAny>, none_is_empty: bool) -> PyResult<Strings<'py>> {
        if given.is_none() {
            return Ok(Strings::Shared(Input::EMPTY));
        }
        if let Ok(rows) = given.cast::<PyTuple>() {
            return Ok(Strings::Rows(Input::owned(rows.get_item(0)?)?, rows.get_item(1)?.extract()?));
        }
        match given.cast::<PyList>() {
            Ok(list) => Ok(Strings::List(list.clone(), none_is_empty)),
            Err(_) => Ok(Strings::Shared(Input::owned(given.clone())?)),
        }
    }

    /// The strings of the messages in a range, which [`Strings::check`] allows. Another thread can shorten a list meanwhile, which is an
    /// `IndexError`.
    fn part(&self, range: Range<usize>) -> PyResult<Part<'_>> {
        Ok(match self {
            Strings::Shared(bytes) => Part::Shared(bytes),
            Strings::Rows(bytes, width) => Part::Rows(&bytes[range.start * width..range.end * width], *width),
            Strings::List(list, none_is_empty) => Part::List(inputs(list, range, *none_is_empty)?),
        })
    }

    fn check(&self, count: usize, what: &str) -> PyResult<()> {
        let got = match self {
            Strings::Shared(_) => return Ok(()),
            Strings::Rows(bytes, width) => bytes.len().checked_div(*width).unwrap_or(count),
            Strings::List(list, _) => list.len(),
        };
        if got == count {
            return Ok(());
        }
        Err(PyValueError::new_err(format!("{got} {what} for {count} messages: give one for each message")))
    }
}

/// The bytes of the objects in a range of a list. None is an empty string if `none_is_empty`.
fn inputs<'py>(
    list: &Bound<'py, PyList>,
    range: Range<usize>,
    none_is_empty: bool,
) -> PyResult<Vec<Input<'py>>> {
    // `collect` into a result would not allocate for all of them at once.
    let mut inputs = Vec::with_capacity(range.len());
    for index in range {
        let object = list.get_item(index)?;
        let is_empty = none_is_empty && object.is_none();
        inputs.push(if is_empty { Input::EMPTY } else { Input::owned(object)? });
    }
    Ok(inputs)
}

/// A batch of a mode, without the data.
struct Batch<'a> {
    mode: Aead,
    direction: Direction,
    tag: usize,
    count: usize,
    /// Keys, nonces and associated data.
    strings: [&'a Strings<'a>; 3],
    /// The number of messages in a part.
    part: usize,
}

/// What a part of the messages of a batch needs in addition to their data.
struct Prepared<'a> {
    batch: &'a Batch<'a>,
    /// One key for each run of messages with the same key.
    keys: Vec<AeadKey>,
    /// The index of the key of each message.
    numbers: Vec<usize>,
    nonces: &'a Part<'a>,
    aads: Vec<[&'a [u8]; 1]>,
}

impl<'a> Batch<'a> {
    /// A batch of `count` messages. The numbers of the strings are checked.
    fn new(
        py: Python<'_>,
        class: &str,
        encrypts: bool,
        tag: usize,
        count: usize,
        strings: [&'a Strings<'a>; 3],
    ) -> PyResult<Batch<'a>> {
        let mode = mode_of_class(class)?;
        if !has_tag(mode, tag) {
            return Err(PyValueError::new_err(format!("{class} has no tags of {tag} bytes")));
        }
        let direction = if encrypts { Direction::Encrypt } else { Direction::Decrypt };
        for (strings, what) in strings.iter().zip(["keys", "nonces", "strings of associated data"]) {
            strings.check(count, what)?;
        }
        // The planner may choose another device for other modes, and for long messages of GCM. It needs many messages at once.
        let is_inline = mode == Aead::Gcm && engine::inline_kernel().is_some();
        let part = match engine::current(py)?.threads() {
            _ if !is_inline => usize::MAX,
            1 => PART,
            threads => PART_OF_THREAD * threads,
        };
        Ok(Batch { mode, direction, tag, count, strings, part })
    }

    /// The messages of each part.
    fn parts(&self) -> impl Iterator<Item = Range<usize>> {
        let (count, part) = (self.count, self.part.min(self.count.max(1)));
        (0..count).step_by(part).map(move |start| start..count.min(start + part))
    }

    /// Keys, nonces and associated data of the messages in a range.
    fn strings_of(&self, range: Range<usize>) -> PyResult<[Part<'_>; 3]> {
        let [keys, nonces, aads] = self.strings;
        Ok([keys.part(range.clone())?, nonces.part(range.clone())?, aads.part(range)?])
    }

    /// Makes the keys of `count` messages, and checks the nonces.
    fn prepare(&'a self, count: usize, [keys, nonces, aads]: &'a [Part<'a>; 3]) -> PyResult<Prepared<'a>> {
        let mut different: Vec<&[u8]> = Vec::new();
        let mut numbers = Vec::with_capacity(count);
        for index in 0..count {
            let key = keys.get(index);
            if different.last().is_none_or(|&last| !std::ptr::eq(last, key)) {
                different.push(key);
            }
            numbers.push(different.len() - 1);
            check_nonce(self.mode, nonces.get(index))?;
        }
        let made = AeadKey::many(self.mode, &different).map_err(|_| wrong_key(self.mode))?;
        let aads = (0..count).map(|index| [aads.get(index)]).collect();
        Ok(Prepared { batch: self, keys: made, numbers, nonces, aads })
    }

    /// The length of the output for an input of `len` bytes; None for an encrypted message without a whole tag.
    fn output_len(&self, len: usize) -> Option<usize> {
        match self.direction {
            Direction::Encrypt => len.checked_add(self.tag),
            Direction::Decrypt => len.checked_sub(self.tag),
        }
    }
}

impl Prepared<'_> {
    /// The message of an index. The length of the output is that of [`Batch::output_len`].
    #[inline]
    fn message<'b>(&'b self, index: usize, from: &'b [u8], to: &'b mut [u8]) -> Message<'b> {
        const CHECKED: &str = "the length of the output is that for the input";
        let (data, tag) = match self.batch.direction {
            Direction::Encrypt => {
                let (body, tag) = self.batch.mode.split_mut(to, self.batch.tag).expect(CHECKED);
                (Data::copy(from, body), Tag::Write(tag))
            }
            Direction::Decrypt => {
                let (body, tag) = self.batch.mode.split(from, self.batch.tag).expect(CHECKED);
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

    /// Runs messages. Their statuses show which are authentic.
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
            match aead::run(&Attached::new(py)?, self.batch.direction, piece) {
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
    let (keys, nonces, aad) =
        (Strings::new(keys, false)?, Strings::new(nonces, false)?, Strings::new(aad, true)?);
    let batch = Batch::new(py, class, encrypts, tag, data.len(), [&keys, &nonces, &aad])?;
    let mut outputs: Vec<Option<Bound<'py, PyBytes>>> = Vec::with_capacity(data.len());
    for range in batch.parts() {
        let (strings, data) = (batch.strings_of(range.clone())?, inputs(data, range.clone(), false)?);
        let prepared = batch.prepare(range.len(), &strings)?;
        let mut messages = Vec::with_capacity(range.len());
        for (index, from) in data.iter().enumerate() {
            let Some(len) = batch.output_len(from.len()) else {
                outputs.push(None);
                continue;
            };
            let (bytes, memory) = unfilled_bytes(py, len)?;
            outputs.push(Some(bytes));
            // SAFETY: the memory is initialised, and belongs to an object of this function, which nothing else has access to yet.
            let to = unsafe { slice_mut(memory) };
            messages.push(prepared.message(index, from, to));
        }
        prepared.run(py, &mut messages)?;
        let processed = outputs[range].iter_mut().filter(|output| output.is_some());
        for (output, _) in processed.zip(&messages).filter(|(_, message)| message.status != Status::Done) {
            *output = None;
        }
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
    let batch = Batch::new(py, class, encrypts, tag, ranges.len(), [&keys, &nonces, &aad])?;
    let (mut output_export, mut status_export) = (Export::new(), Export::new());
    let (output, statuses) = (output_export.write(output)?, status_export.write(statuses)?);
    // SAFETY: exported writable buffers, which the Python part of this package has just made.
    let (mut output, statuses) = unsafe { (slice_mut(output), slice_mut(statuses)) };
    let bad = || PyValueError::new_err("offsets must ascend from 0 to at most len(data)");
    for part in batch.parts() {
        let (strings, ranges) = (batch.strings_of(part.clone())?, &ranges[part.clone()]);
        let prepared = batch.prepare(part.len(), &strings)?;
        let mut messages = Vec::with_capacity(part.len());
        for (index, range) in ranges.iter().enumerate() {
            let from = data.get(range.clone()).ok_or_else(bad)?;
            let Some(len) = batch.output_len(from.len()) else { continue };
            let (to, rest) = std::mem::take(&mut output).split_at_mut_checked(len).ok_or_else(bad)?;
            output = rest;
            messages.push(prepared.message(index, from, to));
        }
        prepared.run(py, &mut messages)?;
        let mut done = messages.iter().map(|message| message.status == Status::Done);
        for (status, range) in statuses[part].iter_mut().zip(ranges) {
            let is_processed = batch.output_len(range.len()).is_some();
            *status = u8::from(is_processed && done.next() == Some(true));
        }
    }
    Ok(())
}
