use super::*;
use crate::opengl::{Conditions, Point};

fn report() -> Report {
    let of =
        |name: &str, pass, batch, rate| Point { name: name.into(), pass, batch, rate, spread: (rate, rate) };
    let point = |name, batch, rate| of(name, Pass::EcbEncrypt, batch, rate);
    let points = vec![
        point("opengl/gems-vertex", 4096, 1.5),
        point("opengl/gems-vertex", 1 << 20, 100.0),
        point("opengl/gems-fragment", 1 << 20, 250.0),
        point("openssl", 1 << 20, 9000.0),
    ];
    let conditions = Conditions { total: 1 << 22, runs: 10, batches: vec![4096, 1 << 20] };
    let modes = vec![
        point("opengl/gems-fragment", 1 << 20, 250.0),
        of("opengl/gems-fragment", Pass::CbcDecrypt, 1 << 20, 125.0),
        of("cuda/gems", Pass::Ctr, 1 << 20, 50.0),
    ];
    let devices = vec!["opengl:0: any".into()];
    let measured = Measured { devices, conditions, is_emulated: false, points, modes };
    Report { measured, date: "2026-01-31".into() }
}

#[test]
fn the_table_has_the_chapter_above_the_kernels() {
    let table = report().table();
    let rows: Vec<String> = table.rows.iter().map(|row| row.join(" ")).collect();
    assert_eq!(
        rows[..3],
        ["vertex program chapter - 53", "fragment program chapter - 95", "openssl chapter - 55"]
    );
    assert_eq!(rows[3..5], ["opengl/gems-vertex here 1.5 100", "opengl/gems-fragment here - 250"]);
    assert_eq!(rows[5], "openssl here - 9000");
}

#[test]
fn text_fits_and_has_the_ratio() {
    let text = report().text();
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    assert!(
        text.replace('\n', " ").contains("2.50 times as fast as the vertex program; in the chapter, 1.79"),
        "{text}"
    );
    assert_eq!(report().json()["points"][2]["bytes_per_second"], 250e6);
    // Two lines of kernels, one of `openssl`, and two points of the chapter.
    assert_eq!(report().plot().lines.len(), 5);
}

#[test]
fn modes_are_columns() {
    let table = report().modes();
    assert_eq!(table.title, "MB/s by mode, batches of 1 MiB");
    let rows: Vec<String> = table.rows.iter().map(|row| row.join(" ")).collect();
    assert_eq!(rows, ["opengl/gems-fragment 250 - 125 -", "cuda/gems - - - 50.0"]);
    assert_eq!(report().json()["modes"][1]["mode"], "CBC decryption");
}

#[test]
fn rates_of_the_emulator_have_a_warning() {
    let mut report = report();
    let warning = "rates say nothing about a GPU";
    assert!(!report.text().replace('\n', " ").contains(warning));
    report.measured.is_emulated = true;
    assert!(report.text().replace('\n', " ").contains(warning));
}
