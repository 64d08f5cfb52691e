//! The error type: what happened, and what to do about it.

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file does not have the structure of a Parquet file. The text states what is wrong.
    #[error("not an intact Parquet file: {0}; the file is damaged or cut off, or is not Parquet")]
    Malformed(String),
    /// A module failed its authentication. None of its plaintext was released. The text is the module, with its place in the file.
    #[error(
        "the {0} is not authentic: the key or the AAD prefix is wrong, or the file was damaged or changed; nothing was released"
    )]
    NotAuthentic(String),
    /// The file is plain, but an encrypted file is expected.
    #[error("the file is not encrypted: read it as a plain Parquet file if that is intended")]
    NotEncrypted,
    /// The column of this path, for which a key was given, is not encrypted in the file.
    #[error(
        "column {0} is not encrypted in this file, but a key for it was given: remove the key if a plain column is intended"
    )]
    PlainColumn(String),
    /// There is no key for a part of the file: the footer, or a column.
    #[error("there is no key for {0}: give one")]
    MissingKey(String),
    /// A key of an unsupported length.
    #[error("a key of {got} bytes for {what}: use 16, 24 or 32 bytes")]
    KeyLength {
        /// The footer, or the column.
        what: String,
        /// Bytes given.
        got: usize,
    },
    /// A name that is not a column of the file.
    #[error("the file has no column {name}; its columns are {known}")]
    UnknownColumn {
        /// The name given.
        name: String,
        /// The columns of the file.
        known: String,
    },
    /// The keys or the policy contradict themselves.
    #[error("the settings are contradictory for column {column}: {what}")]
    Contradiction {
        /// The path of the column.
        column: String,
        /// The contradiction, in words.
        what: &'static str,
    },
    /// An AAD prefix that does not fit the file, or ordinals that a module of this type does not have. The text states what is wrong,
    /// and what to do.
    #[error("{0}")]
    Argument(String),
    /// The footer is signed, and there is no footer key to check the signature.
    #[error(
        "there is no footer key, so that the signature of the footer cannot be checked, and names, types and plain columns can be changed \
         without notice: give the footer key, or allow an unauthenticated footer if that is acceptable"
    )]
    UnauthenticatedFooter,
    /// The modules of the file have no associated data.
    #[error(
        "the modules of the file have no associated data, as in files of DuckDB, so that pages can be exchanged without notice: \
         allow missing associated data if that is acceptable"
    )]
    MissingAad,
    /// The pages of the file have no authentication.
    #[error(
        "the pages of the file have no authentication (AES_GCM_CTR_V1), so that changes in them are not detected: \
         allow unauthenticated pages if that is acceptable"
    )]
    UnauthenticatedPages,
    /// The input of an encryption is encrypted already.
    #[error("the file is encrypted already: decrypt it first")]
    AlreadyEncrypted,
    /// A feature that this implementation or the format does not support.
    #[error("{0}: this is not supported")]
    Unsupported(String),
    /// The source of keys failed.
    #[error("the source of keys failed: {0}")]
    KeySource(#[source] std::io::Error),
    /// An error of files, of devices, or of the operating system.
    #[error(transparent)]
    Library(#[from] lockstep::Error),
}

impl Error {
    /// True if the data are not authentic or the key is wrong.
    pub fn is_authentication_failure(&self) -> bool {
        match self {
            Error::NotAuthentic(_) => true,
            Error::Library(error) => error.is_authentication_failure(),
            _ => false,
        }
    }
}

impl From<lockstep::hazmat::Error> for Error {
    fn from(error: lockstep::hazmat::Error) -> Error {
        Error::Library(error.into())
    }
}

pub(crate) fn unsupported(what: impl Into<String>) -> Error {
    Error::Unsupported(what.into())
}

pub(crate) fn malformed(what: impl Into<String>) -> Error {
    Error::Malformed(what.into())
}

/// The error for a structure that ends too early.
pub(crate) fn cut_off(what: &str) -> Error {
    malformed(format!("the {what} is cut off"))
}

/// Returns the error unless the condition holds.
pub(crate) fn ensure(holds: bool, error: impl FnOnce() -> Error) -> Result<()> {
    if holds { Ok(()) } else { Err(error()) }
}

/// Converts an error of reading input.
pub(crate) fn read(error: std::io::Error) -> Error {
    if error.kind() == std::io::ErrorKind::UnexpectedEof {
        return malformed("it is shorter than its footer states");
    }
    Error::Library(lockstep::Error::read(error))
}

/// The error for a field that a structure must have.
pub(crate) fn missing(what: &str) -> Error {
    malformed(format!("{what} is missing"))
}
