//! `lockstep encrypt -O`: encrypts each of many files to a separate file.

use std::fs::File;
use std::io::Write;
use std::sync::OnceLock;

use lockstep::cobblestone::Tail;
use lockstep::tree::{Direction, Error, Existing, Operation, Pair, Result};
use lockstep::{Engine, Envelope, FileKey, Reader, ciphertext_len, file};

use crate::wrapping;

/// Encrypts all files of a call with the same key. With recipients or a passphrase, all files of a call have the same
/// envelope, so that decryption needs a passphrase or a hardware key only once.
pub(super) struct EncryptMany<'a> {
    pub(super) engine: &'a Engine,
    pub(super) context: Option<&'a str>,
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
        let (key, envelope) = self.key.get().ok_or_else(|| Error::Failed("there is no key yet".into()))?;
        Ok((key, envelope.as_ref()))
    }

    /// True if the envelope was written for a passphrase, and one is used here, or for recipients in both cases.
    fn is_of_kind(&self, envelope: &Envelope) -> bool {
        let uses_passphrase = self.kind == KeyKind::Passphrase;
        wrapping::header(envelope).is_ok_and(|header| header.is_passphrase() == uses_passphrase)
    }
}

impl Operation for EncryptMany<'_> {
    fn direction(&self) -> Direction {
        Direction::Encrypt
    }

    fn compare(&self, pair: &Pair<'_>) -> Result<Existing> {
        if self.kind == KeyKind::KeyFile {
            return Ok(pair.encrypted(self.engine, self.key()?.0, wrapping::context(None, self.context)));
        }
        // The existing output has a key and recipients that are unknown here, so only the type of the envelope and
        // the length of the output are compared.
        let Ok(Some(envelope)) = Envelope::read_file(pair.output) else {
            return Ok(Existing::Unknown("was not encrypted to recipients or with a passphrase"));
        };
        if !self.is_of_kind(&envelope) {
            return Ok(Existing::Unknown(match self.kind {
                KeyKind::Passphrase => "was encrypted to recipients, not with a passphrase",
                _ => "was encrypted with a passphrase, not to recipients",
            }));
        }
        let is_whole = ciphertext_len(pair.input_len)
            .is_ok_and(|message| pair.output_len == envelope.as_bytes().len() as u64 + message);
        Ok(pair.own(is_whole))
    }

    fn is_own(&self, output: &File) -> bool {
        let context = wrapping::context(None, self.context);
        let opens = |key| Reader::open(self.engine, key, context, Tail::new(output, 0)).is_ok();
        self.kind == KeyKind::KeyFile && self.key().is_ok_and(|(key, _)| opens(key))
    }

    fn process(
        &self,
        input: &File,
        output: &mut (dyn Write + Send),
        options: lockstep::Options<'_>,
    ) -> Result<u64> {
        let (key, envelope) = self.key()?;
        envelope.iter().try_for_each(|envelope| envelope.write(output))?;
        let context = wrapping::context(envelope, self.context);
        let summary = file::encrypt_open_file(self.engine, key, context, input, output, options)?;
        Ok(summary.plaintext_len)
    }
}
