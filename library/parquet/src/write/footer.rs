//! The footer of the encrypted file.

use std::io::Write;

use lockstep::ReadAt;

use super::policy::{Plan, Policy, Protection, Treatment};
use super::{Writer, rewrite_chunks};
use crate::aad::{Module, Place};
use crate::error::Result;
use crate::format::{
    Encryption, MAGIC, MAGIC_ENCRYPTED, MAX_FOOTER, chunk, column, column_crypto, column_key, file,
    file_crypto, footer_too_long,
};
use crate::modules::{Kind, NONCE, Sealing, fill_random, seal, sign};
use crate::thrift::{self, Struct, Value, missing};

impl<S: ReadAt, W: Write> Writer<'_, S, W> {
    /// Writes the footer and what follows it.
    pub(super) fn end(
        &mut self,
        mut footer: Struct,
        plan: &Plan,
        policy: &Policy,
        encryption: &Encryption,
    ) -> Result<()> {
        rewrite_chunks(&mut footer, |chunk, place| {
            let treatment = &plan.treatments[place.column as usize];
            self.protect_metadata(chunk, treatment, place, policy.plaintext_footer)
        })?;
        let union = thrift::structure(&encryption.to_struct());
        let metadata = policy.footer_key_metadata.clone().map(Value::Binary);
        let start = self.at;
        if policy.plaintext_footer {
            footer.set(file::ENCRYPTION_ALGORITHM, union);
            if let Some(metadata) = metadata {
                footer.set(file::FOOTER_SIGNING_KEY_METADATA, metadata);
            }
            footer.check()?;
            let bytes = footer.encode();
            let mut nonce = [0; NONCE];
            fill_random(&mut nonce)?;
            let tag = sign(self.engine, &plan.footer_key, &self.aad.footer(), &nonce, &bytes)?;
            self.put(&bytes)?;
            self.put(&nonce)?;
            self.put(&tag)?;
        } else {
            let mut crypto = Struct::new();
            crypto.set(file_crypto::ENCRYPTION_ALGORITHM, union);
            if let Some(metadata) = metadata {
                crypto.set(file_crypto::KEY_METADATA, metadata);
            }
            let (plain, mut bytes) = (footer.encode(), crypto.encode());
            let (key, aad) = (&plan.footer_key, self.aad.footer());
            seal(self.engine, &[Sealing { key, kind: Kind::Gcm, aad, plain: &plain }], &mut bytes)?;
            self.put(&bytes)?;
        }
        let len = self.at - start;
        let len = u32::try_from(len).ok().filter(|_| len <= MAX_FOOTER);
        let len = len.ok_or_else(footer_too_long)?;
        self.put(&len.to_le_bytes())?;
        self.put(if policy.plaintext_footer { MAGIC } else { MAGIC_ENCRYPTED })
    }

    /// Adds the crypto metadata of a column, and encrypts its metadata if the footer does not protect them with the same key.
    fn protect_metadata(
        &self,
        chunk: &mut Struct,
        treatment: &Treatment,
        place: Place,
        has_plain_footer: bool,
    ) -> Result<()> {
        let mut crypto = Struct::new();
        let key = match &treatment.protection {
            Protection::Plain => return Ok(()),
            Protection::FooterKey(key) => {
                crypto.set(column_crypto::WITH_FOOTER_KEY, thrift::structure(&Struct::new()));
                key
            }
            Protection::ColumnKey(key, metadata) => {
                let mut fields = Struct::new();
                fields.set(
                    column_key::PATH_IN_SCHEMA,
                    thrift::strings(treatment.names.iter().map(String::as_str)),
                );
                if let Some(metadata) = metadata {
                    fields.set(column_key::KEY_METADATA, Value::Binary(metadata.to_vec()));
                }
                crypto.set(column_crypto::WITH_COLUMN_KEY, thrift::structure(&fields));
                key
            }
        };
        let has_own_key = matches!(treatment.protection, Protection::ColumnKey(..));
        chunk.set(chunk::CRYPTO_METADATA, thrift::structure(&crypto));
        if !has_own_key && !has_plain_footer {
            return Ok(());
        }
        let Some(mut meta) = chunk.structure(chunk::META_DATA)? else { return Ok(()) };
        if !meta.has(column::PATH_IN_SCHEMA) {
            // A reader without the key finds the column by its path.
            return Err(missing(&format!("the path in the metadata of column {}", treatment.column)));
        }
        let aad = self.aad.column(Module::ColumnMetaData, place);
        let mut sealed = Vec::new();
        seal(self.engine, &[Sealing { key, kind: Kind::Gcm, aad, plain: &meta.encode() }], &mut sealed)?;
        chunk.set(chunk::ENCRYPTED_COLUMN_METADATA, Value::Binary(sealed));
        chunk.remove(chunk::META_DATA);
        chunk.keep_only(&chunk::VISIBLE);
        if has_plain_footer {
            meta.keep_only(&column::VISIBLE);
            chunk.set_structure(chunk::META_DATA, &meta)?;
        }
        Ok(())
    }
}
