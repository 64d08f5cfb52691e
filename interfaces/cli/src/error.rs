//! The error type of the command, and its exit codes.

use std::fmt::Display;
use std::io;
use std::path::Path;

use lockstep::foreign::Foreign;
use lockstep::{hazmat, quoted};

use crate::signals;

/// Exit code: the data are not authentic, the key does not match, or a self-test has failed.
pub(crate) const NOT_AUTHENTIC: u8 = 1;
/// Exit code: a mistake on the command line, or any other failure.
pub(crate) const FAILED: u8 = 2;

/// The result of a command.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a command failed. The message states what happened and advises the user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error of the library. Errors of the command itself also have this variant: see [`failed`].
    #[error("{}", with_options(.0))]
    Library(#[from] lockstep::Error),
    /// The input or the command line requires more memory than is available.
    #[error("{0}")]
    OutOfMemory(String),
    /// Failures that have already been printed. The value is the exit code of the most severe failure.
    #[error("some files failed")]
    Reported(u8),
    /// A signal has arrived. The command has stopped the work and removed the output.
    #[error("stopped by a signal")]
    Stopped,
}

impl Error {
    /// Returns a function for `map_err` that adds the operation and the path to an error.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |source| lockstep::Error::File { action, path: path.into(), source }.into()
    }

    /// True if the process that reads standard output has closed the pipe. The command then ends with exit code 0.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Error::Library(error) if error.is_broken_pipe())
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            _ if self.is_broken_pipe() => 0,
            Error::Stopped => signals::exit_code(),
            Error::Reported(code) => *code,
            // A truncated or changed envelope counts as damaged data, and so does invalid padding.
            Error::Library(
                lockstep::Error::Envelope { .. }
                | lockstep::Error::Core(hazmat::Error::Padding | hazmat::Error::SelfTest { .. }),
            ) => NOT_AUTHENTIC,
            Error::Library(error) if error.is_authentication_failure() => NOT_AUTHENTIC,
            Error::Library(_) | Error::OutOfMemory(_) => FAILED,
        }
    }

    /// Returns an error of the library that has the message `message`, and the exit code of `self`.
    pub(crate) fn with_message(&self, message: String) -> lockstep::Error {
        match self.exit_code() {
            NOT_AUTHENTIC => lockstep::Error::NotAuthentic(message),
            _ => lockstep::Error::Failed(message),
        }
    }

    /// The number of plaintext bytes that `decrypt --partial` verified and wrote before this error. `None` without `--partial`.
    pub(crate) fn verified(&self) -> Option<u64> {
        match self {
            Error::Library(lockstep::Error::Partial { verified, .. }) => Some(*verified),
            _ => None,
        }
    }

    /// The kind of error, for the field `kind` in the output of `--json`.
    pub(crate) fn kind(&self) -> &'static str {
        use lockstep::Error as Library;
        let error = match self {
            _ if self.exit_code() == NOT_AUTHENTIC => return "not_authentic",
            Error::OutOfMemory(_) => return "out_of_memory",
            Error::Stopped => return "stopped",
            Error::Reported(_) => return "failed",
            Error::Library(Library::Partial { source, .. }) => source,
            Error::Library(error) => error,
        };
        match error {
            Library::Interrupted => "stopped",
            Library::Read(_) | Library::Write(_) | Library::File { .. } => "io",
            Library::Exists { .. } => "exists",
            Library::Core(
                hazmat::Error::Unsupported { .. }
                | hazmat::Error::UnknownDevice { .. }
                | hazmat::Error::UnknownKernel { .. }
                | hazmat::Error::KernelElsewhere { .. }
                | hazmat::Error::OutOfReach { .. }
                | hazmat::Error::DeviceFailed { .. }
                | hazmat::Error::WrongResult { .. },
            ) => "device",
            _ => "failed",
        }
    }
}

impl From<hazmat::Error> for Error {
    fn from(error: hazmat::Error) -> Error {
        Error::Library(error.into())
    }
}

/// Creates an error from a message.
pub fn failed(message: impl Into<String>) -> Error {
    lockstep::Error::Failed(message.into()).into()
}

/// Returns an error with this message if the condition is false. Only then is the message formatted.
pub(crate) fn ensure(holds: bool, message: impl Display) -> Result<()> {
    if holds { Ok(()) } else { Err(failed(message.to_string())) }
}

/// Creates an error for data that are not authentic, such as an envelope, or for a wrong passphrase.
pub(crate) fn not_authentic(message: impl Into<String>) -> Error {
    lockstep::Error::NotAuthentic(message.into()).into()
}

/// Returns [`Error::Stopped`] if a signal has arrived.
pub(crate) fn check_stopped() -> Result<()> {
    if signals::stopped() { Err(Error::Stopped) } else { Ok(()) }
}

/// The error for an input in the format of another program. Callers return it before they try a key.
pub(crate) fn other_format(format: Foreign) -> Error {
    let message = format!("the input begins like {format}");
    if format.is_damaged() { not_authentic(message) } else { failed(message) }
}

/// The message of an error of the library, with advice that names the options of this command.
fn with_options(error: &lockstep::Error) -> String {
    match error {
        lockstep::Error::Exists { path } => {
            format!("{} exists: choose another output, or replace it with --force", quoted(path))
        }
        other => other.to_string(),
    }
}
