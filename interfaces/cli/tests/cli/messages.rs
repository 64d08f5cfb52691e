//! Help and messages, compared with snapshots. `SNAPSHOTS=overwrite cargo test -p lockstep-cli` updates them.

use snapbox::{assert_data_eq, file};

use crate::common::*;

/// The output of a command, after the command line.
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
        "decrypt damaged",
        "decrypt -k key empty",
        "decrypt -k key damaged",
        "decrypt -k key envelope",
        "decrypt -k key --range 5 damaged",
        "inspect empty",
        "cipher --mode cbc --key-hex 00 plain",
        "cipher --mode ecb --key-hex 00 plain",
        "keygen -o key",
        "openssl-conf --module nothing.so",
        "openssl-conf --module .",
        "openssl-conf --module plain --device abacus",
    ];
    let all: String = cases.iter().map(|case| output_of(&folder, case)).collect();
    assert_data_eq!(all, file!["snapshots/errors.txt"].raw());
}
