//! The footer of the encrypted file.

use std::io::Write;

use lockstep::ReadAt;

use super::Writer;
use super::policy::{Plan, Policy, Protection, Treatment};
use crate::aad::{Module, Place};
use crate::error::{Error, Result};
use crate::format::{
    Encryption, MAGIC, MAGIC_ENCRYPTED, MAX_FOOTER, chunk, column, column_crypto, column_key, file,
    file_crypto, row_group,
};
use crate::modules::{self, Kind, NONCE, Sealing, seal};
use crate::thrift::{self, Struct, Value};

impl<S: ReadAt, W: Write> Writer<'_, S, W> {
    /// Writes the footer and what follows it.
    pub(super) fn end(
        &mut self,
        mut footer: Struct,
        plan: &Plan,
        policy: &Policy,
        encryption: &Encryption,
    ) -> Result<()> {
        for (index, group) in footer.structs_mut(file::ROW_GROUPS).iter_mut().enumerate() {
            for (number, chunk) in group.structs_mut(row_group::COLUMNS).iter_mut().enumerate() {
                let place = Place { row_group: index as i16, column: number as i16 };
                self.protect_metadata(chunk, &plan.treatments[number], place, policy.plaintext_footer)?;
            }
        }
        let union = Value::Struct(encryption.to_struct());
        let metadata = policy.footer_key_metadata.clone().map(Value::Binary);
        let start = self.at;
        if policy.plaintext_footer {
            footer.set(file::ENCRYPTION_ALGORITHM, union);
            if let Some(metadata) = metadata {
                footer.set(file::FOOTER_SIGNING_KEY_METADATA, metadata);
            }
            let bytes = footer.encode();
            let mut nonce = [0; NONCE];
            let random = |error: getrandom::Error| lockstep::Error::Random { reason: error.to_string() };
            getrandom::fill(&mut nonce).map_err(random)?;
            let tag = modules::sign(self.engine, &plan.footer_key, &self.aad.footer(), &nonce, &bytes)?;
            self.put(&bytes)?;
            self.put(&nonce)?;
            self.put(&tag)?;
        } else {
            let mut crypto = Struct::new();
            crypto.set(file_crypto::ENCRYPTION_ALGORITHM, union);
            if let Some(metadata) = metadata {
                crypto.set(file_crypto::KEY_METADATA, metadata);
            }
            let plain = footer.encode();
            let mut bytes = crypto.encode();
            let aad = self.aad.footer();
            seal(
                self.engine,
                &[Sealing { key: &plan.footer_key, kind: Kind::Gcm, aad, plain: &plain }],
                &mut bytes,
            )?;
            self.put(&bytes)?;
        }
        let len = self.at - start;
        let len = u32::try_from(len).ok().filter(|_| len <= MAX_FOOTER);
        let len = len.ok_or_else(|| Error::Unsupported { what: "a footer of more than 256 MiB".into() })?;
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
                crypto.set(column_crypto::WITH_FOOTER_KEY, Value::Struct(Struct::new()));
                key
            }
            Protection::ColumnKey(key, metadata) => {
                let mut fields = Struct::new();
                fields.set(
                    column_key::PATH_IN_SCHEMA,
                    thrift::strings(treatment.names.iter().map(String::as_str)),
                );
                if let Some(metadata) = metadata {
                    fields.set(column_key::KEY_METADATA, Value::Binary(metadata.clone()));
                }
                crypto.set(column_crypto::WITH_COLUMN_KEY, Value::Struct(fields));
                key
            }
        };
        let has_own_key = matches!(treatment.protection, Protection::ColumnKey(..));
        chunk.set(chunk::CRYPTO_METADATA, Value::Struct(crypto));
        if !has_own_key && !has_plain_footer {
            return Ok(());
        }
        let Some(Value::Struct(mut meta)) = chunk.remove(chunk::META_DATA) else { return Ok(()) };
        let aad = self.aad.column(Module::ColumnMetaData, place);
        let mut sealed = Vec::new();
        seal(self.engine, &[Sealing { key, kind: Kind::Gcm, aad, plain: &meta.encode() }], &mut sealed)?;
        chunk.set(chunk::ENCRYPTED_COLUMN_METADATA, Value::Binary(sealed));
        chunk.keep_only(&chunk::VISIBLE);
        if has_plain_footer {
            meta.keep_only(&column::VISIBLE);
            chunk.set(chunk::META_DATA, Value::Struct(meta));
        }
        Ok(())
    }
}
