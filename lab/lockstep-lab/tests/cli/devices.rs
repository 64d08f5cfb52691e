//! Simulated devices with the subcommands of `lockstep`.

use crate::common::*;

#[test]
fn the_spu_and_the_cpu_give_equal_results() {
    let folder = Folder::new();
    folder.write("raw", [7; 32]);
    folder.write("data", data(50_000));
    let cipher = |mode: &str, more: &[&str]| {
        let mut args = vec!["cipher", "--mode", mode, "--key-file", "raw"];
        if mode != "ecb" {
            args.extend(["--iv-hex", "000102030405060708090a0bfffffffe"]);
        }
        args.extend(more);
        args.push("data");
        folder.run(args)
    };
    let spu = ["--device", "spu", "--verify", "off"];
    for (mode, kernels) in
        [("ctr", &["ctr0", "ctr4", "tab2", "ctr-vperm"][..]), ("cbc", &["cbc2"]), ("ecb", &["ecb4"])]
    {
        let expected = cipher(mode, &["--device", "cpu"]).succeeded().stdout;
        assert!(cipher(mode, &spu).succeeded().stdout == expected, "{mode}");
        for kernel in kernels {
            let kernel = format!("spu/{kernel}");
            let got = cipher(mode, &[&spu[..], &["--kernel", &kernel]].concat()).succeeded().stdout;
            assert!(got == expected, "{kernel}");
        }
    }
    cipher("ofb", &["--device", "spu", "--kernel", "spu/ctr4"]).failed(2, "spu/ctr4");
    // Modes that consist of several passes run with selected kernels, and on Cells with other numbers of SPEs.
    for (mode, iv) in [("gcm", true), ("ccm", true), ("cmac", false)] {
        let run = |device: &str, more: &[&str]| {
            let mut args =
                vec!["cipher", "--mode", mode, "--key-file", "raw", "--device", device, "--verify", "off"];
            if iv {
                args.extend(["--iv-hex", "000102030405060708090a0b"]);
            }
            args.extend(more);
            args.push("data");
            folder.run(args).succeeded().stdout
        };
        let expected = run("cpu", &[]);
        assert!(run("spu", &[]) == expected && run("spu:3", &[]) == expected, "{mode}");
        if mode == "gcm" {
            assert!(run("spu:16", &["--kernel", "spu/gcm"]) == expected);
        }
    }
    folder.run(["devices", "--device", "spu:17"]).failed(2, "spu:1 to spu:16");
    let report = folder.run(["devices", "--device", "spu:4"]).succeeded().text().to_string();
    assert!(report.contains("\nspu:4: Cell with 4 SPEs (simulated"), "{report}");
    folder.run(["selftest", "--device", "spu:1", "--kernel", "spu/cbc2"]).succeeded();
    // The device is used only if it is named.
    let report = folder.run(["devices", "--json"]).succeeded().json();
    let chosen = report["chosen"].to_string();
    assert!(!chosen.contains("spu"), "{chosen}");
    let devices = report["devices"].as_array().unwrap();
    assert!(devices.iter().any(|device| device["name"] == "spu" && device["simulated"] == true));
}

#[test]
fn the_qpus_as_a_device() {
    let folder = Folder::new();
    folder.write("raw", [7; 16]);
    folder.write("data", data(20_000));
    let cipher = |mode: &str, more: &[&str]| {
        let mut args = vec!["cipher", "--mode", mode, "--key-file", "raw"];
        if mode != "ecb" {
            args.extend(["--iv-hex", "000102030405060708090a0bfffffffe"]);
        }
        args.extend(more);
        args.push("data");
        folder.run(args).succeeded().stdout
    };
    let qpu = ["--device", "qpu", "--verify", "off"];
    let decrypt = &["-d"][..];
    for (mode, more) in [
        ("ctr", &[][..]),
        ("ecb", &[]),
        ("ecb", decrypt),
        ("cbc", &[]),
        ("cbc", decrypt),
        ("cfb", &[]),
        ("cfb", decrypt),
        ("ofb", &[]),
        ("pcbc", &[]),
        ("pcbc", decrypt),
    ] {
        let pads = ["ecb", "cbc", "pcbc"].contains(&mode);
        let more: Vec<&str> = more.iter().copied().chain(pads.then_some("--no-padding")).collect();
        assert!(cipher(mode, &[&qpu[..], &more].concat()) == cipher(mode, &more), "{mode}");
    }
    folder.run(["selftest", "--device", "qpu"]).succeeded();
    let report = folder.run(["devices", "--device", "qpu"]).succeeded().text().to_string();
    assert!(
        report.contains("\nqpu: VideoCore IV with 12 QPUs; qpu:sim1 to qpu:sim12 have 1 to 12"),
        "{report}"
    );
    folder
        .run(["devices", "--device", "qpu:0"])
        .failed(2, "no Raspberry Pi 1 to 3 with Linux: use another device");
    // A simulator with a different number of QPUs has the name `qpu:sim8`. Names like `qpu:8` are for boards.
    let report = folder.run(["devices", "--device", "qpu:sim8"]).succeeded().text().to_string();
    assert!(report.contains("\nqpu:sim8: VideoCore IV with 8 QPUs (simulated"), "{report}");
    let four = ["--device", "qpu:sim4", "--verify", "off"];
    assert!(cipher("ctr", &four) == cipher("ctr", &[]));
    folder.run(["devices", "--device", "qpu:8"]).failed(2, "there is no device qpu:8: use qpu:0");
}

/// A mode runs on the named device if the device supports the mode's passes over the data. If the CPU then computes the MAC, one warning
/// states this. A mode or a kernel that supports none of these passes is refused.
#[test]
fn the_cpu_computes_only_the_macs_that_a_named_device_lacks() {
    let folder = Folder::new();
    folder.write("raw", [7; 32]);
    folder.write("data", data(3_000));
    let keyed = ["--key-file", "raw", "--verify", "off"];
    let cipher = |mode: &str, more: &[&str]| {
        let iv = ["--iv-hex", "000102030405060708090a0b"];
        let iv = if mode == "cmac" { &[][..] } else { &iv[..] };
        folder.run([&["cipher", "--mode", mode][..], &keyed, iv, more, &["data"]].concat())
    };
    for (mode, stated) in [("gcm", Some("GHASH")), ("ccm", None), ("ocb", None), ("eax", None), ("siv", None)]
    {
        let [ours, expected] = ["qpu", "cpu"].map(|device| cipher(mode, &["--device", device]).succeeded());
        assert!(ours.stdout == expected.stdout, "{mode}");
        let warnings: Vec<_> = ours.stderr.lines().filter(|line| line.contains("the CPU did it")).collect();
        assert_eq!(warnings.len(), usize::from(stated.is_some()), "{mode}: {warnings:?}");
        assert!(stated.is_none_or(|pass| warnings[0].contains(pass)), "{warnings:?}");
        assert!(!cipher(mode, &["--device", "qpu", "--quiet"]).succeeded().stderr.contains("the CPU did it"));
    }
    cipher("cmac", &["--device", "qpu"]).succeeded();
    cipher("gmac", &["--device", "qpu"]).failed(2, "qpu cannot do GHASH");
    cipher("gcm-siv", &["--device", "qpu"]).failed(2, "qpu cannot do");
    // This kernel supports only ECB, so it can run no part of GCM.
    cipher("gcm", &["--device", "qpu", "--kernel", "qpu/packed"])
        .failed(2, "qpu/packed cannot do CTR of GCM");
    folder.run(["keygen", "-o", "file.key"]).succeeded();
    for device in ["qpu", "spu"] {
        let sealed = folder.run(["encrypt", "--device", device, "-k", "file.key", "data"]).succeeded();
        assert_eq!(
            sealed.stderr.matches("cannot do GHASH: the CPU did it").count(),
            usize::from(device == "qpu")
        );
        folder.write("sealed", &sealed.stdout);
        let opened = folder.run(["decrypt", "-k", "file.key", "--device", device, "sealed"]).succeeded();
        assert!(opened.stdout == data(3_000), "{device}");
    }
    let refused =
        folder.run(["encrypt", "--kernel", "qpu/packed", "--device", "qpu", "-k", "file.key", "data"]);
    refused.failed(2, "qpu/packed cannot do CTR of GCM");
}

#[test]
fn launch_options_are_checked_and_change_no_result() {
    let folder = Folder::new();
    folder.write("raw", [7; 16]);
    folder.write("data", data(3_000));
    let cipher = |mode: &str, more: &[&str]| {
        let iv = ["--iv-hex", "000102030405060708090a0bfffffffe"];
        let iv = if mode == "ecb" { &[][..] } else { &iv[..] };
        folder.run([&["cipher", "--mode", mode, "--key-file", "raw"][..], iv, more, &["data"]].concat())
    };
    for (device, kernel, launch) in [
        ("spu", "auto", "spes=3"),
        ("qpu", "auto", "qpus=1"),
        ("qpu", "qpu/packed-tuned", "qpus=5"),
        ("cuda:emu", "cuda/coarse-shared", "threads=64,blocks=2"),
        ("cuda:emu", "cuda/global-sbox", "threads=8,blocks=1,rounds=3"),
        ("cuda:emu", "cuda/coarse-constant", "threads=16,fine=3"),
        ("cuda:emu", "cuda/gems", "threads=12"),
    ] {
        for mode in ["ecb", "ctr", "cbc"] {
            let options = ["--device", device, "--kernel", kernel, "--launch", launch];
            let ended = cipher(mode, &options);
            if mode == "ecb" || kernel == "auto" {
                assert!(ended.succeeded().stdout == cipher(mode, &[]).succeeded().stdout, "{device} {mode}");
            }
        }
    }
    for (options, expected) in [
        (&["--launch", "spes=3"][..], "name a device or a kernel as well"),
        (&["--device", "cpu", "--launch", "threads=8"], "options of cpu: none"),
        (&["--device", "spu", "--launch", "spes=17"], "give the number of SPEs, from 1 to 16"),
        (&["--device", "spu", "--launch", "spes"], "write NAME=NUMBER"),
        (&["--device", "qpu", "--launch", "spes=3"], "options of qpu: qpus"),
        (
            &["--device", "cuda:emu", "--launch", "threads=64"],
            "kernels with this option are cuda/fine-shared",
        ),
        (
            &["--device", "cuda:emu", "--kernel", "cuda/coarse-shared", "--launch", "threads=30"],
            "from 8 to 512, a multiple of 4",
        ),
        // The option is refused before the driver is loaded, so this also works on a machine without a driver.
        (
            &["--device", "cuda:0", "--kernel", "cuda/coarse-shared", "--launch", "threads=30"],
            "from 8 to 512, a multiple of 4",
        ),
    ] {
        cipher("ctr", options).failed(2, expected);
    }
    let bench = ["bench", "crossover", "--quick", "-s", "256", "-m", "ctr-128"];
    folder
        .run([&bench[..], &["--device", "cpu", "--device", "spu", "--launch", "spes=2"]].concat())
        .succeeded();
    folder.run([&bench[..], &["--device", "spu", "--launch", "qpus=2"]].concat()).failed(2, "spes");
    folder
        .run([&bench[..], &["--device", "cuda:0", "--launch", "threads=30"]].concat())
        .failed(2, "launch option `threads=30`: kernels with this option are cuda/fine-shared");
}

#[test]
fn simulated_devices_are_measured_if_they_are_named() {
    let folder = Folder::new();
    let crossover = |devices: &[&str]| {
        let args = ["bench", "crossover", "--quick", "--json", "-s", "256", "-s", "1K"];
        let report = folder.run([&args[..], devices].concat()).succeeded().json();
        report["suites"]["crossover"].clone()
    };
    let suite = crossover(&["--device", "cpu", "--device", "spu", "--verify", "off"]);
    let sizes = suite["results"][0]["sizes"].as_array().unwrap();
    assert_eq!(sizes.len(), 2);
    assert!(sizes[1]["bytes_per_second"].as_object().unwrap().keys().eq(["cpu", "spu"]));
    let findings = suite["findings"].to_string();
    assert!(findings.contains("cpu is the fastest device from 256 B to 1 KiB"), "{findings}");
    let findings = crossover(&[])["findings"].to_string();
    assert!(!findings.contains("spu"), "{findings}");
}

#[test]
fn pictures_by_the_spu() {
    let folder = Folder::new();
    folder.write("raw", [7; 16]);
    let penguin = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/modes/penguin.png");
    for mode in ["ecb", "cbc", "ctr"] {
        let picture = |device: &str, output: &str| {
            let args = ["picture", "--mode", mode, "--key-file", "raw", "--force", "--verify", "off"];
            folder.run([&args[..], &["--device", device, penguin, output]].concat()).succeeded();
            folder.read(output)
        };
        assert!(picture("cpu", "cpu.png") == picture("spu", "spu.png"), "{mode}");
    }
}
