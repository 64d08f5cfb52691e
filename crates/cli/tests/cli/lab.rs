//! `lockstep lab`, and the simulated SPU as a device.

use crate::common::*;

#[test]
fn the_tables_of_the_cell() {
    let folder = Folder::new();
    let text = folder.run(["lab", "cell"]).succeeded();
    for words in ["Table 1", "Table 2", "Table 3", "spu/ctr-vperm", "824"] {
        assert!(text.text().contains(words), "{words}: {}", text.text());
    }
    let told = folder.run(["lab", "cell", "--json"]).succeeded().json();
    assert_eq!(told["table_2"][0]["ours"]["clocks"], serde_json::json!([824.0, 994.0, 1164.0]));
    folder.run(["lab"]).failed_silently(2);
    folder.run(["lab", "abacus"]).failed_usage("abacus");
}

#[test]
fn both_pipes_are_shown() {
    let folder = Folder::new();
    let text = folder.run(["lab", "cell", "trace", "ctr0", "--cycles", "100"]).succeeded();
    assert!(text.text().contains("shufb $") && text.text().contains(".  branch"), "{}", text.text());
    let named = folder.run(["lab", "cell", "trace", "spu/ctr0", "--cycles", "100"]).succeeded();
    assert_eq!(text.stdout, named.stdout);
    folder.run(["lab", "cell", "trace", "vperm", "--pass", "CbcDecrypt", "--bits", "256"]).succeeded();
    let error = folder.run(["lab", "cell", "trace", "abacus"]).failed(2, "spu/ctr-vperm");
    assert!(error.stdout.is_empty());
    folder.run(["lab", "cell", "trace", "ctr0", "--cycles", "0"]).failed_usage("--cycles");
    folder.run(["lab", "cell", "--json", "trace", "ctr0"]).failed_usage("trace");
}

#[test]
fn the_page_is_written() {
    let folder = Folder::new();
    folder.run(["lab", "cell", "--page", "page.md"]).succeeded();
    assert!(folder.has("page/ctr4.svg"));
    let page = String::from_utf8(folder.read("page.md")).unwrap();
    assert!(page.contains("](page/ctr4.svg)") && !page.contains("{{"));
    folder.run(["lab", "cell", "--page", "nowhere/page.md"]).succeeded();
    folder.run(["lab", "cell", "--page", "page.md/page.md"]).failed(2, "page.md");
}

#[test]
fn programs_are_assembled_and_run() {
    let folder = Folder::new();
    let listed = folder.pipe(["lab", "cell", "asm", "-"], b"il $3,5\n stop 7\n").succeeded();
    assert!(listed.text().contains("40800283  il $3,5"), "{}", listed.text());
    folder.write("loop.s", "again: br again\n");
    folder.run(["lab", "cell", "asm", "--run", "loop.s"]).failed(2, "still running after");
    folder.write("far.s", "brz $3,elsewhere\n");
    folder.run(["lab", "cell", "asm", "far.s"]).failed(2, "far.s:1");
    folder.write("binary.s", [0xff; 4]);
    folder.run(["lab", "cell", "asm", "binary.s"]).failed(2, "UTF-8");
    folder.run(["lab", "cell", "asm", "--cycles", "5", "loop.s"]).failed_usage("--run");
}

#[test]
fn the_spu_agrees_with_the_processor() {
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
    // By name only.
    let told = folder.run(["devices", "--json"]).succeeded().json();
    let chosen = told["chosen"].to_string();
    assert!(!chosen.contains("spu"), "{chosen}");
    let devices = told["devices"].as_array().unwrap();
    assert!(devices.iter().any(|device| device["name"] == "spu" && device["simulated"] == true));
}

#[test]
fn the_cuda_paper() {
    let folder = Folder::new();
    let args = ["lab", "cuda", "--device", "cuda:emu", "--largest", "32K"];
    let told = folder.run([&args[..], &["--json", "--html", "page.html", "--dollars", "100"]].concat());
    let told = told.succeeded().json();
    // Four kernels and two of ours, at 4, 8, 16 and 32 KiB.
    assert_eq!(told["on_device"].as_array().unwrap().len(), 24);
    assert_eq!(told["threads"].as_array().unwrap().len(), 28);
    assert_eq!(told["host_to_host"].as_array().unwrap().len(), 7);
    let page = std::fs::read_to_string(folder.path("page.html")).unwrap();
    assert!(page.contains("NVIDIA 8800 GT") && page.matches("<svg").count() == 3);
    folder.run(["lab", "cuda", "--device", "cuda:77"]).failed(2, "no device `cuda:77`: there are");
    folder.run([&args[..], &["--html", "nowhere/page.html"]].concat()).failed(2, "nowhere/page.html");
    folder.run(["lab", "cuda", "--largest", "4095"]).failed(2, "");
    folder.run(["lab", "cuda", "--dollars", "0"]).failed_usage("--dollars");
}
