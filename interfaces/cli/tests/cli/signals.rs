//! Tests of Ctrl-C and other signals, sent at different times of a run.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;

use crate::common::*;

/// The variable with which a debug build writes files with a temporary name, as on a file system without `O_TMPFILE`.
const NAMED: &str = "LOCKSTEP_TEST_NAMED_FILES";

/// Starts the encryption of a FIFO, and writes a megabyte into it. The FIFO stays open for writing until the returned file is
/// dropped.
fn started(folder: &Folder, force: bool, named: bool) -> (Child, std::fs::File) {
    fifo(&folder.path("fifo"));
    let mut args = vec!["encrypt", "-k", "key", "fifo", "-o", "out"];
    args.extend(force.then_some("--force"));
    let mut command = folder.default_signals(args);
    if named {
        command.env(NAMED, "1");
    }
    let child = command.spawn().unwrap();
    let mut feed = OpenOptions::new().write(true).open(folder.path("fifo")).unwrap();
    feed.write_all(&data(1 << 20)).unwrap();
    wait_until("the output file", || folder.has_output_open(child.id()));
    assert_eq!(temporary(folder).is_some(), named, "this test needs a file system with O_TMPFILE");
    (child, feed)
}

fn temporary(folder: &Folder) -> Option<String> {
    folder.names().into_iter().find(|name| name.starts_with(".lockstep-") && name.ends_with(".tmp"))
}

#[test]
fn no_file_is_left_and_the_exit_code_is_that_of_the_signal() {
    let signals = [("-INT", 130), ("-TERM", 143), ("-HUP", 129), ("-QUIT", 131)];
    for (number, (signal, code)) in signals.into_iter().enumerate() {
        let folder = Folder::with_keys();
        let (mut child, feed) = started(&folder, false, number % 2 == 1);
        kill(signal, &child);
        // The command ends without waiting for more input.
        assert_eq!(child.wait().unwrap().code(), Some(code));
        drop(feed);
        assert_eq!(folder.names(), ["fifo", "key", "wrong"]);
    }
}

#[test]
fn an_existing_output_is_kept() {
    let folder = Folder::with_keys();
    folder.write("out", "precious");
    let (mut child, _feed) = started(&folder, true, true);
    kill("-INT", &child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(folder.read("out"), b"precious");
    assert!(temporary(&folder).is_none());
}

#[test]
fn kill_leaves_nothing() {
    let folder = Folder::with_keys();
    let (mut child, _feed) = started(&folder, false, false);
    kill("-KILL", &child);
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    assert_eq!(folder.names(), ["fifo", "key", "wrong"]);
}

#[test]
fn kill_leaves_at_most_a_temporary_file_without_o_tmpfile() {
    let folder = Folder::with_keys();
    let (mut child, _feed) = started(&folder, false, true);
    kill("-KILL", &child);
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    assert!(!folder.has("out"));
    let left = temporary(&folder).unwrap();
    // A later run removes this file, as tests of the library show. Until then, no other user can read it.
    let mode = std::fs::metadata(folder.path(&left)).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
}

/// The work waits in a system call, so the first signal does not stop it. The second signal ends the program.
#[test]
fn a_program_that_does_not_stop_leaves_nothing_either() {
    if !have("strace") {
        return;
    }
    let folder = Folder::with_keys();
    folder.write("plain", data(1 << 20));
    let mut command = folder.program("strace");
    command.args(["-f", "-qq", "-e", "inject=fchmod:delay_enter=20000000", "-o", "trace", LOCKSTEP]);
    command.args(["encrypt", "-k", "key", "plain", "-o", "out"]).env(NAMED, "1");
    let mut strace = command.spawn().unwrap();
    wait_until("the temporary file", || temporary(&folder).is_some());
    let id = strace.id();
    let children = || std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    // The file is complete, and the command waits before it gives the file its name.
    let written = || {
        let length = |name: String| std::fs::metadata(folder.path(&name)).ok().map(|found| found.len());
        temporary(&folder).and_then(length).is_some_and(|len| len > 1 << 20)
    };
    wait_until("the content", written);
    for _ in 0..2 {
        std::process::Command::new("kill").args(["-TERM", children().trim()]).status().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(700));
    }
    strace.wait().unwrap();
    assert!(!folder.has("out") && temporary(&folder).is_none(), "{:?}", folder.names());
}

#[test]
fn during_the_work() {
    let folder = Folder::with_keys();
    let endless = ["encrypt", "-k", "key", "/dev/zero", "-o", "out"];
    let mut child = folder.spawn(endless);
    wait_until("the output file", || folder.has_output_open(child.id()));
    std::thread::sleep(std::time::Duration::from_millis(20));
    kill("-INT", &child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(folder.names(), ["key", "wrong"]);

    let zeros = "00".repeat(16);
    let endless =
        ["cipher", "--mode", "ctr", "--key-hex", &zeros, "--iv-hex", &zeros, "/dev/zero", "-o", "out"];
    let mut child = folder.spawn(endless);
    wait_until("the output file", || folder.has_output_open(child.id()));
    kill("-TERM", &child);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert_eq!(folder.names(), ["key", "wrong"]);
}

#[test]
fn while_waiting_for_input_or_output() {
    let folder = Folder::with_keys();
    // The command waits for input.
    let mut child = folder.spawn(["encrypt", "-k", "key", "-o", "out"]);
    // `wait` closes the child's standard input, unless it was taken.
    let _open = child.stdin.take();
    wait_until("the output file", || folder.has_output_open(child.id()));
    kill("-INT", &child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(folder.names(), ["key", "wrong"]);
    // The command waits until the output is read.
    let mut child = folder.spawn(["encrypt", "-k", "key", "/dev/zero"]);
    wait_for_handlers(&child);
    kill("-INT", &child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    // The command waits for the envelope.
    let mut child = folder.spawn(["decrypt", "-k", "key", "-o", "out"]);
    let _open = child.stdin.take();
    wait_for_handlers(&child);
    kill("-INT", &child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(folder.names(), ["key", "wrong"]);
}

#[test]
fn while_waiting_for_the_reader_of_a_named_pipe() {
    let folder = Folder::with_keys();
    fifo(&folder.path("fifo"));
    let mut child = folder.spawn(["encrypt", "-k", "key", "/dev/zero", "-o", "fifo"]);
    std::thread::sleep(std::time::Duration::from_millis(200));
    let since = std::time::Instant::now();
    kill("-INT", &child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(since.elapsed().as_secs() < 2);
    assert_eq!(folder.names(), ["fifo", "key", "wrong"]);
}

#[test]
fn ignored_signals_remain_ignored() {
    let folder = Folder::with_keys();
    let ended = folder.shell(
        "trap '' HUP; mkfifo fifo; lockstep encrypt -k key fifo -o out & exec 3> fifo; sleep 0.2; kill -HUP $!; \
         sleep 0.2; echo hello >&3; exec 3>&-; wait $! && lockstep decrypt -k key out",
    );
    assert_eq!(ended.succeeded().text(), "hello\n");
}
