//! The tables of the report, which has one section about the model.

use serde_json::{Value, json};

use super::files::FILES;
use super::fit::{Fit, measured, measured_range};
use super::model::{Distribution, Machine, lookups};
use super::paper::{A5_6800, A5_CPU, A7_COPIES_6800, CLOCK_HZ, EDGE, ON_8800, PIXEL_PIPES, Runs, runs};
use super::predict::{Model, REPEATED, Row};
use super::sweep::{self, Sweep};
use super::thesis;
use lockstep_report::Table;
use lockstep_report::text::{WIDTH, wrap};

/// The first lines of the report for a terminal.
const INTRODUCTION: &str = "\
AES-128 on a GeForce 6800 GT and a GeForce 8800 GTS in an OpenSSL engine: a master's thesis of 2007. The shader of the 6800 \
does all its logic by 1056 dependent reads of textures per block, and took 3.5 times as long for random bytes as for ordered \
ones. A model of the texture cache explains this: its lookups are those of real AES states, and three of its parameters are \
taken from three of the times.";

/// The names of the tables in the page, and the tables of the report for a terminal.
pub(super) fn tables(model: &Model) -> Vec<(&'static str, Table)> {
    let mut tables = vec![("files", files())];
    tables.extend(thesis::tables());
    tables.extend([
        ("parameters", parameters(model)),
        ("rows", rows("Seconds of the model and of the thesis", &model.rows)),
        ("steps", steps(model)),
        ("convergence", convergence(model)),
        ("start_rows", rows(&start_title(&model.with_start), &model.rows_with_start)),
        ("repeated", repeated(model)),
        ("others", others(model)),
    ]);
    tables
}

/// The report for a terminal: lines of at most [`WIDTH`] characters.
pub fn text(model: &Model) -> String {
    let tables = tables(model).into_iter().map(|(_, table)| format!("\n{}", table.text()));
    wrap(INTRODUCTION, WIDTH).join("\n") + "\n" + &tables.collect::<String>()
}

/// A number with this many decimals, or a dash.
fn cell(value: Option<f64>, decimals: usize) -> String {
    value.map_or("-".into(), |value| format!("{value:.decimals$}"))
}

/// A signed percentage. A difference that is rounded to zero has no minus sign.
fn signed(percent: f64) -> String {
    match format!("{percent:+.1}") {
        none if none == "-0.0" => "+0.0".into(),
        some => some,
    }
}

fn mean(table: &[Runs], file: u32) -> Option<f64> {
    table.iter().find(|runs| runs.file == file).map(Runs::mean)
}

/// Megabytes per second of the shader, without copies.
fn rate(file: u32) -> f64 {
    FILES[file as usize - 1].bytes as f64 / measured(file) / 1e6
}

/// Clocks of a pixel pipeline per lookup.
fn clocks(file: u32) -> f64 {
    let lookups = lookups(&FILES[file as usize - 1], EDGE);
    measured(file) * CLOCK_HZ * f64::from(PIXEL_PIPES) / lookups
}

/// Table 6.2.1 with the times of Tables A5 and A7.
fn files() -> Table {
    let head = ["file", "contents", "bytes", "CPU", "6800", "shader", "MB/s", "clocks per lookup"];
    let mut table = Table::new("Files and seconds of the thesis", &head, 2);
    for file in FILES {
        let number = file.number;
        let on_6800 = mean(&A5_6800, number);
        let of_shader = |value: fn(u32) -> f64| on_6800.map(|_| value(number));
        table.rows.push(vec![
            number.to_string(),
            file.content.description().into(),
            file.bytes.to_string(),
            cell(mean(&A5_CPU, number), 1),
            cell(on_6800, 1),
            cell(of_shader(measured), 1),
            cell(of_shader(rate), 1),
            cell(of_shader(clocks), 2),
        ]);
    }
    table
}

fn parameters(model: &Model) -> Table {
    let Machine { cache, texel, quads, .. } = model.fit.machine;
    let mut table = Table::new("Parameters of the model", &["parameter", "value", "basis"], 3);
    let mut add = |name: &str, value: String, basis: &str| {
        table.rows.push(vec![name.into(), value, basis.into()]);
    };
    add("clocks per lookup", format!("{:.2}", model.fit.cost.base), "fitted: file 2");
    add("more clocks per miss", format!("{:.2}", model.fit.cost.miss), "fitted: file 4");
    let (least, most) = model.quads;
    add("quads in flight", format!("{quads} ({least} to {most})"), "tuned: file 1");
    let geometry = format!("{} KB, {} ways", cache.bytes >> 10, cache.ways);
    add("cache of a quad pipeline", geometry, "assumed");
    add("line", format!("{} bytes", cache.line), "assumed");
    add("texels of the tables", format!("{texel} byte, row by row"), "assumed");
    add("quads of a pipeline", "successive".into(), "assumed");
    table
}

fn start_title(fit: &Fit) -> String {
    format!("The same with {:.1} s before the first pass, fitted on file 7", fit.start)
}

fn rows(title: &str, rows: &[Row]) -> Table {
    let head = ["file", "time", "edge", "basis", "thesis", "runs", "model", "%"];
    let mut table = Table::new(title, &head, 4);
    for row in rows {
        table.rows.push(vec![
            row.file.to_string(),
            if row.whole { "whole program" } else { "shader" }.into(),
            row.edge.to_string(),
            row.basis.name().into(),
            format!("{:.1}", row.thesis),
            format!("{:.1} to {:.1}", row.range.0, row.range.1),
            format!("{:.1}", row.model),
            signed(row.percent()),
        ]);
    }
    table
}

fn steps(model: &Model) -> Table {
    let head = ["file", "contents", "round keys", "S-box", "xtime", "MixColumns", "all"];
    let mut table = Table::new("Misses in percent of the lookups", &head, 2);
    for (file, misses) in FILES.iter().zip(&model.misses).take(4) {
        let mut row = vec![file.number.to_string(), file.content.description().to_owned()];
        let rates = misses.rates().into_iter().chain([misses.rate()]);
        row.extend(rates.map(|rate| format!("{:.2}", 100.0 * rate)));
        table.rows.push(row);
    }
    table
}

fn convergence(model: &Model) -> Table {
    let head = ["simulated quads", "per mille of all", "file 1", "file 3", "file 4"];
    let mut table = Table::new("Seconds of the shader by the number of simulated quads", &head, 0);
    let all = FILES[0].passes(EDGE) as f64 * f64::from(EDGE).powi(2) / 4.0;
    for (quads, seconds) in &model.convergence {
        let mut row = vec![quads.to_string(), format!("{:.3}", 1000.0 * *quads as f64 / all)];
        row.extend(seconds.map(|seconds| format!("{seconds:.2}")));
        table.rows.push(row);
    }
    table
}

fn repeated(model: &Model) -> Table {
    let head = ["different blocks", "quads successive", "quads interleaved", "thesis"];
    let title = "Predicted seconds of the shader for a file of 884,736,000 bytes that repeats random blocks";
    let mut table = Table::new(title, &head, 0);
    for (blocks, seconds) in REPEATED.iter().zip(&model.repeated) {
        let thesis = match blocks {
            1 => Some(measured(2)),
            16 => Some(measured(1)),
            _ => None,
        };
        let mut row = vec![blocks.to_string()];
        row.extend(seconds.map(|seconds| format!("{seconds:.1}")));
        row.push(cell(thesis, 1));
        table.rows.push(row);
    }
    table
}

fn others(model: &Model) -> Table {
    let head = ["mechanism", "clocks per lookup", "clocks per miss", "file 1", "%"];
    let mut table = Table::new("Other mechanisms, fitted on files 2 and 4: seconds of file 1", &head, 1);
    for other in &model.others {
        let seconds = other.tuned.seconds;
        table.rows.push(vec![
            other.name.clone(),
            format!("{:.2}", other.tuned.fit.cost.base),
            format!("{:.2}", other.tuned.fit.cost.miss),
            format!("{seconds:.1}"),
            signed(100.0 * (seconds / measured(1) - 1.0)),
        ]);
    }
    table
}

/// A table of the machines that differ from [`MACHINE`](super::model::MACHINE), with their predictions.
pub(super) fn variants(sweep: &Sweep) -> Table {
    let repeated = sweep::REPEATED.map(|blocks| format!("{blocks} blocks"));
    let head = ["machine", "explains", "quads", "clocks per miss", "GB/s", "file 1", "file 3"];
    let head: Vec<&str> = head.into_iter().chain(repeated.iter().map(String::as_str)).collect();
    let mut table = Table::new("Other machines", &head, 2);
    for variant in &sweep.variants {
        let Fit { machine, cost, .. } = variant.tuned.fit;
        let explains = variant.tuned.explains();
        let mut row = vec![
            variant.name.clone(),
            if explains { "yes" } else { "no" }.into(),
            machine.quads.to_string(),
            format!("{:.1}", cost.miss),
            format!("{:.1}", variant.tuned.fit.line_throughput() / 1e9),
        ];
        let seconds = [variant.tuned.seconds, variant.growing].into_iter().chain(variant.repeated);
        row.extend(seconds.map(|seconds| format!("{seconds:.1}")));
        table.rows.push(row);
    }
    table
}

/// The report as JSON.
pub fn json(model: &Model) -> Value {
    let files = FILES.iter().map(|file| {
        let number = file.number;
        let table = |table: &[Runs]| table.iter().find(|runs| runs.file == number).map(|runs| runs.seconds);
        let shader = table(&A5_6800).map(|_| (measured(number), measured_range(number)));
        json!({
            "file": number,
            "contents": file.content.description(),
            "bytes": file.bytes,
            "cpu_seconds": table(&A5_CPU),
            "geforce_6800_seconds": table(&A5_6800),
            "shader_seconds": shader.map(|(seconds, _)| seconds),
            "shader_seconds_range": shader.map(|(_, range)| range),
        })
    });
    let on_8800 = ON_8800.iter().map(|pair| {
        let runs = |table: &[Runs]| {
            table.iter().map(|runs| json!({ "file": runs.file, "seconds": runs.seconds })).collect::<Value>()
        };
        json!({ "table": pair.name, "cpu": runs(pair.cpu), "geforce_8800": runs(pair.on_8800) })
    });
    json!({
        "thesis": {
            "files": files.collect::<Value>(),
            "copies_seconds": runs(&A7_COPIES_6800, 1).seconds,
            "tables_of_the_8800": on_8800.collect::<Value>(),
        },
        "model": model_json(model),
    })
}

fn model_json(model: &Model) -> Value {
    let repeated = REPEATED.iter().zip(&model.repeated).map(|(blocks, [successive, interleaved])| {
        json!({ "blocks": blocks, "successive_seconds": successive, "interleaved_seconds": interleaved })
    });
    let misses = FILES.iter().zip(&model.misses).map(|(file, misses)| {
        let [key, sbox, xtime, mix] = misses.rates();
        json!({
            "file": file.number, "simulated_quads": misses.quads, "rate": misses.rate(),
            "round_keys": key, "sbox": sbox, "xtime": xtime, "mix_columns": mix,
        })
    });
    let convergence = model.convergence.iter().map(|(quads, [first, third, fourth])| {
        json!({ "quads": quads, "file_1_seconds": first, "file_3_seconds": third, "file_4_seconds": fourth })
    });
    let others = model.others.iter().map(|other| {
        json!({ "mechanism": other.name, "fit": fit_json(&other.tuned.fit), "file_1_seconds": other.tuned.seconds })
    });
    json!({
        "fit": fit_json(&model.fit),
        "quads_in_flight_range": model.quads,
        "rows": model.rows.iter().map(row_json).collect::<Value>(),
        "misses": misses.collect::<Value>(),
        "convergence": convergence.collect::<Value>(),
        "with_start": {
            "fit": fit_json(&model.with_start),
            "rows": model.rows_with_start.iter().map(row_json).collect::<Value>(),
        },
        "interleaved": fit_json(&model.interleaved),
        "repeated_blocks": repeated.collect::<Value>(),
        "other_mechanisms": others.collect::<Value>(),
    })
}

fn fit_json(fit: &Fit) -> Value {
    let Machine { cache, texel, quads, distribution, .. } = fit.machine;
    json!({
        "clocks_per_lookup": fit.cost.base,
        "clocks_per_miss": fit.cost.miss,
        "start_seconds": fit.start,
        "quads_in_flight": quads,
        "cache_bytes": cache.bytes,
        "line_bytes": cache.line,
        "ways": cache.ways,
        "texel_bytes": texel,
        "interleaved": distribution == Distribution::Interleaved,
    })
}

fn row_json(row: &Row) -> Value {
    json!({
        "file": row.file,
        "time": if row.whole { "whole program" } else { "shader" },
        "edge": row.edge,
        "basis": row.basis.name(),
        "thesis_seconds": row.thesis,
        "thesis_seconds_range": row.range,
        "model_seconds": row.model,
        "difference_percent": row.percent(),
    })
}
