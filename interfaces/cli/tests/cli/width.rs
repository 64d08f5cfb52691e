//! Lines of reports and messages have at most 80 characters, also if the output is a pipe.

use crate::common::*;

/// Panics if a line has more than 80 characters.
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
    for args in ["devices", "selftest", "calibrate", "inspect cipher", "inspect key"] {
        let mut command = folder.command(args.split(' '));
        // A separate cache, which has measurements of only one kernel: the one that every processor can run.
        command.env("XDG_CACHE_HOME", folder.path("cache"));
        if args == "calibrate" {
            command.args(["--kernel", "cpu/soft"]);
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
    let names: Vec<_> = names.map(|line| line.split_whitespace().next().unwrap()).collect();
    assert!(names.len() > 10, "{names:?}");
    // `lab` is a separate program, and `help` has no help text of its own.
    for name in names.into_iter().filter(|name| !["help", "lab"].contains(name)) {
        for form in ["-h", "--help"] {
            let ended = folder.run([name, form]).succeeded();
            fits(&format!("{name} {form}"), ended.text());
        }
    }
}
