//! Work on device memory that goes on after the call has returned.
//!
//! A thread of a pool submits the work. The caller waits only for the submission, so the order of work on a stream is the order of
//! the calls. The thread then waits for the end of the work, drops the references to the arrays, and records a failure, which a
//! later call raises. At most [`THREADS`] jobs are in progress; further calls wait.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};

use lockstep::hazmat::share::lock;
use lockstep::hazmat::{Error as CoreError, Result as CoreResult};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::import::Keep;
use crate::error::from_core;
use crate::forks::{Call, detached};
use crate::task::PERIOD;

/// The maximum number of jobs in progress.
const THREADS: usize = 32;

type Job = Box<dyn FnOnce() + Send>;

/// The pool of this process. The child of a fork makes its own pool.
static POOL: Mutex<Option<Arc<Pool>>> = Mutex::new(None);

#[derive(Default)]
struct Pool {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    /// The number of jobs that have started and have not ended. A thread runs one job at a time.
    running: usize,
    /// The first failure that no call has raised.
    failure: Option<CoreError>,
}

impl Pool {
    fn add(self: &Arc<Self>, job: Job) -> PyResult<()> {
        let mut state = lock(&self.state);
        if state.threads <= state.running && state.threads < THREADS {
            let pool = Arc::clone(self);
            let started =
                std::thread::Builder::new().name("lockstep-tensor".into()).spawn(move || pool.serve());
            match started {
                Ok(_) => state.threads += 1,
                Err(error) if state.threads == 0 => return Err(error.into()),
                Err(_) => {}
            }
        }
        state.jobs.push_back(job);
        state.running += 1;
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    fn serve(&self) {
        loop {
            let waited = self.changed.wait_while(lock(&self.state), |state| state.jobs.is_empty());
            let next = waited.unwrap_or_else(PoisonError::into_inner).jobs.pop_front();
            let Some(job) = next else { continue };
            let call = Call::new();
            job();
            drop(call);
            lock(&self.state).running -= 1;
            self.changed.notify_all();
        }
    }
}

/// Starts a job. `work` must call its argument after it has submitted the work to the device, and must return when the device has
/// finished. After `work` has returned, `keep` is dropped.
///
/// # Errors
/// The exception for an error before the submission. If earlier work has failed, the exception for this failure; in this case no
/// job is started.
pub(crate) fn start(
    py: Python<'_>,
    keep: Vec<Keep>,
    work: impl FnOnce(&dyn Fn()) -> CoreResult<()> + Send + 'static,
) -> PyResult<()> {
    let pool = Arc::clone(lock(&POOL).get_or_insert_default());
    if let Some(failure) = lock(&pool.state).failure.take() {
        return Err(earlier(failure));
    }
    let (report, reported) = mpsc::channel();
    let owner = Arc::clone(&pool);
    let job = move || {
        let is_submitted = Cell::new(false);
        // The caller receives only the first report, so an error of sending is ignored.
        let submitted = || {
            is_submitted.set(true);
            let _ = report.send(Ok(()));
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&submitted)));
        let outcome =
            outcome.unwrap_or(Err(CoreError::Order { what: "the work has panicked: please report this" }));
        match outcome {
            Err(failure) if is_submitted.get() => {
                lock(&owner.state).failure.get_or_insert(failure);
            }
            outcome => drop(report.send(outcome)),
        }
        // After the end of the interpreter, objects of Python cannot be dropped, so they are leaked.
        let mut keep = Some(keep);
        if Python::try_attach(|_| drop(keep.take())).is_none() {
            std::mem::forget(keep);
        }
    };
    pool.add(Box::new(job))?;
    let outcome = detached(py, move || reported.recv());
    outcome.expect("each job makes a report").map_err(from_core)
}

fn earlier(failure: CoreError) -> PyErr {
    let text = "earlier work on a device has failed, and its output is not valid";
    PyRuntimeError::new_err(format!("{text}: {failure}"))
}

/// Waits for all work on arrays of devices that this process has started.
///
/// Raises RuntimeError if any of it has failed since the last call that raised this exception.
#[pyfunction]
pub(crate) fn synchronize(py: Python<'_>) -> PyResult<()> {
    let Some(pool) = lock(&POOL).clone() else { return Ok(()) };
    loop {
        let (is_done, failure) = detached(py, || {
            let is_running = |state: &mut State| state.running > 0;
            let waited = pool.changed.wait_timeout_while(lock(&pool.state), PERIOD, is_running);
            let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
            (state.running == 0, state.failure.take())
        });
        if let Some(failure) = failure {
            return Err(earlier(failure));
        }
        if is_done {
            return Ok(());
        }
        py.check_signals()?;
    }
}

/// Runs in the child of a fork, which has none of the threads.
pub(crate) fn after_fork_in_child() {
    if let Some(pool) = lock(&POOL).take() {
        // The child must not use the memory and the locks of the parent's work.
        std::mem::forget(pool);
    }
}
