//! `lockstep encrypt -O`: each of many files to a file of its own.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;

use lockstep::cobblestone::Tail;
use lockstep::{Engine, Envelope, FileKey, OutputFile, Reader, ciphertext_len, file};

use crate::error::Result;
use crate::input::Input;
use crate::tree::{Existing, Operation, names};

/// Encryption of every file with one key. With recipients or a passphrase, all files of a call have the same envelope: so
/// a passphrase or a hardware key is needed once to decrypt all of them.
pub(super) struct EncryptMany<'a> {
    pub(super) engine: &'a Engine,
    pub(super) key: FileKey,
    pub(super) envelope: Option<Envelope>,
    pub(super) context: &'a str,
}

impl EncryptMany<'_> {
    fn context(&self) -> &[u8] {
        self.envelope.as_ref().map_or(self.context.as_bytes(), Envelope::as_bytes)
    }
}

impl Operation for EncryptMany<'_> {
    fn done(&self) -> &'static str {
        "encrypted"
    }

    fn output_name(&self, input: &OsStr) -> Option<OsString> {
        Some(names::encrypted(input))
    }

    fn compare(&self, input: &Input, output: &File, is_older: bool) -> Result<Existing> {
        let plaintext_len = input.len().unwrap_or(0);
        let is_whole = if self.envelope.is_some() {
            // Whether this call's recipients can open it is not known: the file has a key of its own.
            let Ok(Some(envelope)) = Envelope::read_file(output) else {
                return Ok(Existing::Unknown("was not encrypted to recipients or with a passphrase"));
            };
            let len = output.metadata().map_err(lockstep::Error::Read)?.len();
            ciphertext_len(plaintext_len)
                .is_ok_and(|message| len == envelope.as_bytes().len() as u64 + message)
        } else {
            // Verifies the key, the context and the last chunk.
            let Ok(message) = Reader::open(self.engine, &self.key, self.context(), Tail::new(output, 0))
            else {
                return Ok(Existing::Unknown(
                    "is not a whole file that was encrypted with this key and context",
                ));
            };
            message.len() == plaintext_len
        };
        Ok(if is_whole && !is_older { Existing::UpToDate } else { Existing::Outdated })
    }

    fn process(
        &self,
        input: &mut Input,
        output: &mut OutputFile,
        options: lockstep::Options<'_>,
    ) -> Result<u64> {
        if let Some(envelope) = &self.envelope {
            output.write_all(envelope.as_bytes()).map_err(lockstep::Error::Write)?;
        }
        let context = self.context();
        let summary =
            file::encrypt_open_file(self.engine, &self.key, context, input.file(), output, options)?;
        Ok(summary.plaintext_len)
    }
}
