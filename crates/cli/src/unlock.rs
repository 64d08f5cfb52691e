//! What opens an age file, or the age file in an envelope: a passphrase, or identities.

use std::io::BufRead;

use age::secrecy::SecretString;
use age::stream::StreamReader;
use age::{DecryptError, Decryptor, Identity, scrypt};

use crate::age_file::Header;
use crate::error::{Error, Result, failed};
use crate::identities::Answers;
use crate::text;

/// The most work that a passphrase may ask for unless told otherwise, as the power of two of scrypt's N: 1 GiB.
pub(crate) const MAX_WORK: u8 = 20;

/// A passphrase or identities.
pub(crate) enum Unlock {
    Passphrase {
        passphrase: SecretString,
        max_work: u8,
    },
    Identities {
        identities: Vec<Box<dyn Identity>>,
        /// What the identities ask.
        answers: Answers,
    },
}

impl Unlock {
    /// The plaintext of an age file with this header.
    pub(crate) fn open<R: BufRead>(&self, header: &Header, file: R) -> Result<StreamReader<R>> {
        match self {
            Unlock::Passphrase { passphrase, max_work } => {
                if !header.is_passphrase() {
                    // Not a mistake on the command line only: damage can look like this too.
                    let whom = header.whom();
                    return Err(Error::NotAuthentic(format!(
                        "no passphrase opens this file: it is encrypted {whom}: give an identity with -i"
                    )));
                }
                header.check_work(*max_work)?;
                let mut identity = scrypt::Identity::new(passphrase.clone());
                identity.set_max_work_factor(*max_work);
                decrypt(header, file, std::iter::once(&identity as &dyn Identity))
            }
            Unlock::Identities { identities, answers } => {
                if header.is_passphrase() {
                    return Err(failed(
                        "this file is encrypted with a passphrase, and no identity opens it: leave out -i",
                    ));
                }
                let opened = decrypt(header, file, identities.iter().map(|identity| &**identity));
                // A passphrase that could not be asked for says more than the identity that stayed closed.
                answers.problem().map_or(opened, Err)
            }
        }
    }
}

fn decrypt<'a, R: BufRead>(
    header: &Header,
    file: R,
    identities: impl Iterator<Item = &'a dyn Identity>,
) -> Result<StreamReader<R>> {
    Decryptor::new_buffered(file)
        .and_then(|decryptor| decryptor.decrypt(identities))
        .map_err(|error| explain(error, header.is_passphrase()))
}

/// For an age file that is not what it was.
pub(crate) fn damaged() -> Error {
    Error::NotAuthentic("the file's header was damaged or changed: get an intact copy".into())
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
