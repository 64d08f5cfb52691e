//! The executor for work on device memory on a stream of the caller.

use lockstep_core::backend::{DeviceBuffer, DeviceId, DeviceMemory, Fetch};
use lockstep_core::data::{DeviceSlice, PinnedBuffer};
use lockstep_core::work::{AeadMessage, FusedAead, Operation, Pass, Segment, Stream, Task, Work};
use lockstep_core::{Error, Result};
use lockstep_modes::Executor;

use crate::planner::Planner;
use crate::timing::Shape;

/// An executor that runs work on the memory of a device on one stream, and waits for it. Work on host memory, such as the
/// blocks that a mode encrypts on the host, has no stream: the planner runs it.
pub struct OnStream<'p> {
    planner: &'p Planner,
    memory: StreamMemory<'p>,
}

impl<'p> OnStream<'p> {
    /// An executor for the memory of this device.
    ///
    /// # Errors
    /// [`Error::UnknownDevice`], or [`Error::OutOfReach`] if the device has no memory of its own.
    pub fn new(planner: &'p Planner, device: DeviceId, stream: Stream) -> Result<OnStream<'p>> {
        Ok(OnStream { planner, memory: StreamMemory { device, stream, inner: planner.memory(device)? } })
    }

    /// The memory of the device. Its copies run on the stream.
    pub fn stream_memory(&self) -> &dyn DeviceMemory {
        &self.memory
    }
}

/// The memory of the device. Its copies run on the stream.
struct StreamMemory<'p> {
    device: DeviceId,
    stream: Stream,
    inner: &'p dyn DeviceMemory,
}

impl DeviceMemory for StreamMemory<'_> {
    fn allocate(&self, len: usize) -> Result<Box<dyn DeviceBuffer>> {
        self.inner.allocate(len)
    }

    fn allocate_pinned(&self, len: usize) -> Result<PinnedBuffer> {
        self.inner.allocate_pinned(len)
    }

    fn upload(&self, from: &[u8], to: &DeviceSlice, _: Stream) -> Result<()> {
        self.inner.upload(from, to, self.stream)
    }

    fn download(&self, from: &DeviceSlice, to: &mut [u8], _: Stream) -> Result<()> {
        self.inner.download(from, to, self.stream)
    }

    fn fetch(&self, from: &[DeviceSlice], _: Stream) -> Result<Box<dyn Fetch>> {
        self.inner.fetch(from, self.stream)
    }
}

impl Executor for OnStream<'_> {
    fn run_pass(&self, pass: Pass, segments: &mut [Segment<'_>]) -> Result<()> {
        let Some(first) = segments.first() else { return Ok(()) };
        let (key, Some(device)) = (first.key.size(), first.data.device()) else {
            return self.planner.run_pass(pass, segments);
        };
        let shape = Shape::of(segments.iter().map(|segment| segment.data.len()));
        let plan = self.planner.plan(Operation::Pass(pass), key, shape, Some(device))?;
        plan.run(Work { stream: self.memory.stream, task: Task::Pass(pass, segments) })
    }

    fn run_fused(&self, fused: FusedAead, messages: &mut [AeadMessage<'_>]) -> Result<bool> {
        let Some(first) = messages.first() else { return Ok(true) };
        let (key, Some(device)) = (first.key.size(), first.data.device()) else {
            return self.planner.run_fused(fused, messages);
        };
        let shape = Shape::of(messages.iter().map(|message| message.data.len()));
        match self.planner.plan(Operation::Fused(fused), key, shape, Some(device)) {
            Ok(plan) => plan
                .run(Work { stream: self.memory.stream, task: Task::Fused(fused, messages) })
                .map(|()| true),
            // No usable kernel supports the fused AEAD: the mode composes it of passes.
            Err(Error::Unsupported { .. } | Error::SelfTest { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn memory(&self, device: DeviceId) -> Result<&dyn DeviceMemory> {
        if device == self.memory.device { Ok(&self.memory) } else { self.planner.memory(device) }
    }
}
