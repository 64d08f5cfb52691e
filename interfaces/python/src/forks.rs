//! Forks: a child process has only the thread that forked. A lock that another thread held stays locked there for ever.
//!
//! Threads count their calls into the library ([`Call`]), so a child can detect whether another thread was in a call during the fork.
//! If no other thread was in a call, the child can use all objects of the parent. Otherwise locks of the parent's engine may be held,
//! and objects with such an engine refuse their calls ([`Origin`]). Short locks need no such care if they are taken and released while
//! the thread is attached to the interpreter, because a thread that forks is attached, and only one thread is attached at a time. A
//! free-threaded Python has several attached threads; forks have not been tested there.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The number of forks between the process that loaded this module and this process.
static FORKS: AtomicU32 = AtomicU32::new(0);
/// The value of `FORKS` after the last fork during which another thread was in a call.
static LAST_BUSY: AtomicU32 = AtomicU32::new(0);
/// The calls in progress, of all threads.
static CALLS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The calls in progress of this thread.
    static OWN_CALLS: Cell<usize> = const { Cell::new(0) };
}

/// A call of this thread into the library, until it is dropped.
///
/// The marker makes the type neither `Send` nor `Sync`, so a call stays on its thread.
pub(crate) struct Call(std::marker::PhantomData<*const ()>);

impl Call {
    pub(crate) fn new() -> Call {
        CALLS.fetch_add(1, Ordering::Relaxed);
        OWN_CALLS.set(OWN_CALLS.get() + 1);
        Call(std::marker::PhantomData)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        CALLS.fetch_sub(1, Ordering::Relaxed);
        OWN_CALLS.set(OWN_CALLS.get() - 1);
    }
}

/// Calls a function detached from the interpreter, as a call into the library.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    let _call = Call::new();
    py.detach(work)
}

/// The process that made an object: the value of [`FORKS`] in it.
#[derive(Clone, Copy)]
pub(crate) struct Origin(u32);

impl Origin {
    /// This process.
    pub(crate) fn new() -> Origin {
        Origin(FORKS.load(Ordering::Relaxed))
    }

    /// True if no other thread was in a call during the forks since the object was made.
    pub(crate) fn is_usable(self) -> bool {
        self.0 >= LAST_BUSY.load(Ordering::Relaxed)
    }

    /// Checks that the object can be used in this process.
    ///
    /// # Errors
    /// `RuntimeError` in the child of a fork during which another thread was in a call.
    pub(crate) fn check(self) -> PyResult<()> {
        if self.is_usable() {
            return Ok(());
        }
        Err(PyRuntimeError::new_err(
            "the process was forked while another thread was in a call of lockstep, so this object of the parent cannot be used: open \
             the file again in the child",
        ))
    }
}

/// Runs in the child of a fork.
pub(crate) fn after_fork_in_child() {
    let forks = FORKS.fetch_add(1, Ordering::Relaxed) + 1;
    let own = OWN_CALLS.get();
    if CALLS.swap(own, Ordering::Relaxed) > own {
        LAST_BUSY.store(forks, Ordering::Relaxed);
    }
}
