//! Opens and writes files without side effects on the program that has loaded this module. A write raises no signal in the
//! program, does not wait, and does not change `errno`. Descriptors that the program has opened are neither closed nor written
//! to.
//!
//! Regular files, FIFOs and devices that are opened by name, and terminals and pipes that are opened once more
//! ([`super::standard`]), are written with `O_NONBLOCK`. Other files are written if `poll` reports that there is room.
//!
//! A write makes the system calls `fstat`, `rt_sigprocmask`, `poll` and `write`, and makes other system calls only after a
//! failure. This matters because a sandbox may end a program that makes a forbidden system call. In the sandbox of OpenSSH's
//! server, `fstat` fails, so nothing is written.

use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::io::{self, Error, ErrorKind};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use errno::{errno, set_errno};

use super::thread::write_without_signals;

/// The identity of a file: the numbers of its device and of its inode.
pub(super) type Identity = (libc::dev_t, libc::ino_t);

pub(super) fn identity(found: &libc::stat) -> Identity {
    (found.st_dev, found.st_ino)
}

/// A descriptor that the provider has opened. Its number is higher than the numbers of standard input, output and error.
pub(crate) struct Descriptor {
    file: ManuallyDrop<File>,
    /// The identity of the file for which the descriptor was opened. A program may close descriptors that it has not opened
    /// (`closefrom`), and the system may then give the same number to another file.
    pub(super) identity: Identity,
}

impl Descriptor {
    /// A copy of a descriptor of the program, such as standard error.
    ///
    /// # Errors
    /// If `number` is not open, or no more descriptors are available.
    pub(crate) fn copy_of(number: c_int) -> io::Result<Descriptor> {
        preserve_errno(|| {
            // SAFETY: the number is not -1. It is only passed to the system, which returns an error if no file is open with
            // that number.
            let original = unsafe { BorrowedFd::borrow_raw(number) };
            Descriptor::new(original.try_clone_to_owned()?.into())
        })
    }

    /// Opens a file for appending, and creates it if necessary. Accepts a regular file, a FIFO with a reader, or a character device.
    /// Refuses symbolic links, regular files with more than one name, and regular files and FIFOs that belong neither to this user nor to
    /// root. Without these checks, a user with write access to the folder could make the program append to any file that the program may
    /// write.
    ///
    /// # Errors
    /// An error whose message states why the file cannot be opened.
    pub(crate) fn append_to(path: &Path) -> io::Result<Descriptor> {
        preserve_errno(|| {
            let opened = open(path, OpenOptions::new().create(true).mode(0o600), libc::O_NOFOLLOW);
            let opened = opened.map_err(|error| match error.raw_os_error() {
                Some(libc::ELOOP) => Error::other("it is a symbolic link, which is not followed"),
                Some(libc::ENXIO) => Error::other("it is a FIFO without a reader, or a socket"),
                _ => error,
            })?;
            check(&status(opened.number())?)?;
            Ok(opened)
        })
    }

    fn new(file: File) -> io::Result<Descriptor> {
        let identity = identity(&status(file.as_raw_fd())?);
        Ok(Descriptor { file: ManuallyDrop::new(file), identity })
    }

    fn number(&self) -> c_int {
        self.file.as_raw_fd()
    }

    /// Writes all bytes without waiting.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] if the write would have to wait for the reader. All other errors are permanent.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        preserve_errno(|| {
            self.check_open()?;
            write_at_once(self.number(), bytes)
        })
    }

    /// Checks that the descriptor still refers to the same file.
    ///
    /// # Errors
    /// If the descriptor refers to another file, or if a sandbox forbids the call that determines the file.
    fn check_open(&self) -> io::Result<()> {
        match status(self.number()) {
            Ok(found) if identity(&found) == self.identity => Ok(()),
            Err(error) if error.raw_os_error() != Some(libc::EBADF) => Err(error),
            _ => Err(Error::other("the program has closed it")),
        }
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        preserve_errno(|| {
            // If the descriptor is not closed on `exec`, it is not the provider's: the program has closed the provider's
            // descriptor and opened the same file with the same number. Such a descriptor is left open.
            if self.check_open().is_ok() && closes_on_exec(self.number()) {
                // SAFETY: the descriptor still belongs to the provider, and it is dropped once.
                unsafe { ManuallyDrop::drop(&mut self.file) };
            }
        });
    }
}

/// Opens a file for appending, without waiting.
pub(super) fn open(path: &Path, options: &mut OpenOptions, flags: c_int) -> io::Result<Descriptor> {
    let flags = flags | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = options.append(true).custom_flags(flags).open(path)?;
    // If standard input, output or error was closed, the new file may have received the number of that stream. The program must
    // not use this file as a standard stream. The file is therefore cloned, because a clone gets a number above those of the
    // standard streams.
    Descriptor::new(if file.as_raw_fd() <= libc::STDERR_FILENO { file.try_clone()? } else { file })
}

/// True for an open descriptor that is closed on `exec`. All descriptors of the provider have this property.
pub(super) fn closes_on_exec(number: c_int) -> bool {
    // SAFETY: the call accepts any number, even if no file is open with that number.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    flags >= 0 && flags & libc::FD_CLOEXEC != 0
}

pub(super) fn status(number: c_int) -> io::Result<libc::stat> {
    let mut found = std::mem::MaybeUninit::uninit();
    // SAFETY: `found` has space for the result. It is read only if the call has succeeded.
    unsafe {
        match libc::fstat(number, found.as_mut_ptr()) {
            0 => Ok(found.assume_init()),
            _ => Err(Error::last_os_error()),
        }
    }
}

/// Refuses files to which a trace must not be appended.
fn check(found: &libc::stat) -> io::Result<()> {
    match found.st_mode & libc::S_IFMT {
        libc::S_IFCHR => Ok(()),
        libc::S_IFREG if found.st_nlink > 1 => {
            Err(Error::other("it has more than one name (hard links), and may be another program's file"))
        }
        // SAFETY: the call only reads an attribute of the process.
        libc::S_IFREG | libc::S_IFIFO if [0, unsafe { libc::geteuid() }].contains(&found.st_uid) => Ok(()),
        libc::S_IFREG | libc::S_IFIFO => {
            Err(Error::other(format!("it belongs to another user (uid {})", found.st_uid)))
        }
        _ => Err(Error::other("it is not a file, a FIFO or a character device")),
    }
}

/// The maximum number of bytes that are written to a pipe atomically.
const PIECE: usize = libc::PIPE_BUF;

pub(super) fn write_at_once(number: c_int, bytes: &[u8]) -> io::Result<()> {
    write_without_signals(|| {
        let mut rest = bytes;
        while !rest.is_empty() {
            // `poll` is needed because some descriptors do not have the flag O_NONBLOCK. Setting the flag for such a descriptor
            // would also affect the program.
            let mut poll_fd = libc::pollfd { fd: number, events: libc::POLLOUT, revents: 0 };
            // SAFETY: the array has one entry, which is a local variable.
            match unsafe { libc::poll(&raw mut poll_fd, 1, 0) } {
                1 if poll_fd.revents & libc::POLLOUT != 0 => {}
                1 => return Err(ErrorKind::BrokenPipe.into()),
                0 => return Err(ErrorKind::WouldBlock.into()),
                _ => return Err(Error::last_os_error()),
            }
            // SAFETY: the slice has this number of bytes.
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

/// Restores `errno` after `body`.
pub(super) fn preserve_errno<T>(body: impl FnOnce() -> T) -> T {
    let before = errno();
    let result = body();
    set_errno(before);
    result
}

#[cfg(test)]
mod tests;
