//! Reports about simulated devices.

use crate::common::*;

#[test]
fn unsupported_operations_are_listed_and_refused() {
    let folder = Folder::new();
    let text = folder.run(["devices", "--device", "spu"]).succeeded();
    let block = text.text().split("\nspu: ").nth(1).unwrap();
    let after = block.split("  not supported: ").nth(1).unwrap().lines();
    let wrapped = after.clone().skip(1).take_while(|line| line.starts_with("    "));
    let line: String = after.take(1).chain(wrapped).collect();
    assert!(
        line.contains("XTS encryption")
            && line.contains("CFB8 decryption")
            && !line.contains(" CBC decryption"),
        "{line}"
    );
    assert!(!block.contains("all modes"), "{block}");
    let report = folder.run(["devices", "--device", "spu", "--json"]).succeeded().json();
    let spu = report["devices"].as_array().unwrap().iter().find(|device| device["name"] == "spu").unwrap();
    let lacking: Vec<_> =
        spu["not_supported"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    let chosen = |operation: &str| {
        let all = report["chosen"].as_array().unwrap();
        all.iter().find(|one| one["operation"] == operation).unwrap()["by_size"][0].clone()
    };
    let (key, iv) = ("00112233445566778899aabbccddeeff", "0f0e0d0c0b0a09080706050403020100");
    let xts = format!("{key}{iv}");
    let cases = [
        ("xts", "XtsEncrypt", "XTS encryption"),
        ("pcbc", "PcbcEncrypt", "PCBC encryption"),
        ("cfb8", "Cfb8Encrypt", "CFB8 encryption"),
        ("cfb1", "Cfb1Encrypt", "CFB1 encryption"),
        ("cbc", "CbcEncrypt", "CBC encryption"),
        ("ctr", "Ctr", "CTR"),
        ("ofb", "Ofb", "OFB"),
    ];
    for (mode, operation, words) in cases {
        let key = if mode == "xts" { xts.as_str() } else { key };
        let args = ["cipher", "-m", mode, "--device", "spu", "--key-hex", key, "--iv-hex", iv];
        let ended = folder.pipe(args, &[7; 48]);
        if lacking.contains(&operation) {
            let ended = ended.failed(2, &format!("spu cannot do {words}:"));
            assert!(!ended.stderr.contains("this machine"), "{}", ended.stderr);
            assert_eq!(chosen(operation)["supported"], false, "{mode}");
        } else {
            ended.succeeded();
            assert!(chosen(operation)["kernel"].as_str().unwrap().starts_with("spu/"), "{mode}");
        }
    }
    assert_eq!(lacking.len(), 10, "{lacking:?}");
    // The device has no fused GCM, but GCM can be composed of passes.
    assert_eq!(chosen("GcmSeal")["supported"], true);
    let cpu = report["devices"].as_array().unwrap().iter().find(|device| device["name"] == "cpu").unwrap();
    assert!(cpu["not_supported"].as_array().unwrap().is_empty());
}

#[test]
fn a_kernel_and_a_device_that_do_not_match() {
    let folder = Folder::with_keys();
    let with = |device: &str, kernel: &str| {
        folder.run(["encrypt", "-k", "key", "key", "--device", device, "--kernel", kernel, "-o", "out"])
    };
    let ended = with("cpu", "spu/vperm").failed(2, "the kernel `spu/vperm` does not run on the device `cpu`");
    assert!(ended.stderr.contains("spu/vperm runs on spu;"), "{}", ended.stderr);
    let ended = with("spu", "cpu/soft").failed(2, "the kernel `cpu/soft` does not run on the device `spu`");
    assert!(ended.stderr.contains("cpu/soft runs on cpu;"), "{}", ended.stderr);
    assert!(!folder.has("out"));
}

#[test]
fn the_program_has_a_name_of_its_own() {
    let folder = Folder::new();
    let text = folder.run(["--version"]).succeeded();
    assert_eq!(text.text(), concat!("lockstep-lab ", env!("CARGO_PKG_VERSION"), "\n"));
    let report = folder.run(["--version", "--json"]).succeeded().json();
    assert!(report["backends"].as_array().unwrap().contains(&"spu".into()), "{report}");
    folder.run(["man", "--out-dir", "pages"]).succeeded();
    assert!(folder.has("pages/lockstep-lab.1") && folder.has("pages/lockstep-lab-lab-cell.1"));
    folder.shell("lockstep completions bash > script && bash -n script").succeeded();
    let complete = "source ./script; COMP_LINE='lockstep-lab encrypt --device cuda:e'; COMP_POINT=${#COMP_LINE}; \
                    COMP_WORDBREAKS=': ='; _lockstep__lab_words lockstep-lab e :; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let offered = folder.program("bash").args(["-c", complete]).output().map(Ended::from).unwrap();
    assert_eq!(offered.text(), "emu\n");
}
