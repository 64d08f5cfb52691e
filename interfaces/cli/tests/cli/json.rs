//! Errors with `--json`: one object on standard error, and nothing else.

use serde_json::Value;

use crate::common::*;

#[track_caller]
fn error(ended: Ended, code: i32, kind: &str) -> Value {
    assert_eq!(ended.code, code, "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{:?}", ended.stderr);
    let report: Value = serde_json::from_str(&ended.stderr).unwrap_or_else(|_| panic!("{:?}", ended.stderr));
    assert_eq!(report["exit_code"], code);
    assert_eq!(report["kind"], kind, "{report}");
    assert!(!report["error"].as_str().unwrap().starts_with("lockstep: "), "{report}");
    report
}

#[test]
fn errors_are_objects() {
    let folder = Folder::with_keys();
    folder.write("plain", data(1000));
    folder.write("damaged", data(1000));
    let run = |args: &str| folder.run(args.split(' '));
    let report = error(run("decrypt --json -k key damaged -o out"), 1, "not_authentic");
    assert!(report["error"].as_str().unwrap().contains("wrong key or context"));
    error(run("encrypt -k key nothing --json"), 2, "io");
    error(run("encrypt -k key plain -o plain --json"), 2, "failed");
    error(run("encrypt -k key plain -o damaged --json"), 2, "exists");
    error(run("encrypt plain --json"), 2, "failed");
    error(run("devices --device abacus --json"), 2, "device");
    error(run("inspect --json nothing"), 2, "io");
    error(run("selftest --kernel cpu/abacus --json"), 2, "device");
    // The parser reports its errors as JSON too, even for a command that does not have the option `--json`.
    let report = error(run("encrypt --json -k key --bogus"), 2, "usage");
    assert!(report["error"].as_str().unwrap().contains("--bogus"), "{report}");
    error(run("frobnicate --json"), 2, "usage");
    error(run("keygen --json"), 2, "usage");
    // After `--`, the argument `--json` is the name of a file.
    run("encrypt -k key -- --json").failed(2, "cannot open '--json'");
    // If an input has an error, `inspect` prints the report to standard output and the error to standard error.
    folder.write("cut", &data(1000)[..60]);
    let ended = run("inspect --json cut");
    assert_eq!(ended.json()["intact_length"], false);
    error(ended, 1, "not_authentic");
}

#[test]
fn warnings_are_part_of_the_object() {
    let folder = Folder::with_keys();
    folder.write("plain", data(1000));
    std::fs::set_permissions(folder.path("key"), std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .unwrap();
    let ended =
        folder.run(["encrypt", "-k", "key", "plain", "-o", "cipher", "--json", "--explain"]).succeeded();
    let report: Value = serde_json::from_str(&ended.stderr).unwrap();
    assert!(
        report["warnings"][0].as_str().unwrap().contains("other users can read or change the key file"),
        "{report}"
    );
    assert!(report["explained"].as_array().unwrap().len() > 1, "{report}");
    std::fs::write(folder.path("cipher"), data(1000)).unwrap();
    let report = error(folder.run(["decrypt", "-k", "key", "cipher", "--json"]), 1, "not_authentic");
    assert!(report["warnings"][0].as_str().unwrap().contains("other users can read"), "{report}");
    let quiet = folder.run(["decrypt", "-k", "key", "cipher", "--json", "-q"]);
    assert!(error(quiet, 1, "not_authentic").get("warnings").is_none());
}

#[test]
fn many_files_give_one_json_object() {
    let folder = Folder::with_keys();
    folder.write("a", "a");
    folder.write("b", "b");
    folder.run(["encrypt", "-k", "key", "-O", "enc", "a", "b"]).succeeded();
    let mut damaged = folder.read("enc/a.enc");
    *damaged.last_mut().unwrap() ^= 1;
    folder.write("enc/a.enc", damaged);
    folder.shell("chmod 644 key").succeeded();
    let args = ["decrypt", "-k", "key", "-O", "back", "--json", "--explain", "enc/a.enc", "enc/b.enc"];
    let ended = folder.run(args);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let report: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
    assert_eq!((&report["exit_code"], &report["kind"]), (&1.into(), &"not_authentic".into()));
    assert_eq!(report["error"], "1 file failed");
    assert_eq!(report["failed"][0]["path"], "enc/a.enc");
    assert_eq!(report["files"], 1);
    assert!(
        report["explained"].is_array() && report["warnings"][0].as_str().unwrap().contains("key file"),
        "{report}"
    );
    let ended = folder.run(["decrypt", "-k", "key", "-O", "back", "-f", "--json", "enc/b.enc"]).succeeded();
    let report: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
    assert!(report["error"].is_null() && report["warnings"].is_array(), "{report}");
}
