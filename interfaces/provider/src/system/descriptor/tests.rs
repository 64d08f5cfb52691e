use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn error_text(result: io::Result<Descriptor>) -> String {
    result.err().expect("refused").to_string()
}

fn fifo(path: &Path) {
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the argument is a C string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
}

#[test]
fn regular_files_are_appended_to_and_created_with_access_for_the_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    for _ in 0..2 {
        Descriptor::append_to(&path).unwrap().write(b"line\n").unwrap();
    }
    assert_eq!(std::fs::read(&path).unwrap(), b"line\nline\n");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn unsuitable_files_are_refused_at_once_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    assert!(error_text(Descriptor::append_to(folder.path())).contains("directory"));
    assert!(error_text(Descriptor::append_to(&at("missing/trace"))).contains("No such file"));
    std::fs::write(at("file"), "").unwrap();
    symlink(at("file"), at("link")).unwrap();
    assert!(error_text(Descriptor::append_to(&at("link"))).contains("symbolic link"));
    std::fs::hard_link(at("file"), at("second")).unwrap();
    assert!(error_text(Descriptor::append_to(&at("second"))).contains("hard links"));
    fifo(&at("fifo"));
    assert!(error_text(Descriptor::append_to(&at("fifo"))).contains("FIFO without a reader"));
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    assert!(error_text(Descriptor::append_to(&at("socket"))).contains("a socket"));
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
    assert!(error_text(Descriptor::append_to(&path)).contains("uid 12345"));
}

#[test]
fn errors_are_returned_and_errno_is_preserved() {
    let full = Descriptor::append_to(Path::new("/dev/full")).unwrap();
    set_errno(errno::Errno(77));
    let error = full.write(b"line\n").unwrap_err();
    assert_eq!(errno().0, 77);
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    assert!(Descriptor::copy_of(c_int::MAX).is_err());
}

#[test]
fn a_write_to_a_full_blocking_pipe_does_not_wait() {
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
    // Writing continues when there is room again.
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
    let number = trace.number();
    let theirs = std::fs::File::create(folder.path().join("trace")).unwrap();
    // SAFETY: the test replaces a descriptor that it has not opened, as a program may do. The new descriptor stays
    // open on `exec`.
    assert_eq!(unsafe { libc::dup2(theirs.as_raw_fd(), number) }, number);
    drop(trace);
    assert!(status(number).is_ok(), "the program's file was closed");
    // SAFETY: the descriptor belongs to this test.
    unsafe { libc::close(number) };
}

#[test]
fn a_descriptor_number_reused_for_another_file_is_not_closed() {
    let folder = tempfile::tempdir().unwrap();
    let trace = Descriptor::append_to(&folder.path().join("trace")).unwrap();
    let theirs = std::fs::File::create(folder.path().join("theirs")).unwrap();
    // SAFETY: the test does the same as a daemon that closes all descriptors that it has not opened and then opens
    // a file.
    assert_eq!(unsafe { libc::dup2(theirs.as_raw_fd(), trace.number()) }, trace.number());
    assert!(trace.write(b"line\n").is_err());
    let number = trace.number();
    drop(trace);
    assert!(status(number).is_ok(), "the program's file was closed");
    // SAFETY: the descriptor belongs to this test.
    unsafe { libc::close(number) };
    assert_eq!(theirs.metadata().unwrap().len(), 0);
}
