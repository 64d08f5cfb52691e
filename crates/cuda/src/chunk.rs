//! One launch sequence: descriptions, keys and data go to the device, kernels run, results come back, and the device
//! memory that was used is wiped, all queued on one stream.

use std::ops::Range;
use std::sync::Arc;

use lockstep_core::chaining::ChainingState;
use lockstep_core::data::{Data, PinnedSlice};
use lockstep_core::distinct::DistinctKeys;
use lockstep_core::work::Tag;
use lockstep_core::{Block, KeySize, Result};
use lockstep_core::{gcm::counter_block, messages::Messages};

use crate::cut::Piece;
use crate::gpu::{Event, Gpu, Stream};
use crate::kernel::{Family, GHASH_ROWS, LaunchOptions};
use crate::lane::{Lane, Layout};
use crate::launch;
use crate::passes::{Batch, Chain, Extra, Gcm, Hashing, Kind, Level, Levels, Plan, Tiled, Tweaks};

/// What all chunks of a call have in common.
pub(crate) struct Task {
    pub(crate) gpu: Arc<Gpu>,
    /// The kernels; for the benchmark none, and then data travel but nothing runs.
    pub(crate) family: Option<&'static Family>,
    pub(crate) plan: &'static Plan,
    pub(crate) size: KeySize,
    pub(crate) options: LaunchOptions,
}

/// A chunk under way.
pub(crate) struct Chunk {
    pub(crate) lane: Lane,
    pub(crate) event: Event,
    /// Pieces of borrowed host memory, and where in the lane their results will be.
    host: Vec<(Piece, usize)>,
    /// Segments whose next chaining state the device knows, and where in the lane.
    next: Vec<(usize, usize)>,
    /// Messages of GCM, and where in the lane their statuses and tags will be.
    verdicts: Vec<(usize, usize, usize)>,
}

/// Where things are in a lane.
struct Places {
    layout: Layout,
    segments: usize,
    first_tile: usize,
    keys: usize,
    states: usize,
    tweak_segments: usize,
    tweak_first_tile: usize,
    /// Of GCM, else empty: what messages have beside their data; and tags, then statuses, which come back.
    extras: usize,
    tags: usize,
    statuses: usize,
    /// Of host data, which is copied both ways as a whole.
    data: Range<usize>,
}

impl Task {
    /// Queues pieces of segments that are all with the host, or all on the device.
    pub(crate) fn queue(
        &self,
        mut lane: Lane,
        stream: &Stream,
        mut pieces: Vec<Piece>,
        messages: &Messages<'_, '_>,
    ) -> Result<Chunk> {
        let family = self.family.unwrap_or(&crate::kernel::FAMILIES[0]);
        let bytes: usize = pieces.iter().map(|piece| piece.range.len()).sum();
        let tiling = family.tiling(self.gpu.limits(), &self.options, pieces.len(), bytes);
        let mut keys = DistinctKeys::default();
        let mut numbers: Vec<(u32, u32)> = pieces
            .iter()
            .map(|piece| {
                let key = keys.number(messages.key(piece.segment));
                (key, messages.tweak(piece.segment).map_or(0, |tweak| keys.number(tweak.key)))
            })
            .collect();
        if let Kind::Chain(_) = self.plan.kind {
            // A thread works as long as its longest message.
            let mut order: Vec<usize> = (0..pieces.len()).collect();
            order.sort_by_key(|&index| std::cmp::Reverse(pieces[index].range.len()));
            numbers = order.iter().map(|&index| numbers[index]).collect();
            pieces = order.into_iter().map(|index| pieces[index].clone()).collect();
        }
        // What is encrypted before the pass, by key; neighbours under one key together.
        let hash_keys = 0..keys.all().len() as u32;
        let prelude: Vec<u32> = match self.plan.kind {
            Kind::Ghash => hash_keys.clone().collect(),
            Kind::Gcm { .. } => hash_keys.clone().chain(numbers.iter().map(|&(key, _)| key)).collect(),
            _ if self.plan.tweaks => numbers.iter().map(|&(_, tweak_key)| tweak_key).collect(),
            _ => Vec::new(),
        };
        let runs = runs(&prelude);
        let levels = self.plan.kind.hashes().then(|| {
            let blocks = |piece: &Piece| {
                let beside = messages.aead(piece.segment).map_or(0, |aead| aead.aad.len().div_ceil(16) + 1);
                (piece.range.len().div_ceil(16) + beside) as u64
            };
            let blocks: Vec<u64> = pieces.iter().map(blocks).collect();
            Levels::of(self.gpu.limits(), &blocks, keys.all().len())
        });
        let levels = levels.flatten();

        // First what is copied to the device, borrowed host memory at its end; then what is only there.
        let mut places = self.places(pieces.len(), keys.all().len(), prelude.len(), runs.len());
        let aads: Vec<usize> = (pieces.iter().filter_map(|piece| messages.aead(piece.segment)))
            .map(|aead| places.layout.packed(aead.aad.len()))
            .collect();
        let first_tiles: Vec<usize> = (levels.iter().flat_map(Levels::first_tiles))
            .map(|level| places.layout.section(8 * level.len()))
            .collect();
        let in_lane = |piece: &Piece| !matches!(messages.data(piece.segment), Data::Device { .. });
        let is_host = |piece: &Piece| matches!(messages.data(piece.segment), Data::Host(_));
        let mut at = vec![0; pieces.len()];
        let host_pieces = || pieces.iter().enumerate().filter(|(_, piece)| is_host(piece));
        let host_bytes = host_pieces().map(|(_, piece)| piece.range.len().next_multiple_of(16)).sum();
        let start = places.layout.section(host_bytes);
        places.data = start..start + host_bytes;
        host_pieces().fold(start, |place, (index, piece)| {
            at[index] = place;
            place + piece.range.len().next_multiple_of(16)
        });
        let host_len = places.layout.len();
        for (index, piece) in pieces.iter().enumerate().filter(|(_, piece)| in_lane(piece) && !is_host(piece))
        {
            at[index] = places.layout.section(piece.range.len());
        }
        let tiles = pieces.iter().map(|piece| tiling.tiles(piece.range.len())).sum::<u64>();
        let schedules = places.layout.section(keys.all().len() * family.schedule(self.size));
        let scratch_bytes = match self.plan.kind {
            Kind::Chain(_) => Chain::scratch(pieces.len(), self.size),
            _ => Some(if self.plan.edges { 16 * tiles as usize } else { 0 }),
        };
        let too_much = || self.gpu.failed("too much for one launch: give it less at once");
        let scratch = places.layout.section(scratch_bytes.ok_or_else(too_much)?);
        let rows = places.layout.section(if levels.is_some() { GHASH_ROWS * keys.all().len() } else { 0 });
        let outputs: Vec<usize> = (levels.iter().flat_map(Levels::first_tiles))
            .map(|level| places.layout.section(16 * Levels::tiles(level) as usize))
            .collect();
        lane.reserve(&self.gpu, host_len, places.layout.len())?;
        let base = lane.device.address();

        // What the device is told.
        let host = &mut lane.host[..host_len];
        let mut tile = 0u64;
        for (index, (piece, &(key, tweak_key))) in pieces.iter().zip(&numbers).enumerate() {
            let data = messages.data(piece.segment);
            let (from, to) = match data {
                Data::Device { from, to, .. } => {
                    let start = piece.range.start as u64;
                    (from.address() + start, to.address() + start)
                }
                _ => (base + at[index] as u64, base + at[index] as u64),
            };
            let described = launch::Segment {
                from,
                to,
                bytes: piece.range.len() as u64,
                position: piece.position,
                key,
                tweak_key,
                state: piece.state,
            };
            described
                .write(&mut host[places.segments + launch::Segment::SIZE * index..][..launch::Segment::SIZE]);
            put(host, places.first_tile + 8 * index, &tile.to_ne_bytes());
            tile += tiling.tiles(piece.range.len());
            if self.plan.tweaks {
                put(host, places.states + 16 * index, &piece.state);
            }
            if let Data::Host(data) = data {
                put(host, at[index], &data.input()[piece.range.clone()]);
            }
            if let (Some(aead), Kind::Gcm { opens }) = (messages.aead(piece.segment), self.plan.kind) {
                let block = places.states + 16 * (keys.all().len() + index);
                put(host, block, &counter_block(aead.nonce, 1));
                put(host, aads[index], aead.aad);
                let tag = places.tags + 16 * index;
                if let Tag::Expect(expected) = &aead.tag {
                    put(host, tag, expected);
                }
                let extra = Extra {
                    aad: (base + aads[index] as u64, aead.aad.len() as u64),
                    tag: (base + tag as u64, aead.tag.len() as u32),
                    mask: base + block as u64,
                    opens,
                    ciphertext: if opens { from } else { to },
                };
                put(host, places.extras + Extra::SIZE * index, &extra.bytes());
            }
        }
        put(host, places.first_tile + 8 * pieces.len(), &tile.to_ne_bytes());
        for (level, &place) in levels.iter().flat_map(Levels::first_tiles).zip(&first_tiles) {
            for (index, first) in level.iter().enumerate() {
                put(host, place + 8 * index, &first.to_ne_bytes());
            }
        }
        if self.plan.kind.hashes() {
            host[places.states..places.states + 16 * keys.all().len()].fill(0);
        }
        for (number, key) in keys.all().iter().enumerate() {
            put(host, places.keys + self.size.bytes() * number, key.bytes());
        }
        let over = self.tweaks(host, &places, &runs, base, family);

        // To the device.
        self.gpu.copy_in(stream, &mut lane.host, 0..host_len, &lane.device, 0)?;
        let pinned: Vec<_> = pieces
            .iter()
            .zip(&at)
            .filter_map(|(piece, &at)| match messages.data(piece.segment) {
                Data::Pinned { from, to, .. } => Some((part(from, &piece.range), part(to, &piece.range), at)),
                _ => None,
            })
            .collect();
        for (from, _, at) in &pinned {
            self.gpu.copy_in_slice(stream, from, &lane.device, *at)?;
        }
        if self.family.is_some() {
            let address = |place: usize| base + place as u64;
            let batch = Batch {
                gpu: &self.gpu,
                stream,
                family,
                size: self.size,
                work: Tiled {
                    tiling,
                    segments: address(places.segments),
                    first_tile: address(places.first_tile),
                    tiles,
                    count: pieces.len() as u32,
                },
                tweaks: over,
                schedules: address(schedules),
                scratch: address(scratch),
                hashing: self.plan.kind.hashes().then(|| Hashing {
                    keys: keys.all().len() as u32,
                    stride: 16,
                    levels: (levels.iter().flat_map(Levels::first_tiles).zip(&first_tiles).zip(&outputs))
                        .map(|((level, &first_tile), &output)| Level {
                            first_tile: address(first_tile),
                            output: address(output),
                            tiles: Levels::tiles(level),
                        })
                        .collect(),
                    rows: address(rows),
                }),
                gcm: matches!(self.plan.kind, Kind::Gcm { .. })
                    .then(|| Gcm { extras: address(places.extras), status: address(places.statuses) }),
                bytes: bytes as u64,
            };
            batch.expand(address(places.keys), keys.all().len() as u32)?;
            (self.plan.run)(&batch)?;
        }

        // And back.
        if !places.data.is_empty() && !self.plan.kind.only_reads() {
            let data = places.data.clone();
            self.gpu.copy_out(stream, &lane.device, data.start, &mut lane.host, data)?;
        }
        for (_, to, at) in pinned.iter().filter(|_| !self.plan.kind.only_reads()) {
            self.gpu.copy_out_slice(stream, &lane.device, *at, to)?;
        }
        let mut verdicts = Vec::new();
        if let (Kind::Gcm { .. }, Some(_)) = (self.plan.kind, self.family) {
            let told = places.tags..places.statuses + pieces.len();
            self.gpu.copy_out(stream, &lane.device, told.start, &mut lane.host, told)?;
            let piece = pieces.iter().enumerate();
            verdicts = piece
                .map(|(index, piece)| (piece.segment, places.statuses + index, places.tags + 16 * index))
                .collect();
        }
        let mut next = Vec::new();
        let place = |index| places.segments + launch::Segment::SIZE * index;
        let told = |piece: &Piece| match self.plan.state {
            ChainingState::DeviceComputed => true,
            ChainingState::LastCiphertext => !in_lane(piece),
            _ => false,
        };
        if self.family.is_some() {
            let pieces = pieces.iter().enumerate().filter(|(_, piece)| told(piece));
            next = pieces.map(|(index, piece)| (piece.segment, place(index))).collect();
        }
        if !next.is_empty() {
            let described = places.segments..places.segments + launch::Segment::SIZE * pieces.len();
            self.gpu.copy_out(stream, &lane.device, described.start, &mut lane.host, described)?;
        }
        self.gpu.zero(stream, &lane.device, 0..places.layout.len())?;
        let event = self.gpu.record(stream)?;
        lane.host.settle(stream, &event);
        for (from, to, _) in &pinned {
            self.gpu.settle(from, stream, &event);
            self.gpu.settle(to, stream, &event);
        }
        let host = pieces.iter().zip(&at).filter(|(piece, _)| is_host(piece));
        let host = host.map(|(piece, &at)| (piece.clone(), at)).collect();
        Ok(Chunk { lane, event, host, next, verdicts })
    }

    fn places(&self, segments: usize, keys: usize, prelude: usize, runs: usize) -> Places {
        let mut layout = Layout::default();
        let gcm = if let Kind::Gcm { .. } = self.plan.kind { segments } else { 0 };
        Places {
            segments: layout.section(launch::Segment::SIZE * segments),
            first_tile: layout.section(8 * (segments + 1)),
            keys: layout.section(self.size.bytes() * keys),
            states: layout.section(16 * prelude),
            tweak_segments: layout.section(launch::Segment::SIZE * runs),
            tweak_first_tile: layout.section(8 * (runs + 1)),
            extras: layout.section(Extra::SIZE * gcm),
            tags: layout.section(16 * gcm),
            statuses: layout.section(gcm),
            data: 0..0,
            layout,
        }
    }

    /// Describes the chaining states that are to be encrypted.
    fn tweaks(
        &self,
        host: &mut [u8],
        places: &Places,
        runs: &[(u32, Range<usize>)],
        base: u64,
        family: &'static Family,
    ) -> Option<Tweaks> {
        let states = base + places.states as u64;
        let total: usize = runs.iter().map(|(_, run)| 16 * run.len()).sum();
        let tiling = family.tiling(self.gpu.limits(), &self.options, runs.len(), total);
        let mut tile = 0u64;
        for (index, (key, run)) in runs.iter().enumerate() {
            let (at, len) = (states + 16 * run.start as u64, 16 * run.len());
            let described =
                launch::Segment { from: at, to: at, bytes: len as u64, key: *key, ..Default::default() };
            let place = places.tweak_segments + launch::Segment::SIZE * index;
            described.write(&mut host[place..place + launch::Segment::SIZE]);
            put(host, places.tweak_first_tile + 8 * index, &tile.to_ne_bytes());
            tile += tiling.tiles(len);
        }
        put(host, places.tweak_first_tile + 8 * runs.len(), &tile.to_ne_bytes());
        let over = Tiled {
            tiling,
            segments: base + places.tweak_segments as u64,
            first_tile: base + places.tweak_first_tile as u64,
            tiles: tile,
            count: runs.len() as u32,
        };
        (!runs.is_empty()).then_some(Tweaks { over, states })
    }
}

impl Chunk {
    /// Brings results to borrowed host memory, and chaining states that the device found; after the event.
    pub(crate) fn deliver(&self, messages: &mut Messages<'_, '_>, states: &mut Vec<(usize, Block)>) {
        if self.host.is_empty() && self.next.is_empty() && self.verdicts.is_empty() {
            return;
        }
        let results: &[u8] = &self.lane.host;
        for (piece, at) in &self.host {
            if let Data::Host(data) = messages.data_mut(piece.segment) {
                // Data that are only read have no output.
                if let Some(output) = data.output().get_mut(piece.range.clone()) {
                    output.copy_from_slice(&results[*at..at + piece.range.len()]);
                }
            }
        }
        for (segment, at) in &self.next {
            states.push((*segment, launch::Segment::next(&results[*at..at + launch::Segment::SIZE])));
        }
        for &(message, status, tag) in &self.verdicts {
            messages.set_result(message, results[status], &results[tag..tag + 16]);
        }
    }
}

fn put(host: &mut [u8], at: usize, bytes: &[u8]) {
    host[at..at + bytes.len()].copy_from_slice(bytes);
}

/// A part of a pinned slice.
fn part(slice: &PinnedSlice, range: &Range<usize>) -> PinnedSlice {
    let start = slice.range().start;
    slice.buffer().slice(start + range.start..start + range.end)
}

/// Neighbours with the same key.
fn runs(keys: &[u32]) -> Vec<(u32, Range<usize>)> {
    let mut runs: Vec<(u32, Range<usize>)> = Vec::new();
    for (index, &key) in keys.iter().enumerate() {
        match runs.last_mut() {
            Some((last, run)) if *last == key => run.end = index + 1,
            _ => runs.push((key, index..index + 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_of_one_key() {
        assert_eq!(runs(&[]), []);
        assert_eq!(runs(&[1, 1, 3, 1]), [(1, 0..2), (3, 2..3), (1, 3..4)]);
    }
}
