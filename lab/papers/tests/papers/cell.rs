//! Tests of the lab for the Cell.

use lockstep_core::work::Pass;
use lockstep_papers::cell::{self, Error, Lost, Setup, Window, paper};
use lockstep_spu::kernels::Way;
use lockstep_spu::sim::{Chip, Transfer, clocks};

fn window(name: &str, bits: u32, cycles: Option<u64>) -> Window {
    let kernel = cell::kernel(name).unwrap();
    Window::of_kernel(kernel, kernel.loops[0], cell::rounds(bits).unwrap(), cycles).unwrap()
}

#[test]
fn every_figure_of_the_paper_is_reached() {
    let report = &*crate::REPORT;
    for row in paper::TABLE_1.iter().chain(paper::TABLE_2).chain(paper::TABLE_3) {
        let ours = report.ours(row).clocks;
        assert!(ours.block.iter().zip(row.clocks()).all(|(ours, theirs)| *ours <= theirs), "{}", row.name);
    }
    // The model is calibrated with this kernel, so it equals the paper in every printed figure.
    let table = report.table_2();
    let row = |whose| table.rows.iter().find(|row| row[..2] == ["CTR0", whose]).unwrap();
    let (theirs, ours) = (row("paper"), row("ours"));
    assert_eq!(theirs[2..11], ours[2..11]);
    assert_eq!(theirs[3..8], ["824", "994", "1164", "85", "-26"]);

    let json = report.json();
    assert_eq!(json["clock_hz"], 3.192e9);
    assert_eq!(json["table_1"].as_array().unwrap().len(), 4);
    assert_eq!(json["table_2"].as_array().unwrap().len(), 12);
    assert_eq!(json["table_3"].as_array().unwrap().len(), 4);
    let ctr4 = &json["table_2"][4];
    assert_eq!((&ctr4["name"], &ctr4["ours"]["kernel"]), (&"CTR4".into(), &"spu/ctr4".into()));
    assert!(ctr4["difference_percent"][0].as_f64().unwrap() > 0.0);
}

#[test]
fn kernels_as_published_take_the_clocks_of_the_paper() {
    let json = crate::REPORT.json();
    let rows = json["as_published"].as_array().unwrap();
    assert_eq!(rows.len(), paper::TABLE_2.len() - 1, "all but CTR0, which is not scheduled");
    for row in rows {
        let name = row["name"].as_str().unwrap();
        let theirs = paper::TABLE_2.iter().find(|row| row.name == name).unwrap().clocks();
        for (theirs, ours) in theirs.into_iter().zip(row["clocks"].as_array().unwrap()) {
            let ratio = ours.as_f64().unwrap() / theirs;
            assert!(ratio < 1.03, "{name}: {ratio}");
            let is_full = ["CTR4", "CBC2", "ECB4", "Tab2"].contains(&name);
            assert!(!is_full || (0.98..1.02).contains(&ratio), "{name}: {ratio}");
        }
    }
}

#[test]
fn the_first_section_needs_no_measurement() {
    let mut sections = cell::sections();
    let first = sections.next().unwrap().unwrap();
    assert!(first.starts_with("AES on one SPE"), "{first}");
    assert!(sections.report().measured().is_empty(), "measured before the first line");
    // Only the kernels that Table 1 needs have been measured.
    let second = sections.next().unwrap().unwrap();
    assert!(second.starts_with("\nTable 1"), "{second}");
    assert_eq!(sections.report().measured().len(), paper::TABLE_1.len());
}

#[test]
fn modes_are_the_sums_of_their_passes() {
    let report = &*crate::REPORT;
    let json = report.json();
    let clocks = |kernel: &str, mode: &str| {
        let all = json["composed"].as_array().unwrap();
        let one = all.iter().find(|one| one["kernel"] == kernel && one["mode"] == mode).unwrap();
        one["clocks"][0].as_f64().unwrap()
    };
    let of = |kernel: &str, pass| report.find(kernel, pass).unwrap().clocks.block[0];
    let ctr = of("spu/vperm", Pass::Ctr);
    assert_eq!(clocks("spu/gcm", "GCM"), ctr + of("spu/gcm", Pass::Ghash));
    assert_eq!(clocks("spu/vperm", "GCM"), ctr + of("spu/vperm", Pass::Ghash));
    assert_eq!(clocks("spu/vperm", "CCM"), ctr + of("spu/vperm", Pass::CbcEncrypt));
    assert_eq!(clocks("spu/vperm", "CMAC"), of("spu/vperm", Pass::CbcEncrypt));
}

#[test]
fn fixed_costs_are_reported() {
    let report = &*crate::REPORT;
    for one in report.measured() {
        let tables = match one.of.way {
            Way::Tables | Way::TablesInverse | Way::Ghash => 65536,
            Way::GhashBits => 2048,
            _ => 0,
        };
        assert_eq!(one.loaded[1], tables);
        // The loaded data contain the code and at least 11 round keys. A call takes some hundred clocks for its start
        // and its end.
        assert!(one.loaded[0] > 500 && one.loaded[0] < 32768, "{}: {:?}", one.kernel.name, one.loaded);
        let once = one.once_a_call();
        assert!(once > 0.0 && once < 400.0, "{}: {once}", one.kernel.name);
        let bytes_in = one.loaded.iter().sum::<usize>() as u64;
        let load = Transfer { bytes_in, clocks: 0, bytes_out: 0, exclusive: true };
        assert_eq!(clocks(&Chip::CELL, &[vec![load]]), one.load_clocks().ceil() as u64);
    }
}

#[test]
fn text_and_json_contain_the_figures_of_the_page() {
    let report = &*crate::REPORT;
    let json = report.json();
    let text = cell::sections().map(Result::unwrap).collect::<String>();
    for table in [report.table_1(), report.table_2(), report.table_3(), report.further(), report.composed()]
        .into_iter()
        .chain([
            report.causes(),
            report.ideas(),
            report.besides(),
            report.cycles(),
            report.rolled(),
            report.other_rules(),
        ])
    {
        assert!(text.contains(&table.text()), "{}", table.title);
    }
    assert!(text.contains("all rounds") && text.contains("loads take 7"), "{text}");
    let chain = &json["rolled"][0];
    assert_eq!((&chain["kernel"], &chain["kernel_in_flight"]), (&"spu/cbc2".into(), &1.into()));
    assert_eq!(chain["a_round_a_turn"], report.find("spu/cbc2", Pass::CbcEncrypt).unwrap().clocks.round);
    let rules = json["other_rules"].as_array().unwrap();
    let as_it_is = &rules[0]["clocks"];
    assert_eq!(as_it_is["spu/ctr0"], 824.0);
    // The program of the kernel has nine branches without a hint per block: eight to the next round, and one to the next block.
    assert_eq!(rules[1]["rules"], "a branch costs 19");
    assert_eq!(rules[1]["clocks"]["spu/ctr0"], 824.0 + 9.0);
}

#[test]
fn an_iteration_takes_the_measured_cycles() {
    // The number of cycles of a block with ten rounds. It equals the difference between the clocks of two calls.
    for (name, cycles) in [("ctr0", 824), ("spu/cbc2", 312)] {
        let window = window(name, 128, None);
        assert_eq!(window.cycles.len(), cycles, "{}", window.title);
    }
    assert_eq!(window("ctr0", 256, None).cycles.len(), 1164);
}

#[test]
fn causes_are_reported() {
    // Nine branches are taken, and none of them has a hint: eight branches to the next round, and one to the next block.
    let (_, lost) = window("ctr0", 128, None).totals();
    assert_eq!(lost[&Lost::Branch], 18 * 9);
    assert!(lost[&Lost::Dependency] > 300);
    let best = window("ctr-vperm", 128, None);
    let (dual, lost) = best.totals();
    assert!(dual * 100 > best.cycles.len() * 98, "{}", best.summary());
    assert!(lost.values().sum::<usize>() < 6, "{}", best.summary());

    let text = window("ctr0", 128, Some(100)).to_string();
    let lines: Vec<_> = text.lines().collect();
    // The text has four lines with the title, the legend and the names of the columns, then a line for each of 100 cycles, and two lines of
    // totals.
    assert_eq!(lines.len(), 4 + 100 + 2, "{text}");
    assert!(lines.iter().any(|line| line.contains("shufb $")));
    assert!(lines.iter().any(|line| line.ends_with(".  branch")));
    assert!(lines.iter().any(|line| line.ends_with(".  dependency")));
    assert!(lines.iter().any(|line| line.contains(" =  ")));
}

#[test]
fn a_window_ends_with_the_call() {
    let window = window("ctr-vperm", 128, Some(u64::from(u32::MAX)));
    assert!(window.cycles.len() > 10_000 && window.cycles.len() < 200_000);
}

#[test]
fn errors_are_reported() {
    let error = cell::kernel("abacus").err().unwrap();
    assert!(matches!(error, Error::UnknownKernel { .. }));
    assert!(error.to_string().contains("spu/ctr4"), "{error}");
    let error = cell::the_loop(cell::kernel("ctr4").unwrap(), Some("Ofb")).unwrap_err();
    assert_eq!(error.to_string(), "spu/ctr4 does not support Ofb: it supports Ctr, Ctr32");
    assert!(cell::the_loop(cell::kernel("vperm").unwrap(), Some("cbcdecrypt")).is_ok());
    assert!(cell::rounds(64).is_err());
}

#[test]
fn programs_are_listed_and_run() {
    let source = "start: il $3,5\n shufb $4,$3,$3,$3\n stop 7\n .section .rodata\n .long 0x12345678\n";
    let text = cell::listing("a.s", source).unwrap();
    assert!(text.starts_with("start:\n0x00000  40800283  il $3,5\n"), "{text}");
    assert!(text.contains("12345678  .long"), "{text}");
    let text = cell::run("a.s", source, Setup::default(), 10, 100).unwrap().text;
    assert!(text.starts_with("a.s: 3 instructions in 4 cycles, then stop 0x7\n"), "{text}");
    assert!(text.contains("shufb $4,$3,$3,$3"), "{text}");
    let error = cell::listing("a.s", "nop\n frob $3\n").unwrap_err().to_string();
    assert!(error.starts_with("a.s:2:2: "), "{error}");
    let error = cell::run("a.s", "again: br again\n", Setup::default(), 10, 1000).err().unwrap().to_string();
    assert!(error.starts_with("a.s: 0x00000: ") && error.contains("1000 cycles"), "{error}");
}

/// A program of a user calls the exported function.
#[test]
fn a_function_is_called_by_a_program() {
    let source = cell::function(cell::kernel("ctr4a").unwrap(), 10, "aes_ctr").unwrap();
    let program = format!("brsl $lr,aes_ctr\nstop 5\n.align 4\n{source}");
    let (key, data, counter) = ([7; 16], [3; 128], "000102030405060708090a0b0c0d0e0f");
    let setup = Setup {
        memory: vec![
            ("0x8000".into(), lockstep_papers::round_keys(key.to_vec()).unwrap()),
            ("0x10000".into(), data.to_vec()),
        ],
        registers: [(1, "0x3ffe0"), (3, "0x10000"), (4, "0x8000"), (5, "8"), (6, counter)]
            .map(|(number, value)| (number, value.to_string()))
            .to_vec(),
        main: Vec::new(),
    };
    let finished = cell::run("caller.s", &program, setup, 1, 100_000).unwrap();
    assert!(finished.text.contains("then stop 0x5"), "{}", finished.text);
    let counter: [u8; 16] = std::array::from_fn(|at| at as u8);
    let expected = lockstep_reference::ctr::apply32(&lockstep_reference::Aes::new(&key), &counter, &data);
    assert!(finished.memory("0x10000", 128).unwrap() == expected);
    for (name, default, part) in [
        ("ctr4a", "aes_ctr", "only the last call of a message may have another number"),
        ("cbc2", "aes_cbc", "$6: the IV. The result in $3 is the last ciphertext block."),
        ("ecb4", "aes_ecb", "$6 is not used, and there is no result."),
    ] {
        let kernel = cell::kernel(name).unwrap();
        assert_eq!(cell::function_name(kernel), default);
        let source = cell::function(kernel, 10, default).unwrap();
        let remarks = source.lines().filter(|line| line.starts_with('#')).collect::<Vec<_>>().join(" ");
        assert!(remarks.contains(part) && source.contains(&format!(".global {default}")), "{remarks}");
    }
    let refused = |name: &str| cell::function(cell::kernel(name).unwrap(), 10, "f").unwrap_err().to_string();
    assert!(
        refused("tab2").starts_with("spu/tab2: a function needs a kernel by lookups"),
        "{}",
        refused("tab2")
    );
}

#[test]
fn programs_read_and_write_data() {
    // The program adds the words at `data` to words in main storage, and writes the sums to main storage and to the
    // mailbox.
    let source = "\
        wrch $ch16,$4\nwrch $ch18,$3\nil $5,16\nwrch $ch19,$5\nil $6,0x40\nwrch $ch21,$6\n\
        il $6,1\nwrch $ch22,$6\nil $6,2\nwrch $ch23,$6\nrdch $7,$ch24\n\
        lqa $8,data\nlqd $9,0($4)\na $8,$8,$9\nstqd $8,0($4)\nwrch $ch28,$8\n\
        il $6,0x20\nwrch $ch21,$6\nstop 0\n.data\ndata: .space 16\nroom: .space 16\n";
    let setup = |address: &str, register: &str| Setup {
        memory: vec![(address.into(), [0, 0, 0, 1].repeat(4))],
        registers: vec![(4, register.into()), (3, format!("{:032x}", 0x10u128 << 96))],
        main: [0, 0, 1, 0].repeat(8),
    };
    let finished = cell::run("sum.s", source, setup("data", "room"), 10, 10_000).unwrap();
    assert_eq!(finished.memory("room", 16).unwrap(), [0, 0, 1, 1].repeat(4));
    assert_eq!(finished.main(), [[0, 0, 1, 0].repeat(4), [0, 0, 1, 1].repeat(4)].concat());
    assert!(finished.text.ends_with("mailbox: 0x101\n"), "{}", finished.text);
    assert!(finished.text.contains("lost to channel"), "{}", finished.text);
    let refused = |setup| cell::run("sum.s", source, setup, 10, 10_000).err().unwrap().to_string();
    assert_eq!(refused(setup("data", "rooms")), "rooms is no label of the program and no number of 32 bits");
    assert!(refused(setup("0x3fff8", "room")).contains("16 bytes from 0x3fff8 do not fit"));
    assert!(refused(setup("data", "0x100000000")).contains("no number of 32 bits"));
    assert!(finished.memory("0x3fff0", 17).is_err());
}
