//! Checks that the checked-in header equals the header that cbindgen writes from the sources, and that C and C++ compilers accept it.

use std::path::Path;
use std::process::Command;

use crate::library;

#[test]
fn the_header_is_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).expect("a configuration");
    // From `lib.rs`, cbindgen finds and reads all modules of the crate.
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

/// The library exports exactly the functions that the header declares.
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

/// Programs are compiled with these numbers, so the numbers never change. New numbers may be added.
#[test]
fn numbers_never_change() {
    let names = [
        (
            "LOCKSTEP_ERROR_",
            &[
                "AUTHENTICATION",
                "WRONG_KEY",
                "TRUNCATED",
                "NULL",
                "OVERLAP",
                "ARGUMENT",
                "KEY",
                "NONCE",
                "TAG",
                "LENGTH",
                "TOO_LONG",
                "OUTPUT",
                "ORDER",
                "UNKNOWN_DEVICE",
                "UNKNOWN_KERNEL",
                "UNSUPPORTED",
                "OUT_OF_REACH",
                "DEVICE",
                "WRONG_RESULT",
                "SELF_TEST",
                "NOT_SEALED",
                "READ",
                "WRITE",
                "FILE",
                "EXISTS",
                "SAME_FILE",
                "INPUT_CHANGED",
                "CANCELLED",
                "KEY_FILE",
                "RANDOM",
                "FORKED",
                "INTERNAL",
                "OTHER",
                "PARQUET",
                "PROTECTION",
                "MISSING_KEY",
            ][..],
        ),
        ("LOCKSTEP_AEAD_", &["GCM", "GCM_SIV", "OCB", "SIV", "CCM", "XAES_256_GCM", "EAX"]),
        ("LOCKSTEP_CIPHER_", &["ECB", "CBC", "PCBC", "CFB", "CFB8", "CFB1", "OFB", "CTR", "XTS"]),
        ("LOCKSTEP_CTS_", &["CS1", "CS2", "CS3"]),
        ("LOCKSTEP_VERIFY_", &["OFF", "SAMPLE", "FULL"]),
        ("LOCKSTEP_STATUS_", &["DONE", "AUTHENTICATION_FAILED"]),
        ("LOCKSTEP_", &["ENCRYPT", "DECRYPT"]),
        ("LOCKSTEP_PARQUET_", &["AES_GCM_CTR_V1"]),
        (
            "LOCKSTEP_PARQUET_MODULE_",
            &[
                "COLUMN_META_DATA",
                "DATA_PAGE",
                "DICTIONARY_PAGE",
                "DATA_PAGE_HEADER",
                "DICTIONARY_PAGE_HEADER",
                "COLUMN_INDEX",
                "OFFSET_INDEX",
                "BLOOM_FILTER_HEADER",
                "BLOOM_FILTER_BITSET",
            ],
        ),
    ];
    let header = std::fs::read_to_string(library::include().join("lockstep.h")).unwrap();
    let mut defined: Vec<&str> = header
        .lines()
        .filter(|line| line.starts_with("#define LOCKSTEP_") && !line.ends_with("_H"))
        .collect();
    let zeros = [
        "LOCKSTEP_OK",
        "LOCKSTEP_VERIFY_DEFAULT",
        "LOCKSTEP_STATUS_PENDING",
        "LOCKSTEP_PARQUET_AES_GCM_V1",
        "LOCKSTEP_PARQUET_MODULE_FOOTER",
    ];
    let zeros = zeros.map(|name| format!("#define {name} 0"));
    let others = names.iter().flat_map(|(prefix, names)| {
        (1..).zip(*names).map(move |(number, name): (i32, _)| format!("#define {prefix}{name} {number}"))
    });
    let mut expected: Vec<String> = zeros.into_iter().chain(others).collect();
    defined.sort_unstable();
    expected.sort_unstable();
    assert_eq!(defined, expected);
}
