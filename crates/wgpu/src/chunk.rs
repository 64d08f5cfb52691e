//! One submission: descriptions, keys and data go to the device, programs run, results come back, and what the device
//! had of them is wiped.

use std::sync::Arc;

use lockstep_core::chaining::ChainingState;
use lockstep_core::data::Data;
use lockstep_core::distinct::DistinctKeys;
use lockstep_core::gcm::lengths_block;
use lockstep_core::work::AeadMessage;
use lockstep_core::{Block, Key, KeySize, Result};
use lockstep_core::{gcm::counter_block, messages::Messages};
use zeroize::Zeroizing;

use crate::cut::Piece;
use crate::gpu::{ALIGNMENT, Bindings, Gpu, lock};
use crate::kernel::{Family, Program, ROWS, WIDE};
use crate::lane::{Lane, Room};
use crate::launch::{Launch, Tile};
use crate::memory::WORD;
use crate::orders::{Layout, Orders, Places, Work};
use crate::passes::{Kind, Plan};

/// What all chunks of a call have in common.
#[derive(Clone)]
pub(crate) struct Task {
    pub(crate) gpu: Arc<Gpu>,
    /// The kernel; for measurements none, and then data travel but nothing runs.
    pub(crate) family: Option<&'static Family>,
    pub(crate) plan: Plan,
    pub(crate) size: KeySize,
    /// Invocations share tiles.
    pub(crate) wide: bool,
}

/// A chunk under way.
pub(crate) struct Chunk {
    pub(crate) lane: Lane,
    pub(crate) submission: wgpu::SubmissionIndex,
    pieces: Vec<Piece>,
    /// Where results of the pieces are in what came back, if there are any but chaining states.
    results: Option<Vec<usize>>,
    /// Chaining states come back first, 16 bytes each, because the device knows them better.
    told: bool,
    /// Where last blocks of ciphertexts are, 16 bytes each, of data that the host does not see.
    lasts: Option<usize>,
    /// Tags come back first, then statuses, 16 bytes each.
    verdicts: bool,
    len: usize,
}

impl Task {
    /// Bytes of a whole tile.
    pub(crate) fn tile(&self) -> usize {
        16 * ROWS * if self.wide { WIDE } else { 1 }
    }

    /// Submits pieces of segments, all in host memory or all on the device. On an error nothing is submitted; afterwards
    /// results are to be asked for: [`Chunk::map`].
    pub(crate) fn queue(
        &self,
        mut lane: Lane,
        pieces: Vec<Piece>,
        messages: &Messages<'_, '_>,
    ) -> Result<Chunk> {
        let mut keys = DistinctKeys::default();
        let numbers: Vec<(u32, u32)> = pieces
            .iter()
            .map(|piece| {
                let key = keys.number(messages.key(piece.segment));
                (key, messages.tweak(piece.segment).map_or(0, |tweak| keys.number(tweak.key)))
            })
            .collect();
        let count = pieces.len();
        // Of pieces on the device where they are; all are, or none.
        let mut resident = Vec::new();
        for piece in &pieces {
            if let Data::Device { from, to, .. } = messages.data(piece.segment) {
                resident.push((self.gpu.place(from)?, self.gpu.place(to)?));
            }
        }
        let is_resident = !resident.is_empty();
        let looks_back = matches!(self.plan.kind, Kind::Tiles(part) if part.looks_back());
        let gcm = matches!(self.plan.kind, Kind::Gcm { .. });

        // First what is copied there; results, if they have a place of their own, and scratch are made there.
        let mut layout = Layout::default();
        let has_states = match self.plan.kind {
            Kind::Tiles(part) => part.tweaks(),
            Kind::Ghash | Kind::Chain(_) => true,
            Kind::Gcm { .. } => false,
        };
        let states = layout.section(if has_states { count } else { 0 });
        let zeros = layout.section(if self.plan.kind.hashes() { keys.all().len() } else { 0 });
        let masks = layout.section(if gcm { count } else { 0 });
        let tags = layout.section(if gcm { 2 * count } else { 0 });
        let begin = layout.blocks;
        let (mut hashed, mut data) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for piece in &pieces {
            let aad = messages.aead(piece.segment).map_or(0, |message| message.aad.len());
            hashed.push(layout.section(aad.div_ceil(16)));
            // On the device the block before is needed there too.
            layout.section(edge(piece, is_resident && looks_back));
            data.push(layout.section(piece.range.len().div_ceil(16)));
            layout.section(usize::from(gcm));
        }
        let input = layout.blocks;
        let apart = looks_back && self.family.is_some();
        let to = if apart { layout.section(input - begin) - begin } else { 0 };
        let writes = !self.plan.kind.only_reads();
        let is_open = |piece: &Piece| is_resident && writes && !piece.range.len().is_multiple_of(WORD);
        let tails = layout.section(pieces.iter().filter(|piece| is_open(piece)).count());
        let places = Places { states, zeros, masks, tags, hashed, data, to, tails, resident: is_resident };

        let mut orders = Orders::default();
        if let Some(family) = self.family {
            let (pieces, numbers, places) = (&pieces[..], &numbers[..], &places);
            let work = Work { task: self, family, pieces, messages, numbers, keys: keys.all().len(), places };
            match self.plan.kind {
                Kind::Tiles(part) => work.tiles(&mut orders, part, false),
                Kind::Ghash => work.ghash(&mut orders, &mut layout)?,
                Kind::Chain(option) => work.chain(&mut orders, &mut layout, option),
                Kind::Gcm { opens } => work.gcm(&mut orders, &mut layout, opens)?,
            }
            if is_resident && writes {
                work.tails(&mut orders);
            }
        }

        // Tables lie behind the round keys.
        for launch in &mut orders.launches {
            if let Program::Table { part, .. } = launch.program {
                let block = 2 * (self.size.rounds() + 1) * keys.all().len() + 64 * orders.tables.len();
                launch.scratch = block as u32;
                orders.tables.push(part.decrypts());
            }
        }

        // What is given: launches, tiles, round keys, each from a multiple of the alignment on.
        let tiles = orders.launches.len() * ALIGNMENT;
        let tile_bytes = Tile::SIZE * orders.tiles.len().max(1);
        let schedules = (tiles + tile_bytes).next_multiple_of(ALIGNMENT);
        let schedule_bytes = 2 * 16 * (self.size.rounds() + 1);
        let tables = schedules + schedule_bytes * keys.all().len();
        let schedules_bytes = tables - schedules + crate::lookup::BYTES * orders.tables.len();
        let given = (schedules + schedules_bytes).next_multiple_of(ALIGNMENT);
        let told = self.plan.state == ChainingState::DeviceComputed && self.family.is_some();
        // One stretch of `work`; of data on the device without these.
        let (back, back_end) = match self.plan.kind {
            _ if self.plan.kind.only_reads() => (states, states + count),
            Kind::Gcm { .. } => (tags, if is_resident { begin } else { input }),
            _ if told => (states, if is_resident { begin } else { input }),
            _ if is_resident => (0, 0),
            _ => (begin + to, input + to),
        };
        let (back, back_bytes) = (16 * back, 16 * (back_end - back));
        // Behind it, the last blocks of ciphertexts that the host does not see.
        let lasts = is_resident && self.plan.state == ChainingState::LastCiphertext;
        let download = back_bytes + if lasts { 16 * count } else { 0 };
        let beside_bytes: usize = if is_resident && gcm {
            pieces.iter().filter_map(|piece| messages.aead(piece.segment)).map(beside).sum()
        } else {
            0
        };
        let work_in = 16 * if is_resident { begin } else { input };
        let room = Room { given, work_in, beside: beside_bytes, work: 16 * layout.blocks, download };
        if layout.blocks > u32::MAX as usize || room.work > most_bytes(&self.gpu) {
            return Err(self.gpu.failed("too much for one launch: give it less at once"));
        }
        // Compilation, which may take long or fail, before keys and data are anywhere.
        for launch in &orders.launches {
            self.gpu.pipeline(launch.program)?;
        }
        lane.reserve(&self.gpu, &room)?;

        lane.fill(&self.gpu, given + room.work_in + room.beside, |view| {
            for (index, launch) in orders.launches.iter().enumerate() {
                view.slice(ALIGNMENT * index..ALIGNMENT * index + Launch::SIZE)
                    .copy_from_slice(&launch.bytes());
            }
            let tiles_bytes: Vec<u8> = orders.tiles.iter().flat_map(Tile::bytes).collect();
            view.slice(tiles..tiles + tiles_bytes.len()).copy_from_slice(&tiles_bytes);
            for (number, key) in keys.all().iter().enumerate() {
                let schedule = schedule(key);
                let at = schedules + schedule_bytes * number;
                view.slice(at..at + schedule_bytes).copy_from_slice(&schedule);
            }
            for (index, &decrypts) in orders.tables.iter().enumerate() {
                let at = tables + crate::lookup::BYTES * index;
                view.slice(at..at + crate::lookup::BYTES).copy_from_slice(&crate::lookup::bytes(decrypts));
            }
            view.slice(given..given + room.work_in + room.beside).fill(0);
            let mut put = |at: usize, bytes: &[u8]| view.slice(at..at + bytes.len()).copy_from_slice(bytes);
            let mut aside = given + room.work_in;
            for (index, piece) in pieces.iter().enumerate() {
                if has_states {
                    put(given + 16 * (states + index), &messages.state(piece.segment));
                }
                if let Some(message) = messages.aead(piece.segment) {
                    put(given + 16 * (masks + index), &counter_block(message.nonce, 1));
                    let (aad, lengths) = if is_resident {
                        (aside, aside + message.aad.len().next_multiple_of(16))
                    } else {
                        let end = places.data[index] + piece.range.len().div_ceil(16);
                        (given + 16 * places.hashed[index], given + 16 * end)
                    };
                    aside += if is_resident { beside(message) } else { 0 };
                    put(aad, message.aad);
                    put(lengths, &lengths_block(message.aad.len() as u64, piece.range.len() as u64));
                }
                let data = messages.data(piece.segment);
                with_input(data, |input| put(given + 16 * places.data[index], &input[piece.range.clone()]));
            }
        })?;

        let (work, given_buffer) = (lane.work.get(&self.gpu)?, lane.given.get(&self.gpu)?);
        let download_buffer = lane.download.get(&self.gpu)?;
        // Between reading and writing them, nobody else is to write to the same words.
        let _turn = pieces.iter().any(is_open).then(|| lock(&self.gpu.parts_of_words));
        let submitted = self.gpu.call(|device, queue| -> Result<_> {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            lane.copy_in(&self.gpu, &mut encoder, &room)?;
            let (mut aside, mut tail) = ((given + room.work_in) as u64, places.tails);
            for (index, (piece, (from, target))) in pieces.iter().zip(&resident).enumerate() {
                let range = &piece.range;
                let mut place = 16 * (places.data[index] - edge(piece, looks_back)) as u64;
                let start = range.start - 16 * edge(piece, looks_back);
                for (buffer, at, len) in
                    from.stretches(start..range.start + range.len().next_multiple_of(WORD))
                {
                    encoder.copy_buffer_to_buffer(buffer, at, work, place, len as u64);
                    place += len as u64;
                }
                if let Some(message) = messages.aead(piece.segment) {
                    let aad = message.aad.len().next_multiple_of(16);
                    let end = 16 * (places.data[index] + range.len().div_ceil(16)) as u64;
                    for (to, len) in [(16 * places.hashed[index] as u64, aad), (end, 16)] {
                        lane.copy_part(&self.gpu, &mut encoder, aside, (work, to), len)?;
                        aside += len as u64;
                    }
                }
                if is_open(piece) {
                    let last = range.start + range.len() / WORD * WORD;
                    for (buffer, at, len) in target.stretches(last..last + WORD) {
                        encoder.copy_buffer_to_buffer(buffer, at, work, 16 * tail as u64, len as u64);
                    }
                    tail += 1;
                }
                if lasts && range.len() >= 16 {
                    let last = range.start + range.len() / 16 * 16 - 16;
                    let mut place = (back_bytes + 16 * index) as u64;
                    for (buffer, at, len) in from.stretches(last..last + 16) {
                        encoder.copy_buffer_to_buffer(buffer, at, download_buffer, place, len as u64);
                        place += len as u64;
                    }
                }
            }
            if !orders.launches.is_empty() {
                let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
                for (index, launch) in orders.launches.iter().enumerate() {
                    let bindings = Bindings {
                        work,
                        work_bytes: room.work,
                        given: given_buffer,
                        tiles: (tiles, tile_bytes),
                        schedules: (schedules, schedules_bytes),
                        launch: ALIGNMENT * index,
                    };
                    self.gpu.launch(&mut pass, launch, &bindings)?;
                }
            }
            for (index, (piece, (_, target))) in pieces.iter().zip(&resident).enumerate().filter(|_| writes) {
                let mut place = 16 * (places.data[index] + to) as u64;
                let range = piece.range.start..piece.range.start + piece.range.len().next_multiple_of(WORD);
                for (buffer, at, len) in target.stretches(range) {
                    encoder.copy_buffer_to_buffer(work, place, buffer, at, len as u64);
                    place += len as u64;
                }
            }
            if back_bytes > 0 {
                encoder.copy_buffer_to_buffer(work, back as u64, download_buffer, 0, back_bytes as u64);
            }
            encoder.clear_buffer(given_buffer, 0, Some(given as u64));
            encoder.clear_buffer(work, 0, Some(room.work as u64));
            Ok(queue.submit([encoder.finish()]))
        });
        let submission = match submitted.flatten() {
            Ok(submission) => submission,
            Err(error) => {
                lane.discard(&self.gpu);
                return Err(error);
            }
        };
        let results = (writes && !is_resident)
            .then(|| places.data.iter().map(|place| 16 * (place + to) - back).collect());
        let lasts = lasts.then_some(back_bytes);
        Ok(Chunk { lane, submission, pieces, results, told, lasts, verdicts: gcm, len: download })
    }
}

/// Blocks before a piece that belong to it.
fn edge(piece: &Piece, looks_back: bool) -> usize {
    usize::from(looks_back && piece.range.start > 0)
}

/// Bytes of a message of GCM that the host knows of data that it does not: associated data and lengths.
fn beside(message: &AeadMessage<'_>) -> usize {
    message.aad.len().next_multiple_of(16) + 16
}

/// Shows the input of data that are with the host.
pub(crate) fn with_input(data: &Data<'_>, show: impl FnOnce(&[u8])) {
    match data {
        Data::Host(data) => show(data.input()),
        Data::Pinned { from, .. } => show(&from.buffer().lock()[from.range()]),
        Data::Device { .. } => {}
    }
}

/// Shows the place for results of data that are with the host; empty if they are only read.
pub(crate) fn with_output(data: &mut Data<'_>, show: impl FnOnce(&mut [u8])) {
    match data {
        Data::Host(data) => show(data.output()),
        Data::Pinned { to, .. } => show(&mut to.buffer().lock()[to.range()]),
        Data::Device { .. } => {}
    }
}

/// What one binding may have.
fn most_bytes(gpu: &Gpu) -> usize {
    gpu.limits().max_storage_buffer_binding_size as usize
}

impl Chunk {
    /// Asks for what is to come back.
    pub(crate) fn map(&mut self, gpu: &Gpu) -> Result<()> {
        self.lane.map(gpu, self.len)
    }

    /// The messages that it has pieces of.
    pub(crate) fn messages(&self) -> impl Iterator<Item = usize> {
        self.pieces.iter().map(|piece| piece.segment)
    }

    /// Brings results to borrowed host memory, and chaining states and verdicts; after the submission.
    pub(crate) fn deliver(&mut self, gpu: &Gpu, messages: &mut Messages<'_, '_>) -> Result<()> {
        let (pieces, results) = (&self.pieces, &self.results);
        let (told, lasts, verdicts) = (self.told, self.lasts, self.verdicts);
        self.lane.read(gpu, self.len, |bytes| {
            let block = |index: usize| -> Block {
                let mut block = Block::default();
                block.copy_from_slice(&bytes[16 * index..16 * index + 16]);
                block
            };
            for (index, piece) in pieces.iter().enumerate() {
                if let Some(results) = results {
                    let at = results[index];
                    with_output(messages.data_mut(piece.segment), |output| {
                        // Data that are only read have no output.
                        if let Some(output) = output.get_mut(piece.range.clone()) {
                            output.copy_from_slice(&bytes[at..at + piece.range.len()]);
                        }
                    });
                }
                let ends = piece.range.end == messages.data(piece.segment).len();
                if let Some(at) = lasts.filter(|_| ends && piece.range.len() >= 16) {
                    messages.set_chaining_state(piece.segment, block(at / 16 + index));
                }
                if told {
                    messages.set_chaining_state(piece.segment, block(index));
                }
                if verdicts {
                    messages.set_result(piece.segment, block(pieces.len() + index)[0], &block(index));
                }
            }
        })
    }
}

/// The round keys for encryption, and behind them those for decryption in the order of use: all but the first and the
/// last through InvMixColumns (FIPS 197, 5.3.5).
fn schedule(key: &Key) -> Zeroizing<Vec<u8>> {
    let blocks = key.round_keys().as_blocks();
    let mut bytes = Zeroizing::new(Vec::with_capacity(32 * blocks.len()));
    bytes.extend_from_slice(blocks.as_flattened());
    for (index, block) in blocks.iter().enumerate().rev() {
        if index == 0 || index + 1 == blocks.len() {
            bytes.extend_from_slice(block);
        } else {
            for column in block.as_chunks::<4>().0 {
                bytes.extend_from_slice(&inverse_mix_column(u32::from_le_bytes(*column)).to_le_bytes());
            }
        }
    }
    bytes
}

/// InvMixColumns on the four bytes of a word, without looking anything up: MixColumns after a factor of 4x^2 + 5.
fn inverse_mix_column(a: u32) -> u32 {
    let double = |a: u32| ((a & 0x7f7f_7f7f) << 1) ^ ((a >> 7 & 0x0101_0101) * 0x1b);
    let a = a ^ double(double(a ^ a.rotate_right(16)));
    let next = a.rotate_right(8);
    double(a ^ next) ^ next ^ a.rotate_right(16) ^ a.rotate_right(24)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_go_both_ways() {
        let key = Key::new(&[3; 24]).unwrap();
        let schedule = schedule(&key);
        let (forward, backward) = schedule.split_at(16 * 13);
        assert_eq!(*forward, *key.round_keys().as_blocks().as_flattened());
        assert_eq!(forward[..16], backward[16 * 12..]);
        assert_eq!(forward[16 * 12..], backward[..16]);
        // FIPS 197, 5.3.3: the inverse of the example of MixColumns.
        assert_eq!(inverse_mix_column(0xbca1_4d8e).to_le_bytes(), [0xdb, 0x13, 0x53, 0x45]);
    }
}
