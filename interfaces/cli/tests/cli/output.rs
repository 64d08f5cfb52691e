//! Outputs: existing files, checks in advance, file names in messages, and storage.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::process::Stdio;

use rustix::fs::{OFlags, fcntl_setfl};

use crate::common::*;

/// True if the tests run as root, who alone can change the owner of files. Otherwise prints what was not tested.
fn is_root(what: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("NOT TESTED: {what}: only root can");
    }
    is_root
}

#[test]
fn a_new_key_that_replaces_a_file_of_another_user_belongs_to_the_caller() {
    let folder = Folder::with_keys();
    let give_away = is_root("give a key file to another user");
    for mode in [0o644, 0o600, 0o4755] {
        if give_away {
            chown(folder.path("key"), Some(65534), Some(65534)).unwrap();
        }
        fs::set_permissions(folder.path("key"), PermissionsExt::from_mode(mode)).unwrap();
        // A process that has the old file open cannot read the new one.
        let (mut old, before) = (File::open(folder.path("key")).unwrap(), folder.read("key"));
        folder.run(["keygen", "-o", "key", "--force"]).succeeded();
        let mut seen = Vec::new();
        old.read_to_end(&mut seen).unwrap();
        assert_eq!(seen, before);
        let new = fs::symlink_metadata(folder.path("key")).unwrap();
        assert_eq!((new.mode() & 0o7777, new.uid()), (0o600, rustix::process::geteuid().as_raw()));
        assert_ne!(folder.read("key"), before);
    }
    // A symbolic link at the path of the output is replaced, and its target is unchanged.
    let before = folder.read("wrong");
    symlink("wrong", folder.path("link")).unwrap();
    folder.run(["keygen", "-o", "link"]).failed(2, "exists");
    folder.run(["keygen", "-o", "link", "--force"]).succeeded();
    assert!(fs::symlink_metadata(folder.path("link")).unwrap().is_file());
    assert_eq!(folder.read("wrong"), before);
    assert_eq!(folder.names(), ["key", "link", "wrong"]);
}

#[test]
fn force_replaces_a_link_and_keeps_nothing_of_the_old_file() {
    let folder = Folder::with_keys();
    folder.write("plain", "hello");
    folder.write("precious", "precious");
    fs::set_permissions(folder.path("plain"), PermissionsExt::from_mode(0o600)).unwrap();
    fs::set_permissions(folder.path("precious"), PermissionsExt::from_mode(0o666)).unwrap();
    if is_root("replace the file of another user") {
        chown(folder.path("precious"), Some(65534), Some(65534)).unwrap();
    }
    symlink("precious", folder.path("link")).unwrap();
    folder.run(["encrypt", "-k", "key", "plain", "-o", "link"]).failed(2, "'link' exists");
    folder.run(["encrypt", "-k", "key", "plain", "-o", "link", "-f"]).succeeded();
    assert_eq!(folder.read("precious"), b"precious");
    folder.run(["encrypt", "-k", "key", "plain", "-o", "precious", "-f"]).succeeded();
    for name in ["link", "precious"] {
        let new = fs::symlink_metadata(folder.path(name)).unwrap();
        assert!(new.is_file(), "{name}");
        assert_eq!((new.mode() & 0o7777, new.uid()), (0o600, rustix::process::geteuid().as_raw()), "{name}");
    }
    // A pipe has no permission bits that the output could copy, so the output gets the usual mode.
    folder.pipe(["encrypt", "-k", "key", "-o", "piped"], b"hello").succeeded();
    folder.write("usual", "");
    let mode = |name: &str| fs::metadata(folder.path(name)).unwrap().mode();
    assert_eq!(mode("piped"), mode("usual"));
}

#[test]
fn the_name_of_standard_output_is_standard_output() {
    let folder = Folder::with_keys();
    folder.write("plain", "hello");
    folder.shell("lockstep encrypt -k key plain -o /dev/stdout -f > out").succeeded();
    assert_eq!(folder.run(["decrypt", "-k", "key", "out"]).succeeded().stdout, b"hello");
    assert!(fs::symlink_metadata("/dev/stdout").unwrap().is_symlink());
}

#[test]
fn impossible_outputs_are_refused_before_input_is_read() {
    let folder = Folder::with_keys();
    folder.write("file", "");
    folder.write("plain", "hello");
    folder.run(["encrypt", "-k", "key", "plain", "-o", "cipher"]).succeeded();
    fs::create_dir(folder.path("folder")).unwrap();
    symlink("nothing", folder.path("dangling")).unwrap();
    let long = "n".repeat(300);
    let cases = [
        ("none/out", "there is no folder 'none'"),
        ("file/out", "'file' is not a folder"),
        ("new/", "add the name of a file"),
        ("folder/", "add the name of a file"),
        ("folder", "is a folder"),
        ("/proc/out", "/proc/out"),
        ("dangling", "exists"),
        (&long, "too long"),
    ];
    let raw = ["cipher", "-m", "ecb", "--key-hex", "00112233445566778899aabbccddeeff"];
    let names = folder.names();
    for command in [&["encrypt", "-k", "key"][..], &["decrypt", "-k", "key"], &raw] {
        for (output, words) in cases {
            let mut input = File::open(folder.path("cipher")).unwrap();
            let mut run = folder.command(command.iter().chain(&["-o", output]));
            let ended: Ended = run.stdin(input.try_clone().unwrap()).output().unwrap().into();
            ended.failed(2, words);
            // The test and the command share the position of this open file. Position 0 shows that the command has read nothing.
            assert_eq!(input.stream_position().unwrap(), 0, "{command:?} {output}");
            // The input is a pipe that stays open until the command has ended, so the command does not wait for input either.
            let ended = folder.command(command.iter().chain(&["-o", output])).stdin(Stdio::piped()).spawn();
            let mut child = ended.unwrap();
            let stdin = child.stdin.take();
            let ended: Ended = child.wait_with_output().unwrap().into();
            ended.failed(2, words);
            drop(stdin);
        }
    }
    assert_eq!(folder.names(), names);
}

#[test]
fn a_file_of_another_user_in_a_sticky_folder_is_refused_before_input_is_read() {
    use std::os::unix::process::CommandExt;
    if !is_root("act as another user") {
        return;
    }
    let folder = Folder::with_keys();
    fs::set_permissions(folder.path("."), PermissionsExt::from_mode(0o1777)).unwrap();
    fs::set_permissions(folder.path("key"), PermissionsExt::from_mode(0o644)).unwrap();
    folder.write("input", data(100_000));
    folder.write("roots", "root's");
    // Anyone may write to the file `roots`, but only its owner may replace it in this folder.
    fs::set_permissions(folder.path("roots"), PermissionsExt::from_mode(0o666)).unwrap();
    // Other users may not have access to the folder of the program, so they run a copy.
    copy_program(&folder.path("program"));
    let mut input = File::open(folder.path("input")).unwrap();
    let mut command = folder.program(folder.path("program").to_str().unwrap());
    command.args(["encrypt", "-q", "-k", "key", "-f", "-o", "roots"]);
    command.stdin(input.try_clone().unwrap()).uid(65534).gid(65534);
    let ended: Ended = command.output().unwrap().into();
    ended.failed(2, "sticky");
    assert_eq!(input.stream_position().unwrap(), 0);
    assert_eq!(folder.read("roots"), b"root's");
    assert_eq!(folder.names(), ["input", "key", "program", "roots", "wrong"]);
}

#[test]
fn a_name_that_another_user_can_know_blocks_no_output() {
    let folder = Folder::with_keys();
    folder.write("plain", "hello");
    folder.shell("mkdir out && echo blocked > out/.lockstep-trial").succeeded();
    folder.run(["encrypt", "-k", "key", "-O", "out", "plain"]).succeeded();
    assert_eq!(folder.read("out/.lockstep-trial"), b"blocked\n");
}

#[test]
fn names_are_quoted_and_their_control_characters_escaped() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::with_keys();
    let evil = std::ffi::OsStr::from_bytes(b"a\x1b[2J\nlockstep: done\xff'");
    let shown = r"'a\x1b[2J\nlockstep: done\xff\''";
    folder.write("plain", "hello");
    let plain = std::ffi::OsStr::new("plain");
    let args = |args: &[&str]| args.iter().map(std::ffi::OsString::from).collect::<Vec<_>>();
    let encrypt = args(&["encrypt", "-k", "key"]);
    let with = |rest: &[&std::ffi::OsStr]| {
        folder.run(encrypt.iter().map(|arg| arg.as_os_str()).chain(rest.iter().copied()))
    };
    let o = std::ffi::OsStr::new("-o");
    assert_eq!(with(&[evil]).failed(2, shown).stderr.lines().count(), 1);
    with(&[plain, o, evil]).succeeded();
    assert_eq!(with(&[plain, o, evil]).failed(2, shown).stderr.lines().count(), 1);
    assert_eq!(with(&[evil, o, evil]).failed(2, shown).stderr.lines().count(), 1);
    let deeper = std::path::Path::new(evil).join("out");
    assert_eq!(with(&[plain, o, deeper.as_os_str()]).failed(2, r"\x1b[2J\n").stderr.lines().count(), 1);
}

#[test]
fn all_output_is_written_to_a_non_blocking_standard_output() {
    let folder = Folder::with_keys();
    let plain = data(3 << 20);
    folder.write("plain", &plain);
    let commands = [
        "encrypt -k key plain",
        "cipher -m ctr --key-hex 00112233445566778899aabbccddeeff --iv-hex 00 plain",
    ];
    for command in commands {
        let command = command.replace("00 plain", &format!("{} plain", "00".repeat(16)));
        let (mut reader, writer) = std::io::pipe().unwrap();
        fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
        let child = folder.command(command.split(' ')).stdout(writer).spawn().unwrap();
        // The command fills the pipe during this time.
        std::thread::sleep(std::time::Duration::from_millis(100));
        let mut out = Vec::new();
        reader.read_to_end(&mut out).unwrap();
        let ended: Ended = child.wait_with_output().unwrap().into();
        assert_eq!(ended.succeeded().stderr, "");
        assert!(out.len() >= plain.len(), "{command}: {}", out.len());
    }
}

#[test]
fn a_non_blocking_standard_input_is_waited_for() {
    let folder = Folder::with_keys();
    let (reader, mut writer) = std::io::pipe().unwrap();
    fcntl_setfl(&reader, OFlags::NONBLOCK).unwrap();
    let child = folder.command(["encrypt", "-k", "key", "-o", "out"]).stdin(reader).spawn().unwrap();
    for part in data(100_000).chunks(40_000) {
        std::thread::sleep(std::time::Duration::from_millis(50));
        writer.write_all(part).unwrap();
    }
    drop(writer);
    let ended: Ended = child.wait_with_output().unwrap().into();
    ended.succeeded();
    assert_eq!(folder.run(["decrypt", "-k", "key", "out"]).succeeded().stdout, data(100_000));
}

/// Runs a command that writes to a pipe, and calls `change` after the first bytes of output, to change the input. The pipe and the
/// command hold a few megabytes at most, so at this time the command has not read all of its input.
fn while_running(folder: &Folder, args: &str, change: impl FnOnce()) -> Ended {
    let mut child = folder.command(args.split(' ')).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut out = vec![0; 16];
    stdout.read_exact(&mut out).unwrap();
    change();
    stdout.read_to_end(&mut out).unwrap();
    let mut ended: Ended = child.wait_with_output().unwrap().into();
    ended.stdout = out;
    ended
}

const CTR: &str = "cipher -m ctr --key-hex 00112233445566778899aabbccddeeff \
                   --iv-hex 00000000000000000000000000000000 --threads 2 input";

#[test]
fn input_that_grows_is_read_to_its_end() {
    let folder = Folder::with_keys();
    let plain = data(12 << 20);
    let first = 10 << 20;
    let grow = || {
        OpenOptions::new()
            .append(true)
            .open(folder.path("input"))
            .unwrap()
            .write_all(&plain[first..])
            .unwrap()
    };
    for command in ["encrypt -k key --threads 2 input", CTR] {
        folder.write("input", &plain[..first]);
        let ended = while_running(&folder, command, grow).succeeded();
        let back = if command == CTR {
            folder.pipe(CTR.trim_end_matches(" input").split(' '), &ended.stdout)
        } else {
            folder.pipe(["decrypt", "-k", "key"], &ended.stdout)
        };
        assert!(back.succeeded().stdout == plain, "{command}");
    }
}

#[test]
fn input_that_changes_during_decryption_or_shrinks_is_refused() {
    let folder = Folder::with_keys();
    let plain = data(12 << 20);
    let cut = || OpenOptions::new().write(true).open(folder.path("input")).unwrap().set_len(2000).unwrap();
    for command in ["encrypt -k key --threads 2 input", CTR] {
        folder.write("input", &plain);
        while_running(&folder, command, cut).failed(2, "shorter while it was read");
    }
    folder.write("plain", &plain);
    folder.run(["encrypt", "-k", "key", "plain", "-o", "cipher"]).succeeded();
    let cipher = folder.read("cipher");
    for command in ["decrypt -k key --threads 2 input", "decrypt -k key --threads 2 --range 5: input"] {
        folder.write("input", &cipher);
        while_running(&folder, command, cut).failed(1, "cut off");
        folder.write("input", &cipher);
        let grow = || {
            OpenOptions::new().append(true).open(folder.path("input")).unwrap().write_all(b"more").unwrap()
        };
        while_running(&folder, command, grow).failed(2, "longer while it was read");
    }
}

#[test]
fn sync_is_accepted_only_if_possible() {
    let folder = Folder::with_keys();
    folder.write("plain", "hello");
    folder.run(["encrypt", "-k", "key", "--sync", "plain", "-o", "cipher"]).succeeded();
    folder.run(["decrypt", "-k", "key", "--sync", "cipher", "-o", "back"]).succeeded();
    assert_eq!(folder.read("back"), b"hello");
    folder.run(["keygen", "--sync", "-o", "new"]).succeeded();
    folder.shell("lockstep encrypt -k key --sync plain > out && lockstep keygen --sync > key2").succeeded();
    folder.shell("lockstep decrypt -k key --sync out -f -o back").succeeded();

    let raw = "cipher -m ecb --key-hex 00112233445566778899aabbccddeeff";
    for command in ["encrypt -k key", "decrypt -k key", raw] {
        let piped = folder.run(command.split(' ').chain(["--sync", "cipher"]));
        piped.failed(2, "cannot be synced");
        folder
            .run(command.split(' ').chain(["--sync", "cipher", "-o", "/dev/null"]))
            .failed(2, "cannot be synced");
    }
    folder.run(["keygen", "--sync"]).failed(2, "cannot be synced");
}

#[test]
fn sync_reaches_the_data_the_folder_and_standard_output() {
    if !have("strace") {
        return;
    }
    let folder = Folder::with_keys();
    folder.write("plain", "hello");
    let traced = |command: &str| {
        let script = format!("strace -f -e trace=fsync,linkat,rename,renameat,renameat2 -o trace {command}");
        folder.shell(&script).succeeded();
        let trace = String::from_utf8(folder.read("trace")).unwrap();
        let names = ["fsync", "linkat", "rename", "renameat", "renameat2"];
        let call = |line: &str| names.into_iter().find(|name| line.contains(&format!(" {name}(")));
        trace.lines().filter_map(call).collect::<Vec<_>>()
    };
    let calls = traced("lockstep encrypt -k key --sync plain -o cipher");
    assert!(calls.ends_with(&["fsync", "linkat", "fsync"]), "{calls:?}");
    let calls = traced("lockstep encrypt -k key --sync plain -f -o cipher");
    assert!(calls.ends_with(&["fsync", "linkat", "renameat", "fsync"]), "{calls:?}");
    let calls = traced("lockstep encrypt -k key --sync plain > out");
    assert!(calls.contains(&"fsync"), "{calls:?}");
    let calls = traced("lockstep encrypt -k key plain -o without");
    assert!(!calls.contains(&"fsync"), "{calls:?}");
}
