//! Batches: many messages, with a key and a nonce each.

use std::ops::Range;

use lockstep::aead::{self, Aead, AeadKey, Data, Direction, Error as CoreError, Message, Status, Tag};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use super::{Attached, Class, mode_of_class, new_key};
use crate::buffer::{Export, Memory, slice, slice_mut, unfilled_bytes};
use crate::error::from_core;

/// Between two pieces of this many bytes, signal handlers run.
const PIECE: usize = 32 << 20;
/// The number of bytes that a message counts in addition to its data, for the preparation of its key.
const PREPARATION: usize = 512;

/// Strings of bytes, one for each message.
enum Strings<'a> {
    /// The same for all messages.
    Shared(&'a [u8]),
    /// Rows of this width.
    Rows(&'a [u8], usize),
    List(Vec<&'a [u8]>),
}

impl<'a> Strings<'a> {
    fn get(&self, index: usize) -> &'a [u8] {
        match self {
            Strings::Shared(bytes) => bytes,
            Strings::Rows(bytes, width) => &bytes[index * width..][..*width],
            Strings::List(list) => list[index],
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

/// Keeps the memory of [`Strings`] valid: contains the objects of a list, and the exported buffers.
#[derive(Default)]
struct Kept<'py> {
    objects: Vec<Bound<'py, PyAny>>,
    // Boxed, because an exported buffer stays where it is.
    #[allow(clippy::vec_box, reason = "an exported buffer stays where it is")]
    exports: Vec<Box<Export>>,
}

impl<'py> Kept<'py> {
    /// Returns the memory of an object, and keeps the object.
    fn read(&mut self, object: Bound<'py, PyAny>) -> PyResult<Memory> {
        let memory = if let Ok(bytes) = object.cast_exact::<PyBytes>() {
            Memory::of(bytes.as_bytes())
        } else {
            let mut export = Box::new(Export::new());
            // The address of a copy does not change either.
            let memory = Memory::of(export.read(&object)?);
            self.exports.push(export);
            memory
        };
        self.objects.push(object);
        Ok(memory)
    }

    /// The strings of an argument: None, a buffer for all messages, a tuple of a buffer with rows and their width, or a list.
    /// In a list, None is a `TypeError`, because an empty message would hide a mistake.
    fn strings(&mut self, given: &Bound<'py, PyAny>) -> PyResult<Strings<'_>> {
        self.strings_or(given, false)
    }

    /// As `strings`; None in a list is an empty string if `none_is_empty`.
    fn strings_or(&mut self, given: &Bound<'py, PyAny>, none_is_empty: bool) -> PyResult<Strings<'_>> {
        if given.is_none() {
            return Ok(Strings::Shared(&[]));
        }
        if let Ok(rows) = given.cast::<PyTuple>() {
            let width = rows.get_item(1)?.extract()?;
            let memory = self.read(rows.get_item(0)?)?;
            // SAFETY: the memory is valid as long as `self`, which the result borrows.
            return Ok(Strings::Rows(unsafe { slice(memory) }, width));
        }
        let Ok(list) = given.cast::<PyList>() else {
            let memory = self.read(given.clone())?;
            // SAFETY: as above.
            return Ok(Strings::Shared(unsafe { slice(memory) }));
        };
        let mut strings = Vec::with_capacity(list.len());
        self.objects.reserve(list.len());
        for object in list {
            let memory = if none_is_empty && object.is_none() { Memory::of(&[]) } else { self.read(object)? };
            // SAFETY: as above.
            strings.push(unsafe { slice(memory) });
        }
        Ok(Strings::List(strings))
    }
}

/// A batch of a mode.
#[derive(Clone, Copy)]
struct Batch {
    mode: Aead,
    direction: Direction,
    tag: usize,
}

/// Keys, nonces and associated data of a batch.
struct Headers<'a> {
    /// One key for each run of messages with the same key.
    keys: Vec<AeadKey>,
    /// The index of the key of each message.
    numbers: Vec<usize>,
    nonces: Strings<'a>,
    aads: Vec<[&'a [u8]; 1]>,
}

impl Batch {
    fn new(class: &str, encrypts: bool, tag: usize) -> PyResult<Batch> {
        let mode = mode_of_class(class)?;
        if !Class::has_tag(mode, tag) {
            return Err(PyValueError::new_err(format!("{class} has no tags of {tag} bytes")));
        }
        let direction = if encrypts { Direction::Encrypt } else { Direction::Decrypt };
        Ok(Batch { mode, direction, tag })
    }

    /// The length of the output for an input of `len` bytes; None for an encrypted message without a whole tag.
    fn output_len(self, len: usize) -> Option<usize> {
        match self.direction {
            Direction::Encrypt => len.checked_add(self.tag),
            Direction::Decrypt => len.checked_sub(self.tag),
        }
    }

    /// The arguments of `count` messages, whose numbers and lengths are checked.
    fn headers<'a>(
        self,
        keys: &Strings<'a>,
        nonces: Strings<'a>,
        aads: &Strings<'a>,
        count: usize,
    ) -> PyResult<Headers<'a>> {
        keys.check(count, "keys")?;
        nonces.check(count, "nonces")?;
        aads.check(count, "strings of associated data")?;
        let mut made: Vec<AeadKey> = Vec::new();
        let mut numbers = Vec::with_capacity(count);
        let mut last: Option<&[u8]> = None;
        for index in 0..count {
            let key = keys.get(index);
            if last.is_none_or(|last| !std::ptr::eq(last, key)) {
                made.push(new_key(self.mode, key)?);
                last = Some(key);
            }
            numbers.push(made.len() - 1);
            Class::of(self.mode).check_nonce(nonces.get(index))?;
        }
        let aads = (0..count).map(|index| [aads.get(index)]).collect();
        Ok(Headers { keys: made, numbers, nonces, aads })
    }

    /// The message of an index. The length of the output is that of [`Batch::output_len`].
    fn message<'a>(
        self,
        headers: &'a Headers<'_>,
        index: usize,
        from: &'a [u8],
        to: &'a mut [u8],
    ) -> PyResult<Message<'a>> {
        let short = || PyValueError::new_err("a message is shorter than its tag");
        let (data, tag) = match self.direction {
            Direction::Encrypt => {
                let (body, tag) = self.mode.split_mut(to, self.tag).ok_or_else(short)?;
                (Data::copy(from, body), Tag::Write(tag))
            }
            Direction::Decrypt => {
                let (body, tag) = self.mode.split(from, self.tag).ok_or_else(short)?;
                (Data::copy(body, to), Tag::Expect(tag))
            }
        };
        Ok(Message {
            key: &headers.keys[headers.numbers[index]],
            nonce: headers.nonces.get(index),
            aad: &headers.aads[index],
            data: data.map_err(from_core)?,
            tag,
            status: Status::Pending,
        })
    }

    /// Runs all messages. Their statuses show which are authentic.
    fn run(self, py: Python<'_>, mut messages: &mut [Message<'_>]) -> PyResult<()> {
        while !messages.is_empty() {
            let mut size = 0;
            let mut fits = |message: &Message<'_>| {
                size += message.data.len() + PREPARATION;
                size <= PIECE
            };
            let count = messages.iter().take_while(|message| fits(message)).count().max(1);
            let (piece, rest) = messages.split_at_mut(count);
            messages = rest;
            match aead::run(&Attached(py), self.direction, piece) {
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
    let batch = Batch::new(class, encrypts, tag)?;
    let (mut kept_keys, mut kept_nonces, mut kept_data, mut kept_aad) =
        (Kept::default(), Kept::default(), Kept::default(), Kept::default());
    let data = kept_data.strings(data)?;
    let Strings::List(data) = data else { unreachable!("a list was given") };
    let (keys, nonces, aad) =
        (kept_keys.strings(keys)?, kept_nonces.strings(nonces)?, kept_aad.strings_or(aad, true)?);
    let headers = batch.headers(&keys, nonces, &aad, data.len())?;
    let mut outputs: Vec<Option<Bound<'py, PyBytes>>> = Vec::with_capacity(data.len());
    let mut messages = Vec::with_capacity(data.len());
    // The index of the output of each message.
    let mut places = Vec::with_capacity(data.len());
    for (index, from) in data.iter().enumerate() {
        let Some(len) = batch.output_len(from.len()) else {
            outputs.push(None);
            continue;
        };
        let (bytes, memory) = unfilled_bytes(py, len)?;
        outputs.push(Some(bytes));
        // SAFETY: the memory is initialised, and belongs to an object of this function, which nothing else has access to yet.
        let to = unsafe { slice_mut(memory) };
        messages.push(batch.message(&headers, index, from, to)?);
        places.push(index);
    }
    batch.run(py, &mut messages)?;
    for (message, place) in messages.iter().zip(places) {
        if message.status != Status::Done {
            outputs[place] = None;
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

impl Places {
    fn count(&self) -> usize {
        match self {
            Places::Rows((count, _)) => *count,
            Places::Offsets(offsets) => offsets.len().saturating_sub(1),
        }
    }

    /// Start and end of a message.
    fn range(&self, index: usize) -> Range<usize> {
        match self {
            Places::Rows((_, width)) => index.saturating_mul(*width)..(index + 1).saturating_mul(*width),
            Places::Offsets(offsets) => offsets[index]..offsets[index + 1],
        }
    }
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
    data: &Bound<'_, PyAny>,
    places: Places,
    aad: &Bound<'_, PyAny>,
    output: &Bound<'_, PyAny>,
    statuses: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let batch = Batch::new(class, encrypts, tag)?;
    let (mut kept_keys, mut kept_nonces, mut kept_aad) = (Kept::default(), Kept::default(), Kept::default());
    let (mut data_export, mut output_export, mut status_export) =
        (Export::new(), Export::new(), Export::new());
    let data = data_export.read(data)?;
    let count = places.count();
    let (keys, nonces, aad) =
        (kept_keys.strings(keys)?, kept_nonces.strings(nonces)?, kept_aad.strings_or(aad, true)?);
    let headers = batch.headers(&keys, nonces, &aad, count)?;
    let (output, statuses) = (output_export.write(output)?, status_export.write(statuses)?);
    // SAFETY: exported writable buffers, which the Python part of this package has just made.
    let (mut output, statuses) = unsafe { (slice_mut(output), slice_mut(statuses)) };
    let bad = || PyValueError::new_err("offsets must ascend from 0 to at most len(data)");
    let mut messages = Vec::with_capacity(count);
    for index in 0..count {
        let from = data.get(places.range(index)).ok_or_else(bad)?;
        let Some(len) = batch.output_len(from.len()) else { continue };
        let (to, rest) = std::mem::take(&mut output).split_at_mut_checked(len).ok_or_else(bad)?;
        output = rest;
        messages.push(batch.message(&headers, index, from, to)?);
    }
    batch.run(py, &mut messages)?;
    let mut done = messages.iter().map(|message| message.status == Status::Done);
    for (index, status) in statuses.iter_mut().enumerate().take(count) {
        let has_item = batch.output_len(places.range(index).len()).is_some();
        *status = u8::from(has_item && done.next() == Some(true));
    }
    Ok(())
}
