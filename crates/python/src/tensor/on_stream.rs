//! An executor that runs work on device memory on a stream of the caller.

use lockstep::hazmat::Result;
use lockstep::hazmat::backend::{DeviceBuffer, DeviceId, DeviceMemory, Fetch};
use lockstep::hazmat::data::DeviceSlice;
use lockstep::hazmat::mode::Executor;
use lockstep::hazmat::planner::Planner;
use lockstep::hazmat::timing::Shape;
use lockstep::hazmat::work::{AeadMessage, FusedAead, Operation, Pass, Segment, Stream, Task, Work};

/// The executor. Work on host memory, such as the blocks that a mode encrypts on the host, is run by the planner.
pub(crate) struct OnStream<'p> {
    planner: &'p Planner,
    memory: StreamMemory<'p>,
}

impl<'p> OnStream<'p> {
    /// # Errors
    /// `UnknownDevice`, or `OutOfReach` if the device has no memory of its own.
    pub(crate) fn new(planner: &'p Planner, device: DeviceId, stream: Stream) -> Result<OnStream<'p>> {
        Ok(OnStream { planner, memory: StreamMemory { device, stream, inner: planner.memory(device)? } })
    }

    /// The memory of the device. Its copies run on the stream.
    pub(crate) fn memory(&self) -> &dyn DeviceMemory {
        &self.memory
    }
}

struct StreamMemory<'p> {
    device: DeviceId,
    stream: Stream,
    inner: &'p dyn DeviceMemory,
}

impl DeviceMemory for StreamMemory<'_> {
    fn allocate(&self, len: usize) -> Result<Box<dyn DeviceBuffer>> {
        self.inner.allocate(len)
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
        use lockstep::hazmat::Error;

        let Some(first) = messages.first() else { return Ok(true) };
        let (key, Some(device)) = (first.key.size(), first.data.device()) else {
            return self.planner.run_fused(fused, messages);
        };
        let shape = Shape::of(messages.iter().map(|message| message.data.len()));
        match self.planner.plan(Operation::Fused(fused), key, shape, Some(device)) {
            Ok(plan) => {
                let work = Work { stream: self.memory.stream, task: Task::Fused(fused, messages) };
                plan.run(work).map(|()| true)
            }
            // The mode then composes the AEAD of passes.
            Err(Error::Unsupported { .. } | Error::SelfTest { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn memory(&self, device: DeviceId) -> Result<&dyn DeviceMemory> {
        if device == self.memory.device { Ok(&self.memory) } else { self.planner.memory(device) }
    }
}
