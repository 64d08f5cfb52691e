//! One submission: descriptions, keys and data go to the device, programs run, results come back, and what the device
//! had of them is wiped.

use std::sync::Arc;

use lockstep_core::data::Data;
use lockstep_core::distinct::DistinctKeys;
use lockstep_core::register::Register;
use lockstep_core::work::Segment;
use lockstep_core::{Block, Key, KeySize, Result};
use zeroize::Zeroizing;

use crate::cut::Piece;
use crate::gpu::{ALIGNMENT, Bindings, Gpu};
use crate::kernel::{
    CHAIN_MESSAGES, CHAIN_STEPS, Family, GHASH_LEVELS, GHASH_RUN, Part, Program, ROWS, WIDE,
};
use crate::lane::{Lane, Room};
use crate::launch::{Launch, Tile};
use crate::passes::{CFB1_DECRYPT, CFB1_ENCRYPT, CFB8_DECRYPT, CFB8_ENCRYPT, Kind, Plan};
use crate::power::{power_of_x, times_power_of_x};

/// What all chunks of a call have in common.
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
    /// Where results of the pieces are in what came back, if there are any but registers.
    results: Option<Vec<usize>>,
    /// Where registers are, which have 16 bytes each, if the device knows them better.
    registers: Option<usize>,
    len: usize,
}

/// Blocks of `work`, section by section.
#[derive(Default)]
struct Layout {
    blocks: usize,
}

impl Layout {
    /// The next section, and its first block.
    fn section(&mut self, blocks: usize) -> usize {
        let at = self.blocks;
        self.blocks += blocks;
        at
    }
}

/// What a chunk is told to do.
#[derive(Default)]
struct Orders {
    tiles: Vec<Tile>,
    launches: Vec<Launch>,
    /// The T-tables that launches want, by direction.
    tables: Vec<bool>,
}

impl Task {
    /// Bytes of a whole tile.
    pub(crate) fn tile(&self) -> usize {
        16 * ROWS * if self.wide { WIDE } else { 1 }
    }

    /// Submits pieces of segments, all in host memory.
    pub(crate) fn queue(
        &self,
        mut lane: Lane,
        pieces: Vec<Piece>,
        segments: &[Segment<'_>],
    ) -> Result<Chunk> {
        let mut keys = DistinctKeys::default();
        let numbers: Vec<(u32, u32)> = pieces
            .iter()
            .map(|piece| {
                let segment = &segments[piece.segment];
                let key = keys.number(segment.key);
                (key, segment.tweak.map_or(0, |tweak| keys.number(tweak.key)))
            })
            .collect();

        // Registers and data are copied there; results, if they have a place of their own, and scratch are made there.
        let mut layout = Layout::default();
        let has_registers = match self.plan.kind {
            Kind::Tiles(part) => part.tweaks(),
            Kind::Ghash | Kind::Chain(_) => true,
        };
        let registers = layout.section(if has_registers { pieces.len() } else { 0 });
        // What is encrypted to hash keys is zeros.
        let zeros = layout.section(if self.plan.kind == Kind::Ghash { keys.all().len() } else { 0 });
        let data = layout.blocks;
        let places: Vec<usize> =
            pieces.iter().map(|piece| layout.section(piece.range.len().div_ceil(16))).collect();
        let input = layout.blocks;
        let apart = matches!(self.plan.kind, Kind::Tiles(part) if part.looks_back()) && self.family.is_some();
        let to = if apart { layout.section(input - data) - data } else { 0 };

        let mut orders = Orders::default();
        if let Some(family) = self.family {
            let plan =
                Work { task: self, family, pieces: &pieces, segments, numbers: &numbers, places: &places };
            match self.plan.kind {
                Kind::Tiles(part) => plan.tiles(&mut orders, part, registers, to)?,
                Kind::Ghash => plan.ghash(&mut orders, &mut layout, registers, zeros, keys.all().len())?,
                Kind::Chain(option) => plan.chain(&mut orders, &mut layout, option, registers),
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
        let schedules_bytes = tables - schedules + crate::table::BYTES * orders.tables.len();
        let given = (schedules + schedules_bytes).next_multiple_of(ALIGNMENT);
        let (back, back_bytes) = if self.plan.kind.only_reads() {
            (16 * registers, 16 * pieces.len())
        } else if self.plan.register == Register::Told {
            (16 * registers, 16 * (input - registers))
        } else {
            (16 * (data + to), 16 * (input - data))
        };
        let room = Room { given, work_in: 16 * input, work: 16 * layout.blocks, download: back_bytes };
        if layout.blocks > u32::MAX as usize || room.work > most_bytes(&self.gpu) {
            return Err(self.gpu.failed("too much for one launch: give it less at once"));
        }
        lane.reserve(&self.gpu, &room)?;

        lane.fill(&self.gpu, given + room.work_in, |view| {
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
                let at = tables + crate::table::BYTES * index;
                view.slice(at..at + crate::table::BYTES).copy_from_slice(&crate::table::bytes(decrypts));
            }
            if has_registers {
                for (index, piece) in pieces.iter().enumerate() {
                    let at = given + 16 * (registers + index);
                    view.slice(at..at + 16).copy_from_slice(segments[piece.segment].register);
                }
            }
            let end = given + 16 * data;
            view.slice(given + 16 * zeros..end).fill(0);
            for (piece, place) in pieces.iter().zip(&places) {
                if let Data::Host(data) = &segments[piece.segment].data {
                    let (at, len) = (given + 16 * place, piece.range.len());
                    view.slice(at..at + len).copy_from_slice(&data.input()[piece.range.clone()]);
                }
            }
        })?;

        // Compilation, which may take long, before anything is recorded.
        for launch in &orders.launches {
            self.gpu.pipeline(launch.program)?;
        }
        let (work, given_buffer) = (lane.work.get(&self.gpu)?, lane.given.get(&self.gpu)?);
        let download = lane.download.get(&self.gpu)?;
        let submission = self.gpu.call(|device, queue| -> Result<_> {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            lane.copy_in(&self.gpu, &mut encoder, &room)?;
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
            encoder.copy_buffer_to_buffer(work, back as u64, download, 0, back_bytes as u64);
            encoder.clear_buffer(given_buffer, 0, Some(given as u64));
            encoder.clear_buffer(work, 0, Some(room.work as u64));
            Ok(queue.submit([encoder.finish()]))
        })??;
        lane.map(&self.gpu, back_bytes)?;
        let results = (!self.plan.kind.only_reads())
            .then(|| places.iter().map(|place| 16 * (place + to) - back).collect());
        let told = (self.plan.register == Register::Told && self.family.is_some()).then_some(0);
        Ok(Chunk { lane, submission, pieces, results, registers: told, len: back_bytes })
    }
}

/// What one binding may have.
fn most_bytes(gpu: &Gpu) -> usize {
    gpu.limits().max_storage_buffer_binding_size as usize
}

impl Chunk {
    /// Brings results to borrowed host memory, and registers that the device found; after the submission.
    pub(crate) fn deliver(&mut self, gpu: &Gpu, segments: &mut [Segment<'_>]) -> Result<()> {
        let (pieces, results, registers) = (&self.pieces, &self.results, self.registers);
        self.lane.read(gpu, self.len, |bytes| {
            for (index, piece) in pieces.iter().enumerate() {
                let segment = &mut segments[piece.segment];
                if let (Some(results), Data::Host(data)) = (results, &mut segment.data) {
                    let at = results[index];
                    // Data that are only read have no output.
                    if let Some(output) = data.output().get_mut(piece.range.clone()) {
                        output.copy_from_slice(&bytes[at..at + piece.range.len()]);
                    }
                }
                if let Some(at) = registers {
                    segment.register.copy_from_slice(&bytes[at + 16 * index..at + 16 * index + 16]);
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

/// What orders are made of.
struct Work<'a, 'd> {
    task: &'a Task,
    family: &'static Family,
    pieces: &'a [Piece],
    segments: &'a [Segment<'d>],
    /// Of each piece the numbers of its key and of its tweak's key.
    numbers: &'a [(u32, u32)],
    /// Of each piece its first block.
    places: &'a [usize],
}

impl Work<'_, '_> {
    fn launch(&self, program: Program, first: usize, tiles: usize, invocations: usize) -> Launch {
        Launch {
            program,
            first: first as u32,
            tiles: tiles as u32,
            rounds: self.task.size.rounds() as u32,
            option: 0,
            to: 0,
            scratch: 0,
            step: 0,
            steps: 0,
            invocations,
            bytes: 0,
        }
    }

    fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.range.len() as u64).sum()
    }

    /// Encrypts blocks that lie one behind the other, `keys` being theirs.
    fn prelude(&self, orders: &mut Orders, at: usize, keys: impl IntoIterator<Item = u32>) {
        let first = orders.tiles.len();
        for (index, key) in keys.into_iter().enumerate() {
            match orders.tiles[first..].last_mut() {
                Some(last) if last.key == key && (last.blocks as usize) < ROWS => last.blocks += 1,
                _ => {
                    let at = (at + index) as u32;
                    orders.tiles.push(Tile { at, blocks: 1, key, ..Tile::default() });
                }
            }
        }
        let tiles = orders.tiles.len() - first;
        orders.launches.push(self.launch(
            (self.family.program)(Part::EcbEncrypt, false),
            first,
            tiles,
            tiles,
        ));
    }

    fn tiles(&self, orders: &mut Orders, part: Part, registers: usize, to: usize) -> Result<()> {
        if part.tweaks() {
            self.prelude(orders, registers, self.numbers.iter().map(|&(_, tweak)| tweak));
        }
        let first = orders.tiles.len();
        let whole = self.task.tile();
        for (index, piece) in self.pieces.iter().enumerate() {
            let segment = &self.segments[piece.segment];
            let Data::Host(data) = &segment.data else { continue };
            let mut power = match segment.tweak {
                Some(tweak) if part.tweaks() => {
                    power_of_x(tweak.position.wrapping_add(piece.range.start as u64 / 16))
                }
                _ => 0,
            };
            for start in piece.range.clone().step_by(whole) {
                let register = if part.tweaks() {
                    power.to_le_bytes()
                } else {
                    let last = (start >= 16).then(|| block_at(data.input(), start - 16));
                    self.task.plan.register.after(*segment.register, start, last)
                };
                let bytes = whole.min(piece.range.end - start);
                orders.tiles.push(Tile {
                    at: (self.places[index] + (start - piece.range.start) / 16) as u32,
                    blocks: bytes.div_ceil(16) as u32,
                    key: self.numbers[index].0,
                    extra: (registers + index) as u32,
                    register,
                });
                power = times_power_of_x(power, (whole / 16) as u32);
            }
        }
        let tiles = orders.tiles.len() - first;
        let invocations = tiles * if self.task.wide { WIDE } else { 1 };
        let program = (self.family.program)(part, self.task.wide);
        let option = self.task.plan.counter_mask();
        let launch = self.launch(program, first, tiles, invocations);
        orders.launches.push(Launch { option, to: to as u32, bytes: self.bytes(), ..launch });
        Ok(())
    }

    fn ghash(
        &self,
        orders: &mut Orders,
        layout: &mut Layout,
        registers: usize,
        zeros: usize,
        keys: usize,
    ) -> Result<()> {
        self.prelude(orders, zeros, 0..keys as u32);
        let first = orders.tiles.len();
        let at = |key| (zeros + key) as u32;
        orders.tiles.extend((0..keys).map(|key| Tile { at: at(key), blocks: 1, ..Tile::default() }));
        let scratch = layout.section(GHASH_LEVELS * keys) as u32;
        orders.launches.push(Launch { scratch, ..self.launch(Program::GhashPowers, first, keys, keys) });
        // What is left of each message: the piece, where its blocks are, and how many.
        let mut left: Vec<(usize, usize, usize)> = (self.pieces.iter().zip(self.places).enumerate())
            .map(|(index, (piece, &place))| (index, place, piece.range.len() / 16))
            .collect();
        for level in 0..GHASH_LEVELS {
            let first = orders.tiles.len();
            let mut next = Vec::new();
            for (index, place, blocks) in left {
                let runs = blocks.div_ceil(GHASH_RUN);
                let output = if runs == 1 { registers + index } else { layout.section(runs) };
                // Counted from the end: the first run has what does not fill the others.
                let short = blocks - (runs - 1) * GHASH_RUN;
                for run in 0..runs {
                    let (skip, len) =
                        if run == 0 { (0, short) } else { (short + (run - 1) * GHASH_RUN, GHASH_RUN) };
                    let register = if level == 0 && run == 0 {
                        *self.segments[self.pieces[index].segment].register
                    } else {
                        Block::default()
                    };
                    orders.tiles.push(Tile {
                        at: (place + skip) as u32,
                        blocks: len as u32,
                        key: self.numbers[index].0,
                        extra: (output + run) as u32,
                        register,
                    });
                }
                if runs > 1 {
                    next.push((index, output, runs));
                }
            }
            let tiles = orders.tiles.len() - first;
            let bytes = if level == 0 { self.bytes() } else { 0 };
            let launch = self.launch(Program::GhashRuns, first, tiles, tiles);
            orders.launches.push(Launch { scratch, option: level as u32, bytes, ..launch });
            left = next;
            if left.is_empty() {
                return Ok(());
            }
        }
        Err(self.task.gpu.failed("a message too long for GHASH at once: report this"))
    }

    fn chain(&self, orders: &mut Orders, layout: &mut Layout, option: u32, registers: usize) {
        orders.tiles.extend(self.pieces.iter().enumerate().map(|(index, piece)| Tile {
            at: self.places[index] as u32,
            blocks: piece.range.len() as u32,
            key: self.numbers[index].0,
            extra: (registers + index) as u32,
            register: Block::default(),
        }));
        // An invocation works as long as its longest message.
        orders.tiles.sort_by_key(|tile| std::cmp::Reverse(tile.blocks));
        let invocations = self.pieces.len().div_ceil(CHAIN_MESSAGES);
        // Of each invocation the planes of its round keys.
        let scratch = layout.section(invocations * (self.task.size.rounds() + 1) * CHAIN_MESSAGES) as u32;
        let decrypts = self.task.plan.chain_decrypts();
        let launch =
            |program| Launch { scratch, option, ..self.launch(program, 0, self.pieces.len(), invocations) };
        orders.launches.push(launch(Program::ChainKeys { decrypts }));
        let longest = orders.tiles.iter().map(|tile| steps_of(option, tile.blocks)).max().unwrap_or(0);
        for step in (0..longest).step_by(CHAIN_STEPS as usize) {
            let bytes = if step == 0 { self.bytes() } else { 0 };
            let program = Program::ChainSteps { decrypts };
            orders.launches.push(Launch { step, steps: CHAIN_STEPS, bytes, ..launch(program) });
        }
    }
}

/// How often a chain runs the cipher for so many bytes.
fn steps_of(option: u32, bytes: u32) -> u32 {
    match option {
        CFB8_ENCRYPT | CFB8_DECRYPT => bytes,
        CFB1_ENCRYPT | CFB1_DECRYPT => 8 * bytes,
        _ => bytes.div_ceil(16),
    }
}

/// The block at a place.
fn block_at(data: &[u8], at: usize) -> Block {
    let mut block = Block::default();
    block.copy_from_slice(&data[at..at + 16]);
    block
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
