//! The pages of an encrypted column chunk.

use std::sync::{Arc, Mutex, PoisonError};

use lockstep::ReadAt;
use lockstep::hazmat::share::at_once;
use zeroize::{Zeroize, Zeroizing};

use super::PlainView;
use super::layout::Region;
use crate::aad::{Module, Place};
use crate::batch::{self, EncryptedModule, Protection};
use crate::error::{Error, Result, malformed, read};
use crate::format::MAX_PAGE_HEADER;
use crate::keys::ModuleKey;
use crate::modules::{Kind, LENGTH, module_len};
use crate::page::PageHeader;
use crate::thrift::Struct;

/// Number of encrypted bytes that a thread reads and decrypts at once. A piece of this size stays in the cache of the core
/// until it is decrypted, and the engine does not divide it among threads. A longer page is a piece of its own.
const PIECE: usize = 1 << 20;

/// An encrypted column chunk.
pub(super) struct Chunk {
    pub(super) key: Arc<ModuleKey>,
    pub(super) place: Place,
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
    /// The lengths of the two modules.
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
        // If there are more pages than ordinals, some writers let the number wrap around, and others refuse to write. `page`
        // checks this.
        page.number.checked_sub(usize::from(self.has_dictionary)).map(|ordinal| ordinal as i16)
    }

    /// The page at an offset of the file. `length` returns the length field at an offset, if it is known.
    fn page(
        &self,
        region: &Region,
        number: usize,
        start: u64,
        length: impl Fn(u64) -> Result<Option<[u8; LENGTH]>>,
    ) -> Result<Option<Page>> {
        let column = &self.column;
        let module = |at| -> Result<Option<usize>> {
            let Some(length) = length(at)? else { return Ok(None) };
            let what = || {
                format!("a module of column {column} has no valid length: it is not encrypted, or damaged")
            };
            module_len(&length).map(Some).map_err(|_| malformed(what()))
        };
        let is_inside = |header, body| {
            header <= MAX_PAGE_HEADER && Page { number, start, header, body }.end() <= region.end
        };
        let outside = || {
            malformed(format!(
                "a module of column {column} is longer than its column chunk: it is not encrypted, or damaged"
            ))
        };
        let Some(header) = module(start)? else { return Ok(None) };
        if number > i16::MAX as usize + usize::from(self.has_dictionary) {
            return Err(malformed(format!("column {column} has a chunk with more than 32768 pages")));
        }
        // The length field of the second module is read only if it is in the chunk.
        if !is_inside(header, LENGTH) {
            return Err(outside());
        }
        let Some(body) = module(start + header as u64)? else { return Ok(None) };
        if is_inside(header, body) { Ok(Some(Page { number, start, header, body })) } else { Err(outside()) }
    }

    fn describe(&self, page: &Page, is_header: bool) -> String {
        let module = Module::of_page(self.ordinal(page).is_none(), is_header);
        let Place { row_group, .. } = self.place;
        format!("{} (page {} of column {} in row group {row_group})", module.name(), page.number, self.column)
    }
}

/// The part that no thread has taken yet.
struct Rest<'a> {
    /// The offset in the view.
    offset: u64,
    out: &'a mut [u8],
}

impl<'a> Rest<'a> {
    /// Takes the next `count` bytes, or all if there are fewer.
    fn take(&mut self, count: usize) -> &'a mut [u8] {
        let count = count.min(self.out.len());
        self.offset += count as u64;
        self.out.split_off_mut(..count).unwrap_or_default()
    }
}

/// Pages that a thread decrypts. The first `len` bytes of its buffer start with the encrypted pages.
struct Piece<'a> {
    pages: Vec<Page>,
    len: usize,
    /// The offset of `out` in the view.
    offset: u64,
    out: &'a mut [u8],
}

impl<S: ReadAt> PlainView<S> {
    /// Reads a part of a chunk. The part is within the region. Several threads decrypt a long part, piece by piece; one of
    /// them reads at a time.
    pub(super) fn read_chunk(
        &self,
        region: &Region,
        chunk: &Chunk,
        offset: u64,
        out: &mut [u8],
    ) -> Result<()> {
        let reader = Arc::clone(&self.readers);
        // The reads in progress, without the view's own handle. All of them share the processors.
        let readers = Arc::strong_count(&reader) - 1;
        let workers = match self.source.is_serial() {
            true => 1,
            false => (self.engine.threads() / readers).min(out.len() / PIECE).max(1),
        };
        let rest = Mutex::new(Ok(Rest { offset, out }));
        at_once(vec![(); workers], |()| self.read_pieces(region, chunk, &rest));
        rest.into_inner().unwrap_or_else(PoisonError::into_inner).map(|_| ())
    }

    /// Reads and decrypts pieces until none is left, or until a thread fails.
    fn read_pieces(&self, region: &Region, chunk: &Chunk, rest: &Mutex<Result<Rest<'_>>>) {
        let lock = || rest.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = self.buffer();
        loop {
            let next = match &mut *lock() {
                Ok(rest) => self.next_piece(region, chunk, rest, &mut buffer),
                Err(_) => break,
            };
            let outcome = match next {
                Ok(Some(piece)) => {
                    self.open_pages(chunk, &piece.pages, &buffer[..piece.len], piece.offset, piece.out)
                }
                Ok(None) => break,
                Err(error) => Err(error),
            };
            if let Err(error) = outcome {
                let mut rest = lock();
                if rest.is_ok() {
                    *rest = Err(error);
                }
                break;
            }
        }
        self.keep_buffer(buffer);
    }

    /// Reads the next piece that is to be decrypted. Parts that are in the cache are copied from there.
    fn next_piece<'a>(
        &self,
        region: &Region,
        chunk: &Chunk,
        rest: &mut Rest<'a>,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Piece<'a>>> {
        while !rest.out.is_empty() {
            let offset = rest.offset;
            let page = self.page_at(region, chunk, offset)?;
            if let Some(plain) = self.cache.get(page.start) {
                let start = (offset - page.start) as usize;
                let part = rest.take(plain.len() - start);
                part.copy_from_slice(&plain[start..start + part.len()]);
                continue;
            }
            let end = (offset + rest.out.len() as u64).min(page.start + PIECE as u64).max(page.end());
            let len = (end - page.start) as usize;
            // The buffer is longer only if an earlier page was longer.
            if buffer.len() < len {
                buffer.resize(len, 0);
            }
            self.source.read_exact_at(&mut buffer[..len], page.start).map_err(read)?;
            let pages = self.pages_in(region, chunk, page, &buffer[..len])?;
            let last = pages.last().map_or(page.end(), Page::end);
            return Ok(Some(Piece { pages, len, offset, out: rest.take((last - offset) as usize) }));
        }
        Ok(None)
    }

    /// The page that has the byte at an offset of the view.
    fn page_at(&self, region: &Region, chunk: &Chunk, offset: u64) -> Result<Page> {
        let mut found = chunk.found.lock().unwrap_or_else(PoisonError::into_inner);
        let index = found.partition_point(|page| page.end() <= offset);
        if let Some(page) = found.get(index) {
            return Ok(*page);
        }
        loop {
            let start = found.last().map_or(region.start, Page::end);
            let length = |at| {
                let mut length = [0; LENGTH];
                self.source.read_exact_at(&mut length, at).map_err(read)?;
                Ok(Some(length))
            };
            let Some(page) = chunk.page(region, found.len(), start, length)? else {
                unreachable!("each length field was read")
            };
            found.push(page);
            if page.end() > offset {
                return Ok(page);
            }
        }
    }

    /// The pages that are complete in the bytes. The position of the first page is known.
    fn pages_in(&self, region: &Region, chunk: &Chunk, first: Page, bytes: &[u8]) -> Result<Vec<Page>> {
        let (mut pages, mut last) = (vec![first], first);
        let length = |at: u64| {
            let rest = bytes.get((at - first.start) as usize..);
            Ok(rest.and_then(|rest| rest.first_chunk::<LENGTH>()).copied())
        };
        while let Some(page) = chunk.page(region, last.number + 1, last.end(), length)?
            && page.end() - first.start <= bytes.len() as u64
        {
            pages.push(page);
            last = page;
        }
        let mut found = chunk.found.lock().unwrap_or_else(PoisonError::into_inner);
        for page in &pages {
            if page.number == found.len() {
                found.push(*page);
            }
        }
        Ok(pages)
    }

    /// Decrypts pages; writes the bytes of the view from an offset to `out`. The bytes start with the first page.
    fn open_pages(
        &self,
        chunk: &Chunk,
        pages: &[Page],
        bytes: &[u8],
        offset: u64,
        out: &mut [u8],
    ) -> Result<()> {
        let end = offset + out.len() as u64;
        let is_partial = |page: &Page| page.start < offset || page.end() > end;
        let mut edges: Vec<Vec<u8>> = pages
            .iter()
            .map(|page| if is_partial(page) { vec![0; page.len()] } else { Vec::new() })
            .collect();
        // The memory of each whole page, and the wanted part of a page that is not wanted as a whole, with its offset in the page.
        let (mut wholes, mut parts) = (Vec::with_capacity(pages.len()), Vec::with_capacity(pages.len()));
        let mut rest = out;
        for (page, edge) in pages.iter().zip(&mut edges) {
            let (from, to) = (page.start.max(offset), page.end().min(end));
            let mine =
                rest.split_off_mut(..(to - from) as usize).expect("the output ends with the last page");
            let (whole, part) = match is_partial(page) {
                true => (&mut edge[..], Some((mine, (from - page.start) as usize))),
                false => (mine, None),
            };
            wholes.push(whole);
            parts.push(part);
        }
        let decrypted = self.decrypt_pages(chunk, pages, bytes, &mut wholes);
        if decrypted.is_err() {
            // Other pages may have been decrypted. The caller zeroes its own memory.
            edges.zeroize();
        }
        decrypted?;
        for ((page, edge), part) in pages.iter().zip(edges).zip(parts) {
            if let Some((part, start)) = part {
                part.copy_from_slice(&edge[start..start + part.len()]);
                self.cache.insert(page.start, edge);
            }
        }
        Ok(())
    }

    /// Decrypts the headers and bodies of whole pages in one batch.
    fn decrypt_pages(
        &self,
        chunk: &Chunk,
        pages: &[Page],
        bytes: &[u8],
        wholes: &mut [&mut [u8]],
    ) -> Result<()> {
        let mut headers = Zeroizing::new(Vec::with_capacity(pages.len()));
        let mut aads = Vec::with_capacity(2 * pages.len());
        for page in pages {
            let header = page.header.checked_sub(Kind::Gcm.overhead());
            headers.push(vec![0; header.ok_or_else(|| malformed("a page header is too short"))?]);
            if page.body < self.pages.overhead() {
                return Err(malformed("a page is too short"));
            }
            // CTR does not use the associated data.
            aads.extend(
                [true, false].map(|is_header| self.aad.page(chunk.place, chunk.ordinal(page), is_header)),
            );
        }
        let start = pages.first().map_or(0, |first| first.start);
        let mut modules = Vec::with_capacity(aads.len());
        let outputs = wholes.iter_mut().zip(headers.iter_mut()).zip(aads.chunks(2));
        for (page, ((whole, header), aads)) in pages.iter().zip(outputs) {
            let at = (page.start - start) as usize;
            let (first, second) = bytes[at..at + page.len()].split_at(page.header);
            let protection = Protection { key: chunk.key.aes(), kind: Kind::Gcm, aad: &aads[0] };
            modules.push(EncryptedModule::on_host(protection, first, header)?);
            let body = whole.len() - (page.body - self.pages.overhead());
            let protection = Protection { kind: self.pages, aad: &aads[1], ..protection };
            modules.push(EncryptedModule::on_host(protection, second, &mut whole[body..])?);
        }
        if let Some(index) = batch::open(&**self.engine.planner(), &mut modules)? {
            let module = chunk.describe(&pages[index / 2], index % 2 == 0);
            return Err(Error::NotAuthentic { module });
        }
        drop(modules);
        let all = pages.iter().zip(headers.iter()).zip(wholes);
        all.into_iter().try_for_each(|((page, header), whole)| self.write_header(chunk, page, header, whole))
    }

    /// Writes the plain header in front of the page.
    fn write_header(&self, chunk: &Chunk, page: &Page, header: &[u8], whole: &mut [u8]) -> Result<()> {
        let header = PageHeader::new(Struct::read_module(header, "header of a page")?);
        let body = page.body - self.pages.overhead();
        // DuckDB states the length of the plain page.
        let is_size_right = [page.body, body].contains(&header.size()?);
        if header.is_dictionary()? != chunk.ordinal(page).is_none() || !is_size_right {
            return Err(malformed(format!("the {} contradicts the page", chunk.describe(page, true))));
        }
        let room = whole.len() - body;
        let encoded = header.with_size(body)?.encode_padded(room);
        let encoded = encoded.ok_or_else(|| malformed("a page header cannot be written anew"))?;
        whole[..room].copy_from_slice(&encoded);
        Ok(())
    }
}
