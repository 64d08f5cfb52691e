//! Ctrl-C and its like: what was begun is removed, and the exit code tells.
//!
//! A thread waits for signals. Where nothing is at stake it ends the program at once. Otherwise it raises a flag, on
//! which the work stops, removes its temporary file and tells its results; should the work not get there in time (it may
//! hang in a system call), or the user press again, the thread removes the file itself. Results are waited for as long as
//! it takes, unless the user presses again.

use std::io::{self, PipeReader};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use lockstep::output::TemporaryName;
use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::error::{Result, failed};
use crate::terminal;

/// How long the work may take to stop by itself.
const GRACE: Duration = Duration::from_secs(5);

/// A signal that comes so soon after the first is the same wish: `timeout` sends one to the process and one to its group.
const SAME: Duration = Duration::from_millis(500);

static STOPPED: AtomicBool = AtomicBool::new(false);
static SIGNAL: AtomicI32 = AtomicI32::new(SIGINT);
/// Everything at stake, by the number of its guard.
static STAKES: Mutex<Vec<(u64, Stake)>> = Mutex::new(Vec::new());
/// Results that took their time have not been told.
static RESULTS: AtomicBool = AtomicBool::new(false);
/// Nothing is ever written to it; it hangs up when a signal comes.
static WAKE: OnceLock<PipeReader> = OnceLock::new();

/// Starts to catch signals. Called once, first of all.
pub(crate) fn install() -> Result<()> {
    let cannot = |error| failed(format!("cannot catch signals: {error}"));
    let (reader, hangs_up) = io::pipe().map_err(cannot)?;
    WAKE.get_or_init(|| reader);
    let ignored = ignored();
    let wanted = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU]
        .into_iter()
        .filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let mut signals = Signals::new(wanted).map_err(cannot)?;
    // Caught, a limit on file sizes is an error of the write, and cleaned up after as any other.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map_err(cannot)?;
    let wait = move || {
        let Some(signal) = signals.forever().next() else { return };
        SIGNAL.store(signal, Ordering::Relaxed);
        STOPPED.store(true, Ordering::Release);
        drop(hangs_up);
        let since = Instant::now();
        let waits = || {
            let has_results = RESULTS.load(Ordering::Acquire);
            has_results || !stakes().is_empty() && since.elapsed() < GRACE
        };
        // A limit on time is told again every second.
        let again = |signal| since.elapsed() > SAME && signal != SIGXCPU;
        while waits() && !signals.pending().any(again) {
            std::thread::sleep(Duration::from_millis(10));
        }
        // Held until the end: nothing is created any more.
        let stakes = stakes();
        for (_, stake) in stakes.iter() {
            // What cannot be removed stays: nothing more can be done.
            let _ = match stake {
                Stake::Creating => Ok(()),
                Stake::File(name) => name.remove(),
                Stake::Folder(path) => std::fs::remove_dir_all(path),
            };
        }
        terminal::restore();
        std::process::exit(exit_code().into());
    };
    std::thread::Builder::new().name("signals".into()).spawn(wait).map(drop).map_err(cannot)
}

/// True once a signal has come.
pub(crate) fn stopped() -> bool {
    STOPPED.load(Ordering::Acquire)
}

/// The flag that [`stopped`] reads, for the library.
pub(crate) fn flag() -> &'static AtomicBool {
    &STOPPED
}

/// Waits until a descriptor is ready for reading or writing, or has failed.
///
/// # Errors
/// If a signal came first.
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

/// The exit code after a signal: 130 for Ctrl-C, 143 for SIGTERM.
pub(crate) fn exit_code() -> u8 {
    (128 + SIGNAL.load(Ordering::Relaxed)) as u8
}

/// What must not be left behind.
enum Stake {
    /// A temporary file or folder is being created; its name is not known yet.
    Creating,
    File(TemporaryName),
    Folder(PathBuf),
}

/// A temporary file or folder is at stake until this is dropped.
pub(crate) struct Guard(u64);

impl Guard {
    /// One that is about to be created. That must not take long.
    pub(crate) fn creating() -> Guard {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        stakes().push((number, Stake::Creating));
        Guard(number)
    }

    /// Says which file it is.
    pub(crate) fn file(self, name: &TemporaryName) -> Guard {
        self.set(Stake::File(name.clone()));
        self
    }

    fn set(&self, stake: Stake) {
        if let Some((_, known)) = stakes().iter_mut().find(|(number, _)| *number == self.0) {
            *known = stake;
        }
    }
}

impl lockstep_bench::FolderGuard for Guard {
    fn set_path(&mut self, path: &Path) {
        self.set(Stake::Folder(path.into()));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        stakes().retain(|(number, _)| *number != self.0);
    }
}

/// Results are at stake until this is dropped: who holds it looks at [`stopped`], and tells them.
pub(crate) struct Results(());

impl Results {
    /// Those that are about to be found.
    pub(crate) fn awaited() -> Results {
        RESULTS.store(true, Ordering::Release);
        Results(())
    }
}

impl Drop for Results {
    fn drop(&mut self) {
        RESULTS.store(false, Ordering::Release);
    }
}

fn stakes() -> MutexGuard<'static, Vec<(u64, Stake)>> {
    STAKES.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Signals that whoever started the program wants ignored (`nohup`, a job in the background), as a set of bits.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
