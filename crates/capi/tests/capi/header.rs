//! The header that is checked in is the one that cbindgen writes from the sources, and C and C++ compilers accept it.

use std::path::Path;
use std::process::Command;

use crate::library;

#[test]
fn the_header_is_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).expect("a configuration");
    // cbindgen reads the modules of the crate too.
    let builder = cbindgen::Builder::new().with_config(config).with_src(folder.join("src/lib.rs"));
    let mut written = Vec::new();
    builder.generate().expect("cbindgen reads the sources").write(&mut written);
    let place = folder.join("include/lockstep.h");
    if std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite") {
        std::fs::write(&place, &written).unwrap();
    }
    let kept = std::fs::read(&place).unwrap_or_default();
    assert!(
        kept == written,
        "{} is not up to date: SNAPSHOTS=overwrite cargo test -p lockstep-capi writes it",
        place.display()
    );
}

/// Each function of the library is in the header, and the reverse.
#[test]
fn the_header_has_all_functions() {
    let header =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("include/lockstep.h")).unwrap();
    let declared =
        header.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| word.starts_with("lockstep_"));
    let mut declared: Vec<_> = declared.filter(|word| header.contains(&format!("{word}("))).collect();
    declared.sort_unstable();
    declared.dedup();
    assert_eq!(declared, library::exported(&library::shared()));
}

#[test]
fn strict_compilers_accept_the_header() {
    let source = "#include <lockstep.h>\nint main(void) { return lockstep_version() == NULL; }\n";
    for (compiler, extension, options) in [
        ("cc", "c", &["-std=c99"][..]),
        ("c++", "cc", &["-std=c++17", "-Wold-style-cast"]),
        ("c++", "cc", &["-std=c++11"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("use").with_extension(extension);
        std::fs::write(&file, source).unwrap();
        let mut command = Command::new(compiler);
        command.args(options).args(["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]);
        library::run(command.arg("-I").arg(library::include()).arg(&file));
    }
}
