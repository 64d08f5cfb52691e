//! A lock for work that calls code of Python. This code can call the owner of the lock again on the same thread.

use std::sync::Mutex;
use std::thread::ThreadId;

use lockstep::hazmat::share::lock;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// A value that one thread uses at a time. If a thread that uses the value requests it again, the result is an exception, not a deadlock.
pub(crate) struct Turn<T> {
    value: Mutex<T>,
    /// The thread that uses the value.
    user: Mutex<Option<ThreadId>>,
}

impl<T> Turn<T> {
    pub(crate) const fn new(value: T) -> Turn<T> {
        Turn { value: Mutex::new(value), user: Mutex::new(None) }
    }

    /// Checks that this thread does not use the value.
    ///
    /// # Errors
    /// `RuntimeError` in a call from a function that this thread runs with the value.
    pub(crate) fn check(&self) -> PyResult<()> {
        if *lock(&self.user) == Some(std::thread::current().id()) {
            return Err(PyRuntimeError::new_err(
                "a reentrant call: the file object must not use the encrypted file that reads or writes it",
            ));
        }
        Ok(())
    }

    /// Waits until no other thread uses the value, and then calls a function with the value. The calling thread is detached from
    /// the interpreter.
    ///
    /// # Errors
    /// Those of [`Turn::check`].
    pub(crate) fn with<R>(&self, action: impl FnOnce(&mut T) -> R) -> PyResult<R> {
        self.check()?;
        let mut value = lock(&self.value);
        *lock(&self.user) = Some(std::thread::current().id());
        // Dropped before `value`, so that the user is cleared before the lock is released.
        let _end = End(&self.user);
        Ok(action(&mut value))
    }
}

/// Clears the user at the end, also after a panic.
struct End<'a>(&'a Mutex<Option<ThreadId>>);

impl Drop for End<'_> {
    fn drop(&mut self) {
        *lock(self.0) = None;
    }
}
