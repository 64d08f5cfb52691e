//! The planner as the executor of the modes.

use lockstep_core::backend::{DeviceId, DeviceMemory};
use lockstep_core::work::{AeadMessage, FusedAead, Operation, Pass, Segment, Task};
use lockstep_core::{Error, Result};
use lockstep_modes::Executor;

use crate::planner::Planner;
use crate::timing::Shape;

impl Executor for Planner {
    fn run_pass(&self, pass: Pass, segments: &mut [Segment<'_>]) -> Result<()> {
        let Some(first) = segments.first() else { return Ok(()) };
        let shape = Shape::of(segments.iter().map(|segment| segment.data.len()));
        let (key, resident) = (first.key.size(), first.data.device());
        match self.run_sole(Task::Pass(pass, segments), key, shape.bytes, resident) {
            Ok(outcome) => outcome,
            Err(task) => self.plan(Operation::Pass(pass), key, shape, resident)?.run(task),
        }
    }

    fn run_fused(&self, fused: FusedAead, messages: &mut [AeadMessage<'_>]) -> Result<bool> {
        let Some(first) = messages.first() else { return Ok(true) };
        let shape = Shape::of(messages.iter().map(|message| message.data.len()));
        let (key, resident) = (first.key.size(), first.data.device());
        let task = match self.run_sole(Task::Fused(fused, messages), key, shape.bytes, resident) {
            Ok(outcome) => return outcome.map(|()| true),
            Err(task) => task,
        };
        match self.plan(Operation::Fused(fused), key, shape, resident) {
            Ok(plan) => plan.run(task).map(|()| true),
            // No kernel supports the fused AEAD for this memory, or all such kernels failed the self-test. The mode then
            // composes the AEAD of passes.
            Err(Error::Unsupported { .. } | Error::SelfTest { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn memory(&self, device: DeviceId) -> Result<&dyn DeviceMemory> {
        let out_of_reach = || Error::OutOfReach { device, what: "memory of its own".into() };
        self.device(device)?.memory().ok_or_else(out_of_reach)
    }
}
