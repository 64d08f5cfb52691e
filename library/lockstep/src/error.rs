//! The error type: what happened, and what to do about it.

use std::io;
use std::path::PathBuf;

use crate::foreign::Foreign;
use crate::quoted::quoted;

/// Number of bytes of a message before its first chunk. The module `cobblestone::format` asserts that its own constant has this
/// value; it imports this module, so this module cannot import it.
pub(crate) const HEADER: u64 = 56;

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The commitment in the header does not match this key and context. Nothing was decrypted.
    #[error(
        "wrong key or context: this message was encrypted with another key, another context or another kind of key; \
         or it is not a Lockstep file, or was damaged in its first 56 bytes"
    )]
    WrongKeyOrContext,
    /// The same error as [`Error::WrongKeyOrContext`], for an input that begins like a file of another format. Nothing was
    /// decrypted.
    #[error("nothing was decrypted: the input begins like {0}")]
    OtherFormat(Foreign),
    /// A chunk failed its authentication. None of its plaintext was released.
    #[error(
        "chunk {chunk} (plaintext from byte {offset}) is not authentic: the data were damaged, changed or cut off there; \
         get an intact copy",
        offset = u128::from(*chunk) * 16384
    )]
    Damaged {
        /// The number of the chunk, from zero.
        chunk: u64,
    },
    /// The message is truncated. The plaintext that was released before is a prefix of the original.
    #[error("the encrypted data end too early, after {got} bytes: they were cut off{or}; get a complete copy", or = match got {
        // If the input ends before the end of the header, nothing shows that it is a message.
        1..HEADER => ", or this is not a Lockstep file",
        _ => "",
    })]
    Truncated {
        /// Bytes of the message that were read.
        got: u64,
    },
    /// The message cannot be decrypted completely. Its verified beginning was written, since [`Options::partial`] is set.
    ///
    /// [`Options::partial`]: crate::Options::partial
    #[error("{source}; {kept}", kept = match verified {
        0 => "no plaintext was verified, and none was written".into(),
        _ => format!("the verified beginning was written: {verified} bytes of plaintext"),
    })]
    Partial {
        /// Bytes of plaintext that were verified and written.
        verified: u64,
        /// The reason: [`Error::WrongKeyOrContext`], [`Error::Damaged`], [`Error::Truncated`] or [`Error::Read`].
        source: Box<Error>,
    },
    /// More data than the format supports.
    #[error("too long: the format holds at most 2^38 chunks (4 PiB less a byte); split the data")]
    TooLong,

    /// A key of an unsupported length.
    #[error("a key of {got} bytes: use 32 bytes (Cobblestone-256) or 16 (Cobblestone-128)")]
    KeyLength {
        /// Bytes given.
        got: usize,
    },
    /// The operating system returned no random bytes.
    #[error("the operating system returned no random bytes ({reason}): nothing was encrypted")]
    Random {
        /// The reason that the operating system returned.
        reason: String,
    },
    /// Input could not be read.
    #[error("cannot read the input: {}", in_words(.0))]
    Read(#[source] io::Error),
    /// A file became longer or shorter while it was read.
    #[error(
        "the input became {how} while it was read: it had {before} bytes, and has {now}; let nothing write to it, and try \
         again",
        how = if now < before { "shorter" } else { "longer" }
    )]
    InputChanged {
        /// The size of the file in bytes when it was opened.
        before: u64,
        /// The size of the file in bytes after the change.
        now: u64,
    },
    /// Output could not be written.
    #[error("cannot write the output: {0}")]
    Write(#[source] io::Error),
    /// A file operation failed.
    #[error("cannot {action} {path}: {}", in_words(source), path = quoted(path))]
    File {
        /// The operation, as a verb: `open`, `create`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The output exists, and overwriting was not requested.
    #[error("{path} exists: choose another output, or allow overwriting", path = quoted(path))]
    Exists {
        /// The output.
        path: PathBuf,
    },
    /// Input and output are the same file.
    #[error("{path} is both input and output: choose another output", path = quoted(path))]
    SameFile {
        /// The file.
        path: PathBuf,
    },
    /// The interrupt flag was set.
    #[error("interrupted")]
    Interrupted,
    /// A call of a writer after an earlier call has failed.
    #[error("this stream failed before ({first}) and cannot go on")]
    FailedBefore {
        /// The first error's message.
        first: String,
    },

    /// The text is not a key file.
    #[error(
        "{name} is not a key file ({reason}): it must be one line, `lockstep-key-256 ` and 64 hex digits or \
         `lockstep-key-128 ` and 32",
        name = path.as_ref().map_or("this".into(), |path| quoted(path).to_string())
    )]
    KeyFile {
        /// The file; `None` for a text in memory.
        path: Option<PathBuf>,
        /// What is wrong, without the content of the file.
        reason: &'static str,
    },
    /// A malformed envelope.
    #[error(
        "the file's envelope is malformed ({reason}): it is damaged or cut off, or was written by a newer version"
    )]
    Envelope {
        /// What is wrong.
        reason: &'static str,
    },
    /// A setting with an invalid value.
    #[error("{name} is `{value}`: {expected}")]
    Setting {
        /// The environment variable or option.
        name: &'static str,
        /// The value.
        value: String,
        /// What to set instead.
        expected: &'static str,
    },
    /// An error of a device, a kernel or a raw mode.
    #[error(transparent)]
    Core(#[from] lockstep_core::Error),
    /// The data are not authentic, for a reason that no other variant describes. The text is the message for the user.
    #[error("{0}")]
    NotAuthentic(String),
    /// Any other error. The text is the message for the user.
    #[error("{0}")]
    Failed(String),
}

impl Error {
    /// True if the data are not authentic: the key or the context is wrong, or the data are damaged or truncated.
    pub fn is_authentication_failure(&self) -> bool {
        match self {
            Error::WrongKeyOrContext
            | Error::OtherFormat(_)
            | Error::Damaged { .. }
            | Error::Truncated { .. }
            | Error::NotAuthentic(_) => true,
            Error::Partial { source, .. } => source.is_authentication_failure(),
            Error::Core(error) => *error == lockstep_core::Error::AuthenticationFailed,
            _ => false,
        }
    }

    /// The `errno` value, if the cause is an error of the operating system.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Error::Read(source) | Error::Write(source) | Error::File { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }

    /// True if an output with the verified beginning of a damaged message is to be kept: see [`Error::Partial`].
    pub fn keeps_output(&self) -> bool {
        matches!(self, Error::Partial { verified, .. } if *verified > 0)
    }

    /// True if the process that reads the output, such as `head`, has closed the pipe. Most programs treat this case as
    /// success.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Error::Write(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Converts an I/O error of reading the input; for `map_err`. If the I/O error contains an error of this crate, this error is
    /// returned unchanged.
    pub fn read(error: io::Error) -> Error {
        error.downcast::<Error>().unwrap_or_else(Error::Read)
    }

    /// Returns a function for `map_err` that adds the operation and the path to an error.
    #[cfg(feature = "files")]
    pub(crate) fn file<E: Into<io::Error>>(
        action: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(E) -> Error {
        move |source| {
            let source = source.into();
            // A path with a zero byte is an invalid input, and no file has such a path.
            let exists = !matches!(
                source.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename | io::ErrorKind::InvalidInput
            );
            Error::File { action, path: lockstep_core::shown::path(path, exists).into_owned(), source }
        }
    }
}

/// Creates an error from a message.
#[cfg(feature = "files")]
pub(crate) fn failed(message: impl Into<String>) -> Error {
    Error::Failed(message.into())
}

/// Returns the error unless the condition holds.
pub(crate) fn ensure(holds: bool, error: impl FnOnce() -> Error) -> Result<()> {
    if holds { Ok(()) } else { Err(error()) }
}

/// The text of an error of a file operation. Where the text of the system contains the word "directory", this function returns
/// another text with the word "folder".
fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::IsADirectory => "it is a folder".into(),
        io::ErrorKind::NotADirectory if error.raw_os_error().is_some() => {
            "a part of its path is not a folder".into()
        }
        _ => error.to_string(),
    }
}

/// Returns a copy of an error, for an error that is reported for several files.
#[cfg(feature = "files")]
pub(crate) fn copy(error: &io::Error) -> io::Error {
    let other = || io::Error::new(error.kind(), error.to_string());
    error.raw_os_error().map_or_else(other, io::Error::from_raw_os_error)
}

impl From<Error> for io::Error {
    /// Converts the error for the `std::io` traits. [`io::Error::downcast`] returns the original [`Error`].
    fn from(error: Error) -> io::Error {
        let cause = match &error {
            Error::Partial { source, .. } => source,
            other => other,
        };
        let kind = match cause {
            Error::Read(source) | Error::Write(source) | Error::File { source, .. } => source.kind(),
            Error::Truncated { .. } => io::ErrorKind::UnexpectedEof,
            Error::WrongKeyOrContext
            | Error::OtherFormat(_)
            | Error::Damaged { .. }
            | Error::NotAuthentic(_)
            | Error::Envelope { .. } => io::ErrorKind::InvalidData,
            _ => io::ErrorKind::Other,
        };
        // The standard library repeats a call after an error of the kind `Interrupted`.
        let kind = if kind == io::ErrorKind::Interrupted { io::ErrorKind::Other } else { kind };
        io::Error::new(kind, error)
    }
}
