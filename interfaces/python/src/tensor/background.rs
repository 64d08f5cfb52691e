//! Work on device memory that goes on after the call has returned.
//!
//! A thread of a pool submits the work. The caller waits only for the submission, so the order of work on a stream is the order
//! of the calls. The thread then waits for the end of the work, drops the references to the arrays, and records a failure for a
//! later call. At most [`THREADS`] works are in progress; further calls wait.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lockstep::hazmat::{Error as CoreError, Result as CoreResult};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::import::Keep;
use crate::error::from_core;
use crate::forks::{Call, detached};

/// The maximum number of works in progress.
const THREADS: usize = 32;

/// The time between two checks for signals.
const PERIOD: Duration = Duration::from_millis(50);

type Job = Box<dyn FnOnce() + Send>;

/// The pool of this process. A fork's child makes its own.
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
    idle: usize,
    /// Jobs that have not ended.
    running: usize,
    /// The first failure that no call has raised.
    failure: Option<CoreError>,
}

/// The place where a job reports that it was submitted, or why not.
#[derive(Default)]
struct Submission {
    state: Mutex<Reported>,
    ready: Condvar,
}

#[derive(Default)]
enum Reported {
    #[default]
    Nothing,
    Outcome(CoreResult<()>),
    /// The caller has the outcome.
    Taken,
}

impl Submission {
    /// Reports an outcome, unless one was reported earlier: then returns it.
    fn report(&self, outcome: CoreResult<()>) -> Option<CoreResult<()>> {
        let mut state = lock(&self.state);
        if !matches!(*state, Reported::Nothing) {
            return Some(outcome);
        }
        *state = Reported::Outcome(outcome);
        self.ready.notify_one();
        None
    }

    fn wait(&self) -> CoreResult<()> {
        let is_pending = |state: &mut Reported| matches!(state, Reported::Nothing);
        let mut state =
            self.ready.wait_while(lock(&self.state), is_pending).unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, Reported::Taken) {
            Reported::Outcome(outcome) => outcome,
            Reported::Nothing | Reported::Taken => Ok(()),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pool() -> Arc<Pool> {
    Arc::clone(lock(&POOL).get_or_insert_default())
}

impl Pool {
    fn add(self: &Arc<Self>, job: Job) -> PyResult<()> {
        let mut state = lock(&self.state);
        state.jobs.push_back(job);
        state.running += 1;
        if state.idle < state.jobs.len() && state.threads < THREADS {
            let pool = Arc::clone(self);
            let started =
                std::thread::Builder::new().name("lockstep-tensor".into()).spawn(move || pool.serve());
            match started {
                Ok(_) => state.threads += 1,
                Err(error) if state.threads == 0 => {
                    state.jobs.pop_back();
                    state.running -= 1;
                    return Err(error.into());
                }
                Err(_) => {}
            }
        }
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    fn serve(&self) {
        let mut state = lock(&self.state);
        loop {
            match state.jobs.pop_front() {
                Some(job) => {
                    drop(state);
                    let call = Call::new();
                    job();
                    drop(call);
                    state = lock(&self.state);
                    state.running -= 1;
                    self.changed.notify_all();
                }
                None => {
                    state.idle += 1;
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                    state.idle -= 1;
                }
            }
        }
    }
}

/// Starts work. `work` calls its argument after the submission to the device, and returns when the device has finished. `keep` is
/// dropped afterwards.
///
/// # Errors
/// The exception for an error before the submission, or for the failure of earlier work, in which case nothing is done.
pub(crate) fn start(
    py: Python<'_>,
    keep: Vec<Keep>,
    work: impl FnOnce(&dyn Fn()) -> CoreResult<()> + Send + 'static,
) -> PyResult<()> {
    let pool = pool();
    if let Some(failure) = lock(&pool.state).failure.take() {
        return Err(earlier(failure));
    }
    let submission = Arc::new(Submission::default());
    let report = Arc::clone(&submission);
    let owner = Arc::clone(&pool);
    let job = move || {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            work(&|| {
                report.report(Ok(()));
            })
        }));
        let outcome =
            outcome.unwrap_or(Err(CoreError::Order { what: "the work has panicked: please report this" }));
        if let Some(Err(failure)) = report.report(outcome) {
            lock(&owner.state).failure.get_or_insert(failure);
        }
        // After the end of the interpreter nothing can be dropped.
        let mut keep = Some(keep);
        if Python::try_attach(|_| drop(keep.take())).is_none() {
            std::mem::forget(keep);
        }
    };
    pool.add(Box::new(job))?;
    detached(py, || submission.wait()).map_err(from_core)
}

fn earlier(failure: CoreError) -> PyErr {
    PyRuntimeError::new_err(format!(
        "earlier work on a device has failed, and its output is not valid: {failure}"
    ))
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
    super::keystream::after_fork_in_child();
    if let Some(pool) = lock(&POOL).take() {
        // The child must not use the memory and the locks of the parent's work.
        std::mem::forget(pool);
    }
}
