//! Damaged data, and errors of input and output: the exit code is right, no output file remains, and only verified data are
//! released.

use std::fs;

use crate::common::*;

/// Data of several chunks, and their ciphertext.
fn encrypted(folder: &Folder, len: usize) -> (Vec<u8>, Vec<u8>) {
    let plain = data(len);
    let cipher = folder.pipe(["encrypt", "-k", "key"], &plain).succeeded().stdout;
    (plain, cipher)
}

/// Decrypts to a file, which must not exist afterwards, and to standard output, to which the command may only write a prefix of the
/// plaintext.
#[track_caller]
fn refused(folder: &Folder, cipher: &[u8], plain: &[u8]) {
    folder.write("damaged", cipher);
    let before = folder.names();
    folder.run(["decrypt", "-k", "key", "damaged", "-o", "out"]).failed(1, "");
    assert_eq!(folder.names(), before);
    let ended = folder.pipe(["decrypt", "-k", "key"], cipher).failed(1, "");
    assert!(plain.starts_with(&ended.stdout));
    assert!(ended.stdout.len() < plain.len() || plain.is_empty());
}

#[test]
fn truncation_everywhere_near_borders() {
    let folder = Folder::with_keys();
    let (plain, cipher) = encrypted(&folder, 2 * CHUNK + 100);
    let borders = [0, HEADER, HEADER + ENCRYPTED, HEADER + 2 * ENCRYPTED, cipher.len()];
    for border in borders {
        for at in border.saturating_sub(17)..(border + 18).min(cipher.len()) {
            refused(&folder, &cipher[..at], &plain);
        }
    }
    let (plain, cipher) = encrypted(&folder, 2 * CHUNK);
    refused(&folder, &cipher[..HEADER + 2 * ENCRYPTED], &plain);
    let (_, cipher) = encrypted(&folder, 0);
    for at in 0..cipher.len() {
        refused(&folder, &cipher[..at], &[]);
    }
}

#[test]
fn flipped_bits_everywhere() {
    let folder = Folder::with_keys();
    let (plain, cipher) = encrypted(&folder, 2 * CHUNK + 100);
    let header = 0..HEADER;
    let tags = [HEADER + CHUNK, HEADER + ENCRYPTED + CHUNK, cipher.len() - 16].map(|tag| tag..tag + 16);
    let others = (HEADER..cipher.len()).step_by(1009);
    for at in header.chain(tags.into_iter().flatten()).chain(others) {
        let mut damaged = cipher.clone();
        damaged[at] ^= 1 << (at % 8);
        refused(&folder, &damaged, &plain);
    }
}

#[test]
fn swapped_duplicated_dropped_and_appended_chunks() {
    let folder = Folder::with_keys();
    let (plain, cipher) = encrypted(&folder, 3 * CHUNK + 5);
    let (header, chunks) = cipher.split_at(HEADER);
    let chunks: Vec<_> = chunks.chunks(ENCRYPTED).collect();
    for order in [&[1, 0, 2, 3][..], &[0, 0, 1, 2, 3], &[0, 2, 3], &[0, 1, 2], &[3], &[0, 1, 2, 3, 3], &[]] {
        let message: Vec<u8> = order.iter().flat_map(|&index| chunks[index].iter().copied()).collect();
        refused(&folder, &[header, &message].concat(), &plain);
    }
    refused(&folder, &[&cipher[..], b"x"].concat(), &plain);
    refused(&folder, &[&cipher[..], &cipher].concat(), &plain);
}

#[test]
fn wrong_keys_and_no_keys() {
    let folder = Folder::with_keys();
    folder.run(["keygen", "--bits", "128", "-o", "small"]).succeeded();
    let (_, cipher) = encrypted(&folder, 1000);
    folder.write("cipher", cipher);
    for key in ["wrong", "small"] {
        folder.run(["decrypt", "-k", key, "cipher", "-o", "out"]).failed(1, "wrong key or context");
    }
    folder.run(["decrypt", "cipher"]).failed(2, "give its key file with -k");
    folder.run(["decrypt", "-k", "nothing", "cipher"]).failed(2, "nothing");
    folder.run(["decrypt", "-k", "cipher", "cipher"]).failed(2, "not a key file");
    folder.write("identity", "AGE-SECRET-KEY-1");
    folder.run(["decrypt", "-k", "identity", "cipher"]).failed(2, "not a key file");
    assert!(!folder.has("out"));
}

#[test]
fn empty_files() {
    let folder = Folder::with_keys();
    folder.write("empty", "");
    folder.run(["decrypt", "-k", "key", "empty", "-o", "out"]).failed(1, "after 0 bytes");
    folder.run(["decrypt", "-k", "key", "/dev/null", "-o", "out"]).failed(1, "after 0 bytes");
    folder.run(["decrypt", "empty", "-o", "out"]).failed(1, "empty");
    assert!(!folder.has("out"));
}

#[test]
fn existing_output_is_kept_without_force() {
    let folder = Folder::with_keys();
    folder.write("out", "precious");
    folder.pipe(["encrypt", "-k", "key", "-o", "out"], b"new").failed(2, "'out' exists");
    assert_eq!(folder.read("out"), b"precious");
    // A decryption that fails leaves the existing output unchanged, even with `--force`.
    folder.pipe(["decrypt", "-k", "key", "-o", "out", "--force"], b"damaged").failed(1, "");
    assert_eq!(folder.read("out"), b"precious");
    folder.pipe(["encrypt", "-k", "key", "-o", "out", "--force"], b"new").succeeded();
    assert_eq!(folder.run(["decrypt", "-k", "key", "out"]).succeeded().stdout, b"new");
}

#[test]
fn output_equal_to_input() {
    let folder = Folder::with_keys();
    folder.write("file", data(100));
    fs::hard_link(folder.path("file"), folder.path("link")).unwrap();
    std::os::unix::fs::symlink("file", folder.path("symlink")).unwrap();
    for name in ["file", "./file", "link", "symlink"] {
        folder
            .run(["encrypt", "-k", "key", "file", "-o", name, "--force"])
            .failed(2, "both input and output");
        folder
            .run(["cipher", "--mode", "ecb", "--key-hex", &"00".repeat(16), "file", "-f", "-o", name])
            .failed(2, "both");
    }
    folder.shell("lockstep encrypt -k key < file -f -o file").failed(2, "both input and output");
    folder
        .shell("lockstep encrypt -k key file >> file")
        .failed(2, "standard output is the file that is read");
    assert_eq!(folder.read("file"), data(100));
}

#[test]
fn unreadable_input() {
    let folder = Folder::with_keys();
    folder.run(["encrypt", "-k", "key", "nothing", "-o", "out"]).failed(2, "cannot open 'nothing'");
    folder.run(["encrypt", "-k", "key", ".", "-o", "out"]).failed(2, "is a folder");
    folder.shell("lockstep encrypt -k key -o out < .").failed(2, "is a folder");
    folder.run(["inspect", "nothing"]).failed(2, "nothing");
    assert_eq!(folder.names(), ["key", "wrong"]);
}

#[test]
fn unwritable_and_full_output() {
    let folder = Folder::with_keys();
    folder.write("plain", data(100_000));
    folder.run(["encrypt", "-k", "key", "plain", "-o", "nowhere/out"]).failed(2, "nowhere/out");
    folder.run(["encrypt", "-k", "key", "plain", "-o", "plain/out"]).failed(2, "plain/out");
    folder.run(["encrypt", "-k", "key", "plain", "-o", "/proc/lockstep"]).failed(2, "/proc/lockstep");
    folder.run(["encrypt", "-k", "key", "plain", "-o", ".", "-f"]).failed(2, "is a folder");
    folder.run(["encrypt", "-k", "key", "plain", "-o", "/dev/full"]).failed(2, "cannot write");
    folder.shell("lockstep encrypt -k key plain > /dev/full").failed(2, "cannot write");
    folder.shell("lockstep keygen > /dev/full").failed(2, "cannot write");
    folder.shell("lockstep --help > /dev/full").failed_silently(2);
    folder.run(["encrypt", "-k", "key", "plain", "-o", "/dev/null"]).succeeded();
    assert_eq!(folder.names(), ["key", "plain", "wrong"]);
}

#[test]
fn closed_standard_streams_are_refused_where_they_are_needed() {
    let folder = Folder::with_keys();
    folder.write("plain", data(100_000));
    folder.run(["encrypt", "-k", "key", "plain", "-o", "cipher"]).succeeded();
    for command in
        ["encrypt -k key", "encrypt -k key -o out", "decrypt -k key", "encrypt -k - plain", "inspect -"]
    {
        folder.shell(&format!("lockstep {command} <&-")).failed(2, "standard input is closed");
    }
    for command in [
        "encrypt -k key plain",
        "decrypt -k key cipher",
        "keygen",
        "inspect cipher",
        "--version",
        "--help",
        "man",
    ] {
        folder.shell(&format!("lockstep {command} >&-")).failed(2, "standard output is closed");
    }
    // A standard stream that the command does not need may be closed. No file that the command opens gets the number of a closed stream.
    for closed in ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"] {
        folder.shell(&format!("lockstep encrypt -fk key plain -o out {closed}")).succeeded();
        folder.shell(&format!("lockstep decrypt -fk key out -o back {closed}")).succeeded();
        assert_eq!(folder.read("back"), data(100_000), "{closed}");
    }
    folder.shell("lockstep encrypt -k key none -o other 2>&-").failed_silently(2);
    // A standard stream that is /dev/null does not count as closed.
    folder.shell("lockstep encrypt -k key < /dev/null > empty").succeeded();
    folder.shell("lockstep decrypt -k key empty 0<>/dev/null 1<>/dev/null").succeeded();
    assert_eq!(folder.names(), ["back", "cipher", "empty", "key", "out", "plain", "wrong"]);
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    let folder = Folder::with_keys();
    folder.write("plain", data(10_000_000));
    folder.run(["encrypt", "-k", "key", "plain", "-o", "cipher"]).succeeded();
    for command in [
        "encrypt -k key plain",
        "decrypt -k key cipher",
        "decrypt -k key --range 5:9M cipher",
        "cipher --mode ctr --key-hex 00112233445566778899aabbccddeeff --iv-hex 00112233445566778899aabbccddeeff plain",
        "man",
        "completions bash",
        "devices",
        "--help",
        "help encrypt",
    ] {
        let ended = folder.shell(&format!("set -o pipefail; lockstep {command} | head -c 1 > /dev/null"));
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{command}");
        let ended = folder.shell(&format!("set -o pipefail; {{ sleep 0.1; lockstep {command}; }} | true"));
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{command}");
    }
}

#[test]
fn an_output_that_is_a_key_is_refused() {
    let folder = Folder::with_keys();
    folder.write("p", "plain");
    folder.write("pw", "correct horse\n");
    folder.write("raw", "0123456789abcdef");
    std::os::unix::fs::symlink("key", folder.path("link")).unwrap();
    std::fs::hard_link(folder.path("key"), folder.path("twin")).unwrap();
    let before = folder.read("key");
    for output in ["key", "link", "twin"] {
        folder.run(["encrypt", "-k", "key", "p", "-f", "-o", output]).failed(2, "the output is the key file");
    }
    folder.shell("lockstep encrypt -k key p >> key").failed(2, "the output is the key file");
    assert_eq!(folder.read("key"), before);
    let with_passphrase = ["encrypt", "--passphrase-file", "pw", "p", "-f", "-o", "pw"];
    folder.run(with_passphrase).failed(2, "the output is the passphrase file");
    let raw = ["cipher", "--mode", "ecb", "--key-file", "raw", "p", "-f", "-o", "raw"];
    folder.run(raw).failed(2, "the output is the key file");
}

#[test]
fn standard_input_is_read_once() {
    let folder = Folder::with_keys();
    folder.pipe(["encrypt", "--passphrase-file", "-"], b"secret\n").failed(2, "read once");
    folder.pipe(["cipher", "--mode", "ecb", "--key-file", "-"], &[0; 16]).failed(2, "read once");
}

#[test]
fn a_limit_on_file_sizes_is_an_error_that_leaves_nothing() {
    let folder = Folder::with_keys();
    folder.write("p", data(1 << 20));
    folder.shell("ulimit -f 100; lockstep encrypt -k key p -o out").failed(2, "File too large");
    assert_eq!(folder.names(), ["key", "p", "wrong"]);
}

#[test]
fn a_summary_that_cannot_be_written_is_not_a_failure() {
    let folder = Folder::with_keys();
    folder.write("p", "plain");
    folder.shell("lockstep encrypt -k key p -o out --json 2>/dev/full").succeeded();
    folder.run(["decrypt", "-k", "key", "out", "-o", "back"]).succeeded();
    assert_eq!(folder.read("back"), b"plain");
}

#[test]
fn only_verified_chunks_are_released() {
    const CHUNK: usize = 16384;
    let folder = Folder::with_keys();
    let plain = data(70 * CHUNK);
    folder.write("p", &plain);
    folder.run(["encrypt", "-k", "key", "p", "-o", "e"]).succeeded();
    let mut damaged = folder.read("e");
    // Chunk 40 is not in the first piece. The pieces before the piece of chunk 40 are written; this piece is not.
    damaged[56 + 40 * (CHUNK + 16) + 5] ^= 1;
    let ended = folder.pipe(["decrypt", "-k", "key"], &damaged).failed(1, "chunk 40");
    assert!(!ended.stdout.is_empty() && ended.stdout.len() <= 40 * CHUNK, "{} bytes", ended.stdout.len());
    assert!(plain.starts_with(&ended.stdout));
}
