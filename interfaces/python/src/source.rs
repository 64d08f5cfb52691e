//! Files of the system and file objects of Python, as sources and destinations of messages.
//!
//! The methods of file objects are called by the thread that made the call of this module. Their results are checked as
//! `io.BufferedReader` and `io.BufferedWriter` check them.

use std::fs::File;
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use lockstep::file::open_input;
use lockstep::{OutputFile, OutputOptions, ReadAt};
use pyo3::exceptions::{PyBlockingIOError, PyOSError, PyOverflowError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::replaced;
use crate::task;
use crate::turn::Turn;

/// The error number of `BlockingIOError`.
const EAGAIN: i32 = if cfg!(target_os = "macos") { 35 } else { 11 };

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

/// The path, if an object is one: a str, or an object with `__fspath__`.
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

    /// Checks that this thread is not in a method of the file object, which would use the source again.
    ///
    /// # Errors
    /// `RuntimeError` if it is.
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
        let filled = object.with(|file| {
            seek(file, offset)?;
            let mut filled = 0;
            while filled < buffer.len() {
                let got = read(file, &mut buffer[filled..])?;
                if got == 0 {
                    break;
                }
                filled += got;
            }
            Ok(filled)
        })?;
        if filled == buffer.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn size(&self) -> io::Result<u64> {
        match self {
            Source::File(file) => file.size(),
            Source::Object(object) => object.with(|file| {
                let py = file.py();
                file.call_method1(intern!(py, "seek"), (0, 2))?;
                let size = file.call_method0(intern!(py, "tell"))?;
                number(&size, "tell", 0..=i64::MAX as u64)
            }),
        }
    }

    fn is_serial(&self) -> bool {
        matches!(self, Source::Object(_))
    }
}

/// Moves a file object to an offset.
fn seek(file: &Bound<'_, PyAny>, offset: u64) -> PyResult<()> {
    let position = file.call_method1(intern!(file.py(), "seek"), (offset,))?;
    // The file objects of some libraries return None (paramiko), or the position in a file around theirs (PyTorch's readers of
    // checkpoints). As in `io.BufferedReader`, only a position that no file can have is refused.
    if !position.is_none() {
        number(&position, "seek", 0..=i64::MAX as u64)?;
    }
    Ok(())
}

/// Reads at most the length of the buffer from a file object; returns the number of bytes.
fn read(file: &Bound<'_, PyAny>, buffer: &mut [u8]) -> PyResult<usize> {
    let py = file.py();
    py.check_signals()?;
    let piece = file.call_method1(intern!(py, "read"), (buffer.len(),))?;
    if piece.is_none() {
        return Err(would_block("read", "it has no data yet"));
    }
    let Ok(bytes) = piece.cast::<PyBytes>() else {
        let text = format!("read() of the file object must return bytes, not {}", piece.get_type().name()?);
        return Err(PyTypeError::new_err(text));
    };
    let bytes = bytes.as_bytes();
    let wanted = buffer.len();
    let place = buffer.get_mut(..bytes.len()).ok_or_else(|| {
        PyOSError::new_err(format!(
            "read() of the file object returned invalid length {} (should have been between 0 and {wanted})",
            bytes.len()
        ))
    });
    place?.copy_from_slice(bytes);
    Ok(bytes.len())
}

/// A number that a method of a file object has returned.
///
/// # Errors
/// `OSError` for a number that is not allowed, `TypeError` for an object that is not an integer.
fn number(result: &Bound<'_, PyAny>, method: &str, allowed: RangeInclusive<u64>) -> PyResult<u64> {
    let py = result.py();
    match result.extract::<u64>() {
        Ok(number) if allowed.contains(&number) => Ok(number),
        Err(error) if !error.is_instance_of::<PyOverflowError>(py) => Err(replaced(py, error, |error| {
            let why = error.value(py);
            PyTypeError::new_err(format!("{method}() of the file object must return an integer: {why}"))
        })),
        _ => {
            let (number, first, last) = (result.str()?, allowed.start(), allowed.end());
            Err(PyOSError::new_err(format!(
                "{method}() of the file object returned invalid length or position {number} (should have been between {first} and {last})"
            )))
        }
    }
}

/// The exception for a file object that does not wait.
fn would_block(method: &str, problem: &str) -> PyErr {
    // The third argument is `characters_written`: nothing of the data of the call can be relied on.
    PyBlockingIOError::new_err((
        EAGAIN,
        format!("{method}() of the file object returned None: {problem}; give an object that waits"),
        0,
    ))
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
        attached(|py| {
            py.check_signals()?;
            let written = file.bind(py).call_method1(intern!(py, "write"), (PyBytes::new(py, bytes),))?;
            if written.is_none() {
                return Err(would_block("write", "it could not take the data without blocking"));
            }
            Ok(number(&written, "write", 0..=bytes.len() as u64)? as usize)
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
pub(crate) fn attached<T>(action: impl FnOnce(Python<'_>) -> PyResult<T>) -> io::Result<T> {
    match Python::try_attach(action) {
        Some(outcome) => Ok(outcome?),
        None => Err(io::Error::other("the interpreter is shutting down")),
    }
}
