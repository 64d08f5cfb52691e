//! The trait by which a program decides whether the calling thread or the planner processes a message.

use lockstep_core::backend::{DeviceId, DeviceMemory};
use lockstep_core::work::{AeadMessage, FusedAead, Pass, Segment, Task};
use lockstep_core::{Error, Result};
use lockstep_cpu::inline::InlineKernel;
use lockstep_modes::Executor;

use crate::engine::Engine;

/// The default of [`Caller::inline_limit`] in bytes. The encryption of this number of bytes takes about a microsecond.
pub const INLINE_LIMIT: usize = 16 << 10;

/// The engine and the kernel that a program supplies to the functions of this module, and the limits that decide which of the two
/// processes a message.
pub trait Caller {
    /// The kernel that computes small messages on the calling thread. It must have passed its self-test. `None` passes all
    /// messages to the planner, for example because the user has chosen a device.
    fn inline_kernel(&self) -> Option<InlineKernel>;

    /// The maximum length of a message that is processed on the calling thread: the number of bytes of its data and its associated
    /// data together.
    #[inline]
    fn inline_limit(&self) -> usize {
        INLINE_LIMIT
    }

    /// Messages of GCM in [`run_on_host`](super::run_on_host) are computed by threads of the CPU without the planner if they have at
    /// most this number of bytes on average. Default: 0, which passes all batches to the planner.
    fn batch_limit(&self) -> usize {
        0
    }

    /// The engine for the messages that the calling thread does not process.
    ///
    /// # Errors
    /// An error that states why there is no engine.
    fn engine(&self) -> Result<Engine>;

    /// Calls `work`, which processes messages that are longer than [`Caller::inline_limit`], waits for devices, and may start
    /// threads. A program can release locks or block signals during this call.
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

/// An executor that runs passes and fused AEADs on the calling thread. All data must be in host memory.
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
