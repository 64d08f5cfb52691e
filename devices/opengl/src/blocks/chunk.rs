//! Executes a call by a kernel that encrypts blocks. The call is divided into chunks. A chunk has one draw for each run of pieces with the
//! same key.

use std::sync::Arc;

use lockstep_core::chaining::{ChainingState, counter_after};
use lockstep_core::work::Pass;
use lockstep_core::{Key, KeySize, Result};
use lockstep_gpu_host::{Limits, Messages, Piece, PieceKeys, Pipeline, Results, StagingPool, with_input};
use zeroize::Zeroizing;

use super::{Experiment, Kernel, Run, Steps};
use crate::driver::{Drawn, Driver, Staging, lock, or_wipe, reserve};
use crate::gl::{Gl, WIDTH, rows};

/// Maximum number of pieces of a chunk. If each piece has its own key, there is one draw for each piece, which needs at
/// least one row of a texture.
const MOST_PIECES: usize = 512;

/// Maximum width and height of the textures of whole passes (see `Experiment::edge`). Every device supports textures of
/// this width and height.
const MOST_EDGE: usize = 1024;

/// The data of a chunk.
#[derive(Default)]
pub(crate) struct Chunk {
    runs: Vec<Run>,
    /// For each piece: the index of its run, and the position of its blocks within this run, in bytes.
    places: Vec<(usize, usize)>,
    /// For CTR and CBC: the blocks that are added (XOR) to the results, for all pieces.
    mask: Zeroizing<Vec<u8>>,
}

/// A call, which is processed in chunks by a kernel that encrypts blocks.
pub(crate) struct Task {
    pub(crate) pool: Arc<StagingPool<Driver<Chunk>>>,
    pub(crate) kernel: Kernel,
    pub(crate) pass: Pass,
    pub(crate) size: KeySize,
    /// The size of a chunk in bytes.
    pub(crate) chunk: usize,
    pub(crate) experiment: Experiment,
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
            bytes: self.edge().map_or(self.chunk, |edge| 16 * edge * edge),
            pieces: MOST_PIECES,
            least_room: 1,
            tile: 16,
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
        let mut spare: Vec<_> = std::mem::take(&mut chunk.runs).into_iter().map(|run| run.blocks).collect();
        chunk.places.clear();
        chunk.mask.clear();
        reserve(&mut chunk.mask, pieces.iter().map(bytes_of_blocks).sum());
        let mut last = None;
        for (index, (piece, &(number, _))) in pieces.iter().zip(&keys.numbers).enumerate() {
            if last != Some(number) {
                last = Some(number);
                let same = keys.numbers[index..].iter().take_while(|(other, _)| *other == number).count();
                let blocks = pieces[index..index + same].iter().map(bytes_of_blocks).sum::<usize>() / 16;
                let key = keys.all[number as usize];
                chunk.runs.push(self.run(key, blocks, spare.pop().unwrap_or_default()));
            }
            let number = chunk.runs.len() - 1;
            let run = &mut chunk.runs[number];
            chunk.places.push((number, run.blocks.len()));
            with_input(messages.data(piece.segment), |input| {
                self.stage_piece(piece, &input[piece.range.clone()], run, &mut chunk.mask);
            });
        }
        for run in &mut chunk.runs {
            run.blocks.resize(16 * WIDTH * rows(run.drawn), 0);
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
        let work = or_wipe(move |gl: &mut Gl| lock(&chunk).runs.iter_mut().try_for_each(|run| run.draw(gl)));
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
        let mut mask = &chunk.mask[..];
        for (piece, &(run, at)) in pieces.iter().zip(&chunk.places) {
            results.write_output(piece, |output| {
                output.copy_from_slice(&chunk.runs[run].blocks[at..at + output.len()]);
                for (to, from) in output.iter_mut().zip(mask) {
                    *to ^= from;
                }
            });
            mask = mask.get(piece.range.len().next_multiple_of(16)..).unwrap_or_default();
        }
        Ok(())
    }
}

impl Task {
    fn is_of_the_6800(&self) -> bool {
        matches!(self.kernel, Kernel::Geforce6800(_))
    }

    /// The width and height of textures that are drawn as a whole, if the experiment sets them.
    fn edge(&self) -> Option<usize> {
        self.experiment.edge.map(|edge| edge.clamp(1, MOST_EDGE)).filter(|_| self.is_of_the_6800())
    }

    /// A run for this number of blocks, which are added later. Its memory never grows, because growing would leave a copy
    /// of the content.
    fn run(&self, key: &Key, blocks: usize, mut memory: Zeroizing<Vec<u8>>) -> Run {
        let drawn = self.edge().map_or(blocks, |edge| edge * edge);
        memory.clear();
        reserve(&mut memory, 16 * WIDTH * rows(drawn));
        Run {
            kernel: self.kernel,
            size: self.size,
            decrypts: matches!(self.pass, Pass::EcbDecrypt | Pass::CbcDecrypt),
            round_keys: Zeroizing::new(key.round_keys().as_blocks().concat()),
            blocks: memory,
            drawn,
            steps: if self.is_of_the_6800() { self.experiment.steps } else { Steps::All },
        }
    }

    /// Appends the blocks of a piece that the kernel encrypts or decrypts, and the blocks that are added to the results.
    fn stage_piece(&self, piece: &Piece, input: &[u8], run: &mut Run, mask: &mut Vec<u8>) {
        let count = input.len().div_ceil(16);
        let padding = 16 * count - input.len();
        match ChainingState::of(self.pass) {
            ChainingState::Counter | ChainingState::Counter32 => {
                for block in 0..count as u128 {
                    run.blocks.extend_from_slice(&counter_after(self.pass, &piece.state, block));
                }
                mask.extend_from_slice(input);
                mask.extend_from_slice(&[0; 16][..padding]);
            }
            ChainingState::LastCiphertext => {
                run.blocks.extend_from_slice(input);
                mask.extend_from_slice(&piece.state);
                mask.extend_from_slice(&input[..input.len() - 16]);
            }
            _ => run.blocks.extend_from_slice(input),
        }
    }
}

/// The number of bytes of all blocks of a piece. An incomplete last block counts as a whole block.
fn bytes_of_blocks(piece: &Piece) -> usize {
    piece.range.len().next_multiple_of(16)
}
