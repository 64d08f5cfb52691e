//! The built libraries, and programs that are compiled with them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder that contains the header.
pub(crate) fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include")
}

/// The path of the shared library. Cargo builds the library of this package next to the test executable.
pub(crate) fn shared() -> PathBuf {
    std::env::current_exe().expect("a path").with_file_name("liblockstep_c.so")
}

/// The path of the static library.
pub(crate) fn fixed() -> PathBuf {
    std::env::current_exe().expect("a path").with_file_name("liblockstep_c.a")
}

/// The names of the functions that a shared library exports.
pub(crate) fn exported(library: &Path) -> Vec<String> {
    let symbols = run(Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(library));
    let text = String::from_utf8(symbols.stdout).expect("names are ASCII");
    // The name of a symbol may have a version: `name@@VERSION`. The version itself is an absolute symbol.
    let symbols = text.lines().filter_map(|line| {
        let (name, rest) = line.split_once(' ')?;
        (!rest.starts_with('A')).then(|| name.split('@').next().unwrap_or(name).to_owned())
    });
    let mut names: Vec<_> = symbols.collect();
    names.sort_unstable();
    names
}

/// Runs a program, which must succeed.
pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// The library that a program is linked with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Linked {
    Shared,
    Static,
}

/// Compiles a program from sources of this package, and returns its path in `folder`.
pub(crate) fn compile(
    folder: &Path,
    name: &str,
    sources: &[&str],
    options: &[&str],
    linked: Linked,
) -> PathBuf {
    let program = folder.join(name);
    let is_cpp = sources.iter().any(|source| source.ends_with(".cc"));
    let mut command = Command::new(if is_cpp { "c++" } else { "cc" });
    command.args(["-g", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror"]).args(options);
    command.arg("-I").arg(include()).arg("-o").arg(&program);
    command.args(sources.iter().map(|source| Path::new(env!("CARGO_MANIFEST_DIR")).join(source)));
    match linked {
        Linked::Shared => {
            command.arg(shared()).arg(format!("-Wl,-rpath,{}", shared().with_file_name("").display()));
        }
        // Tests of the whole workspace enable the emulator of GPUs, which needs the C++ library.
        Linked::Static => {
            command.arg(fixed()).args(["-lstdc++", "-lpthread", "-lm", "-ldl", "-lrt", "-lutil"]);
        }
    }
    run(command.arg("-lpthread"));
    program
}
