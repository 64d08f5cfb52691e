//! Work through the planner, and modes over a whole message.

use lockstep::aead::{CallingThread, Data, HostData};
use lockstep::hazmat::Error;
use lockstep::hazmat::mode::Executor;
use lockstep::hazmat::planner::Planner;
use zeroize::Zeroize;

use crate::reason::{Outcome, Reason};
use crate::resources::Resources;
use crate::system::thread;
use crate::trace::Way;

/// Processes a message of a mode: on the calling thread, or through the planner if the message is large. `is_supported` is true if
/// the planner has kernels for all operations of the mode. `run` zeroes the output if a tag is wrong.
///
/// # Errors
/// [`Reason::TagMismatch`], [`Reason::MessageTooLong`], [`Reason::Device`], [`Reason::SelfTest`]
pub(crate) fn run_message(
    resources: &Resources,
    mut data: HostData<'_>,
    is_supported: impl FnOnce(&Planner) -> bool,
    mut run: impl FnMut(&dyn Executor, Data<'_>) -> Result<(), Error>,
) -> Outcome<()> {
    let reason = |error| match error {
        Error::AuthenticationFailed => Reason::TagMismatch,
        Error::TooLong { .. } => Reason::MessageTooLong,
        _ => Reason::Device,
    };
    let work = |planner: &Planner, data: HostData<'_>| match is_supported(planner) {
        true => run(planner, Data::Host(data)).map(|()| true).map_err(Failure::During),
        false => Ok(false),
    };
    if resources.is_large(data.len()) && run_planned(resources, &mut data, work).map_err(reason)? {
        return Ok(());
    }
    run(&CallingThread(resources.kernel()?), Data::Host(data)).map_err(reason)
}

/// An error of work through the planner.
pub(crate) enum Failure {
    /// Before the data were touched.
    Before(Error),
    /// During the work.
    During(Error),
}

/// Runs work on the devices that the planner chooses, with verification. Returns false if the work was not done. The input is
/// then unchanged, and the caller does the work on its thread. The trace then contains the reason. There is no entry on
/// OpenSSL's error stack, because it would mislead programs that read the stack after a successful call.
///
/// # Errors
/// [`Error::AuthenticationFailed`]; errors of devices during work in place, after which the data are zeroed.
#[cold]
pub(crate) fn run_planned(
    resources: &Resources,
    data: &mut HostData<'_>,
    work: impl FnOnce(&Planner, HostData<'_>) -> Result<bool, Failure>,
) -> Result<bool, Error> {
    let write_failure = |why: &str| {
        if let Some(trace) = &resources.trace {
            trace.write_failure(why);
        }
    };
    // Devices start threads when they are opened, tested and used. These threads must not receive signals.
    let engine = match thread::without_signals(|| resources.engine()) {
        Ok(engine) => engine,
        Err(why) => {
            write_failure(&why);
            return Ok(false);
        }
    };
    let done = thread::without_signals(|| work(engine.planner(), data.reborrow()));
    resources.trace_incidents(engine);
    match done {
        Ok(false) => Ok(false),
        Ok(true) | Err(Failure::During(Error::AuthenticationFailed)) => {
            if let Some(trace) = &resources.trace {
                trace.count_way(Way::Planned, data.len());
            }
            if done.is_ok() { Ok(true) } else { Err(Error::AuthenticationFailed) }
        }
        Err(Failure::Before(error)) => {
            write_failure(&error.to_string());
            Ok(false)
        }
        Err(Failure::During(error)) => {
            write_failure(&error.to_string());
            data.output().zeroize();
            // After a failure, the input still exists only if it is not in the memory of the output.
            if matches!(data, HostData::Copy { .. }) { Ok(false) } else { Err(error) }
        }
    }
}
