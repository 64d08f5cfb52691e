//! The plain view of an encrypted file.
//!
//! The view has the same offsets as the encrypted file: each page has exactly the total length of its two modules in the file. To
//! fill this length, the page header gets an additional field, which readers skip. Therefore the layout is known without reading
//! the pages, page locations of an offset index remain valid, and each part is decrypted only when it is read. The footer is
//! written anew. Bytes that belong to no column, index or filter are zeros.

mod cache;
mod chunk;
mod footer;
mod layout;

use std::io::Write;
use std::sync::{Arc, Mutex};

use lockstep::{Engine, ReadAt};
use zeroize::{Zeroize, Zeroizing};

use crate::aad::FileAad;
use crate::error::{Error, Result, read};
use crate::keys::KeySource;
use crate::modules::Kind;
use cache::Cache;
use footer::Opened;
use layout::{Content, Region};

/// Bytes that are copied at once.
const COPIED: u64 = 16 << 20;

/// Options for reading.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadOptions<'a> {
    /// The AAD prefix. It is required if the file was written with a prefix. A prefix that the file stores is not used, but it must
    /// be equal to this prefix.
    pub aad_prefix: Option<&'a [u8]>,
    /// Read files whose modules have no associated data, as DuckDB writes them, against the format. In such a file, an exchange of
    /// pages or columns that are encrypted with the same key is not detected. All columns of the file are treated as encrypted.
    pub allows_missing_aad: bool,
    /// Read files with [`Algorithm::GcmCtrV1`], whose pages have no authentication: changes in them are not detected. The format does
    /// not authenticate the algorithm in files with an encrypted footer. For such a file, this option therefore permits pages without
    /// authentication even if the writer chose [`Algorithm::GcmV1`].
    ///
    /// [`Algorithm::GcmCtrV1`]: crate::Algorithm::GcmCtrV1
    /// [`Algorithm::GcmV1`]: crate::Algorithm::GcmV1
    pub allows_unauthenticated_pages: bool,
    /// Read a file with a plaintext footer if there is no footer key. The signature of the footer is then not checked. Changes of
    /// names, types, other metadata, and columns without a key are not detected, and neither are row groups that are missing or in
    /// another order. For a column with a given key, the path, the physical type and the bytes of the pages are still authentic. They
    /// are bound to each other, to the identifier of the file, and to the ordinals of the row group and the column. The schema states
    /// how the bytes are decoded (repetition, length of a fixed-length type, logical type), and it is not authenticated. So a change of
    /// the schema can change the values that are read. If the source of keys has no [`KeySource::expected_columns`], an attacker may
    /// have replaced every column by a plain column. If there is a footer key, the signature is always checked.
    pub allows_unauthenticated_footer: bool,
}

/// A view that presents an encrypted Parquet file as a plain Parquet file. Several threads can read it at the same time.
pub struct PlainView<S> {
    source: S,
    engine: Engine,
    aad: FileAad,
    /// The mode of pages.
    pages: Kind,
    /// The ranges of the view, in the order of their offsets, without overlaps. The last range is the footer. The bytes between the
    /// ranges are zeros.
    regions: Vec<Region>,
    cache: Cache,
    /// Buffers for encrypted bytes.
    buffers: Mutex<Vec<Vec<u8>>>,
    /// Each read of a chunk holds a clone of this value, so that the number of clones is the number of reads in progress.
    readers: Arc<()>,
}

impl<S: ReadAt> PlainView<S> {
    /// Opens a file: reads and checks its footer, and finds the keys of all encrypted columns.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::NotAuthentic`], [`Error::NotEncrypted`], [`Error::PlainColumn`], [`Error::UnknownColumn`],
    /// [`Error::MissingKey`], [`Error::KeyLength`], [`Error::Argument`], [`Error::MissingAad`], [`Error::UnauthenticatedPages`],
    /// [`Error::UnauthenticatedFooter`], [`Error::Contradiction`] for keys of columns, [`Error::Unsupported`]; errors of the source of
    /// keys and of reading.
    pub fn open(engine: &Engine, source: S, keys: &dyn KeySource, options: ReadOptions<'_>) -> Result<Self> {
        let mut opened = footer::open(engine, &source, keys, options)?;
        let regions = layout::plan(engine, &source, keys, &mut opened)?;
        let (engine, Opened { aad, pages, .. }) = (engine.clone(), opened);
        let (cache, buffers, readers) = Default::default();
        Ok(PlainView { source, engine, aad, pages, regions, cache, buffers, readers })
    }

    /// The source.
    pub fn get_ref(&self) -> &S {
        &self.source
    }

    /// The length of the view in bytes.
    #[expect(clippy::len_without_is_empty, reason = "a file of Parquet is never empty")]
    pub fn len(&self) -> u64 {
        self.regions.last().map_or(0, |footer| footer.end)
    }

    /// Reads from an offset; returns the number of bytes, which is less than the length of the buffer only at the end of the view.
    /// All modules from which bytes are read are checked before the call returns. The buffer is zeroed if this fails.
    ///
    /// # Errors
    /// [`Error::NotAuthentic`], [`Error::Malformed`]; [`Error::MissingKey`] for a read that starts at a column without a key; errors
    /// of reading.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.read_part(offset, buffer, true)
    }

    /// Does the same as [`PlainView::read_at`], with one exception: if `refuses_hidden` is false, a column without a key is read as
    /// zeros even if the read starts in it.
    pub(crate) fn read_part(&self, offset: u64, buffer: &mut [u8], refuses_hidden: bool) -> Result<usize> {
        let count = self.len().saturating_sub(offset).min(buffer.len() as u64) as usize;
        let outcome = self.fill(offset, &mut buffer[..count], refuses_hidden);
        if outcome.is_err() {
            buffer.zeroize();
        }
        outcome.map(|()| count)
    }

    /// Writes the whole view. After an error, only a part of the view has been written.
    ///
    /// # Errors
    /// The errors of [`PlainView::read_at`], and of writing.
    pub fn copy_to(&self, output: &mut impl Write) -> Result<()> {
        let mut buffer = Zeroizing::new(vec![0; COPIED.min(self.len()) as usize]);
        let mut offset = 0;
        while offset < self.len() {
            let count = self.read_part(offset, &mut buffer, false)?;
            output.write_all(&buffer[..count]).map_err(lockstep::Error::Write)?;
            offset += count as u64;
        }
        Ok(())
    }

    fn fill(&self, mut offset: u64, mut buffer: &mut [u8], refuses_hidden: bool) -> Result<()> {
        let begin = refuses_hidden.then_some(offset);
        let mut next = self.regions.partition_point(|region| region.end <= offset);
        while !buffer.is_empty() {
            let region = &self.regions[next];
            let is_inside = region.start <= offset;
            let end = if is_inside { region.end } else { region.start };
            let (part, rest) = buffer.split_at_mut((end - offset).min(buffer.len() as u64) as usize);
            if let Content::Hidden(what) = &region.content
                && begin == Some(region.start)
            {
                return Err(Error::MissingKey((**what).into()));
            }
            offset += part.len() as u64;
            if is_inside {
                self.read_region(region, offset - part.len() as u64, part)?;
                next += usize::from(offset == region.end);
            } else {
                part.fill(0);
            }
            buffer = rest;
        }
        Ok(())
    }

    fn read_region(&self, region: &Region, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let start = (offset - region.start) as usize;
        let copy =
            |plain: &[u8], buffer: &mut [u8]| buffer.copy_from_slice(&plain[start..start + buffer.len()]);
        match &region.content {
            Content::Bytes(bytes) => copy(bytes, buffer),
            Content::Plain => self.source.read_exact_at(buffer, offset).map_err(read)?,
            Content::Chunk(chunk) => self.read_chunk(chunk, offset, buffer)?,
            Content::Modules(chunk, modules) => {
                let plain = match self.cache.get(region.start) {
                    Some(plain) => plain,
                    None => {
                        let mut sealed = vec![0; (region.end - region.start) as usize];
                        self.source.read_exact_at(&mut sealed, region.start).map_err(read)?;
                        let plain = self.open_modules(chunk, modules, &sealed)?;
                        self.cache.insert(region.start, plain)
                    }
                };
                copy(&plain, buffer);
            }
            // A read that starts before a column without a key, such as a copy of the whole view, gets zeros for the column.
            Content::Hidden(_) => buffer.fill(0),
        }
        Ok(())
    }
}

lockstep::impl_debug!([S] PlainView<S>, "PlainView", pages);

pub(crate) use footer::{End, read_end};
