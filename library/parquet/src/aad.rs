//! The associated data of modules (`Encryption.md`, section 4.4): `prefix || identifier || type || ordinals`.
//!
//! **Two different modules never have equal associated data**, if their files have the same prefix. The prefix is given by the caller,
//! and the identifier has exactly [`FILE_UNIQUE`] bytes, so neither length depends on the file. The reasons:
//!
//! 1. In both associated data, the type is at the offset `prefix.len() + FILE_UNIQUE`. If the associated data are equal, the types are
//!    therefore equal, and the identifiers before the types are equal too.
//! 2. The type determines the number of ordinals, each of 2 bytes: none for a footer, three for data pages and their headers, and two
//!    for all other modules. So the ordinals are at the same offsets in both associated data, and are equal.
//! 3. In one file, two modules of the same type have different ordinals. The ordinals of columns and pages are their positions. A file in
//!    which two row groups have the same ordinal is refused. A column chunk has at most one module of each type without
//!    a page ordinal.
//!
//! Two files that a writer has made have the same identifier, which is random, with a probability of 2^-64.
//!
//! **Different prefixes under one key.** If the associated data of two modules are equal, the longer prefix begins with the shorter
//! one. So the associated data differ under this rule: no prefix that is used with a key is the beginning of another prefix that is
//! used with the key. Different prefixes of equal length fulfil the rule. A file without a prefix has the empty prefix, which is
//! the beginning of every other prefix. A reader or a writer has only one prefix and cannot check this rule, so users must follow
//! it (`docs/data.md`).
//!
//! Therefore a reader refuses identifiers of other lengths, and does not use a prefix that is stored in the file. The modules of a file
//! without an identifier have no associated data at all; such a file is read only if the caller allows it.

use crate::error::{Error, Result};

/// The type of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Module {
    /// The footer of the file.
    Footer = 0,
    /// `ColumnMetaData` of a column chunk.
    ColumnMetaData = 1,
    /// A data page.
    DataPage = 2,
    /// A dictionary page.
    DictionaryPage = 3,
    /// The header of a data page.
    DataPageHeader = 4,
    /// The header of a dictionary page.
    DictionaryPageHeader = 5,
    /// `ColumnIndex` of a column chunk.
    ColumnIndex = 6,
    /// `OffsetIndex` of a column chunk.
    OffsetIndex = 7,
    /// The header of a Bloom filter.
    BloomFilterHeader = 8,
    /// The bits of a Bloom filter.
    BloomFilterBitset = 9,
}

/// Bytes of the identifier of a file (`aad_file_unique`).
pub const FILE_UNIQUE: usize = 8;

/// The associated data of a module: the AAD prefix (empty if there is none), the file's identifier (`aad_file_unique`), the type of the
/// module and its ordinals (`Encryption.md`, section 4.4). `row_group` and `column` are used for all modules except the footer,
/// `page` only for data pages and their headers.
///
/// Pass the prefix that you expect, not the prefix that the file states. If the file states an identifier of another length than
/// [`FILE_UNIQUE`], refuse the file.
///
/// # Errors
/// [`Error::Argument`] if an ordinal is negative, or if an ordinal that is not used is not 0.
pub fn module_aad(
    prefix: &[u8],
    file_unique: &[u8; FILE_UNIQUE],
    module: Module,
    row_group: i16,
    column: i16,
    page: i16,
) -> Result<Vec<u8>> {
    let ordinals = [row_group, column, page];
    let (used, others) = ordinals.split_at(module.ordinals());
    if used.iter().any(|ordinal| *ordinal < 0) || others.iter().any(|ordinal| *ordinal != 0) {
        let rule = match used.len() {
            0 => "no ordinals: set row group, column and page to 0",
            2 => {
                "the ordinals of a row group and a column: set them to numbers from 0 to 32767, and page to 0"
            }
            _ => "the ordinals of a row group, a column and a page: set them to numbers from 0 to 32767",
        };
        let (module, given) =
            (module.name(), format!("row group {row_group}, column {column} and page {page}"));
        let what = format!("{given} are not valid for the module type {module}, which has {rule}");
        return Err(Error::Argument(what));
    }
    Ok(FileAad::new(prefix, file_unique).of(module, Place { row_group, column, page }))
}

impl Module {
    /// The types, in the order of their numbers.
    pub fn all() -> [Module; 10] {
        TABLE.map(|(module, ..)| module)
    }

    /// The type of a page or of its header.
    pub(crate) const fn of_page(is_dictionary: bool, is_header: bool) -> Module {
        match (is_dictionary, is_header) {
            (true, true) => Module::DictionaryPageHeader,
            (true, false) => Module::DictionaryPage,
            (false, true) => Module::DataPageHeader,
            (false, false) => Module::DataPage,
        }
    }

    /// The number of ordinals of a module of this type: 0, 2 (row group and column) or 3 (row group, column and page).
    fn ordinals(self) -> usize {
        TABLE[self as usize].1
    }

    pub(crate) fn name(self) -> &'static str {
        TABLE[self as usize].2
    }
}

/// The types in the order of their numbers: each type with the number of its ordinals and with its name.
const TABLE: [(Module, usize, &str); 10] = [
    (Module::Footer, 0, "footer"),
    (Module::ColumnMetaData, 2, "column metadata"),
    (Module::DataPage, 3, "data page"),
    (Module::DictionaryPage, 2, "dictionary page"),
    (Module::DataPageHeader, 3, "header of a data page"),
    (Module::DictionaryPageHeader, 2, "header of a dictionary page"),
    (Module::ColumnIndex, 2, "column index"),
    (Module::OffsetIndex, 2, "offset index"),
    (Module::BloomFilterHeader, 2, "header of a Bloom filter"),
    (Module::BloomFilterBitset, 2, "Bloom filter"),
];

/// The part of the associated data that all modules of a file share: the AAD prefix and the file's identifier. None if modules have
/// no associated data, as in files of DuckDB.
#[derive(Debug)]
pub(crate) struct FileAad(pub(crate) Option<Vec<u8>>);

impl FileAad {
    pub(crate) fn new(prefix: &[u8], file_unique: &[u8; FILE_UNIQUE]) -> FileAad {
        FileAad(Some([prefix, file_unique].concat()))
    }

    pub(crate) fn is_missing(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the associated data of a module. They contain only those ordinals of the place that modules of this type have.
    pub(crate) fn of(&self, module: Module, Place { row_group, column, page }: Place) -> Vec<u8> {
        let Some(bytes) = &self.0 else { return Vec::new() };
        let ordinals = [row_group, column, page].map(i16::to_le_bytes);
        [bytes, &[module as u8][..], ordinals[..module.ordinals()].as_flattened()].concat()
    }

    /// The associated data of a page or of its header. A dictionary page has no ordinal.
    pub(crate) fn page(&self, chunk: Place, ordinal: Option<i16>, is_header: bool) -> Vec<u8> {
        let place = Place { page: ordinal.unwrap_or_default(), ..chunk };
        self.of(Module::of_page(ordinal.is_none(), is_header), place)
    }
}

/// The place of a module: the ordinals of its row group, of its column and of its page. For a column chunk, the page is 0.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    pub(crate) row_group: i16,
    pub(crate) column: i16,
    pub(crate) page: i16,
}

impl Place {
    /// The place of a column chunk. None if an ordinal is not in the range of the format.
    pub(crate) fn new(row_group: i64, column: usize) -> Option<Place> {
        let row_group = i16::try_from(row_group).ok().filter(|ordinal| *ordinal >= 0)?;
        Some(Place { row_group, column: i16::try_from(column).ok()?, page: 0 })
    }
}
