//! The footer of the encrypted file.

use std::io::Write;

use lockstep::ReadAt;
use lockstep::cobblestone::random;

use super::policy::{Policy, Treatment};
use super::{Column, Writer};
use crate::aad::{Module, Place};
use crate::error::{Result, ensure, missing};
use crate::format::{
    Algorithm, MAGIC, MAGIC_ENCRYPTED, MAX_FOOTER, algorithm, chunk, column, column_crypto, column_key, file,
    file_crypto, footer_too_long,
};
use crate::modules::{Kind, NONCE, Protection, seal, sign};
use crate::thrift::{self, Struct, Value};

impl<S: ReadAt, W: Write> Writer<'_, S, W> {
    /// Writes the footer, its length and the magic bytes.
    pub(super) fn end(&mut self, mut footer: Struct, policy: &Policy, file_unique: &[u8]) -> Result<()> {
        let is_plain = policy.plaintext_footer;
        self.rewrite_chunks(&mut footer, |writer, chunk, column| {
            writer.protect_metadata(chunk, column, is_plain)
        })?;
        let (prefix, is_stored) = (policy.aad_prefix.as_deref(), policy.stores_aad_prefix);
        let mut fields = Struct::default();
        fields.set_binary(algorithm::AAD_PREFIX, prefix.filter(|_| is_stored));
        fields.set_binary(algorithm::AAD_FILE_UNIQUE, Some(file_unique));
        if prefix.is_some() && !is_stored {
            fields.set(algorithm::SUPPLY_AAD_PREFIX, Value::TRUE);
        }
        let mut union = Struct::default();
        let id = match policy.algorithm {
            Algorithm::GcmV1 => algorithm::AES_GCM_V1,
            Algorithm::GcmCtrV1 => algorithm::AES_GCM_CTR_V1,
        };
        union.set(id, thrift::structure(&fields));
        let union = thrift::structure(&union);
        let metadata = policy.footer_key_metadata.as_deref();
        let (key, aad) = (&self.plan.footer_key, self.aad.of(Module::Footer, Place::default()));
        let start = self.at;
        if is_plain {
            footer.set(file::ENCRYPTION_ALGORITHM, union);
            footer.set_binary(file::FOOTER_SIGNING_KEY_METADATA, metadata);
            footer.check()?;
            let bytes = footer.encode();
            let mut nonce = [0; NONCE];
            random(&mut nonce)?;
            let tag = sign(self.engine, key, &aad, &nonce, &bytes)?;
            self.put(&bytes)?;
            self.put(&nonce)?;
            self.put(&tag)?;
        } else {
            let mut crypto = Struct::default();
            crypto.set(file_crypto::ENCRYPTION_ALGORITHM, union);
            crypto.set_binary(file_crypto::KEY_METADATA, metadata);
            let mut bytes = crypto.encode();
            let plain = footer.encode();
            seal(self.engine, vec![(Protection { key, kind: Kind::Gcm, aad }, &plain)], &mut bytes)?;
            self.put(&bytes)?;
        }
        let len = self.at - start;
        ensure(len <= MAX_FOOTER, footer_too_long)?;
        self.put(&(len as u32).to_le_bytes())?;
        self.put(if is_plain { MAGIC } else { MAGIC_ENCRYPTED })
    }

    /// Adds the crypto metadata of a column, and encrypts its metadata if the footer does not protect them with the same key.
    fn protect_metadata(&self, chunk: &mut Struct, column: Column<'_>, has_plain_footer: bool) -> Result<()> {
        let Treatment { leaf, key: Some(key), own } = column.treatment else { return Ok(()) };
        let mut fields = Struct::default();
        let id = match own {
            None => column_crypto::WITH_FOOTER_KEY,
            Some(own) => {
                fields.set(column_key::PATH_IN_SCHEMA, thrift::strings(&leaf.names));
                fields.set_binary(column_key::KEY_METADATA, own.key_metadata.as_deref());
                column_crypto::WITH_COLUMN_KEY
            }
        };
        let mut crypto = Struct::default();
        crypto.set(id, thrift::structure(&fields));
        chunk.set(chunk::CRYPTO_METADATA, thrift::structure(&crypto));
        if own.is_none() && !has_plain_footer {
            return Ok(());
        }
        let Some(mut meta) = chunk.structure(chunk::META_DATA)? else { return Ok(()) };
        // The path is required, because readers without the key find the column by it.
        let missing_path_error = || missing(&format!("the path in the metadata of column {}", leaf.path));
        ensure(meta.has(column::PATH_IN_SCHEMA), missing_path_error)?;
        let aad = self.aad.of(Module::ColumnMetaData, column.place);
        let mut sealed = Vec::new();
        seal(self.engine, vec![(Protection { key, kind: Kind::Gcm, aad }, &meta.encode())], &mut sealed)?;
        chunk.set(chunk::ENCRYPTED_COLUMN_METADATA, Value::binary(&sealed));
        chunk.remove(chunk::META_DATA);
        chunk.keep_only(|id| chunk::VISIBLE.contains(&id));
        if has_plain_footer {
            meta.keep_only(column::is_visible);
            chunk.set_structure(chunk::META_DATA, &meta)?;
        }
        Ok(())
    }
}
