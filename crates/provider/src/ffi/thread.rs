//! Threads of our own in somebody else's process.

use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::thread::{Builder, JoinHandle};

/// Starts a thread that no signal is delivered to.
pub(crate) fn spawn_without_signals(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> Option<JoinHandle<()>> {
    without_signals(|| Builder::new().name(name.into()).spawn(body).ok())
}

/// Does something while signals wait. Threads that it starts never get any: the program's handlers expect the program's
/// threads, and a thread inherits the mask of the one that starts it.
pub(crate) fn without_signals<T>(body: impl FnOnce() -> T) -> T {
    struct Restore(libc::sigset_t);

    impl Drop for Restore {
        fn drop(&mut self) {
            // SAFETY: a set that the system has filled in.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, null_mut()) };
        }
    }

    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: both sets are written before they are read; the call fails for wrong arguments only.
    let _restore = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        Restore(before.assume_init())
    };
    body()
}
