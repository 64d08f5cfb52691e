//! The files of standard output and standard error, and messages on standard error.
//!
//! If a program is started with standard output or standard error closed (`2>&-`), a file that the program opens later gets the
//! descriptor number of the closed stream. Messages must not be written to such a file. When the provider is first loaded, it
//! therefore records which files have the numbers of standard output and standard error. Later it does not write to any other
//! file that has one of these numbers.

use std::ffi::c_int;
use std::fs::OpenOptions;
use std::io::{self, Error};
use std::panic::{self, PanicHookInfo};
use std::path::Path;
use std::sync::{Once, OnceLock};

use super::descriptor::{
    Descriptor, Identity, closes_on_exec, identity, open, preserve_errno, status, write_at_once,
};
use crate::message::escaped;

/// The identities of the files of standard output and standard error when the provider was first loaded. `None` for a stream
/// that was closed or that the program did not inherit.
static FIRST: OnceLock<[Option<Identity>; 2]> = OnceLock::new();

/// Records the files of standard output and standard error when the provider is loaded for the first time. A descriptor that is
/// closed on `exec` is not recorded, because the program itself has opened it.
pub(crate) fn record() {
    let inherited = |number| match status(number) {
        Ok(found) if !closes_on_exec(number) => Some(identity(&found)),
        _ => None,
    };
    preserve_errno(|| FIRST.get_or_init(|| [libc::STDOUT_FILENO, libc::STDERR_FILENO].map(inherited)));
}

/// Returns the status of the descriptor `number`, if its file is the recorded file.
///
/// # Errors
/// If the descriptor refers to another file, or if its file cannot be determined.
fn recorded(number: c_int) -> io::Result<libc::stat> {
    let first = FIRST.get().and_then(|files| files[usize::from(number == libc::STDERR_FILENO)]);
    let first = first.ok_or_else(|| Error::other("the program was started without it"))?;
    let found = status(number)?;
    match identity(&found) == first {
        true => Ok(found),
        false => Err(Error::other("the program has put another file in its place")),
    }
}

/// Returns a copy of the descriptor of standard output or standard error. Writes to terminals and pipes do not wait.
///
/// # Errors
/// If the descriptor is not open or does not refer to the recorded file, or if no more descriptors are available.
pub(crate) fn copy(number: c_int) -> io::Result<Descriptor> {
    preserve_errno(|| own(number, &recorded(number)?))
}

fn own(number: c_int, found: &libc::stat) -> io::Result<Descriptor> {
    reopened(number, found).map_or_else(|| Descriptor::copy_of(number), Ok)
}

/// Opens the terminal or the pipe of a descriptor again, so that the new descriptor can have the flag `O_NONBLOCK`. Setting
/// this flag for the original descriptor would also affect the program and other processes that share the descriptor. Returns
/// `None` for files that are neither terminals nor pipes, and if the system does not allow the opening, for example because the
/// terminal or the pipe belongs to another user.
fn reopened(number: c_int, found: &libc::stat) -> Option<Descriptor> {
    let is_pipe = found.st_mode & libc::S_IFMT == libc::S_IFIFO;
    // SAFETY: the call accepts any descriptor number.
    if !is_pipe && unsafe { libc::isatty(number) } != 1 {
        return None;
    }
    // The name is a symbolic link in `/proc`. Opening it opens the file of the descriptor.
    let name = format!("/proc/self/fd/{number}");
    let again = open(Path::new(&name), &mut OpenOptions::new(), 0).ok()?;
    (again.identity == identity(found)).then_some(again)
}

/// Writes a message to standard error, if that is possible without waiting. `may_open` must be false after the provider has
/// been loaded: the program may then have entered a sandbox that forbids opening files, so no file is opened for the message.
pub(crate) fn write_message(message: &str, may_open: bool) {
    const NUMBER: c_int = libc::STDERR_FILENO;
    preserve_errno(|| {
        // If a sandbox does not allow the call that determines the file, nothing is written: a write could fail, and a failed
        // write makes further system calls, for which a sandbox may end the program.
        let Ok(found) = recorded(NUMBER) else { return };
        let line = format!("lockstep: {}\n", escaped(message));
        let again = if may_open { reopened(NUMBER, &found) } else { None };
        // A failure cannot be reported anywhere else.
        let _ = match again {
            Some(again) => again.write(line.as_bytes()),
            None => write_at_once(NUMBER, line.as_bytes()),
        };
    });
}

/// Makes panics, which are bugs in this crate, print their messages with [`write_message`]. Rust's default hook writes to
/// descriptor 2 even if the program has opened another file with this number. Its write may also wait or raise a signal.
/// Rust also writes to this descriptor between the hook and an abort, so the hook itself aborts.
pub(crate) fn report_panics() {
    let hook = |info: &PanicHookInfo<'_>| {
        write_message(&info.to_string(), false);
        // The messages of panics that do not unwind begin with these words: they report that a panic has reached the boundary of an
        // `extern "C"` function, or that a drop has panicked during unwinding. `PanicHookInfo::can_unwind` is not stable.
        if info.payload().downcast_ref::<&str>().is_some_and(|message| message.starts_with("panic in a ")) {
            // SAFETY: the call has no requirements.
            unsafe { libc::abort() };
        }
    };
    static ONCE: Once = Once::new();
    ONCE.call_once(|| panic::set_hook(Box::new(hook)));
}

#[cfg(test)]
mod tests;
