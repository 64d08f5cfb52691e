//! Programs in C and C++: the test program, alone, under AddressSanitizer and under valgrind; and the example of docs/c.md.

use std::path::{Path, PathBuf};
use std::process::Command;

use lockstep_reference::cobblestone::{self, Aead};

use crate::library::{self, Linked, compile, run};
use crate::vectors;

const TEST_PROGRAM: [&str; 9] = [
    "tests/c/main.c",
    "tests/c/aead.c",
    "tests/c/cipher.c",
    "tests/c/format.c",
    "tests/c/parquet.c",
    "tests/c/misuse.c",
    "tests/c/options.c",
    "tests/c/secrets.c",
    "tests/c/device.c",
];

/// A folder for the program and its files.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn test_program(folder: &Path, options: &[&str], linked: Linked) -> PathBuf {
    let plain = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../library/parquet/tests/data/plain.parquet");
    std::fs::copy(plain, folder.join("plain.parquet")).expect("a file for the tests of Parquet");
    compile(
        folder,
        "program",
        &TEST_PROGRAM,
        &[&["-std=c11", "-D_POSIX_C_SOURCE=200809L"], options].concat(),
        linked,
    )
}

/// The command that runs the test program, without the variables that the user may have set.
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for name in ["LOCKSTEP_DEVICE", "LOCKSTEP_KERNEL", "LOCKSTEP_THREADS", "LOCKSTEP_VERIFY"] {
        command.env_remove(name);
    }
    command
}

fn assert_passed(mut command: Command) {
    let output = run(&mut command);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("passed"), "{text}");
}

#[test]
fn the_test_program_passes_with_the_shared_library() {
    let folder = folder();
    let program = test_program(folder.path(), &[], Linked::Shared);
    let mut tests = command(&program);
    tests.arg(folder.path());
    assert_passed(tests);
    let printed = run(command(&program).arg("vectors"));
    let printed = String::from_utf8(printed.stdout).unwrap();
    for (printed, expected) in printed.lines().zip(vectors::expected()) {
        assert_eq!(printed, expected);
    }
    assert_eq!(printed.lines().count(), vectors::expected().len());
}

#[test]
fn a_static_program_passes_under_address_sanitizer() {
    let folder = folder();
    let options = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"];
    let program = test_program(folder.path(), &options, Linked::Static);
    let mut tests = command(&program);
    tests.arg(folder.path());
    assert_passed(tests);
}

/// Detects memory errors and leaks. valgrind supports neither VAES nor AVX-512, so the program uses other kernels.
#[test]
fn the_test_program_passes_under_valgrind() {
    let folder = folder();
    let program = test_program(folder.path(), &[], Linked::Shared);
    let mut tests = command(Path::new("valgrind"));
    tests.args([
        "--quiet",
        "--error-exitcode=9",
        "--leak-check=full",
        "--errors-for-leak-kinds=definite,indirect",
    ]);
    tests.arg(&program).arg(folder.path());
    assert_passed(tests);
}

/// The C library has no simulated devices, so the test program reports that it has not tested device memory. `lab/capi` tests device
/// memory on the emulator of GPUs.
#[test]
fn a_simulated_device() {
    let folder = folder();
    let program = test_program(folder.path(), &[], Linked::Shared);
    let output = run(command(&program).arg(folder.path()).arg("cuda:emu"));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("NOT TESTED: no device `cuda:emu`") && text.contains("make lab"), "{text}");
}

#[test]
fn a_program_in_cpp() {
    let folder = folder();
    let program = compile(folder.path(), "use", &["tests/c/use.cc"], &["-std=c++17"], Linked::Shared);
    run(&mut command(&program));
}

/// docs/data.md contains the example that decrypts pages in device memory, without changes. `lab/capi` runs the example.
#[test]
fn the_manual_shows_the_example_for_pages() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(package.join("../../docs/data.md")).unwrap();
    let example = std::fs::read_to_string(package.join("examples/c/parquet_pages.hh")).unwrap();
    assert!(page.contains(&example), "docs/data.md does not contain examples/c/parquet_pages.hh");
}

/// Rust moves a value by copying it, so copies of a key remain on the stack. The functions that make keys must wipe these copies.
#[test]
fn no_keys_on_the_stack() {
    let folder = folder();
    // Lazy binding would save vector registers to the stack at the first call of each function.
    let options = ["-std=c11", "-Wl,-z,now"];
    let program = compile(folder.path(), "stack", &["tests/c/stack.c"], &options, Linked::Shared);
    assert_passed(command(&program));
}

/// A C++ exception in a callback ends the program. It does not pass through the library, and no call returns success after it.
#[test]
fn exceptions_do_not_cross() {
    let folder = folder();
    let program = compile(folder.path(), "throw", &["tests/c/throw.cc"], &["-std=c++17"], Linked::Shared);
    let output = command(&program).output().expect("the program starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "called\n");
    assert_eq!(output.status.code(), None, "a signal ends the program: {}", output.status);
}

/// The reference implementation decrypts the output of the example, and the example reports errors.
#[test]
fn the_example() {
    let folder = folder();
    let program =
        compile(folder.path(), "example", &["examples/c/encrypt_file.c"], &["-std=c99"], Linked::Shared);
    let [key, plain, secret] = ["key", "plain", "secret"].map(|name| folder.path().join(name));
    std::fs::write(&key, format!("lockstep-key-256 {}\n", "ab".repeat(32))).unwrap();
    std::fs::write(&plain, "an example of a file").unwrap();
    let encrypt = || {
        let mut command = command(&program);
        command.arg(&key).arg(&plain).arg(&secret);
        command
    };
    let output = run(&mut encrypt());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "encrypted; it starts with: an example of a \n");
    let message = std::fs::read(&secret).unwrap();
    let opened = cobblestone::open(Aead::Cobblestone256, &[0xab; 32], b"", &message).expect("authentic");
    assert_eq!(opened, b"an example of a file");
    let again = encrypt().output().unwrap();
    let error = String::from_utf8_lossy(&again.stderr);
    assert!(again.status.code() == Some(1) && error.contains("choose another output"), "{error}");
}

/// Checks the library that `make c-library` builds: its symbols have versions, and pkg-config prints all options that a program needs.
#[test]
fn the_library_for_installation() {
    let folder = folder();
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (tree, program) = (folder.path().join("tree"), folder.path().join("example"));
    run(Command::new(package.join("../../tools/c_library.sh")).arg(library::fixed()).args([&tree, &tree]));
    let symbols =
        run(Command::new("nm").args(["-D", "--defined-only"]).arg(tree.join("lib/liblockstep.so.0")));
    let symbols = String::from_utf8(symbols.stdout).unwrap();
    let functions: Vec<_> = symbols.lines().filter(|line| !line.ends_with(" A LOCKSTEP_0.1")).collect();
    assert!(functions.iter().all(|line| line.ends_with("@@LOCKSTEP_0.1")), "{symbols}");
    assert_eq!(functions.len(), library::exported(&library::shared()).len());
    let mut options = Command::new("pkg-config");
    options.env("PKG_CONFIG_PATH", tree.join("lib/pkgconfig")).args(["--cflags", "--libs", "lockstep"]);
    let options = String::from_utf8(run(&mut options).stdout).unwrap();
    let mut compiler = Command::new("cc");
    compiler.arg(package.join("examples/c/encrypt_file.c")).args(options.split_whitespace()).arg("-o");
    run(compiler.arg(&program));
    let help = command(&program).env("LD_LIBRARY_PATH", tree.join("lib")).output().unwrap();
    assert!(String::from_utf8_lossy(&help.stderr).contains("usage"));
}

/// docs/c.md contains the example without changes.
#[test]
fn the_manual_shows_the_example() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(package.join("../../docs/c.md")).unwrap();
    let example = std::fs::read_to_string(package.join("examples/c/encrypt_file.c")).unwrap();
    assert!(page.contains(&example), "docs/c.md does not contain examples/c/encrypt_file.c");
}

/// A process that is killed while it encrypts leaves no file.
#[test]
fn a_killed_program_leaves_no_output() {
    let folder = folder();
    let program = compile(folder.path(), "slow", &["tests/c/slow.c"], &["-std=c11"], Linked::Shared);
    let [plain, secret] = ["plain", "secret"].map(|name| folder.path().join(name));
    std::fs::write(&plain, vec![7; 3 << 20]).unwrap();
    let mut child = command(&program)
        .args([&plain, &secret])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    // The program prints a line when a part is written, and then waits.
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line)
        .unwrap();
    assert_eq!(line, "written\n");
    // As a control, the test checks that a part was written to a file without a name.
    let open = std::fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap();
    let output = open.map(|entry| entry.unwrap().path()).find(|path| {
        std::fs::read_link(path).is_ok_and(|target| target.starts_with(folder.path()) && target != plain)
    });
    assert!(output.expect("the output is open").metadata().unwrap().len() > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    let mut left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    left.retain(|path| *path != plain && *path != program);
    assert!(left.is_empty(), "{left:?}");
}
