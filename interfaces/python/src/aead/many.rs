//! Batches: many messages, with a key and a nonce each.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use lockstep::Engine;
use lockstep::hazmat::data::{Data, HostData};
use lockstep::hazmat::inline::{InlineGcm, InlineKernel};
use lockstep::hazmat::mode::aead::Message;
use lockstep::hazmat::mode::{Aead, AeadKey};
use lockstep::hazmat::work::{Status, Tag};
use lockstep::hazmat::{Error as CoreError, Result as CoreResult};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use zeroize::Zeroize;

use super::{CCM_TAGS, Cipher, gcm};
use crate::buffer::{Export, Memory, slice, slice_mut, unfilled_bytes};
use crate::engine;
use crate::error::from_core;
use crate::forks::detached;
use crate::modes::{TAG, mode_of_class};

/// Between two pieces of this many bytes, signal handlers run.
const PIECE: usize = 32 << 20;
/// Work of fewer bytes is done by one thread, because starting another thread takes as long as the work.
const THREAD: usize = 256 << 10;
/// The number of messages that a thread takes at once.
const TAKE: usize = 32;
/// Messages of GCM of at most this many bytes on average are computed by the CPU's inline kernel.
const SMALL: usize = 64 << 10;
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

/// A message.
struct Item<'a> {
    key: &'a [u8],
    nonce: &'a [u8],
    aad: [&'a [u8]; 1],
    from: &'a [u8],
    to: &'a mut [u8],
    is_done: bool,
}

/// A batch of a mode.
#[derive(Clone, Copy)]
struct Batch {
    mode: Aead,
    encrypts: bool,
    tag: usize,
}

impl Batch {
    fn new(class: &str, encrypts: bool, tag: usize) -> PyResult<Batch> {
        let mode = mode_of_class(class)?;
        // The other modes could verify a part of a tag, which is easy to forge.
        let has_tag = if mode == Aead::Ccm { CCM_TAGS.contains(&tag) } else { tag == TAG };
        if !has_tag {
            return Err(PyValueError::new_err(format!("{class} has no tags of {tag} bytes")));
        }
        Ok(Batch { mode, encrypts, tag })
    }

    /// The length of the output for an input of `len` bytes; None for an encrypted message without a whole tag.
    fn output_len(self, len: usize) -> Option<usize> {
        if self.encrypts { len.checked_add(self.tag) } else { len.checked_sub(self.tag) }
    }

    /// Body and tag of the encrypted form of a message.
    fn split(self, message: &[u8]) -> (&[u8], &[u8]) {
        if self.mode == Aead::Siv {
            let (tag, body) = message.split_at(self.tag);
            return (body, tag);
        }
        message.split_at(message.len() - self.tag)
    }

    fn split_mut(self, message: &mut [u8]) -> (&mut [u8], &mut [u8]) {
        if self.mode == Aead::Siv {
            let (tag, body) = message.split_at_mut(self.tag);
            return (body, tag);
        }
        let at = message.len() - self.tag;
        message.split_at_mut(at)
    }

    /// Checks lengths, and runs all messages.
    fn run(self, py: Python<'_>, mut items: &mut [Item<'_>]) -> PyResult<()> {
        // A cipher for each length of keys checks keys and nonces.
        let mut checker: Option<(usize, Cipher)> = None;
        for item in &*items {
            if checker.as_ref().is_none_or(|(len, _)| *len != item.key.len()) {
                checker = Some((item.key.len(), Cipher::new(self.mode, item.key, self.tag)?));
            }
            if let Some((_, cipher)) = &checker {
                cipher.check_nonce(item.nonce)?;
            }
        }
        drop(checker);
        let engine = engine::current(py)?;
        let bytes: usize = items.iter().map(|item| item.from.len()).sum();
        let is_small = bytes / items.len().max(1) <= SMALL;
        let kernel = engine::inline_kernel().filter(|_| self.mode == Aead::Gcm && is_small);
        while !items.is_empty() {
            let mut size = 0;
            let mut fits = |item: &Item<'_>| {
                size += item.from.len() + PREPARATION;
                size <= PIECE
            };
            let count = items.iter().take_while(|item| fits(item)).count().max(1);
            let (piece, rest) = items.split_at_mut(count);
            items = rest;
            let work = || match kernel {
                Some(kernel) => self.run_inline(kernel, &engine, piece),
                None => self.run_by_planner(&engine, piece),
            };
            detached(py, work).map_err(from_core)?;
            py.check_signals()?;
        }
        Ok(())
    }

    /// Runs GCM on the CPU: each thread has one context, and sets the key of each message.
    fn run_inline(self, kernel: InlineKernel, engine: &Engine, items: &mut [Item<'_>]) -> CoreResult<()> {
        let size: usize = items.iter().map(|item| item.from.len() + PREPARATION).sum();
        let threads = engine.threads().min(size / THREAD).max(1);
        let pieces = Mutex::new(items.chunks_mut(TAKE));
        let next = || pieces.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || -> CoreResult<()> {
            let mut context: Option<(Box<InlineGcm>, &[u8])> = None;
            while let Some(piece) = next() {
                for item in piece {
                    match &mut context {
                        Some((_, key)) if std::ptr::eq(*key, item.key) => {}
                        Some((gcm, key)) => {
                            if !gcm.set_key(item.key) {
                                return Err(no_memory());
                            }
                            *key = item.key;
                        }
                        None => {
                            let gcm = InlineGcm::new(kernel, item.key).ok_or_else(no_memory)?;
                            context = Some((Box::new(gcm), item.key));
                        }
                    }
                    let Some((gcm, _)) = &mut context else { continue };
                    self.run_one(gcm, item)?;
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads)
                .map_while(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok())
                .collect();
            let mut outcome = work();
            for other in others {
                let done = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                outcome = outcome.and(done);
            }
            outcome
        })
    }

    fn run_one(self, gcm: &mut InlineGcm, item: &mut Item<'_>) -> CoreResult<()> {
        let Item { nonce, aad: [aad], from, to, .. } = item;
        let is_done = if self.encrypts {
            let (body, tag) = self.split_mut(to);
            gcm::seal(gcm, nonce, aad, HostData::copy(from, body)?, tag).map(|()| true)
        } else {
            let (body, tag) = self.split(from);
            gcm::open(gcm, nonce, aad, HostData::copy(body, to)?, tag)
        };
        item.is_done = is_done.ok_or(CoreError::NotSealed)?;
        Ok(())
    }

    fn run_by_planner(self, engine: &Engine, items: &mut [Item<'_>]) -> CoreResult<()> {
        // One key for each run of messages with the same key.
        let mut keys: Vec<AeadKey> = Vec::new();
        let mut numbers = Vec::with_capacity(items.len());
        let mut last: Option<&[u8]> = None;
        for item in &*items {
            if last.is_none_or(|last| !std::ptr::eq(last, item.key)) {
                keys.push(AeadKey::new(self.mode, item.key)?);
                last = Some(item.key);
            }
            numbers.push(keys.len() - 1);
        }
        let messages = items.iter_mut().zip(numbers).map(|(item, number)| {
            let Item { nonce, aad, from, to, .. } = item;
            let (data, tag) = if self.encrypts {
                let (body, tag) = self.split_mut(to);
                (Data::copy(from, body)?, Tag::Write(tag))
            } else {
                let (body, tag) = self.split(from);
                (Data::copy(body, to)?, Tag::Expect(tag))
            };
            Ok(Message { key: &keys[number], nonce, aad, data, tag, status: Status::Pending })
        });
        let mut messages = messages.collect::<CoreResult<Vec<_>>>()?;
        let outcome = match self.encrypts {
            true => self.mode.seal(engine.planner(), &mut messages),
            false => self.mode.open(engine.planner(), &mut messages),
        };
        let done: Vec<bool> = messages.iter().map(|message| message.status == Status::Done).collect();
        drop(messages);
        for (item, done) in items.iter_mut().zip(done) {
            item.is_done = done;
            if !done {
                item.to.zeroize();
            }
        }
        match outcome {
            Err(CoreError::AuthenticationFailed) if !self.encrypts => Ok(()),
            outcome => outcome,
        }
    }
}

fn no_memory() -> CoreError {
    CoreError::Unsupported { kernel: "GCM", operation: "a batch, because memory is exhausted".into() }
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
    check(&keys, &nonces, &aad, data.len())?;
    let mut outputs: Vec<Option<Bound<'py, PyBytes>>> = Vec::with_capacity(data.len());
    let mut items = Vec::with_capacity(data.len());
    // The index of the output of each item.
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
        let (key, nonce, aad) = (keys.get(index), nonces.get(index), [aad.get(index)]);
        items.push(Item { key, nonce, aad, from, to, is_done: false });
        places.push(index);
    }
    batch.run(py, &mut items)?;
    for (item, place) in items.iter().zip(places) {
        if !item.is_done {
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
    check(&keys, &nonces, &aad, count)?;
    let (output, statuses) = (output_export.write(output)?, status_export.write(statuses)?);
    // SAFETY: exported writable buffers, which the Python part of this package has just made.
    let (mut output, statuses) = unsafe { (slice_mut(output), slice_mut(statuses)) };
    let bad = || PyValueError::new_err("offsets must ascend from 0 to at most len(data)");
    let mut items = Vec::with_capacity(count);
    for index in 0..count {
        let from = data.get(places.range(index)).ok_or_else(bad)?;
        let Some(len) = batch.output_len(from.len()) else { continue };
        let (to, rest) = std::mem::take(&mut output).split_at_mut_checked(len).ok_or_else(bad)?;
        output = rest;
        let (key, nonce, aad) = (keys.get(index), nonces.get(index), [aad.get(index)]);
        items.push(Item { key, nonce, aad, from, to, is_done: false });
    }
    batch.run(py, &mut items)?;
    let mut done = items.iter().map(|item| item.is_done);
    for (index, status) in statuses.iter_mut().enumerate().take(count) {
        let has_item = batch.output_len(places.range(index).len()).is_some();
        *status = u8::from(has_item && done.next() == Some(true));
    }
    Ok(())
}

fn check(keys: &Strings<'_>, nonces: &Strings<'_>, aad: &Strings<'_>, count: usize) -> PyResult<()> {
    keys.check(count, "keys")?;
    nonces.check(count, "nonces")?;
    aad.check(count, "strings of associated data")
}
