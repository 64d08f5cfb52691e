//! The associated data of modules (`Encryption.md`, section 4.4).

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

/// The associated data of a module: the AAD prefix and the file's identifier (`aad_file_unique`), concatenated, then the
/// type of the module and its ordinals (`Encryption.md`, section 4.4). `page` is used only for data pages and their headers.
/// `row_group` and `column` are used for all modules except the footer.
pub fn module_aad(file_aad: &[u8], module: Module, row_group: i16, column: i16, page: i16) -> Vec<u8> {
    let place = Place { row_group, column };
    let file = FileAad::new(file_aad, &[]);
    match module {
        Module::Footer => file.footer(),
        Module::DataPage | Module::DataPageHeader => file.page(module, place, page),
        _ => file.column(module, place),
    }
}

impl Module {
    /// The types, in the order of their numbers.
    pub const ALL: [Module; 10] = [
        Module::Footer,
        Module::ColumnMetaData,
        Module::DataPage,
        Module::DictionaryPage,
        Module::DataPageHeader,
        Module::DictionaryPageHeader,
        Module::ColumnIndex,
        Module::OffsetIndex,
        Module::BloomFilterHeader,
        Module::BloomFilterBitset,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Module::Footer => "footer",
            Module::ColumnMetaData => "column metadata",
            Module::DataPage => "data page",
            Module::DictionaryPage => "dictionary page",
            Module::DataPageHeader => "header of a data page",
            Module::DictionaryPageHeader => "header of a dictionary page",
            Module::ColumnIndex => "column index",
            Module::OffsetIndex => "offset index",
            Module::BloomFilterHeader => "header of a Bloom filter",
            Module::BloomFilterBitset => "Bloom filter",
        }
    }
}

/// The part of the associated data that all modules of a file share: the AAD prefix and the file's identifier.
#[derive(Debug, Clone)]
pub(crate) struct FileAad {
    /// None if modules have no associated data.
    bytes: Option<Vec<u8>>,
}

impl FileAad {
    pub(crate) fn new(prefix: &[u8], file_unique: &[u8]) -> FileAad {
        FileAad { bytes: Some([prefix, file_unique].concat()) }
    }

    /// No associated data, as in files of DuckDB.
    pub(crate) fn missing() -> FileAad {
        FileAad { bytes: None }
    }

    pub(crate) fn is_missing(&self) -> bool {
        self.bytes.is_none()
    }

    pub(crate) fn footer(&self) -> Vec<u8> {
        self.with(Module::Footer, &[])
    }

    /// The associated data of modules of a column chunk other than data pages and their headers.
    pub(crate) fn column(&self, module: Module, place: Place) -> Vec<u8> {
        self.with(module, &[place.row_group, place.column])
    }

    /// The associated data of data pages and their headers.
    pub(crate) fn page(&self, module: Module, place: Place, page: i16) -> Vec<u8> {
        self.with(module, &[place.row_group, place.column, page])
    }

    fn with(&self, module: Module, ordinals: &[i16]) -> Vec<u8> {
        let Some(bytes) = &self.bytes else { return Vec::new() };
        let mut aad = Vec::with_capacity(bytes.len() + 7);
        aad.extend_from_slice(bytes);
        aad.push(module as u8);
        ordinals.iter().for_each(|ordinal| aad.extend_from_slice(&ordinal.to_le_bytes()));
        aad
    }
}

/// The place of a column chunk: the ordinals of its row group and of its column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) row_group: i16,
    pub(crate) column: i16,
}

impl Place {
    /// None if an ordinal is not in the range of the format.
    pub(crate) fn new(row_group: i64, column: usize) -> Option<Place> {
        let row_group = i16::try_from(row_group).ok().filter(|ordinal| *ordinal >= 0)?;
        Some(Place { row_group, column: i16::try_from(column).ok()? })
    }
}
