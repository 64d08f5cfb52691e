//! Exceptions.

use std::iter::successors;

use lockstep::hazmat::Error as CoreError;
use pyo3::exceptions::{PyException, PyFileExistsError, PyOSError, PyRuntimeError, PyValueError};
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

/// A name that a user gave, for a message: other words if it can be a key.
#[pyfunction]
pub(crate) fn shown_name(name: Text) -> String {
    lockstep::hazmat::shown::name(&name).into_owned()
}

/// Replaces an exception by a clearer one. An exception that is not derived from `Exception`, such as KeyboardInterrupt, stays, also if
/// it is a cause of the exception: a signal handler can raise it in each function that is written in Python. Causes can form a circle,
/// so only the nearest are looked at.
pub(crate) fn replaced(py: Python<'_>, error: PyErr, clearer: impl FnOnce(&PyErr) -> PyErr) -> PyErr {
    let mut causes = successors(Some(error.clone_ref(py)), |error| error.cause(py));
    let interruption = causes.by_ref().take(16).find(|error| !error.is_instance_of::<PyException>(py));
    interruption.unwrap_or_else(|| clearer(&error))
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
    // The text of an exception of Python is not needed, and making it would run code of the program.
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
        Error::Exists { .. } => PyFileExistsError::new_err(message),
        Error::File { source, .. } => match source.raw_os_error() {
            Some(number) => PyOSError::new_err((number, message)),
            None => std::io::Error::new(source.kind(), message).into(),
        },
        Error::InputChanged { .. } | Error::FailedBefore { .. } => PyOSError::new_err(message),
        Error::Random { .. } | Error::NotSealed { .. } | Error::Interrupted => {
            PyRuntimeError::new_err(message)
        }
        _ => PyValueError::new_err(message),
    }
}

/// The exception for an error of encrypted Parquet files.
pub(crate) fn from_parquet(error: lockstep_parquet::Error) -> PyErr {
    use lockstep_parquet::Error;
    match error {
        Error::NotAuthentic { .. } => InvalidTag::new_err(error.to_string()),
        Error::KeySource(source) => from_io(source),
        Error::Library(error) => from_library(error),
        _ => PyValueError::new_err(error.to_string()),
    }
}

/// The exception for an error of the system, or the exception of Python in it.
fn from_io(error: std::io::Error) -> PyErr {
    match error.raw_os_error() {
        // `OSError` chooses the subclass by the number.
        Some(number) => PyOSError::new_err((number, error.to_string())),
        None => error.into(),
    }
}
