//! Wraps the key of a file in an envelope, with age, and unwraps it. These functions are for programs other than the command: they ask
//! no questions on the terminal and print nothing.

use std::path::PathBuf;

use lockstep::{Envelope, FileKey};

use crate::answers::Answers;
use crate::error::{Error, Result, ensure, failed};
use crate::passphrase::{MAX_WORK, Passphrase};
use crate::wrapping::{self, Unlock};
use crate::{identities, recipients};

/// Words in messages of the command that name options. The second word of each pair replaces the first in Python.
const WORDS: [(&str, &str); 7] = [
    ("-r: ", "recipients: "),
    (" with -r or -R", ""),
    ("for -i or -k", "for identities or key"),
    ("omit -i", "give its passphrase instead"),
    ("give an identity with -i", "give identities"),
    ("give it with -k", "give it as the key"),
    ("give --max-work-factor ", "use the command `lockstep decrypt` with --max-work-factor "),
];

/// Converts an error of the command to an error whose message names the arguments of Python instead of options.
fn in_python(error: Error) -> lockstep::Error {
    error.with_message(replace_options(&error.to_string()))
}

/// Replaces the options of the command by the names of Python. Quoted names of files are not changed. Within such a name, a backslash
/// precedes each quote and each backslash.
fn replace_options(message: &str) -> String {
    let (mut is_escaped, mut is_quoted) = (false, false);
    let parts = message.split_inclusive(|c| {
        let ends_part = c == '\'' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends_part
    });
    let replaced = parts.map(|part| {
        let is_name = is_quoted;
        is_quoted = !is_quoted;
        match is_name {
            true => part.to_owned(),
            false => WORDS.iter().fold(part.to_owned(), |text, (option, word)| text.replace(option, word)),
        }
    });
    replaced.collect()
}

/// Wraps a key for the given recipients: age recipients (`age1...`), SSH public keys, and recipients of age plugins.
///
/// # Errors
/// [`lockstep::Error::Failed`] if there is no recipient, or if one is not valid.
pub fn wrap(key: &FileKey, given: &[&str]) -> lockstep::Result<Envelope> {
    recipients::read(given, &[], &Answers::new(None, MAX_WORK, false), true)
        .and_then(|found| wrapping::wrap(key, &found))
        .map_err(in_python)
}

/// Wraps a key with a passphrase. The key derivation scrypt takes about a second and 256 MiB of memory. A byte order mark at the
/// start of the passphrase is left out; otherwise the passphrase is used as given.
///
/// # Errors
/// [`lockstep::Error::Failed`] if the passphrase is empty, or if there is not enough memory.
pub fn wrap_with_passphrase(key: &FileKey, passphrase: &str) -> lockstep::Result<Envelope> {
    let passphrase = Passphrase::from(passphrase);
    ensure(!passphrase.is_empty(), "an empty passphrase protects nothing: give one")
        .and_then(|()| wrapping::by_passphrase(&passphrase))
        .and_then(|recipient| wrapping::wrap(key, &[recipient]))
        .map_err(in_python)
}

/// Unwraps the key in an envelope. If there are identity files, their identities unwrap it: age identities and SSH private keys. If an
/// identity is encrypted, `passphrase` decrypts the identity. Without identity files, `passphrase` unwraps the key. The passphrase is
/// tried as given, then without a byte order mark, and in the Unicode normalisation forms NFC and NFD. After `stop` has returned true,
/// no other attempt begins.
///
/// # Errors
/// [`lockstep::Error::NotAuthentic`] if no identity or passphrase opens the envelope, or if the envelope was changed.
/// [`lockstep::Error::Failed`] if the envelope has more than 3000 recipients, if a file has no identity, if there are neither files nor a
/// passphrase, or if `stop` has returned true.
pub fn unwrap(
    envelope: &Envelope,
    identity_files: &[PathBuf],
    passphrase: Option<&str>,
    stop: &dyn Fn() -> bool,
) -> lockstep::Result<FileKey> {
    let unlock = match (identity_files, passphrase.map(Passphrase::from)) {
        ([], None) => Err(failed("the file has no key file: give identities or a passphrase")),
        ([], Some(passphrase)) => Ok(Unlock::Passphrase { passphrase, max_work: MAX_WORK }),
        (files, passphrase) => {
            let answers = Answers::new(passphrase, MAX_WORK, false);
            // The paths are made absolute, so that the name `-` means a file and not standard input.
            let absolute = |path: &PathBuf| std::path::absolute(path).map_err(Error::io("find", path));
            let files = files.iter().map(absolute).collect::<Result<Vec<_>>>();
            files.and_then(|files| identities::read(&files, answers, true))
        }
    };
    unlock.and_then(|unlock| wrapping::unwrap(envelope, &unlock, stop)).map_err(in_python)
}

#[cfg(test)]
mod tests;
