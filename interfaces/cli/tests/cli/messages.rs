//! Help and messages, compared with snapshots. `SNAPSHOTS=overwrite cargo test -p lockstep-cli` updates them.

use snapbox::{assert_data_eq, file};

use crate::common::*;

/// The command line, the output and the exit code of a command.
fn output_of(folder: &Folder, args: &str) -> String {
    let ended = folder.run(args.split_whitespace());
    let text = format!("{}{}", ended.text(), ended.stderr);
    format!("$ lockstep {args}\n{text}? {}\n\n", ended.code)
}

#[test]
fn help() {
    let folder = Folder::new();
    let commands = [
        "",
        "keygen ",
        "encrypt ",
        "decrypt ",
        "inspect ",
        "cipher ",
        "devices ",
        "selftest ",
        "bench ",
        "picture ",
        "openssl-conf ",
        "completions ",
        "man ",
    ];
    let all: String =
        commands.iter().map(|command| output_of(&folder, &format!("{command}--help"))).collect();
    assert_data_eq!(all, file!["snapshots/help.txt"].raw());
}

#[test]
fn errors() {
    let folder = Folder::new();
    folder.write("key", format!("lockstep-key-256 {}\n", "5a".repeat(32)));
    folder.shell("chmod 600 key").succeeded();
    folder.write("other", format!("lockstep-key-128 {}\n", "a5".repeat(16)));
    folder.shell("chmod 644 other").succeeded();
    folder.write("plain", "hello");
    folder.write("empty", "");
    folder.write("damaged", data(1000));
    folder.write("envelope", "lockstep.file/v1\n\u{1}\u{1}\u{1}\u{1}");
    folder.shell("mkdir folder && cp plain folder").succeeded();
    let cases = [
        "",
        "frobnicate",
        "encrypt plain",
        "encrypt -k key --bogus",
        "encrypt -k key -p plain",
        "encrypt -k key nothing",
        "encrypt -k nothing plain",
        "encrypt -k plain plain",
        "encrypt -k key plain -o empty",
        "encrypt -k key plain -o plain",
        "encrypt -k key plain -o nowhere/out",
        "encrypt -k key plain -o /dev/full",
        "encrypt -r age1bogus plain",
        "encrypt -r bogus plain",
        "encrypt -R empty plain",
        "encrypt -k other plain -o /dev/null",
        "encrypt -k key folder",
        "encrypt -k key -r folder",
        "encrypt -k key -r folder -o new",
        "encrypt -k key -rO new folder",
        "encrypt -rf plain",
        "encrypt -k key -r -O folder/new",
        "encrypt -k key plain new",
        "encrypt -k key plain folder",
        "encrypt -k key plain -o folder",
        "encrypt -k key -O new folder",
        "encrypt -k key -O plain folder -r",
        "encrypt -k folder plain",
        "encrypt -k - plain",
        "encrypt -k key plain --resume",
        "encrypt -k key plain --threads lots",
        "encrypt -k key plain --threads 0",
        "encrypt -k key plain --verify some",
        "encrypt -R nothing plain",
        "encrypt -R folder plain",
        "encrypt --passphrase-file folder plain",
        "encrypt --passphrase-file empty plain",
        "encrypt --age plain",
        "encrypt --age -k key plain",
        "encrypt --age -R empty --threads 2 --device cpu plain",
        "encrypt --age -r age1bogus plain",
        "encrypt --age -R empty -O new plain",
        "encrypt --age --context a -R empty plain",
        "decrypt damaged",
        "decrypt -k key folder",
        "decrypt -k key plain new",
        "decrypt -k key plain -o folder",
        "decrypt -k key -r -O new folder",
        "decrypt --max-work-factor 99 plain",
        "decrypt -k key --range 4K:lots damaged",
        "decrypt --sparse sometimes plain",
        "decrypt -k key empty",
        "decrypt -k key damaged",
        "decrypt -k key envelope",
        "decrypt -k key --range 5 damaged",
        "inspect empty",
        "inspect folder",
        "inspect nothing",
        "cipher --mode cbc --key-hex 00 plain",
        "cipher --mode ecb --key-hex 00 plain",
        "cipher --mode gcm --tag-len x --key-hex 00 plain",
        "cipher --mode ecb --key-file folder plain",
        "cipher --mode ecb --key-file key plain",
        "cipher --mode ecb --key-hex 00 folder",
        "bench --rounds lots",
        "bench --messages 0",
        "bench --threads lots",
        "bench --seconds lots",
        "bench --quick --openssl plain",
        "keygen -o key",
        "keygen -o folder",
        "picture --mode ecb folder new.png",
        "picture --mode ecb plain new.png",
        "man --out-dir plain",
        "openssl-conf --module nothing.so",
        "openssl-conf --module .",
        "openssl-conf --module plain --device abacus",
    ];
    let all: String = cases.iter().map(|case| output_of(&folder, case)).collect();
    assert_data_eq!(all, file!["snapshots/errors.txt"].raw());
}

/// If several inputs are given without -O, and the device does not exist, the message is about the inputs.
#[test]
fn several_inputs_are_refused_before_the_device_is_searched() {
    let folder = Folder::with_keys();
    for command in ["encrypt", "decrypt"] {
        let ended = folder.run([command, "-k", "key", "a", "b", "--device", "nosuch:0"]);
        ended.failed(2, "'a' and 'b' are both inputs");
    }
}

/// A message about a value of the environment names the variable.
#[test]
fn a_wrong_variable_is_named() {
    let folder = Folder::with_keys();
    folder.write("plain", "hello");
    for args in ["encrypt -k key plain -o out", "devices", "selftest"] {
        for variable in ["LOCKSTEP_DEVICE", "LOCKSTEP_KERNEL", "LOCKSTEP_THREADS", "LOCKSTEP_VERIFY"] {
            let mut command = folder.command(args.split(' '));
            let ended = Ended::from(command.env(variable, "nonsense").output().unwrap());
            let ended = ended.failed(2, variable);
            assert!(ended.stderr.contains("nonsense"), "{}", ended.stderr);
        }
    }
    folder
        .run(["encrypt", "-k", "key", "plain", "-o", "out", "--kernel", "nonsense"])
        .failed(2, "the name of a kernel begins with");
    assert!(!folder.has("out"));
}

/// A context may have any bytes. If another value is not UTF-8, the message has only its position, because the value can be a key.
#[test]
fn arguments_that_are_not_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::with_keys();
    folder.write("plain", "hello");
    let context = std::ffi::OsStr::from_bytes(b"name \xff");
    let with = |args: &[&str], value: &std::ffi::OsStr| {
        folder.command(args).arg("--context").arg(value).output().map(Ended::from).unwrap()
    };
    with(&["encrypt", "-k", "key", "plain", "-o", "cipher"], context).succeeded();
    assert_eq!(with(&["decrypt", "-k", "key", "cipher"], context).succeeded().stdout, b"hello");
    with(&["decrypt", "-k", "key", "cipher"], "name".as_ref()).failed(1, "wrong key or context");
    let ended = Ended::from(folder.command(["encrypt", "plain", "-r"]).arg(context).output().unwrap());
    ended.failed(2, "argument 4 is not UTF-8");
    for json in [&[][..], &["--json"]] {
        let mut command = folder.command(["encrypt", "-k", "key", "--context"]);
        command.arg(context).args(json).arg("--threads").arg(context).arg(context);
        let ended = Ended::from(command.output().unwrap());
        let number = 7 + json.len();
        assert!(ended.stderr.contains(&format!("argument {number} is not UTF-8")), "{}", ended.stderr);
        assert!(!ended.stderr.contains("xff"), "{}", ended.stderr);
    }
}

/// The examples of the help, as they are printed.
#[test]
fn examples_of_the_help_run() {
    let folder = Folder::new();
    folder.shell(
        "mkdir -p home/.ssh photos; echo 1 > photos/1; echo notes > notes.txt; head -c 32 /dev/zero > raw.key; \
         head -c 50000 /dev/zero > report.pdf; head -c 5000 /dev/zero > data; chmod 600 raw.key",
    );
    let picture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/modes/penguin.png");
    std::fs::copy(picture, folder.path("photo.png")).unwrap();
    if !have("ssh-keygen") {
        return;
    }
    folder.shell("ssh-keygen -q -t ed25519 -N '' -f home/.ssh/id_ed25519").succeeded();
    let mut count = 0;
    // These examples are left out: `bench` measures for a long time, and the configuration of OpenSSL needs an installed module.
    for command in
        "keygen encrypt decrypt inspect cipher devices selftest calibrate picture completions man".split(' ')
    {
        let help = folder.run([command, "--help"]).succeeded();
        let (_, examples) = help.text().split_once("\nExamples:\n").unwrap_or_else(|| panic!("{command}"));
        let script = format!("set -eo pipefail; export HOME=$PWD/home; rm -f encrypted.png\n{examples}");
        folder.shell(&script).succeeded();
        count += examples.lines().count();
    }
    assert!(count > 20, "{count}");
    for name in [
        "report.pdf.enc",
        "report.pdf.age",
        "enc/photos/1.enc",
        "back/enc/notes.txt",
        "part",
        "man1/lockstep.1",
    ] {
        assert!(folder.has(name), "{name}");
    }
}
