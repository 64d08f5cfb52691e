use super::*;

/// A report with these rates of fine and coarse grain at 4, 8 and 16 KiB.
fn report(fine: [f64; 3], coarse: [f64; 3]) -> Report {
    let mut sizes = Vec::new();
    for (index, rates) in fine.into_iter().zip(coarse).enumerate() {
        let bytes = 4096 << index;
        for (kernel, rate) in [("cuda/fine-shared", rates.0), ("cuda/coarse-shared", rates.1)] {
            sizes.push(Point { kernel, bytes, threads: Some(64), seconds: bytes as f64 / rate / 1e9 });
        }
    }
    let hosts = vec![Point { kernel: "cuda/bitslice", bytes: 32 << 10, threads: None, seconds: 32768e-9 }];
    let (device, cpu) = ("a <device>".into(), "cpu/any".into());
    let kernel = "cuda/fine-constant";
    let threads = vec![Point { kernel, bytes: 128 << 10, threads: Some(16), seconds: 131_072e-9 / 2.5 }];
    let measured = Measured { device, is_emulated: false, cpu, sizes, threads, hosts };
    Report { measured, date: "2026-01-31".into(), worth: Worth { dollars: Some(100.0), watts: Some(50.0) } }
}

#[test]
fn break_even_is_permanent() {
    assert_eq!(report([2.0, 2.0, 2.0], [1.0, 2.0, 3.0]).break_even(), Some(8192));
    assert_eq!(report([2.0, 2.0, 2.0], [3.0, 1.0, 3.0]).break_even(), Some(16_384));
    assert_eq!(report([1.0, 1.0, 1.0], [3.0, 3.0, 3.0]).break_even(), Some(4096));
    assert_eq!(report([2.0, 2.0, 2.0], [3.0, 3.0, 1.0]).break_even(), None);
}

/// The report proposes the launch option for the grain if each of the two grains is the faster one at some size.
#[test]
fn the_grain_by_size_is_an_option() {
    let text = |fine, coarse| report(fine, coarse).text().replace('\n', " ");
    assert!(text([2.0, 2.0, 2.0], [1.0, 2.0, 3.0]).contains("--launch fine=8` selects"));
    assert!(!text([1.0, 1.0, 1.0], [3.0, 3.0, 3.0]).contains("--launch"));
    assert!(!text([2.0, 2.0, 2.0], [3.0, 3.0, 1.0]).contains("--launch"));
}

#[test]
fn the_table_has_lockstep_below_the_paper() {
    let report = report([1.0; 3], [2.0; 3]);
    let table = report.table_1();
    let row = |name: &str| table.rows.iter().find(|row| row[0] == name).unwrap()[2..].join(" ");
    assert_eq!(row("NVIDIA 8800 GT"), "2917 6591 12075 12412 170 73.0 -");
    assert_eq!(row("cuda/bitslice"), "8000 - - - 100 80.0 160.0");
    assert_eq!(row("the CPU, one thread"), "- - - - - - -");
    assert!(report.html().contains("a &lt;device&gt;") && report.html().contains("<svg"));
    assert_eq!(report.json()["break_even_bytes"], 4096);
    let text = report.text();
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
}

#[test]
fn figure_7_as_a_table() {
    let [small, large] = report([1.0; 3], [2.0; 3]).threads();
    assert!(small.rows.iter().all(|row| row[1..].iter().all(|cell| cell == "-")));
    let row = large.rows.iter().find(|row| row[0] == "cuda/fine-constant").unwrap();
    assert_eq!(row[1..4], ["-", "2.50", "-"]);
}

#[test]
fn rates_of_the_emulator_have_a_warning() {
    let mut report = report([1.0; 3], [2.0; 3]);
    let warnings = |report: &Report| {
        [report.text().replace('\n', " "), report.html()]
            .map(|text| text.matches("say nothing about a GPU").count())
    };
    assert_eq!(warnings(&report), [0, 0]);
    report.measured.is_emulated = true;
    // The text has a warning at each of four tables and at the break-even. The page has a warning at each of two tables, at the title and
    // the heading of each of three plots, and at the break-even.
    assert_eq!(warnings(&report), [5, 9]);
    assert_eq!(report.json()["emulated"], true);
}
