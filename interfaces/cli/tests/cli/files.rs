//! Key files and encryption with them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::common::*;

#[test]
fn keygen_makes_private_files_of_one_line() {
    let folder = Folder::new();
    for (bits, digits) in [("128", 32), ("256", 64)] {
        folder.run(["keygen", "--bits", bits, "-o", bits]).succeeded();
        let text = String::from_utf8(folder.read(bits)).unwrap();
        let hex = text.strip_prefix(&format!("lockstep-key-{bits} ")).unwrap().strip_suffix('\n').unwrap();
        assert_eq!(hex.len(), digits);
        assert!(hex.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c)));
        assert_eq!(fs::metadata(folder.path(bits)).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let (one, two) = (folder.run(["keygen"]).succeeded(), folder.run(["keygen"]).succeeded());
    assert!(one.text().starts_with("lockstep-key-256 "));
    assert_ne!(one.stdout, two.stdout);
    folder.run(["keygen", "--bits", "192"]).failed_usage("192");
}

#[test]
fn keygen_overwrites_only_with_force() {
    let folder = Folder::with_keys();
    let before = folder.read("key");
    folder.run(["keygen", "-o", "key"]).failed(2, "--force");
    assert_eq!(folder.read("key"), before);
    fs::set_permissions(folder.path("key"), fs::Permissions::from_mode(0o644)).unwrap();
    folder.run(["keygen", "-o", "key", "--force"]).succeeded();
    assert_ne!(folder.read("key"), before);
    assert_eq!(fs::metadata(folder.path("key")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(folder.names(), ["key", "wrong"]);
    folder.run(["keygen", "-o", "/dev/null", "--force"]).failed(2, "not a regular file");
    folder.run(["keygen", "-o", "new", "--force"]).succeeded();
    folder.run(["keygen", "-o", "nowhere/key"]).failed(2, "nowhere/key");
}

#[test]
fn keys_that_others_can_read_cause_a_warning() {
    let folder = Folder::with_keys();
    fs::set_permissions(folder.path("key"), fs::Permissions::from_mode(0o640)).unwrap();
    let warned = folder.run(["encrypt", "-k", "key", "-o", "out"]).succeeded();
    assert!(warned.stderr.contains("warning: other users can read or change the key file"));
    assert_eq!(folder.run(["decrypt", "-q", "-k", "key", "out"]).succeeded().stderr, "");
    let warned = folder.shell("umask 022; lockstep keygen > open").succeeded();
    assert!(warned.stderr.contains("warning"));
    assert_eq!(folder.shell("lockstep keygen | cat").succeeded().stderr, "");
}

#[test]
fn round_trips_of_all_lengths_through_files_and_pipes() {
    let folder = Folder::with_keys();
    folder.run(["keygen", "--bits", "128", "-o", "key128"]).succeeded();
    for key in ["key", "key128"] {
        for len in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 5 * CHUNK + 77, 3 << 20] {
            let plain = data(len);
            folder.write("plain", &plain);
            folder.run(["encrypt", "-k", key, "plain", "-o", "cipher", "--force"]).succeeded();
            let expected = HEADER + len + 16 * (len / CHUNK + 1);
            assert_eq!(folder.read("cipher").len(), expected, "{len}");
            let piped = folder.pipe(["encrypt", "-k", key], &plain).succeeded().stdout;
            assert_eq!(piped.len(), expected);

            assert_eq!(folder.run(["decrypt", "-k", key, "cipher"]).succeeded().stdout, plain);
            assert_eq!(folder.pipe(["decrypt", "-k", key, "-"], &piped).succeeded().stdout, plain);
            folder.run(["decrypt", "-k", key, "cipher", "-o", "back", "-f"]).succeeded();
            assert_eq!(folder.read("back"), plain);
        }
    }
    assert_eq!(folder.names(), ["back", "cipher", "key", "key128", "plain", "wrong"]);
    // Without an input, the command reads standard input, even if a folder named `-` exists.
    std::fs::create_dir(folder.path("-")).unwrap();
    folder.pipe(["encrypt", "-k", "key"], b"hello").succeeded();
}

#[test]
fn redirected_files_are_read_from_their_position() {
    let folder = Folder::with_keys();
    let plain = data(100_000);
    folder.write("plain", &plain);
    folder.shell("{ head -c 1000 > /dev/null; lockstep encrypt -k key; } < plain > cipher").succeeded();
    // `head` may have read more than it has written, but not less.
    let back = folder.run(["decrypt", "-k", "key", "cipher"]).succeeded().stdout;
    assert!(plain.ends_with(&back) && back.len() <= plain.len() - 1000);
    folder
        .shell("lockstep encrypt -k key < plain > cipher && lockstep decrypt -k key < cipher > back")
        .succeeded();
    assert_eq!(folder.read("back"), plain);
}

#[test]
fn files_that_report_length_0() {
    let folder = Folder::with_keys();
    folder.run(["encrypt", "-k", "key", "/proc/version", "-o", "cipher"]).succeeded();
    let back = folder.run(["decrypt", "-k", "key", "cipher"]).succeeded().stdout;
    assert_eq!(back, fs::read("/proc/version").unwrap());
}

#[test]
fn threads_kernels_and_the_environment() {
    let folder = Folder::with_keys();
    let plain = data(1 << 20);
    folder.write("plain", &plain);
    for kernel in ["auto", "cpu/soft"] {
        for threads in ["1", "2", "7"] {
            let args = ["--device", "cpu", "--kernel", kernel, "--threads", threads, "-k", "key"];
            let args = args.iter().copied();
            let cipher = folder.run(["encrypt", "plain"].into_iter().chain(args.clone())).succeeded().stdout;
            assert_eq!(folder.pipe(["decrypt"].into_iter().chain(args), &cipher).succeeded().stdout, plain);
        }
    }
    folder.run(["encrypt", "-k", "key", "--threads", "0"]).failed_usage("from 1 to 1024");
    folder.run(["encrypt", "-k", "key", "--device", "abacus"]).failed(2, "no device `abacus`");
    folder.run(["encrypt", "-k", "key", "--kernel", "cpu/abacus"]).failed(2, "no kernel `cpu/abacus`");
    let mut by_environment = folder.command(["encrypt", "-k", "key"]);
    let ended: Ended = by_environment.env("LOCKSTEP_KERNEL", "cpu/abacus").output().unwrap().into();
    ended.failed(2, "cpu/abacus");
}

#[test]
fn contexts() {
    let folder = Folder::with_keys();
    let cipher = folder.pipe(["encrypt", "-k", "key", "--context", "monday"], b"hello").succeeded().stdout;
    folder.write("cipher", &cipher);
    let back = folder.run(["decrypt", "-k", "key", "--context", "monday", "cipher"]).succeeded();
    assert_eq!(back.stdout, b"hello");
    folder.run(["decrypt", "-k", "key", "--context", "tuesday", "cipher"]).failed(1, "context");
    folder.run(["decrypt", "-k", "key", "cipher"]).failed(1, "context");
    folder.run(["encrypt", "-p", "--context", "monday"]).failed_usage("--context");
}

#[test]
fn ranges() {
    let folder = Folder::with_keys();
    let plain = data(3 * CHUNK + 1000);
    folder.write("plain", &plain);
    folder.run(["encrypt", "-k", "key", "plain", "-o", "cipher"]).succeeded();
    let len = plain.len();
    let cases = [
        ("0:0", 0, 0),
        ("0:1", 0, 1),
        ("16383:2", 16383, 16385),
        ("16K:16K", 16384, 32768),
        ("5:40000", 5, 40005),
        ("49152:1000", 49152, len),
        ("49152:5G", 49152, len),
        ("1K:", 1024, len),
        ("50152:10", len, len),
    ];
    for (range, from, to) in cases {
        let got = folder.run(["decrypt", "-k", "key", "--range", range, "cipher"]).succeeded().stdout;
        assert_eq!(got, plain[from..to], "{range}");
    }
    folder.run(["decrypt", "-k", "key", "--range", "5:10", "cipher", "-o", "part"]).succeeded();
    assert_eq!(folder.read("part"), plain[5..15]);
    let redirected = folder.shell("lockstep decrypt -k key --range 5:10 < cipher").succeeded();
    assert_eq!(redirected.stdout, plain[5..15]);

    folder.run(["decrypt", "-k", "key", "--range", "50153:1", "cipher"]).failed(2, "50152 bytes");
    folder.run(["decrypt", "-k", "key", "--range", "5-10", "cipher"]).failed_usage("OFFSET:LENGTH");
    folder.pipe(["decrypt", "-k", "key", "--range", "5:10"], &folder.read("cipher")).failed(2, "pipe");
}

#[test]
fn ranges_verify_their_chunks_and_the_last_one() {
    let folder = Folder::with_keys();
    let plain = data(3 * CHUNK + 1000);
    folder.write("plain", &plain);
    folder.run(["encrypt", "-k", "key", "plain", "-o", "cipher"]).succeeded();
    let whole = folder.read("cipher");
    let mut damaged = whole.clone();
    damaged[HEADER + ENCRYPTED + 5] ^= 1;
    folder.write("damaged", &damaged);
    folder.run(["decrypt", "-k", "key", "--range", "16384:1", "damaged", "-o", "part"]).failed(1, "chunk 1");
    assert!(!folder.has("part"));
    folder.run(["decrypt", "-k", "key", "--range", "0:16384", "damaged"]).succeeded();
    folder.run(["decrypt", "-k", "wrong", "--range", "0:1", "cipher"]).failed(1, "wrong key");
    for cut in [HEADER - 1, HEADER + ENCRYPTED, HEADER + 2 * ENCRYPTED + 100, whole.len() - 1] {
        folder.write("cut", &whole[..cut]);
        folder.run(["decrypt", "-k", "key", "--range", "0:1", "cut", "-o", "part", "-f"]).failed(1, "");
        assert!(!folder.has("part"));
    }
}

#[test]
fn the_result_is_printed_as_json() {
    let folder = Folder::with_keys();
    let report = folder.pipe(["encrypt", "-k", "key", "--json"], &data(20_000)).succeeded();
    let json: serde_json::Value = serde_json::from_str(&report.stderr).unwrap();
    assert_eq!(json["done"], "encrypted");
    assert_eq!(json["plaintext_bytes"], 20_000);
    assert_eq!(json["output_bytes"], report.stdout.len());
    assert_eq!(json["format"], "Cobblestone-256");
    assert_eq!(folder.pipe(["encrypt", "-k", "key"], b"").succeeded().stderr, "");
    let report = folder.pipe(["encrypt", "-k", "key", "--progress", "always"], b"abc").succeeded();
    assert!(report.stderr.starts_with("lockstep: encrypted 3 bytes in "), "{}", report.stderr);
    let quiet = folder.pipe(["encrypt", "-k", "key", "--progress", "always", "-q"], b"abc").succeeded();
    assert_eq!(quiet.stderr, "");
}
