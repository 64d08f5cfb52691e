//! Many files in one call: inputs that change or disappear between two runs, and folders at the limits.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use crate::common::*;

const ENCRYPT: [&str; 6] = ["encrypt", "-k", "key", "-r", "-O", "enc"];

/// A folder `in` with some files and subfolders, and its encrypted copy in `enc`.
fn with_copy() -> Folder {
    let folder = Folder::with_keys();
    for path in ["in/a/b", "in/old/older"] {
        fs::create_dir_all(folder.path(path)).unwrap();
    }
    for name in ["in/one", "in/two", "in/linked", "in/a/b/deep", "in/old/x", "in/old/older/y"] {
        folder.write(name, data(100));
    }
    pause();
    folder.run(ENCRYPT.iter().chain(&["in"])).succeeded();
    folder
}

/// Outputs count as up to date only if they are newer than the last change of their inputs. File systems update their
/// clocks every 10 ms or more often.
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}

fn encrypt(folder: &Folder, options: &[&str]) -> Ended {
    folder.run(ENCRYPT.iter().chain(options).chain(&["in"]))
}

/// The JSON object of a run that succeeds.
fn summary(ended: Ended) -> serde_json::Value {
    serde_json::from_str(&ended.succeeded().stderr).unwrap()
}

/// Writes a file, and restores its modification time.
fn write_with_old_time(path: &Path, content: &[u8]) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    fs::write(path, content).unwrap();
    fs::File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
}

#[test]
fn a_change_that_keeps_length_and_time_is_found() {
    let folder = with_copy();
    let nothing = summary(encrypt(&folder, &["--resume", "--json"]));
    assert_eq!((nothing["files"].as_u64(), nothing["up_to_date"].as_u64()), (Some(0), Some(6)), "{nothing}");
    pause();
    write_with_old_time(&folder.path("in/one"), &[7; 100]);
    let json = summary(encrypt(&folder, &["--resume", "--json"]));
    assert_eq!((json["files"].as_u64(), json["up_to_date"].as_u64()), (Some(1), Some(5)), "{json}");
    assert_eq!(folder.run(["decrypt", "-k", "key", "enc/in/one.enc"]).stdout, [7; 100]);

    // Decryption does not replace its outputs, which may have been edited.
    let decrypt = ["decrypt", "-k", "key", "-r", "-O", "back", "--resume", "enc/in"];
    pause();
    folder.run(decrypt).succeeded();
    folder.run(decrypt).succeeded();
    pause();
    write_with_old_time(&folder.path("enc/in/two.enc"), &folder.read("enc/in/one.enc"));
    folder.run(decrypt).failed(2, "is older than the last change of the encrypted file");
    assert_eq!(folder.read("back/in/two"), data(100));
}

#[test]
fn outputs_without_input_are_listed_and_deleted_on_request() {
    let folder = with_copy();
    fs::remove_dir_all(folder.path("in/old")).unwrap();
    fs::remove_file(folder.path("in/two")).unwrap();
    // A file and a folder are replaced by symbolic links. They still count as inputs, so their outputs are kept.
    fs::rename(folder.path("in/a"), folder.path("moved")).unwrap();
    symlink("../moved", folder.path("in/a")).unwrap();
    fs::remove_file(folder.path("in/linked")).unwrap();
    symlink("one", folder.path("in/linked")).unwrap();
    // These entries are not outputs that the command wrote with this key, so they are kept.
    folder.write("enc/in/notes.enc", "not encrypted");
    folder.write("enc/in/README", "mine");
    folder.run(["encrypt", "-k", "wrong", "in/one", "-o", "enc/in/other.enc"]).succeeded();
    fs::create_dir(folder.path("elsewhere")).unwrap();
    folder.run(["encrypt", "-k", "key", "in/one", "-o", "elsewhere/kept.enc"]).succeeded();
    symlink("../../elsewhere", folder.path("enc/in/link")).unwrap();
    symlink("../../elsewhere/kept.enc", folder.path("enc/in/link.enc")).unwrap();
    // The user has made these empty folders.
    fs::create_dir_all(folder.path("enc/in/empty/sub")).unwrap();
    // The output of another run is in the same folder.
    folder.run(["encrypt", "-k", "key", "-O", "enc", "in/one"]).succeeded();

    let gone = ["enc/in/old/older/y.enc", "enc/in/old/x.enc", "enc/in/two.enc"];
    let ended = encrypt(&folder, &["--resume"]).succeeded();
    for name in gone {
        let line = format!("without input: '{name}'");
        assert!(ended.stderr.contains(&line), "{}", ended.stderr);
        assert!(folder.has(name));
    }
    assert!(ended.stderr.contains("; 5 without input"), "{}", ended.stderr);
    let json = summary(encrypt(&folder, &["--resume", "--json"]));
    assert_eq!(json["without_input"].as_array().unwrap().len(), 5, "{json}");

    let json = summary(encrypt(&folder, &["--resume", "--delete", "--json"]));
    let mut deleted: Vec<_> =
        json["deleted"].as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect();
    deleted.sort_unstable();
    assert_eq!(deleted, gone, "{json}");
    assert!(!folder.path("enc/in/old").exists() && folder.path("enc/in/empty/sub").is_dir());
    for kept in
        ["notes.enc", "README", "other.enc", "link", "link.enc", "one.enc", "linked.enc", "a/b/deep.enc"]
    {
        assert!(fs::symlink_metadata(folder.path("enc/in").join(kept)).is_ok(), "{kept}");
    }
    assert!(folder.has("elsewhere/kept.enc") && folder.has("enc/one.enc"));
    let skipped = json["skipped"].as_array().unwrap();
    let foreign = |entry: &&serde_json::Value| entry["reason"].as_str().unwrap().starts_with("not an output");
    assert_eq!((skipped.len(), skipped.iter().filter(foreign).count()), (4, 2), "{json}");
}

#[test]
fn nothing_is_deleted_after_a_failure_or_for_ambiguous_inputs() {
    let folder = with_copy();
    fs::remove_file(folder.path("in/two")).unwrap();
    // One input fails: first before the run, then during the run.
    folder.write("in/new", "new");
    fs::create_dir(folder.path("enc/in/new.enc")).unwrap();
    let ended = encrypt(&folder, &["--resume", "--delete"]);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("without input: 'enc/in/two.enc'"), "{}", ended.stderr);
    assert!(folder.has("enc/in/two.enc"));
    fs::remove_file(folder.path("in/new")).unwrap();
    fs::create_dir_all(folder.path("in").join("d/".repeat(300))).unwrap();
    assert_eq!(encrypt(&folder, &["--resume", "--delete"]).code, 2);
    assert!(folder.has("enc/in/two.enc"));
    fs::remove_dir_all(folder.path("in/d")).unwrap();
    fs::remove_dir_all(folder.path("enc/in/new.enc")).unwrap();

    // Two inputs whose outputs share a folder are refused.
    fs::create_dir_all(folder.path("second/in")).unwrap();
    folder.write("second/in/x", "x");
    for inputs in [["in", "second/in"], ["in", "second/.."]] {
        let args = ENCRYPT.iter().chain(&["--resume", "--delete"]).chain(&inputs);
        folder.run(args).failed(2, "would share an output folder");
    }
    folder
        .run(["encrypt", "-k", "key", "-O", "enc", "--resume", "--delete", "in/one"])
        .failed(2, "--recursive");
    assert_eq!(folder.run(["encrypt", "-k", "key", "-r", "--delete", "in"]).code, 2);
    assert_eq!(folder.run(["decrypt", "-k", "key", "-r", "-O", "back", "--delete", "enc/in"]).code, 2);
    // An input without files is refused: its file system may not be mounted.
    fs::rename(folder.path("in"), folder.path("away")).unwrap();
    fs::create_dir(folder.path("in")).unwrap();
    encrypt(&folder, &["--resume", "--delete"]).failed(2, "there is no file to encrypt in 'in'");
    assert!(folder.has("enc/in/two.enc") && folder.has("enc/in/one.enc"));
}

#[test]
fn outputs_to_recipients_or_with_a_passphrase_are_listed_but_not_deleted() {
    let folder = Folder::with_keys();
    fs::create_dir(folder.path("in")).unwrap();
    folder.write("in/one", "1");
    folder.write("in/two", "2");
    let recipient = age::x25519::Identity::generate().to_public().to_string();
    let to_me = ["encrypt", "-r", &recipient, "--recursive", "-O", "enc"];
    folder.run(to_me.iter().chain(&["in"])).succeeded();
    fs::remove_file(folder.path("in/two")).unwrap();
    let json = summary(folder.run(to_me.iter().chain(&["--resume", "--json", "in"])));
    assert_eq!(json["without_input"], serde_json::json!(["enc/in/two.enc"]), "{json}");
    for whom in [&["-r", &recipient][..], &["-p"], &["--passphrase-file", "key"], &["-R", "key"]] {
        let args = ["encrypt", "--recursive", "-O", "enc", "--resume", "--delete", "in"];
        folder.run(args.iter().chain(whom)).failed(2, "--delete needs -k");
    }
    assert!(folder.has("enc/in/two.enc"));
}

#[test]
fn folders_without_a_file_to_process_are_refused() {
    let folder = with_copy();
    for path in ["empty/sub", "back"] {
        fs::create_dir_all(folder.path(path)).unwrap();
    }
    let refused = |args: &[&str], message: &str| {
        folder.run(args).failed(2, message);
        assert_eq!(fs::read_dir(folder.path("back")).unwrap().count(), 0);
    };
    refused(
        &["decrypt", "-k", "key", "-r", "-O", "back", "in"],
        "there is no file whose name ends in .enc in 'in', only 6 other entries that are skipped",
    );
    refused(&["decrypt", "-k", "key", "-r", "-O", "back", "empty"], "in 'empty': check the path");
    refused(&["encrypt", "-k", "key", "-r", "-O", "back", "empty"], "there is no file to encrypt in 'empty'");
    // One of several folders may be empty.
    folder.run(["encrypt", "-k", "key", "-r", "-O", "back", "empty", "in/a"]).succeeded();
    assert!(folder.path("back/empty/sub").is_dir());
}

#[test]
fn long_names_and_paths() {
    let folder = Folder::with_keys();
    fs::create_dir(folder.path("in")).unwrap();
    for len in [251, 252, 255] {
        folder.write(&format!("in/{}", "n".repeat(len)), "x");
    }
    // In the second run, the output folder already exists.
    for up_to_date in [0, 1] {
        let ended = encrypt(&folder, &["--resume", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
        assert_eq!((ended.code, json["up_to_date"].as_u64()), (2, Some(up_to_date)), "{json}");
        let failed = json["failed"].as_array().unwrap();
        assert_eq!(failed.len(), 2, "{json}");
        let message = failed[0]["error"].as_str().unwrap();
        assert!(message.contains("256 bytes") && message.contains("shorten the name"), "{message}");
    }
    // With the name of the output folder, these paths have more than 4096 bytes. Without it, they have at most 4096.
    fs::remove_dir_all(folder.path("in")).unwrap();
    let name = "d".repeat(254);
    let make = format!("mkdir in; cd in; for i in {{1..15}}; do mkdir {name}; cd {name}; done; echo x > f");
    folder.shell(&make).succeeded();
    let out = format!("{}/{}", "o".repeat(200), "o".repeat(200));
    for option in ["--resume", "--force"] {
        folder.run(["encrypt", "-k", "key", "-r", "-O", &out, option, "in"]).succeeded();
    }
    let back = ["decrypt", "-k", "key", "-r", "-O", &format!("{out}/back"), &format!("{out}/in")];
    folder.run(back).succeeded();
    // Deeper folders are listed, and the other files are processed.
    fs::create_dir_all(folder.path("in").join("e/".repeat(300))).unwrap();
    folder.write("in/other", "other");
    let ended = folder.run(["encrypt", "-k", "key", "-r", "-O", "enc", "in"]);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("archive it with tar"), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("encrypted 2 files") && ended.stderr.contains("; 1 failed"),
        "{}",
        ended.stderr
    );
    assert!(folder.has("enc/in/other.enc"));
}
