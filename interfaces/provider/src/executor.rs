//! Modes over a whole message: on the calling thread, or through the planner if the message is large.

use lockstep::hazmat::Error;
use lockstep::hazmat::backend::{DeviceId, DeviceMemory};
use lockstep::hazmat::data::{Data, HostData};
use lockstep::hazmat::inline::InlineKernel;
use lockstep::hazmat::mode::Executor;
use lockstep::hazmat::planner::Planner;
use lockstep::hazmat::work::{AeadMessage, FusedAead, Pass, Segment, Task};
use zeroize::Zeroize;

use crate::reason::{Outcome, Reason};
use crate::resources::Resources;
use crate::system::thread;
use crate::trace::Way;

/// Runs passes and fused AEADs on the calling thread.
struct CallingThread(InlineKernel);

impl Executor for CallingThread {
    fn run_pass(&self, pass: Pass, segments: &mut [Segment<'_>]) -> Result<(), Error> {
        if segments.is_empty() { Ok(()) } else { self.0.run(Task::Pass(pass, segments)) }
    }

    fn run_fused(&self, fused: FusedAead, messages: &mut [AeadMessage<'_>]) -> Result<bool, Error> {
        self.0.run(Task::Fused(fused, messages)).map(|()| true)
    }

    fn memory(&self, device: DeviceId) -> Result<&dyn DeviceMemory, Error> {
        Err(Error::OutOfReach { device, what: "memory of another device".into() })
    }
}

/// A mode over one message.
pub(crate) trait MessageMode {
    /// True if the planner has kernels for all operations of the mode.
    fn is_supported(&self, planner: &Planner) -> bool;

    /// Processes the message.
    ///
    /// # Errors
    /// [`Error::AuthenticationFailed`] if a tag is wrong: the output is zeroed then. Other errors of modes and devices.
    fn run(&mut self, executor: &dyn Executor, data: Data<'_>) -> Result<(), Error>;
}

/// Processes a message.
///
/// # Errors
/// [`Reason::TagMismatch`], [`Reason::MessageTooLong`], [`Reason::Device`], [`Reason::SelfTest`]
pub(crate) fn run_message(
    resources: &Resources,
    mode: &mut dyn MessageMode,
    mut data: HostData<'_>,
) -> Outcome<()> {
    if resources.is_large(data.len())
        && let Some(outcome) = run_planned(resources, mode, &mut data)
    {
        return outcome;
    }
    mode.run(&CallingThread(resources.kernel()?), Data::Host(data)).map_err(reason)
}

/// Processes a message on the devices that the planner chooses. `None` if the message was not processed. The input is then
/// unchanged, and the caller processes it on its thread.
#[cold]
fn run_planned(
    resources: &Resources,
    mode: &mut dyn MessageMode,
    data: &mut HostData<'_>,
) -> Option<Outcome<()>> {
    let write_failure = |why: &str| {
        if let Some(trace) = &resources.trace {
            trace.write_failure(why);
        }
    };
    // Devices start threads when they are opened, tested and used. These threads must not receive signals.
    let engine = thread::without_signals(|| resources.engine()).map_err(|why| write_failure(&why)).ok()?;
    let planner = engine.planner();
    if !mode.is_supported(planner) {
        return None;
    }
    let len = data.len();
    let done = thread::without_signals(|| mode.run(planner, Data::Host(data.reborrow())));
    resources.trace_incidents(engine);
    let error = match done {
        Ok(()) | Err(Error::AuthenticationFailed) => {
            if let Some(trace) = &resources.trace {
                trace.count_way(Way::Planned, len);
            }
            return Some(done.map_err(reason));
        }
        Err(error) => error,
    };
    write_failure(&error.to_string());
    data.output().zeroize();
    // After a failure, the input still exists only if it is not in the memory of the output.
    if matches!(data, HostData::Copy { .. }) { None } else { Some(Err(reason(error))) }
}

fn reason(error: Error) -> Reason {
    match error {
        Error::AuthenticationFailed => Reason::TagMismatch,
        Error::TooLong { .. } => Reason::MessageTooLong,
        _ => Reason::Device,
    }
}
