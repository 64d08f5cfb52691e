//! The executor for work on device memory on a stream of the caller.

use lockstep_core::Result;
use lockstep_core::backend::{DeviceBuffer, DeviceId, DeviceMemory, Fetch};
use lockstep_core::data::{DeviceSlice, PinnedBuffer};
use lockstep_core::work::{AeadMessage, FusedAead, Pass, Segment, Stream};
use lockstep_modes::Executor;

use crate::planner::Planner;

/// An executor that runs work on the memory of a device on one stream, and waits for it. Work on host memory, such as the
/// blocks that a mode encrypts on the host, has no stream.
pub struct OnStream<'p> {
    planner: &'p Planner,
    memory: StreamMemory<'p>,
}

impl<'p> OnStream<'p> {
    /// An executor for the memory of this device.
    ///
    /// # Errors
    /// [`lockstep_core::Error::UnknownDevice`], or [`lockstep_core::Error::OutOfReach`] if the device has no memory of its own.
    pub fn new(planner: &'p Planner, device: DeviceId, stream: Stream) -> Result<OnStream<'p>> {
        Ok(OnStream { planner, memory: StreamMemory { device, stream, inner: planner.memory(device)? } })
    }

    /// The stream for work on the memory of the device. Work on host memory may run on another device, where the handle of the
    /// stream has no meaning.
    fn stream(&self, is_on_device: bool) -> Stream {
        if is_on_device { self.memory.stream } else { Stream::default() }
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
        let is_on_device = segments.first().is_some_and(|segment| segment.data.device().is_some());
        self.planner.run_pass_on(self.stream(is_on_device), pass, segments)
    }

    fn run_fused(&self, fused: FusedAead, messages: &mut [AeadMessage<'_>]) -> Result<bool> {
        let is_on_device = messages.first().is_some_and(|message| message.data.device().is_some());
        self.planner.run_fused_on(self.stream(is_on_device), fused, messages)
    }

    fn memory(&self, device: DeviceId) -> Result<&dyn DeviceMemory> {
        if device == self.memory.device { Ok(&self.memory) } else { self.planner.memory(device) }
    }
}
