//! Work without the interpreter lock. Long work: the calling thread waits, and meanwhile runs signal handlers and reports progress.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use lockstep::Options;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;

use crate::error::from_library;
use crate::forks::{Call, detached};

/// The time between two checks for signals, and between two calls of a progress callback.
const PERIOD: Duration = Duration::from_millis(50);

/// Calls a function that opens or reads files at these paths. If one of them is a FIFO, the function may wait for another process.
/// Signal handlers then run on the calling thread, and an exception of one of them ends the call. The function is left alone in this
/// case: its thread ends when the other process has opened the FIFO, and drops the result.
///
/// # Errors
/// The exception of a signal handler.
pub(crate) fn wait_for_fifos<T: Send + 'static>(
    py: Python<'_>,
    paths: &[&Path],
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    if !paths.iter().any(|path| is_fifo(path)) {
        return Ok(detached(py, work));
    }
    run_until_signal(py, |_| work())
}

/// Calls a function on a thread of its own. Signal handlers run on the calling thread, and an exception of one of them ends the call. The
/// function is left alone in this case: it can see by the flag that its result will be dropped.
///
/// # Errors
/// The exception of a signal handler.
pub(crate) fn run_until_signal<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = mpsc::channel();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let send = move || {
        let _call = Call::new();
        // Nobody receives the result of a call that has ended.
        let _ = sender.send(work(&stopped));
    };
    std::thread::Builder::new().name("lockstep".into()).spawn(send)?;
    loop {
        let received;
        (received, receiver) = detached(py, move || (receiver.recv_timeout(PERIOD), receiver));
        match received {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(raised) = py.check_signals() {
                    stop.store(true, Ordering::Relaxed);
                    return Err(raised);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Err(panicked()),
        }
    }
}

fn is_fifo(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

fn panicked() -> PyErr {
    PyRuntimeError::new_err("the work has panicked: please report this")
}

/// Runs work on a separate thread. Signal handlers, such as that of Ctrl-C, and the progress callback run on the calling thread.
/// If one of them raises an exception, the work is interrupted, and the exception is raised when the work has stopped. The work
/// stops after the current piece of at most a megabyte.
///
/// # Errors
/// The exception of a signal handler or of the callback, or that for the error of the work.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(Options<'_>) -> lockstep::Result<T> + Send,
) -> PyResult<T> {
    if progress.is_some_and(|callback| !callback.is_callable()) {
        return Err(PyTypeError::new_err("progress must be a function"));
    }
    let (interrupt, bytes) = (AtomicBool::new(false), AtomicU64::new(0));
    let report = |done| bytes.store(done, Ordering::Relaxed);
    let (result, ready) = (Mutex::new(None), Condvar::new());
    let attend = || {
        py.check_signals()?;
        match progress {
            Some(callback) => callback.call1((bytes.load(Ordering::Relaxed),)).map(|_| ()),
            None => Ok(()),
        }
    };
    let (outcome, raised) = std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().name("lockstep".into()).spawn_scoped(scope, || {
            let _call = Call::new();
            let options = Options::new().progress(&report).interrupt(&interrupt);
            // The slot is filled even if the work panics, because the calling thread waits for it.
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(options)));
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
            ready.notify_one();
        });
        if let Err(error) = worker {
            return (Some(Ok(Err(lockstep::Error::Read(error)))), None);
        }
        let mut raised = None;
        loop {
            let outcome = detached(py, || {
                let result = result.lock().unwrap_or_else(PoisonError::into_inner);
                let waited = ready.wait_timeout_while(result, PERIOD, |result| result.is_none());
                waited.unwrap_or_else(PoisonError::into_inner).0.take()
            });
            if outcome.is_some() {
                return (outcome, raised);
            }
            if raised.is_none() {
                raised = attend().err();
                interrupt.store(raised.is_some(), Ordering::Relaxed);
            }
        }
    });
    match (outcome, raised) {
        (_, Some(raised)) => Err(raised),
        (Some(Ok(outcome)), None) => {
            let outcome = outcome.map_err(from_library)?;
            if let Some(callback) = progress {
                callback.call1((bytes.load(Ordering::Relaxed),))?;
            }
            Ok(outcome)
        }
        (Some(Err(_)) | None, None) => Err(panicked()),
    }
}
