//! Exceptions.

use std::ffi::OsString;
use std::path::PathBuf;

use lockstep::hazmat::{Error as CoreError, shown};
use lockstep::quoted;
use pyo3::exceptions::{PyException, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::text::Text;

pyo3::create_exception!(
    lockstep,
    InvalidTag,
    PyException,
    "Authentication failed: the key, the nonce, the associated data or the context is wrong, or the data were changed.\n\n\
     No plaintext was released. There is one exception: decrypt_file with partial=True keeps the verified beginning of a file, and\n\
     the attribute `verified` is its length in bytes. Otherwise the attribute is None."
);

/// Returns the form in which a message shows a name that a user gave. If the name can be a key, the result does not contain it.
#[pyfunction]
pub(crate) fn shown_name(name: Text) -> String {
    shown::name(&name).into_owned()
}

/// Raises `ValueError` with this message unless the condition holds.
#[inline]
pub(crate) fn ensure<M: Into<String>>(holds: bool, message: impl FnOnce() -> M) -> PyResult<()> {
    if holds { Ok(()) } else { Err(PyValueError::new_err(message().into())) }
}

/// The exception for an error of a mode, a device or a kernel.
pub(crate) fn from_core(error: CoreError) -> PyErr {
    match error {
        CoreError::AuthenticationFailed => InvalidTag::new_err(()),
        CoreError::DeviceFailed { .. }
        | CoreError::WrongResult { .. }
        | CoreError::SelfTest { .. }
        | CoreError::NotSealed => PyRuntimeError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

/// The exception for an error of the library.
pub(crate) fn from_library(error: lockstep::Error) -> PyErr {
    use lockstep::Error;
    // If the error contains an exception of Python, its text is not needed, and making this text would run code of the program.
    if let Error::Read(source) | Error::Write(source) = error {
        return from_io(source);
    }
    let (is_not_authentic, message) = (error.is_authentication_failure(), error.to_string());
    match error {
        Error::Partial { verified, source } => {
            let raised = if is_not_authentic { InvalidTag::new_err(message) } else { from_library(*source) };
            // An exception without the attribute is still the right exception.
            let _ = Python::attach(|py| raised.value(py).setattr("verified", verified));
            raised
        }
        _ if is_not_authentic => InvalidTag::new_err(message),
        Error::Core(error) => from_core(error),
        Error::Exists { path } => {
            let exists = std::io::ErrorKind::AlreadyExists.into();
            os_error("the output exists: choose another one, or allow its replacement", &exists, Some(path))
        }
        Error::File { action, path, source } => {
            os_error(&format!("cannot {action}: {}", reason(&source)), &source, Some(path))
        }
        Error::InputChanged { .. } | Error::FailedBefore { .. } => PyOSError::new_err(message),
        Error::Random { .. } | Error::Interrupted => PyRuntimeError::new_err(message),
        _ => PyValueError::new_err(message),
    }
}

/// The exception for an error of encrypted Parquet files.
pub(crate) fn from_parquet(error: lockstep_parquet::Error) -> PyErr {
    use lockstep_parquet::Error;
    match error {
        Error::NotAuthentic(_) => InvalidTag::new_err(error.to_string()),
        Error::KeySource(source) => from_io(source),
        Error::Library(error) => from_library(error),
        _ => PyValueError::new_err(error.to_string()),
    }
}

/// The exception for an error of the system; if the error contains an exception of Python, this exception.
fn from_io(error: std::io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(_) => os_error(&reason(&error), &error, None),
        None => error.into(),
    }
}

/// The text of an error of the system, without its number, which `OSError` shows.
fn reason(error: &std::io::Error) -> String {
    let (text, number) = (error.to_string(), error.raw_os_error().unwrap_or_default());
    text.strip_suffix(&format!(" (os error {number})")).unwrap_or(&text).to_owned()
}

/// The subclass of `OSError` for an error of the system, with `errno`, `strerror` and `filename`.
fn os_error(text: &str, error: &std::io::Error, path: Option<PathBuf>) -> PyErr {
    use std::io::ErrorKind;
    // These numbers are the same on Linux and macOS.
    let number = error.raw_os_error().or(match error.kind() {
        ErrorKind::NotFound => Some(2),
        ErrorKind::PermissionDenied => Some(13),
        ErrorKind::AlreadyExists => Some(17),
        ErrorKind::NotADirectory => Some(20),
        ErrorKind::IsADirectory => Some(21),
        ErrorKind::InvalidInput => Some(22),
        _ => None,
    });
    let path = path.map(|path| shown::path(&path, true).into_owned());
    // `OSError` chooses the subclass by the number.
    match (number, path) {
        (Some(number), path) => PyOSError::new_err((number, text.to_owned(), path.map(OsString::from))),
        (None, Some(path)) => PyOSError::new_err(format!("{text}: {}", quoted(&path))),
        (None, None) => PyOSError::new_err(text.to_owned()),
    }
}
