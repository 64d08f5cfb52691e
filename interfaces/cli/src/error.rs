//! The error type, and the exit codes.

use std::io;
use std::path::Path;

use lockstep::foreign::Foreign;
use lockstep::hazmat::work::Operation;
use lockstep::{hazmat, quoted};

use crate::{signals, text};

/// Exit code: the data are not authentic, the key does not match, or a self-test has failed.
pub(crate) const NOT_AUTHENTIC: u8 = 1;
/// Exit code: a mistake on the command line, or any other failure.
pub(crate) const FAILED: u8 = 2;

/// The result of a command.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a command failed. The message says what happened and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error of the library, except for [`lockstep::Error::Partial`].
    #[error("{}", with_options(.0))]
    Library(lockstep::Error),
    /// Failed authentication of data that the library does not check, such as an envelope or a passphrase.
    #[error("{0}")]
    NotAuthentic(String),
    /// A damaged file, whose verified beginning was written by `decrypt --partial`.
    #[error("{source}; {kept}", kept = match verified {
        0 => "no plaintext was verified, and none was written".into(),
        _ => format!("the verified beginning was written: {verified} bytes"),
    })]
    Partial {
        /// Bytes of plaintext that were verified and written.
        verified: u64,
        /// The error that has ended the decryption.
        source: Box<Error>,
    },
    /// The input or the command line requires more memory than is available.
    #[error("{0}")]
    OutOfMemory(String),
    /// Any other error.
    #[error("{0}")]
    Failed(String),
    /// Failures that have already been printed. The value is the exit code of the most severe failure.
    #[error("some files failed")]
    Reported(u8),
    /// A signal has arrived; the work was stopped and its output removed.
    #[error("stopped by a signal")]
    Stopped,
}

impl Error {
    /// Returns a function for `map_err` that adds the operation and the path to an error.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |source| lockstep::Error::File { action, path: path.into(), source }.into()
    }

    /// True if the process that reads standard output has closed the pipe. This is not a failure.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Error::Library(error) if error.is_broken_pipe())
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            _ if self.is_broken_pipe() => 0,
            Error::Stopped => signals::exit_code(),
            Error::Reported(code) => *code,
            Error::NotAuthentic(_) => NOT_AUTHENTIC,
            Error::Partial { source, .. } => source.exit_code(),
            Error::Library(error) if is_wrong_data(error) => NOT_AUTHENTIC,
            Error::Library(_) | Error::OutOfMemory(_) | Error::Failed(_) => FAILED,
        }
    }

    /// Bytes of plaintext that `decrypt --partial` has verified and written before this error; `None` without the option.
    pub(crate) fn verified(&self) -> Option<u64> {
        match self {
            Error::Partial { verified, .. } => Some(*verified),
            _ => None,
        }
    }

    /// The kind of error, for the field `kind` in the output of `--json`.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            _ if self.exit_code() == NOT_AUTHENTIC => "not_authentic",
            Error::OutOfMemory(_) => "out_of_memory",
            Error::Stopped | Error::Library(lockstep::Error::Interrupted) => "stopped",
            Error::Partial { source, .. } => source.kind(),
            Error::Library(error) => match error {
                lockstep::Error::Read(_) | lockstep::Error::Write(_) | lockstep::Error::File { .. } => "io",
                lockstep::Error::Exists { .. } => "exists",
                lockstep::Error::Core(
                    hazmat::Error::Unsupported { .. }
                    | hazmat::Error::UnknownDevice { .. }
                    | hazmat::Error::UnknownKernel { .. }
                    | hazmat::Error::KernelElsewhere { .. }
                    | hazmat::Error::OutOfReach { .. }
                    | hazmat::Error::DeviceFailed { .. }
                    | hazmat::Error::WrongResult { .. },
                ) => "device",
                _ => "failed",
            },
            Error::NotAuthentic(_) | Error::Reported(_) | Error::Failed(_) => "failed",
        }
    }
}

impl From<lockstep::Error> for Error {
    fn from(error: lockstep::Error) -> Error {
        match error {
            lockstep::Error::Partial { verified, source } => {
                Error::Partial { verified, source: Box::new(Error::from(*source)) }
            }
            lockstep::Error::NotAuthentic(message) => Error::NotAuthentic(message),
            lockstep::Error::Failed(message) => Error::Failed(message),
            other => Error::Library(other),
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
    Error::Failed(message.into())
}

/// Returns an error once a signal has come.
pub(crate) fn check_stopped() -> Result<()> {
    if signals::stopped() { Err(Error::Stopped) } else { Ok(()) }
}

/// The error for an input of another format, if no key has been tried.
pub(crate) fn other_format(format: Foreign) -> Error {
    let message = format!("the input begins like {format}");
    if format.is_damaged() { Error::NotAuthentic(message) } else { Error::Failed(message) }
}

fn is_wrong_data(error: &lockstep::Error) -> bool {
    // A truncated or changed envelope counts as damaged data, and so does invalid padding.
    error.is_authentication_failure()
        || matches!(
            error,
            lockstep::Error::Envelope { .. }
                | lockstep::Error::Core(hazmat::Error::Padding | hazmat::Error::SelfTest { .. })
        )
}

/// The library's message, with advice that names the options of this command, and the usual names of operations.
fn with_options(error: &lockstep::Error) -> String {
    match error {
        lockstep::Error::Exists { path } => {
            format!("{} exists: choose another output, or replace it with --force", quoted(path))
        }
        lockstep::Error::Core(error @ hazmat::Error::Unsupported { operation, .. }) => {
            let known = Operation::all().find(|known| known.to_string() == *operation);
            let message = error.to_string();
            known.map_or(message.clone(), |known| message.replacen(operation, &text::operation(known), 1))
        }
        other => other.to_string(),
    }
}
