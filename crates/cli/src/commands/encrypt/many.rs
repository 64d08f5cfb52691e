//! `lockstep encrypt -O`: encrypts each of many files to a separate file.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::sync::OnceLock;

use lockstep::{Engine, Envelope, FileKey, ciphertext_len, file};

use crate::error::{Result, failed};
use crate::input::Input;
use crate::tree::{Existing, Operation, names};
use crate::wrapping;

/// Encrypts all files of a call with the same key. With recipients or a passphrase, all files of a call have the same
/// envelope, so that decryption needs a passphrase or a hardware key only once.
pub(super) struct EncryptMany<'a> {
    pub(super) engine: &'a Engine,
    pub(super) context: &'a str,
    pub(super) kind: KeyKind,
    /// Set before the first file is processed. A key from a key file is set earlier, before existing outputs are
    /// compared.
    pub(super) key: OnceLock<(FileKey, Option<Envelope>)>,
}

/// The source of the key of the files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyKind {
    KeyFile,
    Recipients,
    Passphrase,
}

impl EncryptMany<'_> {
    fn key(&self) -> Result<(&FileKey, Option<&Envelope>)> {
        let (key, envelope) = self.key.get().ok_or_else(|| failed("there is no key yet"))?;
        Ok((key, envelope.as_ref()))
    }
}

impl Operation for EncryptMany<'_> {
    fn done(&self) -> &'static str {
        "encrypted"
    }

    fn output_name(&self, input: &OsStr) -> Option<OsString> {
        Some(names::encrypted(input))
    }

    fn compare(&self, input: &Input, output: &File, same_time: bool) -> Result<Existing> {
        if self.kind == KeyKind::KeyFile {
            let (key, context) = (self.key()?.0, self.context.as_bytes());
            return Ok(Existing::encrypted(self.engine, key, context, input, output, same_time));
        }
        // The existing output has a key and recipients that are unknown here, so only the type of the envelope and
        // the length of the output are compared.
        let Ok(Some(envelope)) = Envelope::read_file(output) else {
            return Ok(Existing::Unknown("was not encrypted to recipients or with a passphrase"));
        };
        let wants_passphrase = self.kind == KeyKind::Passphrase;
        if !wrapping::header(&envelope).is_ok_and(|header| header.is_passphrase() == wants_passphrase) {
            return Ok(Existing::Unknown(match wants_passphrase {
                true => "was encrypted to recipients, not with a passphrase",
                false => "was encrypted with a passphrase, not to recipients",
            }));
        }
        let len = output.metadata().map_err(lockstep::Error::Read)?.len();
        let is_whole = ciphertext_len(input.len().unwrap_or(0))
            .is_ok_and(|message| len == envelope.as_bytes().len() as u64 + message);
        Ok(Existing::of_own(is_whole, same_time))
    }

    fn process(
        &self,
        input: &mut Input,
        output: &mut (dyn Write + Send),
        options: lockstep::Options<'_>,
    ) -> Result<u64> {
        let (key, envelope) = self.key()?;
        if let Some(envelope) = envelope {
            output.write_all(envelope.as_bytes()).map_err(lockstep::Error::Write)?;
        }
        let context = envelope.map_or(self.context.as_bytes(), Envelope::as_bytes);
        let summary = file::encrypt_open_file(self.engine, key, context, input.file(), output, options)?;
        Ok(summary.plaintext_len)
    }
}
