//! Threads of our own in somebody else's process.

use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::thread::{Builder, JoinHandle};

/// Starts a thread that no signal is delivered to: the program's handlers expect the program's threads.
pub(crate) fn spawn_without_signals(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> Option<JoinHandle<()>> {
    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: both sets are written before they are read; a thread inherits the mask of the one that starts it.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        if libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) != 0 {
            return None;
        }
        let thread = Builder::new().name(name.into()).spawn(body).ok();
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), null_mut());
        thread
    }
}
