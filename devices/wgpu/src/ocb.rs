//! The launches of OCB3 (RFC 7253).
//!
//! 1. The blocks of zeros and the nonce blocks are encrypted. `OcbKeys` makes the masks, `OcbBegin` the first offsets.
//! 2. `OcbHash` adds offsets to the associated data. The launches of ECB then encrypt the results, and the blocks that become the
//!    pads of partial blocks.
//! 3. One program reads and writes the whole blocks once: it adds the offsets, encrypts or decrypts, and writes the checksum
//!    of each tile.
//! 4. `OcbSums` adds checksums and encrypted associated data. `OcbEnd` processes partial blocks.
//! 5. The blocks that `OcbEnd` has made are encrypted, and `GcmTags` writes or compares the tags. `OcbZero` zeroes the
//!    plaintext of messages with wrong tags.

use std::iter::zip;
use std::ops::Range;

use lockstep_core::Block;
use lockstep_core::ocb::nonce_block;
use lockstep_gpu_host::Piece;

use crate::dispatch::{DispatchList, Layout, Work};
use crate::kernel::{Part, Program, ROWS, SUM_RUN, WIDE};
use crate::launch::{Launch, Tile};
use crate::offsets::Offsets;

/// Associated data of at least this number of blocks are encrypted in tiles.
const TILED_FROM: usize = 16;

/// Blocks to be added, and the place of their sum.
struct Sum {
    at: usize,
    blocks: usize,
    output: usize,
}

/// The masks of all keys, and their number per key.
#[derive(Clone, Copy)]
pub(crate) struct OcbMasks {
    /// The first block of the masks.
    pub(crate) at: usize,
    /// The number of masks L_i.
    pub(crate) levels: usize,
}

impl OcbMasks {
    fn launch(self, launch: Launch) -> Launch {
        Launch { scratch: self.at as u32, steps: self.levels as u32, ..launch }
    }
}

impl Work<'_, '_, '_> {
    /// Adds the launches of OCB3 for whole messages.
    pub(crate) fn ocb(&self, list: &mut DispatchList, layout: &mut Layout, opens: bool) {
        let count = self.pieces.len();
        let mut keys: Vec<u32> = (0..self.keys as u32).collect();
        keys.extend(self.numbers.iter().map(|&(key, _)| key));
        // The nonce blocks follow the blocks of zeros.
        self.prelude(list, self.places.zeros, keys);
        let levels = self.ocb_levels();
        let masks = OcbMasks { at: layout.section(self.keys * (levels + 2)), levels };
        let [pads, checksums, hashes, tag_blocks] = [(); 4].map(|()| layout.section(count));
        self.ocb_begin(list, masks, pads);
        let mut sums = self.ocb_associated_data(list, masks, pads, hashes);
        let first = list.tiles.len();
        sums.extend(
            self.ocb_tiles(list, layout, opens, masks, |index| {
                (self.places.masks + index, checksums + index)
            }),
        );
        let tiles = first..list.tiles.len();
        self.ocb_sums(list, layout, sums);
        self.ocb_end(list, masks, opens, [pads, checksums, tag_blocks]);
        self.prelude(list, tag_blocks, self.numbers.iter().map(|&(key, _)| key));
        self.tags(list, opens, |index| (tag_blocks + index, hashes + index));
        if opens {
            self.ocb_zero(list, tiles);
        }
    }

    /// Adds the launches for pieces of one message, whose masks and first offset are known.
    pub(crate) fn ocb_part(&self, list: &mut DispatchList, layout: &mut Layout, opens: bool) {
        let masks = OcbMasks { at: self.places.offsets + 1, levels: Offsets::LEVELS };
        let places = |index| (self.places.offsets, self.places.tags + index);
        let sums = self.ocb_tiles(list, layout, opens, masks, places);
        self.ocb_sums(list, layout, sums);
    }

    /// The number of masks L_i that the blocks of the messages need, including rows of the last tile that are not used.
    fn ocb_levels(&self) -> usize {
        let blocks = |piece: &Piece| {
            let data = (piece.range.len() / 16).next_multiple_of(self.task.tile() / 16);
            data.max(self.aad_blocks(piece))
        };
        let most = self.pieces.iter().map(blocks).max().unwrap_or(0);
        (usize::BITS - most.leading_zeros()) as usize
    }

    fn aad_blocks(&self, piece: &Piece) -> usize {
        self.messages.aead(piece.segment).map_or(0, |message| message.aad.len().div_ceil(16))
    }

    /// Adds the dispatches that compute the masks of the keys, the first offset of each message, and the blocks whose encryptions
    /// are the pads of partial blocks.
    fn ocb_begin(&self, list: &mut DispatchList, masks: OcbMasks, pads: usize) {
        let first = list.tiles.len();
        list.tiles.extend((0..self.keys).map(|key| Tile {
            at: (self.places.zeros + key) as u32,
            blocks: 1,
            key: key as u32,
            ..Tile::default()
        }));
        list.launches.push(masks.launch(self.launch(Program::OcbKeys, first, self.keys, self.keys)));
        let (first, count) = (list.tiles.len(), self.pieces.len());
        for (index, piece) in self.pieces.iter().enumerate() {
            let Some(message) = self.messages.aead(piece.segment) else { continue };
            let len = piece.range.len();
            list.tiles.push(Tile {
                at: (self.places.masks + index) as u32,
                blocks: nonce_block(message.nonce, message.tag.len()).1,
                key: self.numbers[index].0,
                extra: (pads + index) as u32,
                state: words([(len / 16) as u32, 0, (len % 16) as u32, 0]),
            });
        }
        list.launches.push(masks.launch(self.launch(Program::OcbBegin, first, count, count)));
    }

    /// Adds the launches that encrypt the associated data and compute the pads. Returns the sums whose results are the hashes of the
    /// associated data.
    fn ocb_associated_data(
        &self,
        list: &mut DispatchList,
        masks: OcbMasks,
        pads: usize,
        hashes: usize,
    ) -> Vec<Sum> {
        let first = list.tiles.len();
        let (mut sums, mut singles, mut tiled) = (Vec::new(), Vec::new(), 0);
        let pieces = || zip(self.pieces, self.numbers).zip(&self.places.hashed);
        for is_tiled in [true, false] {
            for (index, ((piece, &(key, _)), &at)) in pieces().enumerate() {
                let blocks = self.aad_blocks(piece);
                if (blocks >= TILED_FROM) != is_tiled {
                    continue;
                }
                let aad = self.messages.aead(piece.segment).map_or(0, |message| message.aad.len());
                for before in (0..blocks).step_by(ROWS) {
                    let here = ROWS.min(blocks - before);
                    list.tiles.push(Tile {
                        at: (at + before) as u32,
                        blocks: here as u32,
                        key,
                        extra: u32::from(before + here == blocks && !aad.is_multiple_of(16)),
                        state: words([before as u32, 0, 0, 0]),
                    });
                }
                if !is_tiled {
                    singles.extend((at..at + blocks).map(|at| (at, key)));
                }
                sums.push(Sum { at, blocks, output: hashes + index });
            }
            if is_tiled {
                tiled = list.tiles.len() - first;
            }
        }
        let all = list.tiles.len() - first;
        if all > 0 {
            list.launches.push(masks.launch(self.launch(Program::OcbHash, first, all, all)));
        }
        if tiled > 0 {
            let program = (self.family.program)(Part::EcbEncrypt, false);
            list.launches.push(self.launch(program, first, tiled, tiled));
        }
        let partial = zip(self.pieces, self.numbers).enumerate();
        let partial = partial.filter(|(_, (piece, _))| !piece.range.len().is_multiple_of(16));
        singles.extend(partial.map(|(index, (_, &(key, _)))| (pads + index, key)));
        self.encrypt_blocks(list, singles);
        sums
    }

    /// Adds the launches for the whole blocks of the pieces. `places` has, for each piece, the place of the first offset and the place of
    /// the checksum. Returns the sums that are still to be computed.
    fn ocb_tiles(
        &self,
        list: &mut DispatchList,
        layout: &mut Layout,
        opens: bool,
        masks: OcbMasks,
        places: impl Fn(usize) -> (usize, usize),
    ) -> Vec<Sum> {
        let (first, whole, mut sums) = (list.tiles.len(), self.task.tile(), Vec::new());
        for (index, piece) in self.pieces.iter().enumerate() {
            let bytes = piece.range.len() / 16 * 16;
            let (count, (offset, output)) = (bytes.div_ceil(whole), places(index));
            let at = if count == 1 { output } else { layout.section(count) };
            for number in 0..count {
                let start = number * whole;
                let before = piece.position + start as u64 / 16;
                list.tiles.push(Tile {
                    at: (self.places.data[index] + start / 16) as u32,
                    blocks: (whole.min(bytes - start) / 16) as u32,
                    key: self.numbers[index].0,
                    extra: self.status_of(index) as u32,
                    state: words([before as u32, (before >> 32) as u32, offset as u32, (at + number) as u32]),
                });
            }
            if count != 1 {
                sums.push(Sum { at, blocks: count, output });
            }
        }
        let tiles = list.tiles.len() - first;
        if tiles > 0 {
            let part = if opens { Part::OcbDecrypt } else { Part::OcbEncrypt };
            let invocations = tiles * if self.task.wide { WIDE } else { 1 };
            let launch = self.launch((self.family.program)(part, self.task.wide), first, tiles, invocations);
            list.launches.push(masks.launch(Launch { bytes: self.bytes(), ..launch }));
        }
        sums
    }

    /// The place of the status of a message.
    fn status_of(&self, index: usize) -> usize {
        self.places.tags + self.pieces.len() + index
    }

    /// Adds the launches that compute sums of blocks, in several levels.
    fn ocb_sums(&self, list: &mut DispatchList, layout: &mut Layout, mut left: Vec<Sum>) {
        while !left.is_empty() {
            let (first, mut next) = (list.tiles.len(), Vec::new());
            for Sum { at, blocks, output } in left {
                let runs = blocks.div_ceil(SUM_RUN).max(1);
                let to = if runs == 1 { output } else { layout.section(runs) };
                list.tiles.extend((0..runs).map(|run| Tile {
                    at: (at + run * SUM_RUN) as u32,
                    blocks: SUM_RUN.min(blocks - run * SUM_RUN) as u32,
                    extra: (to + run) as u32,
                    ..Tile::default()
                }));
                if runs > 1 {
                    next.push(Sum { at: to, blocks: runs, output });
                }
            }
            let tiles = list.tiles.len() - first;
            list.launches.push(self.launch(Program::OcbSums, first, tiles, tiles));
            left = next;
        }
    }

    /// Adds the launches for the partial blocks, and for the blocks whose encryptions give the tags.
    fn ocb_end(
        &self,
        list: &mut DispatchList,
        masks: OcbMasks,
        opens: bool,
        [pads, checksums, tag_blocks]: [usize; 3],
    ) {
        let (first, count) = (list.tiles.len(), self.pieces.len());
        for (index, piece) in self.pieces.iter().enumerate() {
            let whole = piece.range.len() / 16;
            let places = [checksums, pads, tag_blocks].map(|place| (place + index) as u32);
            list.tiles.push(Tile {
                at: (self.places.data[index] + whole) as u32,
                blocks: (piece.range.len() % 16) as u32,
                key: self.numbers[index].0,
                extra: (self.places.masks + index) as u32,
                state: words([whole as u32, places[0], places[1], places[2]]),
            });
        }
        let launch = self.launch(Program::OcbEnd, first, count, count);
        list.launches.push(masks.launch(Launch { option: u32::from(opens), ..launch }));
    }

    /// Adds the launches that zero the plaintext of messages with wrong tags: the tiles of their whole blocks, and their partial blocks.
    fn ocb_zero(&self, list: &mut DispatchList, whole: Range<usize>) {
        let first = list.tiles.len();
        list.tiles.repeat(whole);
        for (index, piece) in self.pieces.iter().enumerate() {
            if !piece.range.len().is_multiple_of(16) {
                list.tiles.push(Tile {
                    at: (self.places.data[index] + piece.range.len() / 16) as u32,
                    blocks: 1,
                    extra: self.status_of(index) as u32,
                    ..Tile::default()
                });
            }
        }
        let tiles = list.tiles.len() - first;
        if tiles > 0 {
            let lanes = if self.task.wide { WIDE } else { 1 };
            let launch = self.launch(Program::OcbZero, first, tiles, tiles * lanes);
            list.launches.push(Launch { option: lanes as u32, ..launch });
        }
    }
}

/// The field `state` of a tile, from four words.
fn words(words: [u32; 4]) -> Block {
    let mut block = Block::default();
    for (place, word) in block.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    block
}
