//! Threads of our own in somebody else's process.

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::thread::{Builder, JoinHandle};

/// Starts a thread that no signal is delivered to. None if that cannot be done.
pub(crate) fn spawn_without_signals(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> Option<JoinHandle<()>> {
    let _blocked = Blocked::new().ok()?;
    Builder::new().name(name.into()).spawn(body).ok()
}

/// Signals that a write sends to the thread that writes: the other end of a pipe is closed, or a file is longer than the
/// process may make it. Unless a program is prepared for them they end it.
const OF_WRITES: [c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// Does something while signals wait. Threads that it starts never get any: the program's handlers expect the program's
/// threads, and a thread inherits the mask of the one that starts it. Signals that its writes have caused are dropped; how
/// the program handles signals is not changed. Where the system does not let signals wait it is done nevertheless.
pub(crate) fn without_signals<T>(body: impl FnOnce() -> T) -> T {
    let mut blocked = Blocked::new();
    if let Ok(blocked) = &mut blocked {
        blocked.drops = true;
    }
    body()
}

/// Writes while signals wait. If nothing fails, it makes no system call but one that sets the thread's mask: in a sandbox
/// others may end the program.
///
/// # Errors
/// Those of the body, which does not run if signals cannot be made to wait.
pub(crate) fn write_without_signals<T>(body: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let mut blocked = Blocked::new()?;
    let answer = body();
    let error = answer.as_ref().err().and_then(io::Error::raw_os_error);
    blocked.drops = matches!(error, Some(libc::EPIPE | libc::EFBIG));
    answer
}

/// All signals wait while this lives.
struct Blocked {
    /// The thread's mask of before.
    mask: libc::sigset_t,
    /// Of [`OF_WRITES`], those that were pending before.
    pending: [bool; OF_WRITES.len()],
    /// Signals of [`OF_WRITES`] that have come since are dropped.
    drops: bool,
}

impl Blocked {
    /// # Errors
    /// If the mask cannot be set, as in a sandbox that refuses the call. It is unchanged then.
    fn new() -> io::Result<Blocked> {
        let mut all = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: sigfillset and sigemptyset fill in both sets before anything reads them. If the call fails, which it does
        // where a sandbox refuses it, `before` stays the empty set, and is not used.
        let (error, mask) = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::sigemptyset(before.as_mut_ptr());
            let error = libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            (error, before.assume_init())
        };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        // Signals that were not blocked were not pending.
        let blocked = OF_WRITES.iter().any(|signal| contains(&mask, *signal));
        Ok(Blocked { mask, pending: if blocked { pending() } else { Default::default() }, drops: false })
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
        // SAFETY: a set that the system has filled in.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.mask, null_mut()) };
    }
}

fn contains(set: &libc::sigset_t, signal: c_int) -> bool {
    // SAFETY: a set that the system has filled in, and the number of a signal.
    unsafe { libc::sigismember(set, signal) == 1 }
}

/// Which of [`OF_WRITES`] wait for this thread.
fn pending() -> [bool; OF_WRITES.len()] {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the set is emptied before anything else reads it, and stays empty if the call fails.
    let set = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigpending(set.as_mut_ptr());
        set.assume_init()
    };
    OF_WRITES.map(|signal| contains(&set, signal))
}

/// Drops a signal that is pending and blocked.
fn take(signal: c_int) {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the set is emptied before anything else reads it; no place is given for what is known of the signal.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        #[cfg(not(target_os = "macos"))]
        libc::sigtimedwait(set.as_ptr(), null_mut(), &libc::timespec { tv_sec: 0, tv_nsec: 0 });
        // There is no form with a limit of time; it does not wait, since the signal is this thread's.
        #[cfg(target_os = "macos")]
        libc::sigwait(set.as_ptr(), &mut 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends a signal to this thread alone.
    fn raise(signal: c_int) {
        // SAFETY: the thread is this one.
        assert_eq!(unsafe { libc::pthread_kill(libc::pthread_self(), signal) }, 0);
    }

    #[test]
    fn signals_of_writes_are_dropped_and_those_of_before_are_kept() {
        std::thread::spawn(|| {
            without_signals(|| raise(libc::SIGXFSZ));
            assert_eq!(pending(), [false, false]);
            without_signals(|| {
                raise(libc::SIGXFSZ);
                without_signals(|| raise(libc::SIGXFSZ));
                // It was there before the inner one.
                assert_eq!(pending(), [false, true]);
            });
            assert_eq!(pending(), [false, false]);
            let too_large = || io::Error::from_raw_os_error(libc::EFBIG);
            let failed = write_without_signals(|| {
                raise(libc::SIGXFSZ);
                Err::<(), _>(too_large())
            });
            assert_eq!(failed.unwrap_err().raw_os_error(), Some(libc::EFBIG));
            assert_eq!(pending(), [false, false]);
        })
        .join()
        .unwrap();
    }
}
