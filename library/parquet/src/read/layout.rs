//! The layout of the view, and its footer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lockstep::{Engine, ReadAt};

use super::chunk::Chunk;
use super::footer::Opened;
use crate::aad::{FileAad, Module, Place};
use crate::batch::open_one;
use crate::columns::{Leaf, check_name, key_of, leaves};
use crate::error::{Error, Result, malformed, read};
use crate::format::{
    self, MAGIC, check_columns, check_in_file, check_row_groups, chunk, chunk_range, column, column_crypto,
    column_key, file, outside, row_group,
};
use crate::keys::{KeySource, ModuleKey};
use crate::modules::{Kind, LENGTH, module_len};
use crate::thrift::{self, Struct, Value, missing};

/// A range of the view.
pub(super) struct Region {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) content: Content,
}

impl Region {
    pub(super) fn len(&self) -> usize {
        (self.end - self.start) as usize
    }
}

/// The content of a range of the view.
pub(super) enum Content {
    /// The bytes of the file: a column that is not encrypted.
    Plain,
    Chunk(Box<Chunk>),
    Modules(Box<Modules>),
    /// A column for which there is no key: its description for the error.
    Hidden(Box<str>),
}

/// Modules that follow each other: an index or a Bloom filter.
pub(super) struct Modules {
    key: Arc<ModuleKey>,
    place: Place,
    modules: &'static [Module],
    column: Arc<str>,
}

impl Modules {
    /// The plaintexts, followed by zeros up to the length of the modules.
    pub(super) fn open(&self, engine: &Engine, aad: &FileAad, sealed: &[u8]) -> Result<Vec<u8>> {
        let mut plain = Vec::with_capacity(sealed.len());
        let mut rest = sealed;
        for module in self.modules {
            let what =
                format!("{} of column {} in row group {}", module.name(), self.column, self.place.row_group);
            let len = module_len(rest)?;
            let sealed = rest
                .get(..len)
                .ok_or_else(|| malformed(format!("the {what} is longer than the file states")))?;
            let aad = aad.column(*module, self.place);
            let mut opened = open_one(engine, &self.key, &aad, sealed, &what)?;
            if *module == Module::BloomFilterHeader {
                // The bits follow the header, so what parquet-java may have written after the header is removed.
                let (_, len) =
                    Struct::read(&opened)?.ok_or_else(|| malformed(format!("the {what} is cut off")))?;
                opened.truncate(len);
            }
            plain.extend(opened);
            rest = &rest[len..];
        }
        if !rest.is_empty() {
            return Err(malformed(format!(
                "an index or a filter of column {} is shorter than the file states",
                self.column
            )));
        }
        plain.resize(sealed.len(), 0);
        Ok(plain)
    }
}

/// Number of bytes for each column without a key and without known place, and number of bytes between such columns and the
/// others. Because of this gap, a reader that merges neighbouring reads does not read such columns.
const HIDDEN: u64 = 64;
const HIDDEN_GAP: u64 = 64 << 10;

/// Plans the view of a file: changes the footer to that of the view, and returns the regions and the offset of the footer in the view.
pub(super) fn plan(
    engine: &Engine,
    source: &impl ReadAt,
    keys: &dyn KeySource,
    opened: &mut Opened,
) -> Result<(Vec<Region>, u64)> {
    let Opened { footer, start, aad, key, .. } = opened;
    let columns = columns(footer, keys.expected_columns())?;
    // arrow-rs (60.1) does not encrypt the Bloom filters of encrypted columns, against the format.
    let has_plain_filters =
        footer.binary(file::CREATED_BY).is_some_and(|writer| writer.starts_with(b"parquet-rs "));
    let mut planner = Planner {
        engine,
        source,
        keys,
        aad,
        footer_key: key.take().map(Arc::new),
        found: BTreeMap::new(),
        ordinals: BTreeSet::new(),
        has_plain_filters,
        regions: Vec::new(),
        limit: *start,
        hidden: 0,
    };
    check_row_groups(footer)?;
    footer.rewrite(file::ROW_GROUPS, |index, group| planner.group(index, group, &columns))?;
    footer.remove(file::ENCRYPTION_ALGORITHM);
    footer.remove(file::FOOTER_SIGNING_KEY_METADATA);
    let Planner { mut regions, hidden, .. } = planner;
    regions.sort_by_key(|region| region.start);
    if regions.windows(2).any(|pair| pair[0].end > pair[1].start) {
        return Err(malformed("parts of the file overlap"));
    }
    Ok((regions, if hidden > 0 { *start + 2 * HIDDEN_GAP + hidden * HIDDEN } else { *start }))
}

/// A column, and what the caller expects of it.
struct Column {
    leaf: Leaf,
    /// The name for which the caller has given a key. The column must be encrypted with it.
    expected: Option<Arc<str>>,
}

/// The columns of a file, with the names for which the caller has given keys.
fn columns(footer: &Struct, expected: Vec<String>) -> Result<Vec<Column>> {
    let leaves = leaves(footer)?;
    expected.iter().try_for_each(|name| check_name(&leaves, name))?;
    let expected: Vec<Arc<str>> = expected.into_iter().map(Into::into).collect();
    let with_name = leaves.into_iter().map(|leaf| {
        let index = key_of(&leaf, expected.iter().map(|name| &**name))?;
        Ok(Column { leaf, expected: index.map(|index| Arc::clone(&expected[index])) })
    });
    with_name.collect()
}

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
    aad: &'a FileAad,
    /// None if the footer is not authenticated.
    footer_key: Option<Arc<ModuleKey>>,
    /// The keys of columns found so far, by name and key metadata.
    found: BTreeMap<KeyName, Option<Arc<ModuleKey>>>,
    /// The ordinals of the row groups so far.
    ordinals: BTreeSet<i64>,
    /// True if the Bloom filters of encrypted columns may be plain.
    has_plain_filters: bool,
    regions: Vec<Region>,
    /// The offset of the footer in the file.
    limit: u64,
    /// The number of columns without a key and without known place.
    hidden: u64,
}

impl<S: ReadAt> Planner<'_, S> {
    fn group(&mut self, index: usize, group: &mut Struct, columns: &[Column]) -> Result<()> {
        let ordinal = group.int(row_group::ORDINAL).unwrap_or(index as i64);
        // Otherwise, modules of two row groups could have the same associated data.
        if !self.ordinals.insert(ordinal) && !self.aad.is_missing() {
            return Err(malformed("two row groups have the same ordinal"));
        }
        let rows = group.int(row_group::NUM_ROWS).unwrap_or(0);
        check_columns(group, columns.len())?;
        group.rewrite(row_group::COLUMNS, |number, chunk| {
            let column = &columns[number];
            check_in_file(chunk, &column.leaf.path)?;
            let crypto = self.crypto(chunk, &column.leaf)?;
            chunk.remove(chunk::CRYPTO_METADATA);
            let Some(crypto) = crypto else { return self.plain_chunk(chunk, column) };
            let place = match Place::new(ordinal, number) {
                Some(place) => place,
                // The ordinals are not used.
                None if self.aad.is_missing() => Place { row_group: 0, column: 0 },
                None => return Err(malformed("a row group or column has no valid ordinal")),
            };
            self.encrypted_chunk(chunk, column, &crypto, place, rows)
        })
    }

    /// The crypto metadata of a column chunk; None if the column is not encrypted.
    fn crypto(&self, chunk: &Struct, leaf: &Leaf) -> Result<Option<Crypto>> {
        let Some(crypto) = chunk.structure(chunk::CRYPTO_METADATA)? else {
            return match chunk.has(chunk::CRYPTO_METADATA) {
                true => Err(malformed("the crypto metadata of a column is invalid")),
                // DuckDB encrypts all columns with the footer key, but the file does not state this.
                false => Ok(self.aad.is_missing().then_some(Crypto::FooterKey)),
            };
        };
        if crypto.has(column_crypto::WITH_FOOTER_KEY) {
            return Ok(Some(Crypto::FooterKey));
        }
        let with_key = crypto.structure(column_crypto::WITH_COLUMN_KEY)?;
        let with_key =
            with_key.ok_or_else(|| missing(&format!("the crypto metadata of column {}", leaf.path)))?;
        if !with_key.has_strings(column_key::PATH_IN_SCHEMA, &leaf.names) {
            let what = format!("the crypto metadata of column {} names another column", leaf.path);
            return Err(malformed(what));
        }
        Ok(Some(Crypto::ColumnKey(with_key.binary(column_key::KEY_METADATA).map(<[u8]>::to_vec))))
    }

    fn plain_chunk(&mut self, chunk: &mut Struct, column: &Column) -> Result<()> {
        if column.expected.is_some() {
            return Err(Error::PlainColumn { column: (*column.leaf.path).into() });
        }
        let mut meta =
            chunk.structure(chunk::META_DATA)?.ok_or_else(|| missing("the metadata of a column"))?;
        let (start, len) = chunk_range(&meta)?;
        self.add(start, len, Content::Plain)?;
        for (_, start, len) in indexes(chunk) {
            self.add(start, len, Content::Plain)?;
        }
        match (meta.int(column::BLOOM_FILTER_OFFSET), meta.int(column::BLOOM_FILTER_LENGTH)) {
            (Some(start), Some(len)) => self.add(start as u64, len as u64, Content::Plain),
            (Some(_), None) => {
                // The filter is removed, because its end is not known. Readers do not need it.
                meta.remove(column::BLOOM_FILTER_OFFSET);
                chunk.set_structure(chunk::META_DATA, &meta)
            }
            _ => Ok(()),
        }
    }

    fn encrypted_chunk(
        &mut self,
        chunk: &mut Struct,
        column: &Column,
        crypto: &Crypto,
        place: Place,
        rows: i64,
    ) -> Result<()> {
        let leaf = &column.leaf;
        let Some(key) = self.key(column, crypto)? else {
            return self.hidden_chunk(chunk, leaf, crypto, rows);
        };
        let meta = match (chunk.binary(chunk::ENCRYPTED_COLUMN_METADATA), crypto) {
            (Some(sealed), _) => {
                let what = format!("metadata of column {}", leaf.path);
                // DuckDB and arrow store the module with its length.
                let aad = self.aad.column(Module::ColumnMetaData, place);
                let plain = open_one(self.engine, &key, &aad, sealed, &what)?;
                let meta = Struct::read_module(&plain, &what)?;
                self.check_metadata(&meta, leaf)?;
                Some(meta)
            }
            (None, Crypto::FooterKey) => chunk.structure(chunk::META_DATA)?,
            (None, Crypto::ColumnKey(_)) => None,
        };
        let meta = meta.ok_or_else(|| missing(&format!("the metadata of column {}", leaf.path)))?;
        chunk.remove(chunk::ENCRYPTED_COLUMN_METADATA);
        self.encrypted_parts(chunk, meta, key, place, &leaf.path)
    }

    /// If nothing authenticates the schema, the authentic metadata of a column must be those of a column of this name and type.
    fn check_metadata(&self, meta: &Struct, leaf: &Leaf) -> Result<()> {
        let is_same = meta.has_strings(column::PATH_IN_SCHEMA, &leaf.names)
            && meta.int(column::TYPE) == Some(leaf.physical_type.into());
        if self.footer_key.is_none() && !is_same {
            return Err(Error::NotAuthentic { module: format!("name or type of column {}", leaf.path) });
        }
        Ok(())
    }

    /// Adds the parts of a column chunk, and sets its metadata.
    fn encrypted_parts(
        &mut self,
        chunk: &mut Struct,
        mut meta: Struct,
        key: Arc<ModuleKey>,
        place: Place,
        column: &Arc<str>,
    ) -> Result<()> {
        let (start, len) = chunk_range(&meta)?;
        let has_dictionary = format::dictionary_offset(&meta).is_some();
        let (found, path) = (Default::default(), Arc::clone(column));
        let pages = Chunk { key: Arc::clone(&key), place, has_dictionary, column: path, found };
        self.add(start, len, Content::Chunk(Box::new(pages)))?;
        let modules = |modules| {
            let (key, column) = (Arc::clone(&key), Arc::clone(column));
            Content::Modules(Box::new(Modules { key, place, modules, column }))
        };
        let parts: Vec<_> = indexes(chunk).collect();
        for (index, start, len) in parts {
            let (module, field): (&[Module], _) = match index {
                chunk::COLUMN_INDEX_OFFSET => (&[Module::ColumnIndex], chunk::COLUMN_INDEX_LENGTH),
                _ => (&[Module::OffsetIndex], chunk::OFFSET_INDEX_LENGTH),
            };
            self.add(start, len, modules(module))?;
            chunk.set(field, Value::I32(shorter(len, 1)?));
        }
        if self.has_plain_filters {
            // The filters are removed, because they are not authenticated and could hide rows. Readers do not need them.
            meta.remove(column::BLOOM_FILTER_OFFSET);
            meta.remove(column::BLOOM_FILTER_LENGTH);
        }
        if let Some(start) = meta.int(column::BLOOM_FILTER_OFFSET) {
            let start = start as u64;
            let len = match meta.int(column::BLOOM_FILTER_LENGTH) {
                Some(len) => len as u64,
                None => self.two_modules(start)?,
            };
            self.add(start, len, modules(&[Module::BloomFilterHeader, Module::BloomFilterBitset]))?;
            meta.set(column::BLOOM_FILTER_LENGTH, Value::I32(shorter(len, 2)?));
        }
        chunk.set_structure(chunk::META_DATA, &meta)
    }

    /// The length of two modules that follow each other.
    fn two_modules(&self, start: u64) -> Result<u64> {
        let mut len = 0;
        for _ in 0..2 {
            if start + len >= self.limit.saturating_sub(LENGTH as u64) {
                return Err(outside());
            }
            let mut length = [0; LENGTH];
            self.source.read_exact_at(&mut length, start + len).map_err(read)?;
            len += module_len(&length)? as u64;
        }
        Ok(len)
    }

    /// The key of a column; None if the caller has none.
    fn key(&mut self, Column { leaf, expected }: &Column, crypto: &Crypto) -> Result<Option<Arc<ModuleKey>>> {
        let metadata = match crypto {
            Crypto::FooterKey if expected.is_some() => {
                return Err(Error::Contradiction {
                    column: (*leaf.path).into(),
                    what: "a key for the column was given, but the file has encrypted it with the footer key",
                });
            }
            Crypto::FooterKey => return Ok(self.footer_key.clone()),
            Crypto::ColumnKey(metadata) => metadata.clone(),
        };
        let entry = (Arc::clone(expected.as_ref().unwrap_or(&leaf.path)), metadata);
        if let Some(key) = self.found.get(&entry) {
            return Ok(key.clone());
        }
        let key = match self.keys.column_key(&entry.0, entry.1.as_deref())? {
            Some(bytes) => Some(Arc::new(ModuleKey::new(&bytes, &format!("column {}", entry.0))?)),
            None => None,
        };
        self.found.insert(entry, key.clone());
        Ok(key)
    }

    /// A column without a key: the footer gets metadata that lead to an error when the column is read.
    fn hidden_chunk(&mut self, chunk: &mut Struct, leaf: &Leaf, crypto: &Crypto, rows: i64) -> Result<()> {
        let mut what = format!("column {}", leaf.path);
        if matches!(crypto, Crypto::FooterKey) {
            what.push_str(", which is encrypted with the footer key");
            // Without a footer key, the visible metadata must name the column. This limits the size of the new footer: each name that is
            // written below replaces one of the input.
            let visible = chunk.structure(chunk::META_DATA)?;
            if !visible.is_some_and(|meta| meta.has_strings(column::PATH_IN_SCHEMA, &leaf.names)) {
                return Err(malformed(format!("the metadata of column {} name another column", leaf.path)));
            }
        }
        for field in [
            chunk::OFFSET_INDEX_OFFSET,
            chunk::OFFSET_INDEX_LENGTH,
            chunk::COLUMN_INDEX_OFFSET,
            chunk::COLUMN_INDEX_LENGTH,
            chunk::ENCRYPTED_COLUMN_METADATA,
        ] {
            chunk.remove(field);
        }
        let start = self.limit + HIDDEN_GAP + self.hidden * HIDDEN;
        self.hidden += 1;
        self.regions.push(Region { start, end: start + HIDDEN, content: Content::Hidden(what.into()) });
        let mut meta = Struct::new();
        meta.set(column::TYPE, Value::I32(leaf.physical_type));
        meta.set(column::ENCODINGS, thrift::ints(&[0, 3]));
        meta.set(column::PATH_IN_SCHEMA, thrift::strings(leaf.names.iter().map(String::as_str)));
        meta.set(column::CODEC, Value::I32(0));
        meta.set(column::NUM_VALUES, Value::I64(rows));
        meta.set(column::TOTAL_UNCOMPRESSED_SIZE, Value::I64(HIDDEN as i64));
        meta.set(column::TOTAL_COMPRESSED_SIZE, Value::I64(HIDDEN as i64));
        meta.set(column::DATA_PAGE_OFFSET, Value::I64(start as i64));
        chunk.set_structure(chunk::META_DATA, &meta)
    }

    fn add(&mut self, start: u64, len: u64, content: Content) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let end = start.checked_add(len).filter(|end| *end <= self.limit && start >= MAGIC.len() as u64);
        let end = end.ok_or_else(outside)?;
        self.regions.push(Region { start, end, content });
        Ok(())
    }
}

/// The indexes of a column chunk: the number of the field, offset and length. Negative numbers become numbers that are too large.
fn indexes(chunk: &Struct) -> impl Iterator<Item = (i16, u64, u64)> + '_ {
    let fields = [
        (chunk::OFFSET_INDEX_OFFSET, chunk::OFFSET_INDEX_LENGTH),
        (chunk::COLUMN_INDEX_OFFSET, chunk::COLUMN_INDEX_LENGTH),
    ];
    fields
        .into_iter()
        .filter_map(|(offset, len)| Some((offset, chunk.int(offset)? as u64, chunk.int(len)? as u64)))
}

/// The length of modules without their overhead.
fn shorter(len: u64, modules: usize) -> Result<i32> {
    let plain =
        len.checked_sub((modules * Kind::Gcm.overhead()) as u64).and_then(|len| i32::try_from(len).ok());
    plain.ok_or_else(|| malformed("the length of an index or a filter is out of range"))
}
