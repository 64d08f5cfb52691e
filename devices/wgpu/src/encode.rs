//! The buffers of a chunk: their layout, the content that the host writes, and the commands of the submission. Descriptions,
//! keys and data are copied to the device, programs run, results are copied back, and the copies on the device are wiped.

use std::ops::Range;

use lockstep_core::Result;
use lockstep_core::chaining::ChainingState;
use lockstep_core::data::Data;
use lockstep_core::gcm::{counter_block, lengths_block};
use lockstep_core::ocb::nonce_block;
use lockstep_core::work::AeadMessage;
use lockstep_gpu_host::compose::gcm_of_chunk;
use lockstep_gpu_host::{Kind, Messages, Piece, PieceKeys, Tiles, with_input};
use wgpu::{CommandEncoder, CommandEncoderDescriptor};
use zeroize::Zeroizing;

use crate::allocation::{Place, WORD};
use crate::dispatch::{DispatchList, Gcm, Layout, Places, Work};
use crate::gpu::{ALIGNMENT, Bindings, Gpu};
use crate::kernel::{Part, Program};
use crate::launch::Tile;
use crate::lookup;
use crate::offsets::Offsets;
use crate::staging::{Room, Staging};
use crate::task::Task;

/// A chunk that is ready to be submitted.
pub(crate) struct Staged {
    pub(crate) commands: wgpu::CommandBuffer,
    /// True if the chunk reads words of the caller's memory and writes them back with only some of their bytes changed.
    pub(crate) writes_parts_of_words: bool,
    pub(crate) found: Found,
}

/// The results of a chunk in the download buffer. Positions are in bytes.
pub(crate) struct Found {
    /// The position of the output of each piece, if the outputs are copied to the host.
    pub(crate) outputs: Option<Vec<usize>>,
    /// True if the device computed chaining states. The results then start with the chaining states, 16 bytes each.
    pub(crate) states: bool,
    /// The position of the last ciphertext blocks, 16 bytes each, if the data are in device memory.
    pub(crate) last_blocks: Option<usize>,
    /// True if the results start with the tags, followed by the statuses, 16 bytes each.
    pub(crate) tags: bool,
    pub(crate) len: usize,
}

/// The pieces of a chunk, and the values that depend on them.
pub(crate) struct Chunk<'a, 'w, 'd> {
    task: &'a Task,
    pieces: &'a [Piece],
    messages: &'a Messages<'w, 'd>,
    keys: PieceKeys<'d>,
    /// The places of the input and of the output of each piece, if the data are in device memory.
    resident: Vec<(Place, Place)>,
}

/// The layout of a chunk, and its launches.
struct Description {
    places: Places,
    list: DispatchList,
    parameters: Parameters,
    room: Room,
    /// The range of bytes of `work` that is copied back.
    back: Range<usize>,
    last_blocks: bool,
}

/// The layout in bytes of the buffer that programs only read: first launches, then tiles, then round keys followed by
/// T-tables. Each of these three parts starts at a multiple of the alignment.
struct Parameters {
    tiles: usize,
    tile_bytes: usize,
    schedules: usize,
    /// Bytes of the round keys of one key.
    schedule_bytes: usize,
    tables: usize,
    end: usize,
    len: usize,
}

impl<'a, 'w, 'd> Chunk<'a, 'w, 'd> {
    pub(crate) fn new(task: &'a Task, pieces: &'a [Piece], messages: &'a Messages<'w, 'd>) -> Result<Self> {
        let mut resident = Vec::new();
        for piece in pieces {
            if let Data::Device { from, to, .. } = messages.data(piece.segment) {
                resident.push((task.gpu().place(from)?, task.gpu().place(to)?));
            }
        }
        Ok(Chunk { task, pieces, messages, keys: PieceKeys::of(pieces, messages), resident })
    }

    /// Fills the staging buffer and encodes the submission.
    pub(crate) fn stage(&self, staging: &mut Staging) -> Result<Staged> {
        let gpu = self.task.gpu();
        let description = self.describe()?;
        let Description { places, room, back, .. } = &description;
        if room.work / 16 > u32::MAX as usize || room.work > gpu.most_binding() {
            return Err(gpu.failed("the work is too large for one launch: submit less at once"));
        }
        // Compilation may take long or fail, so it is done before keys and data are copied.
        for launch in &description.list.launches {
            gpu.pipeline(launch.program)?;
        }
        staging.reserve(gpu, room)?;
        self.fill(staging, &description)?;
        let commands = gpu.call(|device, _| -> Result<_> {
            let mut encoder = device.create_command_encoder(&CommandEncoderDescriptor::default());
            self.encode(staging, &mut encoder, &description)?;
            Ok(encoder.finish())
        });
        let output = |place: &usize| 16 * (place + places.to) - back.start;
        let found = Found {
            outputs: (self.writes() && !self.is_resident()).then(|| places.data.iter().map(output).collect()),
            states: self.computes_states(),
            last_blocks: description.last_blocks.then_some(back.len()),
            tags: self.is_aead(),
            len: room.download,
        };
        let writes_parts_of_words = self.pieces.iter().any(|piece| self.ends_in_word(piece));
        Ok(Staged { commands: commands.flatten()?, writes_parts_of_words, found })
    }

    fn is_resident(&self) -> bool {
        !self.resident.is_empty()
    }

    fn is_gcm(&self) -> bool {
        matches!(self.task.kind, Kind::Gcm { .. })
    }

    fn is_ocb(&self) -> bool {
        matches!(self.task.kind, Kind::Ocb { .. })
    }

    fn is_aead(&self) -> bool {
        self.is_gcm() || self.is_ocb()
    }

    fn writes(&self) -> bool {
        !self.task.operation.is_read_only()
    }

    fn looks_back(&self) -> bool {
        self.task.kind.looks_back()
    }

    /// True if the device reads chaining states from `work`.
    fn has_states(&self) -> bool {
        match self.task.kind {
            Kind::Tiles(_) => self.task.kind.tweaks(),
            Kind::Ghash | Kind::Polyval | Kind::Chain(_) => true,
            Kind::Gcm { .. } | Kind::Ocb { .. } => false,
        }
    }

    /// True if the device writes chaining states to `work`.
    fn computes_states(&self) -> bool {
        self.task.chaining() == ChainingState::DeviceComputed && self.task.family.is_some()
    }

    /// True if the output of a piece is in device memory and ends within a word. The other bytes of that word must not
    /// change.
    fn ends_in_word(&self, piece: &Piece) -> bool {
        self.is_resident() && self.writes() && !piece.range.len().is_multiple_of(WORD)
    }

    /// Number of blocks before a piece that are part of its input.
    fn edge(&self, piece: &Piece) -> usize {
        usize::from(self.looks_back() && piece.range.start > 0)
    }

    /// Lays out the sections of `work`. The sections to which data are copied come first. The sections of the outputs
    /// follow, unless the outputs overwrite the input.
    fn places(&self, layout: &mut Layout) -> (Places, Range<usize>) {
        let count = self.pieces.len();
        let states = layout.section(if self.has_states() { count } else { 0 });
        let kind = self.task.kind;
        let encrypts_zeros = kind.hashes() && kind != Kind::Polyval || self.is_ocb();
        let zeros = layout.section(if encrypts_zeros { self.keys.all.len() } else { 0 });
        let offsets = layout.section(if self.task.offsets.is_some() { Offsets::BLOCKS } else { 0 });
        let masks = layout.section(if self.is_aead() { count } else { 0 });
        let (mut hashed, mut data) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let aad_blocks = |piece: &Piece| {
            self.messages.aead(piece.segment).map_or(0, |message| message.aad.len().div_ceil(16))
        };
        if self.is_ocb() {
            // OCB3 encrypts the associated data, so they are not among the sections that are copied back.
            hashed.extend(self.pieces.iter().map(|piece| layout.section(aad_blocks(piece))));
        }
        let sums = if self.task.offsets.is_some() { count } else { 0 };
        let tags = layout.section(if self.is_aead() { 2 * count } else { sums });
        let begin = layout.blocks;
        for piece in self.pieces {
            if !self.is_ocb() {
                hashed.push(layout.section(aad_blocks(piece)));
            }
            // If the data are in device memory, the host cannot read the block before a piece, so that block is copied too.
            layout.section(if self.is_resident() { self.edge(piece) } else { 0 });
            data.push(layout.section(piece.range.len().div_ceil(16)));
            layout.section(usize::from(self.is_gcm()));
        }
        let input = begin..layout.blocks;
        let is_apart = self.looks_back() && self.task.family.is_some();
        let to = if is_apart { layout.section(input.len()) - begin } else { 0 };
        let tails = layout.section(self.pieces.iter().filter(|piece| self.ends_in_word(piece)).count());
        let resident = self.is_resident();
        (Places { states, offsets, zeros, masks, tags, hashed, data, to, tails, resident }, input)
    }

    fn dispatch(&self, places: &Places, layout: &mut Layout) -> Result<DispatchList> {
        let mut list = DispatchList::default();
        let Some(family) = self.task.family else { return Ok(list) };
        let (pieces, numbers) = (self.pieces, &self.keys.numbers[..]);
        let keys = self.keys.all.len();
        let work = Work { task: self.task, family, pieces, messages: self.messages, numbers, keys, places };
        match self.task.kind {
            Kind::Tiles(tiles) if self.task.offsets.is_some() => {
                work.ocb_part(&mut list, layout, tiles == Tiles::EcbDecrypt);
            }
            Kind::Tiles(tiles) => work.tiles(&mut list, Part::of(tiles), false),
            Kind::Ghash | Kind::Polyval => work.ghash(&mut list, layout)?,
            Kind::Chain(chain) => work.chain(&mut list, layout, chain),
            Kind::Gcm { opens } => {
                gcm_of_chunk(&mut Gcm::new(&work, &mut list, layout, opens), opens)?;
            }
            Kind::Ocb { opens } => work.ocb(&mut list, layout, opens),
        }
        if self.is_resident() && self.writes() {
            work.tails(&mut list);
        }
        // The T-tables follow the round keys.
        for launch in &mut list.launches {
            if let Program::Table { part, .. } = launch.program {
                let block = 2 * (self.task.size.rounds() + 1) * keys + 64 * list.tables.len();
                launch.scratch = block as u32;
                list.tables.push(part.decrypts());
            }
        }
        Ok(list)
    }

    fn describe(&self) -> Result<Description> {
        let mut layout = Layout::default();
        let (places, input) = self.places(&mut layout);
        let list = self.dispatch(&places, &mut layout)?;
        let count = self.pieces.len();
        let tiles = list.launches.len() * ALIGNMENT;
        let tile_bytes = Tile::SIZE * list.tiles.len().max(1);
        let schedules = (tiles + tile_bytes).next_multiple_of(ALIGNMENT);
        let schedule_bytes = 2 * 16 * (self.task.size.rounds() + 1);
        let tables = schedules + schedule_bytes * self.keys.all.len();
        let end = tables + lookup::BYTES * list.tables.len();
        let len = end.next_multiple_of(ALIGNMENT);
        let parameters = Parameters { tiles, tile_bytes, schedules, schedule_bytes, tables, end, len };
        let resident = self.is_resident();
        // If the data are in device memory, only the sections before the data are copied back.
        let data_end = if resident { input.start } else { input.end };
        let back = match self.task.kind {
            _ if !self.writes() => places.states..places.states + count,
            Kind::Gcm { .. } | Kind::Ocb { .. } => places.tags..data_end,
            _ if self.task.offsets.is_some() => places.tags..data_end,
            _ if self.computes_states() => places.states..data_end,
            _ if resident => 0..0,
            _ => input.start + places.to..input.end + places.to,
        };
        let back = 16 * back.start..16 * back.end;
        let last_blocks = resident && self.task.chaining() == ChainingState::LastCiphertext;
        let messages = self.pieces.iter().filter_map(|piece| self.messages.aead(piece.segment));
        let room = Room {
            parameters: parameters.len,
            work_in: 16 * data_end,
            extra: if resident && self.is_gcm() { messages.map(extra_bytes).sum() } else { 0 },
            work: 16 * layout.blocks,
            download: back.len() + if last_blocks { 16 * count } else { 0 },
        };
        Ok(Description { places, list, parameters, room, back, last_blocks })
    }

    /// Writes descriptions, keys and host data.
    fn fill(&self, staging: &mut Staging, description: &Description) -> Result<()> {
        let Description { places, list, parameters, room, .. } = description;
        staging.fill(self.task.gpu(), parameters.len + room.work_in + room.extra, |view| {
            view.slice(parameters.len..parameters.len + room.work_in + room.extra).fill(0);
            let mut put = |at: usize, bytes: &[u8]| view.slice(at..at + bytes.len()).copy_from_slice(bytes);
            for (index, launch) in list.launches.iter().enumerate() {
                put(ALIGNMENT * index, &launch.bytes());
            }
            let mut bytes = Zeroizing::new([0; Tile::SIZE]);
            for (index, tile) in list.tiles.iter().enumerate() {
                tile.write_to(&mut bytes);
                put(parameters.tiles + Tile::SIZE * index, &*bytes);
            }
            for (number, key) in self.keys.all.iter().enumerate() {
                // The round keys for encryption, then the round keys for decryption.
                let (keys, at) =
                    (key.round_keys(), parameters.schedules + parameters.schedule_bytes * number);
                put(at, keys.as_blocks().as_flattened());
                put(at + parameters.schedule_bytes / 2, keys.inverse().as_blocks().as_flattened());
            }
            for (index, &decrypts) in list.tables.iter().enumerate() {
                put(parameters.tables + lookup::BYTES * index, &lookup::bytes(decrypts));
            }
            let work = |block: usize| parameters.len + 16 * block;
            for (index, block) in self.task.offsets.iter().flat_map(|offsets| offsets.blocks()).enumerate() {
                put(work(places.offsets + index), block);
            }
            let mut extra_at = parameters.len + room.work_in;
            for (index, piece) in self.pieces.iter().enumerate() {
                if self.has_states() {
                    put(work(places.states + index), &piece.state);
                }
                let aead = self.messages.aead(piece.segment);
                if let Some(message) = aead.filter(|_| self.is_ocb()) {
                    put(work(places.masks + index), &nonce_block(message.nonce, message.tag.len()).0);
                    let at = work(places.hashed[index]);
                    put(at, message.aad);
                    if !message.aad.len().is_multiple_of(16) {
                        put(at + message.aad.len(), &[0x80]);
                    }
                } else if let Some(message) = aead {
                    put(work(places.masks + index), &counter_block(message.nonce, 1));
                    let (aad, lengths) = if self.is_resident() {
                        (extra_at, extra_at + message.aad.len().next_multiple_of(16))
                    } else {
                        let end = places.data[index] + piece.range.len().div_ceil(16);
                        (work(places.hashed[index]), work(end))
                    };
                    extra_at += if self.is_resident() { extra_bytes(message) } else { 0 };
                    put(aad, message.aad);
                    put(lengths, &lengths_block(message.aad.len() as u64, piece.range.len() as u64));
                }
                with_input(self.messages.data(piece.segment), |input| {
                    put(work(places.data[index]), &input[piece.range.clone()]);
                });
            }
        })
    }

    fn encode(
        &self,
        staging: &Staging,
        encoder: &mut CommandEncoder,
        description: &Description,
    ) -> Result<()> {
        let Description { places, list, parameters, room, back, .. } = description;
        let gpu = self.task.gpu();
        let (work, parameters_buffer) = (staging.work.get(gpu)?, staging.parameters.get(gpu)?);
        staging.copy_in(gpu, encoder, room)?;
        self.encode_inputs(staging, encoder, description)?;
        if !list.launches.is_empty() {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            for (index, launch) in list.launches.iter().enumerate() {
                let bindings = Bindings {
                    work,
                    work_bytes: room.work,
                    parameters: parameters_buffer,
                    tiles: (parameters.tiles, parameters.tile_bytes),
                    schedules: (parameters.schedules, parameters.end - parameters.schedules),
                    launch: ALIGNMENT * index,
                };
                gpu.launch(&mut pass, launch, &bindings)?;
            }
        }
        let outputs = self.pieces.iter().zip(&self.resident).enumerate().filter(|_| self.writes());
        for (index, (piece, (_, target))) in outputs {
            let mut place = 16 * (places.data[index] + places.to) as u64;
            for (buffer, at, len) in target.stretches(whole_words(&piece.range, piece.range.start)) {
                encoder.copy_buffer_to_buffer(work, place, buffer, at, len as u64);
                place += len as u64;
            }
        }
        if !back.is_empty() {
            let download = staging.download.get(gpu)?;
            encoder.copy_buffer_to_buffer(work, back.start as u64, download, 0, back.len() as u64);
        }
        encoder.clear_buffer(parameters_buffer, 0, Some(parameters.len as u64));
        encoder.clear_buffer(work, 0, Some(room.work as u64));
        Ok(())
    }

    /// If the data are in device memory, records the copies of the data to `work` and of the last ciphertext blocks to the
    /// download buffer. For GCM, also records the copies of the associated data and of the lengths to `work`.
    fn encode_inputs(
        &self,
        staging: &Staging,
        encoder: &mut CommandEncoder,
        description: &Description,
    ) -> Result<()> {
        let Description { places, room, back, parameters, .. } = description;
        let gpu: &Gpu = self.task.gpu();
        let (work, download) = (staging.work.get(gpu)?, staging.download.get(gpu)?);
        let mut copy = |from: &Place, range: Range<usize>, to: &wgpu::Buffer, at: usize| {
            let mut place = at as u64;
            for (buffer, at, len) in from.stretches(range) {
                encoder.copy_buffer_to_buffer(buffer, at, to, place, len as u64);
                place += len as u64;
            }
        };
        let mut tail = places.tails;
        for (index, (piece, (from, target))) in self.pieces.iter().zip(&self.resident).enumerate() {
            let (range, edge) = (&piece.range, self.edge(piece));
            let at = 16 * (places.data[index] - edge);
            copy(from, whole_words(range, range.start - 16 * edge), work, at);
            if self.ends_in_word(piece) {
                let last = range.start + range.len() / WORD * WORD;
                copy(target, last..last + WORD, work, 16 * tail);
                tail += 1;
            }
            if description.last_blocks && range.len() >= 16 {
                let last = range.start + range.len() / 16 * 16 - 16;
                copy(from, last..last + 16, download, back.len() + 16 * index);
            }
        }
        let mut extra_at = parameters.len + room.work_in;
        let has_extra = self.is_resident() && self.is_gcm();
        for (index, piece) in self.pieces.iter().enumerate().filter(|_| has_extra) {
            let Some(message) = self.messages.aead(piece.segment) else { continue };
            let end = places.data[index] + piece.range.len().div_ceil(16);
            let aad = message.aad.len().next_multiple_of(16);
            for (block, len) in [(places.hashed[index], aad), (end, 16)] {
                staging.copy_part(gpu, encoder, extra_at as u64, (work, 16 * block as u64), len)?;
                extra_at += len;
            }
        }
        Ok(())
    }
}

/// The bytes from `start` to the end of the word in which `range` ends.
fn whole_words(range: &Range<usize>, start: usize) -> Range<usize> {
    start..range.start + range.len().next_multiple_of(WORD)
}

/// Number of bytes that the host sends for a GCM message whose data are in device memory: associated data and lengths.
fn extra_bytes(message: &AeadMessage<'_>) -> usize {
    message.aad.len().next_multiple_of(16) + 16
}
