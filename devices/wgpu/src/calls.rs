//! Functions for locks, and for calls of wgpu, which return the errors that wgpu reports.

use std::sync::{Mutex, MutexGuard};

/// Locks a mutex, even if a thread panicked while it held the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The result of a call, and the error that wgpu reported for it.
pub(crate) fn scoped<T>(device: &wgpu::Device, call: impl FnOnce() -> T) -> (T, Option<wgpu::Error>) {
    let scopes = [wgpu::ErrorFilter::Validation, wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Internal]
        .map(|filter| device.push_error_scope(filter));
    let value = call();
    let mut error = None;
    for scope in scopes.into_iter().rev() {
        error = error.or(pollster::block_on(scope.pop()));
    }
    (value, error)
}
