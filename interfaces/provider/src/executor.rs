//! Runs work through the planner, and runs modes on whole messages.

use lockstep::aead::{CallingThread, Data, HostData};
use lockstep::hazmat::Error;
use lockstep::hazmat::mode::Executor;
use lockstep::hazmat::planner::Planner;
use zeroize::Zeroize;

use crate::reason::{Outcome, Reason};
use crate::resources::Resources;
use crate::system::thread;

/// Processes a whole message with `run`: through the planner if the message is large, otherwise on the calling thread.
/// `is_supported` returns true if the planner has kernels for all operations of the mode. `run` must zero the output if a tag
/// is wrong.
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

/// Runs work on the devices that the planner chooses, with verification. Returns false if the work was not done. In this case
/// the input is unchanged, the trace contains the reason, and the caller does the work on its own thread. No entry is put on
/// OpenSSL's error stack, because an entry would mislead programs that read the stack after a successful call.
///
/// `work` must return false if devices cannot do the work. It may return an error only if it may have changed the data.
///
/// # Errors
/// [`Error::AuthenticationFailed`], and errors of devices during work in place. After an error of a device, the data are
/// zeroed.
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
            // After a failure, the input is still complete only if the output is in other memory.
            if let HostData::InPlace(_) = data {
                return Err(error);
            }
            resources.state_work_of_cpu(error);
            Ok(false)
        }
    }
}
