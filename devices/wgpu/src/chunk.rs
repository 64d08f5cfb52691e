//! Divides a call into chunks. Each chunk is one submission.

use std::sync::Arc;

use lockstep_core::data::{Data, DeviceSlice};
use lockstep_core::work::{Pass, Segment};
use lockstep_core::{Block, Error, Result};
use lockstep_gpu_host::{Kind, Limits, Messages, Piece, Pipeline, Results, submit};

use crate::calls::lock;
use crate::encode::{Chunk, Found, Staged};
use crate::gpu::Gpu;
use crate::memory::zero;
use crate::staging::{Pool, Staging};
use crate::task::Task;

/// Maximum number of pieces of a chunk, so that the descriptions of the pieces stay smaller than the chunk.
const MOST_PIECES: usize = 16 * 1024;

/// Blocks that a message of an AEAD takes in addition to its data.
const OVERHEAD_BLOCKS: usize = 8;

/// Maximum number of bytes of a message in one chunk, for serial modes. This limits the number of launches of the chunk.
const CHAINED_AT_ONCE: usize = 32 << 10;

impl Pipeline for Task {
    type Device = Gpu;
    type Staged = Staged;
    type Found = Found;

    fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    fn limits(&self, resident: bool) -> Limits {
        let kind = self.kind;
        Limits {
            bytes: if resident { self.chunks.device } else { self.chunks.host },
            pieces: MOST_PIECES,
            // A message that is not cut may exceed the size of a chunk only if it is the only message in the chunk.
            least_room: if let Kind::Tiles(_) = kind { 1 } else { usize::MAX },
            tile: self.tile(),
            serial: if let Kind::Chain(_) = kind { CHAINED_AT_ONCE } else { self.most_at_once(resident) },
            aead_overhead: 16 * OVERHEAD_BLOCKS,
        }
    }

    fn admit(&mut self, data: &Data<'_>) -> Result<()> {
        let Data::Device { from, to, .. } = data else { return Ok(()) };
        if self.gpu().place(from)?.is_aligned() && self.gpu().place(to)?.is_aligned() {
            return Ok(());
        }
        let what = "its memory at an offset that is not a multiple of 4".into();
        Err(Error::OutOfReach { device: self.gpu().id(), what })
    }

    fn stage(
        &self,
        staging: &mut Staging,
        pieces: &mut [Piece],
        messages: &Messages<'_, '_>,
    ) -> Result<Staged> {
        Chunk::new(self, pieces, messages)?.stage(staging)
    }

    fn launch(
        &self,
        staging: &mut Staging,
        staged: Staged,
        _: &[Piece],
        _: &Messages<'_, '_>,
    ) -> Result<(wgpu::SubmissionIndex, Found)> {
        let gpu = self.gpu();
        // Between reading words and writing them back, no other submission may write to the same words.
        let guard = staged.writes_parts_of_words.then(|| lock(&gpu.parts_of_words));
        let submission = gpu.call(|_, queue| queue.submit([staged.commands]))?;
        drop(guard);
        staging.map(gpu, staged.found.len)?;
        Ok((submission, staged.found))
    }

    fn read_back(
        &self,
        staging: &mut Staging,
        found: &Found,
        pieces: &[Piece],
        results: &mut Results<'_, '_, '_>,
    ) -> Result<()> {
        staging.read(self.gpu(), found.len, |bytes| {
            let block = |index: usize| -> Block {
                let mut block = Block::default();
                block.copy_from_slice(&bytes[16 * index..16 * index + 16]);
                block
            };
            for (index, piece) in pieces.iter().enumerate() {
                if let Some(outputs) = &found.outputs {
                    results.set_output(piece, &bytes[outputs[index]..]);
                }
                let ends = piece.range.end == results.len_of(piece.segment);
                if let Some(at) = found.last_blocks.filter(|_| ends && piece.range.len() >= 16) {
                    results.set_chaining_state(piece.segment, block(at / 16 + index));
                }
                if found.states {
                    results.set_chaining_state(piece.segment, block(index));
                }
                if let Some(offsets) = &self.offsets {
                    offsets.add(&block(index));
                }
                if found.tags {
                    results.set_status(piece.segment, block(pieces.len() + index)[0], &block(index));
                }
            }
        })
    }

    fn zero(&self, outputs: &[DeviceSlice]) {
        for slice in outputs {
            let _ = zero(&self.pool, slice);
        }
    }
}

impl Task {
    /// Runs a pass over a segment, and waits until the pass has ended.
    pub(crate) fn run(&self, pass: Pass, segment: Segment<'_>) -> Result<()> {
        submit(self.with_pass(pass), Messages::Pass(pass, &mut [segment]))?.wait()
    }
}
