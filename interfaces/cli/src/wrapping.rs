//! Wraps the keys of files in envelopes with age, and unwraps them.

use std::ffi::OsStr;
use std::io::{BufRead, Write};
use std::os::unix::ffi::OsStrExt;

use age::stream::StreamReader;
use age::{DecryptError, EncryptError, Encryptor, Identity, Recipient, scrypt};
use lockstep::envelope::MAX_PAYLOAD;
use lockstep::{Envelope, FileKey, read};
use zeroize::Zeroizing;

use crate::age_file::{self, AtOnce, Header};
use crate::answers::Answers;
use crate::error::{Error, Result, ensure, failed, not_authentic};
use crate::passphrase::{Forms, Passphrase};
use crate::text;

/// The scrypt work factor for a passphrase (log2 of N), the same as in age. The key derivation takes about a second and
/// 256 MiB of memory.
const WORK: u8 = 18;
const KEY: usize = 32;

/// Prepares the encryption of an age file that any of the recipients can open.
pub(crate) fn encryptor(recipients: &[Box<dyn Recipient>]) -> Result<Encryptor> {
    let encryptor = Encryptor::with_recipients(recipients.iter().map(|recipient| &**recipient));
    encryptor.map_err(|error| match error {
        EncryptError::MissingRecipients => failed("there are no recipients: give one with -r or -R"),
        EncryptError::IncompatibleRecipients { .. } => failed(
            "these recipients cannot be combined in one file (such as post-quantum recipients and others): omit some",
        ),
        other => failed(text::one_line(&other)),
    })
}

/// Creates an envelope that any of the recipients can open.
pub(crate) fn wrap(key: &FileKey, recipients: &[Box<dyn Recipient>]) -> Result<Envelope> {
    let mut payload = Vec::new();
    let wrapped = encryptor(recipients)?.wrap_output(&mut payload).and_then(|mut writer| {
        writer.write_all(key.as_bytes())?;
        writer.finish()
    });
    wrapped.map_err(|error| failed(format!("cannot wrap the file's key: {error}")))?;
    let len = payload.len();
    let message = format_args!("too many recipients: they take {len} bytes of at most {MAX_PAYLOAD}");
    ensure(len <= MAX_PAYLOAD, message)?;
    Ok(Envelope::new(&payload)?)
}

/// The recipient for a passphrase.
pub(crate) fn by_passphrase(passphrase: &Passphrase) -> Result<Box<dyn Recipient>> {
    age_file::check_memory(WORK)?;
    let mut recipient = scrypt::Recipient::new(passphrase.without_mark());
    recipient.set_work_factor(WORK);
    Ok(Box::new(recipient))
}

/// The header of the age file in an envelope.
pub(crate) fn header(envelope: &Envelope) -> Result<Header> {
    Header::read(envelope.payload()).map_err(|error| match error {
        Error::Library(lockstep::Error::NotAuthentic(_)) => damaged(),
        other => other,
    })
}

/// The context of a message. This is the envelope if there is one, otherwise the context that the user gave.
pub(crate) fn context<'a>(envelope: Option<&'a Envelope>, given: Option<&'a OsStr>) -> &'a [u8] {
    envelope.map_or(given.unwrap_or_default().as_bytes(), Envelope::as_bytes)
}

/// The number of bytes of an envelope, or 0 without one.
pub(crate) fn envelope_len(envelope: Option<&Envelope>) -> u64 {
    envelope.map_or(0, |envelope| envelope.as_bytes().len() as u64)
}

/// Returns the key in an envelope. After `stop` has returned true, no other identity and no other form of the passphrase is tried.
pub(crate) fn unwrap(envelope: &Envelope, unlock: &Unlock, stop: &dyn Fn() -> bool) -> Result<FileKey> {
    let header = header(envelope)?;
    let mut reader = unlock.open(&header, &envelope.payload()[header.bytes.len()..], stop)?;
    // The buffer has one byte more than the key, so that a longer payload is detected and the end of the payload is
    // verified.
    let mut key = Zeroizing::new([0; KEY + 1]);
    let got = read::full(&mut reader, &mut key[..]).map_err(|_| damaged())?;
    if got != KEY {
        return Err(not_authentic("the envelope does not contain a file key"));
    }
    Ok(FileKey::from_bytes(&key[..KEY])?)
}

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
        let forms;
        let (identities, answers) = match self {
            Unlock::Passphrase { passphrase, max_work } => {
                if !header.is_passphrase() {
                    return Err(no_passphrase(header));
                }
                header.check_work(*max_work)?;
                forms = Forms { forms: passphrase.forms(), max_work: *max_work, stop };
                (vec![&forms as &dyn Identity], None)
            }
            Unlock::Identities { identities, answers } => {
                let rule = "this file is encrypted with a passphrase, and identities cannot open it: omit -i";
                ensure(!header.is_passphrase(), rule)?;
                (identities.iter().map(|identity| &**identity).collect(), Some(answers))
            }
        };
        let opened = header.decrypt(rest, identities.into_iter().take_while(|_| !stop()));
        let opened = match stop() {
            true => Err(Error::Stopped),
            false => opened.map_err(|error| explain(error, header.is_passphrase())),
        };
        // If a question could not be asked, the error of the question is returned: it is more helpful than "no identity opens
        // this file".
        answers.and_then(Answers::problem).map_or(opened, Err)
    }
}

/// The error if the user gives a passphrase for a file that is encrypted to recipients.
pub(crate) fn no_passphrase(header: &Header) -> Error {
    let recipients_text = header.recipients_text();
    // The cause can also be a damaged header, so the error is not a usage error.
    not_authentic(format!(
        "no passphrase opens this file: it is encrypted {recipients_text}: give an identity with -i"
    ))
}

/// The error for an age file that was damaged or changed.
pub(crate) fn damaged() -> Error {
    not_authentic("the header of the file is damaged or was changed: get an intact copy")
}

fn explain(error: DecryptError, passphrase: bool) -> Error {
    match error {
        DecryptError::NoMatchingKeys => {
            not_authentic("none of the identities opens this file: it is encrypted to other recipients")
        }
        DecryptError::DecryptionFailed if passphrase => {
            not_authentic("wrong passphrase, or the file's header was changed")
        }
        DecryptError::KeyDecryptionFailed => not_authentic("wrong passphrase for the identity"),
        DecryptError::Io(error) if error.raw_os_error().is_some() => lockstep::Error::Read(error).into(),
        DecryptError::DecryptionFailed
        | DecryptError::InvalidHeader
        | DecryptError::InvalidMac
        | DecryptError::UnknownFormat
        | DecryptError::Io(_) => damaged(),
        other => failed(text::one_line(&other)),
    }
}

#[cfg(test)]
mod tests;
