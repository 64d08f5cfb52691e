//! `lockstep encrypt -O`: encrypts each of many files to a separate file.

use std::fs::File;
use std::io::Write;
use std::sync::OnceLock;

use lockstep::{Engine, Envelope, FileKey, ciphertext_len, file};

use crate::error::{Result, failed};
use crate::input::Input;
use crate::tree::{Direction, Existing, Operation, Times};
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

    /// True if the envelope was written for a passphrase, and one is used here, or for recipients in both cases.
    fn is_of_kind(&self, envelope: &Envelope) -> bool {
        let uses_passphrase = self.kind == KeyKind::Passphrase;
        wrapping::header(envelope).is_ok_and(|header| header.is_passphrase() == uses_passphrase)
    }
}

impl Operation for EncryptMany<'_> {
    fn done(&self) -> &'static str {
        "encrypted"
    }

    fn direction(&self) -> Direction {
        Direction::Encrypt
    }

    fn compare(&self, input: &Input, output: &File, times: Times) -> Result<Existing> {
        if self.kind == KeyKind::KeyFile {
            let (key, context) = (self.key()?.0, self.context.as_bytes());
            return Ok(Existing::encrypted(self.engine, key, context, input, output, times));
        }
        // The existing output has a key and recipients that are unknown here, so only the type of the envelope and
        // the length of the output are compared.
        let Ok(Some(envelope)) = Envelope::read_file(output) else {
            return Ok(Existing::Unknown("was not encrypted to recipients or with a passphrase"));
        };
        if !self.is_of_kind(&envelope) {
            return Ok(Existing::Unknown(match self.kind {
                KeyKind::Passphrase => "was encrypted to recipients, not with a passphrase",
                _ => "was encrypted with a passphrase, not to recipients",
            }));
        }
        let len = output.metadata().map_err(lockstep::Error::Read)?.len();
        let is_whole = ciphertext_len(input.len().unwrap_or(0))
            .is_ok_and(|message| len == envelope.as_bytes().len() as u64 + message);
        Ok(Existing::of_own(is_whole, times))
    }

    fn is_own(&self, output: &File) -> bool {
        let opens = |key| Existing::opens(self.engine, key, self.context.as_bytes(), output);
        self.kind == KeyKind::KeyFile && self.key().is_ok_and(|(key, _)| opens(key))
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
