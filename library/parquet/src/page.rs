//! Page headers.

use crate::error::{Result, malformed};
use crate::format::page;
use crate::thrift::{Struct, Value, missing};

/// A page header.
#[derive(Debug)]
pub(crate) struct PageHeader {
    fields: Struct,
}

impl PageHeader {
    pub(crate) fn new(fields: Struct) -> PageHeader {
        PageHeader { fields }
    }

    /// True for a dictionary page, false for a data page of either version.
    pub(crate) fn is_dictionary(&self) -> Result<bool> {
        match self.fields.int(page::TYPE) {
            Some(page::DICTIONARY) => Ok(true),
            Some(page::DATA | page::DATA_V2) => Ok(false),
            Some(kind) => Err(malformed(format!("a page has the unknown type {kind}"))),
            None => Err(missing("the type of a page")),
        }
    }

    /// The length of the page in the file, in bytes.
    pub(crate) fn size(&self) -> Result<usize> {
        let size = self.fields.int(page::COMPRESSED_SIZE).ok_or_else(|| missing("the size of a page"))?;
        usize::try_from(size).map_err(|_| malformed("a page has a negative size"))
    }

    /// The header of the same page with another length in the file. A checksum is removed, because it belongs to the old bytes.
    pub(crate) fn with_size(mut self, size: usize) -> Result<Struct> {
        let size = i32::try_from(size).map_err(|_| malformed("a page is too long"))?;
        self.fields.set(page::COMPRESSED_SIZE, Value::I32(size));
        self.fields.remove(page::CRC);
        // A view adds a field for padding, with a higher number.
        if self.fields.sort() == i16::MAX || self.fields.is_full() {
            return Err(malformed("a page header has no room for another field"));
        }
        Ok(self.fields)
    }
}
