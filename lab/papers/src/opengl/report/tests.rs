
use super::*;
use crate::opengl::{Conditions, Point};

fn report() -> Report {
    let point = |name: &str, batch, rate| Point { name: name.into(), batch, rate, spread: (rate, rate) };
    let points = vec![
        point("opengl/gems-vertex", 4096, 1.5),
        point("opengl/gems-vertex", 1 << 20, 100.0),
        point("opengl/gems-fragment", 1 << 20, 250.0),
        point("openssl", 1 << 20, 9000.0),
    ];
    let conditions = Conditions { total: 1 << 22, runs: 10, batches: vec![4096, 1 << 20] };
    let measured = Measured { devices: vec!["opengl:0: any".into()], conditions, points };
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
    assert_eq!(report().plot().lines.len(), 3);
}
