//! Files of the system and file objects of Python, as sources and destinations of messages.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use lockstep::{OutputFile, OutputOptions, ReadAt};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::turn::Turn;

/// What an encrypted message is read from.
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
    pub(crate) fn new(file: Py<PyAny>) -> Object {
        Object { file, turn: Turn::new(()) }
    }

    /// Calls a function with the file. The calling thread is detached from the interpreter.
    fn with<T>(&self, action: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> io::Result<T> {
        self.turn.with(|()| attached(|py| action(self.file.bind(py))))?
    }
}

impl ReadAt for Source {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let object = match self {
            Source::File(file) => return ReadAt::read_exact_at(file, buffer, offset),
            Source::Object(object) => object,
        };
        let filled = object.with(|file| {
            file.call_method1(intern!(file.py(), "seek"), (offset,))?;
            let mut filled = 0;
            while filled < buffer.len() {
                let wanted = buffer.len() - filled;
                let piece = file.call_method1(intern!(file.py(), "read"), (wanted,))?;
                let bytes = piece.cast::<PyBytes>()?.as_bytes();
                let bytes = &bytes[..bytes.len().min(wanted)];
                if bytes.is_empty() {
                    break;
                }
                buffer[filled..filled + bytes.len()].copy_from_slice(bytes);
                filled += bytes.len();
            }
            Ok(filled)
        })?;
        if filled == buffer.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn size(&self) -> io::Result<u64> {
        match self {
            Source::File(file) => file.size(),
            Source::Object(object) => object.with(|file| {
                file.call_method1(intern!(file.py(), "seek"), (0, 2))?;
                file.call_method0(intern!(file.py(), "tell"))?.extract()
            }),
        }
    }
}

/// What an encrypted message is written to.
pub(crate) enum Sink {
    File(OutputFile),
    Object(Py<PyAny>),
}

impl Sink {
    /// Creates a file that gets its name at `commit`. If `replaces` is true, an existing file may be replaced.
    pub(crate) fn create(path: &Path, replaces: bool) -> lockstep::Result<Sink> {
        let options = OutputOptions { force: replaces, ..OutputOptions::default() };
        Ok(Sink::File(OutputFile::create(path, options)?))
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
        attached(|py| {
            let written = file.bind(py).call_method1(intern!(py, "write"), (PyBytes::new(py, bytes),))?;
            // Some file objects return None when they have written everything.
            let written = written.extract::<Option<usize>>()?.unwrap_or(bytes.len());
            Ok(written.min(bytes.len()))
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::File(file) => file.flush(),
            Sink::Object(file) => attached(|py| file.bind(py).call_method0(intern!(py, "flush")).map(|_| ())),
        }
    }
}

/// Calls a function with the interpreter. The exception is in the error.
fn attached<T>(action: impl FnOnce(Python<'_>) -> PyResult<T>) -> io::Result<T> {
    match Python::try_attach(action) {
        Some(outcome) => Ok(outcome?),
        None => Err(io::Error::other("the interpreter is shutting down")),
    }
}
