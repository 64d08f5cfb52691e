//! Writing to files without an effect on the program that this module is loaded into: no signal, no waiting, no change of
//! `errno`, no descriptor of the program's closed or written to.
//!
//! Writes to a regular file, to a FIFO and to a device that was opened by its name, and to terminals and pipes that were opened
//! once more ([`super::standard`]), are made with `O_NONBLOCK`. Others are made if `poll` says that there is room.
//!
//! A write makes the system calls `fstat`, `rt_sigprocmask`, `poll` and `write` and no others unless it fails: sandboxes such as
//! that of OpenSSH's server, which refuses the first, end a program for calls that they do not know.

use std::ffi::{CStr, CString, c_int};
use std::io::{self, Error, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::thread::write_without_signals;

/// Which file it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Identity {
    device: libc::dev_t,
    inode: libc::ino_t,
}

impl Identity {
    pub(super) fn of(found: &libc::stat) -> Identity {
        Identity { device: found.st_dev, inode: found.st_ino }
    }
}

/// A descriptor of our own.
pub(crate) struct Descriptor {
    number: c_int,
    /// The file that it was opened for. Programs close descriptors that they have not opened (`closefrom`) and get their
    /// numbers for files of their own.
    identity: Identity,
}

impl Descriptor {
    /// A copy of a descriptor of the program's, such as that of standard error.
    ///
    /// # Errors
    /// If it is not open, or no more descriptors can be had.
    pub(crate) fn copy_of(number: c_int) -> io::Result<Descriptor> {
        keeping_errno(|| Descriptor::new(above_standard(number)?))
    }

    /// Opens a file to append to it, and creates it if it is not there. It may be a regular file, a FIFO that a process
    /// reads, or a character device. Symbolic links are not followed. Regular files with more than one name, and regular files
    /// and FIFOs of other users than root, are refused: other users who may write to the folder must not choose another file for the program.
    ///
    /// # Errors
    /// Why it cannot be opened, in words.
    pub(crate) fn append_to(path: &Path) -> io::Result<Descriptor> {
        keeping_errno(|| {
            let name = CString::new(path.as_os_str().as_bytes())?;
            let opened = open(&name, OpenFlags::Create).map_err(why_not_opened)?;
            check(opened.number)?;
            Ok(opened)
        })
    }

    fn new(number: c_int) -> io::Result<Descriptor> {
        match status(number) {
            Ok(found) => Ok(Descriptor { number, identity: Identity::of(&found) }),
            Err(error) => {
                // SAFETY: it has just been opened here.
                unsafe { libc::close(number) };
                Err(error)
            }
        }
    }

    pub(super) fn identity(&self) -> Identity {
        self.identity
    }

    /// Writes all of it, if that can be done at once.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] if the reader does not keep up; other errors are final.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        keeping_errno(|| {
            if !self.is_open()? {
                return Err(Error::other("the program has closed it"));
            }
            write_at_once(self.number, bytes)
        })
    }

    /// Whether the descriptor is that of the same file still.
    ///
    /// # Errors
    /// If that is not known: a sandbox forbids to look.
    fn is_open(&self) -> io::Result<bool> {
        match status(self.number) {
            Ok(found) => Ok(Identity::of(&found) == self.identity),
            Err(error) if error.raw_os_error() == Some(libc::EBADF) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        keeping_errno(|| {
            // A program that has closed it may have opened the same file under its number.
            if self.is_open().unwrap_or(false) && closes_on_exec(self.number) {
                // SAFETY: the descriptor is our own still.
                unsafe { libc::close(self.number) };
            }
        });
    }
}

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenFlags {
    /// It is created if it is not there; symbolic links are not followed.
    Create,
    /// It is there. Links are followed, as those of `/proc/self/fd` are.
    Existing,
}

/// Opens a file to append to it without waiting.
pub(super) fn open(name: &CStr, how: OpenFlags) -> io::Result<Descriptor> {
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
    let more = match how {
        OpenFlags::Create => libc::O_CREAT | libc::O_NOFOLLOW,
        OpenFlags::Existing => 0,
    };
    // SAFETY: a C string; the mode is an unsigned int, as variable arguments are passed.
    let number = unsafe { libc::open(name.as_ptr(), flags | more, 0o600 as libc::c_uint) };
    match number {
        ..0 => Err(Error::last_os_error()),
        0..=libc::STDERR_FILENO => {
            // Standard input, output or error is closed: the program must not find this file in its place.
            let moved = above_standard(number);
            // SAFETY: it has just been opened here.
            unsafe { libc::close(number) };
            Descriptor::new(moved?)
        }
        _ => Descriptor::new(number),
    }
}

/// A copy with a number above those of standard input, output and error.
fn above_standard(number: c_int) -> io::Result<c_int> {
    // SAFETY: a call on a number, which need not be that of an open file.
    match unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, libc::STDERR_FILENO + 1) } {
        -1 => Err(Error::last_os_error()),
        copy => Ok(copy),
    }
}

/// Whether it is an open descriptor that is closed on `exec`, as all of our own are.
pub(super) fn closes_on_exec(number: c_int) -> bool {
    // SAFETY: a call on a number, which need not be that of an open file.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    flags >= 0 && flags & libc::FD_CLOEXEC != 0
}

pub(super) fn status(number: c_int) -> io::Result<libc::stat> {
    let mut found = std::mem::MaybeUninit::uninit();
    // SAFETY: room for the answer, which is read only where the call has succeeded.
    unsafe {
        match libc::fstat(number, found.as_mut_ptr()) {
            0 => Ok(found.assume_init()),
            _ => Err(Error::last_os_error()),
        }
    }
}

/// Refuses what lines are not appended to.
fn check(number: c_int) -> io::Result<()> {
    let found = status(number)?;
    match found.st_mode & libc::S_IFMT {
        libc::S_IFCHR => Ok(()),
        libc::S_IFREG if found.st_nlink > 1 => {
            Err(Error::other("it has more than one name (hard links), and may be another program's file"))
        }
        libc::S_IFREG | libc::S_IFIFO => {
            // SAFETY: reads what the kernel keeps of the process.
            let user = unsafe { libc::geteuid() };
            match found.st_uid {
                0 => Ok(()),
                owner if owner == user => Ok(()),
                owner => Err(Error::other(format!("it belongs to another user (uid {owner})"))),
            }
        }
        _ => Err(Error::other("it is not a file, a FIFO or a character device")),
    }
}

/// Errors of `open` that have another meaning here than their usual text.
fn why_not_opened(error: Error) -> Error {
    match error.raw_os_error() {
        Some(libc::ELOOP) => Error::other("it is a symbolic link, which is not followed"),
        Some(libc::ENXIO) => Error::other("it is a FIFO without a reader, or a socket"),
        _ => error,
    }
}

/// Bytes that a pipe takes at once if it takes any.
const PIECE: usize = libc::PIPE_BUF;

pub(super) fn write_at_once(number: c_int, bytes: &[u8]) -> io::Result<()> {
    write_without_signals(|| {
        let mut rest = bytes;
        while !rest.is_empty() {
            // Not every descriptor has O_NONBLOCK: to set it would set it for the program.
            let mut asked = libc::pollfd { fd: number, events: libc::POLLOUT, revents: 0 };
            // SAFETY: one entry, which is ours.
            match unsafe { libc::poll(&raw mut asked, 1, 0) } {
                1 if asked.revents & libc::POLLOUT != 0 => {}
                1 => return Err(ErrorKind::BrokenPipe.into()),
                0 => return Err(ErrorKind::WouldBlock.into()),
                _ => return Err(Error::last_os_error()),
            }
            // SAFETY: so many bytes are there to be read.
            match unsafe { libc::write(number, rest.as_ptr().cast(), rest.len().min(PIECE)) } {
                -1 if Error::last_os_error().kind() == ErrorKind::Interrupted => {}
                -1 => return Err(Error::last_os_error()),
                0 => return Err(ErrorKind::WriteZero.into()),
                written => rest = &rest[written as usize..],
            }
        }
        Ok(())
    })
}

/// Leaves `errno` as the program has it.
pub(super) fn keeping_errno<T>(body: impl FnOnce() -> T) -> T {
    let errno = errno();
    // SAFETY: the address is that of this thread's own variable, which lives as long as the thread.
    let before = unsafe { *errno };
    let answer = body();
    // SAFETY: as above.
    unsafe { *errno = before };
    answer
}

fn errno() -> *mut c_int {
    // SAFETY: gives the address of this thread's variable, and does nothing else.
    #[cfg(any(target_os = "linux", target_os = "hurd"))]
    return unsafe { libc::__errno_location() };
    // SAFETY: as above.
    #[cfg(not(any(target_os = "linux", target_os = "hurd")))]
    return unsafe { libc::__error() };
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn said(result: io::Result<Descriptor>) -> String {
        result.err().expect("refused").to_string()
    }

    fn fifo(path: &Path) {
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: a C string.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    }

    #[test]
    fn regular_files_are_appended_to_and_created_for_their_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        for _ in 0..2 {
            Descriptor::append_to(&path).unwrap().write(b"line\n").unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"line\nline\n");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_cannot_be_a_trace_is_refused_at_once_and_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert!(said(Descriptor::append_to(folder.path())).contains("directory"));
        assert!(said(Descriptor::append_to(&at("missing/trace"))).contains("No such file"));
        std::fs::write(at("file"), "").unwrap();
        symlink(at("file"), at("link")).unwrap();
        assert!(said(Descriptor::append_to(&at("link"))).contains("symbolic link"));
        std::fs::hard_link(at("file"), at("second")).unwrap();
        assert!(said(Descriptor::append_to(&at("second"))).contains("hard links"));
        fifo(&at("fifo"));
        assert!(said(Descriptor::append_to(&at("fifo"))).contains("FIFO without a reader"));
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        assert!(said(Descriptor::append_to(&at("socket"))).contains("a socket"));
    }

    #[test]
    fn files_of_other_users_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        std::fs::write(&path, "").unwrap();
        if let Err(error) = std::os::unix::fs::chown(&path, Some(12345), None) {
            eprintln!("NOT TESTED, files cannot be given away: {error}");
            return;
        }
        assert!(said(Descriptor::append_to(&path)).contains("uid 12345"));
    }

    #[test]
    fn errors_are_answers_and_errno_stays() {
        let full = Descriptor::append_to(Path::new("/dev/full")).unwrap();
        // SAFETY: this thread's own variable.
        unsafe { *errno() = 77 };
        let error = full.write(b"line\n").unwrap_err();
        // SAFETY: as above.
        assert_eq!(unsafe { *errno() }, 77);
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
        assert!(Descriptor::copy_of(-1).is_err());
    }

    #[test]
    fn a_blocking_pipe_that_is_full_is_not_waited_for() {
        let (mut reader, writer) = io::pipe().unwrap();
        let copy = Descriptor::copy_of(writer.as_raw_fd()).unwrap();
        let mut lines = 0;
        let error = loop {
            match copy.write(&[b'x'; 1000]) {
                Ok(()) => lines += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert!(lines > 0);
        // It goes on when there is room again.
        let mut read = vec![0; lines * 1000];
        io::Read::read_exact(&mut reader, &mut read).unwrap();
        copy.write(b"line\n").unwrap();
        drop(reader);
        assert_eq!(copy.write(b"line\n").unwrap_err().kind(), ErrorKind::BrokenPipe);
    }

    #[test]
    fn a_descriptor_that_the_program_has_opened_for_the_same_file_is_not_closed() {
        let folder = tempfile::tempdir().unwrap();
        let trace = Descriptor::append_to(&folder.path().join("trace")).unwrap();
        let number = trace.number;
        let theirs = std::fs::File::create(folder.path().join("trace")).unwrap();
        // SAFETY: as below. The new descriptor stays open on `exec`.
        assert_eq!(unsafe { libc::dup2(theirs.as_raw_fd(), number) }, number);
        drop(trace);
        assert!(status(number).is_ok(), "the program's file was closed");
        // SAFETY: it is this test's own.
        unsafe { libc::close(number) };
    }

    #[test]
    fn a_number_that_has_become_another_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let trace = Descriptor::append_to(&folder.path().join("trace")).unwrap();
        let theirs = std::fs::File::create(folder.path().join("theirs")).unwrap();
        // SAFETY: the test does what a daemon does: it closes all descriptors that it has not opened, and opens a file.
        assert_eq!(unsafe { libc::dup2(theirs.as_raw_fd(), trace.number) }, trace.number);
        assert!(trace.write(b"line\n").is_err());
        let number = trace.number;
        drop(trace);
        assert!(status(number).is_ok(), "the program's file was closed");
        // SAFETY: it is this test's own.
        unsafe { libc::close(number) };
        assert_eq!(theirs.metadata().unwrap().len(), 0);
    }
}
