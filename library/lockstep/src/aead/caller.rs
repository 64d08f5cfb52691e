//! The decision between the calling thread and the planner.

use lockstep_core::backend::{DeviceId, DeviceMemory};
use lockstep_core::work::{AeadMessage, FusedAead, Pass, Segment, Task};
use lockstep_core::{Error, Result};
use lockstep_cpu::inline::InlineKernel;
use lockstep_modes::Executor;

use crate::engine::Engine;

/// The default of [`Caller::inline_limit`] in bytes. Their encryption takes about a microsecond.
pub const INLINE_LIMIT: usize = 16 << 10;

/// What a program supplies to the calls of this module, and its rules for their work.
pub trait Caller {
    /// The kernel that computes small messages on the calling thread. It must have passed its self-test. `None` passes all
    /// messages to the planner, for example because the user has chosen a device.
    fn inline_kernel(&self) -> Option<InlineKernel>;

    /// The maximum number of bytes, of data and associated data together, of a message on the calling thread.
    #[inline]
    fn inline_limit(&self) -> usize {
        INLINE_LIMIT
    }

    /// Messages of GCM in [`run_on_host`](super::run_on_host) are computed by threads of the CPU without the planner if they have at
    /// most this number of bytes on average. Default: 0, which passes all batches to the planner.
    fn batch_limit(&self) -> usize {
        0
    }

    /// The engine for other messages.
    ///
    /// # Errors
    /// An error that says why there is no engine.
    fn engine(&self) -> Result<Engine>;

    /// Runs work of messages that are longer than [`Caller::inline_limit`]. The work waits for devices, and may start threads.
    /// A program can release locks meanwhile, or block signals.
    #[inline]
    fn run_long<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        work()
    }
}

impl Caller for Engine {
    fn inline_kernel(&self) -> Option<InlineKernel> {
        Engine::inline_kernel(self)
    }

    fn engine(&self) -> Result<Engine> {
        Ok(self.clone())
    }
}

/// Runs passes and fused AEADs of host memory on the calling thread.
#[derive(Debug, Clone, Copy)]
pub struct CallingThread(pub InlineKernel);

impl Executor for CallingThread {
    fn run_pass(&self, pass: Pass, segments: &mut [Segment<'_>]) -> Result<()> {
        if segments.is_empty() { Ok(()) } else { self.0.run(Task::Pass(pass, segments)) }
    }

    fn run_fused(&self, fused: FusedAead, messages: &mut [AeadMessage<'_>]) -> Result<bool> {
        self.0.run(Task::Fused(fused, messages)).map(|()| true)
    }

    fn memory(&self, device: DeviceId) -> Result<&dyn DeviceMemory> {
        Err(Error::OutOfReach { device, what: "memory of another device".into() })
    }
}
