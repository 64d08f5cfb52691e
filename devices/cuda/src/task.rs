//! A call: the operation, the kernels, and the memory that the call uses.

use std::sync::Arc;

use lockstep_core::KeySize;
use lockstep_core::chaining::ChainingState;
use lockstep_core::data::PinnedBuffer;
use lockstep_core::work::{Operation, Stream};
use lockstep_gpu_host::Kind;

use crate::carry_less;
use crate::gpu::{Event, Gpu};
use crate::kernel::{Family, LaunchOptions, Products};
use crate::machine::Hold;
use crate::passes::by_matrices;
use crate::staging::Pool;

/// One call.
pub(crate) struct Task {
    pub(crate) pool: Arc<Pool>,
    /// The kernels. `None` if only the overhead is measured: the data are then copied, and no kernel runs.
    pub(crate) family: Option<&'static Family>,
    pub(crate) operation: Operation,
    pub(crate) kind: Kind,
    pub(crate) size: KeySize,
    pub(crate) options: LaunchOptions,
    /// The caller's stream, for data in device memory.
    pub(crate) stream: Stream,
    /// Handles that keep the caller's device memory allocated.
    pub(crate) holds: Vec<Hold>,
    /// Pinned buffers of the caller, each with the events after which the earlier uses of the buffer have ended.
    pub(crate) earlier_uses: Vec<(PinnedBuffer, Vec<Event>)>,
}

impl Task {
    pub(crate) fn new(
        pool: &Arc<Pool>,
        family: Option<&'static Family>,
        (operation, kind): (Operation, Kind),
        size: KeySize,
        options: LaunchOptions,
        stream: Stream,
    ) -> Task {
        let (pool, holds, earlier_uses) = (Arc::clone(pool), Vec::new(), Vec::new());
        Task { pool, family, operation, kind, size, options, stream, holds, earlier_uses }
    }

    pub(crate) fn gpu(&self) -> &Arc<Gpu> {
        self.pool.device()
    }

    pub(crate) fn chaining(&self) -> ChainingState {
        ChainingState::of_operation(self.operation)
    }

    /// True if GHASH and POLYVAL multiply by the carry-less multiply-add.
    pub(crate) fn is_carry_less(&self) -> bool {
        self.kind.hashes() && self.options.products == Products::CarryLess && carry_less::is_used(self.gpu())
    }

    /// True if matrices compute the hashes of level 0 of GHASH, for this number of tiles and keys.
    pub(crate) fn is_by_matrices(&self, tiles: u64, keys: u64) -> bool {
        self.options.products >= Products::TensorUnits
            && !self.is_carry_less()
            && by_matrices(self.gpu().limits(), tiles, keys)
            && self.gpu().loads_tensor_kernels()
    }

    /// True if the final chaining state of each piece is copied back from the device, because the host cannot compute it.
    pub(crate) fn device_computes_states(&self, resident: bool) -> bool {
        self.family.is_some()
            && match self.chaining() {
                ChainingState::DeviceComputed => true,
                ChainingState::LastCiphertext => resident,
                _ => false,
            }
    }
}
