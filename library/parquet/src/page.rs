//! Page headers.

use crate::error::{Result, ensure, malformed, missing};
use crate::format::page;
use crate::thrift::{Struct, Value};

/// True for the header of a dictionary page, false for the header of a data page of either version.
pub(crate) fn is_dictionary(header: &Struct) -> Result<bool> {
    match header.int(page::TYPE) {
        Some(page::DICTIONARY) => Ok(true),
        Some(page::DATA | page::DATA_V2) => Ok(false),
        Some(kind) => Err(malformed(format!("a page has the unknown type {kind}"))),
        None => Err(missing("the type of a page")),
    }
}

/// The length of the page in the file, in bytes.
pub(crate) fn size(header: &Struct) -> Result<usize> {
    let size = header.int(page::COMPRESSED_SIZE).ok_or_else(|| missing("the size of a page"))?;
    usize::try_from(size).map_err(|_| malformed("a page has a negative size"))
}

/// Sets another length of the page in the file. A checksum is removed, because it belongs to the old bytes.
pub(crate) fn set_size(header: &mut Struct, size: usize) -> Result<()> {
    let size = i32::try_from(size).map_err(|_| malformed("a page is too long"))?;
    header.set(page::COMPRESSED_SIZE, Value::i32(size));
    header.remove(page::CRC);
    // The plain view adds a padding field, whose number is higher than all others, to the header.
    ensure(header.has_room(), || malformed("a page header has no room for another field"))
}
