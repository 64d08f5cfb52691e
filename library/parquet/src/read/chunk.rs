//! An encrypted column chunk: its pages, its indexes and its Bloom filter.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use lockstep::ReadAt;
use lockstep::hazmat::Key;
use lockstep::hazmat::share::{at_once, lock};
use zeroize::Zeroizing;

use super::PlainView;
use crate::aad::{Module, Place};
use crate::error::{Error, Result, cut_off, ensure, malformed, read};
use crate::format::MAX_PAGE_HEADER;
use crate::modules::{self, EncryptedModule, Kind, LENGTH, Protection, module_len, open_one};
use crate::page;
use crate::thrift::Struct;

/// Number of encrypted bytes that a thread reads and decrypts at once. A piece of this size stays in the cache of the core
/// until it is decrypted, and the engine does not divide it among threads. A longer page is a piece of its own.
const PIECE: usize = 1 << 20;

/// A view keeps at most this number of buffers for encrypted bytes, each of at most this number of bytes.
const MAX_BUFFERS: usize = 16;
const MAX_BUFFER: usize = 16 << 20;

/// An encrypted column chunk.
pub(super) struct Chunk {
    pub(super) key: Arc<Key>,
    pub(super) place: Place,
    /// The range of the pages in the file.
    pub(super) range: Range<u64>,
    /// True if the first page is a dictionary.
    pub(super) has_dictionary: bool,
    /// The path of the column, for errors.
    pub(super) column: Arc<str>,
    /// The pages found so far: they follow each other from the start of the chunk.
    pub(super) found: Mutex<Vec<Page>>,
}

/// The place of a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page {
    /// The number of the page in the chunk; the dictionary page counts as a page.
    number: usize,
    start: u64,
    /// The lengths of the two modules of the page: its header and its body.
    header: usize,
    body: usize,
}

impl Page {
    /// The length of the page with its header.
    fn len(&self) -> usize {
        self.header + self.body
    }

    fn end(&self) -> u64 {
        self.start + self.len() as u64
    }
}

impl Chunk {
    /// The ordinal of a data page; None for the dictionary page.
    fn ordinal(&self, page: &Page) -> Option<i16> {
        // The conversion does not wrap around: the function `page` refuses chunks with more pages than there are ordinals. Some
        // writers let the ordinal wrap around in such chunks.
        page.number.checked_sub(usize::from(self.has_dictionary)).map(|ordinal| ordinal as i16)
    }

    /// Returns the page at the offset `start` of the file. `length` returns the length field at an offset, or None if the field has
    /// not been read. In that case the result is None, too.
    fn page(
        &self,
        number: usize,
        start: u64,
        length: impl Fn(u64) -> Result<Option<[u8; LENGTH]>>,
    ) -> Result<Option<Page>> {
        let damaged = |how| {
            let column = &self.column;
            malformed(format!("a module of column {column} {how}: it is not encrypted, or damaged"))
        };
        let module = |at| -> Result<Option<usize>> {
            let Some(length) = length(at)? else { return Ok(None) };
            module_len(&length).map(Some).map_err(|_| damaged("has no valid length"))
        };
        let page = |header, body| {
            let page = Page { number, start, header, body };
            let is_inside = header <= MAX_PAGE_HEADER && page.end() <= self.range.end;
            ensure(is_inside, || damaged("is longer than its column chunk")).map(|()| page)
        };
        let Some(header) = module(start)? else { return Ok(None) };
        let page_count_error =
            || malformed(format!("column {} has a chunk with more than 32768 pages", self.column));
        ensure(number <= i16::MAX as usize + usize::from(self.has_dictionary), page_count_error)?;
        // The length field of the second module is read only if it is in the chunk.
        page(header, LENGTH)?;
        let Some(body) = module(start + header as u64)? else { return Ok(None) };
        page(header, body).map(Some)
    }

    /// Returns the pages that the bytes contain completely. The bytes begin with the page `first`.
    fn pages_in(&self, first: Page, bytes: &[u8]) -> Result<Vec<Page>> {
        let (mut pages, mut last) = (vec![first], first);
        let length = |at: u64| {
            let rest = bytes.get((at - first.start) as usize..);
            Ok(rest.and_then(|rest| rest.first_chunk::<LENGTH>()).copied())
        };
        while let Some(page) = self.page(last.number + 1, last.end(), length)?
            && page.end() - first.start <= bytes.len() as u64
        {
            pages.push(page);
            last = page;
        }
        let mut found = lock(&self.found);
        let known = found.len();
        found.extend(pages.iter().filter(|page| page.number >= known));
        Ok(pages)
    }

    fn describe(&self, page: &Page, is_header: bool) -> String {
        let module = Module::of_page(self.ordinal(page).is_none(), is_header);
        let Place { row_group, .. } = self.place;
        format!("{} (page {} of column {} in row group {row_group})", module.name(), page.number, self.column)
    }
}

/// The part of a read that no thread has taken yet.
struct Rest<'a> {
    /// The offset in the view.
    offset: u64,
    out: &'a mut [u8],
}

impl<'a> Rest<'a> {
    /// Removes the first `count` bytes from `out` and returns them. If `out` has fewer bytes, all are returned.
    fn take(&mut self, count: usize) -> &'a mut [u8] {
        let count = count.min(self.out.len());
        self.offset += count as u64;
        self.out.split_off_mut(..count).unwrap_or_default()
    }
}

/// Pages that a thread decrypts, and the memory for their plain bytes. A piece has several pages that are read completely, or a single
/// page of which only a part is read.
struct Piece<'a> {
    pages: Vec<Page>,
    /// The number of plain bytes before the part that is read.
    skipped: usize,
    out: &'a mut [u8],
}

impl<S: ReadAt> PlainView<S> {
    /// Reads a part of a chunk. The part is within the region. Several threads decrypt a long part, piece by piece; one of
    /// them reads at a time.
    pub(super) fn read_chunk(&self, chunk: &Chunk, offset: u64, out: &mut [u8]) -> Result<()> {
        let reader = Arc::clone(&self.readers);
        // The number of reads in progress: each read has a handle, and the view has one more. All reads share the processors.
        let readers = Arc::strong_count(&reader) - 1;
        let workers = match self.source.is_serial() {
            true => 1,
            false => (self.engine.threads() / readers).min(out.len() / PIECE).max(1),
        };
        let (rest, failure) = (Mutex::new(Rest { offset, out }), OnceLock::new());
        at_once(vec![(); workers], |()| {
            let mut buffer = lock(&self.buffers).pop().unwrap_or_default();
            let mut read = || -> Result<()> {
                while failure.get().is_none() {
                    let next = self.next_piece(chunk, &mut lock(&rest), &mut buffer)?;
                    let Some(piece) = next else { break };
                    self.open_piece(chunk, piece, &buffer)?;
                }
                Ok(())
            };
            // `failure` keeps only the first error.
            let _ = read().map_err(|error| failure.set(error));
            let mut buffers = lock(&self.buffers);
            if buffer.capacity() <= MAX_BUFFER && buffers.len() < MAX_BUFFERS {
                buffers.push(buffer);
            }
        });
        failure.into_inner().map_or(Ok(()), Err)
    }

    /// Reads the next piece that must be decrypted into the buffer, which then begins with the pages of the piece. Pages before the
    /// piece that are in the cache are copied from the cache to the output.
    fn next_piece<'a>(
        &self,
        chunk: &Chunk,
        rest: &mut Rest<'a>,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Piece<'a>>> {
        while !rest.out.is_empty() {
            let page = self.page_at(chunk, rest.offset)?;
            let skipped = (rest.offset - page.start) as usize;
            if let Some(plain) = self.cache.get(page.start) {
                let part = rest.take(plain.len() - skipped);
                part.copy_from_slice(&plain[skipped..skipped + part.len()]);
                continue;
            }
            let is_partial = skipped > 0 || rest.out.len() < page.len();
            let len = if is_partial { page.len() } else { rest.out.len().min(PIECE).max(page.len()) };
            // A buffer that is already longer, because an earlier page was longer, is not shortened.
            if buffer.len() < len {
                buffer.resize(len, 0);
            }
            self.source.read_exact_at(&mut buffer[..len], page.start).map_err(read)?;
            let pages = chunk.pages_in(page, &buffer[..len])?;
            let out = rest.take(pages.iter().map(Page::len).sum::<usize>() - skipped);
            return Ok(Some(Piece { pages, skipped, out }));
        }
        Ok(None)
    }

    /// Returns the page that contains the byte at an offset of the view.
    fn page_at(&self, chunk: &Chunk, offset: u64) -> Result<Page> {
        let mut found = lock(&chunk.found);
        let index = found.partition_point(|page| page.end() <= offset);
        if let Some(page) = found.get(index) {
            return Ok(*page);
        }
        loop {
            let start = found.last().map_or(chunk.range.start, Page::end);
            let length = |at| {
                let mut length = [0; LENGTH];
                self.source.read_exact_at(&mut length, at).map_err(read)?;
                Ok(Some(length))
            };
            let Some(page) = chunk.page(found.len(), start, length)? else {
                unreachable!("each length field was read")
            };
            found.push(page);
            if page.end() > offset {
                return Ok(page);
            }
        }
    }

    /// Decrypts a piece. `bytes` begins with the pages of the piece.
    fn open_piece(&self, chunk: &Chunk, piece: Piece<'_>, bytes: &[u8]) -> Result<()> {
        let Piece { pages, skipped, out } = piece;
        match &pages[..] {
            [page] if out.len() < page.len() => {
                let mut whole = Zeroizing::new(vec![0; page.len()]);
                self.decrypt_pages(chunk, &pages, bytes, &mut whole)?;
                out.copy_from_slice(&whole[skipped..skipped + out.len()]);
                self.cache.insert(page.start, std::mem::take(&mut *whole));
                Ok(())
            }
            _ => self.decrypt_pages(chunk, &pages, bytes, out),
        }
    }

    /// Decrypts the headers and bodies of whole pages in one batch.
    fn decrypt_pages(&self, chunk: &Chunk, pages: &[Page], bytes: &[u8], out: &mut [u8]) -> Result<()> {
        let mut headers = Zeroizing::new(Vec::with_capacity(pages.len()));
        for page in pages {
            let header = page.header.checked_sub(Kind::Gcm.overhead());
            headers.push(vec![0; header.ok_or_else(|| malformed("a page header is too short"))?]);
            ensure(page.body >= self.pages.overhead(), || malformed("a page is too short"))?;
        }
        let (mut modules, mut rooms) = (Vec::with_capacity(2 * pages.len()), Vec::with_capacity(pages.len()));
        let (mut sealed, mut plain) = (bytes, out);
        for (page, header) in pages.iter().zip(headers.iter_mut()) {
            let (first, second);
            (first, sealed) = sealed.split_at(page.header);
            (second, sealed) = sealed.split_at(page.body);
            let whole = plain.split_off_mut(..page.len()).expect("the output has the length of the pages");
            let (room, body) = whole.split_at_mut(page.len() - self.body_len(page));
            rooms.push(room);
            let protection = |kind, is_header| {
                let aad = self.aad.page(chunk.place, chunk.ordinal(page), is_header);
                Protection { key: &chunk.key, kind, aad }
            };
            modules.push(EncryptedModule::on_host(protection(Kind::Gcm, true), first, header)?);
            modules.push(EncryptedModule::on_host(protection(self.pages, false), second, body)?);
        }
        if let Some(index) = modules::open(self.engine.planner(), &mut modules)? {
            let module = chunk.describe(&pages[index / 2], index % 2 == 0);
            return Err(Error::NotAuthentic(module));
        }
        let mut parts = pages.iter().zip(headers.iter()).zip(rooms);
        parts.try_for_each(|((page, header), room)| self.write_header(chunk, page, header, room))
    }

    /// The length of the plain page without its header.
    fn body_len(&self, page: &Page) -> usize {
        page.body - self.pages.overhead()
    }

    /// Writes the plain header of a page to `room`, the memory in front of the plain body of the page.
    fn write_header(&self, chunk: &Chunk, page: &Page, plain: &[u8], room: &mut [u8]) -> Result<()> {
        let mut header = Struct::read_module(plain, "header of a page")?;
        let body = self.body_len(page);
        // The header states the length of the encrypted page or, as DuckDB writes it, the length of the plain page.
        let is_size_right = [page.body, body].contains(&page::size(&header)?);
        if page::is_dictionary(&header)? != chunk.ordinal(page).is_none() || !is_size_right {
            return Err(malformed(format!("the {} contradicts the page", chunk.describe(page, true))));
        }
        page::set_size(&mut header, body)?;
        let encoded = header.encode_padded(room.len());
        room.copy_from_slice(&encoded.ok_or_else(|| malformed("a page header cannot be written anew"))?);
        Ok(())
    }

    /// Decrypts consecutive modules of a column chunk. Returns the plaintexts, followed by zeros up to the total length of the
    /// modules.
    pub(super) fn open_modules(&self, chunk: &Chunk, modules: &[Module], sealed: &[u8]) -> Result<Vec<u8>> {
        let Chunk { key, place, column, .. } = chunk;
        let (mut plain, mut rest) = (Vec::with_capacity(sealed.len()), sealed);
        for module in modules {
            let what = format!("{} of column {column} in row group {}", module.name(), place.row_group);
            let too_long = || malformed(format!("the {what} is longer than the file states"));
            let (sealed, after) = rest.split_at_checked(module_len(rest)?).ok_or_else(too_long)?;
            let mut opened = open_one(&self.engine, key, &self.aad.of(*module, *place), sealed, &what)?;
            if *module == Module::BloomFilterHeader {
                // In the plain form, the bits must directly follow the header. The bytes that parquet-java may have written after
                // the header are therefore removed.
                let (_, len) = Struct::read(&opened)?.ok_or_else(|| cut_off(&what))?;
                opened.truncate(len);
            }
            plain.extend(opened);
            rest = after;
        }
        let length_error =
            || malformed(format!("an index or a filter of column {column} is shorter than the file states"));
        ensure(rest.is_empty(), length_error)?;
        plain.resize(sealed.len(), 0);
        Ok(plain)
    }
}
