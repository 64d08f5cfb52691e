//! No branch and no address of the default kernels depends on secrets. Valgrind's memcheck runs the example `leak_probe`,
//! in which keys and data are marked undefined. The controls leak on purpose and must be reported.
//!
//! The probe is built with `--release`, since other profiles compile to other branches. `LOCKSTEP_LEAK_PROBE` may name an
//! existing build (`tools/leak-test.sh` sets it).
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The exit status of memcheck if it has reported errors.
const REPORTED: i32 = 9;

/// True if valgrind is installed. If not, prints a notice, or fails if `CI` is set.
fn has_valgrind() -> bool {
    if Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return true;
    }
    let why = "NOT TESTED: secrets in branches and addresses: valgrind is missing (apt-get install valgrind)";
    assert!(std::env::var_os("CI").is_none(), "{why}");
    // `eprintln!` would be captured by the test harness.
    let _ = writeln!(std::io::stderr(), "{why}");
    false
}

/// Path of the probe, which is built once for all tests.
fn probe() -> &'static PathBuf {
    static PROBE: OnceLock<PathBuf> = OnceLock::new();
    PROBE.get_or_init(|| {
        if let Some(path) = std::env::var_os("LOCKSTEP_LEAK_PROBE") {
            return path.into();
        }
        let build = Command::new(env!("CARGO"))
            .args(["build", "--release", "--package", "lockstep-cpu", "--example", "leak_probe"])
            .arg("--message-format=json")
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo starts");
        assert!(build.status.success(), "{}", String::from_utf8_lossy(&build.stderr));
        let messages = String::from_utf8(build.stdout).expect("JSON is UTF-8");
        let executable = messages.lines().filter(|line| line.contains("\"leak_probe\"")).find_map(|line| {
            let (path, _) = line.split_once("\"executable\":\"")?.1.split_once('"')?;
            Some(PathBuf::from(path))
        });
        executable.expect("cargo reports the path of the example")
    })
}

fn valgrind(arguments: &[&str]) -> Output {
    Command::new("valgrind")
        .args(["--quiet", &format!("--error-exitcode={REPORTED}"), "--error-limit=no"])
        .arg(probe())
        .args(arguments)
        .output()
        .expect("valgrind starts")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// Asserts that memcheck reports nothing.
fn silent(arguments: &[&str]) {
    if has_valgrind() {
        let output = valgrind(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}:\n{}", text(&output));
    }
}

/// Asserts that memcheck reports `what`.
fn reported(arguments: &[&str], what: &str) {
    if has_valgrind() {
        let output = valgrind(arguments);
        assert_eq!(
            output.status.code(),
            Some(REPORTED),
            "{arguments:?} leaks, but is not reported:\n{}",
            text(&output)
        );
        assert!(text(&output).contains(what), "{arguments:?}:\n{}", text(&output));
    }
}

#[test]
#[ignore = "needs a release build: make leak-test"]
fn soft_is_constant_time() {
    // Valgrind does not support AVX-512, so AVX2 has the widest registers that it can run. If the processor lacks a
    // width, the next narrower width is tested instead.
    for widest in ["Portable", "Ssse3", "Avx2"] {
        silent(&[&format!("cpu/soft@{widest}")]);
    }
}

#[test]
#[ignore = "needs a release build: make leak-test"]
fn aesni_is_constant_time() {
    if !std::arch::is_x86_feature_detected!("aes") {
        let _ = writeln!(std::io::stderr(), "NOT TESTED: this processor has no AES-NI");
        return;
    }
    silent(&["cpu/aesni"]);
}

#[test]
#[ignore = "needs a release build: make leak-test"]
fn the_portable_key_expansion_is_constant_time() {
    silent(&["core"]);
}

/// The program branches on the verdict of each message, so memcheck reports these branches. The probe checks that
/// their number is constant.
#[test]
#[ignore = "needs a release build: make leak-test"]
fn verdicts_do_not_depend_on_the_place_of_the_fault() {
    if !has_valgrind() {
        return;
    }
    let run = |what| {
        let output =
            Command::new("valgrind").args(["--quiet", "--error-limit=no"]).arg(probe()).arg(what).output();
        output.expect("valgrind starts")
    };
    let output = run("verdicts");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let control = run("early-exit");
    assert_eq!(control.status.code(), Some(REPORTED), "the control was not reported:\n{}", text(&control));
    assert!(text(&control).contains("depend on the place of the fault"), "{}", text(&control));
}

#[test]
#[ignore = "needs a release build: make leak-test"]
fn a_table_lookup_is_reported() {
    reported(&["table"], "Use of uninitialised value");
}

#[test]
#[ignore = "needs a release build: make leak-test"]
fn a_branch_is_reported() {
    reported(&["branch"], "Conditional jump or move depends on uninitialised value");
}
