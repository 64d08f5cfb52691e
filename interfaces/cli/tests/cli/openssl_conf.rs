//! `lockstep openssl-conf`: how the command searches for the module, and whether OpenSSL accepts the configuration.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::common::*;

/// Names with all characters that are special in openssl.cnf.
const SPECIAL: [&str; 4] = ["two  words", "a $HOME ${x} $(y)", "a # \\n \\", "it's \"so\" `it` is; ü"];

/// A folder with the command in `bin`, as when installed, and a program `openssl` that fails.
fn installed() -> Folder {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("bin")).unwrap();
    let ours = folder.path("bin/lockstep");
    // A hard link, because the program would resolve a symbolic link. If the folder is on another file system, a copy.
    if fs::hard_link(LOCKSTEP, &ours).is_err() {
        copy_program(&ours);
    }
    pretend_openssl(&folder, "exit 1");
    folder
}

fn pretend_openssl(folder: &Folder, script: &str) {
    fs::create_dir_all(folder.path("path")).unwrap();
    folder.write("path/openssl", format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(folder.path("path/openssl"), fs::Permissions::from_mode(0o755)).unwrap();
}

fn create_module(folder: &Folder, name: &str) -> PathBuf {
    let path = folder.path(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "").unwrap();
    fs::canonicalize(path).unwrap()
}

fn conf(folder: &Folder, args: &[&str]) -> Ended {
    let mut command = folder.program(folder.path("bin/lockstep").to_str().unwrap());
    command.arg("openssl-conf").args(args).env("PATH", folder.path("path")).output().unwrap().into()
}

/// The value of the line `module`, without quotes.
fn module(ended: &Ended) -> Option<&str> {
    let line = ended.text().lines().find_map(|line| line.strip_prefix("module = "))?;
    Some(line.trim_matches('"'))
}

#[track_caller]
fn assert_module(folder: &Folder, args: &[&str], expected: &Path) {
    let ended = conf(folder, args).succeeded();
    assert_eq!(module(&ended), expected.to_str());
    assert_eq!(ended.stderr, "");
}

#[test]
fn the_module_is_found_in_this_order() {
    let folder = installed();
    // Without a module, the rest of the configuration is printed, with a warning.
    let ended = conf(&folder, &[]).succeeded();
    assert_eq!(module(&ended), None);
    assert!(ended.text().contains("\n# module = ") && ended.text().contains("\nactivate = 1\n"));
    assert!(ended.stderr.contains("make install") && ended.stderr.contains("--module"), "{}", ended.stderr);

    let theirs = create_module(&folder, "modules/lockstep.so");
    pretend_openssl(&folder, &format!("echo 'MODULESDIR: \"{}\"'", theirs.parent().unwrap().display()));
    assert_module(&folder, &[], &theirs);
    let installed = create_module(&folder, "lib/ossl-modules/lockstep.so");
    assert_module(&folder, &[], &installed);
    let built = create_module(&folder, "bin/liblockstep_provider.so");
    assert_module(&folder, &[], &built);
    let beside = create_module(&folder, "bin/lockstep.so");
    assert_module(&folder, &[], &beside);
    // A module that `--module` names has precedence. If the name is a symbolic link, the configuration contains the link and not
    // its target, because the link may be changed later.
    create_module(&folder, "elsewhere/lockstep-1.so");
    symlink("lockstep-1.so", folder.path("elsewhere/lockstep.so")).unwrap();
    let named = fs::canonicalize(folder.path("elsewhere")).unwrap().join("lockstep.so");
    assert_module(&folder, &["--module", "elsewhere/lockstep.so"], &named);
}

#[test]
fn unusable_output_of_openssl_is_ignored() {
    for script in ["exit 1", "echo", "echo 'MODULESDIR: \"\"'", "echo 'MODULESDIR: \".\"'", "kill -9 $$"] {
        let folder = installed();
        create_module(&folder, "lockstep.so");
        pretend_openssl(&folder, script);
        assert_eq!(module(&conf(&folder, &[]).succeeded()), None, "{script}");
    }
    let folder = installed();
    fs::remove_dir_all(folder.path("path")).unwrap();
    assert_eq!(module(&conf(&folder, &[]).succeeded()), None);
}

#[test]
fn unusable_modules_are_refused() {
    let folder = installed();
    conf(&folder, &["--module", "nothing.so"]).failed(2, "nothing.so");
    conf(&folder, &["--module", "bin"]).failed(2, "bin is not a file");
    for name in ["line\nbreak.so", "$LIB/lockstep.so", "${ORIGIN}/lockstep.so"] {
        create_module(&folder, name);
        let ended = conf(&folder, &["--module", name]).failed(2, "cannot be written in openssl.cnf");
        assert!(ended.stdout.is_empty());
    }
}

#[test]
fn device_and_kernel_are_set_if_they_exist() {
    let folder = installed();
    create_module(&folder, "bin/lockstep.so");
    let ended = conf(&folder, &["--kernel", "cpu/soft", "--device", "cpu"]).succeeded();
    let lines: Vec<_> = ended.text().lines().collect();
    assert!(lines.contains(&"kernel = cpu/soft") && lines.contains(&"device = cpu"), "{lines:?}");
    conf(&folder, &["--device", "abacus"]).failed(2, "abacus");
    conf(&folder, &["--kernel", "cpu/abacus"]).failed(2, "cpu/abacus");
    conf(&folder, &["--device", "cpu:7"]).failed(2, "no device `cpu:7`");
}

#[test]
fn devices_that_the_provider_does_not_have_are_refused() {
    let folder = installed();
    create_module(&folder, "bin/lockstep.so");
    // The command may support these devices, but the provider does not.
    for device in ["wgpu:0", "wgpu:software", "wgpu:all"] {
        let ended = conf(&folder, &["--device", device]);
        let ended = ended.failed(2, &format!("device is `{device}`: give a device that the provider has"));
        assert!(ended.stdout.is_empty());
    }
    conf(&folder, &["--kernel", "wgpu/bitslice"]).failed(2, "give a kernel that the provider has");
    // The environment variables of the command do not affect the configuration.
    let mut command = folder.program(folder.path("bin/lockstep").to_str().unwrap());
    command
        .args(["openssl-conf", "--device", "cpu"])
        .env("LOCKSTEP_THREADS", "many")
        .env("LOCKSTEP_KERNEL", "x");
    Ended::from(command.output().unwrap()).succeeded();
}

#[test]
fn every_setting_is_checked_and_written() {
    let folder = installed();
    create_module(&folder, "bin/lockstep.so");
    let good = [
        ("device", "cpu"),
        ("kernel", "cpu/soft"),
        ("threads", "3"),
        ("threshold", "64K"),
        ("verify", "full"),
        ("calibrate", "on"),
        ("ahead", "off"),
        ("trace", "/var/log/a trace"),
    ];
    let args: Vec<_> = good.iter().flat_map(|(name, value)| [format!("--{name}"), (*value).into()]).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let ended = conf(&folder, &args).succeeded();
    for (name, value) in good {
        let value = if value.contains(' ') { format!("\"{value}\"") } else { value.into() };
        let line = format!("{name} = {value}");
        assert_eq!(ended.text().lines().filter(|it| *it == line).count(), 1, "{line}: {}", ended.text());
    }
    for (name, bad, output_of) in [
        ("launch", "spes=1", "launch option `spes=1`: options of cpu: none"),
        ("threads", "many", "--threads is `many`: give a number of threads from 1 to 1024"),
        ("threshold", "1X", "--threshold is `1X`: give a number of bytes"),
        ("verify", "perhaps", "--verify is `perhaps`: give off, sample or full"),
        ("calibrate", "1", "--calibrate is `1`: give on, off or auto"),
        ("ahead", "1", "--ahead is `1`: give on, off or auto"),
        ("trace", "trace.txt", "--trace is `trace.txt`: give off, stderr, stdout or the absolute path"),
    ] {
        assert!(conf(&folder, &[&format!("--{name}"), bad]).failed(2, output_of).stdout.is_empty());
    }
}

/// The module from the same build as this command. `None` if it was not built: only `cargo build` and `cargo test --workspace` build it.
fn real_module() -> Option<PathBuf> {
    let folder = Path::new(LOCKSTEP).parent().unwrap();
    // `cargo test` places it with the dependencies.
    let found = [folder, &folder.join("deps")]
        .map(|folder| folder.join("liblockstep_provider.so"))
        .into_iter()
        .find(|path| path.is_file());
    if found.is_none() {
        eprintln!("NOT TESTED: there is no provider beside the command: build the workspace");
    }
    found
}

#[test]
fn openssl_accepts_the_configuration() {
    let Some(real) = real_module().filter(|_| have("openssl")) else { return };
    let folder = installed();
    for name in ["plain"].iter().chain(&SPECIAL) {
        let module = folder.path(name).join("lockstep.so");
        fs::create_dir(folder.path(name)).unwrap();
        fs::copy(&real, &module).unwrap();
        let printed = conf(&folder, &["--module", module.to_str().unwrap()]).succeeded();
        folder.write("lockstep.cnf", printed.stdout);
        let mut openssl = folder.program("openssl");
        openssl.args(["list", "-providers"]).env("OPENSSL_CONF", folder.path("lockstep.cnf"));
        let report = Ended::from(openssl.output().unwrap()).succeeded();
        assert!(
            report.text().contains("Lockstep") && report.text().contains("OpenSSL Default"),
            "{name}: {}",
            report.text()
        );
        // The trace shows that the provider does the work.
        let mut openssl = folder.program("openssl");
        openssl.args(["enc", "-aes-128-ctr", "-K", &"00".repeat(16), "-iv", &"00".repeat(16)]);
        openssl.env("OPENSSL_CONF", folder.path("lockstep.cnf")).env("LOCKSTEP_TRACE", "stderr");
        let report = feed(openssl, b"hello").succeeded();
        assert!(report.stderr.contains("AES-128-CTR encrypt: 5 bytes"), "{name}: {}", report.stderr);
    }
}
