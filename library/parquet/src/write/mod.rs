//! Encryption of a plain file: its pages, indexes and filters are encrypted as they are, without decompression.

mod footer;
mod pages;
mod parts;
mod policy;

use std::io::Write;

use lockstep::cobblestone::random;
use lockstep::{Engine, ReadAt};

use crate::aad::{FILE_UNIQUE, FileAad, Module, Place};
use crate::columns::leaves;
use crate::error::{Error, Result, ensure, malformed, missing, unsupported};
use crate::format::{
    COLUMNS, MAGIC, MAGIC_ENCRYPTED, ROW_GROUPS, check_columns, check_in_file, chunk, column, file, row_group,
};
use crate::modules::Kind;
use crate::read::{End, read_end};
use crate::thrift::{Struct, Value};
use pages::Placement;
use policy::{Plan, Treatment};

pub use policy::{ColumnKey, Policy};

/// Encrypts a plain Parquet file by a policy. The output is complete only if the call succeeds: write it to an
/// [`lockstep::OutputFile`], and commit the file afterwards.
///
/// # Errors
/// [`Error::UnknownColumn`], [`Error::Contradiction`], [`Error::KeyLength`] and [`Error::Argument`] for a policy that cannot be
/// followed, [`Error::AlreadyEncrypted`], [`Error::Malformed`] and [`Error::Unsupported`] for the input; errors of reading, writing
/// and devices.
pub fn encrypt(engine: &Engine, source: &impl ReadAt, output: impl Write, policy: &Policy) -> Result<()> {
    let End { is_encrypted, start, footer: bytes } = read_end(source)?;
    ensure(!is_encrypted, || Error::AlreadyEncrypted)?;
    // A signature may follow the footer in `bytes`, so `read_only` is used, which permits further bytes.
    let signed = Struct::read_only(&bytes, |id| id == file::ENCRYPTION_ALGORITHM)?;
    let is_signed = signed.is_some_and(|(footer, _)| footer.has(file::ENCRYPTION_ALGORITHM));
    ensure(!is_signed, || Error::AlreadyEncrypted)?;
    let mut footer = Struct::read_whole(&bytes, "footer")?;
    drop(bytes);
    let plan = &policy::plan(policy, leaves(&footer)?)?;
    let prefix = policy.aad_prefix.as_deref();
    let what = "the AAD prefix is empty: give none or one that identifies the file";
    ensure(!prefix.is_some_and(<[u8]>::is_empty), || Error::Argument(what.into()))?;
    let mut file_unique = [0; FILE_UNIQUE];
    random(&mut file_unique)?;
    let aad = FileAad::new(prefix.unwrap_or_default(), &file_unique);
    let pages = Kind::of(policy.algorithm, Module::DataPage);
    let mut writer = Writer { engine, source, output, plan, at: 0, limit: start, used: 0, aad, pages };
    writer.put(if policy.plaintext_footer { MAGIC } else { MAGIC_ENCRYPTED })?;
    let placements = writer.row_groups(&mut footer)?;
    writer.filters_and_indexes(&mut footer, &placements)?;
    writer.end(footer, policy, &file_unique)?;
    Ok(writer.output.flush().map_err(lockstep::Error::Write)?)
}

struct Writer<'a, S, W> {
    engine: &'a Engine,
    source: &'a S,
    output: W,
    plan: &'a Plan<'a>,
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

/// A column chunk: the treatment of its column, and its place.
#[derive(Clone, Copy)]
struct Column<'a> {
    treatment: &'a Treatment<'a>,
    place: Place,
}

impl<'a, S: ReadAt, W: Write> Writer<'a, S, W> {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.output.write_all(bytes).map_err(lockstep::Error::Write)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Writes the pages of all row groups; returns the placement of the pages of each column chunk.
    fn row_groups(&mut self, footer: &mut Struct) -> Result<Vec<Placement>> {
        let (plan, mut placements) = (self.plan, Vec::new());
        footer.rewrite(file::ROW_GROUPS, ROW_GROUPS, |index, group| {
            check_columns(group, plan.treatments.len())?;
            let start = self.at as i64;
            group.rewrite(row_group::COLUMNS, COLUMNS, |number, chunk| {
                let place = Place::new(index as i64, number)
                    .ok_or_else(|| unsupported("more than 32768 row groups or columns"))?;
                placements
                    .push(self.column_chunk(chunk, Column { treatment: &plan.treatments[number], place })?);
                Ok(())
            })?;
            group.set(row_group::FILE_OFFSET, Value::i64(start));
            group.set(row_group::TOTAL_COMPRESSED_SIZE, Value::i64(self.at as i64 - start));
            group.set(row_group::ORDINAL, Value::i16(index as i16));
            Ok(())
        })?;
        Ok(placements)
    }

    fn column_chunk(&mut self, chunk: &mut Struct, column: Column<'a>) -> Result<Placement> {
        let leaf = &column.treatment.leaf;
        check_in_file(chunk, &leaf.path)?;
        let is_encrypted = chunk.has(chunk::CRYPTO_METADATA) || chunk.has(chunk::ENCRYPTED_COLUMN_METADATA);
        ensure(!is_encrypted, || Error::AlreadyEncrypted)?;
        let mut meta =
            chunk.structure(chunk::META_DATA)?.ok_or_else(|| missing("the metadata of a column"))?;
        // The policy is applied by the position of a column in the schema, but some readers find columns by this path. So both must
        // describe the same column.
        if meta.has(column::PATH_IN_SCHEMA) && !meta.has_strings(column::PATH_IN_SCHEMA, &leaf.names) {
            let what = format!("the column chunk in the place of column {} is of another column", leaf.path);
            return Err(malformed(what));
        }
        let placement = self.pages(&mut meta, column)?;
        chunk.set_structure(chunk::META_DATA, &meta)?;
        chunk.set(chunk::FILE_OFFSET, Value::i64(0));
        Ok(placement)
    }

    /// Changes the column chunks of all row groups. The number of chunks in each row group was checked before.
    fn rewrite_chunks(
        &mut self,
        footer: &mut Struct,
        mut change: impl FnMut(&mut Self, &mut Struct, Column<'a>) -> Result<()>,
    ) -> Result<()> {
        let plan = self.plan;
        footer.rewrite(file::ROW_GROUPS, ROW_GROUPS, |index, group| {
            group.rewrite(row_group::COLUMNS, COLUMNS, |number, chunk| {
                let place = Place { row_group: index as i16, column: number as i16, page: 0 };
                change(self, chunk, Column { treatment: &plan.treatments[number], place })
            })
        })
    }
}
