//! `lockstep lab` is the program `lockstep-lab`, which has the simulated devices.

use crate::common::*;

#[test]
fn the_program_beside_the_command_runs() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("bin")).unwrap();
    copy_program(&folder.path("bin/lockstep"));
    let lab = |arguments: &str| {
        let command = format!("PATH={}:$PATH bin/lockstep {arguments}", folder.path("on_path").display());
        Ended::from(folder.program("bash").args(["-c", &command]).output().unwrap())
    };
    lab("lab cell").failed(2, "`make lab` builds target/release/lockstep-lab");
    lab("lab").failed(2, "neither beside lockstep nor on PATH");
    std::os::unix::fs::symlink("lockstep", folder.path("bin/lockstep-lab")).unwrap();
    lab("lab").failed(2, "neither beside lockstep nor on PATH");
    std::fs::remove_file(folder.path("bin/lockstep-lab")).unwrap();
    for place in ["on_path", "bin"] {
        // A shell writes the script. If this process wrote it, children of other tests could inherit the open file, and the script could
        // not be executed.
        let write = format!(
            "mkdir -p {place}; printf '#!/bin/sh\necho {place} \"$@\"; exit 7\n' > {place}/lockstep-lab
             chmod +x {place}/lockstep-lab"
        );
        folder.shell(&write).succeeded();
        for (arguments, expected) in
            [("lab cell --help", "lab cell --help"), ("lab", "lab"), ("lab qpu -- 'a b'", "lab qpu -- a b")]
        {
            let ended = lab(arguments);
            assert_eq!(
                (ended.code, ended.text()),
                (7, &*format!("{place} {expected}\n")),
                "{}",
                ended.stderr
            );
        }
    }
}

#[test]
fn simulated_devices_are_refused_with_advice() {
    let folder = Folder::with_keys();
    for device in ["spu", "spu:4", "qpu", "cuda:emu"] {
        let ended = folder.run(["encrypt", "-k", "key", "key", "--device", device, "-o", "out"]);
        let ended = ended.failed(2, &format!("no device `{device}`: "));
        assert!(ended.stderr.contains("lockstep-lab (`make lab`"), "{}", ended.stderr);
    }
    let ended = folder.run(["encrypt", "-k", "key", "key", "--device", "qpu:0", "-o", "out"]);
    assert!(!ended.failed(2, "no device `qpu:0`: ").stderr.contains("make lab"));
    let args = ["openssl-conf", "--module", "key", "--device", "spu"];
    folder.run(args).failed(2, "device is `spu`: simulated devices are in lockstep-lab");
}
