//! Tests device memory in C and C++, on the emulator of GPUs. Like memory of CUDA, the emulator's memory has addresses.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The path of a file in the folder of the C interface.
fn interface(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interfaces/capi").join(name)
}

/// Compiles a program with the C interface of the laboratory, and runs it on the emulator.
fn assert_passed(compiler: &str, sources: &[&str], options: &[&str], arguments: &[&Path]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("program");
    // Cargo builds the library of this package next to the test executable.
    let library = std::env::current_exe().expect("a path").with_file_name("liblockstep_lab_capi.so");
    let mut command = Command::new(compiler);
    command.args(["-g", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror", "-DLOCKSTEP_LAB"]).args(options);
    command.arg("-I").arg(interface("include")).arg("-o").arg(&program);
    command.args(sources.iter().map(|source| interface(source))).arg(&library);
    command.arg(format!("-Wl,-rpath,{}", library.with_file_name("").display())).arg("-lpthread");
    assert!(command.status().expect("a compiler").success(), "{command:?}");
    let mut command = Command::new(&program);
    for name in ["LOCKSTEP_DEVICE", "LOCKSTEP_KERNEL", "LOCKSTEP_THREADS", "LOCKSTEP_VERIFY"] {
        command.env_remove(name);
    }
    let output = command.args(arguments).arg("cuda:emu").output().expect("the program");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("passed"), "{}: {text}{errors}", output.status);
}

#[test]
fn device_memory() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plain = interface("../../library/parquet/tests/data/plain.parquet");
    std::fs::copy(plain, folder.path().join("plain.parquet")).expect("a file for the tests of Parquet");
    let names = ["main", "aead", "cipher", "format", "parquet", "misuse", "options", "secrets", "device"];
    let sources = names.map(|name| format!("tests/c/{name}.c"));
    let sources = sources.each_ref().map(String::as_str);
    assert_passed("cc", &sources, &["-std=c11", "-D_POSIX_C_SOURCE=200809L"], &[folder.path()]);
}

/// The example of docs/data.md decrypts pages in the memory of a device.
#[test]
fn pages_of_parquet_in_cpp() {
    let options = ["-std=c++17", "-Wno-missing-field-initializers"];
    assert_passed("c++", &["tests/c/pages.cc"], &options, &[]);
}
