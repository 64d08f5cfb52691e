//! The pages of a column chunk.

use std::collections::HashMap;
use std::io::Write;
use std::ops::Range;

use lockstep::ReadAt;
use lockstep::hazmat::Key;

use super::{Column, Writer};
use crate::error::{Result, ensure, malformed, read, unsupported};
use crate::format::{MAGIC, MAX_PAGE_HEADER, chunk_range, column, dictionary_offset, outside};
use crate::modules::{Kind, Protection, seal};
use crate::page;
use crate::thrift::{Struct, Value};

/// Number of bytes that are read and encrypted at once, so that they stay in a cache of the processor.
const PIECE: usize = 4 << 20;
/// Maximum number of pages that are encrypted at once. It limits the memory for small pages.
const MAX_PAGES: usize = 4096;

/// The positions of the pages of a chunk in the output.
pub(super) enum Placement {
    /// The offset of each page in the output is its offset in the input plus this number.
    Moved(i64),
    /// For each offset in the input, the offset and the length in the output.
    Pages(HashMap<i64, (i64, i32)>),
}

/// The state of the encryption of a chunk: the key, and the positions of the pages that have been encrypted so far.
struct Pages<'a> {
    key: &'a Key,
    by_offset: HashMap<i64, (i64, i32)>,
    /// The offsets of the dictionary page and of the first data page in the output.
    dictionary: Option<i64>,
    data: Option<i64>,
    count: usize,
}

/// A page in a buffer.
struct Page {
    is_dictionary: bool,
    header: Vec<u8>,
    /// The offsets in the buffer of the header, of the page after the header, and of the end of the page.
    start: usize,
    body: usize,
    end: usize,
}

impl<'a, S: ReadAt, W: Write> Writer<'a, S, W> {
    /// Writes the pages of a column chunk, and updates the metadata of the column.
    pub(super) fn pages(&mut self, meta: &mut Struct, column: Column<'a>) -> Result<Placement> {
        let (start, len) = chunk_range(meta)?;
        self.check_range(start, len)?;
        meta.remove(column::INDEX_PAGE_OFFSET);
        let begin = self.at;
        let Some(key) = &column.treatment.key else {
            let moved = begin as i64 - start as i64;
            self.copy(start, len)?;
            for field in [column::DATA_PAGE_OFFSET, column::DICTIONARY_PAGE_OFFSET] {
                if let Some(offset) = meta.int(field).filter(|offset| *offset > 0) {
                    meta.set(field, Value::i64(offset.saturating_add(moved)));
                }
            }
            return Ok(Placement::Moved(moved));
        };
        let mut pages = Pages { key, by_offset: HashMap::new(), dictionary: None, data: None, count: 0 };
        self.encrypt_pages(&mut pages, column, start..start + len)?;
        if dictionary_offset(meta).is_some() && pages.dictionary.is_none() && len > 0 {
            let path = &column.treatment.leaf.path;
            let what = format!("column {path} without the dictionary page that its metadata state");
            return Err(unsupported(what));
        }
        meta.set(column::DATA_PAGE_OFFSET, Value::i64(pages.data.unwrap_or(0)));
        match pages.dictionary {
            Some(offset) => meta.set(column::DICTIONARY_PAGE_OFFSET, Value::i64(offset)),
            None => meta.remove(column::DICTIONARY_PAGE_OFFSET),
        }
        meta.set(column::TOTAL_COMPRESSED_SIZE, Value::i64((self.at - begin) as i64));
        if let Some(size) = meta.int(column::TOTAL_UNCOMPRESSED_SIZE) {
            let overhead = (pages.count * Kind::Gcm.overhead()) as i64;
            meta.set(column::TOTAL_UNCOMPRESSED_SIZE, Value::i64(size.saturating_add(overhead)));
        }
        Ok(Placement::Pages(pages.by_offset))
    }

    /// Reads, encrypts and writes pages, batch by batch.
    fn encrypt_pages(&mut self, pages: &mut Pages<'_>, column: Column<'_>, range: Range<u64>) -> Result<()> {
        let (mut at, mut window) = (range.start, PIECE);
        let (mut buffer, mut sealed) = (Vec::new(), Vec::new());
        while at < range.end {
            buffer.resize(window.min((range.end - at) as usize), 0);
            self.source.read_exact_at(&mut buffer, at).map_err(read)?;
            let (batch, needed) = pages_in(&buffer, self.pages)?;
            let Some(last) = batch.last() else {
                if buffer.len() as u64 == range.end - at {
                    let path = &column.treatment.leaf.path;
                    return Err(malformed(format!("a page of column {path} is cut off")));
                }
                window = needed;
                continue;
            };
            let mut sealings = Vec::with_capacity(2 * batch.len());
            let mut offset = self.at;
            for page in &batch {
                let is_in_place = !page.is_dictionary || pages.count == 0;
                ensure(is_in_place, || malformed("a dictionary page is not the first page"))?;
                let number = pages.count - usize::from(pages.dictionary.is_some());
                let what =
                    "a column chunk with more than 32768 pages: write smaller row groups or larger pages";
                let ordinal = i16::try_from(number).map_err(|_| unsupported(what))?;
                let ordinal = (!page.is_dictionary).then_some(ordinal);
                let protection = |kind, is_header| {
                    let aad = self.aad.page(column.place, ordinal, is_header);
                    Protection { key: pages.key, kind, aad }
                };
                let body = &buffer[page.body..page.end];
                sealings.push((protection(Kind::Gcm, true), &page.header[..]));
                sealings.push((protection(self.pages, false), body));
                let len = page.header.len() + Kind::Gcm.overhead() + body.len() + self.pages.overhead();
                let stated = i32::try_from(len).map_err(|_| unsupported("a page of 2 GiB or more"))?;
                pages.by_offset.insert((at + page.start as u64) as i64, (offset as i64, stated));
                let first = if page.is_dictionary { &mut pages.dictionary } else { &mut pages.data };
                first.get_or_insert(offset as i64);
                pages.count += 1;
                offset += len as u64;
            }
            sealed.clear();
            seal(self.engine, sealings, &mut sealed)?;
            self.put(&sealed)?;
            at += last.end as u64;
            window = PIECE;
        }
        Ok(())
    }

    /// Copies bytes of the input.
    pub(super) fn copy(&mut self, start: u64, len: u64) -> Result<()> {
        let mut buffer = vec![0; len.min(PIECE as u64) as usize];
        let (mut at, end) = (start, start + len);
        while at < end {
            let piece = &mut buffer[..(end - at).min(PIECE as u64) as usize];
            self.source.read_exact_at(piece, at).map_err(read)?;
            at += piece.len() as u64;
            self.put(piece)?;
        }
        Ok(())
    }

    /// Checks that a range of the input is between its magic bytes and its footer.
    pub(super) fn check_range(&mut self, start: u64, len: u64) -> Result<()> {
        let end = start.checked_add(len).filter(|end| *end <= self.limit);
        ensure(len == 0 || end.is_some() && start >= MAGIC.len() as u64, outside)?;
        // The limit is twice the length of the input, because the first bytes of filters are read twice.
        self.used = self.used.saturating_add(len);
        ensure(self.used <= self.limit.saturating_mul(2), || malformed("parts of the file overlap"))
    }
}

/// Returns the pages that a buffer contains completely, each with the header that it gets in the encrypted file. If there is no
/// such page, the second value is the number of bytes to read next.
fn pages_in(buffer: &[u8], kind: Kind) -> Result<(Vec<Page>, usize)> {
    let (mut pages, mut start) = (Vec::new(), 0);
    loop {
        if pages.len() == MAX_PAGES {
            return Ok((pages, 0));
        }
        let rest = &buffer[start..];
        let Some((mut header, used)) = Struct::read(rest)? else {
            ensure(rest.len() <= MAX_PAGE_HEADER, || malformed("a page header is too long"))?;
            return Ok((pages, 2 * rest.len().max(1 << 10)));
        };
        let (is_dictionary, size) = (page::is_dictionary(&header)?, page::size(&header)?);
        let (body, end) = (start + used, start + used + size);
        if end > buffer.len() {
            return Ok((pages, end - start));
        }
        page::set_size(&mut header, size + kind.overhead())?;
        pages.push(Page { is_dictionary, header: header.encode(), start, body, end });
        start = end;
    }
}
