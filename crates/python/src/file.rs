//! Encrypted files: the native part of `lockstep.open`, `encrypt_file` and `decrypt_file`.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use lockstep::cobblestone::Tail;
use lockstep::envelope::Start;
use lockstep::{EncryptWriter, Envelope, FileKey, FileMode, Options, OutputFile, OutputOptions, Reader};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::buffer::{Export, Memory, slice_mut};
use crate::engine;
use crate::error::from_library;
use crate::keys::{FromStart, Given, MessageKey};
use crate::source::{Object, Sink, Source};
use crate::task;
use crate::text::Text;
use crate::turn::Turn;

/// Reads of more bytes than this run on a thread of their own, so that the calling thread can run signal handlers.
const LONG_READ: usize = 4 << 20;

/// An encrypted message with random access.
#[pyclass(frozen, module = "lockstep._native")]
pub(crate) struct NativeReader {
    reader: Reader<Tail<Source>>,
}

#[pymethods]
impl NativeReader {
    /// Opens the message in a file: a path, or a binary file object that can seek. Checks the header and the last chunk.
    #[new]
    fn new(
        py: Python<'_>,
        file: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
        context: Option<&Bound<'_, PyAny>>,
        identities: Option<Vec<PathBuf>>,
        passphrase: Option<Text>,
    ) -> PyResult<NativeReader> {
        let given = Given::new(key, context, None, identities, passphrase)?;
        let engine = engine::current(py)?;
        let source = match file.extract::<PathBuf>() {
            Ok(path) => Source::File(py.detach(|| lockstep::file::open_input(&path)).map_err(from_library)?),
            Err(_) => Source::Object(Object::new(file.clone().unbind())),
        };
        let envelope = py.detach(|| {
            let mut start = FromStart::new(&source).map_err(lockstep::Error::read)?;
            Envelope::read(&mut start)
        });
        let envelope = match envelope.map_err(from_library)? {
            Start::Envelope(envelope) => Some(envelope),
            Start::Bare(_) => None,
        };
        let start = envelope.as_ref().map_or(0, |envelope| envelope.as_bytes().len() as u64);
        let MessageKey { key, context, .. } = given.for_reading(py, envelope)?;
        let source = Tail::new(source, start);
        let reader = py.detach(|| Reader::open(&engine, &key, &context, source)).map_err(from_library)?;
        Ok(NativeReader { reader })
    }

    /// The length of the plaintext in bytes.
    fn size(&self) -> u64 {
        self.reader.len()
    }

    /// Reads plaintext from an offset into a buffer; returns the number of bytes, which is less than the length of the buffer only
    /// at the end of the message. The buffer is zeroed if this fails.
    fn readinto(&self, py: Python<'_>, offset: u64, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut export = Export::new();
        let memory = export.write(buffer)?;
        // SAFETY: an exported writable buffer, to which nothing else of this call refers.
        let buffer = unsafe { slice_mut(memory) };
        if buffer.len() <= LONG_READ {
            return py.detach(|| self.reader.read_at(offset, buffer)).map_err(from_library);
        }
        let read = task::run(py, None, |options| self.reader.read_scattered(offset, &mut [buffer], options))?;
        Ok(read as usize)
    }

    /// Fills buffers with plaintext from an offset, one after the other. The buffers are zeroed if this fails.
    fn read_into_all(&self, py: Python<'_>, offset: u64, buffers: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
        let mut exports: Vec<Export> = buffers.iter().map(|_| Export::new()).collect();
        let memories = exports.iter_mut().zip(&buffers).map(|(export, buffer)| export.write(buffer));
        let memories = memories.collect::<PyResult<Vec<Memory>>>()?;
        check_apart(&memories)?;
        let len = memories.iter().map(|memory| memory.len as u64).sum::<u64>();
        if self.reader.len().checked_sub(offset).is_none_or(|rest| rest < len) {
            return Err(PyValueError::new_err("the buffers are longer than the rest of the file"));
        }
        // SAFETY: exported writable buffers that do not overlap, to which nothing else of this call refers.
        let mut slices: Vec<_> = memories.into_iter().map(|memory| unsafe { slice_mut(memory) }).collect();
        let mut read = |options: Options<'_>| self.reader.read_scattered(offset, &mut slices, options);
        if len <= LONG_READ as u64 {
            py.detach(|| read(Options::new())).map_err(from_library)?;
        } else {
            task::run(py, None, read)?;
        }
        Ok(())
    }
}

/// Checks that no two buffers share bytes.
fn check_apart(memories: &[Memory]) -> PyResult<()> {
    let mut sorted: Vec<Memory> = memories.iter().copied().filter(|memory| memory.len > 0).collect();
    sorted.sort_by_key(|memory| memory.start as usize);
    match sorted.windows(2).any(|pair| pair[0].overlaps(pair[1])) {
        true => Err(PyValueError::new_err("two buffers overlap: give separate memory")),
        false => Ok(()),
    }
}

/// A message that is being encrypted. Nothing appears under the name of the file before `finish`.
#[pyclass(frozen, module = "lockstep._native")]
pub(crate) struct NativeWriter {
    /// None after the end.
    writer: Turn<Option<EncryptWriter<Sink>>>,
}

impl NativeWriter {
    /// Calls a function with the writer. The thread is detached from the interpreter, because the writer may wait for the interpreter.
    ///
    /// # Errors
    /// `RuntimeError` if the file object that the writer writes to makes the call.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        action: impl FnOnce(&mut Option<EncryptWriter<Sink>>) -> T + Send,
    ) -> PyResult<T> {
        py.detach(|| self.writer.with(action))
    }
}

#[pymethods]
impl NativeWriter {
    /// Starts a message in a file: a path, or a binary file object. If `replaces` is true, an existing file may be replaced.
    #[new]
    #[allow(clippy::too_many_arguments, reason = "the arguments of `lockstep.open`")]
    fn new(
        py: Python<'_>,
        file: &Bound<'_, PyAny>,
        replaces: bool,
        key: Option<&Bound<'_, PyAny>>,
        context: Option<&Bound<'_, PyAny>>,
        recipients: Option<Vec<Text>>,
        passphrase: Option<Text>,
    ) -> PyResult<NativeWriter> {
        let given = Given::new(key, context, recipients, None, passphrase)?;
        let engine = engine::current(py)?;
        let MessageKey { key, context, envelope } = given.for_writing(py)?;
        let path = file.extract::<PathBuf>().ok();
        let object = file.clone().unbind();
        let start = || {
            let mut sink = match path {
                Some(path) => Sink::create(&path, replaces)?,
                None => Sink::Object(object),
            };
            if let Some(envelope) = envelope {
                envelope.write(&mut sink)?;
            }
            EncryptWriter::new(&engine, &key, &context, sink)
        };
        let writer = py.detach(start).map_err(from_library)?;
        Ok(NativeWriter { writer: Turn::new(Some(writer)) })
    }

    /// Encrypts and writes the bytes of a buffer; returns their number.
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut export = Export::new();
        let data = export.read(data)?;
        let written = self.with(py, |writer| Some(writer.as_mut()?.write_all(data)))?;
        written.ok_or_else(ended)?.map_err(|error| from_library(lockstep::Error::read(error)))?;
        Ok(data.len())
    }

    /// Writes the end of the message, and gives the file of a path its name.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let finished = self.with(py, |writer| Some(writer.take()?.finish().and_then(Sink::commit)))?;
        finished.ok_or_else(ended)?.map_err(from_library)
    }

    /// Ends the work without a file. What a file object has received remains there; it is not a complete message.
    fn discard(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |writer| drop(writer.take()))
    }
}

fn ended() -> PyErr {
    PyValueError::new_err("the file is closed")
}

/// Starts the output for an input, as `lockstep::encrypt_file` does.
fn open_output(input: &File, destination: &Path, overwrite: bool) -> lockstep::Result<OutputFile> {
    lockstep::file::check_not_same(input, destination)?;
    let mode = FileMode::of_input(input)?;
    OutputFile::create(destination, OutputOptions { force: overwrite, mode, ..OutputOptions::default() })
}

/// Encrypts the file at the path source to the path destination, on all cores. The destination appears complete or not at all.
///
/// key: 16 or 32 bytes, or the path of a key file. context: bytes that both sides know; decryption needs the same bytes. Instead
/// of a key: recipients, a list of age recipients ("age1...") and SSH public keys, or a passphrase.
///
/// progress: a function that is called at most 20 times a second, and at the end, with the number of bytes of plaintext that are
/// done. If it raises an exception, the work stops and the exception is raised here. If the last call raises an exception, the
/// destination is complete and remains. overwrite: replace an existing destination.
///
/// Returns the length of the plaintext in bytes. Raises FileExistsError, OSError, or ValueError for a key of a wrong length or an
/// invalid recipient. Ctrl-C stops the work.
#[pyfunction]
#[pyo3(signature = (source, destination, key=None, context=None, *, recipients=None, passphrase=None, progress=None, overwrite=false))]
#[allow(clippy::too_many_arguments, reason = "the function in Python")]
pub(crate) fn encrypt_file(
    py: Python<'_>,
    source: PathBuf,
    destination: PathBuf,
    key: Option<&Bound<'_, PyAny>>,
    context: Option<&Bound<'_, PyAny>>,
    recipients: Option<Vec<Text>>,
    passphrase: Option<Text>,
    progress: Option<&Bound<'_, PyAny>>,
    overwrite: bool,
) -> PyResult<u64> {
    let given = Given::new(key, context, recipients, None, passphrase)?;
    let engine = engine::current(py)?;
    let MessageKey { key, context, envelope } = given.for_writing(py)?;
    let summary = task::run(py, progress, |options| {
        let input = lockstep::file::open_input(&source)?;
        let mut output = open_output(&input, &destination, overwrite)?;
        if let Some(envelope) = envelope {
            envelope.write(&mut output)?;
        }
        let summary =
            lockstep::file::encrypt_open_file(&engine, &key, &context, &input, &mut output, options)?;
        output.commit()?;
        Ok(summary)
    })?;
    Ok(summary.plaintext_len)
}

/// Decrypts the file at the path source to the path destination, on all cores. The destination appears complete and verified, or
/// not at all.
///
/// key and context: as for encrypt_file. Instead of a key: the passphrase of the file, or identities, a list of paths of age identity
/// files and SSH private keys. If an identity is encrypted, passphrase is that of the identity. The other arguments and the result
/// are those of encrypt_file.
///
/// Raises InvalidTag for a wrong key, context, identity or passphrase, and for a file that was damaged, changed or cut off;
/// FileExistsError, OSError, ValueError as encrypt_file.
#[pyfunction]
#[pyo3(signature = (source, destination, key=None, context=None, *, identities=None, passphrase=None, progress=None, overwrite=false))]
#[allow(clippy::too_many_arguments, reason = "the function in Python")]
pub(crate) fn decrypt_file(
    py: Python<'_>,
    source: PathBuf,
    destination: PathBuf,
    key: Option<&Bound<'_, PyAny>>,
    context: Option<&Bound<'_, PyAny>>,
    identities: Option<Vec<PathBuf>>,
    passphrase: Option<Text>,
    progress: Option<&Bound<'_, PyAny>>,
    overwrite: bool,
) -> PyResult<u64> {
    let given = Given::new(key, context, None, identities, passphrase)?;
    let engine = engine::current(py)?;
    let opened = py.detach(|| {
        let input = lockstep::file::open_input(&source)?;
        let envelope = Envelope::read_file(&input)?;
        Ok((input, envelope))
    });
    let (input, envelope) = opened.map_err(from_library)?;
    let MessageKey { key, context, .. } = given.for_reading(py, envelope)?;
    let summary = task::run(py, progress, |options| {
        let mut output = open_output(&input, &destination, overwrite)?;
        let summary =
            lockstep::file::decrypt_open_file(&engine, &key, &context, &input, &mut output, options)?;
        output.commit()?;
        Ok(summary)
    })?;
    Ok(summary.plaintext_len)
}

/// Encrypts the bytes of buffers, one after the other, to a file: a path, or a binary file object. Uses all cores. The file of a
/// path appears complete or not at all. If `replaces` is true, an existing file may be replaced.
#[pyfunction]
pub(crate) fn encrypt_buffers(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    replaces: bool,
    key: &Bound<'_, PyAny>,
    context: &Bound<'_, PyAny>,
    buffers: Vec<Bound<'_, PyAny>>,
) -> PyResult<()> {
    let given = Given::new(Some(key), Some(context), None, None, None)?;
    let MessageKey { key, context, .. } = given.for_writing(py)?;
    let engine = engine::current(py)?;
    let mut exports: Vec<Export> = buffers.iter().map(|_| Export::new()).collect();
    let slices = exports.iter_mut().zip(&buffers).map(|(export, buffer)| export.read(buffer));
    let mut slices = Slices(slices.collect::<PyResult<_>>()?);
    let path = file.extract::<PathBuf>().ok();
    let object = file.clone().unbind();
    task::run(py, None, |options| {
        let mut sink = match path {
            Some(path) => Sink::create(&path, replaces)?,
            None => Sink::Object(object),
        };
        lockstep::encrypt(&engine, &key, &context, &mut slices, &mut sink, options)?;
        sink.commit()
    })
}

/// Slices, read one after the other.
struct Slices<'a>(VecDeque<&'a [u8]>);

impl Read for Slices<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(first) = self.0.front_mut() {
            if !first.is_empty() {
                return first.read(buffer);
            }
            self.0.pop_front();
        }
        Ok(0)
    }
}

/// A random key of 32 bytes for files, from the operating system.
#[pyfunction]
pub(crate) fn generate_key(py: Python<'_>) -> PyResult<Bound<'_, pyo3::types::PyBytes>> {
    let key = FileKey::generate().map_err(from_library)?;
    Ok(pyo3::types::PyBytes::new(py, key.as_bytes()))
}

/// The length of the plaintext of an encrypted file of `size` bytes.
///
/// Raises ValueError if no encrypted file has this length.
#[pyfunction]
pub(crate) fn plaintext_len(size: u64) -> PyResult<u64> {
    lockstep::plaintext_len(size).map_err(|error| PyValueError::new_err(error.to_string()))
}
