//! Many files in one call: `-O DIR` and `--recursive`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::common::*;
use crate::recipients::locked;

/// A folder `in` with files of several lengths, subfolders, an empty one among them, and unusual names.
fn with_tree() -> Folder {
    let folder = Folder::with_keys();
    for path in ["in/empty", "in/a/b/c", "in/private"] {
        fs::create_dir_all(folder.path(path)).unwrap();
    }
    for (name, len) in [
        ("in/one", 1),
        ("in/nothing", 0),
        ("in/a/chunk", CHUNK),
        ("in/a/b/more", 5 * CHUNK + 7),
        ("in/a/b/c/deep", 100),
        ("in/private/long", 9 << 20),
        ("in/a/two\nlines", 3),
        ("in/already.enc", 30),
    ] {
        folder.write(name, data(len));
    }
    fs::write(folder.path("in").join(OsStr::from_bytes(b"not \xff utf-8")), "x").unwrap();
    set_mode(&folder.path("in/private"), 0o700);
    set_mode(&folder.path("in/private/long"), 0o600);
    set_mode(&folder.path("in/one"), 0o640);
    // An output counts as up to date only if it is newer than the last change of its input. File systems update their
    // clocks every 10 ms or more often.
    std::thread::sleep(Duration::from_millis(20));
    folder
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Sets the modification time to `seconds` ago.
fn set_age(path: &Path, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// All files and folders below a folder, each with its relative path; files also with their content.
fn content(root: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let relative = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                folders.push(relative.clone());
                found.push((relative, None));
            } else {
                found.push((relative, Some(fs::read(entry.path()).unwrap())));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_tree_is_encrypted_and_decrypted() {
    let folder = with_tree();
    folder.run(["encrypt", "-k", "key", "-r", "-O", "enc", "in"]).succeeded();
    assert!(folder.has("enc/in/a/b/c/deep.enc"));
    assert!(folder.has("enc/in/already.enc.enc"));
    assert!(folder.path("enc/in/empty").is_dir());
    assert_eq!(folder.run(["decrypt", "-k", "key", "enc/in/a/chunk.enc"]).stdout, data(CHUNK));
    folder.run(["decrypt", "-k", "key", "-r", "-O", "back", "enc/in"]).succeeded();
    assert_eq!(content(&folder.path("back/in")), content(&folder.path("in")));
    for name in ["private", "private/long", "one"] {
        let expected = mode(&folder.path("in").join(name));
        assert_eq!(mode(&folder.path("back/in").join(name)), expected, "{name}");
    }
    assert_eq!(mode(&folder.path("enc/in/private/long.enc")), 0o600);
    assert_eq!(mode(&folder.path("enc/in/private")), 0o700);
    assert_eq!(folder.names(), ["back", "enc", "in", "key", "wrong"]);
}

#[test]
fn every_number_of_threads_gives_the_same_result() {
    let folder = with_tree();
    for index in 0..60 {
        folder.write(&format!("in/a/file-{index}"), data(index * 997));
    }
    for threads in ["1", "2", "7"] {
        let (enc, back) = (format!("enc{threads}"), format!("back{threads}"));
        folder.run(["encrypt", "-k", "key", "-r", "--threads", threads, "-O", &enc, "in"]).succeeded();
        let enc = format!("{enc}/in");
        folder.run(["decrypt", "-k", "key", "-r", "--threads", threads, "-O", &back, &enc]).succeeded();
        assert_eq!(content(&folder.path(&back).join("in")), content(&folder.path("in")));
    }
}

#[test]
fn files_are_written_to_the_folder_under_their_names() {
    let folder = with_tree();
    folder.run(["encrypt", "-k", "key", "-O", "new/enc", "in/one", "in/a/chunk"]).succeeded();
    folder.run(["decrypt", "-k", "key", "-O", "back", "new/enc/one.enc", "new/enc/chunk.enc"]).succeeded();
    assert_eq!(folder.read("back/one"), data(1));
    assert_eq!(folder.read("back/chunk"), data(CHUNK));
    // A folder without a name of its own, such as `.`, becomes the output folder itself.
    let mut command = folder.command(["encrypt", "-k", "../key", "-r", "-O", "../enc", "."]);
    let ended: Ended = command.current_dir(folder.path("in")).output().unwrap().into();
    ended.succeeded();
    assert!(folder.has("enc/a/b/more.enc") && folder.has("enc/one.enc"));
}

#[test]
fn impossible_requests_are_refused_before_anything_is_written() {
    let folder = with_tree();
    let refused = |args: &[&str], words: &str| {
        let ended = folder.run(args);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains(words), "{:?} does not contain {words:?}", ended.stderr);
        assert!(!folder.has("enc"), "{args:?}");
    };
    refused(&["encrypt", "-k", "key", "in/one", "in/nothing"], "-O");
    refused(&["encrypt", "-k", "key", "-r", "in"], "-O");
    refused(&["encrypt", "-k", "key", "--resume", "in/one"], "--output-dir");
    refused(&["encrypt", "-k", "key", "-O", "enc", "in"], "--recursive");
    refused(&["encrypt", "-k", "key", "-O", "enc", "-o", "x", "in/one"], "cannot be used with");
    refused(&["encrypt", "-k", "key", "-O", "enc"], "standard input");
    refused(&["encrypt", "-k", "key", "-O", "enc", "in/one", "-"], "standard input");
    refused(&["encrypt", "-k", "key", "-O", "enc", "in/one", "in/missing"], "'in/missing'");
    refused(&["encrypt", "-k", "key", "-O", "enc", "in/one", "in/one"], "both be written");
    refused(&["encrypt", "-k", "missing", "-O", "enc", "in/one"], "missing");
    refused(&["encrypt", "-k", "key", "-r", "-O", "in", "in"], "output folder");
    refused(&["encrypt", "-k", "key", "-O", "key", "in/one"], "key");
    refused(&["decrypt", "-k", "key", "-O", "enc", "in/one"], ".enc");
    refused(&["decrypt", "-k", "key", "-O", "enc", "--range", "0:1", "in/already.enc"], "--range");
    // An output must be neither another input nor the key file.
    folder.write("key.enc", "x");
    folder.run(["encrypt", "-k", "key", "-f", "-O", ".", "in/one", "wrong"]).succeeded();
    folder
        .run(["encrypt", "-k", "key", "-f", "-O", ".", "wrong", "wrong.enc"])
        .failed(2, "one of the inputs");
    fs::copy(folder.path("key"), folder.path("in/k.enc")).unwrap();
    folder.run(["keygen", "-o", "k.enc"]).succeeded();
    folder.write("k", "x");
    let key = folder.read("k.enc");
    folder.run(["encrypt", "-k", "k.enc", "-f", "-O", ".", "k"]).failed(2, "key file");
    assert_eq!(folder.read("k.enc"), key);
}

#[test]
fn existing_outputs_are_kept_without_force() {
    let folder = with_tree();
    fs::create_dir_all(folder.path("enc/in/a")).unwrap();
    folder.write("enc/in/a/chunk.enc", "precious");
    let before = content(&folder.path("enc"));
    folder.run(["encrypt", "-k", "key", "-r", "-O", "enc", "in"]).failed(2, "'enc/in/a/chunk.enc' exists");
    assert_eq!(content(&folder.path("enc")), before);
    folder.run(["encrypt", "-k", "key", "-r", "-O", "enc", "-f", "in"]).succeeded();
    folder.run(["decrypt", "-k", "key", "-r", "-O", "back", "enc/in"]).succeeded();
    assert_eq!(content(&folder.path("back/in")), content(&folder.path("in")));
}

#[test]
fn links_and_special_files_are_skipped_and_listed() {
    let folder = with_tree();
    fs::create_dir(folder.path("elsewhere")).unwrap();
    folder.write("elsewhere/secret", "secret");
    symlink("../elsewhere", folder.path("in/link-to-folder")).unwrap();
    symlink("../elsewhere/secret", folder.path("in/a/link")).unwrap();
    symlink("nowhere", folder.path("in/dangling")).unwrap();
    fifo(&folder.path("in/fifo"));
    let _socket = std::os::unix::net::UnixListener::bind(folder.path("in/socket")).unwrap();
    let ended = folder.run(["encrypt", "-k", "key", "-r", "-O", "enc", "in"]).succeeded();
    for line in [
        "skipped 'in/a/link': it is a symbolic link",
        "skipped 'in/link-to-folder': it is a symbolic link",
        "skipped 'in/dangling': it is a symbolic link",
        "skipped 'in/fifo': it is a FIFO",
        "skipped 'in/socket': it is a socket",
        "; 5 skipped",
    ] {
        assert!(ended.stderr.contains(line), "{line:?}: {}", ended.stderr);
    }
    assert_eq!(content(&folder.path("enc")).iter().filter(|(_, file)| file.is_some()).count(), 9);
    let quiet = folder.run(["encrypt", "-q", "-f", "-k", "key", "-r", "-O", "enc", "in"]).succeeded();
    assert_eq!(quiet.stderr, "");
}

#[test]
fn an_output_folder_within_the_input_is_skipped() {
    let folder = with_tree();
    folder.run(["encrypt", "-k", "key", "-r", "-O", "in/enc", "in"]).succeeded();
    let ended = folder.run(["encrypt", "-k", "key", "-r", "-O", "in/enc", "--resume", "in"]).succeeded();
    assert!(ended.stderr.contains("skipped 'in/enc': it is the output folder"), "{}", ended.stderr);
    assert!(!folder.has("in/enc/in/enc"));
}

#[test]
fn links_in_the_output_are_not_followed() {
    let folder = with_tree();
    fs::create_dir(folder.path("elsewhere")).unwrap();
    fs::create_dir_all(folder.path("enc/in")).unwrap();
    symlink("../../elsewhere", folder.path("enc/in/a")).unwrap();
    let ended = folder.run(["encrypt", "-k", "key", "-r", "-f", "-O", "enc", "in"]);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("symbolic link"), "{}", ended.stderr);
    assert!(content(&folder.path("elsewhere")).is_empty());
    assert!(folder.has("enc/in/one.enc"));
}

#[test]
fn files_that_fail_are_listed_and_do_not_stop_the_others() {
    let folder = with_tree();
    folder.run(["encrypt", "-k", "key", "-r", "-O", "enc", "in"]).succeeded();
    let mut damaged = folder.read("enc/in/a/chunk.enc");
    damaged[HEADER + 5] ^= 1;
    folder.write("enc/in/a/chunk.enc", &damaged);
    let long = folder.read("enc/in/private/long.enc");
    folder.write("enc/in/private/long.enc", &long[..long.len() - 1]);
    folder.write("enc/in/README", "not encrypted");
    let ended = folder.run(["decrypt", "-k", "key", "-r", "-O", "back", "enc/in"]);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    for line in [
        "failed: 'enc/in/a/chunk.enc': chunk 0",
        "failed: 'enc/in/private/long.enc': ",
        "skipped 'enc/in/README': it is a file whose name does not end in .enc",
        "; 1 skipped; 2 failed",
    ] {
        assert!(ended.stderr.contains(line), "{line:?}: {}", ended.stderr);
    }
    assert!(!folder.has("back/in/a/chunk") && !folder.has("back/in/private/long"));
    assert_eq!(folder.read("back/in/a/b/more"), data(5 * CHUNK + 7));

    // Failures of input and output have exit code 2, unless data are not authentic as well.
    fs::create_dir_all(folder.path("dirs/in/one.enc")).unwrap();
    let ended = folder.run(["encrypt", "-k", "key", "-r", "-f", "-O", "dirs", "in"]);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("failed: 'in/one'"), "{}", ended.stderr);
    assert!(folder.has("dirs/in/a/chunk.enc"));
}

#[test]
fn resume_skips_files_that_are_up_to_date() {
    let folder = with_tree();
    let encrypt = ["encrypt", "-k", "key", "-r", "-O", "enc", "--resume", "--json", "in"];
    let first = folder.run(encrypt).succeeded();
    let json: serde_json::Value = serde_json::from_str(&first.stderr).unwrap();
    assert_eq!((json["files"].as_u64(), json["up_to_date"].as_u64()), (Some(9), Some(0)));
    let before: Vec<_> =
        fs::metadata(folder.path("enc/in/a/chunk.enc")).into_iter().map(|m| m.ino()).collect();
    // Three inputs change: a file is new, a file has changed but has the same length, and a file has grown but has an old time.
    folder.write("in/new", "new");
    let changed = folder.path("enc/in/one.enc");
    set_age(&changed, 1000);
    folder.write("in/nothing", "something");
    set_age(&folder.path("in/nothing"), 2000);
    let json: serde_json::Value = serde_json::from_str(&folder.run(encrypt).succeeded().stderr).unwrap();
    assert_eq!((json["files"].as_u64(), json["up_to_date"].as_u64()), (Some(3), Some(7)));
    let after: Vec<_> =
        fs::metadata(folder.path("enc/in/a/chunk.enc")).into_iter().map(|m| m.ino()).collect();
    assert_eq!(before, after);

    let decrypt = ["decrypt", "-k", "key", "-r", "-O", "back", "--resume", "--json", "enc/in"];
    folder.run(decrypt).succeeded();
    assert_eq!(content(&folder.path("back/in")), content(&folder.path("in")));
    let json: serde_json::Value = serde_json::from_str(&folder.run(decrypt).succeeded().stderr).unwrap();
    assert_eq!((json["files"].as_u64(), json["up_to_date"].as_u64()), (Some(0), Some(10)));
}

#[test]
fn resume_replaces_only_its_own_outputs() {
    let folder = with_tree();
    folder.run(["encrypt", "-k", "key", "-r", "-O", "enc", "in"]).succeeded();
    folder.write("enc/in/one.enc", "something else");
    let resume = ["encrypt", "-k", "key", "-r", "-O", "enc", "--resume", "in"];
    let ended = folder.run(resume);
    assert_eq!(ended.code, 2);
    assert!(
        ended.stderr.contains("failed: 'in/one': the output 'enc/in/one.enc' exists"),
        "{}",
        ended.stderr
    );
    assert_eq!(folder.read("enc/in/one.enc"), b"something else");
    // With another key, every file fails.
    let ended = folder.run(["encrypt", "-k", "wrong", "-r", "-O", "enc", "--resume", "in"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("; 9 failed"), "{}", ended.stderr);

    folder.run(["encrypt", "-k", "key", "-r", "-O", "enc", "--resume", "--force", "in"]).succeeded();
    folder.run(["decrypt", "-k", "key", "-r", "-O", "back", "enc/in"]).succeeded();
    // After the decryption, one output was edited and has another length. Another output is older than the encrypted file.
    folder.write("back/in/one", "edited");
    set_age(&folder.path("back/in/a/chunk"), 1000);
    let ended = folder.run(["decrypt", "-k", "key", "-r", "-O", "back", "--resume", "enc/in"]);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("2 failed"), "{}", ended.stderr);
    assert_eq!(folder.read("back/in/one"), b"edited");
}

#[test]
fn a_stopped_run_leaves_no_partial_files_and_can_be_resumed() {
    for signal in ["-INT", "-KILL"] {
        let folder = Folder::with_keys();
        fs::create_dir(folder.path("in")).unwrap();
        let plain = data(2 << 20);
        for index in 0..40 {
            folder.write(&format!("in/{index:02}"), &plain);
        }
        let mut child = folder.spawn(["encrypt", "-k", "key", "-r", "-O", "enc", "in"]);
        wait_until("the first outputs", || {
            fs::read_dir(folder.path("enc/in")).is_ok_and(|entries| entries.count() > 4)
        });
        kill(signal, &child);
        child.wait().unwrap();
        let outputs = content(&folder.path("enc/in"));
        if signal == "-INT" {
            assert!(outputs.iter().all(|(name, _)| name.extension() == Some(OsStr::new("enc"))));
        }
        for (name, bytes) in &outputs {
            if name.extension() == Some(OsStr::new("enc")) {
                let bytes = bytes.as_ref().unwrap();
                assert!(folder.pipe(["decrypt", "-k", "key"], bytes).succeeded().stdout == plain);
            }
        }
        folder.run(["encrypt", "-k", "key", "-r", "-O", "enc", "--resume", "in"]).succeeded();
        let names: Vec<_> = content(&folder.path("enc/in")).into_iter().map(|(name, _)| name).collect();
        let expected: Vec<_> = (0..40).map(|index| PathBuf::from(format!("{index:02}.enc"))).collect();
        assert_eq!(names, expected);
        folder.run(["decrypt", "-k", "key", "-r", "-O", "back", "enc/in"]).succeeded();
        assert_eq!(content(&folder.path("back/in")), content(&folder.path("in")));
    }
}

#[test]
fn one_envelope_for_all_files_of_a_call() {
    let folder = with_tree();
    folder.write("passphrase", "correct horse\n");
    set_mode(&folder.path("passphrase"), 0o600);
    folder.run(["encrypt", "--passphrase-file", "passphrase", "-r", "-O", "enc", "in"]).succeeded();
    let (one, two) = (folder.read("enc/in/one.enc"), folder.read("enc/in/nothing.enc"));
    let envelope = one.len() - HEADER - 17;
    assert_eq!(one[..envelope], two[..envelope]);
    assert_ne!(one[envelope..envelope + 24], two[envelope..envelope + 24]);
    let decrypt = ["decrypt", "--passphrase-file", "passphrase", "-r", "-O", "back", "enc/in"];
    folder.run(decrypt).succeeded();
    assert_eq!(content(&folder.path("back/in")), content(&folder.path("in")));
    let resume = ["encrypt", "--passphrase-file", "passphrase", "-r", "-O", "enc", "--resume", "in"];
    folder.run(resume).succeeded();
    assert_eq!(folder.read("enc/in/one.enc"), one);
    folder.write("wrong-passphrase", "incorrect\n");
    set_mode(&folder.path("wrong-passphrase"), 0o600);
    let decrypt = ["decrypt", "--passphrase-file", "wrong-passphrase", "-r", "-O", "not", "enc/in"];
    let ended = folder.run(decrypt);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("wrong passphrase").count(), 9, "{}", ended.stderr);
    assert!(!folder.has("not"));
}

#[test]
fn r_is_short_for_recursive_if_it_cannot_be_a_recipient() {
    let folder = with_tree();
    folder.run(["encrypt", "-k", "key", "-O", "enc", "-r", "in"]).succeeded();
    assert!(folder.has("enc/in/one.enc"));
    let recipient = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj";
    folder.run(["encrypt", "-k", "key", "-O", "no", "-r", recipient, "in/one"]).failed(2, "--key");
    folder.run(["encrypt", "-r", recipient, "-O", "to", "-r", "--resume", "in"]).succeeded();
    assert!(folder.has("to/in/one.enc"));
    folder.run(["encrypt", "-O", "no", "-r", "in"]).failed(2, "--recursive");
    folder.run(["encrypt", "-k", "key", "-O", "no", "-r", "", "in/one"]).failed(2, "");
    assert!(!folder.has("no"));
}

#[test]
fn the_summary_counts_files() {
    let folder = with_tree();
    let args = ["encrypt", "-k", "key", "-r", "-O", "enc", "--progress", "always", "in"];
    let ended = folder.run(args).succeeded();
    assert!(ended.stderr.starts_with("lockstep: encrypted 9 files, "), "{}", ended.stderr);
}

#[test]
fn outputs_have_the_time_of_their_inputs_and_changes_during_the_run_are_detected() {
    let folder = with_tree();
    set_age(&folder.path("in/one"), 5000);
    let encrypt = ["encrypt", "-k", "key", "-r", "-O", "enc", "--resume", "--json", "in"];
    folder.run(encrypt).succeeded();
    let time = |name: &str| fs::metadata(folder.path(name)).unwrap().modified().unwrap();
    assert_eq!(time("enc/in/one.enc"), time("in/one"));
    folder.run(["decrypt", "-k", "key", "-r", "-O", "back", "enc/in"]).succeeded();
    assert_eq!(time("back/in/one"), time("in/one"));
    // The input gets other content of the same length and another modification time, as after a write during the encryption.
    folder.write("in/one", "!");
    set_age(&folder.path("in/one"), 4000);
    let json: serde_json::Value = serde_json::from_str(&folder.run(encrypt).succeeded().stderr).unwrap();
    assert_eq!(json["files"], 1, "{json}");
    assert_eq!(folder.run(["decrypt", "-k", "key", "enc/in/one.enc"]).stdout, b"!");
}

#[test]
fn a_file_that_cannot_be_opened_does_not_stop_the_others() {
    let folder = with_tree();
    folder.run(["encrypt", "-k", "key", "-r", "-O", "enc", "in"]).succeeded();
    folder.write("enc/in/a.enc", locked("correct horse", b"one"));
    let ended = folder.run(["decrypt", "-k", "key", "-r", "-O", "back", "enc/in"]);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("failed: 'enc/in/a.enc': this file is encrypted with a passphrase"));
    assert_eq!(content(&folder.path("back/in")), content(&folder.path("in")));

    // With its suffix, this name is too long. In the second run, the output folder already exists.
    let long = "n".repeat(253);
    folder.write(&format!("in/{long}"), "x");
    for _ in 0..2 {
        folder.write("in/new", "new");
        let ended = folder.run(["encrypt", "-k", "key", "-r", "-O", "enc", "--resume", "in"]);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains("; 1 failed"), "{}", ended.stderr);
        assert!(folder.has("enc/in/new.enc"));
        fs::remove_file(folder.path("enc/in/new.enc")).unwrap();
    }
}

#[test]
fn a_low_limit_on_open_files_is_enough() {
    let folder = Folder::with_keys();
    for index in 0..120 {
        fs::create_dir_all(folder.path(&format!("in/{index}"))).unwrap();
        folder.write(&format!("in/{index}/file"), data(index));
    }
    // With a limit of 39, fewer files can be open than one thread needs.
    for limit in [48, 39] {
        let enc = format!("enc{limit}");
        let encrypt = format!("ulimit -n {limit}; lockstep encrypt -k key --threads 100 -r -O {enc} in/*");
        folder.shell(&encrypt).succeeded();
        folder
            .shell(&format!("ulimit -n {limit}; lockstep encrypt -k key --resume -r -O {enc} in/*"))
            .succeeded();
        let decrypt =
            format!("ulimit -n {limit}; lockstep decrypt -k key --threads 100 -r -O back{limit} {enc}/*");
        folder.shell(&decrypt).succeeded();
        assert_eq!(content(&folder.path(&format!("back{limit}"))), content(&folder.path("in")));
    }
}

#[test]
fn nothing_is_asked_for_before_the_files_are_checked() {
    let folder = with_tree();
    let ended = folder.without_terminal(["encrypt", "-p", "-O", "enc", "in/one", "missing"]);
    ended.failed(2, "'missing'");
    fs::create_dir(folder.path("enc")).unwrap();
    folder.write("enc/one.enc", "x");
    let ended = folder.without_terminal(["encrypt", "-p", "-O", "enc", "in/one"]);
    ended.failed(2, "'enc/one.enc' exists");
    let ended = folder.without_terminal(["encrypt", "-p", "-O", "new", "in/one"]);
    ended.failed(2, "terminal");
    assert!(!folder.has("new"));
    folder
        .run(["decrypt", "-O", "back", "-i", "-", "--passphrase-file", "-", "x.enc"])
        .failed(2, "read once");
}

#[test]
fn sync_covers_new_folders_and_files_that_are_up_to_date() {
    if !have("strace") {
        return;
    }
    let folder = with_tree();
    let traced = |command: &str| {
        let script = format!("strace -f -e trace=mkdirat,fsync,linkat -o trace {command}");
        folder.shell(&script).succeeded();
        let trace = String::from_utf8(folder.read("trace")).unwrap();
        let call = |line: &str| {
            let names = ["mkdirat", "fsync", "linkat"];
            names.into_iter().find(|name| line.contains(&format!(" {name}(")) && !line.contains("= -1"))
        };
        trace.lines().filter_map(call).collect::<Vec<_>>()
    };
    let calls = traced("lockstep encrypt -k key --sync -O new/enc/here in/one");
    let made: Vec<_> = calls.windows(2).filter(|pair| pair[0] == "mkdirat").map(|pair| pair[1]).collect();
    assert_eq!(made, ["fsync"; 3], "{calls:?}");
    assert!(calls.ends_with(&["fsync", "linkat", "fsync"]), "{calls:?}");
    let calls = traced("lockstep encrypt -k key --sync --resume -O new/enc/here in/one");
    // The call of `linkat` tests whether a file without a name can get a name in this folder.
    assert_eq!(calls, ["linkat", "fsync", "fsync"]);
}

#[test]
fn a_signal_waits_for_the_removal_of_temporary_files() {
    if !have("strace") {
        return;
    }
    let folder = Folder::with_keys();
    fs::File::create(folder.path("long")).unwrap().set_len(4 << 30).unwrap();
    // The delay also applies to the removal of the file with which the command tests the folder.
    let delayed = ["-f", "-qq", "-e", "inject=unlinkat:delay_enter=300000", "-o", "trace", LOCKSTEP];
    let args = ["encrypt", "-k", "key", "-O", "enc", "long"];
    let mut command = folder.program("strace");
    command.env("LOCKSTEP_TEST_NAMED_FILES", "1");
    let mut strace = command.args(delayed.iter().chain(&args)).spawn().unwrap();
    let is_temporary = |name: &OsStr| name.as_bytes().starts_with(b".lockstep-");
    let temporary = || {
        let entries = fs::read_dir(folder.path("enc")).into_iter().flatten().flatten();
        entries
            .filter(|entry| is_temporary(&entry.file_name()))
            .any(|entry| entry.metadata().is_ok_and(|m| m.len() > 0))
    };
    wait_until("the temporary file", temporary);
    let id = strace.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    let killed = std::process::Command::new("kill").args(["-TERM", children.trim()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(strace.wait().unwrap().code(), Some(143));
    assert!(content(&folder.path("enc")).is_empty());
}
