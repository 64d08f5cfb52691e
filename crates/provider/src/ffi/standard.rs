//! Standard output and standard error: whose files they are, and messages on standard error.
//!
//! In a program that was started without them (`2>&-`) the next files that it opens get their numbers, and a message must
//! not end up in such a file. So the files that have these numbers when the provider is loaded for the first time are
//! recorded, and nothing is written to any other.

use std::ffi::c_int;
use std::io::{self, Error};
use std::panic;
use std::sync::{Once, OnceLock};

use super::descriptor::{
    Descriptor, Identity, OpenFlags, closes_on_exec, keeping_errno, open, status, write_at_once,
};
use crate::message::escaped;

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
    let found = status(number).ok()?;
    (!closes_on_exec(number)).then(|| Identity::of(&found))
}

/// What is known of a descriptor, if its file is the one that was recorded.
///
/// # Errors
/// If it is another file, or that cannot be known.
fn recorded(number: c_int) -> io::Result<libc::stat> {
    let first = FIRST.get().and_then(|files| files[usize::from(number == libc::STDERR_FILENO)]);
    let first = first.ok_or_else(|| Error::other("the program was started without it"))?;
    let found = status(number)?;
    match Identity::of(&found) == first {
        true => Ok(found),
        false => Err(Error::other("the program has put another file in its place")),
    }
}

/// A descriptor of our own for standard output or standard error. Writes to terminals and pipes do not wait.
///
/// # Errors
/// If it is not open, is another file than at the first loading, or no more descriptors can be had.
pub(crate) fn copy(number: c_int) -> io::Result<Descriptor> {
    keeping_errno(|| {
        let found = recorded(number)?;
        own(number, &found)
    })
}

fn own(number: c_int, found: &libc::stat) -> io::Result<Descriptor> {
    reopened(number, found).map_or_else(|| Descriptor::copy_of(number), Ok)
}

/// Opens the terminal or the pipe that a descriptor has open once more, with a mode of its own: `O_NONBLOCK` on the descriptor
/// itself would change it for the program, and for others that have it. None for other files, and where the system refuses,
/// as it does if the terminal or pipe belongs to another user.
fn reopened(number: c_int, found: &libc::stat) -> Option<Descriptor> {
    let is_pipe = found.st_mode & libc::S_IFMT == libc::S_IFIFO;
    // SAFETY: a call on a number.
    if !is_pipe && unsafe { libc::isatty(number) } != 1 {
        return None;
    }
    let name = std::ffi::CString::new(format!("/proc/self/fd/{number}")).ok()?;
    let again = open(&name, OpenFlags::Existing).ok()?;
    (again.identity() == Identity::of(found)).then_some(again)
}

/// Writes a message to standard error while the provider is being loaded, if that can be done at once.
pub(crate) fn say(message: &str) {
    write(message, reopened);
}

/// The same after that. Nothing is opened: a sandbox that the program has entered meanwhile may end it for that.
pub(crate) fn say_later(message: &str) {
    write(message, |_, _| None);
}

fn write(message: &str, reopen: impl FnOnce(c_int, &libc::stat) -> Option<Descriptor>) {
    const NUMBER: c_int = libc::STDERR_FILENO;
    keeping_errno(|| {
        // If that is not known, because a sandbox refuses the call, nothing is written either: a write that fails takes
        // calls that a sandbox may end the program for.
        let Ok(found) = recorded(NUMBER) else { return };
        let line = format!("lockstep: {}\n", escaped(message));
        // There is no other place to report a failure to.
        let _ = match reopen(NUMBER, &found) {
            Some(again) => again.write(line.as_bytes()),
            None => write_at_once(NUMBER, line.as_bytes()),
        };
    });
}

/// Has panics, which are mistakes of ours, reported by messages of this module: Rust's own message goes to descriptor 2
/// whatever it is, waits, and may raise a signal.
pub(crate) fn report_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| panic::set_hook(Box::new(|info| say_later(&info.to_string()))));
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read};
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::ptr::null_mut;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// Bytes of a line: more than a terminal has room for when `poll` finds room in it.
    const LINE: usize = 4001;

    /// Writes lines until one would wait; fails if one waits.
    fn writes_until_full(number: c_int) -> (Descriptor, usize) {
        let (done, result) = mpsc::channel();
        // A thread that hangs is left behind.
        std::thread::spawn(move || {
            let copy = own(number, &status(number).unwrap()).unwrap();
            let mut lines = 0;
            let line = [&[b'x'; LINE - 1][..], b"\n"].concat();
            while copy.write(&line).map_err(|error| assert_eq!(error.kind(), ErrorKind::WouldBlock)).is_ok() {
                lines += 1;
            }
            done.send((copy, lines)).unwrap();
        });
        result.recv_timeout(Duration::from_secs(60)).expect("the write waits")
    }

    /// That the terminal has room is no promise that it has room for a line.
    #[test]
    fn a_terminal_that_nobody_reads_is_not_waited_for() {
        let (mut master, mut slave) = (-1, -1);
        // SAFETY: places for two numbers, and none for the rest.
        let opened =
            unsafe { libc::openpty(&raw mut master, &raw mut slave, null_mut(), null_mut(), null_mut()) };
        if opened != 0 {
            eprintln!("NOT TESTED, there are no pseudo-terminals here: {}", Error::last_os_error());
            return;
        }
        // SAFETY: they have just been opened, by nobody else.
        let _both = [master, slave].map(|number| unsafe { OwnedFd::from_raw_fd(number) });
        let (_copy, lines) = writes_until_full(slave);
        assert!(lines > 0);
        // SAFETY: a call on an open descriptor.
        let flags = unsafe { libc::fcntl(slave, libc::F_GETFL) };
        assert_eq!(flags & libc::O_NONBLOCK, 0, "the mode of the program's descriptor has changed");
    }

    #[test]
    fn a_pipe_that_nobody_reads_is_not_waited_for() {
        let (mut reader, writer) = io::pipe().unwrap();
        let (copy, lines) = writes_until_full(writer.as_raw_fd());
        // The reader sees the end of it when the program and the copy have closed it.
        drop((writer, copy));
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        assert_eq!(read.len(), lines * LINE);
    }
}
