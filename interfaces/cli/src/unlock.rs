//! Opening an age file, or the age file in an envelope, with a passphrase or with identities.

use std::io::BufRead;

use age::stream::StreamReader;
use age::{DecryptError, Identity};

use crate::age_file::{AtOnce, Header};
use crate::answers::Answers;
use crate::error::{Error, Result, failed};
use crate::passphrase::{Forms, Passphrase};
use crate::text;

/// A passphrase or identities.
pub(crate) enum Unlock {
    Passphrase {
        passphrase: Passphrase,
        max_work: u8,
    },
    Identities {
        identities: Vec<Box<dyn Identity>>,
        /// The answers to the questions of the identities.
        answers: Answers,
    },
}

impl Unlock {
    /// Returns a reader of the plaintext of the age file that consists of this header and of `rest`. After `stop` has returned
    /// true, no other identity and no other form of the passphrase is tried.
    pub(crate) fn open<R: BufRead>(
        &self,
        header: &Header,
        rest: R,
        stop: &dyn Fn() -> bool,
    ) -> Result<StreamReader<AtOnce<Vec<u8>, R>>> {
        match self {
            Unlock::Passphrase { passphrase, max_work } => {
                if !header.is_passphrase() {
                    return Err(no_passphrase(header));
                }
                header.check_work(*max_work)?;
                let forms = Forms::new(passphrase, *max_work, stop);
                decrypt(header, rest, std::iter::once(&forms as &dyn Identity), stop)
            }
            Unlock::Identities { identities, answers } => {
                if header.is_passphrase() {
                    return Err(failed(
                        "this file is encrypted with a passphrase, and identities cannot open it: omit -i",
                    ));
                }
                let opened = decrypt(header, rest, identities.iter().map(|identity| &**identity), stop);
                // The reason why a passphrase could not be asked for is more helpful than "no identity opens this
                // file".
                answers.problem().map_or(opened, Err)
            }
        }
    }
}

fn decrypt<'a, R: BufRead>(
    header: &Header,
    rest: R,
    identities: impl Iterator<Item = &'a dyn Identity>,
    stop: &dyn Fn() -> bool,
) -> Result<StreamReader<AtOnce<Vec<u8>, R>>> {
    let opened = header.decrypt(rest, identities.take_while(|_| !stop()));
    if stop() {
        return Err(Error::Stopped);
    }
    opened.map_err(|error| explain(error, header.is_passphrase()))
}

/// The error for a passphrase if the file is encrypted to recipients.
pub(crate) fn no_passphrase(header: &Header) -> Error {
    let recipients_text = header.recipients_text();
    // A damaged header can be the cause too, so this is not a usage error.
    Error::NotAuthentic(format!(
        "no passphrase opens this file: it is encrypted {recipients_text}: give an identity with -i"
    ))
}

/// The error for an age file that was damaged or changed.
pub(crate) fn damaged() -> Error {
    Error::NotAuthentic("the header of the file is damaged or was changed: get an intact copy".into())
}

fn explain(error: DecryptError, passphrase: bool) -> Error {
    match error {
        DecryptError::NoMatchingKeys => Error::NotAuthentic(
            "none of the identities opens this file: it is encrypted to other recipients".into(),
        ),
        DecryptError::DecryptionFailed if passphrase => {
            Error::NotAuthentic("wrong passphrase, or the file's header was changed".into())
        }
        DecryptError::KeyDecryptionFailed => Error::NotAuthentic("wrong passphrase for the identity".into()),
        DecryptError::DecryptionFailed
        | DecryptError::InvalidHeader
        | DecryptError::InvalidMac
        | DecryptError::UnknownFormat => damaged(),
        DecryptError::Io(error) if error.raw_os_error().is_some() => lockstep::Error::Read(error).into(),
        DecryptError::Io(_) => damaged(),
        other => failed(text::one_line(&other)),
    }
}
