//! Column indexes, offset indexes and Bloom filters.

use std::io::Write;

use lockstep::ReadAt;

use super::pages::Placement;
use super::policy::{Plan, Treatment};
use super::{Writer, rewrite_chunks};
use crate::aad::{Module, Place};
use crate::error::{Error, Result, malformed, read};
use crate::format::{bloom_filter, chunk, column, offset_index};
use crate::modules::{Kind, Sealing, seal};
use crate::thrift::{Struct, Value};

/// Maximum length of an index or a filter in bytes.
const MAX_PART: u64 = 1 << 30;

/// Writes one part of a column chunk.
type WritePart<'w, S, W> =
    fn(&mut Writer<'w, S, W>, &mut Struct, &Treatment, Place, &Placement) -> Result<()>;

impl<'w, S: ReadAt, W: Write> Writer<'w, S, W> {
    /// Writes the filters and indexes of all column chunks, and updates where they are.
    pub(super) fn indexes(
        &mut self,
        footer: &mut Struct,
        plan: &Plan,
        placements: &[Vec<Placement>],
    ) -> Result<()> {
        let kinds: [WritePart<'w, S, W>; 3] = [Self::bloom_filter, Self::column_index, Self::offset_index];
        for write in kinds {
            rewrite_chunks(footer, |chunk, place| {
                let (group, column) = (place.row_group as usize, place.column as usize);
                write(self, chunk, &plan.treatments[column], place, &placements[group][column])
            })?;
        }
        Ok(())
    }

    fn bloom_filter(
        &mut self,
        chunk: &mut Struct,
        treatment: &Treatment,
        place: Place,
        _placement: &Placement,
    ) -> Result<()> {
        let Some(mut meta) = chunk.structure(chunk::META_DATA)? else { return Ok(()) };
        let Some(offset) = meta.int(column::BLOOM_FILTER_OFFSET) else { return Ok(()) };
        let len = meta.int(column::BLOOM_FILTER_LENGTH);
        let (header, bits) = self.read_bloom_filter(offset as u64, len)?;
        let parts = [(Module::BloomFilterHeader, &*header), (Module::BloomFilterBitset, &*bits)];
        let fields = (column::BLOOM_FILTER_OFFSET, column::BLOOM_FILTER_LENGTH);
        self.put_parts(&mut meta, fields, treatment, place, &parts)?;
        chunk.set_structure(chunk::META_DATA, &meta)
    }

    /// The header and the bits of a Bloom filter.
    fn read_bloom_filter(&mut self, start: u64, len: Option<i64>) -> Result<(Vec<u8>, Vec<u8>)> {
        /// A header takes fewer bytes than this.
        const HEADER: u64 = 256;
        let available = self.limit.saturating_sub(start);
        let first =
            self.read_part(start, len.map_or(HEADER, |len| (len as u64).min(HEADER)).min(available))?;
        let header = Struct::read(&first)?.filter(|(header, _)| header.has(bloom_filter::NUM_BYTES));
        let (header, used) = header.ok_or_else(|| malformed("the header of a Bloom filter is invalid"))?;
        let bits = header.int(bloom_filter::NUM_BYTES).and_then(|bits| u64::try_from(bits).ok());
        let bits = bits.ok_or_else(|| malformed("the header of a Bloom filter is invalid"))?;
        let bitset = self.read_part(start + used as u64, bits)?;
        Ok((first[..used].to_vec(), bitset))
    }

    fn column_index(
        &mut self,
        chunk: &mut Struct,
        treatment: &Treatment,
        place: Place,
        _placement: &Placement,
    ) -> Result<()> {
        let fields = (chunk::COLUMN_INDEX_OFFSET, chunk::COLUMN_INDEX_LENGTH);
        let Some(index) = self.read_index(chunk, fields)? else { return Ok(()) };
        self.put_parts(chunk, fields, treatment, place, &[(Module::ColumnIndex, &index)])
    }

    /// Writes an offset index with the page locations of the output.
    fn offset_index(
        &mut self,
        chunk: &mut Struct,
        treatment: &Treatment,
        place: Place,
        placement: &Placement,
    ) -> Result<()> {
        let fields = (chunk::OFFSET_INDEX_OFFSET, chunk::OFFSET_INDEX_LENGTH);
        let Some(index) = self.read_index(chunk, fields)? else { return Ok(()) };
        // The plain form of a file of parquet-java has bytes after its indexes.
        let mut index = Struct::read_module(&index, "offset index")?;
        index.rewrite(offset_index::PAGE_LOCATIONS, |_, location| {
            let offset = location.int(offset_index::OFFSET).unwrap_or(-1);
            match placement {
                Placement::Moved(by) => {
                    let moved =
                        offset.checked_add(*by).ok_or_else(|| malformed("a page location is invalid"))?;
                    location.set(offset_index::OFFSET, Value::I64(moved));
                }
                Placement::Pages(pages) => {
                    let what = format!("the offset index of column {} names no page", treatment.column);
                    let (offset, size) = pages.get(&offset).ok_or_else(|| malformed(what))?;
                    location.set(offset_index::OFFSET, Value::I64(*offset));
                    location.set(offset_index::COMPRESSED_PAGE_SIZE, Value::I32(*size));
                }
            }
            Ok(())
        })?;
        self.put_parts(chunk, fields, treatment, place, &[(Module::OffsetIndex, &index.encode())])
    }

    fn read_index(&mut self, chunk: &Struct, (offset, len): (i16, i16)) -> Result<Option<Vec<u8>>> {
        match (chunk.int(offset), chunk.int(len)) {
            (Some(offset), Some(len)) => Ok(Some(self.read_part(offset as u64, len as u64)?)),
            _ => Ok(None),
        }
    }

    /// Writes parts, encrypted if the column is encrypted, and sets the fields for their offset and length.
    fn put_parts(
        &mut self,
        holder: &mut Struct,
        (offset, len): (i16, i16),
        treatment: &Treatment,
        place: Place,
        parts: &[(Module, &[u8])],
    ) -> Result<()> {
        let start = self.at;
        let mut sealed = Vec::new();
        if let Some(key) = treatment.key() {
            let sealings = parts.iter().map(|&(module, plain)| {
                let aad = self.aad.column(module, place);
                Sealing { key, kind: Kind::Gcm, aad, plain }
            });
            seal(self.engine, &sealings.collect::<Vec<_>>(), &mut sealed)?;
            self.put(&sealed)?;
        } else {
            parts.iter().try_for_each(|(_, plain)| self.put(plain))?;
        }
        let what = || Error::Unsupported { what: "an index or a filter of 2 GiB or more".into() };
        let written = i32::try_from(self.at - start).map_err(|_| what())?;
        holder.set(offset, Value::I64(start as i64));
        holder.set(len, Value::I32(written));
        Ok(())
    }

    fn read_part(&mut self, start: u64, len: u64) -> Result<Vec<u8>> {
        self.check_range(start, len)?;
        if len > MAX_PART {
            return Err(Error::Unsupported { what: "an index or a Bloom filter of more than 1 GiB".into() });
        }
        let mut part = vec![0; len as usize];
        self.source.read_exact_at(&mut part, start).map_err(read)?;
        Ok(part)
    }
}
