//! Why a measurement failed.

use std::io;
use std::path::Path;

use lockstep::hazmat;

/// The result of a measurement.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a measurement failed. The message says what happened and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// From the library.
    #[error(transparent)]
    Library(#[from] lockstep::Error),
    /// A call of the requested size needs more memory than is available.
    #[error("{0}")]
    OutOfMemory(String),
    /// Any other failure.
    #[error("{0}")]
    Failed(String),
    /// [`Host::is_stopped`](crate::Host::is_stopped) returned true.
    #[error("stopped by a signal")]
    Stopped,
}

impl Error {
    /// For `map_err`: converts the error of a file operation.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |source| lockstep::Error::File { action, path: path.into(), source }.into()
    }
}

impl From<hazmat::Error> for Error {
    fn from(error: hazmat::Error) -> Error {
        Error::Library(error.into())
    }
}

/// An [`Error::Failed`].
pub(crate) fn failed(message: impl Into<String>) -> Error {
    Error::Failed(message.into())
}
