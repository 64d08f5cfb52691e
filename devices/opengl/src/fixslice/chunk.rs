//! Executes a call in chunks. Each chunk is one draw. For XTS, another draw, which encrypts the tweaks, comes before it.

use std::sync::Arc;

use lockstep_core::chaining::{ChainingState, counter_after};
use lockstep_core::work::{Operation, Pass};
use lockstep_core::xts::{power_of_x, times, times_power_of_x};
use lockstep_core::{Block, KeySize, Result};
use lockstep_gpu_host::{Limits, Messages, Piece, PieceKeys, Pipeline, Results, StagingPool, with_input};
use zeroize::{Zeroize, Zeroizing};

use super::draw::Draw;
use super::keys::planes;
use super::layout::Tiling;
use super::program::Program;
use crate::driver::{Drawn, Driver, Staging, lock, or_wipe, reserve};
use crate::gl::{Gl, WIDTH, rows};

/// Maximum number of pieces of a chunk. In tiles of 64 blocks, this number of pieces fills 512 rows of a texture.
const MOST_PIECES: usize = 8 * 1024;

/// The data of a chunk.
#[derive(Default)]
pub(crate) struct Chunk {
    /// For XTS: the draw that encrypts the tweaks. It runs before `draw`.
    tweaks: Option<Tweaks>,
    draw: Option<Draw>,
}

/// The tweaks of a chunk. A piece has one tweak, and the tweak has its own tile.
struct Tweaks {
    draw: Draw,
    /// For each piece: the number of blocks before it in its data unit, and the number of its tiles.
    pieces: Vec<(u64, usize)>,
}

/// A call, which is processed in chunks by `opengl/fixslice`.
pub(crate) struct Task {
    pub(crate) pool: Arc<StagingPool<Driver<Chunk>>>,
    pub(crate) operation: Operation,
    pub(crate) pass: Pass,
    pub(crate) size: KeySize,
    pub(crate) tiling: Tiling,
    /// The size of a chunk in bytes.
    pub(crate) chunk: usize,
}

impl Pipeline for Task {
    type Device = Driver<Chunk>;
    type Staged = ();
    type Found = ();

    fn pool(&self) -> &Arc<StagingPool<Driver<Chunk>>> {
        &self.pool
    }

    fn limits(&self, _: bool) -> Limits {
        Limits {
            bytes: self.chunk,
            pieces: MOST_PIECES,
            least_room: 1,
            tile: self.tiling.bytes(),
            serial: usize::MAX,
            aead_overhead: 0,
        }
    }

    fn stage(
        &self,
        staging: &mut Staging<Chunk>,
        pieces: &mut [Piece],
        messages: &Messages<'_, '_>,
    ) -> Result<()> {
        let chunk = &mut *lock(staging);
        let keys = PieceKeys::of(pieces, messages);
        let program = |operation, one_key| {
            let program = Program::of(operation, self.size, one_key);
            program.ok_or_else(|| operation.unsupported_by("opengl"))
        };
        let numbers: Vec<u32> = keys.numbers.iter().map(|&(key, _)| key).collect();
        let program_of_data = program(self.operation, is_one(&numbers))?;
        let old = chunk.draw.take().map(|draw| draw.halves).unwrap_or_default();
        chunk.draw = Some(Draw {
            program: program_of_data,
            tiling: self.tiling,
            halves: self.halves(old, pieces, messages),
            tile_count: pieces.iter().map(|piece| self.tiling.tiles_of(piece)).sum(),
            tiles: self.tiles(pieces, messages, &numbers),
            keys: key_planes(&keys, &numbers, program_of_data.decrypts),
        });
        chunk.tweaks = None;
        if self.pass.is_xts() {
            let numbers: Vec<u32> = keys.numbers.iter().map(|&(_, tweak)| tweak).collect();
            let program = program(Operation::Pass(Pass::EcbEncrypt), is_one(&numbers))?;
            let pieces_of_tweaks = pieces.iter().map(|piece| (piece.position, self.tiling.tiles_of(piece)));
            chunk.tweaks = Some(Tweaks {
                draw: tweak_draw(program, pieces, &keys, &numbers),
                pieces: pieces_of_tweaks.collect(),
            });
        }
        Ok(())
    }

    fn launch(
        &self,
        staging: &mut Staging<Chunk>,
        (): (),
        _: &[Piece],
        _: &Messages<'_, '_>,
    ) -> Result<(Drawn, ())> {
        let chunk = Arc::clone(staging);
        let work = move |gl: &mut Gl| {
            let Chunk { tweaks, draw: Some(draw) } = &mut *lock(&chunk) else { return Ok(()) };
            if let Some(tweaks) = tweaks {
                tweaks.draw.run(gl)?;
                set_tweaks(draw, tweaks);
            }
            draw.run(gl)
        };
        let work = or_wipe(work);
        Ok((self.pool.device().thread.send(work), ()))
    }

    fn read_back(
        &self,
        staging: &mut Staging<Chunk>,
        (): &(),
        pieces: &[Piece],
        results: &mut Results<'_, '_, '_>,
    ) -> Result<()> {
        let chunk = lock(staging);
        let Some(draw) = &chunk.draw else { return Ok(()) };
        let tiling = self.tiling;
        let mut first_tile = 0;
        for piece in pieces {
            let tiles = tiling.tiles_of(piece);
            results.write_output(piece, |output| {
                for (tile, half) in (0..tiles).flat_map(|tile| [(tile, 0), (tile, 1)]) {
                    let bytes = tiling.bytes_at(piece, tile, half);
                    let at = (first_tile + tile) * tiling.half();
                    output[bytes.clone()].copy_from_slice(&draw.halves[half][at..at + bytes.len()]);
                }
            });
            first_tile += tiles;
        }
        Ok(())
    }
}

impl Task {
    /// Fills the halves of the tiles with the blocks of all pieces. In the last tile of each piece, bytes after the end of the piece are
    /// zero.
    fn halves(
        &self,
        mut halves: [Zeroizing<Vec<u8>>; 2],
        pieces: &[Piece],
        messages: &Messages<'_, '_>,
    ) -> [Zeroizing<Vec<u8>>; 2] {
        let tiling = self.tiling;
        let tiles: usize = pieces.iter().map(|piece| tiling.tiles_of(piece)).sum();
        let len = 16 * WIDTH * rows(tiles * tiling.half() / 16);
        for half in &mut halves {
            reserve(half, len);
            half.resize(len, 0);
            half[tiles * tiling.half()..].zeroize();
        }
        let mut first_tile = 0;
        for piece in pieces {
            let tiles = tiling.tiles_of(piece);
            with_input(messages.data(piece.segment), |input| {
                let input = &input[piece.range.clone()];
                for (tile, half) in (0..tiles).flat_map(|tile| [(tile, 0), (tile, 1)]) {
                    let bytes = tiling.bytes_at(piece, tile, half);
                    let at = (first_tile + tile) * tiling.half();
                    let (to, padding) = halves[half][at..at + tiling.half()].split_at_mut(bytes.len());
                    to.copy_from_slice(&input[bytes]);
                    padding.fill(0);
                }
            });
            first_tile += tiles;
        }
        halves
    }

    /// Two texels for each tile: the chaining state before the tile, and the number of its key. For XTS, the chaining
    /// state is set later.
    fn tiles(&self, pieces: &[Piece], messages: &Messages<'_, '_>, numbers: &[u32]) -> Zeroizing<Vec<u8>> {
        let tiling = self.tiling;
        let mut tiles = Zeroizing::new(Vec::new());
        let chaining = ChainingState::of(self.pass);
        for (piece, number) in pieces.iter().zip(numbers) {
            with_input(messages.data(piece.segment), |input| {
                let input = &input[piece.range.clone()];
                for tile in 0..tiling.tiles_of(piece) {
                    let at = tile * tiling.bytes();
                    let state: Block = match chaining {
                        ChainingState::Counter | ChainingState::Counter32 => {
                            counter_after(self.pass, &piece.state, at as u128 / 16)
                        }
                        ChainingState::LastCiphertext if tile > 0 => {
                            input[at - 16..at].try_into().expect("16 bytes")
                        }
                        _ => piece.state,
                    };
                    push_tile(&mut tiles, &state, *number);
                }
            });
        }
        whole_rows(tiles)
    }
}

fn is_one(numbers: &[u32]) -> bool {
    numbers.iter().all(|number| *number == numbers[0])
}

fn push_tile(tiles: &mut Vec<u8>, state: &Block, number: u32) {
    tiles.extend_from_slice(state);
    tiles.extend_from_slice(&number.to_ne_bytes());
    tiles.extend_from_slice(&[0; 12]);
}

/// Appends zeros up to the end of a row of a texture.
fn whole_rows(mut bytes: Zeroizing<Vec<u8>>) -> Zeroizing<Vec<u8>> {
    let len = 16 * WIDTH * rows(bytes.len() / 16);
    bytes.resize(len, 0);
    bytes
}

/// The bit planes of the key, if all tiles share a key. Otherwise the bit planes of all keys, in whole rows of a texture.
fn key_planes(keys: &PieceKeys<'_>, numbers: &[u32], decrypts: bool) -> Zeroizing<Vec<u32>> {
    if is_one(numbers) {
        return planes(keys.all[numbers[0] as usize], decrypts);
    }
    let planes_of_all: Vec<_> = keys.all.iter().map(|key| planes(key, decrypts)).collect();
    let len: usize = planes_of_all.iter().map(|words| words.len()).sum();
    // The memory is allocated at its full size, because memory that grows leaves a copy of the keys.
    let mut words = Zeroizing::new(vec![0; 4 * WIDTH * rows(len / 4)]);
    for (to, from) in words.iter_mut().zip(planes_of_all.iter().flat_map(|words| words.iter())) {
        *to = *from;
    }
    words
}

/// The draw that encrypts the tweaks of all pieces.
fn tweak_draw(program: Program, pieces: &[Piece], keys: &PieceKeys<'_>, numbers: &[u32]) -> Draw {
    let (mut blocks, mut tiles) = (Zeroizing::new(Vec::new()), Zeroizing::new(Vec::new()));
    for (piece, number) in pieces.iter().zip(numbers) {
        blocks.extend_from_slice(&piece.state);
        push_tile(&mut tiles, &Block::default(), *number);
    }
    let blocks = whole_rows(blocks);
    let nothing = Zeroizing::new(vec![0; blocks.len()]);
    Draw {
        program,
        tiling: Tiling::SMALL,
        halves: [blocks, nothing],
        tile_count: pieces.len(),
        tiles: whole_rows(tiles),
        keys: key_planes(keys, numbers, false),
    }
}

/// Sets the chaining states of all tiles to the encrypted tweaks times powers of x (IEEE 1619, 5.2).
fn set_tweaks(draw: &mut Draw, tweaks: &Tweaks) {
    let encrypted = tweaks.draw.halves[0].as_chunks::<16>().0;
    let mut states = draw.tiles.chunks_exact_mut(32);
    for (&(position, tiles), tweak) in tweaks.pieces.iter().zip(encrypted) {
        let mut tweak = times(u128::from_le_bytes(*tweak), power_of_x(position));
        for state in states.by_ref().take(tiles) {
            state[..16].copy_from_slice(&tweak.to_le_bytes());
            tweak = times_power_of_x(tweak, draw.tiling.blocks() as u32);
        }
    }
}

#[cfg(test)]
mod tests;
