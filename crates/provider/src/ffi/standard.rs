//! Standard output and standard error: whose files they are, and messages on standard error.
//!
//! In a program that was started without them (`2>&-`) the next files that it opens get their numbers, and a message must
//! not end up in such a file. So the files that have these numbers when the provider is loaded for the first time are
//! recorded, and nothing is written to any other.

use std::ffi::c_int;
use std::io::{self, Error};
use std::panic;
use std::sync::{Once, OnceLock};

use super::descriptor::{Descriptor, Identity, keeping_errno, status, write_at_once};

/// The files of standard output and standard error at the first loading. None if it was closed, or was not inherited.
static FIRST: OnceLock<[Option<Identity>; 2]> = OnceLock::new();

/// Records which files standard output and standard error are, the first time that the provider is loaded.
pub(crate) fn record() {
    keeping_errno(|| {
        FIRST.get_or_init(|| [libc::STDOUT_FILENO, libc::STDERR_FILENO].map(inherited));
    });
}

/// The file of a descriptor, if the program may have inherited it. A descriptor that is closed on `exec` was opened by the
/// program itself.
fn inherited(number: c_int) -> Option<Identity> {
    // SAFETY: a call on a number, which need not be that of an open file.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    let found = status(number).ok()?;
    (flags >= 0 && flags & libc::FD_CLOEXEC == 0).then(|| Identity::of(&found))
}

/// Whether the file of a descriptor is the one that was recorded.
///
/// # Errors
/// If it is another file, or that cannot be known.
fn recorded(number: c_int) -> io::Result<()> {
    let first = FIRST.get().and_then(|files| files[usize::from(number == libc::STDERR_FILENO)]);
    let first = first.ok_or_else(|| Error::other("it was closed when the provider was loaded"))?;
    let found = status(number)?;
    match Identity::of(&found) == first {
        true => Ok(()),
        false => Err(Error::other("the program has put another file in its place")),
    }
}

/// A descriptor of our own for standard output or standard error.
///
/// # Errors
/// If it is not open, is another file than at the first loading, or no more descriptors can be had.
pub(crate) fn copy(number: c_int) -> io::Result<Descriptor> {
    keeping_errno(|| {
        recorded(number)?;
        Descriptor::copy_of(number)
    })
}

/// Writes a message to standard error, if that can be done at once.
pub(crate) fn say(message: &str) {
    const NUMBER: c_int = libc::STDERR_FILENO;
    keeping_errno(|| {
        // If that is not known, because a sandbox refuses the call, nothing is written either: a write that fails takes
        // calls that a sandbox may end the program for.
        if recorded(NUMBER).is_err() {
            return;
        }
        // There is no other place to report a failure to.
        let _ = write_at_once(NUMBER, format!("lockstep: {message}\n").as_bytes());
    });
}

/// Has panics, which are mistakes of ours, reported by messages of this module: Rust's own message goes to descriptor 2
/// whatever it is, waits, and may raise a signal.
pub(crate) fn report_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| panic::set_hook(Box::new(|info| say(&info.to_string()))));
}
