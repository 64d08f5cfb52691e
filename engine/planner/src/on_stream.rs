//! The executor for work on device memory on a stream of the caller.

use lockstep_core::Result;
use lockstep_core::backend::{DeviceId, DeviceMemory};
use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, FusedAead, Pass, Segment, Stream};
use lockstep_modes::Executor;

use crate::planner::Planner;

/// An executor that runs work on the memory of a device on one stream, and waits for it. Work on host memory, such as the
/// blocks that a mode encrypts on the host, has no stream.
pub struct OnStream<'p> {
    planner: &'p Planner,
    device: DeviceId,
    stream: Stream,
    memory: &'p dyn DeviceMemory,
}

impl<'p> OnStream<'p> {
    /// An executor for the memory of this device.
    ///
    /// # Errors
    /// [`lockstep_core::Error::UnknownDevice`], or [`lockstep_core::Error::OutOfReach`] if the device has no memory of its own.
    pub fn new(planner: &'p Planner, device: DeviceId, stream: Stream) -> Result<OnStream<'p>> {
        Ok(OnStream { planner, device, stream, memory: planner.memory(device)? })
    }

    /// The memory of the device.
    pub fn device_memory(&self) -> &'p dyn DeviceMemory {
        self.memory
    }

    /// The stream for work on these data.
    fn stream_of(&self, data: Option<&Data<'_>>) -> Stream {
        data.and_then(Data::device).map_or(Stream::default(), |device| self.stream(device))
    }
}

impl Executor for OnStream<'_> {
    fn run_pass(&self, pass: Pass, segments: &mut [Segment<'_>]) -> Result<()> {
        let stream = self.stream_of(segments.first().map(|segment| &segment.data));
        self.planner.run_pass_on(stream, pass, segments)
    }

    fn run_fused(&self, fused: FusedAead, messages: &mut [AeadMessage<'_>]) -> Result<bool> {
        let stream = self.stream_of(messages.first().map(|message| &message.data));
        self.planner.run_fused_on(stream, fused, messages)
    }

    fn memory(&self, device: DeviceId) -> Result<&dyn DeviceMemory> {
        self.planner.memory(device)
    }

    /// Another device has other streams.
    fn stream(&self, device: DeviceId) -> Stream {
        if device == self.device { self.stream } else { Stream::default() }
    }
}
