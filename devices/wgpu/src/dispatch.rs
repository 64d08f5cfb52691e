//! The launches of a chunk, their tiles, and the layout of the buffer `work`.

use lockstep_core::data::Data;
use lockstep_core::work::Tag;
use lockstep_core::xts::{power_of_x, times_power_of_x};
use lockstep_core::{Block, Result};
use lockstep_gpu_host::compose::GcmSteps;
use lockstep_gpu_host::{Chain, Kind, Messages, Piece, with_input};

use crate::allocation::WORD;
use crate::kernel::{CHAIN_MESSAGES, CHAIN_STEPS, Family, GHASH_LEVELS, GHASH_RUN, Part, Program, WIDE};
use crate::launch::{Launch, Tile, Tiles};
use crate::task::Task;

/// Sections of `work`, in blocks.
#[derive(Default)]
pub(crate) struct Layout {
    pub(crate) blocks: usize,
}

impl Layout {
    /// Adds a section and returns its first block.
    pub(crate) fn section(&mut self, blocks: usize) -> usize {
        let at = self.blocks;
        self.blocks += blocks;
        at
    }
}

/// The launches of a chunk.
#[derive(Default)]
pub(crate) struct DispatchList {
    pub(crate) tiles: Tiles,
    pub(crate) launches: Vec<Launch>,
    /// For each T-table that the launches use: true if it belongs to the inverse cipher.
    pub(crate) tables: Vec<bool>,
}

/// The first blocks of the sections of `work`. If a pass does not need a section, the section is empty.
pub(crate) struct Places {
    /// Chaining states, one for each piece.
    pub(crate) states: usize,
    /// For chunks of a long message of OCB3: the first offset and the masks.
    pub(crate) offsets: usize,
    /// Zero blocks, one for each key, whose encryptions are the hash keys. Empty for POLYVAL.
    pub(crate) zeros: usize,
    /// For GCM: `masks` has the first counter block of each piece, whose encryption is the mask of its tag. For OCB3 it has the nonce
    /// blocks, which the first offsets replace. `tags` has the tags and then the statuses, which are copied back. For chunks of a long
    /// message of OCB3, `tags` has the checksums of the pieces.
    pub(crate) masks: usize,
    pub(crate) tags: usize,
    /// For GCM, the input of GHASH for each piece, which starts with the associated data. For OCB3, the associated data.
    pub(crate) hashed: Vec<usize>,
    /// The data of each piece.
    pub(crate) data: Vec<usize>,
    /// Distance in blocks from the input of a piece to its output.
    pub(crate) to: usize,
    /// For each output that ends within a word: the previous content of that word.
    pub(crate) tails: usize,
    /// True if the data are in device memory, where the host cannot access them.
    pub(crate) resident: bool,
}

/// The input of GHASH of a message: its piece, its first block, its number of blocks, and the place of its hash.
struct Hashed {
    piece: usize,
    at: usize,
    blocks: usize,
    output: usize,
}

/// The chunk for which a [`DispatchList`] is made.
pub(crate) struct Work<'a, 'w, 'd> {
    pub(crate) task: &'a Task,
    pub(crate) family: &'static Family,
    pub(crate) pieces: &'a [Piece],
    pub(crate) messages: &'a Messages<'w, 'd>,
    /// For each piece, the index of its key and the index of its tweak key.
    pub(crate) numbers: &'a [(u32, u32)],
    pub(crate) keys: usize,
    pub(crate) places: &'a Places,
}

/// Adds the launches of fused GCM to the list of a chunk.
pub(crate) struct Gcm<'g, 'a, 'w, 'd> {
    work: &'g Work<'a, 'w, 'd>,
    list: &'g mut DispatchList,
    layout: &'g mut Layout,
    opens: bool,
    /// The position of the first message's hash in the buffer, in blocks. The hashes of the other messages follow.
    hashes: usize,
}

impl<'g, 'a, 'w, 'd> Gcm<'g, 'a, 'w, 'd> {
    pub(crate) fn new(
        work: &'g Work<'a, 'w, 'd>,
        list: &'g mut DispatchList,
        layout: &'g mut Layout,
        opens: bool,
    ) -> Self {
        let hashes = layout.section(work.pieces.len());
        Gcm { work, list, layout, opens, hashes }
    }
}

impl GcmSteps for Gcm<'_, '_, '_, '_> {
    fn encrypt_auxiliary(&mut self) -> Result<()> {
        let mut keys: Vec<u32> = (0..self.work.keys as u32).collect();
        keys.extend(self.work.numbers.iter().map(|&(key, _)| key));
        // The masks follow the hash keys.
        self.work.prelude(self.list, self.work.places.zeros, keys);
        Ok(())
    }

    fn ctr(&mut self, is_gated: bool) -> Result<()> {
        self.work.tiles(self.list, Part::Ctr, is_gated);
        Ok(())
    }

    fn hash(&mut self) -> Result<()> {
        let places = self.work.places;
        // If the ciphertext came from the host, the host has already padded it.
        if !self.opens || places.resident {
            self.work.pads(self.list);
        }
        let hashed = (self.work.pieces.iter().enumerate()).map(|(index, piece)| Hashed {
            piece: index,
            at: places.hashed[index],
            // The input of GHASH includes the block of lengths.
            blocks: places.data[index] - places.hashed[index] + piece.range.len().div_ceil(16) + 1,
            output: self.hashes + index,
        });
        self.work.hash(self.list, self.layout, hashed.collect())
    }

    fn tags(&mut self) -> Result<()> {
        let (hashes, masks) = (self.hashes, self.work.places.masks);
        self.work.tags(self.list, self.opens, |index| (hashes + index, masks + index));
        Ok(())
    }
}

impl Work<'_, '_, '_> {
    pub(crate) fn launch(&self, program: Program, first: usize, tiles: usize, invocations: usize) -> Launch {
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

    pub(crate) fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.range.len() as u64).sum()
    }

    /// Adds the launch that encrypts consecutive blocks of `work` from block `at` on; `keys` has the number of the key of each block.
    pub(crate) fn prelude(&self, list: &mut DispatchList, at: usize, keys: impl IntoIterator<Item = u32>) {
        self.encrypt_blocks(list, keys.into_iter().enumerate().map(|(index, key)| (at + index, key)));
    }

    /// Adds the launch that encrypts single blocks. An item is the place of a block, and the number of its key.
    pub(crate) fn encrypt_blocks(
        &self,
        list: &mut DispatchList,
        blocks: impl IntoIterator<Item = (usize, u32)>,
    ) {
        let first = list.tiles.len();
        let tile = |(at, key)| Tile { at: at as u32, blocks: 1, key, ..Tile::default() };
        list.tiles.extend(blocks.into_iter().map(tile));
        let tiles = list.tiles.len() - first;
        if tiles == 0 {
            return;
        }
        let invocations = tiles.div_ceil(CHAIN_MESSAGES);
        list.launches.push(self.launch(Program::Blocks, first, tiles, invocations));
    }

    /// Adds the launches of a pass in tiles. If `gated` is true, the launches zero messages with wrong tags instead of processing them.
    pub(crate) fn tiles(&self, list: &mut DispatchList, part: Part, gated: bool) {
        let count = self.pieces.len();
        if part.tweaks() {
            self.prelude(list, self.places.states, self.numbers.iter().map(|&(_, tweak)| tweak));
        }
        let first = list.tiles.len();
        let whole = self.task.tile();
        let chaining = self.task.chaining();
        for (index, piece) in self.pieces.iter().enumerate() {
            let data = self.messages.data(piece.segment);
            let mut power = if part.tweaks() { power_of_x(piece.position) } else { 0 };
            let index_of = if gated { self.places.tags + count } else { self.places.states };
            for start in (0..piece.range.len()).step_by(whole) {
                let mut extra = (index_of + index) as u32;
                let state = if part.tweaks() {
                    power.to_le_bytes()
                } else if part.looks_back() {
                    let at = piece.range.start + start;
                    extra = u32::from(self.places.resident && at > 0);
                    let last = (start > 0 && !self.places.resident).then(|| block_at(data, at - 16));
                    chaining.after(piece.state, start, last)
                } else {
                    chaining.after(piece.state, start, None)
                };
                let bytes = whole.min(piece.range.len() - start);
                list.tiles.push(Tile {
                    at: (self.places.data[index] + start / 16) as u32,
                    blocks: bytes.div_ceil(16) as u32,
                    key: self.numbers[index].0,
                    extra,
                    state,
                });
                power = times_power_of_x(power, (whole / 16) as u32);
            }
        }
        let tiles = list.tiles.len() - first;
        if tiles == 0 {
            return;
        }
        let invocations = tiles * if self.task.wide { WIDE } else { 1 };
        let program = (self.family.program)(part, self.task.wide);
        let option = self.task.counter_mask();
        let launch = self.launch(program, first, tiles, invocations);
        let (to, step) = (self.places.to as u32, u32::from(gated));
        list.launches.push(Launch { option, to, step, bytes: self.bytes(), ..launch });
    }

    /// Adds the launches of GHASH or POLYVAL of segments.
    pub(crate) fn ghash(&self, list: &mut DispatchList, layout: &mut Layout) -> Result<()> {
        if !self.is_polyval() {
            self.prelude(list, self.places.zeros, 0..self.keys as u32);
        }
        let hashed = (self.pieces.iter().enumerate()).map(|(index, piece)| Hashed {
            piece: index,
            at: self.places.hashed[index],
            blocks: piece.range.len() / 16,
            output: self.places.states + index,
        });
        self.hash(list, layout, hashed.collect())
    }

    /// Computes or compares the tags. The tag of a message is the sum of the blocks at the two places that `places` returns.
    pub(crate) fn tags(
        &self,
        list: &mut DispatchList,
        opens: bool,
        places: impl Fn(usize) -> (usize, usize),
    ) {
        let (first, count) = (list.tiles.len(), self.pieces.len());
        for (index, piece) in self.pieces.iter().enumerate() {
            let Some(message) = self.messages.aead(piece.segment) else { continue };
            let mut state = Block::default();
            if let Tag::Expect(tag) = &message.tag {
                state[..tag.len()].copy_from_slice(tag);
            }
            let (at, extra) = places(index);
            let (at, extra) = (at as u32, extra as u32);
            list.tiles.push(Tile { at, blocks: message.tag.len() as u32, key: 0, extra, state });
        }
        let launch = self.launch(Program::GcmTags, first, count, count);
        let (scratch, option) = (self.places.tags as u32, u32::from(opens));
        list.launches.push(Launch { scratch, option, ..launch });
    }

    /// Pads ciphertexts with zeros to whole blocks, for GHASH.
    fn pads(&self, list: &mut DispatchList) {
        let first = list.tiles.len();
        for (piece, data) in self.pieces.iter().zip(&self.places.data) {
            let (whole, rest) = (piece.range.len() / 16, piece.range.len() % 16);
            if rest > 0 {
                let at = (data + whole) as u32;
                list.tiles.push(Tile { at, blocks: rest as u32, ..Tile::default() });
            }
        }
        let count = list.tiles.len() - first;
        if count > 0 {
            list.launches.push(self.launch(Program::GcmPads, first, count, count));
        }
    }

    /// If an output ends within a word, restores the bytes of this word that do not belong to the output.
    pub(crate) fn tails(&self, list: &mut DispatchList) {
        let first = list.tiles.len();
        for (piece, data) in self.pieces.iter().zip(&self.places.data) {
            let len = piece.range.len();
            if !len.is_multiple_of(WORD) {
                list.tiles.push(Tile {
                    at: (data + self.places.to + len / 16) as u32,
                    blocks: (len % 16) as u32,
                    key: 0,
                    extra: (self.places.tails + list.tiles.len() - first) as u32,
                    state: Block::default(),
                });
            }
        }
        let count = list.tiles.len() - first;
        if count > 0 {
            list.launches.push(self.launch(Program::Tails, first, count, count));
        }
    }

    /// True for POLYVAL, whose hash keys are the keys themselves.
    fn is_polyval(&self) -> bool {
        self.task.kind == Kind::Polyval
    }

    /// Adds the launches of GHASH or POLYVAL that follow the computation of the hash keys.
    fn hash(&self, list: &mut DispatchList, layout: &mut Layout, mut left: Vec<Hashed>) -> Result<()> {
        let first = list.tiles.len();
        let step = u32::from(self.is_polyval());
        list.tiles.extend((0..self.keys).map(|key| Tile {
            at: (self.places.zeros + key) as u32,
            blocks: 1,
            key: key as u32,
            ..Tile::default()
        }));
        let continues = matches!(self.task.kind, Kind::Ghash | Kind::Polyval);
        let scratch = layout.section(GHASH_LEVELS * self.keys) as u32;
        let powers = self.launch(Program::GhashPowers, first, self.keys, self.keys);
        list.launches.push(Launch { scratch, step, ..powers });
        for level in 0..GHASH_LEVELS {
            let first = list.tiles.len();
            let mut next = Vec::new();
            for message in left {
                let runs = message.blocks.div_ceil(GHASH_RUN);
                let output = if runs == 1 { message.output } else { layout.section(runs) };
                // Runs are counted from the end, so the first run may be short.
                let short = message.blocks - (runs - 1) * GHASH_RUN;
                for run in 0..runs {
                    let is_first = continues && level == 0 && run == 0;
                    let (skip, len) =
                        if run == 0 { (0, short) } else { (short + (run - 1) * GHASH_RUN, GHASH_RUN) };
                    list.tiles.push(Tile {
                        at: (message.at + skip) as u32,
                        blocks: len as u32,
                        key: self.numbers[message.piece].0,
                        extra: (output + run) as u32,
                        state: if is_first { self.pieces[message.piece].state } else { Block::default() },
                    });
                }
                if runs > 1 {
                    next.push(Hashed { at: output, blocks: runs, ..message });
                }
            }
            let tiles = list.tiles.len() - first;
            let bytes = if level == 0 { self.bytes() } else { 0 };
            let launch = self.launch(Program::GhashRuns, first, tiles, tiles);
            list.launches.push(Launch { scratch, option: level as u32, step, bytes, ..launch });
            left = next;
            if left.is_empty() {
                return Ok(());
            }
        }
        Err(self.task.gpu().failed("a message is too long for GHASH: please report this"))
    }

    pub(crate) fn chain(&self, list: &mut DispatchList, layout: &mut Layout, chain: Chain) {
        list.tiles.extend(self.pieces.iter().enumerate().map(|(index, piece)| Tile {
            at: self.places.data[index] as u32,
            blocks: piece.range.len() as u32,
            key: self.numbers[index].0,
            extra: (self.places.states + index) as u32,
            state: Block::default(),
        }));
        // Sorts messages by length, because an invocation runs until its longest message ends.
        list.tiles.sort_by_key(|tile| std::cmp::Reverse(tile.blocks));
        let invocations = self.pieces.len().div_ceil(CHAIN_MESSAGES);
        // Space for the bit planes of the round keys of each invocation.
        let scratch = layout.section(invocations * (self.task.size.rounds() + 1) * CHAIN_MESSAGES) as u32;
        let (option, decrypts) = (chain as u32, chain.decrypts());
        let launch =
            |program| Launch { scratch, option, ..self.launch(program, 0, self.pieces.len(), invocations) };
        list.launches.push(launch(Program::ChainKeys { decrypts }));
        let longest = list.tiles.iter().map(|tile| steps_of(chain, tile.blocks)).max().unwrap_or(0);
        for step in (0..longest).step_by(CHAIN_STEPS as usize) {
            let bytes = if step == 0 { self.bytes() } else { 0 };
            let program = Program::ChainSteps { decrypts };
            list.launches.push(Launch { step, steps: CHAIN_STEPS, bytes, ..launch(program) });
        }
    }
}

/// Number of times that a serial mode runs the cipher for a message of `bytes` bytes.
fn steps_of(chain: Chain, bytes: u32) -> u32 {
    match chain {
        Chain::Cfb8Encrypt | Chain::Cfb8Decrypt => bytes,
        Chain::Cfb1Encrypt | Chain::Cfb1Decrypt => 8 * bytes,
        Chain::CbcEncrypt
        | Chain::Cfb128Encrypt
        | Chain::Ofb
        | Chain::PcbcEncrypt
        | Chain::PcbcDecrypt
        | Chain::CbcMac => bytes.div_ceil(16),
    }
}

/// Reads a block of data in host memory.
fn block_at(data: &Data<'_>, at: usize) -> Block {
    let mut block = Block::default();
    with_input(data, |input| block.copy_from_slice(&input[at..at + 16]));
    block
}
