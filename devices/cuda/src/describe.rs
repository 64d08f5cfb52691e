//! The layout of a chunk on the device: the place of each part in a staging buffer, and the descriptions that kernels
//! read.
#![allow(unsafe_code, reason = "the addresses of a batch must be valid until its launches have ended")]

use std::ops::Range;

use lockstep_core::data::Data;
use lockstep_core::gcm::counter_block;
use lockstep_core::ocb::nonce_block;
use lockstep_core::work::{AeadMessage, Tag};
use lockstep_core::{Error, Result};
use lockstep_gpu_host::{Kind, Messages, Piece, PieceKeys};

use crate::gpu::Stream;
use crate::kernel::{Family, GHASH_MATRICES_BYTES, GHASH_ROWS, OCB_MASKS, Tiling};
use crate::launch;
use crate::passes::{
    Aead, AuxiliaryBlocks, Batch, Extra, Hashing, Level, Levels, Ocb, Parts, Tiled, chain_scratch,
};
use crate::staging::{Layout, Staging};
use crate::task::Task;

/// The offsets of the parts of a staging buffer, in bytes. The parts that the host fills come first.
pub(crate) struct Places {
    pub(crate) segments: usize,
    first_tile: usize,
    keys: usize,
    /// The auxiliary blocks, the segments that contain them, and the first tiles of these segments.
    auxiliary: usize,
    auxiliary_segments: usize,
    auxiliary_first_tile: usize,
    /// For OCB3: segments that contain the regions of the messages.
    region_segments: usize,
    region_first_tile: usize,
    /// Only for AEADs: the array of the [`Extra`] of each message, the array of the tags, and the array of the statuses. The
    /// tags and the statuses are copied back.
    extras: usize,
    pub(crate) tags: usize,
    pub(crate) statuses: usize,
    /// The associated data of each piece.
    aads: Vec<usize>,
    /// For each level of GHASH, the first tiles of the messages.
    level_tiles: Vec<usize>,
    /// The data in borrowed host memory. They are contiguous, so one copy in each direction is enough.
    pub(crate) host_data: Range<usize>,
    /// The data of each piece, if they are copied through the staging buffer.
    pub(crate) data: Vec<usize>,
    /// The end of the part that is copied to the device. The parts after it exist only on the device.
    pub(crate) host_len: usize,
    schedules: usize,
    scratch: usize,
    rows: usize,
    matrices: usize,
    level_outputs: Vec<usize>,
    /// For OCB3: the masks of the keys, and the regions of the messages.
    masks: usize,
    regions: usize,
    /// The end of the last part.
    pub(crate) len: usize,
}

/// A chunk that is described in a staging buffer, with the addresses of its parts on the device.
pub(crate) struct Description {
    pub(crate) places: Places,
    work: Tiled,
    auxiliary: Option<AuxiliaryBlocks>,
    schedules: u64,
    scratch: u64,
    hashing: Option<Hashing>,
    aead: Option<Aead>,
    ocb: Option<Ocb>,
    bytes: u64,
    /// The address and the number of the raw keys.
    keys: (u64, u32),
}

impl Description {
    /// Returns the batch that makes the launches of the chunk.
    ///
    /// # Safety
    /// The staging buffer that [`Work::describe`] has filled is copied to the device on the same stream before the launches. The
    /// staging buffer and the data of the pieces stay allocated until an event that is recorded after the launches has passed,
    /// or until the machine has been synchronised.
    pub(crate) unsafe fn batch<'a>(
        &'a self,
        task: &'a Task,
        family: &'static Family,
        stream: &'a Stream,
    ) -> Batch<'a> {
        let parts = Parts {
            gpu: task.gpu(),
            stream,
            family,
            size: task.size,
            work: self.work,
            auxiliary: self.auxiliary,
            keys: self.keys,
            schedules: self.schedules,
            scratch: self.scratch,
            hashing: self.hashing.as_ref(),
            aead: self.aead,
            ocb: self.ocb,
            bytes: self.bytes,
        };
        // SAFETY: `Work` has made the addresses and the descriptions. They refer to sections of the staging buffer, which `places` makes
        // large enough, and to the data of the pieces. The caller guarantees the other requirements of `Batch::new`.
        unsafe { Batch::new(parts) }
    }
}

/// The pieces of a chunk, and values that are derived from them.
pub(crate) struct Work<'a, 'w, 'd> {
    task: &'a Task,
    family: &'static Family,
    pieces: &'a [Piece],
    messages: &'a Messages<'w, 'd>,
    keys: PieceKeys<'d>,
    tiling: Tiling,
    /// The auxiliary blocks, as runs of consecutive blocks with the same key.
    auxiliary: Runs,
    /// For OCB3: the blocks of the regions of all messages, as runs of consecutive blocks with the same key, and the
    /// first block of each message.
    regions: Runs,
    region_starts: Vec<usize>,
    levels: Option<Levels>,
}

impl<'a, 'w, 'd> Work<'a, 'w, 'd> {
    pub(crate) fn new(
        task: &'a Task,
        family: &'static Family,
        pieces: &'a [Piece],
        messages: &'a Messages<'w, 'd>,
    ) -> Self {
        let keys = PieceKeys::of(pieces, messages);
        let limits = task.gpu().limits();
        let bytes = pieces.iter().map(|piece| piece.range.len()).sum();
        let hash_keys = 0..keys.all.len() as u32;
        let auxiliary_keys: Vec<u32> = match task.kind {
            Kind::Ghash => hash_keys.collect(),
            Kind::Polyval => Vec::new(),
            Kind::Gcm { .. } | Kind::Ocb { .. } => {
                hash_keys.chain(keys.numbers.iter().map(|&(key, _)| key)).collect()
            }
            _ if task.kind.tweaks() => keys.numbers.iter().map(|&(_, tweak_key)| tweak_key).collect(),
            _ => Vec::new(),
        };
        let mut auxiliary = Runs::default();
        auxiliary_keys.into_iter().for_each(|key| auxiliary.add(key, 1));
        let mut regions = Runs::default();
        let mut region_starts = Vec::new();
        if let Kind::Ocb { .. } = task.kind {
            for (piece, &(key, _)) in pieces.iter().zip(&keys.numbers) {
                region_starts.push(regions.blocks());
                regions.add(key, messages.aead(piece.segment).map_or(0, aad_blocks) + 1);
            }
        }
        let levels = task.kind.hashes().then(|| {
            let blocks = |piece: &Piece| {
                // In addition to the data, GCM hashes the associated data and the block of lengths.
                let beside = messages.aead(piece.segment).map_or(0, |aead| aad_blocks(aead) + 1);
                (piece.range.len().div_ceil(16) + beside) as u64
            };
            let blocks: Vec<u64> = pieces.iter().map(blocks).collect();
            Levels::of(limits, &blocks, keys.all.len())
        });
        Work {
            task,
            family,
            pieces,
            messages,
            tiling: family.tiling(limits, &task.options, pieces.len(), bytes),
            auxiliary,
            regions,
            region_starts,
            levels: levels.flatten(),
            keys,
        }
    }

    fn too_much(&self) -> Error {
        self.task.gpu().failed("the work is too large for one launch: submit less at once")
    }

    fn tiles(&self) -> u64 {
        self.pieces.iter().map(|piece| self.tiling.tiles(piece.range.len())).sum()
    }

    /// True if matrices compute the hashes of the tiles of GHASH's level 0.
    fn by_matrices(&self) -> bool {
        let tiles = self.levels().first().map_or(0, |level| Levels::tiles(level));
        self.task.is_by_matrices(tiles, self.keys.all.len() as u64)
    }

    fn levels(&self) -> &[Vec<u64>] {
        self.levels.as_ref().map_or(&[], Levels::first_tiles)
    }

    /// The index and the length of each piece whose data are in borrowed host memory (`host`) or in pinned memory (not
    /// `host`). Data on the device are not copied to the staging buffer.
    fn data_of(&self, host: bool) -> impl Iterator<Item = (usize, usize)> {
        let is_one = move |(_, piece): &(usize, &Piece)| match self.messages.data(piece.segment) {
            Data::Host(_) => host,
            Data::Pinned { .. } => !host,
            Data::Device { .. } => false,
        };
        self.pieces.iter().enumerate().filter(is_one).map(|(index, piece)| (index, piece.range.len()))
    }

    fn places(&self) -> Result<Places> {
        let (count, keys) = (self.pieces.len(), self.keys.all.len());
        let is_ocb = matches!(self.task.kind, Kind::Ocb { .. });
        let aeads = if is_ocb || matches!(self.task.kind, Kind::Gcm { .. }) { count } else { 0 };
        let scratch = match self.task.kind {
            Kind::Chain(_) => chain_scratch(count, self.task.size),
            kind => Some(if kind.looks_back() || is_ocb { 16 * self.tiles() as usize } else { 0 }),
        };
        let scratch = scratch.ok_or_else(|| self.too_much())?;
        let mut layout = Layout::default();
        let mut data = vec![0; count];
        Ok(Places {
            segments: layout.section(launch::Segment::SIZE * count),
            first_tile: layout.section(8 * (count + 1)),
            keys: layout.section(self.task.size.bytes() * keys),
            auxiliary: layout.section(16 * self.auxiliary.blocks()),
            auxiliary_segments: layout.section(launch::Segment::SIZE * self.auxiliary.0.len()),
            auxiliary_first_tile: layout.section(8 * (self.auxiliary.0.len() + 1)),
            region_segments: layout.section(launch::Segment::SIZE * self.regions.0.len()),
            region_first_tile: layout.section(8 * (self.regions.0.len() + 1)),
            extras: layout.section(Extra::SIZE * aeads),
            tags: layout.section(16 * aeads),
            statuses: layout.section(aeads),
            aads: (self.pieces.iter().filter_map(|piece| self.messages.aead(piece.segment)))
                .map(|aead| layout.packed(aead.aad.len()))
                .collect(),
            level_tiles: self.levels().iter().map(|level| layout.section(8 * level.len())).collect(),
            host_data: {
                let start = layout.section(0);
                for (index, len) in self.data_of(true) {
                    data[index] = layout.packed(len.next_multiple_of(16));
                }
                start..layout.len()
            },
            host_len: layout.len(),
            data: {
                self.data_of(false).for_each(|(index, len)| data[index] = layout.section(len));
                data
            },
            schedules: layout.section(keys * self.family.schedule(self.task.size)),
            scratch: layout.section(scratch),
            rows: layout.section(if self.levels.is_some() { GHASH_ROWS * keys } else { 0 }),
            matrices: layout.section(if self.by_matrices() { GHASH_MATRICES_BYTES * keys } else { 0 }),
            level_outputs: (self.levels().iter())
                .map(|level| layout.section(16 * Levels::tiles(level) as usize))
                .collect(),
            masks: layout.section(if is_ocb { OCB_MASKS * keys } else { 0 }),
            regions: layout.section(16 * self.regions.blocks()),
            len: layout.len(),
        })
    }

    /// Writes descriptions, keys and host data to the staging buffer.
    pub(crate) fn describe(&self, staging: &mut Staging) -> Result<Description> {
        let places = self.places()?;
        staging.reserve(self.task.gpu(), places.host_len, places.len)?;
        let base = staging.device.address();
        let host = &mut staging.host[..places.host_len];
        let address = |place: usize| base + place as u64;
        let mut tile = 0u64;
        for (index, piece) in self.pieces.iter().enumerate() {
            put(host, places.first_tile + 8 * index, &tile.to_ne_bytes());
            tile += self.tiling.tiles(piece.range.len());
            let described = self.segment(index, piece, &places, base);
            described.write(&mut host[places.segments + launch::Segment::SIZE * index..]);
            if self.task.kind.tweaks() {
                put(host, places.auxiliary + 16 * index, &piece.state);
            }
            if let Data::Host(data) = self.messages.data(piece.segment) {
                put(host, places.data[index], &data.input()[piece.range.clone()]);
            }
            self.describe_message(host, index, &described, &places, base);
        }
        put(host, places.first_tile + 8 * self.pieces.len(), &tile.to_ne_bytes());
        for (level, &place) in self.levels().iter().zip(&places.level_tiles) {
            for (index, first) in level.iter().enumerate() {
                put(host, place + 8 * index, &first.to_ne_bytes());
            }
        }
        let keys = self.keys.all.len();
        let hashes = self.task.kind.hashes();
        let is_polyval = self.task.kind == Kind::Polyval;
        let is_ocb = matches!(self.task.kind, Kind::Ocb { .. });
        if (hashes && !is_polyval) || is_ocb {
            // The hash key of GHASH, and the mask of OCB3 from which all other masks are computed, are encryptions of a
            // zero block.
            host[places.auxiliary..places.auxiliary + 16 * keys].fill(0);
        }
        for (number, key) in self.keys.all.iter().enumerate() {
            put(host, places.keys + self.task.size.bytes() * number, key.bytes());
        }
        let level = |((level, &first_tile), &output): ((&Vec<u64>, &usize), &usize)| Level {
            first_tile: address(first_tile),
            output: address(output),
            tiles: Levels::tiles(level),
        };
        let levels = self.levels().iter().zip(&places.level_tiles).zip(&places.level_outputs).map(level);
        let is_aead = is_ocb || matches!(self.task.kind, Kind::Gcm { .. });
        let auxiliary = [places.auxiliary, places.auxiliary_segments, places.auxiliary_first_tile];
        let regions = [places.regions, places.region_segments, places.region_first_tile];
        let auxiliary = self.describe_runs(host, &self.auxiliary, auxiliary, base);
        let regions = self.describe_runs(host, &self.regions, regions, base);
        Ok(Description {
            work: Tiled {
                tiling: self.tiling,
                segments: address(places.segments),
                first_tile: address(places.first_tile),
                tiles: tile,
                count: self.pieces.len() as u32,
            },
            auxiliary: auxiliary.map(|over| AuxiliaryBlocks { over, blocks: address(places.auxiliary) }),
            schedules: address(places.schedules),
            scratch: address(places.scratch),
            hashing: hashes.then(|| Hashing {
                keys: keys as u32,
                hash_keys: address(if is_polyval { places.keys } else { places.auxiliary }),
                stride: 16,
                levels: levels.collect(),
                rows: address(places.rows),
                matrices: self.by_matrices().then(|| address(places.matrices)),
                polyval: is_polyval,
                carry_less: self.task.is_carry_less(),
            }),
            aead: is_aead.then(|| Aead { extras: address(places.extras), status: address(places.statuses) }),
            ocb: regions.map(|regions| Ocb { keys: keys as u32, masks: address(places.masks), regions }),
            bytes: self.pieces.iter().map(|piece| piece.range.len() as u64).sum(),
            keys: (address(places.keys), keys as u32),
            places,
        })
    }

    fn segment(&self, index: usize, piece: &Piece, places: &Places, base: u64) -> launch::Segment {
        let start = piece.range.start as u64;
        let place = base + places.data[index] as u64;
        let (from, to) = match self.messages.data(piece.segment) {
            Data::Device { from, to, .. } => (from.offset() + start, to.offset() + start),
            _ => (place, place),
        };
        let (key, tweak_key) = self.keys.numbers[index];
        let (bytes, position) = (piece.range.len() as u64, piece.position);
        launch::Segment { from, to, bytes, position, key, tweak_key, state: piece.state }
    }

    /// Describes the parts of a message of an AEAD other than its data: the block that is encrypted before the pass, the associated data
    /// and the tag.
    fn describe_message(
        &self,
        host: &mut [u8],
        index: usize,
        described: &launch::Segment,
        places: &Places,
        base: u64,
    ) {
        let Some(aead) = self.messages.aead(self.pieces[index].segment) else { return };
        let ((block, bottom), opens, place) = match self.task.kind {
            Kind::Gcm { opens } => {
                let ciphertext = if opens { described.from } else { described.to };
                ((counter_block(aead.nonce, 1), 0), opens, ciphertext)
            }
            Kind::Ocb { opens } => {
                let region = base + (places.regions + 16 * self.region_starts[index]) as u64;
                (nonce_block(aead.nonce, aead.tag.len()), opens, region)
            }
            _ => return,
        };
        let tag_block = places.auxiliary + 16 * (self.keys.all.len() + index);
        put(host, tag_block, &block);
        put(host, places.aads[index], aead.aad);
        let tag = places.tags + 16 * index;
        if let Tag::Expect(expected) = &aead.tag {
            put(host, tag, expected);
        }
        let extra = Extra {
            aad: (base + places.aads[index] as u64, aead.aad.len() as u64),
            tag: (base + tag as u64, aead.tag.len() as u32),
            tag_block: base + tag_block as u64,
            place,
            opens,
            bottom,
        };
        put(host, places.extras + Extra::SIZE * index, &extra.bytes());
    }

    /// Describes runs of blocks as segments. The array contains three offsets: of the blocks, of the segments, and of the first
    /// tiles of the segments.
    fn describe_runs(
        &self,
        host: &mut [u8],
        Runs(runs): &Runs,
        [blocks, segments, first_tile]: [usize; 3],
        base: u64,
    ) -> Option<Tiled> {
        let count = runs.len();
        let total = 16 * runs.last().map_or(0, |(_, run)| run.end);
        let tiling = self.family.tiling(self.task.gpu().limits(), &self.task.options, count, total);
        let mut tile = 0u64;
        for (index, (key, run)) in runs.iter().enumerate() {
            let (at, len) = (base + (blocks + 16 * run.start) as u64, 16 * run.len());
            let described =
                launch::Segment { from: at, to: at, bytes: len as u64, key: *key, ..Default::default() };
            described.write(&mut host[segments + launch::Segment::SIZE * index..]);
            put(host, first_tile + 8 * index, &tile.to_ne_bytes());
            tile += tiling.tiles(len);
        }
        put(host, first_tile + 8 * count, &tile.to_ne_bytes());
        (count > 0).then(|| Tiled {
            tiling,
            segments: base + segments as u64,
            first_tile: base + first_tile as u64,
            tiles: tile,
            count: count as u32,
        })
    }
}

fn put(host: &mut [u8], at: usize, bytes: &[u8]) {
    host[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Blocks of associated data.
fn aad_blocks(message: &AeadMessage<'_>) -> usize {
    message.aad.len().div_ceil(16)
}

/// Runs of consecutive blocks with the same key: the key, and the numbers of the blocks.
#[derive(Debug, Default)]
struct Runs(Vec<(u32, Range<usize>)>);

impl Runs {
    /// The number of blocks.
    fn blocks(&self) -> usize {
        self.0.last().map_or(0, |(_, run)| run.end)
    }

    /// Appends blocks after all earlier blocks.
    fn add(&mut self, key: u32, blocks: usize) {
        let end = self.blocks();
        match self.0.last_mut() {
            Some((last, run)) if *last == key => run.end += blocks,
            _ => self.0.push((key, end..end + blocks)),
        }
    }
}

#[cfg(test)]
mod tests;
