//! The layout of the view, and its footer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lockstep::hazmat::shown;
use lockstep::{Engine, ReadAt};

use super::chunk::Chunk;
use super::footer::Opened;
use crate::aad::{FileAad, Module, Place};
use crate::error::{Error, Result, malformed, read};
use crate::format::{
    self, Encryption, Leaf, MAGIC, chunk, chunk_range, column, column_crypto, column_key, file, row_group,
};
use crate::keys::{KeySource, ModuleKey};
use crate::modules::{self, Kind, LENGTH, module_len};
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
    /// A column for which there is no key.
    Hidden(Arc<str>),
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
            let mut opened = modules::open_one(engine, &self.key, aad, sealed, &what)?;
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

/// The plan of a view.
pub(super) struct Layout {
    pub(super) footer: Struct,
    pub(super) regions: Vec<Region>,
    /// The offset of the footer in the view.
    pub(super) end: u64,
    pub(super) aad: FileAad,
    pub(super) pages: Kind,
}

/// Number of bytes for each column without a key and without known place, and number of bytes between such columns and the
/// others. Because of this gap, a reader that merges neighbouring reads does not read such columns.
const HIDDEN: u64 = 64;
const HIDDEN_GAP: u64 = 64 << 10;

/// Plans the view of a file.
pub(super) fn plan(
    engine: &Engine,
    source: &impl ReadAt,
    keys: &dyn KeySource,
    opened: Opened,
) -> Result<Layout> {
    let Opened { mut footer, start, encryption, aad, key } = opened;
    let leaves = format::leaves(&footer)?;
    let expected: BTreeSet<String> = keys.expected_columns().into_iter().collect();
    if let Some(name) = expected.iter().find(|name| leaves.iter().all(|leaf| leaf.path != **name)) {
        let known = leaves.iter().map(|leaf| &*leaf.path).collect::<Vec<_>>().join(", ");
        return Err(Error::UnknownColumn { name: shown::name(name).into(), known });
    }
    let footer_key = Arc::new(key);
    let Encryption { algorithm, .. } = encryption;
    // arrow-rs (60.1) does not encrypt the Bloom filters of encrypted columns, against the format.
    let has_plain_filters =
        footer.binary(file::CREATED_BY).is_some_and(|writer| writer.starts_with(b"parquet-rs "));
    let found = BTreeMap::new();
    let mut planner = Planner {
        engine,
        source,
        keys,
        aad: &aad,
        footer_key,
        found,
        expected,
        has_plain_filters,
        regions: Vec::new(),
        limit: start,
        hidden: 0,
    };
    if footer.structs(file::ROW_GROUPS).is_none() {
        return Err(missing("the list of row groups"));
    }
    for (index, group) in footer.structs_mut(file::ROW_GROUPS).iter_mut().enumerate() {
        planner.group(index, group, &leaves)?;
    }
    footer.remove(file::ENCRYPTION_ALGORITHM);
    footer.remove(file::FOOTER_SIGNING_KEY_METADATA);
    let Planner { mut regions, hidden, .. } = planner;
    regions.sort_by_key(|region| region.start);
    if regions.windows(2).any(|pair| pair[0].end > pair[1].start) {
        return Err(malformed("parts of the file overlap"));
    }
    let end = if hidden > 0 { start + 2 * HIDDEN_GAP + hidden * HIDDEN } else { start };
    Ok(Layout { footer, regions, end, aad, pages: Kind::of_pages(algorithm) })
}

/// The path of a column, and its key metadata.
type KeyName = (String, Option<Vec<u8>>);

struct Planner<'a, S> {
    engine: &'a Engine,
    source: &'a S,
    keys: &'a dyn KeySource,
    aad: &'a FileAad,
    footer_key: Arc<ModuleKey>,
    /// The keys of columns found so far, by path and key metadata.
    found: BTreeMap<KeyName, Option<Arc<ModuleKey>>>,
    expected: BTreeSet<String>,
    /// True if the Bloom filters of encrypted columns may be plain.
    has_plain_filters: bool,
    regions: Vec<Region>,
    /// The offset of the footer in the file.
    limit: u64,
    /// The number of columns without a key and without known place.
    hidden: u64,
}

impl<S: ReadAt> Planner<'_, S> {
    fn group(&mut self, index: usize, group: &mut Struct, leaves: &[Leaf]) -> Result<()> {
        let ordinal = group.int(row_group::ORDINAL).unwrap_or(index as i64);
        let rows = group.int(row_group::NUM_ROWS).unwrap_or(0);
        let chunks =
            group.structs(row_group::COLUMNS).ok_or_else(|| missing("the list of columns of a row group"))?;
        if chunks.len() != leaves.len() {
            return Err(malformed("a row group has another number of columns than the schema"));
        }
        for (number, (chunk, leaf)) in
            group.structs_mut(row_group::COLUMNS).iter_mut().zip(leaves).enumerate()
        {
            if chunk.binary(chunk::FILE_PATH).is_some_and(|path| !path.is_empty()) {
                return Err(Error::Unsupported { what: format!("column {} in another file", leaf.path) });
            }
            match chunk.remove(chunk::CRYPTO_METADATA) {
                // DuckDB encrypts all columns with the footer key, but the file does not state this.
                None if self.aad.is_missing() => {
                    let mut crypto = Struct::new();
                    crypto.set(column_crypto::WITH_FOOTER_KEY, Value::Struct(Struct::new()));
                    let place = Place { row_group: 0, column: 0 };
                    self.encrypted_chunk(chunk, leaf, &crypto, place, rows)?;
                }
                None => self.plain_chunk(chunk, leaf)?,
                Some(Value::Struct(crypto)) => {
                    let place = Place::new(ordinal, number);
                    let place =
                        place.ok_or_else(|| malformed("a row group or column has no valid ordinal"))?;
                    self.encrypted_chunk(chunk, leaf, &crypto, place, rows)?;
                }
                Some(_) => return Err(malformed("the crypto metadata of a column is invalid")),
            }
        }
        Ok(())
    }

    fn plain_chunk(&mut self, chunk: &mut Struct, leaf: &Leaf) -> Result<()> {
        if self.expected.contains(&leaf.path) {
            return Err(Error::PlainColumn { column: leaf.path.clone() });
        }
        let meta = chunk.structure(chunk::META_DATA).ok_or_else(|| missing("the metadata of a column"))?;
        let (start, len) = chunk_range(meta)?;
        self.add(start, len, Content::Plain)?;
        for (start, len) in indexes(chunk).map(|(_, start, len)| (start, len)) {
            self.add(start, len, Content::Plain)?;
        }
        match (meta.int(column::BLOOM_FILTER_OFFSET), meta.int(column::BLOOM_FILTER_LENGTH)) {
            (Some(start), Some(len)) => self.add(start as u64, len as u64, Content::Plain),
            (Some(_), None) => {
                // The filter is removed, because its end is not known. Readers do not need it.
                let mut meta = meta.clone();
                meta.remove(column::BLOOM_FILTER_OFFSET);
                chunk.set(chunk::META_DATA, Value::Struct(meta));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn encrypted_chunk(
        &mut self,
        chunk: &mut Struct,
        leaf: &Leaf,
        crypto: &Struct,
        place: Place,
        rows: i64,
    ) -> Result<()> {
        let column: Arc<str> = leaf.path.as_str().into();
        let sealed_meta = chunk.remove(chunk::ENCRYPTED_COLUMN_METADATA);
        let Some(key) = self.key(leaf, crypto)? else {
            return self.hidden_chunk(chunk, leaf, rows);
        };
        let meta = match (sealed_meta, chunk.remove(chunk::META_DATA)) {
            (Some(Value::Binary(sealed)), _) => {
                let what = format!("metadata of column {column}");
                // DuckDB and arrow store the module with its length.
                let aad = self.aad.column(Module::ColumnMetaData, place);
                let plain = modules::open_one(self.engine, &key, aad, &sealed, &what)?;
                Struct::read_module(&plain, &what)?
            }
            (None, Some(Value::Struct(meta))) if crypto.has(column_crypto::WITH_FOOTER_KEY) => meta,
            _ => return Err(missing(&format!("the metadata of column {column}"))),
        };
        self.encrypted_parts(chunk, meta, key, place, column)
    }

    /// Adds the parts of a column chunk, and sets its metadata.
    fn encrypted_parts(
        &mut self,
        chunk: &mut Struct,
        mut meta: Struct,
        key: Arc<ModuleKey>,
        place: Place,
        column: Arc<str>,
    ) -> Result<()> {
        let (start, len) = chunk_range(&meta)?;
        let has_dictionary = format::dictionary_offset(&meta).is_some();
        let pages = Chunk {
            key: Arc::clone(&key),
            place,
            has_dictionary,
            column: Arc::clone(&column),
            found: Default::default(),
        };
        self.add(start, len, Content::Chunk(Box::new(pages)))?;
        let parts: Vec<_> = indexes(chunk).collect();
        for (index, start, len) in parts {
            let (modules, field): (&[Module], _) = match index {
                chunk::COLUMN_INDEX_OFFSET => (&[Module::ColumnIndex], chunk::COLUMN_INDEX_LENGTH),
                _ => (&[Module::OffsetIndex], chunk::OFFSET_INDEX_LENGTH),
            };
            let modules = Modules { key: Arc::clone(&key), place, modules, column: Arc::clone(&column) };
            self.add(start, len, Content::Modules(Box::new(modules)))?;
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
            let modules: &[Module] = &[Module::BloomFilterHeader, Module::BloomFilterBitset];
            let modules = Modules { key, place, modules, column };
            self.add(start, len, Content::Modules(Box::new(modules)))?;
            meta.set(column::BLOOM_FILTER_LENGTH, Value::I32(shorter(len, 2)?));
        }
        chunk.set(chunk::META_DATA, Value::Struct(meta));
        Ok(())
    }

    /// The length of two modules from an offset.
    fn two_modules(&self, start: u64) -> Result<u64> {
        let first = self.module_at(start)?;
        Ok(first + self.module_at(start + first)?)
    }

    /// The length of the module at an offset.
    fn module_at(&self, start: u64) -> Result<u64> {
        if start >= self.limit.saturating_sub(LENGTH as u64) {
            return Err(outside());
        }
        let mut length = [0; LENGTH];
        self.source.read_exact_at(&mut length, start).map_err(read)?;
        Ok(module_len(&length)? as u64)
    }

    /// The key of a column; None if the caller has none.
    fn key(&mut self, leaf: &Leaf, crypto: &Struct) -> Result<Option<Arc<ModuleKey>>> {
        if crypto.has(column_crypto::WITH_FOOTER_KEY) {
            if self.expected.contains(&leaf.path) {
                return Err(Error::Contradiction {
                    column: leaf.path.clone(),
                    what: "a key for the column was given, but the file has encrypted it with the footer key",
                });
            }
            return Ok(Some(Arc::clone(&self.footer_key)));
        }
        let with_key = crypto.structure(column_crypto::WITH_COLUMN_KEY);
        let with_key =
            with_key.ok_or_else(|| missing(&format!("the crypto metadata of column {}", leaf.path)))?;
        let names = with_key.strings(column_key::PATH_IN_SCHEMA);
        if names.as_ref() != Some(&leaf.names) {
            return Err(malformed(format!(
                "the crypto metadata of column {} names another column",
                leaf.path
            )));
        }
        let metadata = with_key.binary(column_key::KEY_METADATA).map(<[u8]>::to_vec);
        let entry = (leaf.path.clone(), metadata);
        if let Some(key) = self.found.get(&entry) {
            return Ok(key.clone());
        }
        let key = match self.keys.column_key(&leaf.path, entry.1.as_deref())? {
            Some(bytes) => Some(Arc::new(ModuleKey::new(&bytes, &format!("column {}", leaf.path))?)),
            None => None,
        };
        self.found.insert(entry, key.clone());
        Ok(key)
    }

    /// A column without a key: the footer gets metadata that lead to an error when the column is read.
    fn hidden_chunk(&mut self, chunk: &mut Struct, leaf: &Leaf, rows: i64) -> Result<()> {
        for field in [
            chunk::OFFSET_INDEX_OFFSET,
            chunk::OFFSET_INDEX_LENGTH,
            chunk::COLUMN_INDEX_OFFSET,
            chunk::COLUMN_INDEX_LENGTH,
        ] {
            chunk.remove(field);
        }
        let start = self.limit + HIDDEN_GAP + self.hidden * HIDDEN;
        self.hidden += 1;
        let content = Content::Hidden(leaf.path.as_str().into());
        self.regions.push(Region { start, end: start + HIDDEN, content });
        let mut meta = Struct::new();
        meta.set(column::TYPE, Value::I32(leaf.physical_type));
        meta.set(column::ENCODINGS, thrift::ints(&[0, 3]));
        meta.set(column::PATH_IN_SCHEMA, thrift::strings(leaf.names.iter().map(String::as_str)));
        meta.set(column::CODEC, Value::I32(0));
        meta.set(column::NUM_VALUES, Value::I64(rows));
        meta.set(column::TOTAL_UNCOMPRESSED_SIZE, Value::I64(HIDDEN as i64));
        meta.set(column::TOTAL_COMPRESSED_SIZE, Value::I64(HIDDEN as i64));
        meta.set(column::DATA_PAGE_OFFSET, Value::I64(start as i64));
        chunk.set(chunk::META_DATA, Value::Struct(meta));
        Ok(())
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

fn outside() -> Error {
    malformed("a column, index or filter is outside of the file")
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
