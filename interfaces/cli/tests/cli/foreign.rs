//! Tests of `decrypt` and `inspect` with files in the formats of other programs.

use crate::common::*;

/// Checks that a file of another format is named, whether a key is given or not. Without a key, the exit code is `code`.
#[track_caller]
fn named_with_code(folder: &Folder, file: &str, name: &str, code: i32) {
    folder.run(["decrypt", "-k", "key", file, "-o", "out"]).failed(1, name);
    folder.run(["decrypt", "-k", "key", "--range", "0:1", file, "-o", "out"]).failed(1, name);
    folder.run(["decrypt", file, "-o", "out"]).failed(code, name);
    let ended = folder.run(["inspect", file]).failed(code, name);
    // The lines of the report are wrapped.
    let report = ended.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains(name) && !report.contains("chunks"), "{report}");
    let ended = folder.run(["inspect", "--json", file]).failed_as_json(code, name);
    assert_eq!(ended.json()["kind"], "other");
    assert!(!folder.has("out"));
}

#[track_caller]
fn named(folder: &Folder, file: &str, name: &str) {
    named_with_code(folder, file, name, 2);
}

#[test]
fn files_of_other_programs_are_named() {
    let folder = Folder::with_keys();
    folder.write("notes", data(300).iter().map(|byte| format!("{byte:02x}\n")).collect::<String>());
    folder.write("pw", "secret\n");
    folder.shell("tar cf tar notes; gzip < notes > gzip; head -c 50 gzip > short").succeeded();
    named(&folder, "notes", "text");
    named(&folder, "tar", "a tar archive");
    named(&folder, "gzip", "a gzip file");
    named(&folder, "short", "a gzip file");
    // Without a key, the command reads only as much of a pipe as it needs: it ends although the writer of this pipe sleeps.
    let pipe = "timeout 30 lockstep decrypt < <(head -c 20 gzip; exec sleep 60 2> /dev/null)";
    folder.shell(pipe).failed(2, "a gzip file");
    let cases = [
        ("openssl", "openssl enc -aes-256-cbc -pbkdf2 -pass file:pw -in notes", "a file of `openssl enc`"),
        ("openssl", "openssl enc -a -aes-256-cbc -pbkdf2 -pass file:pw -in notes", "`openssl enc -a`"),
        (
            "python3",
            "python3 -c 'import zipfile; zipfile.ZipFile(\"zip\", \"w\").write(\"notes\")'; cat zip",
            "a zip archive",
        ),
        ("xz", "xz < notes", "an xz file"),
        ("bzip2", "bzip2 < notes", "a bzip2 file"),
        ("zstd", "zstd < notes", "a Zstandard file"),
    ];
    for (program, script, name) in cases {
        if have(program) {
            folder.shell(&format!("{{ {script}; }} > other")).succeeded();
            named(&folder, "other", name);
        }
    }
    if have("gpg") {
        // gpg starts an agent, whose socket is in gpg's home folder. So gpg gets a temporary home folder, whose path is short enough for
        // a socket.
        let home = tempfile::Builder::new().prefix("gpg").tempdir_in("/tmp").unwrap();
        let gpg = format!(
            "gpg --homedir {} --batch --quiet --pinentry-mode loopback --passphrase-file pw",
            home.path().display()
        );
        for armor in ["", "-a"] {
            folder.shell(&format!("{gpg} {armor} -o - -c notes > other")).succeeded();
            named(&folder, "other", "an OpenPGP message");
        }
        folder.shell(&format!("gpgconf --homedir {} --kill all", home.path().display())).succeeded();
    }
}

#[test]
fn converted_and_forwarded_files_are_named() {
    let folder = Folder::with_keys();
    let armored = b"-----BEGIN AGE ENCRYPTED FILE-----\nYWdl\n-----END AGE ENCRYPTED FILE-----\n";
    folder.write("mail", [b"From: me\nSubject: a file\n\n", &armored[..]].concat());
    named(&folder, "mail", "remove the text before `-----BEGIN AGE ENCRYPTED FILE-----`");
    // PowerShell's `>` writes the output of a program in UTF-16.
    for start in ["age-encryption.org/v1\n-> X25519", "lockstep.file/v1\n"] {
        let utf16 = "\u{feff}".encode_utf16().chain(start.encode_utf16()).flat_map(u16::to_le_bytes);
        folder.write("converted", utf16.collect::<Vec<u8>>());
        named_with_code(&folder, "converted", "converted from bytes to text", 1);
    }
    folder.write("changed", [b"=", &armored[1..]].concat());
    named_with_code(&folder, "changed", "a damaged first line", 1);
    folder.run(["decrypt", "-k", "key", "key", "-o", "out"]).failed(1, "a Lockstep key file");
    folder.write("empty", "");
    folder.run(["decrypt", "empty"]).failed(1, "empty");
}

/// Unknown bytes are described as a possible message only if a message can have their length.
#[test]
fn unknown_bytes_are_not_described_as_a_message() {
    let folder = Folder::with_keys();
    folder.write("unknown", data(1000));
    let report = folder.run(["inspect", "unknown"]).succeeded();
    assert!(
        report.text().contains("possibly a bare message") && report.text().contains("if this is a message")
    );
    folder.run(["decrypt", "unknown"]).failed(2, "it is not a Lockstep file, or its start was damaged");
    folder.run(["decrypt", "-k", "key", "unknown"]).failed(1, "or it is not a Lockstep file");
    // No message is this short.
    for len in [60, 55, 5] {
        folder.write("unknown", data(len));
        folder.run(["inspect", "unknown"]).failed(1, "not a Lockstep file, or it is incomplete");
        folder.run(["decrypt", "-k", "key", "unknown"]).failed(1, "is not a Lockstep file");
    }
}
