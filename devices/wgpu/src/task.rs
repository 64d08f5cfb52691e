//! A task is one call: the operation, the kernel, and the division of the data.

use std::sync::Arc;

use lockstep_core::KeySize;
use lockstep_core::chaining::ChainingState;
use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, Operation, Pass};
use lockstep_gpu_host::Kind;

use crate::gpu::Gpu;
use crate::kernel::{Family, ROWS, WIDE};
use crate::offsets::Offsets;
use crate::staging::Pool;

/// Limits, in bytes and in chunks, for the part of a message that is hashed at once, and for a message of GCM or OCB3 in
/// one chunk. The limit in bytes is 2^21 blocks; the levels of GHASH would allow 2^24.
const MOST_AT_ONCE: usize = 32 << 20;
const CHUNKS_AT_ONCE: usize = 8;

/// Number of bytes of a chunk, for data in host memory and for data in device memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chunks {
    pub(crate) host: usize,
    pub(crate) device: usize,
}

/// A call: its operation, its kernel, and how its data are divided.
#[derive(Clone)]
pub(crate) struct Task {
    pub(crate) pool: Arc<Pool>,
    /// The kernel. None for the measurement of overheads: the data are copied, but no kernel runs.
    pub(crate) family: Option<&'static Family>,
    pub(crate) operation: Operation,
    pub(crate) kind: Kind,
    pub(crate) size: KeySize,
    /// True if 32 invocations share each tile.
    pub(crate) wide: bool,
    pub(crate) chunks: Chunks,
    /// For chunks of a long message of OCB3: the offsets that an ECB pass adds to each block before and after the cipher.
    pub(crate) offsets: Option<Arc<Offsets>>,
}

impl Task {
    pub(crate) fn gpu(&self) -> &Arc<Gpu> {
        self.pool.device()
    }

    /// Returns a copy of this call whose operation is `pass`.
    pub(crate) fn with_pass(&self, pass: Pass) -> Task {
        Task { operation: Operation::Pass(pass), kind: Kind::of_pass(pass), ..self.clone() }
    }

    /// Returns how the chaining state changes from tile to tile. Fused GCM also uses a counter, although its messages have no final
    /// chaining state.
    pub(crate) fn chaining(&self) -> ChainingState {
        match self.operation {
            Operation::Pass(pass) => ChainingState::of(pass),
            Operation::Fused(_) => ChainingState::Counter32,
        }
    }

    /// The value of `Launch::option` for tiles: a mask for the carry out of the low 32 bits of a counter.
    pub(crate) fn counter_mask(&self) -> u32 {
        if self.chaining() == ChainingState::Counter32 { 0 } else { u32::MAX }
    }

    /// Bytes of a whole tile.
    pub(crate) fn tile(&self) -> usize {
        16 * ROWS * if self.wide { WIDE } else { 1 }
    }

    /// Maximum number of bytes of a message in one chunk, for messages of GCM and OCB3 and for the part of a message that is hashed at
    /// once.
    pub(crate) fn most_at_once(&self, resident: bool) -> usize {
        let chunk = if resident { self.chunks.device } else { self.chunks.host };
        MOST_AT_ONCE.min(chunk.max(16).saturating_mul(CHUNKS_AT_ONCE) / 16 * 16)
    }

    /// True if a message of GCM or OCB3 is too long for a chunk.
    pub(crate) fn is_long(&self, message: &AeadMessage<'_>) -> bool {
        let resident = matches!(message.data, Data::Device { .. });
        message.aad.len().saturating_add(message.data.len()) > self.most_at_once(resident)
    }
}
