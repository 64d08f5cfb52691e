//! The layout of the view, and its footer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lockstep::hazmat::Key;
use lockstep::{Engine, ReadAt};

use super::chunk::Chunk;
use super::footer::Opened;
use crate::aad::{Module, Place};
use crate::columns::{Leaf, leaves, with_values};
use crate::error::{Error, Result, ensure, malformed, missing, read};
use crate::format::{
    COLUMNS, MAGIC, Part, ROW_GROUPS, check_columns, check_in_file, chunk, chunk_range, column,
    column_crypto, column_key, dictionary_offset, file, outside, row_group,
};
use crate::keys::{KeySource, module_key};
use crate::modules::{Kind, LENGTH, module_len, open_one};
use crate::thrift::{self, Struct, Value};

/// A range of the view.
pub(super) struct Region {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) content: Content,
}

/// The content of a range of the view.
pub(super) enum Content {
    /// The magic bytes or the footer.
    Bytes(Vec<u8>),
    /// The bytes of the file: a column that is not encrypted.
    Plain,
    Chunk(Arc<Chunk>),
    /// Consecutive modules of a column chunk: an index or a Bloom filter.
    Modules(Arc<Chunk>, &'static [Module]),
    /// A column for which there is no key: its description for the error.
    Hidden(Box<str>),
}

/// Number of bytes in the view for each column that has no key and whose place is not known, and number of bytes between these
/// columns and all other columns. Because of this gap, a reader that merges neighbouring reads does not read these columns as well.
const HIDDEN: u64 = 64;
const HIDDEN_GAP: u64 = 64 << 10;

/// Plans the view of a file: changes the footer to the footer of the view, and returns the regions of the view.
pub(super) fn plan(
    engine: &Engine,
    source: &impl ReadAt,
    keys: &dyn KeySource,
    opened: &mut Opened,
) -> Result<Vec<Region>> {
    let mut footer = std::mem::take(&mut opened.footer);
    let expected = keys.expected_columns();
    let expected: Vec<(&str, Arc<str>)> = expected.iter().map(|name| (&**name, (**name).into())).collect();
    let columns = with_values(leaves(&footer)?, &expected)?.collect::<Result<Vec<_>>>()?;
    // arrow-rs (60.1) does not encrypt the Bloom filters of encrypted columns, against the format.
    let has_plain_filters =
        footer.binary(file::CREATED_BY).is_some_and(|writer| writer.starts_with(b"parquet-rs "));
    let (found, ordinals, regions, hidden) = Default::default();
    let mut planner =
        Planner { engine, source, keys, opened, found, ordinals, has_plain_filters, regions, hidden };
    footer.rewrite(file::ROW_GROUPS, ROW_GROUPS, |index, group| planner.group(index, group, &columns))?;
    footer.remove(file::ENCRYPTION_ALGORITHM);
    footer.remove(file::FOOTER_SIGNING_KEY_METADATA);
    let Planner { mut regions, hidden, .. } = planner;
    let mut add = |start, bytes: Vec<u8>| {
        regions.push(Region { start, end: start + bytes.len() as u64, content: Content::Bytes(bytes) });
    };
    add(0, MAGIC.to_vec());
    let mut bytes = footer.encode();
    let len = u32::try_from(bytes.len()).map_err(|_| malformed("the footer is too long"))?;
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.extend_from_slice(MAGIC);
    add(if hidden > 0 { opened.start + 2 * HIDDEN_GAP + hidden * HIDDEN } else { opened.start }, bytes);
    regions.sort_by_key(|region| region.start);
    let is_apart = regions.is_sorted_by(|first, second| first.end <= second.start);
    ensure(is_apart, || malformed("parts of the file overlap"))?;
    Ok(regions)
}

/// A column, and the name for which the caller has given a key. If there is such a name, the column must be encrypted with this
/// key.
type Column = (Leaf, Option<Arc<str>>);

/// The key that a column chunk is encrypted with.
enum Crypto {
    FooterKey,
    /// A key of the column, and the key metadata.
    ColumnKey(Option<Vec<u8>>),
}

/// The name of a column or a group, and the key metadata.
type KeyName = (Arc<str>, Option<Vec<u8>>);

struct Planner<'a, S> {
    engine: &'a Engine,
    source: &'a S,
    keys: &'a dyn KeySource,
    opened: &'a Opened,
    /// The keys of columns found so far, by name and key metadata.
    found: BTreeMap<KeyName, Option<Arc<Key>>>,
    /// The ordinals of the row groups that have been processed so far.
    ordinals: BTreeSet<i64>,
    /// True if the Bloom filters of encrypted columns may be plain.
    has_plain_filters: bool,
    regions: Vec<Region>,
    /// The number of columns without a key and without known place.
    hidden: u64,
}

impl<S: ReadAt> Planner<'_, S> {
    fn group(&mut self, index: usize, group: &mut Struct, columns: &[Column]) -> Result<()> {
        let ordinal = group.int(row_group::ORDINAL).unwrap_or(index as i64);
        // If two row groups had the same ordinal, their modules could have the same associated data.
        let is_distinct = self.ordinals.insert(ordinal) || self.opened.aad.is_missing();
        ensure(is_distinct, || malformed("two row groups have the same ordinal"))?;
        let rows = group.int(row_group::NUM_ROWS).unwrap_or(0);
        check_columns(group, columns.len())?;
        group.rewrite(row_group::COLUMNS, COLUMNS, |number, chunk| {
            let (leaf, expected) = &columns[number];
            check_in_file(chunk, &leaf.path)?;
            let crypto = self.crypto(chunk, leaf)?;
            chunk.remove(chunk::CRYPTO_METADATA);
            let Some(crypto) = crypto else {
                return match expected {
                    Some(_) => Err(Error::PlainColumn((*leaf.path).into())),
                    None => self.plain_chunk(chunk, leaf),
                };
            };
            let place = Place::new(ordinal, number);
            // Without associated data, the ordinals are not used.
            let is_valid = place.is_some() || self.opened.aad.is_missing();
            ensure(is_valid, || malformed("a row group or column has no valid ordinal"))?;
            let place = place.unwrap_or_default();
            match self.key(&columns[number], &crypto)? {
                Some(key) => self.encrypted_chunk(chunk, leaf, &crypto, key, place),
                None => self.hidden_chunk(chunk, leaf, &crypto, rows),
            }
        })
    }

    /// The crypto metadata of a column chunk; None if the column is not encrypted.
    fn crypto(&self, chunk: &Struct, leaf: &Leaf) -> Result<Option<Crypto>> {
        let Some(crypto) = chunk.structure(chunk::CRYPTO_METADATA)? else {
            let is_absent = !chunk.has(chunk::CRYPTO_METADATA);
            ensure(is_absent, || malformed("the crypto metadata of a column is invalid"))?;
            // DuckDB encrypts all columns with the footer key, but the file does not state this.
            return Ok(self.opened.aad.is_missing().then_some(Crypto::FooterKey));
        };
        if crypto.has(column_crypto::WITH_FOOTER_KEY) {
            return Ok(Some(Crypto::FooterKey));
        }
        let with_key = crypto.structure(column_crypto::WITH_COLUMN_KEY)?;
        let with_key =
            with_key.ok_or_else(|| missing(&format!("the crypto metadata of column {}", leaf.path)))?;
        let is_same = with_key.has_strings(column_key::PATH_IN_SCHEMA, &leaf.names);
        let what = || format!("the crypto metadata of column {} names another column", leaf.path);
        ensure(is_same, || malformed(what()))?;
        Ok(Some(Crypto::ColumnKey(with_key.binary(column_key::KEY_METADATA).map(<[u8]>::to_vec))))
    }

    fn plain_chunk(&mut self, chunk: &mut Struct, leaf: &Leaf) -> Result<()> {
        let mut meta =
            chunk.structure(chunk::META_DATA)?.ok_or_else(|| missing("the metadata of a column"))?;
        // Some readers find columns by this path. Without this check, an attacker could give a plain column the path of a column
        // with a key.
        let is_named = meta.has(column::PATH_IN_SCHEMA);
        if self.opened.key.is_none() && is_named && !meta.has_strings(column::PATH_IN_SCHEMA, &leaf.names) {
            return Err(Error::NotAuthentic(format!("name of column {}", leaf.path)));
        }
        let (start, len) = chunk_range(&meta)?;
        self.add(start, len, Content::Plain)?;
        self.add_parts(chunk, &chunk::INDEXES, None)?;
        if meta.int(column::BLOOM_FILTER_LENGTH).is_none() {
            // The filter is removed, because its end is not known. Readers do not need it.
            meta.remove(column::BLOOM_FILTER_OFFSET);
        }
        self.add_parts(&mut meta, &[column::BLOOM_FILTER], None)?;
        chunk.set_structure(chunk::META_DATA, &meta)
    }

    /// Adds the regions of indexes or of a Bloom filter. If `chunk` is given, they are encrypted modules of this chunk, and their
    /// plain lengths are set in `fields`.
    fn add_parts(&mut self, fields: &mut Struct, parts: &[Part], chunk: Option<&Arc<Chunk>>) -> Result<()> {
        for &(modules, offset, len) in parts {
            let (Some(start), Some(size)) = (fields.int(offset), fields.int(len)) else { continue };
            let (start, size) = (start as u64, size as u64);
            if let Some(chunk) = chunk {
                self.add(start, size, Content::Modules(Arc::clone(chunk), modules))?;
                fields.set(len, Value::i32(shorter(size, modules)?));
            } else {
                self.add(start, size, Content::Plain)?;
            }
        }
        Ok(())
    }

    /// Adds the regions of an encrypted column chunk to the view, and sets the plain metadata of the chunk.
    fn encrypted_chunk(
        &mut self,
        chunk: &mut Struct,
        leaf: &Leaf,
        crypto: &Crypto,
        key: Arc<Key>,
        place: Place,
    ) -> Result<()> {
        let what = format!("metadata of column {}", leaf.path);
        let meta = match (chunk.binary(chunk::ENCRYPTED_COLUMN_METADATA), crypto) {
            (Some(sealed), _) => {
                // The field contains the module with its length field, as DuckDB and Arrow write it.
                let aad = self.opened.aad.of(Module::ColumnMetaData, place);
                let meta = Struct::read_module(&open_one(self.engine, &key, &aad, sealed, &what)?, &what)?;
                // If nothing authenticates the schema, the metadata must belong to a column of this name and type.
                let is_same = meta.has_strings(column::PATH_IN_SCHEMA, &leaf.names)
                    && meta.int(column::TYPE) == Some(leaf.physical_type.into());
                let module = || format!("name or type of column {}", leaf.path);
                ensure(is_same || self.opened.key.is_some(), || Error::NotAuthentic(module()))?;
                Some(meta)
            }
            (None, Crypto::FooterKey) => chunk.structure(chunk::META_DATA)?,
            (None, Crypto::ColumnKey(_)) => None,
        };
        let mut meta = meta.ok_or_else(|| missing(&format!("the {what}")))?;
        chunk.remove(chunk::ENCRYPTED_COLUMN_METADATA);
        let (start, len) = chunk_range(&meta)?;
        let (has_dictionary, range) = (dictionary_offset(&meta).is_some(), start..start.saturating_add(len));
        let (column, found) = (Arc::clone(&leaf.path), Default::default());
        let parts = Arc::new(Chunk { key, place, range, has_dictionary, column, found });
        self.add(start, len, Content::Chunk(Arc::clone(&parts)))?;
        self.add_parts(chunk, &chunk::INDEXES, Some(&parts))?;
        let (_, offset, len) = column::BLOOM_FILTER;
        if self.has_plain_filters {
            // The plain filters are removed from the metadata, because they are not authenticated and could hide rows. Readers do
            // not need them.
            meta.remove(offset);
            meta.remove(len);
        } else if let (Some(start), None) = (meta.int(offset), meta.int(len)) {
            meta.set(len, Value::i64(self.two_modules(start as u64)? as i64));
        }
        self.add_parts(&mut meta, &[column::BLOOM_FILTER], Some(&parts))?;
        chunk.set_structure(chunk::META_DATA, &meta)
    }

    /// Returns the total length of two consecutive modules.
    fn two_modules(&self, start: u64) -> Result<u64> {
        let mut len = 0;
        for _ in 0..2 {
            ensure(start + len < self.opened.start.saturating_sub(LENGTH as u64), outside)?;
            let mut length = [0; LENGTH];
            self.source.read_exact_at(&mut length, start + len).map_err(read)?;
            len += module_len(&length)? as u64;
        }
        Ok(len)
    }

    /// The key of a column; None if the caller has none.
    fn key(&mut self, (leaf, expected): &Column, crypto: &Crypto) -> Result<Option<Arc<Key>>> {
        let metadata = match crypto {
            Crypto::FooterKey if expected.is_some() => {
                let what =
                    "a key for the column was given, but the file has encrypted it with the footer key";
                return Err(Error::Contradiction { column: (*leaf.path).into(), what });
            }
            Crypto::FooterKey => return Ok(self.opened.key.clone()),
            Crypto::ColumnKey(metadata) => metadata.clone(),
        };
        let entry = (Arc::clone(expected.as_ref().unwrap_or(&leaf.path)), metadata);
        if let Some(key) = self.found.get(&entry) {
            return Ok(key.clone());
        }
        let key = self.keys.key(Some(&entry.0), entry.1.as_deref())?;
        let key =
            key.map(|key| module_key(&key, &format!("column {}", entry.0)).map(Arc::new)).transpose()?;
        self.found.insert(entry, key.clone());
        Ok(key)
    }

    /// Adds a column without a key: writes metadata to the footer with which each read of the column fails.
    fn hidden_chunk(&mut self, chunk: &mut Struct, leaf: &Leaf, crypto: &Crypto, rows: i64) -> Result<()> {
        let mut what = format!("column {}", leaf.path);
        if matches!(crypto, Crypto::FooterKey) {
            what.push_str(", which is encrypted with the footer key");
            // Without a footer key, the visible metadata must contain the path of the column. This limits the size of the new footer:
            // each path that is written below replaces a path in the input.
            let visible = chunk.structure(chunk::META_DATA)?;
            let is_same = visible.is_some_and(|meta| meta.has_strings(column::PATH_IN_SCHEMA, &leaf.names));
            let other_column_error =
                || malformed(format!("the metadata of column {} name another column", leaf.path));
            ensure(is_same, other_column_error)?;
        }
        chunk.keep_only(|id| !(chunk::OFFSET_INDEX_OFFSET..=chunk::ENCRYPTED_COLUMN_METADATA).contains(&id));
        let start = self.opened.start + HIDDEN_GAP + self.hidden * HIDDEN;
        self.hidden += 1;
        self.regions.push(Region { start, end: start + HIDDEN, content: Content::Hidden(what.into()) });
        let mut meta = Struct::default();
        meta.set(column::TYPE, Value::i32(leaf.physical_type));
        meta.set(column::ENCODINGS, thrift::ints(&[0, 3]));
        meta.set(column::PATH_IN_SCHEMA, thrift::strings(&leaf.names));
        meta.set(column::CODEC, Value::i32(0));
        meta.set(column::NUM_VALUES, Value::i64(rows));
        meta.set(column::TOTAL_UNCOMPRESSED_SIZE, Value::i64(HIDDEN as i64));
        meta.set(column::TOTAL_COMPRESSED_SIZE, Value::i64(HIDDEN as i64));
        meta.set(column::DATA_PAGE_OFFSET, Value::i64(start as i64));
        chunk.set_structure(chunk::META_DATA, &meta)
    }

    fn add(&mut self, start: u64, len: u64, content: Content) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let end =
            start.checked_add(len).filter(|end| *end <= self.opened.start && start >= MAGIC.len() as u64);
        let end = end.ok_or_else(outside)?;
        self.regions.push(Region { start, end, content });
        Ok(())
    }
}

/// Returns the total length of the plaintexts of modules whose total length is `len`.
fn shorter(len: u64, modules: &[Module]) -> Result<i32> {
    let plain = len.checked_sub((modules.len() * Kind::Gcm.overhead()) as u64);
    let plain = plain.and_then(|len| i32::try_from(len).ok());
    plain.ok_or_else(|| malformed("the length of an index or a filter is out of range"))
}
