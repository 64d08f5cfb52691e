//! `lockstep decrypt -O`: each of many files to a file of its own.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::sync::{Mutex, MutexGuard};

use lockstep::envelope::Start;
use lockstep::{Engine, Envelope, FileKey, OutputFile, file, plaintext_len};

use super::{Decrypt, check_bare, find_unlock, no_key_file};
use crate::age_file;
use crate::error::{Error, Result, failed};
use crate::input::Input;
use crate::tree::{Existing, Operation, names};
use crate::unlock::Unlock;
use crate::wrapping;

/// Decryption of every file, each with the key that it needs.
pub(super) struct DecryptMany<'a> {
    pub(super) engine: &'a Engine,
    pub(super) args: &'a Decrypt,
    /// The key file's.
    pub(super) key: Option<FileKey>,
    /// The keys in envelopes, or why they could not be had. Files of one call of `encrypt` share an envelope.
    keys: Mutex<HashMap<Envelope, std::result::Result<FileKey, Closed>>>,
}

/// Why an envelope stays closed, in a form that can be given for each of several files.
#[derive(Clone)]
struct Closed {
    message: String,
    not_authentic: bool,
}

impl Closed {
    fn to_error(&self) -> Error {
        match self.not_authentic {
            true => Error::NotAuthentic(self.message.clone()),
            false => failed(self.message.clone()),
        }
    }
}

/// What opens envelopes: found, and asked for, once. Identities stay on the thread that has read them.
#[derive(Default)]
pub(super) struct Unlocks {
    passphrase: Option<Unlock>,
    identities: Option<Unlock>,
}

impl<'a> DecryptMany<'a> {
    pub(super) fn new(engine: &'a Engine, args: &'a Decrypt, key: Option<FileKey>) -> Self {
        DecryptMany { engine, args, key, keys: Mutex::default() }
    }

    /// Finds the key of a file, and keeps it.
    pub(super) fn prepare(&self, unlocks: &mut Unlocks, input: &mut Input) -> Result<()> {
        let envelope = match Envelope::read(&mut input.reader())? {
            Start::Envelope(envelope) => envelope,
            Start::Bare(begun) if age_file::is_one(&begun) => {
                return Err(failed("this is an age file: decrypt it by itself, with -o"));
            }
            Start::Bare(begun) => return check_bare(self.key.is_some(), &begun),
        };
        if let Some(known) = self.keys().get(&envelope) {
            return known.as_ref().map(drop).map_err(Closed::to_error);
        }
        let header = wrapping::header(&envelope)?;
        let unlock = if header.is_passphrase() { &mut unlocks.passphrase } else { &mut unlocks.identities };
        let unlock = match unlock {
            Some(unlock) => {
                header.check_work(self.args.max_work_factor)?;
                unlock
            }
            None => unlock.insert(find_unlock(self.args, &header)?),
        };
        let key = wrapping::unwrap(&envelope, unlock).map_err(|error| Closed {
            message: error.to_string(),
            not_authentic: error.exit_code() == crate::error::NOT_AUTHENTIC,
        });
        let outcome = key.as_ref().map(drop).map_err(Closed::to_error);
        self.keys().insert(envelope, key);
        outcome
    }

    fn keys(&self) -> MutexGuard<'_, HashMap<Envelope, std::result::Result<FileKey, Closed>>> {
        self.keys.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Operation for DecryptMany<'_> {
    fn done(&self) -> &'static str {
        "decrypted"
    }

    fn output_name(&self, input: &OsStr) -> Option<OsString> {
        names::decrypted(input)
    }

    fn compare(&self, input: &Input, output: &File, is_older: bool) -> Result<Existing> {
        if is_older {
            return Ok(Existing::Unknown("is older than the encrypted file"));
        }
        let envelope = Envelope::read_file(input.file())?;
        let before = envelope.map_or(0, |envelope| envelope.as_bytes().len() as u64);
        let expected = plaintext_len(input.len().unwrap_or(0).saturating_sub(before))?;
        let len = output.metadata().map_err(lockstep::Error::Read)?.len();
        Ok(match len == expected {
            true => Existing::UpToDate,
            false => Existing::Unknown("has another length than what would be decrypted"),
        })
    }

    fn process(
        &self,
        input: &mut Input,
        output: &mut OutputFile,
        options: lockstep::Options<'_>,
    ) -> Result<u64> {
        let (key, context) = match Envelope::read_file(input.file())? {
            Some(envelope) => {
                let key = match self.keys().get(&envelope) {
                    Some(key) => key.clone().map_err(|closed| closed.to_error())?,
                    None => {
                        return Err(failed("the file was changed while the keys of all files were found"));
                    }
                };
                (key, envelope.as_bytes().to_vec())
            }
            None => (
                self.key.clone().ok_or_else(no_key_file)?,
                self.args.context.as_deref().unwrap_or_default().into(),
            ),
        };
        let summary = file::decrypt_open_file(self.engine, &key, &context, input.file(), output, options)?;
        Ok(summary.plaintext_len)
    }
}
