//! Starts the provider's threads in the program's process, and blocks signals.

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::thread::{Builder, JoinHandle};

/// Starts a thread that receives no signals. Returns `None` if the thread cannot be started.
pub(crate) fn spawn_without_signals(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> Option<JoinHandle<()>> {
    let _blocked = Blocked::new(false).ok()?;
    Builder::new().name(name.into()).spawn(body).ok()
}

/// Signals that a write sends to the writing thread, if the other end of a pipe is closed or if the file size limit of
/// the process is exceeded. Their default action ends the program.
const OF_WRITES: [c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// Runs `body` with all signals blocked. Threads that `body` starts inherit the signal mask, so they never receive signals.
/// This is necessary because the program's signal handlers expect to run on the program's threads. Signals that are caused by
/// writes in `body` are discarded, without a change of the program's signal handlers. If the signals cannot be blocked, `body`
/// runs nevertheless.
pub(crate) fn without_signals<T>(body: impl FnOnce() -> T) -> T {
    let _blocked = Blocked::new(true);
    body()
}

/// Runs a write with all signals blocked. If nothing fails, this function itself makes only the system calls that set the
/// thread's signal mask, because a sandbox may end the program for other calls. Exception: if the program itself blocks a
/// signal of [`OF_WRITES`], this function also reads the pending signals.
///
/// # Errors
/// The errors of `body`, or an error if signals cannot be blocked. In the latter case `body` does not run.
pub(crate) fn write_without_signals<T>(body: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let mut blocked = Blocked::new(false)?;
    let result = body();
    let error = result.as_ref().err().and_then(io::Error::raw_os_error);
    blocked.drops = matches!(error, Some(libc::EPIPE | libc::EFBIG));
    result
}

/// Blocks all signals of the current thread as long as this value exists.
struct Blocked {
    /// The previous signal mask of the thread.
    mask: libc::sigset_t,
    /// For each signal of [`OF_WRITES`]: true if it was pending before the signals were blocked.
    pending: [bool; OF_WRITES.len()],
    /// True if signals of [`OF_WRITES`] that arrive after the creation of this value are discarded on drop.
    drops: bool,
}

impl Blocked {
    /// # Errors
    /// If the mask cannot be set, for example because a sandbox forbids the call. The mask is then unchanged.
    fn new(drops: bool) -> io::Result<Blocked> {
        let (mut all, mut mask) = (empty_set(), empty_set());
        // SAFETY: both sets have been initialised.
        let error = unsafe {
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut mask)
        };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        // A signal that was not blocked before was not pending.
        let blocked = OF_WRITES.iter().any(|signal| contains(&mask, *signal));
        Ok(Blocked { mask, pending: if blocked { pending() } else { Default::default() }, drops })
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        if self.drops {
            for ((signal, before), now) in OF_WRITES.into_iter().zip(self.pending).zip(pending()) {
                if now && !before {
                    take(signal);
                }
            }
        }
        // SAFETY: the system has initialised the set.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.mask, null_mut()) };
    }
}

/// A set without signals.
fn empty_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the call initialises the set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

fn contains(set: &libc::sigset_t, signal: c_int) -> bool {
    // SAFETY: the system has initialised the set, and `signal` is a signal number.
    unsafe { libc::sigismember(set, signal) == 1 }
}

/// For each signal of [`OF_WRITES`]: true if it is pending for this thread.
fn pending() -> [bool; OF_WRITES.len()] {
    let mut set = empty_set();
    // SAFETY: the set has been initialised. If the call fails, the set stays empty.
    unsafe { libc::sigpending(&mut set) };
    OF_WRITES.map(|signal| contains(&set, signal))
}

/// Discards a signal that is pending and blocked.
fn take(signal: c_int) {
    let mut set = empty_set();
    // SAFETY: the set has been initialised. The pointer for information about the signal may be null.
    unsafe {
        libc::sigaddset(&mut set, signal);
        #[cfg(not(target_os = "macos"))]
        libc::sigtimedwait(&set, null_mut(), &libc::timespec { tv_sec: 0, tv_nsec: 0 });
        // macOS has no `sigtimedwait`. `sigwait` returns at once, because the signal is pending for this thread.
        #[cfg(target_os = "macos")]
        libc::sigwait(&set, &mut 0);
    }
}

#[cfg(test)]
mod tests;
