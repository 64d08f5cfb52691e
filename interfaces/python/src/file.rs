//! Encrypted files: the native part of `lockstep.open`, `encrypt_file` and `decrypt_file`.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use lockstep::envelope::{MAGIC, MAX_PAYLOAD, Start};
use lockstep::file::open_input;
use lockstep::{
    EncryptWriter, Envelope, Error, FileKey, FileMode, Options, OutputFile, OutputOptions, ReadAt, Reader,
    Sparse,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zeroize::Zeroizing;

use crate::buffer::{Export, Input, Memory, read_shared, slice_mut};
use crate::engine;
use crate::error::{ensure, from_library};
use crate::forks::{Origin, detached};
use crate::keys::{Given, MessageKey, file_key, start_of};
use crate::source::{Sink, Source};
use crate::task;
use crate::turn::Turn;

/// Reads of more bytes than this run on a thread of their own, so that the calling thread can run signal handlers.
const LONG_READ: usize = 4 << 20;
/// The maximum length of an envelope in bytes: its magic, the length of the wrapped key, and the wrapped key.
const MAX_ENVELOPE: usize = MAGIC.len() + 4 + MAX_PAYLOAD;
/// Data that the program can change are copied before they are encrypted, in pieces of at most this many bytes.
const PIECE: usize = 64 << 10;

/// An encrypted message with random access.
#[pyclass(frozen, module = "lockstep._native")]
pub(crate) struct NativeReader {
    reader: Reader<Source>,
    origin: Origin,
}

#[pymethods]
impl NativeReader {
    /// Opens the message in a file: a path, or a binary file object that can seek. Checks the header and the last chunk.
    #[new]
    fn new(py: Python<'_>, file: &Bound<'_, PyAny>, keys: &Bound<'_, PyAny>) -> PyResult<NativeReader> {
        let given = Given::new(keys)?;
        let engine = engine::current(py)?;
        let source = Source::open(file)?;
        let envelope = detached(py, || {
            let size = source.size().map_err(Error::read)?;
            let mut start = start_of(&source, size, MAGIC.len()).map_err(Error::read)?;
            if start == MAGIC {
                start = start_of(&source, size, MAX_ENVELOPE).map_err(Error::read)?;
            }
            Ok(match Envelope::read(&mut &*start)? {
                Start::Envelope(envelope) => Some(envelope),
                Start::Bare(_) => None,
            })
        });
        let envelope: Option<Envelope> = envelope.map_err(from_library)?;
        let start = envelope.as_ref().map_or(0, |envelope| envelope.as_bytes().len() as u64);
        let MessageKey { key, context, .. } = given.for_reading(py, envelope, &source)?;
        let open = || Reader::open_from(&engine, &key, &context, source, start);
        let reader = detached(py, open).map_err(from_library)?;
        Ok(NativeReader { reader, origin: Origin::new() })
    }

    /// The length of the plaintext in bytes.
    fn size(&self) -> u64 {
        self.reader.len()
    }

    /// Reads plaintext from an offset into buffers, one after the other; returns the number of bytes, which is less than the length of the
    /// buffers only at the end of the message. The buffers are zeroed if this fails.
    fn readinto(&self, py: Python<'_>, offset: u64, buffers: Vec<Bound<'_, PyAny>>) -> PyResult<u64> {
        self.origin.check()?;
        self.reader.get_ref().check_not_reentrant()?;
        let mut exports: Vec<Export> = buffers.iter().map(|_| Export::new()).collect();
        let memories = exports.iter_mut().zip(&buffers).map(|(export, buffer)| export.write(buffer));
        let memories = memories.collect::<PyResult<Vec<Memory>>>()?;
        check_apart(&memories)?;
        let len: usize = memories.iter().map(|memory| memory.len).sum();
        // SAFETY: the memories are exported writable buffers that do not overlap, and nothing else in this call refers to them.
        let mut slices: Vec<_> = memories.into_iter().map(|memory| unsafe { slice_mut(memory) }).collect();
        let mut read = |options: Options<'_>| self.reader.read_scattered(offset, &mut slices, options);
        // A file object is read by this thread, which runs signal handlers between the calls of its methods.
        if len <= LONG_READ || self.reader.get_ref().is_serial() {
            return detached(py, || read(Options::default())).map_err(from_library);
        }
        task::run(py, None, None, read)
    }
}

/// Checks that no two buffers share bytes.
fn check_apart(memories: &[Memory]) -> PyResult<()> {
    let mut sorted: Vec<Memory> = memories.iter().copied().filter(|memory| memory.len > 0).collect();
    sorted.sort_by_key(|memory| memory.start as usize);
    let is_apart = sorted.windows(2).all(|pair| !pair[0].overlaps(pair[1]));
    ensure(is_apart, || "two buffers overlap: give separate memory")
}

/// A message that is being encrypted. Nothing appears under the name of the file before `finish`.
#[pyclass(frozen, module = "lockstep._native")]
pub(crate) struct NativeWriter {
    /// None after `finish` or `discard`.
    writer: Turn<Option<EncryptWriter<Sink>>>,
    origin: Origin,
}

impl NativeWriter {
    /// Calls a function with the writer. The thread is detached from the interpreter, because the writer may wait for the interpreter.
    ///
    /// # Errors
    /// `RuntimeError` if the file object that the writer writes to makes the call, and those of [`Origin::check`].
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        action: impl FnOnce(&mut Option<EncryptWriter<Sink>>) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        self.origin.check()?;
        detached(py, || self.writer.with(action))?
    }
}

#[pymethods]
impl NativeWriter {
    /// Starts a message in a file: a path, or a binary file object. If `replaces` is true, an existing file may be replaced.
    #[new]
    fn new(
        py: Python<'_>,
        file: &Bound<'_, PyAny>,
        replaces: bool,
        keys: &Bound<'_, PyAny>,
    ) -> PyResult<NativeWriter> {
        let given = Given::new(keys)?;
        let engine = engine::current(py)?;
        let MessageKey { key, context, envelope } = given.for_writing(py)?;
        let mut sink = Sink::create(file, replaces)?;
        let start = || {
            envelope.iter().try_for_each(|envelope| envelope.write(&mut sink))?;
            EncryptWriter::new(&engine, &key, &context, sink)
        };
        let writer = detached(py, start).map_err(from_library)?;
        Ok(NativeWriter { writer: Turn::new(Some(writer)), origin: Origin::new() })
    }

    /// Encrypts and writes the bytes of a buffer; returns their number.
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut export = Export::new();
        let memory = export.locate(data)?;
        let fixed = data.cast_exact::<PyBytes>().ok().map(|bytes| bytes.as_bytes());
        // The buffer is exported until the end of this function.
        let mut shared = Shared([memory].into());
        let len = memory.len;
        let mut write = |writer: &mut EncryptWriter<Sink>| {
            if let Some(bytes) = fixed {
                return writer.write_all(bytes);
            }
            let mut piece = Zeroizing::new(vec![0; len.min(PIECE)]);
            while let count @ 1.. = shared.read(&mut piece)? {
                writer.write_all(&piece[..count])?;
            }
            Ok(())
        };
        self.with(py, |writer| {
            let written = write(writer.as_mut().ok_or_else(ended)?);
            written.map(|()| len).map_err(|error| from_library(Error::read(error)))
        })
    }

    /// Writes the end of the message, and gives the file of a path its name.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |writer| {
            let writer = writer.take().ok_or_else(ended)?;
            writer.finish().and_then(Sink::commit).map_err(from_library)
        })
    }

    /// Ends the work without a file. The bytes that a file object has received remain there; they are not a complete message.
    fn discard(&self, py: Python<'_>) -> PyResult<()> {
        if !self.origin.is_usable() {
            // In a child process after a fork, the file belongs to the parent.
            return Ok(());
        }
        self.with(py, |writer| {
            drop(writer.take());
            Ok(())
        })
    }
}

fn ended() -> PyErr {
    PyValueError::new_err("the file is closed")
}

/// Starts the output for an input, as `lockstep::encrypt_file` does.
fn open_output(
    py: Python<'_>,
    input: File,
    destination: &Path,
    overwrite: bool,
    sparse: Sparse,
) -> PyResult<(File, OutputFile)> {
    task::wait_for_fifo(py, destination, move |destination| {
        lockstep::file::check_not_same(&input, destination)?;
        let mode = FileMode::of_input(&input)?;
        let options = OutputOptions { force: overwrite, mode, sparse, ..OutputOptions::default() };
        Ok((input, OutputFile::create(destination, options)?))
    })
}

/// Returns the length of a regular file. None for other files, such as FIFOs, because their length is unknown.
fn regular_len(file: &File) -> Option<u64> {
    file.metadata().ok().filter(|metadata| metadata.is_file()).map(|metadata| metadata.len())
}

/// `lockstep.encrypt_file`: see `_files.py`.
#[pyfunction]
pub(crate) fn encrypt_file(
    py: Python<'_>,
    source: PathBuf,
    destination: PathBuf,
    keys: &Bound<'_, PyAny>,
    progress: Option<&Bound<'_, PyAny>>,
    overwrite: bool,
) -> PyResult<u64> {
    let given = Given::new(keys)?;
    let engine = engine::current(py)?;
    let MessageKey { key, context, envelope } = given.for_writing(py)?;
    let input = task::wait_for_fifo(py, &source, open_input)?;
    let (input, mut output) = open_output(py, input, &destination, overwrite, Sparse::default())?;
    let total = regular_len(&input);
    task::run(py, progress, total, |options| {
        envelope.iter().try_for_each(|envelope| envelope.write(&mut output))?;
        let summary =
            lockstep::file::encrypt_open_file(&engine, &key, &context, &input, &mut output, options)?;
        output.commit()?;
        Ok(summary.plaintext_len)
    })
}

/// `lockstep.decrypt_file`: see `_files.py`.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the function in Python")]
pub(crate) fn decrypt_file(
    py: Python<'_>,
    source: PathBuf,
    destination: PathBuf,
    keys: &Bound<'_, PyAny>,
    progress: Option<&Bound<'_, PyAny>>,
    overwrite: bool,
    partial: bool,
    sparse: bool,
) -> PyResult<u64> {
    let given = Given::new(keys)?;
    let engine = engine::current(py)?;
    let input = task::wait_for_fifo(py, &source, open_input)?;
    let envelope = detached(py, || Envelope::read_file(&input)).map_err(from_library)?;
    let start = envelope.as_ref().map_or(0, |envelope| envelope.as_bytes().len() as u64);
    let message_len = regular_len(&input).and_then(|len| len.checked_sub(start));
    let total = message_len.and_then(|len| lockstep::plaintext_len(len).ok());
    let MessageKey { key, context, .. } = given.for_reading(py, envelope, &input)?;
    let sparse = if sparse { Sparse::Always } else { Sparse::Never };
    let (input, mut output) = open_output(py, input, &destination, overwrite, sparse)?;
    task::run(py, progress, total, |options| {
        let options = Options { partial, ..options };
        let decrypted =
            lockstep::file::decrypt_open_file(&engine, &key, &context, &input, &mut output, options);
        if decrypted.as_ref().err().is_none_or(Error::keeps_output) {
            output.commit()?;
        }
        Ok(decrypted?.plaintext_len)
    })
}

/// Encrypts the bytes of buffers, one after the other, to a file: a path, or a binary file object. Uses all cores. The file of a
/// path appears complete or not at all. If `replaces` is true, an existing file may be replaced.
#[pyfunction]
pub(crate) fn encrypt_buffers(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    replaces: bool,
    key: &Bound<'_, PyAny>,
    context: Input<'_>,
    buffers: Vec<Bound<'_, PyAny>>,
) -> PyResult<()> {
    let (key, engine) = (file_key(key)?, engine::current(py)?);
    let mut exports: Vec<Export> = buffers.iter().map(|_| Export::new()).collect();
    let memories = exports.iter_mut().zip(&buffers).map(|(export, buffer)| export.locate(buffer));
    // The buffers are exported until the end of this function.
    let mut bytes = Shared(memories.collect::<PyResult<_>>()?);
    let mut sink = Sink::create(file, replaces)?;
    let is_object = matches!(sink, Sink::Object(_));
    let work = |options: Options<'_>| {
        lockstep::encrypt(&engine, &key, &context, &mut bytes, &mut sink, options)?;
        sink.commit()
    };
    if is_object {
        // This thread calls the methods of the object, and runs signal handlers between them.
        return detached(py, || work(Options { max_threads: Some(1), ..Options::default() }))
            .map_err(from_library);
    }
    task::run(py, None, None, work)
}

/// A reader of the memory of several buffers, one after the other. Other threads can change the memory, which is valid as long as this
/// value exists.
struct Shared(VecDeque<Memory>);

// SAFETY: the memory is valid as long as this value exists, and every thread reads it atomically.
unsafe impl Send for Shared {}

impl Read for Shared {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.0.front().is_some_and(|first| first.len == 0) {
            self.0.pop_front();
        }
        let Some(first) = self.0.front_mut() else { return Ok(0) };
        let count = first.len.min(buffer.len());
        // SAFETY: the memory is valid as long as `self` exists.
        unsafe { read_shared(first.part(0..count), &mut buffer[..count]) };
        *first = first.part(count..first.len);
        Ok(count)
    }
}

/// A random key of 32 bytes for files, from the operating system.
#[pyfunction]
pub(crate) fn generate_key(py: Python<'_>) -> PyResult<Bound<'_, PyBytes>> {
    Ok(PyBytes::new(py, FileKey::generate().map_err(from_library)?.as_bytes()))
}

/// The length of the plaintext of an encrypted file of `size` bytes.
///
/// Raises ValueError if no encrypted file has this length.
#[pyfunction]
pub(crate) fn plaintext_len(size: u64) -> PyResult<u64> {
    lockstep::plaintext_len(size).map_err(|error| PyValueError::new_err(error.to_string()))
}
