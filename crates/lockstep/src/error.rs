//! Everything that can go wrong, as values: what happened, and what to do about it.

use std::io;
use std::path::PathBuf;

use crate::quoted::quoted;

/// The result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The commitment in the header is not that of this key and context. Nothing was decrypted.
    #[error(
        "wrong key or context: this message was encrypted with another key, another context or another kind of key, \
         or its first 56 bytes were changed"
    )]
    WrongKeyOrContext,
    /// A chunk failed its check. Nothing of it was released.
    #[error(
        "chunk {chunk} (plaintext from byte {offset}) is not authentic: the data were damaged, changed or cut off there; \
         get an intact copy",
        offset = u128::from(*chunk) * 16384
    )]
    Damaged {
        /// The number of the chunk, from zero.
        chunk: u64,
    },
    /// The message ends where no message may end. What was released before is a true prefix.
    #[error("the encrypted data end too early, after {got} bytes: they were cut off; get a complete copy")]
    Truncated {
        /// Bytes of the message that there are.
        got: u64,
    },
    /// A device said that it was done when it was not. The chunk was not written.
    #[error(
        "the device did not seal chunk {chunk}: nothing of it was written; use another device and report this"
    )]
    NotSealed {
        /// The number of the chunk, from zero.
        chunk: u64,
    },
    /// More than the format can hold.
    #[error("too long: the format holds at most 2^38 chunks (4 PiB less a byte); split the data")]
    TooLong,

    /// A key of a length that no suite has.
    #[error("a key of {got} bytes: use 32 bytes (Cobblestone-256) or 16 (Cobblestone-128)")]
    KeyLength {
        /// Bytes given.
        got: usize,
    },
    /// The operating system gave no random bytes.
    #[error("the operating system gave no random bytes ({reason}): nothing was encrypted")]
    Random {
        /// What it said.
        reason: String,
    },
    /// Input could not be read.
    #[error("cannot read the input: {0}")]
    Read(#[source] io::Error),
    /// A file grew or shrank while it was read.
    #[error(
        "the input became {how} while it was read: it had {before} bytes, and has {now}; let nothing write to it, and try \
         again",
        how = if now < before { "shorter" } else { "longer" }
    )]
    InputChanged {
        /// Its size in bytes when it was opened.
        before: u64,
        /// Its size in bytes later.
        now: u64,
    },
    /// Output could not be written.
    #[error("cannot write the output: {0}")]
    Write(#[source] io::Error),
    /// A file could not be opened, created, renamed, ...
    #[error("cannot {action} {path}: {source}", path = quoted(path))]
    File {
        /// What was tried, as a verb: `open`, `create`.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The output exists, and overwriting it was not asked for.
    #[error("{path} exists: choose another output, or force overwriting", path = quoted(path))]
    Exists {
        /// The output.
        path: PathBuf,
    },
    /// Output equal to input.
    #[error("{path} is both input and output: choose another output", path = quoted(path))]
    SameFile {
        /// The file.
        path: PathBuf,
    },
    /// The interrupt flag was raised.
    #[error("interrupted")]
    Interrupted,
    /// A call on a writer or reader that has failed before.
    #[error("this stream failed before ({first}) and cannot go on")]
    FailedBefore {
        /// The first error's message.
        first: String,
    },

    /// Not a key file.
    #[error(
        "this is no key file ({reason}): it must be one line, `lockstep-key-256 ` and 64 hex digits or \
         `lockstep-key-128 ` and 32"
    )]
    KeyFile {
        /// What is wrong, without the content.
        reason: &'static str,
    },
    /// An envelope that cannot be.
    #[error(
        "the file's envelope is malformed ({reason}): it was damaged or cut off, or a newer version wrote it"
    )]
    Envelope {
        /// What is wrong.
        reason: &'static str,
    },
    /// A setting with a value that means nothing.
    #[error("{name} is `{value}`: {expected}")]
    Setting {
        /// The environment variable or option.
        name: &'static str,
        /// What it was set to.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
    /// From devices, kernels and raw modes.
    #[error(transparent)]
    Core(#[from] lockstep_core::Error),
}

impl Error {
    /// True if the data are not what the holder of the key encrypted: another key or context, damaged, cut off.
    pub fn is_authentication_failure(&self) -> bool {
        match self {
            Error::WrongKeyOrContext | Error::Damaged { .. } | Error::Truncated { .. } => true,
            Error::Core(error) => *error == lockstep_core::Error::AuthenticationFailed,
            _ => false,
        }
    }

    /// True if whoever read the output has gone away (`| head`), which most programs take as success.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Error::Write(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// For `map_err`: input that could not be read. An error of this crate that came through a reader is that error
    /// again.
    pub fn read(error: io::Error) -> Error {
        error.downcast::<Error>().unwrap_or_else(Error::Read)
    }

    /// For `map_err`: a file operation that failed.
    pub(crate) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::File { action, path: path.into(), source }
    }
}

impl From<Error> for io::Error {
    /// For the `std::io` traits; `downcast` brings the [`Error`] back.
    fn from(error: Error) -> io::Error {
        let kind = match &error {
            Error::Read(source) | Error::Write(source) | Error::File { source, .. } => source.kind(),
            Error::Truncated { .. } => io::ErrorKind::UnexpectedEof,
            Error::WrongKeyOrContext | Error::Damaged { .. } | Error::Envelope { .. } => {
                io::ErrorKind::InvalidData
            }
            // Not `Interrupted`, which `std` answers by trying again.
            _ => io::ErrorKind::Other,
        };
        let kind = if kind == io::ErrorKind::Interrupted { io::ErrorKind::Other } else { kind };
        io::Error::new(kind, error)
    }
}
