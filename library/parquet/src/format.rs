//! The structures of Parquet (`parquet.thrift`) that have fields for encryption, and the end of a file.

use std::ops::RangeInclusive;

use crate::aad::{FILE_UNIQUE, Module};
use crate::error::{Error, Result, ensure, malformed, missing, unsupported};
use crate::thrift::Struct;

/// First and last bytes of a file whose footer is plain.
pub(crate) const MAGIC: &[u8; 4] = b"PAR1";
/// First and last bytes of a file whose footer is encrypted.
pub(crate) const MAGIC_ENCRYPTED: &[u8; 4] = b"PARE";
/// Bytes after the footer: its length and the magic bytes.
pub(crate) const TAIL: u64 = 8;
/// Maximum length of a footer in bytes. `tests/memory.rs` checks how much memory a footer can take.
pub(crate) const MAX_FOOTER: u64 = 256 << 20;
/// Maximum length of a page header in bytes.
pub(crate) const MAX_PAGE_HEADER: usize = 16 << 20;

/// Field numbers of `FileMetaData`.
pub(crate) mod file {
    pub(crate) const SCHEMA: i16 = 2;
    pub(crate) const ROW_GROUPS: i16 = 4;
    pub(crate) const CREATED_BY: i16 = 6;
    pub(crate) const ENCRYPTION_ALGORITHM: i16 = 8;
    pub(crate) const FOOTER_SIGNING_KEY_METADATA: i16 = 9;
}

/// Field numbers of `FileCryptoMetaData`.
pub(crate) mod file_crypto {
    pub(crate) const ENCRYPTION_ALGORITHM: i16 = 1;
    pub(crate) const KEY_METADATA: i16 = 2;
}

/// Field numbers of the union `EncryptionAlgorithm` and of its structures.
pub(crate) mod algorithm {
    pub(crate) const AES_GCM_V1: i16 = 1;
    pub(crate) const AES_GCM_CTR_V1: i16 = 2;
    pub(crate) const AAD_PREFIX: i16 = 1;
    pub(crate) const AAD_FILE_UNIQUE: i16 = 2;
    pub(crate) const SUPPLY_AAD_PREFIX: i16 = 3;
}

/// Field numbers of `SchemaElement`.
pub(crate) mod schema {
    pub(crate) const TYPE: i16 = 1;
    pub(crate) const NAME: i16 = 4;
    pub(crate) const NUM_CHILDREN: i16 = 5;
}

/// A part of a column chunk other than its pages: the types of its modules, and the fields for its offset and its length.
pub(crate) type Part = (&'static [Module], i16, i16);

/// The names, in errors, of the lists that a footer and a row group must have.
pub(crate) const ROW_GROUPS: &str = "the list of row groups";
pub(crate) const COLUMNS: &str = "the list of columns of a row group";

/// Field numbers of `RowGroup`.
pub(crate) mod row_group {
    pub(crate) const COLUMNS: i16 = 1;
    pub(crate) const NUM_ROWS: i16 = 3;
    pub(crate) const FILE_OFFSET: i16 = 5;
    pub(crate) const TOTAL_COMPRESSED_SIZE: i16 = 6;
    pub(crate) const ORDINAL: i16 = 7;
}

/// Field numbers of `ColumnChunk`.
pub(crate) mod chunk {
    use super::{Module, Part, RangeInclusive};

    pub(crate) const FILE_PATH: i16 = 1;
    pub(crate) const FILE_OFFSET: i16 = 2;
    pub(crate) const META_DATA: i16 = 3;
    pub(crate) const OFFSET_INDEX_OFFSET: i16 = 4;
    pub(crate) const OFFSET_INDEX_LENGTH: i16 = 5;
    pub(crate) const COLUMN_INDEX_OFFSET: i16 = 6;
    pub(crate) const COLUMN_INDEX_LENGTH: i16 = 7;
    pub(crate) const CRYPTO_METADATA: i16 = 8;
    pub(crate) const ENCRYPTED_COLUMN_METADATA: i16 = 9;

    /// The fields that are written for a column whose metadata are encrypted. Other fields may reveal values.
    pub(crate) const VISIBLE: RangeInclusive<i16> = FILE_OFFSET..=ENCRYPTED_COLUMN_METADATA;

    /// The indexes in the order in which they are written.
    pub(crate) const INDEXES: [Part; 2] = [
        (&[Module::ColumnIndex], COLUMN_INDEX_OFFSET, COLUMN_INDEX_LENGTH),
        (&[Module::OffsetIndex], OFFSET_INDEX_OFFSET, OFFSET_INDEX_LENGTH),
    ];
}

/// Field numbers of `ColumnMetaData`.
pub(crate) mod column {
    use super::{Module, Part};

    pub(crate) const TYPE: i16 = 1;
    pub(crate) const ENCODINGS: i16 = 2;
    pub(crate) const PATH_IN_SCHEMA: i16 = 3;
    pub(crate) const CODEC: i16 = 4;
    pub(crate) const NUM_VALUES: i16 = 5;
    pub(crate) const TOTAL_UNCOMPRESSED_SIZE: i16 = 6;
    pub(crate) const TOTAL_COMPRESSED_SIZE: i16 = 7;
    pub(crate) const DATA_PAGE_OFFSET: i16 = 9;
    pub(crate) const INDEX_PAGE_OFFSET: i16 = 10;
    pub(crate) const DICTIONARY_PAGE_OFFSET: i16 = 11;
    pub(crate) const BLOOM_FILTER_OFFSET: i16 = 14;
    pub(crate) const BLOOM_FILTER_LENGTH: i16 = 15;

    pub(crate) const BLOOM_FILTER: Part =
        (&[Module::BloomFilterHeader, Module::BloomFilterBitset], BLOOM_FILTER_OFFSET, BLOOM_FILTER_LENGTH);

    /// True for the fields that remain visible in a plain footer if the column is encrypted. Readers without the key need these fields
    /// to skip the column (`Encryption.md`, section 5.5). All other fields, also those that later versions of the format add, may
    /// reveal values.
    pub(crate) fn is_visible(id: i16) -> bool {
        matches!(id, TYPE..=TOTAL_COMPRESSED_SIZE | DATA_PAGE_OFFSET | DICTIONARY_PAGE_OFFSET)
            || matches!(id, BLOOM_FILTER_OFFSET | BLOOM_FILTER_LENGTH)
    }
}

/// Field numbers of the union `ColumnCryptoMetaData`.
pub(crate) mod column_crypto {
    pub(crate) const WITH_FOOTER_KEY: i16 = 1;
    pub(crate) const WITH_COLUMN_KEY: i16 = 2;
}

/// Field numbers of `EncryptionWithColumnKey`.
pub(crate) mod column_key {
    pub(crate) const PATH_IN_SCHEMA: i16 = 1;
    pub(crate) const KEY_METADATA: i16 = 2;
}

/// Field numbers of `PageHeader`.
pub(crate) mod page {
    pub(crate) const TYPE: i16 = 1;
    pub(crate) const COMPRESSED_SIZE: i16 = 3;
    pub(crate) const CRC: i16 = 4;
    pub(crate) const DATA: i64 = 0;
    pub(crate) const DICTIONARY: i64 = 2;
    pub(crate) const DATA_V2: i64 = 3;
}

/// Field numbers of `OffsetIndex` and `PageLocation`.
pub(crate) mod offset_index {
    pub(crate) const PAGE_LOCATIONS: i16 = 1;
    pub(crate) const OFFSET: i16 = 1;
    pub(crate) const COMPRESSED_PAGE_SIZE: i16 = 2;
}

/// Field numbers of `BloomFilterHeader`.
pub(crate) mod bloom_filter {
    pub(crate) const NUM_BYTES: i16 = 1;
}

/// An encryption algorithm of Parquet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Algorithm {
    /// AES_GCM_V1: GCM for all modules.
    #[default]
    GcmV1,
    /// AES_GCM_CTR_V1: GCM for all modules except pages; CTR, without authentication, for pages.
    GcmCtrV1,
}

impl Algorithm {
    /// The algorithm of the union `EncryptionAlgorithm`, and the structure in it.
    pub(crate) fn of_union(union: &Struct) -> Result<(Algorithm, Struct)> {
        match (union.structure(algorithm::AES_GCM_V1)?, union.structure(algorithm::AES_GCM_CTR_V1)?) {
            (Some(fields), None) => Ok((Algorithm::GcmV1, fields)),
            (None, Some(fields)) => Ok((Algorithm::GcmCtrV1, fields)),
            _ => Err(unsupported("an unknown encryption algorithm")),
        }
    }
}

/// Checks the length of the identifier of a file. The documentation of the module `aad` states why the length is fixed.
pub(crate) fn identifier(bytes: &[u8]) -> Result<[u8; FILE_UNIQUE]> {
    let what =
        || format!("its identifier (aad_file_unique) has {} bytes instead of {FILE_UNIQUE}", bytes.len());
    bytes.try_into().map_err(|_| malformed(what()))
}

/// The error for a footer of more than [`MAX_FOOTER`] bytes.
pub(crate) fn footer_too_long() -> Error {
    unsupported("a footer of more than 256 MiB")
}

/// Fails if a row group has another number of column chunks than the schema has columns.
pub(crate) fn check_columns(group: &Struct, columns: usize) -> Result<()> {
    let is_same = group.structs(row_group::COLUMNS).is_none_or(|chunks| chunks.len() == columns);
    ensure(is_same, || malformed("a row group has another number of columns than the schema"))
}

/// Fails if a column chunk is in another file.
pub(crate) fn check_in_file(chunk: &Struct, column: &str) -> Result<()> {
    let is_here = chunk.binary(chunk::FILE_PATH).is_none_or(<[u8]>::is_empty);
    ensure(is_here, || unsupported(format!("column {column} in another file")))
}

/// The error for a range that is not between the magic bytes and the footer.
pub(crate) fn outside() -> Error {
    malformed("a column, index or filter is outside of the file")
}

/// Returns the offset and the length, in bytes, of the pages of a column chunk.
pub(crate) fn chunk_range(meta: &Struct) -> Result<(u64, u64)> {
    let data = meta.int(column::DATA_PAGE_OFFSET).ok_or_else(|| missing("the offset of a column chunk"))?;
    // In a chunk without data pages, the offset of the data pages may be 0.
    let start = match dictionary_offset(meta) {
        Some(dictionary) if data <= 0 || dictionary < data => dictionary,
        _ => data,
    };
    let len = meta.int(column::TOTAL_COMPRESSED_SIZE).ok_or_else(|| missing("the size of a column chunk"))?;
    match (u64::try_from(start), u64::try_from(len)) {
        (Ok(start), Ok(len)) => Ok((start, len)),
        _ => Err(malformed("a column chunk has a negative offset or size")),
    }
}

/// The offset of the dictionary page. Some writers state 0 if there is none.
pub(crate) fn dictionary_offset(meta: &Struct) -> Option<i64> {
    meta.int(column::DICTIONARY_PAGE_OFFSET).filter(|offset| *offset > 0)
}
