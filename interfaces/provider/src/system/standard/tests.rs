use std::io::{ErrorKind, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::mpsc;
use std::time::Duration;

use super::*;

/// Bytes of a line. A terminal may have less free space than this when `poll` reports that writing is possible.
const LINE: usize = 4001;

/// Writes lines until a write would wait. The test fails if a write does wait.
fn writes_until_full(number: c_int) -> (Descriptor, usize) {
    let (done, result) = mpsc::channel();
    // If this thread waits forever, the test abandons it and fails.
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

/// `poll` may report room although there is not enough room for a line.
#[test]
fn a_write_to_a_full_terminal_does_not_wait() {
    let (mut master, mut slave) = (-1, -1);
    // SAFETY: the first two arguments are places for numbers. The other arguments are optional.
    let opened =
        unsafe { libc::openpty(&raw mut master, &raw mut slave, null_mut(), null_mut(), null_mut()) };
    if opened != 0 {
        eprintln!("NOT TESTED, there are no pseudo-terminals here: {}", Error::last_os_error());
        return;
    }
    // SAFETY: both descriptors have just been opened here.
    let _both = [master, slave].map(|number| unsafe { OwnedFd::from_raw_fd(number) });
    let (_copy, lines) = writes_until_full(slave);
    assert!(lines > 0);
    // SAFETY: the descriptor is open.
    let flags = unsafe { libc::fcntl(slave, libc::F_GETFL) };
    assert_eq!(flags & libc::O_NONBLOCK, 0, "the mode of the program's descriptor has changed");
}

#[test]
fn a_write_to_a_full_pipe_does_not_wait() {
    let (mut reader, writer) = io::pipe().unwrap();
    let (copy, lines) = writes_until_full(writer.as_raw_fd());
    // The reader gets the end of file when both the writer and the copy are closed.
    drop((writer, copy));
    let mut read = Vec::new();
    reader.read_to_end(&mut read).unwrap();
    assert_eq!(read.len(), lines * LINE);
}
