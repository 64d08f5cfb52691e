//! Handles SIGINT and other signals that end the program. After a signal, temporary files are removed, and the exit code is 128 plus
//! the number of the signal.
//!
//! A thread waits for signals. When a signal comes, the thread sets a flag. If there are no output files and no results
//! to print, the thread ends the program at once. Otherwise the thread waits while the work reads the flag, stops, drops
//! its output file and prints its results. If the work does not stop in time (for example because a system call blocks),
//! or if another signal comes, the thread ends the program; the library then removes temporary names at the exit. While
//! results remain to be printed there is no time limit, and only another signal ends the program earlier.

use std::io::{self, PipeReader};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use lockstep::hazmat::share::lock;
use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGXFSZ};
use signal_hook::iterator::Signals;

/// Time limit for the work to stop after a signal.
const GRACE: Duration = Duration::from_secs(5);

/// A signal that follows the first one within this time is ignored, since the command `timeout` sends a signal to the
/// process and then to its process group.
const SAME: Duration = Duration::from_millis(500);

/// True once a signal has come. The library reads this flag too.
pub(crate) static STOPPED: AtomicBool = AtomicBool::new(false);
static SIGNAL: AtomicI32 = AtomicI32::new(SIGINT);
/// The number of guards that exist.
static GUARDS: Mutex<usize> = Mutex::new(0);
/// True if the command has results to print, or will have them.
static RESULTS: AtomicBool = AtomicBool::new(false);
/// The reading end of a pipe. The writing end is closed when a signal comes, and no data are written to it.
static WAKE: OnceLock<PipeReader> = OnceLock::new();

/// Installs the signal handlers, and starts the signal thread, which calls `at_end` before it ends the program. Call this function
/// once, at the start of the program.
pub(crate) fn install(at_end: fn()) -> io::Result<()> {
    let (reader, hangs_up) = io::pipe()?;
    WAKE.get_or_init(|| reader);
    let ignored = ignored();
    let wanted = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU]
        .into_iter()
        .filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let mut signals = Signals::new(wanted)?;
    // Without a handler SIGXFSZ would end the program. With a handler, a write beyond the limit on file sizes returns
    // an error, which is handled like other errors.
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    let wait = move || {
        let Some(signal) = signals.forever().next() else { return };
        SIGNAL.store(signal, Ordering::Relaxed);
        STOPPED.store(true, Ordering::Release);
        drop(hangs_up);
        let since = Instant::now();
        let waits = || {
            let has_results = RESULTS.load(Ordering::Acquire);
            has_results || *lock(&GUARDS) > 0 && since.elapsed() < GRACE
        };
        // SIGXCPU does not count as another signal, because it is sent every second after the limit on CPU time is
        // exceeded.
        let again = |signal| since.elapsed() > SAME && signal != SIGXCPU;
        while waits() && !signals.pending().any(again) {
            std::thread::sleep(Duration::from_millis(10));
        }
        // The lock is held until the end, so that no more files are created.
        let _guards = lock(&GUARDS);
        at_end();
        std::process::exit(exit_code().into());
    };
    std::thread::Builder::new().name("signals".into()).spawn(wait).map(drop)
}

/// True once a signal has arrived.
pub(crate) fn stopped() -> bool {
    STOPPED.load(Ordering::Acquire)
}

/// Waits until a descriptor is ready for reading or writing, or has failed.
///
/// # Errors
/// If a signal has arrived, or arrives before the descriptor is ready.
pub(crate) fn wait(fd: impl AsFd, ready: PollFlags) -> io::Result<()> {
    let stopped = WAKE.get().map(|wake| PollFd::new(wake, PollFlags::IN));
    let mut fds: Vec<_> = std::iter::once(PollFd::new(&fd, ready)).chain(stopped).collect();
    loop {
        match poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) if fds[1..].iter().any(|wake| !wake.revents().is_empty()) => {
                return Err(io::Error::other("stopped by a signal"));
            }
            Ok(_) => return Ok(()),
        }
    }
}

/// Calls a function that reads from a descriptor or writes to it. If the call fails because the descriptor is non-blocking and not
/// ready, waits until it is ready and calls the function again.
pub(crate) fn repeat_when_ready(
    fd: impl AsFd,
    ready: PollFlags,
    mut transfer: impl FnMut() -> io::Result<usize>,
) -> io::Result<usize> {
    loop {
        match transfer() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(&fd, ready)?,
            done => return done,
        }
    }
}

/// The exit code after a signal: 130 for Ctrl-C, 143 for SIGTERM.
pub(crate) fn exit_code() -> u8 {
    (128 + SIGNAL.load(Ordering::Relaxed)) as u8
}

/// While a guard exists, the first signal does not end the program at once: the work stops and drops its output.
pub(crate) struct Guard(());

impl Guard {
    /// Creates a guard for a file that is about to be created.
    pub(crate) fn creating() -> Guard {
        *lock(&GUARDS) += 1;
        Guard(())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        *lock(&GUARDS) -= 1;
    }
}

/// After this call, the first signal does not end the program: the command checks [`stopped`] and prints its results. Call this
/// function before the work whose results are to be printed.
pub(crate) fn hold_for_results() {
    RESULTS.store(true, Ordering::Release);
}

/// A bit set of the signals that the process ignored when it was started, for example by `nohup` or as a background job.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
