//! Errors under `--json`: one object on standard error, and nothing else there.

use serde_json::Value;

use crate::common::*;

#[track_caller]
fn error(ended: Ended, code: i32, kind: &str) -> Value {
    assert_eq!(ended.code, code, "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{:?}", ended.stderr);
    let told: Value = serde_json::from_str(&ended.stderr).unwrap_or_else(|_| panic!("{:?}", ended.stderr));
    assert_eq!(told["exit_code"], code);
    assert_eq!(told["kind"], kind, "{told}");
    assert!(!told["error"].as_str().unwrap().starts_with("lockstep: "), "{told}");
    told
}

#[test]
fn errors_are_objects() {
    let folder = Folder::with_keys();
    folder.write("plain", data(1000));
    folder.write("damaged", data(1000));
    let run = |args: &str| folder.run(args.split(' '));
    let told = error(run("decrypt --json -k key damaged -o out"), 1, "not_authentic");
    assert!(told["error"].as_str().unwrap().contains("wrong key or context"));
    error(run("encrypt -k key nothing --json"), 2, "io");
    error(run("encrypt -k key plain -o plain --json"), 2, "failed");
    error(run("encrypt -k key plain -o damaged --json"), 2, "exists");
    error(run("encrypt plain --json"), 2, "failed");
    error(run("devices --device abacus --json"), 2, "device");
    error(run("inspect --json nothing"), 2, "io");
    error(run("selftest --kernel cpu/abacus --json"), 2, "device");
    // What the parser refuses, also for a command without the option.
    let told = error(run("encrypt --json -k key --bogus"), 2, "usage");
    assert!(told["error"].as_str().unwrap().contains("--bogus"), "{told}");
    error(run("frobnicate --json"), 2, "usage");
    error(run("keygen --json"), 2, "usage");
    // A file may have any name.
    run("encrypt -k key -- --json").failed(2, "cannot open '--json'");
    // A report with an error: both are told, where each belongs.
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
    let told: Value = serde_json::from_str(&ended.stderr).unwrap();
    assert!(told["warnings"][0].as_str().unwrap().contains("others can read the key file"), "{told}");
    assert!(told["explained"].as_array().unwrap().len() > 1, "{told}");
    std::fs::write(folder.path("cipher"), data(1000)).unwrap();
    let told = error(folder.run(["decrypt", "-k", "key", "cipher", "--json"]), 1, "not_authentic");
    assert!(told["warnings"][0].as_str().unwrap().contains("others can read"), "{told}");
    let quiet = folder.run(["decrypt", "-k", "key", "cipher", "--json", "-q"]);
    assert!(error(quiet, 1, "not_authentic").get("warnings").is_none());
}
