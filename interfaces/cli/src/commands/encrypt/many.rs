//! `lockstep encrypt -O`: encrypts each of many files to a separate file.

use std::fs::File;
use std::io::Write;
use std::sync::OnceLock;

use lockstep::cobblestone::Tail;
use lockstep::tree::{Direction, Error, Existing, Operation, Pair, Result};
use lockstep::{Engine, Envelope, FileKey, Reader, ciphertext_len, file};

use super::Encrypt;
use crate::wrapping;

/// Encrypts all files of a call with the same key. With recipients or a passphrase, all files of a call have the same
/// envelope, so that decryption needs a passphrase or a hardware key only once.
pub(super) struct EncryptMany<'a> {
    pub(super) engine: &'a Engine,
    pub(super) args: &'a Encrypt,
    /// Set before the first file is processed. A key from a key file is set earlier, before existing outputs are
    /// compared.
    pub(super) key: OnceLock<(FileKey, Option<Envelope>)>,
}

impl EncryptMany<'_> {
    fn key(&self) -> Result<(&FileKey, Option<&Envelope>)> {
        let (key, envelope) = self.key.get().ok_or_else(|| Error::Failed("there is no key yet".into()))?;
        Ok((key, envelope.as_ref()))
    }

    fn context<'e>(&'e self, envelope: Option<&'e Envelope>) -> &'e [u8] {
        wrapping::context(envelope, self.args.context.as_deref())
    }
}

impl Operation for EncryptMany<'_> {
    fn direction(&self) -> Direction {
        Direction::Encrypt
    }

    fn compare(&self, pair: &Pair<'_>) -> Result<Existing> {
        if self.args.key.is_some() {
            return Ok(pair.encrypted(self.engine, self.key()?.0, self.context(None)));
        }
        // The existing output has a key and recipients that are unknown here, so only the type of the envelope and
        // the length of the output are compared.
        let Ok(Some(envelope)) = Envelope::read_file(pair.output) else {
            return Ok(Existing::Unknown("was not encrypted to recipients or with a passphrase"));
        };
        let has_passphrase = wrapping::header(&envelope).map(|header| header.is_passphrase());
        match (self.args.uses_passphrase(), has_passphrase.ok()) {
            (true, None | Some(false)) => {
                return Ok(Existing::Unknown("was encrypted to recipients, not with a passphrase"));
            }
            (false, None | Some(true)) => {
                return Ok(Existing::Unknown("was encrypted with a passphrase, not to recipients"));
            }
            _ => {}
        }
        let is_whole = ciphertext_len(pair.input_len)
            .is_ok_and(|message| pair.output_len == envelope.as_bytes().len() as u64 + message);
        Ok(pair.own(is_whole))
    }

    fn is_own(&self, output: &File) -> bool {
        let opens = |key| Reader::open(self.engine, key, self.context(None), Tail::new(output, 0)).is_ok();
        self.args.key.is_some() && self.key().is_ok_and(|(key, _)| opens(key))
    }

    fn process(
        &self,
        input: &File,
        output: &mut (dyn Write + Send),
        options: lockstep::Options<'_>,
    ) -> Result<u64> {
        let (key, envelope) = self.key()?;
        envelope.iter().try_for_each(|envelope| envelope.write(output))?;
        let context = self.context(envelope);
        let summary = file::encrypt_open_file(self.engine, key, context, input, output, options)?;
        Ok(summary.plaintext_len)
    }
}
