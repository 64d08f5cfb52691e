//! Lines for terminals have at most 80 characters, on a pipe as well.

use crate::common::*;

/// Panics if a line is longer. Reports that take long are checked by the tests that run them anyway.
#[track_caller]
pub(crate) fn fits(what: &str, text: &str) {
    assert!(!text.is_empty(), "{what} prints nothing");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{what}: {} characters: {line}", line.chars().count());
    }
}

#[test]
fn reports_fit() {
    let folder = Folder::with_keys();
    folder.write("plain", data(100_000));
    folder.run(["encrypt", "-k", "key", "plain", "-o", "cipher"]).succeeded();
    for args in [
        "devices",
        "devices --device spu:3",
        "selftest",
        "calibrate",
        "inspect cipher",
        "inspect key",
        "lab cell trace ctr4",
        "lab qpu trace bitslice --mode cbc-decrypt --clocks 20000",
        "lab cuda --device cuda:emu --largest 16K",
    ] {
        let mut command = folder.command(args.split(' '));
        // A separate cache, which has measurements of only one kernel: the one with the fewest operations.
        command.env("XDG_CACHE_HOME", folder.path("cache"));
        if args == "calibrate" {
            command.args(["--kernel", "cpu/aws-lc"]);
        }
        fits(args, Ended::from(command.output().unwrap()).succeeded().text());
    }
    let explained = folder.run(["encrypt", "-k", "key", "plain", "-o", "again", "--explain"]).succeeded();
    fits("--explain", &explained.stderr);
}

#[test]
fn help_fits() {
    let folder = Folder::new();
    let all = folder.run(["--help"]).succeeded();
    fits("--help", all.text());
    let commands = all.text().lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = commands.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("    "));
    let mut names: Vec<_> = names.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect();
    assert!(names.len() > 10, "{names:?}");
    names.extend(
        [
            "lab cell",
            "lab cell trace",
            "lab cell asm",
            "lab cuda",
            "lab geforce",
            "lab geforce measure",
            "lab qpu",
            "lab qpu trace",
            "lab qpu asm",
        ]
        .map(String::from),
    );
    for name in names.iter().filter(|name| *name != "help") {
        for form in ["-h", "--help"] {
            let ended = folder.run(name.split(' ').chain([form])).succeeded();
            fits(&format!("{name} {form}"), ended.text());
        }
    }
}
