//! Encrypted files: the native part of `lockstep.open`, `encrypt_file` and `decrypt_file`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use lockstep::{EncryptWriter, FileKey, FileOptions, Options, OutputFile, OutputOptions, Reader, keyfile};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use zeroize::Zeroize;

use crate::buffer::{Export, slice_mut};
use crate::engine;
use crate::error::from_library;
use crate::source::{Object, Sink, Source};
use crate::task;

/// Reads of more bytes than this run on a thread of their own, so that the calling thread can run signal handlers.
const LONG_READ: usize = 4 << 20;

/// A key: 16 or 32 raw bytes in any buffer, or the path of a key file.
fn key(given: &Bound<'_, PyAny>) -> PyResult<FileKey> {
    if let Ok(path) = given.extract::<PathBuf>() {
        return keyfile::read(&path).map_err(from_library);
    }
    FileKey::from_bytes(Export::new().read(given)?).map_err(from_library)
}

/// Bytes of any buffer.
fn bytes(given: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    Ok(Export::new().read(given)?.to_vec())
}

/// An encrypted message with random access.
#[pyclass(frozen, module = "lockstep._native")]
pub(crate) struct NativeReader {
    reader: Reader<Source>,
}

#[pymethods]
impl NativeReader {
    /// Opens the message in a file: a path, or a binary file object that can seek. Checks the header and the last chunk.
    #[new]
    fn new(
        py: Python<'_>,
        file: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
        context: &Bound<'_, PyAny>,
    ) -> PyResult<NativeReader> {
        let (key, context) = (self::key(key)?, bytes(context)?);
        let engine = engine::current(py)?;
        let source = match file.extract::<PathBuf>() {
            Ok(path) => Source::File(py.detach(|| lockstep::file::open_input(&path)).map_err(from_library)?),
            Err(_) => Source::Object(Object::new(file.clone().unbind())),
        };
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
        let len = self.reader.len().saturating_sub(offset).min(buffer.len() as u64);
        let read = task::run(py, None, |options| {
            let outcome = self.reader.copy_range(offset, len, &mut buffer[..len as usize], options);
            if outcome.is_err() {
                buffer.zeroize();
            }
            outcome
        })?;
        Ok(read as usize)
    }
}

/// A message that is being encrypted. Nothing appears under the name of the file before `finish`.
#[pyclass(frozen, module = "lockstep._native")]
pub(crate) struct NativeWriter {
    /// None after the end.
    writer: Mutex<Option<EncryptWriter<Sink>>>,
}

impl NativeWriter {
    /// Calls a function with the place of the writer, detached: the writer may wait for the interpreter.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        action: impl FnOnce(&mut Option<EncryptWriter<Sink>>) -> T + Send,
    ) -> T {
        py.detach(|| action(&mut self.writer.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[pymethods]
impl NativeWriter {
    /// Starts a message in a file: a path, or a binary file object. `replaces` allows to replace an existing file.
    #[new]
    fn new(
        py: Python<'_>,
        file: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
        context: &Bound<'_, PyAny>,
        replaces: bool,
    ) -> PyResult<NativeWriter> {
        let (key, context) = (self::key(key)?, bytes(context)?);
        let engine = engine::current(py)?;
        let path = file.extract::<PathBuf>().ok();
        let object = file.clone().unbind();
        let start = || {
            let sink = match path {
                Some(path) => {
                    let options = OutputOptions { force: replaces, ..OutputOptions::default() };
                    Sink::File(OutputFile::create(&path, options)?)
                }
                None => Sink::Object(object),
            };
            EncryptWriter::new(&engine, &key, &context, sink)
        };
        let writer = py.detach(start).map_err(from_library)?;
        Ok(NativeWriter { writer: Mutex::new(Some(writer)) })
    }

    /// Encrypts and writes the bytes of a buffer; returns their number.
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut export = Export::new();
        let data = export.read(data)?;
        let written = self.with(py, |writer| Some(writer.as_mut()?.write_all(data)));
        written.ok_or_else(ended)?.map_err(|error| from_library(lockstep::Error::read(error)))?;
        Ok(data.len())
    }

    /// Writes the end of the message, and gives the file of a path its name.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let finished = self.with(py, |writer| {
            Some(writer.take()?.finish().and_then(|sink| match sink {
                Sink::File(file) => file.commit(),
                Sink::Object(_) => Ok(()),
            }))
        });
        finished.ok_or_else(ended)?.map_err(from_library)
    }

    /// Ends the work without a file. What a file object has received remains there; it is not a complete message.
    fn discard(&self, py: Python<'_>) {
        self.with(py, |writer| drop(writer.take()));
    }
}

fn ended() -> PyErr {
    PyValueError::new_err("the file is closed")
}

/// The function of the library that encrypts or decrypts a file.
type Run = fn(
    &lockstep::Engine,
    &FileKey,
    &[u8],
    &Path,
    &Path,
    FileOptions<'_>,
) -> lockstep::Result<lockstep::Summary>;

fn run(
    py: Python<'_>,
    (source, destination): (&Path, &Path),
    (key, context): (&Bound<'_, PyAny>, &Bound<'_, PyAny>),
    progress: Option<&Bound<'_, PyAny>>,
    overwrite: bool,
    run: Run,
) -> PyResult<u64> {
    let (key, context) = (self::key(key)?, bytes(context)?);
    let engine = engine::current(py)?;
    let summary = task::run(py, progress, |stream: Options<'_>| {
        let options = FileOptions { stream, force: overwrite, sync: false };
        run(&engine, &key, &context, source, destination, options)
    })?;
    Ok(summary.plaintext_len)
}

/// Encrypts the file at the path source to the path destination, on all cores. The destination appears complete or not at all.
///
/// key: 16 or 32 bytes, or the path of a key file. context: bytes that both sides know; decryption needs the same. progress: a
/// function that is called at most 20 times a second, and at the end, with the number of bytes of plaintext that are done; if it
/// raises an exception, the work stops and the exception is raised here. overwrite: replace an existing destination.
///
/// Returns the length of the plaintext in bytes. Raises FileExistsError, OSError, or ValueError for a key of a wrong length. Ctrl-C
/// stops the work.
#[pyfunction]
#[pyo3(signature = (source, destination, key, context=None, *, progress=None, overwrite=false))]
pub(crate) fn encrypt_file(
    py: Python<'_>,
    source: PathBuf,
    destination: PathBuf,
    key: &Bound<'_, PyAny>,
    context: Option<&Bound<'_, PyAny>>,
    progress: Option<&Bound<'_, PyAny>>,
    overwrite: bool,
) -> PyResult<u64> {
    let empty = pyo3::types::PyBytes::new(py, b"");
    let context = context.unwrap_or(empty.as_any());
    run(py, (&source, &destination), (key, context), progress, overwrite, lockstep::encrypt_file)
}

/// Decrypts the file at the path source to the path destination, on all cores. The destination appears complete and verified, or
/// not at all.
///
/// The arguments and the result are those of encrypt_file. Raises InvalidTag for a wrong key or context and for a file that was
/// damaged, changed or cut off; FileExistsError, OSError, ValueError as encrypt_file.
#[pyfunction]
#[pyo3(signature = (source, destination, key, context=None, *, progress=None, overwrite=false))]
pub(crate) fn decrypt_file(
    py: Python<'_>,
    source: PathBuf,
    destination: PathBuf,
    key: &Bound<'_, PyAny>,
    context: Option<&Bound<'_, PyAny>>,
    progress: Option<&Bound<'_, PyAny>>,
    overwrite: bool,
) -> PyResult<u64> {
    let empty = pyo3::types::PyBytes::new(py, b"");
    let context = context.unwrap_or(empty.as_any());
    run(py, (&source, &destination), (key, context), progress, overwrite, lockstep::decrypt_file)
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
