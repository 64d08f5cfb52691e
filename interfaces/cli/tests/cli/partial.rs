//! Tests of `decrypt --partial`, which writes the verified beginning of damaged files, and of holes in decrypted files.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::common::*;
use crate::recipients::locked;

/// Runs the script that makes `damaged` from `cipher`, and decrypts it from a path and from a pipe, to a file and to a pipe.
/// In all four cases the output is the beginning of the plaintext, of `chunks` chunks.
#[track_caller]
fn assert_partial(folder: &Folder, script: &str, chunks: usize, key: &str) {
    folder.shell(script).succeeded();
    let plain = folder.read("plain");
    let decrypt = |how: &str| folder.shell(&format!("lockstep decrypt -k {key} {how}"));
    let words = match chunks {
        0 => "none was written".to_owned(),
        _ => format!("the verified beginning was written: {} bytes", chunks * CHUNK),
    };
    for how in ["damaged", "< <(cat damaged)"] {
        decrypt(&format!("{how} --partial -o out")).failed(1, &words);
        assert_eq!(folder.has("out"), chunks > 0, "{script}, {how}");
        if chunks > 0 {
            assert!(folder.read("out") == plain[..chunks * CHUNK], "{script}, {how}");
            fs::remove_file(folder.path("out")).unwrap();
        }
        let piped = decrypt(&format!("{how} --partial"));
        assert!(piped.stdout == plain[..chunks * CHUNK], "{script}, {how}: {}", piped.stdout.len());
        piped.failed(1, &words);
        // Without `--partial`, no output remains.
        decrypt(&format!("{how} -o out")).failed(1, "");
        assert!(!folder.has("out"), "{script}, {how}");
    }
    assert_eq!(folder.names(), ["cipher", "damaged", "key", "plain", "wrong"]);
}

fn folder() -> Folder {
    let folder = Folder::with_keys();
    folder.write("plain", data(40 * CHUNK + 1000));
    folder.run(["encrypt", "-k", "key", "plain", "-o", "cipher"]).succeeded();
    folder
}

#[test]
fn the_beginning_is_kept_up_to_the_damage() {
    let folder = folder();
    let cut = |at: usize| format!("head -c {at} cipher > damaged");
    assert_partial(&folder, &cut(HEADER + 33 * ENCRYPTED + 500), 33, "key");
    assert_partial(&folder, &cut(HEADER + 33 * ENCRYPTED), 33, "key");
    let flip = format!(
        "cp cipher damaged; printf X | dd of=damaged bs=1 seek={} conv=notrunc status=none",
        HEADER + 5 * ENCRYPTED + 9
    );
    assert_partial(&folder, &flip, 5, "key");
    // No chunk is complete, so no data can be verified.
    assert_partial(&folder, &cut(HEADER + 100), 0, "key");
    assert_partial(&folder, &cut(20), 0, "key");
    assert_partial(&folder, "cp cipher damaged", 0, "wrong");
    assert_partial(&folder, "(printf X; tail -c +2 cipher) > damaged", 0, "key");
}

#[test]
fn the_number_of_bytes_is_a_field_of_json() {
    let folder = folder();
    folder.write("damaged", &folder.read("cipher")[..HEADER + 3 * ENCRYPTED + 5]);
    let ended = folder.run(["decrypt", "-k", "key", "damaged", "--partial", "--json", "-o", "out"]);
    let report: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
    assert_eq!(report["verified_bytes"], 3 * CHUNK);
    assert_eq!((&report["exit_code"], &report["kind"]), (&1.into(), &"not_authentic".into()));
    let ended = folder.run(["decrypt", "-k", "key", "damaged", "--json", "-o", "other"]);
    let report: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
    assert!(report.get("verified_bytes").is_none(), "{report}");
    // A complete file is decrypted as without the option.
    folder.run(["decrypt", "-k", "key", "cipher", "--partial", "-o", "whole"]).succeeded();
    assert!(folder.read("whole") == folder.read("plain"));
    folder.run(["decrypt", "-k", "key", "cipher", "--partial", "--range", "0:5"]).failed_usage("--range");
    folder
        .run(["decrypt", "-k", "key", "-O", "x", "cipher", "--partial", "--resume"])
        .failed_usage("--resume");
}

#[test]
fn an_envelope_precedes_the_beginning() {
    let folder = folder();
    folder.write("passphrase", "secret\n");
    folder.shell("chmod 600 passphrase").succeeded();
    let whole = locked("secret", &folder.read("plain"));
    folder.write("damaged", &whole[..whole.len() - 1000 - 16]);
    let how = ["decrypt", "--passphrase-file", "passphrase", "--partial", "damaged", "-o", "out"];
    folder.run(how).failed(1, &format!("{} bytes", 40 * CHUNK));
    assert!(folder.read("out") == folder.read("plain")[..40 * CHUNK]);
}

#[test]
fn each_of_many_files_keeps_its_beginning() {
    let folder = folder();
    folder.shell("mkdir in && cp cipher in/whole.enc").succeeded();
    folder.write("in/cut.enc", &folder.read("cipher")[..HEADER + 7 * ENCRYPTED + 99]);
    folder.write("in/none.enc", &folder.read("cipher")[..HEADER + 99]);
    let ended = folder.run(["decrypt", "-k", "key", "-r", "-O", "without", "in"]);
    assert_eq!((ended.code, folder.has("without/in/cut")), (1, false));
    let ended = folder.run(["decrypt", "-k", "key", "-r", "-O", "out", "in", "--partial", "--json"]);
    assert_eq!(ended.code, 1);
    let plain = folder.read("plain");
    assert!(folder.read("out/in/whole") == plain && folder.read("out/in/cut") == plain[..7 * CHUNK]);
    assert!(!folder.has("out/in/none"));
    let report: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
    assert_eq!((&report["files"], &report["failed"][0]["verified_bytes"]), (&1.into(), &(7 * CHUNK).into()));
    assert_eq!(report["failed"][1]["verified_bytes"], 0);
    // An output that contains only the beginning of the plaintext does not count as up to date.
    let ended = folder.run(["decrypt", "-k", "key", "-r", "-O", "out", "in", "--resume"]);
    assert!(ended.stderr.contains("was not last modified at the time"), "{}", ended.stderr);
}

#[test]
fn a_part_replaces_no_file() {
    let folder = folder();
    folder.write("damaged", &folder.read("cipher")[..HEADER + 2 * ENCRYPTED]);
    folder.write("out", "precious");
    for how in [&["-o", "out"][..], &["-O", "many"]] {
        let args = ["decrypt", "-k", "key", "damaged", "--partial", "--force"];
        let ended = folder.run(args.iter().chain(how));
        assert!(
            ended.code == 2 && ended.stderr.contains("cannot be used with '--force'"),
            "{}",
            ended.stderr
        );
    }
    folder.run(["decrypt", "-k", "key", "damaged", "--partial", "-o", "out"]).failed(2, "exists");
    assert_eq!(folder.read("out"), b"precious");
}

#[test]
fn a_signal_keeps_nothing() {
    let folder = folder();
    fifo(&folder.path("fifo"));
    let mut child = folder.spawn(["decrypt", "-k", "key", "fifo", "--partial", "-o", "out"]);
    let mut feed = fs::OpenOptions::new().write(true).open(folder.path("fifo")).unwrap();
    let cipher = folder.read("cipher");
    std::io::Write::write_all(&mut feed, &cipher[..cipher.len() - 5]).unwrap();
    wait_until("the output file", || folder.has_output_open(child.id()));
    kill("-INT", &child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(folder.names(), ["cipher", "fifo", "key", "plain", "wrong"]);
}

#[test]
fn decryption_writes_holes() {
    let folder = Folder::with_keys();
    let space = |name: &str| fs::metadata(folder.path(name)).unwrap().blocks() * 512;
    folder.shell("truncate -s 20M sparse; printf end >> sparse").succeeded();
    if space("sparse") > 1 << 20 {
        eprintln!("NOT TESTED: this file system has no holes");
        return;
    }
    folder.run(["encrypt", "-k", "key", "sparse", "-o", "sparse.enc"]).succeeded();
    assert!(space("sparse.enc") >= 20 << 20);
    let equals = |name: &str| folder.read(name) == folder.read("sparse");
    folder.run(["decrypt", "-k", "key", "sparse.enc", "-o", "back"]).succeeded();
    folder.shell("lockstep decrypt -k key < sparse.enc -o piped").succeeded();
    folder.run(["decrypt", "-k", "key", "sparse.enc", "-O", "many"]).succeeded();
    let raw = "cipher -m ctr --key-hex 00112233445566778899aabbccddeeff --iv-hex";
    let raw = format!("{raw} {}", "00".repeat(16));
    folder.run(raw.split(' ').chain(["sparse", "-o", "ctr"])).succeeded();
    folder.run(raw.split(' ').chain(["-d", "ctr", "-o", "raw"])).succeeded();
    for name in ["back", "piped", "many/sparse", "raw"] {
        assert!(equals(name) && space(name) <= 64 << 10, "{name}: {}", space(name));
    }
    folder.run(["decrypt", "-k", "key", "sparse.enc", "--sparse=never", "-o", "full"]).succeeded();
    folder.run(["decrypt", "-k", "key", "sparse.enc", "--sparse", "never", "-O", "full-many"]).succeeded();
    for name in ["full", "full-many/sparse"] {
        assert!(equals(name) && space(name) >= 20 << 20, "{name}: {}", space(name));
    }
}
