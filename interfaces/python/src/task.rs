//! Work that is detached from the interpreter. During long work the calling thread runs signal handlers and reports progress.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::Builder;
use std::time::Duration;

use lockstep::Options;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;

use crate::error::from_library;
use crate::forks::{Call, detached};

/// The time between two checks for signals, and between two calls of a progress callback.
pub(crate) const PERIOD: Duration = Duration::from_millis(50);

/// Calls a function that opens or reads the file at a path. If it is a FIFO, the function may wait for another process. Signal handlers
/// then run on the calling thread, and an exception of one of them ends the call. In this case nothing stops the function: its thread
/// continues until the other process has opened the FIFO, and then drops the result.
///
/// # Errors
/// The exception of a signal handler, or the exception for the error of the function.
pub(crate) fn wait_for_fifo<T: Send + 'static>(
    py: Python<'_>,
    path: &Path,
    work: impl FnOnce(&Path) -> lockstep::Result<T> + Send + 'static,
) -> PyResult<T> {
    let is_fifo = std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo());
    let outcome = if is_fifo {
        let path = path.to_owned();
        run_until_signal(py, move |_| work(&path))?
    } else {
        detached(py, || work(path))
    };
    outcome.map_err(from_library)
}

/// Calls a function on a thread of its own. Signal handlers run on the calling thread, and an exception of one of them ends the call.
/// In this case the call does not wait for the function: it sets the flag that the function has received. The result of the function is
/// dropped.
///
/// # Errors
/// The exception of a signal handler.
pub(crate) fn run_until_signal<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, receiver) = mpsc::channel();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let send = move || {
        let _call = Call::new();
        // The error is ignored: if the call has ended, nobody receives the result.
        let _ = sender.send(work(&stopped));
    };
    Builder::new().name("lockstep".into()).spawn(send)?;
    receive(py, receiver, || py.check_signals()).inspect_err(|_| stop.store(true, Ordering::Relaxed))
}

/// Waits for the result of another thread. During the wait, a function is called at regular intervals; an exception of this
/// function ends the wait.
///
/// # Errors
/// The exception of the function, or `RuntimeError` if the other thread ends without a result.
fn receive<T: Send>(
    py: Python<'_>,
    mut receiver: Receiver<T>,
    attend: impl Fn() -> PyResult<()>,
) -> PyResult<T> {
    loop {
        let received;
        (received, receiver) = detached(py, move || (receiver.recv_timeout(PERIOD), receiver));
        match received {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) => attend()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the work has panicked: please report this"));
            }
        }
    }
}

/// Runs work on a separate thread. Signal handlers, such as that of Ctrl-C, and the progress callback run on the calling thread. The
/// arguments of the callback are the number of bytes that have been processed, and `total`, the number of all bytes if it is known.
/// If a signal handler or the callback raises an exception, the work is interrupted, and the exception is raised when the work has
/// stopped. The work stops after the current piece of at most a megabyte.
///
/// # Errors
/// The exception of a signal handler or of the callback, or the exception for the error of the work.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    total: Option<u64>,
    work: impl FnOnce(Options<'_>) -> lockstep::Result<T> + Send,
) -> PyResult<T> {
    if progress.is_some_and(|callback| !callback.is_callable()) {
        return Err(PyTypeError::new_err("progress must be a function"));
    }
    let (interrupt, bytes) = (AtomicBool::new(false), AtomicU64::new(0));
    let report = |done| bytes.store(done, Ordering::Relaxed);
    let call = |callback: &Bound<'_, PyAny>| callback.call1((bytes.load(Ordering::Relaxed), total)).map(drop);
    let call_progress = || progress.map_or(Ok(()), call);
    let (sender, receiver) = mpsc::channel();
    let outcome = std::thread::scope(|scope| {
        let (report, interrupt) = (&report, &interrupt);
        let send = move || {
            let _call = Call::new();
            let options =
                Options { progress: Some(report), interrupt: Some(interrupt), ..Options::default() };
            // The error is ignored: if the work was interrupted, nobody receives the result.
            let _ = sender.send(work(options));
        };
        let worker = Builder::new().name("lockstep".into()).spawn_scoped(scope, send)?;
        let attend = || py.check_signals().and_then(|()| call_progress());
        let outcome = receive(py, receiver, attend);
        interrupt.store(outcome.is_err(), Ordering::Relaxed);
        // The result is ignored: if the worker has panicked, `receive` has returned an error.
        let _ = detached(py, || worker.join());
        outcome
    })?;
    let outcome = outcome.map_err(from_library)?;
    call_progress()?;
    Ok(outcome)
}
