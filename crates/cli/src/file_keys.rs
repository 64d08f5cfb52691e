//! Keys of files that are wrapped by age in an envelope, for programs other than the command. Nothing is asked on the terminal, and
//! nothing is printed.

use std::path::{Path, PathBuf};

use age::secrecy::SecretString;
use lockstep::{Envelope, FileKey};

use crate::error::{Error, NOT_AUTHENTIC, Result, failed};
use crate::identities::{self, Answers};
use crate::recipients::Recipients;
use crate::unlock::{MAX_WORK, Unlock};
use crate::wrapping;

/// Why a key was not wrapped or unwrapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyError {
    /// What happened, and what to do about it.
    pub message: String,
    /// True if no identity and no passphrase opens the file, or if its envelope was changed.
    pub is_not_authentic: bool,
}

impl From<Error> for KeyError {
    fn from(error: Error) -> KeyError {
        KeyError { message: error.to_string(), is_not_authentic: error.exit_code() == NOT_AUTHENTIC }
    }
}

/// Wraps a key for recipients: age recipients (`age1...`), SSH public keys, and recipients of age plugins.
///
/// # Errors
/// If there is no recipient, or if one is not valid.
pub fn wrap(key: &FileKey, recipients: &[&str]) -> std::result::Result<Envelope, KeyError> {
    let found = Recipients::read(recipients, &[])?;
    let found = found.resolve(&Answers::new(None).without_questions())?;
    Ok(wrapping::wrap(key, &found)?)
}

/// Wraps a key with a passphrase by scrypt, which takes about a second and 256 MiB of memory.
///
/// # Errors
/// If the passphrase is empty, or if there is not enough memory.
pub fn wrap_with_passphrase(key: &FileKey, passphrase: &str) -> std::result::Result<Envelope, KeyError> {
    if passphrase.is_empty() {
        return Err(failed("an empty passphrase protects nothing: give one").into());
    }
    Ok(wrapping::wrap_with_passphrase(key, SecretString::from(passphrase))?)
}

/// Unwraps the key in an envelope with the identities in files: age identities and SSH private keys. If an identity is encrypted,
/// `passphrase` decrypts it. Without files, `passphrase` opens the envelope.
///
/// # Errors
/// If nothing opens the envelope, if a file has no identity, or if there are neither files nor a passphrase.
pub fn unwrap(
    envelope: &Envelope,
    identity_files: &[PathBuf],
    passphrase: Option<&str>,
) -> std::result::Result<FileKey, KeyError> {
    let passphrase = passphrase.map(SecretString::from);
    let unlock = match (identity_files, passphrase) {
        ([], None) => return Err(failed("the file has no key file: give identities or a passphrase").into()),
        ([], Some(passphrase)) => Unlock::Passphrase { passphrase, max_work: MAX_WORK },
        (files, passphrase) => {
            let answers = Answers::new(passphrase).without_questions();
            let files: Result<Vec<_>> = files.iter().map(|path| absolute(path)).collect();
            identities::read(&files?, answers, true)?
        }
    };
    Ok(wrapping::unwrap(envelope, &unlock)?)
}

/// The absolute path: the name `-` is a file here.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(Error::io("find", path))
}
