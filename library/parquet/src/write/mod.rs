//! Encryption of a plain file: its pages, indexes and filters are encrypted as they are, without decompression.

mod footer;
mod pages;
mod parts;
mod policy;

use std::io::Write;

use lockstep::{Engine, ReadAt};

use crate::aad::{FILE_UNIQUE, FileAad, Place};
use crate::columns::leaves;
use crate::error::{Error, Result, aad_prefix, malformed, write};
use crate::format::{
    Encryption, MAGIC, MAGIC_ENCRYPTED, check_columns, check_in_file, check_row_groups, chunk, column, file,
    row_group,
};
use crate::modules::{Kind, fill_random};
use crate::read::{End, read_end};
use crate::thrift::{Struct, Value, missing};
use pages::Placement;
use policy::{Plan, Treatment};

pub use policy::{ColumnKey, Policy};

/// Encrypts a plain Parquet file by a policy. The output is complete only if the call succeeds: write it to an
/// [`lockstep::OutputFile`], and commit the file afterwards.
///
/// # Errors
/// [`Error::UnknownColumn`], [`Error::Contradiction`], [`Error::KeyLength`] and [`Error::AadPrefix`] for a policy that cannot be
/// followed, [`Error::AlreadyEncrypted`], [`Error::Malformed`] and [`Error::Unsupported`] for the input; errors of reading, writing
/// and devices.
pub fn encrypt(engine: &Engine, source: &impl ReadAt, output: impl Write, policy: &Policy) -> Result<()> {
    let End { is_encrypted, start, footer: bytes } = read_end(source)?;
    if is_encrypted {
        return Err(Error::AlreadyEncrypted);
    }
    // A signature may follow the footer.
    if Struct::read_only(&bytes, &[file::ENCRYPTION_ALGORITHM])?
        .is_some_and(|(footer, _)| footer.has(file::ENCRYPTION_ALGORITHM))
    {
        return Err(Error::AlreadyEncrypted);
    }
    let mut footer = Struct::read_whole(&bytes, "footer")?;
    drop(bytes);
    let plan = policy::plan(policy, &leaves(&footer)?)?;
    let mut file_unique = [0; FILE_UNIQUE];
    fill_random(&mut file_unique)?;
    let encryption = encryption(policy, file_unique)?;
    let aad = FileAad::new(policy.aad_prefix.as_deref().unwrap_or_default(), &file_unique);
    let pages = Kind::of_pages(policy.algorithm);
    let mut writer = Writer { engine, source, output, at: 0, limit: start, used: 0, aad, pages };
    writer.put(if policy.plaintext_footer { MAGIC } else { MAGIC_ENCRYPTED })?;
    let placements = writer.row_groups(&mut footer, &plan)?;
    writer.indexes(&mut footer, &plan, &placements)?;
    writer.end(footer, &plan, policy, &encryption)?;
    writer.output.flush().map_err(write)
}

fn encryption(policy: &Policy, file_unique: [u8; FILE_UNIQUE]) -> Result<Encryption> {
    if policy.aad_prefix.as_ref().is_some_and(Vec::is_empty) {
        return Err(aad_prefix("the AAD prefix is empty: give none or one that identifies the file"));
    }
    let (aad_prefix, needs_prefix) = match (&policy.aad_prefix, policy.stores_aad_prefix) {
        (None, _) => (None, false),
        (Some(prefix), true) => (Some(prefix.clone()), false),
        (Some(_), false) => (None, true),
    };
    Ok(Encryption { algorithm: policy.algorithm, aad_prefix, file_unique: Some(file_unique), needs_prefix })
}

struct Writer<'a, S, W> {
    engine: &'a Engine,
    source: &'a S,
    output: W,
    /// The offset in the output.
    at: u64,
    /// The offset of the footer in the input.
    limit: u64,
    /// Bytes of the input that were used. Their number is limited, so that a small file that refers to the same bytes
    /// repeatedly does not cause a large output.
    used: u64,
    aad: FileAad,
    /// The mode of pages.
    pages: Kind,
}

impl<S: ReadAt, W: Write> Writer<'_, S, W> {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.output.write_all(bytes).map_err(write)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Writes the pages of all row groups; returns where the pages are, for each row group and column.
    fn row_groups(&mut self, footer: &mut Struct, plan: &Plan) -> Result<Vec<Vec<Placement>>> {
        check_row_groups(footer)?;
        let mut placements = Vec::new();
        footer.rewrite(file::ROW_GROUPS, |index, group| {
            check_columns(group, plan.treatments.len())?;
            let (start, mut size) = (self.at, 0);
            let mut of_group = Vec::with_capacity(plan.treatments.len());
            group.rewrite(row_group::COLUMNS, |number, chunk| {
                let place = Place::new(index as i64, number);
                let what = "more than 32768 row groups or columns";
                let place = place.ok_or_else(|| Error::Unsupported { what: what.into() })?;
                let (placement, len) = self.column_chunk(chunk, &plan.treatments[number], place)?;
                of_group.push(placement);
                size += len;
                Ok(())
            })?;
            group.set(row_group::FILE_OFFSET, Value::I64(start as i64));
            group.set(row_group::TOTAL_COMPRESSED_SIZE, Value::I64(size as i64));
            group.set(row_group::ORDINAL, Value::I16(index as i16));
            placements.push(of_group);
            Ok(())
        })?;
        Ok(placements)
    }

    fn column_chunk(
        &mut self,
        chunk: &mut Struct,
        treatment: &Treatment,
        place: Place,
    ) -> Result<(Placement, u64)> {
        check_in_file(chunk, &treatment.column)?;
        if chunk.has(chunk::CRYPTO_METADATA) || chunk.has(chunk::ENCRYPTED_COLUMN_METADATA) {
            return Err(Error::AlreadyEncrypted);
        }
        let mut meta =
            chunk.structure(chunk::META_DATA)?.ok_or_else(|| missing("the metadata of a column"))?;
        // The policy is applied by the position of a column in the schema, but some readers find columns by this path.
        if meta.has(column::PATH_IN_SCHEMA) && !meta.has_strings(column::PATH_IN_SCHEMA, &treatment.names) {
            let what =
                format!("the column chunk in the place of column {} is of another column", treatment.column);
            return Err(malformed(what));
        }
        let start = self.at;
        let placement = self.pages(&mut meta, treatment, place)?;
        chunk.set_structure(chunk::META_DATA, &meta)?;
        chunk.set(chunk::FILE_OFFSET, Value::I64(0));
        Ok((placement, self.at - start))
    }
}

/// Changes the column chunks of all row groups, whose ordinals were checked before.
fn rewrite_chunks(
    footer: &mut Struct,
    mut change: impl FnMut(&mut Struct, Place) -> Result<()>,
) -> Result<()> {
    footer.rewrite(file::ROW_GROUPS, |index, group| {
        group.rewrite(row_group::COLUMNS, |number, chunk| {
            change(chunk, Place { row_group: index as i16, column: number as i16 })
        })
    })
}
