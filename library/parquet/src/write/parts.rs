//! Column indexes, offset indexes and Bloom filters.

use std::io::Write;

use lockstep::ReadAt;

use super::pages::Placement;
use super::{Column, Writer};
use crate::error::{Result, ensure, malformed, read, unsupported};
use crate::format::{Part, bloom_filter, chunk, column, offset_index};
use crate::modules::{Kind, Protection, seal};
use crate::thrift::{Struct, Value};

/// Maximum length of an index or a filter in bytes.
const MAX_PART: u64 = 1 << 30;

impl<'a, S: ReadAt, W: Write> Writer<'a, S, W> {
    /// Writes the filters and indexes of all column chunks, and updates their offsets and lengths in the footer.
    pub(super) fn filters_and_indexes(
        &mut self,
        footer: &mut Struct,
        placements: &[Placement],
    ) -> Result<()> {
        self.rewrite_chunks(footer, Self::bloom_filter)?;
        for index in chunk::INDEXES {
            let (_, offset, len) = index;
            let mut placements = placements.iter();
            self.rewrite_chunks(footer, |writer, chunk, column| {
                let placement = placements.next().expect("each chunk has a placement");
                let (Some(start), Some(size)) = (chunk.int(offset), chunk.int(len)) else { return Ok(()) };
                let mut plain = writer.read_part(start as u64, size as u64)?;
                if offset == chunk::OFFSET_INDEX_OFFSET {
                    plain = with_page_locations(&plain, placement, column)?;
                }
                writer.put_part(chunk, index, column, &[&plain])
            })?;
        }
        Ok(())
    }

    fn bloom_filter(&mut self, chunk: &mut Struct, column: Column<'a>) -> Result<()> {
        let Some(mut meta) = chunk.structure(chunk::META_DATA)? else { return Ok(()) };
        let Some(offset) = meta.int(column::BLOOM_FILTER_OFFSET) else { return Ok(()) };
        let len = meta.int(column::BLOOM_FILTER_LENGTH);
        let (header, bits) = self.read_bloom_filter(offset as u64, len)?;
        self.put_part(&mut meta, column::BLOOM_FILTER, column, &[&header, &bits])?;
        chunk.set_structure(chunk::META_DATA, &meta)
    }

    /// The header and the bits of a Bloom filter.
    fn read_bloom_filter(&mut self, start: u64, len: Option<i64>) -> Result<(Vec<u8>, Vec<u8>)> {
        /// An upper limit of the length of a header in bytes.
        const HEADER: u64 = 256;
        let available = self.limit.saturating_sub(start);
        let first =
            self.read_part(start, len.map_or(HEADER, |len| (len as u64).min(HEADER)).min(available))?;
        let bits = |header: &Struct| u64::try_from(header.int(bloom_filter::NUM_BYTES)?).ok();
        let header = Struct::read(&first)?.and_then(|(header, used)| Some((used, bits(&header)?)));
        let (used, bits) = header.ok_or_else(|| malformed("the header of a Bloom filter is invalid"))?;
        let bitset = self.read_part(start + used as u64, bits)?;
        Ok((first[..used].to_vec(), bitset))
    }

    /// Writes a part, encrypted if the column is encrypted, and sets the fields for its offset and length.
    fn put_part(&mut self, to: &mut Struct, part: Part, column: Column<'_>, plains: &[&[u8]]) -> Result<()> {
        let ((modules, offset, len), start) = (part, self.at);
        if let Some(key) = &column.treatment.key {
            let sealings = modules.iter().zip(plains).map(|(module, plain)| {
                (Protection { key, kind: Kind::Gcm, aad: self.aad.of(*module, column.place) }, *plain)
            });
            let mut sealed = Vec::new();
            seal(self.engine, sealings.collect(), &mut sealed)?;
            self.put(&sealed)?;
        } else {
            plains.iter().try_for_each(|plain| self.put(plain))?;
        }
        let written = i32::try_from(self.at - start);
        let written = written.map_err(|_| unsupported("an index or a filter of 2 GiB or more"))?;
        to.set(offset, Value::i64(start as i64));
        to.set(len, Value::i32(written));
        Ok(())
    }

    fn read_part(&mut self, start: u64, len: u64) -> Result<Vec<u8>> {
        self.check_range(start, len)?;
        ensure(len <= MAX_PART, || unsupported("an index or a Bloom filter of more than 1 GiB"))?;
        let mut part = vec![0; len as usize];
        self.source.read_exact_at(&mut part, start).map_err(read)?;
        Ok(part)
    }
}

/// An offset index with the page locations of the output.
fn with_page_locations(index: &[u8], placement: &Placement, column: Column<'_>) -> Result<Vec<u8>> {
    // In the plain form of a file of parquet-java, other bytes follow each index.
    let mut index = Struct::read_module(index, "offset index")?;
    // Some writers omit the list of a column chunk without pages.
    if !index.has(offset_index::PAGE_LOCATIONS) {
        return Ok(index.encode());
    }
    index.rewrite(offset_index::PAGE_LOCATIONS, "the list of page locations", |_, location| {
        let offset = location.int(offset_index::OFFSET).unwrap_or(-1);
        let moved = match placement {
            Placement::Moved(by) => {
                offset.checked_add(*by).ok_or_else(|| malformed("a page location is invalid"))?
            }
            Placement::Pages(pages) => {
                let path = &column.treatment.leaf.path;
                let what = || malformed(format!("the offset index of column {path} names no page"));
                let (moved, size) = *pages.get(&offset).ok_or_else(what)?;
                location.set(offset_index::COMPRESSED_PAGE_SIZE, Value::i32(size));
                moved
            }
        };
        location.set(offset_index::OFFSET, Value::i64(moved));
        Ok(())
    })?;
    Ok(index.encode())
}
