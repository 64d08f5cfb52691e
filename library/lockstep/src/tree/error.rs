//! The reason why a file, or a whole run, has failed.

use std::io;
use std::path::Path;

/// The result type of this module.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a file, or a whole run, has failed. The message says what to do about it, and contains no secret.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error of the library or of the system.
    #[error(transparent)]
    Library(#[from] crate::Error),
    /// The data are not authentic, for a reason that has no error of the library.
    #[error("{0}")]
    NotAuthentic(String),
    /// Any other error.
    #[error("{0}")]
    Failed(String),
}

impl Error {
    /// True if the data are not authentic, or if the key or the context is wrong.
    pub fn is_not_authentic(&self) -> bool {
        match self {
            Error::NotAuthentic(_) | Error::Library(crate::Error::Envelope { .. }) => true,
            Error::Library(error) => error.is_authentication_failure(),
            Error::Failed(_) => false,
        }
    }

    /// The number of the error of the system, if there was one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Error::Library(
                crate::Error::Read(source) | crate::Error::Write(source) | crate::Error::File { source, .. },
            ) => source.raw_os_error(),
            _ => None,
        }
    }

    /// Returns a function for `map_err` that adds the operation and the path to an error.
    pub(super) fn io<E: Into<io::Error>>(action: &'static str, path: &Path) -> impl FnOnce(E) -> Error {
        move |source| crate::Error::file(action, path)(source).into()
    }
}

/// Creates an error from a message.
pub(super) fn failed(message: impl Into<String>) -> Error {
    Error::Failed(message.into())
}

/// A copy of an error that several files share.
pub(super) fn copy(error: &io::Error) -> io::Error {
    let other = || io::Error::new(error.kind(), error.to_string());
    error.raw_os_error().map_or_else(other, io::Error::from_raw_os_error)
}
