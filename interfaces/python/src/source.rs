//! Files of the system and file objects of Python, as sources and destinations of messages.
//!
//! The methods of file objects are called by the thread that made the call of this module, through `lockstep._file_objects`.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lockstep::file::open_input;
use lockstep::{OutputFile, OutputOptions, ReadAt};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::task;
use crate::turn::Turn;

/// The source of an encrypted message.
pub(crate) enum Source {
    File(File),
    Object(Object),
}

/// A binary file object that can seek. Threads take turns: a seek and the reads after it belong together.
pub(crate) struct Object {
    file: Py<PyAny>,
    turn: Turn<()>,
}

impl Object {
    /// Calls a function with the file. The calling thread is detached from the interpreter.
    fn with<T>(&self, action: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> io::Result<T> {
        self.turn.with(|()| attached(|py| action(self.file.bind(py))))?
    }
}

/// Calls a function of `lockstep._file_objects`.
fn call<'py>(py: Python<'py>, function: &str, args: impl PyCallArgs<'py>) -> PyResult<Bound<'py, PyAny>> {
    py.import(intern!(py, "lockstep._file_objects"))?.call_method1(function, args)
}

/// Returns the path if the object is a path: a str, or an object with `__fspath__`.
///
/// # Errors
/// The exception of `__fspath__`, unless it is `TypeError`.
pub(crate) fn path(object: &Bound<'_, PyAny>) -> PyResult<Option<PathBuf>> {
    match object.extract() {
        Ok(path) => Ok(Some(path)),
        Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Source {
    /// A file object, or the file at a path.
    pub(crate) fn open(file: &Bound<'_, PyAny>) -> PyResult<Source> {
        match path(file)? {
            Some(path) => task::wait_for_fifo(file.py(), &path, open_input).map(Source::File),
            None => Ok(Source::Object(Object { file: file.clone().unbind(), turn: Turn::new(()) })),
        }
    }

    /// Checks that this thread is not running a method of the file object: the call would then use the source a second time.
    ///
    /// # Errors
    /// `RuntimeError` if the thread is running such a method.
    pub(crate) fn check_not_reentrant(&self) -> PyResult<()> {
        match self {
            Source::File(_) => Ok(()),
            Source::Object(object) => object.turn.check(),
        }
    }
}

impl ReadAt for Source {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let object = match self {
            Source::File(file) => return ReadAt::read_exact_at(file, buffer, offset),
            Source::Object(object) => object,
        };
        let is_filled = object.with(|file| {
            let bytes = call(file.py(), "read_at", (file, offset, buffer.len()))?;
            let bytes = bytes.cast::<PyBytes>()?.as_bytes();
            let got = bytes.len().min(buffer.len());
            buffer[..got].copy_from_slice(&bytes[..got]);
            Ok(got == buffer.len())
        })?;
        if is_filled { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn size(&self) -> io::Result<u64> {
        match self {
            Source::File(file) => file.size(),
            Source::Object(object) => object.with(|file| call(file.py(), "size", (file,))?.extract()),
        }
    }

    fn is_serial(&self) -> bool {
        matches!(self, Source::Object(_))
    }
}

/// The destination of an encrypted message.
pub(crate) enum Sink {
    File(OutputFile),
    Object(Py<PyAny>),
}

impl Sink {
    /// A file object, or for a path a new file, which gets its name at `commit`. If `replaces` is true, an existing file may be
    /// replaced.
    pub(crate) fn create(file: &Bound<'_, PyAny>, replaces: bool) -> PyResult<Sink> {
        let Some(path) = path(file)? else { return Ok(Sink::Object(file.clone().unbind())) };
        let options = OutputOptions { force: replaces, ..OutputOptions::default() };
        let create = move |path: &Path| OutputFile::create(path, options);
        task::wait_for_fifo(file.py(), &path, create).map(Sink::File)
    }

    /// Gives a file its name.
    pub(crate) fn commit(self) -> lockstep::Result<()> {
        match self {
            Sink::File(file) => file.commit(),
            Sink::Object(_) => Ok(()),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let file = match self {
            Sink::File(file) => return file.write(bytes),
            Sink::Object(file) => file,
        };
        attached(|py| call(py, "write", (file.bind(py), PyBytes::new(py, bytes)))?.extract())
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::File(file) => file.flush(),
            Sink::Object(file) => attached(|py| file.bind(py).call_method0(intern!(py, "flush")).map(|_| ())),
        }
    }
}

/// Attaches the thread to the interpreter, and calls a function. The error contains the exception of the function.
pub(crate) fn attached<T>(action: impl FnOnce(Python<'_>) -> PyResult<T>) -> io::Result<T> {
    match Python::try_attach(action) {
        Some(outcome) => Ok(outcome?),
        None => Err(io::Error::other("the interpreter is shutting down")),
    }
}
