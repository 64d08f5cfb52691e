//! The planner as the executor of the modes, and the executor for work on device memory on a stream of the caller.

use lockstep_core::backend::{DeviceId, DeviceMemory};
use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, FusedAead, Operation, Pass, Segment, Stream, Task, Work};
use lockstep_core::{Error, KeySize, Result};
use lockstep_modes::Executor;

use crate::candidates::Wanted;
use crate::planner::Planner;
use crate::timing::Shape;

impl Planner {
    /// Runs a pass. Work on device memory runs on the stream. If no named device supports a pass without output, the CPU computes
    /// it, and [`Planner::assisted`] reports it.
    fn run_pass_on(&self, stream: Stream, pass: Pass, segments: &mut [Segment<'_>]) -> Result<()> {
        let Some(first) = segments.first() else { return Ok(()) };
        let shape = Shape::of(segments.iter().map(|segment| segment.data.len()));
        let (operation, key, resident) = (Operation::Pass(pass), first.key.size(), first.data.device());
        if matches!(first.data, Data::Host(_))
            && let Some((device, kernel)) = self.sole(operation, key, shape.bytes)
        {
            return self.finished(device.submit(kernel, Work { stream, task: Task::Pass(pass, segments) }));
        }
        match self.choose(Wanted { operation, key, shape, resident, trusted_only: false }) {
            Ok(plan) => plan.run(Work { stream, task: Task::Pass(pass, segments) }),
            Err(error @ Error::Unsupported { .. }) if resident.is_none() => {
                self.assistant(pass, shape.bytes).ok_or(error)?.run_pass_on(stream, pass, segments)
            }
            Err(error) => Err(error),
        }
    }

    /// Runs a fused AEAD. Returns false if the mode has to compose the AEAD of passes, because no kernel supports it for this
    /// memory, or because all such kernels failed the self-test. Work on device memory runs on the stream.
    fn run_fused_on(
        &self,
        stream: Stream,
        fused: FusedAead,
        messages: &mut [AeadMessage<'_>],
    ) -> Result<bool> {
        let Some(first) = messages.first() else { return Ok(true) };
        let shape = Shape::of(messages.iter().map(|message| message.data.len()));
        let (operation, key, resident) = (Operation::Fused(fused), first.key.size(), first.data.device());
        if matches!(first.data, Data::Host(_))
            && let Some((device, kernel)) = self.sole(operation, key, shape.bytes)
        {
            let work = Work { stream, task: Task::Fused(fused, messages) };
            return self.finished(device.submit(kernel, work)).map(|()| true);
        }
        match self.choose(Wanted { operation, key, shape, resident, trusted_only: false }) {
            Ok(plan) => plan.run(Work { stream, task: Task::Fused(fused, messages) }).map(|()| true),
            Err(Error::Unsupported { .. } | Error::SelfTest { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Executor for Planner {
    fn run_pass(&self, pass: Pass, segments: &mut [Segment<'_>]) -> Result<()> {
        self.run_pass_on(Stream::default(), pass, segments)
    }

    fn run_fused(&self, fused: FusedAead, messages: &mut [AeadMessage<'_>]) -> Result<bool> {
        self.run_fused_on(Stream::default(), fused, messages)
    }

    fn memory(&self, device: DeviceId) -> Result<&dyn DeviceMemory> {
        let out_of_reach = || Error::OutOfReach { device, what: "memory of its own".into() };
        self.device(device)?.memory().ok_or_else(out_of_reach)
    }

    fn check_mac(&self, pass: Pass, key: KeySize) -> Result<()> {
        let operation = Operation::Pass(pass);
        // If the operation is not supported, the call of `plan` returns the error that states the reason.
        if self.supports(operation, key) { Ok(()) } else { self.plan(operation, key, 16, None).map(drop) }
    }
}

/// An executor that runs work on the memory of a device on one stream, and waits for it. Work on host memory, such as the
/// encryption of single blocks for a mode, uses no stream.
pub struct OnStream<'p> {
    planner: &'p Planner,
    device: DeviceId,
    stream: Stream,
    memory: &'p dyn DeviceMemory,
}

impl<'p> OnStream<'p> {
    /// Makes an executor for the memory of this device.
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

    /// The stream of the caller belongs to one device. Work on other devices runs on their default streams.
    fn stream(&self, device: DeviceId) -> Stream {
        if device == self.device { self.stream } else { Stream::default() }
    }
}
