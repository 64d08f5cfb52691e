//! Work through the planner, and modes over a whole message.

use lockstep::aead::{CallingThread, Data, HostData};
use lockstep::hazmat::Error;
use lockstep::hazmat::mode::Executor;
use lockstep::hazmat::planner::Planner;
use zeroize::Zeroize;

use crate::reason::{Outcome, Reason};
use crate::resources::Resources;
use crate::system::thread;

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
    let cpu = CallingThread(resources.kernel()?);
    let work = |planner: &Planner, data: HostData<'_>| match is_supported(planner) {
        true => run(planner, Data::Host(data)).map(|()| true),
        false => {
            resources.state_work_of_cpu("the named device cannot do all passes of a mode");
            Ok(false)
        }
    };
    if data.len() >= resources.threshold {
        let done = run_planned(resources, &mut data, work);
        if matches!(done, Ok(true) | Err(Error::AuthenticationFailed)) {
            resources.count_planned(data.len());
        }
        if done.map_err(reason)? {
            return Ok(());
        }
    }
    run(&cpu, Data::Host(data)).map_err(reason)
}

/// Runs work on the devices that the planner chooses, with verification. Returns false if the work was not done. The input is
/// then unchanged, and the caller does the work on its thread. The trace then contains the reason. There is no entry on
/// OpenSSL's error stack, because it would mislead programs that read the stack after a successful call.
///
/// `work` returns false if it cannot be done on devices, and an error only if it may have changed the data.
///
/// # Errors
/// [`Error::AuthenticationFailed`]; errors of devices during work in place, after which the data are zeroed.
#[cold]
pub(crate) fn run_planned(
    resources: &Resources,
    data: &mut HostData<'_>,
    work: impl FnOnce(&Planner, HostData<'_>) -> Result<bool, Error>,
) -> Result<bool, Error> {
    // Devices start threads when they are opened, tested and used. These threads must not receive signals.
    let Some(engine) = thread::without_signals(|| resources.engine()) else { return Ok(false) };
    let done = thread::without_signals(|| work(engine.planner(), data.reborrow()));
    resources.trace_incidents(engine);
    match done {
        Ok(_) | Err(Error::AuthenticationFailed) => done,
        Err(error) => {
            resources.trace_failure(&error.to_string());
            data.output().zeroize();
            // After a failure, the input still exists only if it is not in the memory of the output.
            if let HostData::InPlace(_) = data {
                return Err(error);
            }
            resources.state_work_of_cpu(error);
            Ok(false)
        }
    }
}
