//! Tests of the subcommand `lockstep-lab lab`.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use crate::common::*;
use crate::width::fits;

#[test]
fn unknown_processors_are_refused() {
    let folder = Folder::new();
    folder.run(["lab"]).failed_silently(2);
    folder.run(["lab", "abacus"]).failed_usage("abacus");
}

#[test]
fn sections_are_written_as_they_are_measured() {
    let folder = Folder::new();
    // A datagram contains the data of one write, so the text is divided in the same way at any speed.
    let (here, there) = UnixDatagram::pair().unwrap();
    here.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    let mut child = folder.command(["lab", "cell"]).stdout(OwnedFd::from(there)).spawn().unwrap();
    let next = || {
        let mut buffer = vec![0; 1 << 16];
        // A process that is stopped and continued gets this error from a call with a timeout.
        let length = loop {
            match here.recv(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                received => break received.unwrap(),
            }
        };
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    };
    let (first, second, third) = (next(), next(), next());
    assert!(first.starts_with("AES on one SPE") && !first.contains("Table 1"), "{first}");
    assert!(second.contains("Table 1") && !second.contains("Table 2"), "{second}");
    assert!(third.contains("Table 2") && !third.contains("Table 3"), "{third}");
    assert!(third.contains("CTR0") && third.contains("824"), "{third}");
    let mut text = first + &second + &third;
    // `loads take 7` is in the last row of the last table.
    while !text.contains("loads take 7") {
        text += &next();
    }
    assert!(child.wait().unwrap().success());
    fits("lab cell", &text);
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
    let source =
        folder.run(["lab", "cell", "export", "cbc2", "--name", "aes_cbc", "--bits", "256"]).succeeded();
    assert!(source.text().contains("\t.global aes_cbc\n") && source.text().contains("\naes_cbc:\n"));
    folder
        .run(["lab", "cell", "export", "vperm"])
        .failed(2, "spu/vperm: a function needs a kernel by lookups");
    folder.run(["lab", "cell", "export", "ctr1", "--name", "2a"]).failed_usage("does not begin with a digit");
    folder.run(["lab", "cell", "--json", "trace", "ctr0"]).failed_as_json(2, "trace");
}

#[test]
fn the_tables_of_videocore() {
    let folder = Folder::new();
    let text = folder.run(["lab", "qpu"]).succeeded();
    fits("lab qpu", text.text());
    for title in ["Table 5.1", "Table 5.2", "500 MHz", "Section 5.3", "Table 7.1", "Table 7.4", "Chains"] {
        assert!(text.text().contains(title), "{title}");
    }
    // A wrong file name is refused before the page is computed. The tests of `lockstep-papers` compute the JSON and the page, which takes
    // seconds.
    folder.run(["lab", "qpu", "--page", "page"]).failed(2, ".md");
    folder.run(["lab", "qpu", "--json", "--page", "page.md"]).failed_as_json(2, "--page");
    folder.run(["lab", "qpu", "--json", "trace", "packed"]).failed_as_json(2, "trace");
}

#[test]
fn instructions_of_qpus_are_shown() {
    let folder = Folder::new();
    let text = folder.run(["lab", "qpu", "trace", "packed"]).succeeded();
    assert!(text.text().contains("add t0s, ") && text.text().contains("clocks lost: texture unit"));
    let named =
        folder.run(["lab", "qpu", "trace", "qpu/packed", "--mode", "ECB", "--qpus", "12"]).succeeded();
    assert_eq!(text.stdout, named.stdout);
    folder.run(["lab", "qpu", "trace", "packed", "--mode", "ecb-decrypt", "--bits", "256"]).succeeded();
    folder.run(["lab", "qpu", "trace", "packed", "--qpus", "13"]).failed_usage("--qpus");
    folder.run(["lab", "qpu", "trace", "packed", "--clocks", "0"]).failed_usage("--clocks");
}

#[test]
fn programs_for_qpus_are_assembled_and_run() {
    let folder = Folder::new();
    let source = "mov r0, elem_num\n:again\nsub.setf r0, r0, 1\nbrr.anynn -, :again\nnop\nnop\nnop\n\
                  nop; nop; thrend\nnop\nnop\n";
    let listed = folder.pipe(["lab", "qpu", "asm", "-"], source.as_bytes()).succeeded();
    assert!(listed.text().contains("brr.anynn -, 0x8\n"), "{}", listed.text());
    folder.write("loop.qasm", source);
    let ran = folder.run(["lab", "qpu", "asm", "--run", "loop.qasm", "--qpus", "3"]).succeeded();
    assert!(ran.text().contains("instructions of all QPUs"), "{}", ran.text());
    fits("lab qpu asm --run", ran.text());
    let few = folder.run(["lab", "qpu", "asm", "--run", "loop.qasm", "--instructions", "5"]).succeeded();
    assert!(few.text().contains("\n5 instructions in 20 clocks"), "{}", few.text());
    let budget = ["lab", "qpu", "asm", "--run", "loop.qasm", "--budget", "40"];
    folder.run(budget).failed(2, "still running after 40 clocks");
    // The message contains the name of the file, the line, and the rule that is broken or the fault.
    for (name, source, expected) in [
        ("name.qasm", "nop\nfrob r0\n", "name.qasm:2:1: "),
        ("label.qasm", "brr -, :nowhere\n", "label.qasm:1:9: unknown label `nowhere`"),
        (
            "hazard.qasm",
            "mov ra0, 1\nmov r0, ra0\n",
            "hazard.qasm:2: the instruction has an undefined result: it reads ra0",
        ),
        ("end.qasm", "nop\n", "end.qasm: QPU 0 at 0x0008: the program ran or branched outside"),
        ("wait.qasm", "sacq -, 1\n", "wait.qasm:1: QPU 0 at 0x0000: it waits for a semaphore"),
    ] {
        folder.write(name, source);
        folder.run(["lab", "qpu", "asm", "--run", name]).failed(2, expected);
    }
    qpu_programs_have_data(&folder);
    folder.write("binary.qasm", [0xff; 4]);
    folder.run(["lab", "qpu", "asm", "binary.qasm"]).failed(2, "UTF-8");
    std::fs::File::create(folder.path("huge.qasm")).unwrap().set_len((16 << 20) + 1).unwrap();
    folder.run(["lab", "qpu", "asm", "huge.qasm"]).failed(2, "more than 16 MiB");
    folder.run(["lab", "qpu", "asm", "--qpus", "2", "loop.qasm"]).failed_usage("--run");
    folder
        .run(["lab", "qpu", "asm", "--run", "--instructions", "100001", "loop.qasm"])
        .failed_usage("--instructions");
}

/// A program receives uniforms for each QPU and data in memory. It uses special functions and 16-bit parts of words. Its memory is written
/// to a file.
fn qpu_programs_have_data(folder: &Folder) {
    folder.write("words", [4u32, 0x3e80_0000].map(u32::to_le_bytes).concat());
    // Each QPU stores 16 words with the sum of: the integer in memory; the signed lower half of its third uniform; and the reciprocal of
    // the float in memory, which is 0.25.
    folder.write(
        "data.qasm",
        ".include \"vc4.qinc\"\nmov t0s, unif\nnop; ldtmu0\nmov r0, r4\nmov t0s, unif\nnop; ldtmu0\nmov r1, r4\nmov ra2, unif\n\
         mov recip, r1\nnop\nnop\nftoi r1, r4\nadd r0, r0, r1\nadd r0, ra2.16a, r0\nmov ra1, unif\n\
         mov -, mutex\nmov vw_setup, vpm_setup(1, 1, h32(0))\nmov vpm, r0\nmov vw_setup, vdw_setup_0(1, 16, dma_h32(0, 0))\nmov vw_addr, ra1\n\
         mov -, vw_wait\nmov mutex, r0\nnop; nop; thrend\nnop\nnop\n",
    );
    let run = ["lab", "qpu", "asm", "--run", "data.qasm", "--memory", "0x1000=words"];
    let with = |more: &[&'static str]| folder.run([&run[..], more].concat());
    with(&["--uniforms", "0=0x1000,0x1004,0x1fffe,0x2000", "--dump", "0x2000:64=sums"]).succeeded();
    assert_eq!(folder.read("sums"), 6u32.to_le_bytes().repeat(16));
    // QPU 1 has separate uniforms. The third uniform of QPU 0 is the number of QPUs. The third uniform of QPU 1 is the number of the QPU.
    let two = [
        "--qpus",
        "2",
        "--uniforms",
        "all=0x1000,0x1004,qpus,0x2000",
        "--uniforms",
        "1=0x1000,0x1004,qpu,0x3000",
    ];
    with(&[&two[..], &["--dump", "0x2000:4=first", "--dump", "0x3000:4=second"]].concat()).succeeded();
    assert_eq!((folder.read("first"), folder.read("second")), (vec![10, 0, 0, 0], vec![9, 0, 0, 0]));
    // If all bytes of the key are zero, the first word of round key 1 is 62 63 63 63.
    folder.write("key", [0; 16]);
    with(&[
        "--round-keys",
        "0x2000=key",
        "--uniforms",
        "0=0x1000,0x1004,0,0x3000",
        "--dump",
        "0x2010:4=round-key",
    ])
    .succeeded();
    assert_eq!(folder.read("round-key"), [0x62, 0x63, 0x63, 0x63]);
    with(&["--uniforms", "0=qpu"]).failed(2, "data.qasm:");
    with(&["--memory", "0xffffc=words"])
        .failed(2, "8 bytes from 0xffffc do not fit: the memory has 1048576 bytes");
    with(&["--memory", "start=words"]).failed(2, "start is no address: expected a number of 32 bits");
    with(&["--uniforms", "1=1"]).failed(2, "uniforms of QPU 1: the run has 1 QPUs, from 0 on");
    with(&["--uniforms", "0=1", "--uniforms", "0=2"]).failed(2, "uniforms of 0 are given twice");
    with(&["--uniforms", "0=x"]).failed_usage("`x` is no uniform: expected a number, `qpu` or `qpus`");
    with(&["--uniforms", "x=1"]).failed_usage("`x` is no QPU: expected a number or `all`");
    with(&["--memory", "words"]).failed_usage("expected ADDRESS=FILE\n");
    with(&["--round-keys", "=words"]).failed_usage("expected ADDRESS=FILE\n");
    for dump in ["0x1000=sums", "0x1000", "0x10:zz=sums", ":4=sums"] {
        with(&["--dump", dump]).failed_usage("expected ADDRESS:BYTES=FILE");
    }
    folder.run(["lab", "qpu", "asm", "data.qasm", "--uniforms", "0=1"]).failed_usage("--run");
}

#[test]
fn kernels_are_compiled_and_run() {
    let folder = Folder::new();
    folder.write("a", [[1; 64], [2; 64]].concat());
    folder.write("b", [4; 128]);
    folder.write(
        "add.qpu",
        "void kernel(Ptr<Int> a, Ptr<Int> b, Ptr<Int> c, Int words, Float f) {\n\
         For (Int i = me() * 16; i < words; i = i + numQPUs() * 16) {\nInt x = *(a + i) + *(b + i);\nPrint(\"sum\", x);\n\
         *(c + i) = x + toInt(f);\n}\n}\n",
    );
    let data = ["--in", "a=a", "--in", "b=b", "--set", "words=32", "--set", "f=2.0", "--qpus", "2"];
    let run = ["lab", "qpu", "run", "add.qpu"];
    let with = |more: &[&'static str]| folder.run([&run[..], &data, more].concat());
    let ran = with(&["--out", "c=c"]).succeeded();
    assert_eq!(folder.read("c"), [[7, 5, 5, 5].repeat(16), [8, 6, 6, 6].repeat(16)].concat());
    assert!(ran.text().contains("line 4, QPU 1: sum 101058054 101058054"), "{}", ran.text());
    assert!(ran.text().contains(" clocks\n") && !ran.text().contains("mov "), "{}", ran.text());
    fits("lab qpu run", ran.text());
    let shown = with(&["--out", "c:4=d", "--instructions", "20"]).succeeded();
    assert!(shown.text().contains("20 instructions in"), "{}", shown.text());
    assert_eq!(folder.read("d"), [7, 5, 5, 5]);
    let source = folder.read("add.qpu");
    let listed = folder.pipe(["lab", "qpu", "run", "-", "--listing"], &source).succeeded();
    assert!(listed.text().contains("mov vr_addr, "), "{}", listed.text());
    folder.write("key", [0; 16]);
    let keyed = ["lab", "qpu", "run", "keys.qpu", "--out", "k=k", "--bytes", "k", "--round-keys"];
    folder.write("keys.qpu", "void kernel(Ptr<Int> k) { *k = *(k + 16); }");
    folder.run([&keyed[..], &["k=key"]].concat()).succeeded();
    assert_eq!(folder.read("k")[..16], [0x62, 0x63, 0x63, 0x63].repeat(4));
    folder.run([&keyed[..], &["k=b"]].concat()).failed(2, "a key of 128 bytes");
    // No output is written if the program fails.
    with(&["--out", "c=e", "--budget", "100"]).failed(2, "still running after 100 clocks");
    assert!(!folder.has("e"));
    with(&[])
        .failed(2, "the parameter `c` of `kernel` has no memory: give --in c=FILE, --out c=FILE, or both");
    for output in ["c", "c:many=c", ":4=c"] {
        with(&["--out", output]).failed_usage("expected NAME=FILE or NAME:BYTES=FILE");
    }
    with(&["--out", "c=c", "--set", "words"]).failed_usage("expected NAME=VALUE\n");
    with(&["--out", "c=c", "--in", "a"]).failed_usage("expected NAME=FILE\n");
    with(&["--out", "c=c", "--round-keys", "a="]).failed_usage("expected NAME=FILE\n");
    with(&["--out", "c=c", "--in", "c=missing"]).failed(2, "missing");
    with(&["--out", "c=c", "--qpus", "13"]).failed_usage("--qpus");
    folder.run([&run[..], &["--listing", "--in", "a=a"]].concat()).failed_usage("--listing");
    std::fs::File::create(folder.path("huge")).unwrap().set_len((16 << 20) + 1).unwrap();
    with(&["--in", "c=huge"]).failed(2, "more than 16 MiB");
    for (name, content, expected) in [
        ("empty.qpu", &b""[..], "empty.qpu:1:1: there is no function `kernel`"),
        ("binary.qpu", &[0xff; 4], "binary.qpu is not UTF-8"),
        ("open.qpu", b"void kernel() {\n  /* open", "open.qpu:2:3: this comment is not closed"),
    ] {
        folder.write(name, content);
        folder.run(["lab", "qpu", "run", name]).failed(2, expected);
    }
}

#[test]
fn the_page_is_written() {
    let folder = Folder::new();
    folder.run(["lab", "cell", "--page", "nowhere/page.md"]).succeeded();
    assert!(folder.has("nowhere/page/ctr4.svg"));
    let page = String::from_utf8(folder.read("nowhere/page.md")).unwrap();
    assert!(page.contains("](page/ctr4.svg)") && !page.contains("{{"));
    folder.run(["lab", "cell", "--page", "nowhere/page.md/page.md"]).failed(2, "page.md");
}

#[test]
fn the_model_of_the_geforce_6800() {
    let folder = Folder::new();
    let text = folder.run(["lab", "geforce"]).succeeded();
    assert!(text.text().contains("Seconds of the model and of the thesis"), "{}", text.text());
    fits("lab geforce", text.text());
    let report = folder.run(["lab", "geforce", "--json"]).succeeded().json();
    assert_eq!(report["model"]["rows"][0]["basis"], "fitted");
    // A wrong file name is refused before the page is computed. The tests of `lockstep-papers` compute the page, which takes seconds.
    folder.run(["lab", "geforce", "--page", "page"]).failed(2, ".md");
    folder.run(["lab", "geforce", "--json", "--page", "page.md"]).failed_as_json(2, "--page");
}

#[test]
fn the_model_of_the_g80() {
    let folder = Folder::new();
    let text = folder.run(["lab", "g80"]).succeeded();
    assert!(text.text().contains("Figure 7\n") && text.text().contains("refuted"), "{}", text.text());
    fits("lab g80", text.text());
    let report = folder.run(["lab", "g80", "--json"]).succeeded().json();
    assert_eq!(report["table_1"][0]["status"], "fitted");
    // A wrong file name is refused before the page is computed. The tests of `lockstep-papers` compute the page, which takes seconds.
    folder.run(["lab", "g80", "--page", "page"]).failed(2, ".md");
    folder.run(["lab", "g80", "--json", "--page", "page.md"]).failed_as_json(2, "--page");
}

#[test]
fn the_files_of_the_geforce_thesis() {
    let folder = Folder::new();
    if !has_software_opengl(&folder) {
        return;
    }
    let small = ["lab", "geforce", "measure", "--scale", "65536", "--runs", "1", "--edges", "8,16"];
    let devices = ["--device", "opengl:software", "--cuda", "cuda:emu"];
    let report = folder.run([&small[..], &devices, &["--json"]].concat()).succeeded().json();
    // The rows are: eight files on the CPU; eight files for each of two edges; four files of Table A7; eight files for each of three
    // configurations of the 8800; and the four files of Table A7 on the 8800.
    let rows = |name: &str| report[name].as_array().unwrap().len();
    assert_eq!(
        ["cpu", "geforce_6800", "overhead", "geforce_8800", "overhead_8800"].map(rows),
        [8, 16, 4, 24, 4]
    );
    assert_eq!(report["geforce_6800"][0]["whole"]["bytes"], 884_736_000 / 65536 / 16 * 16);
    let verify = ["off", "sample", "full"].map(serde_json::Value::from);
    let hot_card = report["hot_card"].as_array().unwrap();
    assert!(hot_card.iter().map(|outcome| &outcome["verify"]).eq(&verify));
    assert!(hot_card[0]["wrong_blocks"].as_u64() > Some(0) && hot_card[0]["incident"].is_null());
    assert!(hot_card[2]["wrong_blocks"] == 0 && hot_card[2]["incident"].is_string());
    let text = folder.run([&small[..], &devices].concat()).succeeded();
    fits("lab geforce measure", text.text());
    folder.run([&small[..], &["--device", "opengl:7"]].concat()).failed(2, "no device `opengl:7`: there are");
    folder.run([&small[..], &devices[..2], &["--cuda", "cuda:7"]].concat()).failed(2, "no device `cuda:7`");
    folder.run(["lab", "geforce", "measure", "--edges", "0"]).failed_usage("--edges");
    folder.run(["lab", "geforce", "measure", "--scale", "0"]).failed_usage("--scale");
    folder.run(["lab", "geforce", "--page", "a.md", "measure"]).failed_usage("measure");
}

/// The subcommand runs the program `openssl` on the thesis's files. All files are removed at the end.
#[test]
fn whole_runs_of_openssl() {
    let folder = Folder::new();
    let lab = ["lab", "geforce", "openssl"];
    let with = |more: &[&str]| folder.run([&lab, more].concat());
    with(&["--openssl", "no-such-program"]).failed(2, "install OpenSSL 3");
    with(&["--device", "spu"]).failed_usage("--module");
    with(&["--module", "missing.so", "--device", "spu"]).failed(2, "missing.so");
    with(&["--module", "missing.so", "--device", "spu,"]).failed_usage("NAME,KERNEL");
    with(&["--files", "9"]).failed_usage("--files");
    if !have("openssl") {
        return;
    }
    let small = ["--scale", "65536", "--runs", "1", "--folder", "."];
    let report =
        with(&[&small[..], &["--files", "1,7", "--json", "--plot", "usage.svg"]].concat()).succeeded().json();
    let points = report["points"].as_array().unwrap();
    let programs: Vec<_> = points.iter().map(|point| point["program"].as_str().unwrap()).collect();
    assert_eq!(programs, ["cp", "openssl", "cp", "openssl"]);
    assert_eq!(points[0]["bytes"], 884_736_000 / 65536 / 16 * 16);
    assert!(String::from_utf8(folder.read("usage.svg")).unwrap().contains("openssl ("));
    assert!(!folder.names().iter().any(|name| name.starts_with("lockstep-thesis")), "{:?}", folder.names());
    with(&[&small[..], &["--files", "8", "--plot", "usage.svg"]].concat()).failed(2, "usage.svg");
    let text = with(&[&small[..], &["--files", "8"]].concat()).succeeded();
    fits("lab geforce openssl", text.text());
    // If the file is not a module, the message of OpenSSL is shown, and no rate is printed.
    folder.write("none.so", "");
    let refused =
        with(&[&small[..], &["--module", "none.so", "--device", "spu"]].concat()).failed(2, "spu failed");
    assert!(refused.stdout.is_empty());
    devices_of_the_provider_run_in_openssl(&folder, &small);
}

/// Runs the provider of the laboratory in `openssl`. Cargo builds the module of this provider next to the tests only if the whole workspace
/// is built.
fn devices_of_the_provider_run_in_openssl(folder: &Folder, small: &[&str]) {
    let module = std::env::current_exe().unwrap().with_file_name("liblockstep_lab_provider.so");
    if !module.exists() {
        assert!(std::env::var_os("CI").is_none(), "{}: cargo test --workspace builds it", module.display());
        eprintln!(
            "NOT TESTED: devices of the provider in `lab geforce openssl`: there is no {}",
            module.display()
        );
        return;
    }
    std::fs::copy(&module, folder.path("lockstep-lab.so")).unwrap();
    let devices = ["--device", "spu", "--device", "cuda:emu,cuda/global-sbox", "--files", "7", "--json"];
    let lab = ["lab", "geforce", "openssl", "--module", "lockstep-lab.so"];
    let report = folder.run([&lab[..], small, &devices].concat()).succeeded().json();
    let points = report["points"].as_array().unwrap();
    let programs: Vec<_> = points.iter().map(|point| point["program"].as_str().unwrap()).collect();
    assert_eq!(programs, ["cp", "openssl", "spu", "cuda:emu, cuda/global-sbox"]);
    // The provider refuses a kernel of another device.
    let wrong = ["--device", "spu,cuda/global-sbox", "--files", "8"];
    folder.run([&lab[..], small, &wrong].concat()).failed(2, "spu, cuda/global-sbox failed");
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
    // The message contains the name of the file, the line, the column, and what is wrong there.
    for (name, source, expected) in [
        ("mnemonic.s", "nop\nfrob $3\n", "mnemonic.s:2:1: unknown instruction `frob`: expected"),
        (
            "register.s",
            "nop\nxor $3,$4,$200\n",
            "register.s:2:11: `$200` is no register: expected $0 to $127",
        ),
        ("label.s", "br nowhere\n", "label.s:1:4: unknown symbol `nowhere`: expected a label"),
        (
            "range.s",
            "nop\nil $3,40000\n",
            "range.s:2:1: `il`: 40000 is out of range, expected -32768 to 32767",
        ),
        ("large.s", "nop\n.data\n.space 262140\n", "large.s:3:1: .data ends at 262156"),
        ("open.s", "nop\n/* never\n", "open.s:2:1: a comment is not closed"),
    ] {
        folder.write(name, source);
        folder.run(["lab", "cell", "asm", name]).failed(2, expected);
    }
    // A run-time error contains the name of the file and the address of the instruction.
    for (name, source, expected) in [
        ("self.s", "nop\nstqa $3,0\nstop 0\n", "self.s: 0x00004: a store to 0x00000 overwrites code"),
        (
            "later.s",
            "nop\nstqa $3,16\n.align 4\nstop 0\n",
            "later.s: 0x00004: a store to 0x00010 overwrites code",
        ),
        ("out.s", "il $3,-16\nbi $3\n", "out.s: 0x3fff0: the program ran or branched outside"),
        ("empty.s", "", "empty.s: 0x00000: the program ran or branched outside"),
        ("word.s", ".long 0xffffffff\n", "word.s: 0x00000: 0xffffffff is no instruction"),
    ] {
        folder.write(name, source);
        folder.run(["lab", "cell", "asm", "--run", name]).failed(2, expected);
    }
    programs_have_data(&folder);
    folder.write("binary.s", [0xff; 4]);
    folder.run(["lab", "cell", "asm", "binary.s"]).failed(2, "UTF-8");
    folder.run(["lab", "cell", "asm", "--cycles", "5", "loop.s"]).failed_usage("--run");
    // The cycles that are shown are kept in memory, so their number is limited.
    folder.run(["lab", "cell", "asm", "--run", "--cycles", "1000001", "loop.s"]).failed_usage("--cycles");
    folder.run(["lab", "cell", "trace", "ctr0", "--cycles", "1000001"]).failed_usage("--cycles");
}

/// A program calls a function, and uses a round key from a file, data in the local store and data in main storage. Both memories are then
/// written to files.
fn programs_have_data(folder: &Folder) {
    folder.write("key", [0; 16]);
    folder.write("data", [0xff; 32]);
    folder.write("main", [0; 64]);
    folder.write(
        "keyed.s",
        "brsl $lr,add\nil $5,16\nwrch $ch16,$3\nwrch $ch19,$5\nil $6,0x20\nwrch $ch21,$6\nstop 0\n\
         add: lqd $8,0($3)\nlqd $9,16($4)\nxor $8,$8,$9\nstqd $8,0($3)\nbi $lr\n",
    );
    let run = ["lab", "cell", "asm", "--run", "keyed.s", "--register", "3=0x1000", "--register", "4=0x2000"];
    let data = ["--memory", "0x1000=data", "--round-keys", "0x2000=key", "--main", "main"];
    let dumps = ["--dump", "0x1000:32=after", "--dump-main", "main-after"];
    folder.run([&run[..], &data, &dumps].concat()).succeeded();
    // Round key 1 of a key of zeros, with all bits inverted.
    let sum = [0x9d, 0x9c, 0x9c, 0x9c].repeat(4);
    assert_eq!(folder.read("after"), [&sum[..], &[0xff; 16]].concat());
    assert_eq!(folder.read("main-after"), [&sum[..], &[0; 48]].concat());
    let with = |more: &[&'static str]| folder.run([&run[..], more].concat());
    with(&["--memory", "0x3fff0=data"]).failed(2, "32 bytes from 0x3fff0 do not fit");
    with(&["--memory", "nowhere=data"]).failed(2, "nowhere is no label of the program");
    with(&["--memory", "0=missing"]).failed(2, "missing");
    with(&["--round-keys", "0x2000=data", "--memory", "0x1000=data", "--main", "main"]).succeeded();
    with(&["--round-keys", "0=data"]).failed(2, "is no instruction");
    with(&["--round-keys", "0x2000=main"]).failed(2, "a key of 64 bytes");
    with(&["--register", "5=what"]).failed(2, "what is no label");
    with(&["--register", "128=0"]).failed_usage("0 to 127");
    with(&["--memory", "data"]).failed_usage("expected ADDRESS=FILE\n");
    with(&["--dump", "0x1000=after"]).failed_usage("expected ADDRESS:BYTES=FILE");
    with(&["--dump-main", "after"]).failed_usage("--main");
    with(&[&data[..], &["--dump", "0:262145=after"]].concat()).failed(2, "do not fit");
    folder.run(["lab", "cell", "asm", "keyed.s", "--memory", "0=data"]).failed_usage("--run");
}

#[test]
fn the_cuda_paper() {
    let folder = Folder::new();
    let args = ["lab", "cuda", "--device", "cuda:emu", "--largest", "32K"];
    let report = folder.run([&args[..], &["--json", "--html", "page.html", "--dollars", "100"]].concat());
    let report = report.succeeded().json();
    // Four kernels of the paper and two of Lockstep, at 4, 8, 16 and 32 KiB.
    assert_eq!(report["on_device"].as_array().unwrap().len(), 24);
    assert_eq!(report["threads"].as_array().unwrap().len(), 28);
    assert_eq!(report["host_to_host"].as_array().unwrap().len(), 7);
    // The host-to-host measurements of the paper's kernels use the launch that was the fastest on the device.
    let threads = |of: &serde_json::Value| of["threads"].clone();
    let sizes = report["on_device"].as_array().unwrap();
    let best = sizes.iter().find(|point| point["kernel"] == "cuda/fine-shared" && point["bytes"] == 32768);
    assert_eq!(threads(&report["host_to_host"][0]), threads(best.unwrap()));
    assert_eq!(report["emulated"], true);
    let page = std::fs::read_to_string(folder.path("page.html")).unwrap();
    assert!(page.contains("NVIDIA 8800 GT") && page.matches("<svg").count() == 3);
    folder.run([&args[..], &["--html", "page.html"]].concat()).failed(2, "page.html");
    folder.run(["lab", "cuda", "--device", "cuda:77"]).failed(2, "no device `cuda:77`: there are");
    folder.run([&args[..], &["--html", "nowhere/page.html"]].concat()).failed(2, "nowhere/page.html");
    folder.run(["lab", "cuda", "--largest", "4095"]).failed(2, "");
    folder.run(["lab", "cuda", "--dollars", "0"]).failed_usage("--dollars");
}

#[test]
fn opengl_is_measured_by_batch_size() {
    let folder = Folder::new();
    folder.run(["lab", "opengl", "--device", "opengl:abacus"]).failed(2, "opengl");
    if !has_software_opengl(&folder) {
        return;
    }
    let lab = ["lab", "opengl", "--device", "opengl:software"];
    let with = |more: &[&str]| folder.run([&lab, more].concat());
    let report = with(&["--total", "20K", "--no-openssl", "--json", "--plot", "plot.svg"]).succeeded().json();
    let points = report["points"].as_array().unwrap();
    assert!(points.iter().any(|point| point["name"] == "opengl/fixslice" && point["batch_bytes"] == 16384));
    assert!(
        points.iter().all(|point| point["batch_bytes"].as_u64() < Some(20_480) && point["name"] != "openssl")
    );
    // Seven kernels have four modes each.
    let modes = report["modes"].as_array().unwrap();
    assert_eq!(modes.len(), 28);
    assert!(modes.iter().all(|point| point["batch_bytes"] == 16384));
    assert!(modes.iter().any(|point| point["name"] == "opengl/gems-fragment-mode" && point["mode"] == "CTR"));
    assert!(String::from_utf8(folder.read("plot.svg")).unwrap().contains("Figure 36-9"));
    let text = with(&["--total", "4K", "--no-openssl", "--cuda", "cuda:emu"]).succeeded();
    fits("lab opengl", text.text());
    // The chapter's kernel in CUDA has no CBC.
    let mut in_cuda = text.text().lines().filter(|line| line.trim_start().starts_with("cuda/gems"));
    assert!(in_cuda.next_back().unwrap().split_whitespace().nth(3) == Some("-"), "{}", text.text());
    with(&["--cuda", "cuda:77"]).failed(2, "no device `cuda:77`");
    with(&["--total", "20K", "--plot", "plot.svg"]).failed(2, "plot.svg");
    with(&["--total", "20"]).failed(2, "--total");
    with(&["--pictures", "pictures"]).succeeded();
    assert!(folder.read("pictures/ecb.png").len() < folder.read("pictures/cbc.png").len() / 10);
    with(&["--pictures", "pictures"]).failed(2, "plain.png");
    with(&["--pictures", "pictures", "--force"]).succeeded();
    with(&["--pictures", "pictures/ecb.png"]).failed(2, "ecb.png");
    with(&["--pictures", "pictures", "--no-openssl"]).failed_usage("--no-openssl");
}
