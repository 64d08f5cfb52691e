//! Lines that the program prints for a reader have at most 80 characters, whether the output is a terminal or a pipe.

use crate::common::*;

/// Panics if a line of `text` has more than 80 characters. Reports whose computation takes long are checked by the tests that compute them.
#[track_caller]
pub(crate) fn fits(what: &str, text: &str) {
    assert!(!text.is_empty(), "{what} prints nothing");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{what}: {} characters: {line}", line.chars().count());
    }
}

#[test]
fn reports_fit() {
    let folder = Folder::new();
    for args in [
        "devices --device spu:3",
        "lab cell trace ctr4",
        "lab qpu trace bitslice --mode cbc-decrypt --clocks 20000",
        "lab cuda --device cuda:emu --largest 16K",
    ] {
        let mut command = folder.command(args.split(' '));
        command.env("XDG_CACHE_HOME", folder.path("cache"));
        fits(args, Ended::from(command.output().unwrap()).succeeded().text());
    }
}

#[test]
fn help_fits() {
    let folder = Folder::new();
    for name in [
        "",
        "lab ",
        "lab cell ",
        "lab cell trace ",
        "lab cell asm ",
        "lab cuda ",
        "lab g80 ",
        "lab geforce ",
        "lab geforce measure ",
        "lab qpu ",
        "lab qpu trace ",
        "lab qpu asm ",
        "lab qpu run ",
    ] {
        for form in ["-h", "--help"] {
            let line = format!("{name}{form}");
            fits(&line, folder.run(line.split(' ')).succeeded().text());
        }
    }
}
