//! The tables of the report.

use serde_json::{Value, json};

use super::Results;
use super::boards::{GS, GT};
use super::hypotheses::line_errors;
use super::model::{FIGURE_SIZES, Fit};
use super::program::{ASSUMPTIONS, KERNELS};
use super::rows::{Row, size};
use super::thesis;
use super::variants::Variant;
use crate::cuda::paper::{FIGURE_7, THREADS};
use lockstep_report::Table;
use lockstep_report::text::{WIDTH, hang, wrap};

/// The first lines of the report for a terminal.
const INTRODUCTION: &str = "\
The kernels of the CUDA paper (2009) on a simulated 8800 GT and 8400 GS, and the kernel of the thesis (2007) on a simulated 8800 GTS. \
The lookups are those of Lockstep's kernels in the emulator. Three constants are fitted to three figures of Table 1, and one assumption \
is tuned to one factor of Figure 7; a row is refuted if it differs by more than 4 % (Table 1) or 15 % (all others).";

/// The names of the tables in the page, and the tables of the report for a terminal.
pub(super) fn tables(results: &Results) -> Vec<(&'static str, Table)> {
    vec![
        ("figure_7", rows("Figure 7", &results.figure_7, 2)),
        ("figures_5_and_6", rows("Figures 5 and 6", &results.figures_5_and_6, 2)),
        ("nominal", rows("The 8400 GS at its nominal clock of 900 MHz", &results.nominal, 2)),
        ("table_1", rows("Table 1, Mbit/s", &results.table_1, 0)),
        ("constants", constants(&results.fit)),
        ("hypotheses", hypotheses(results)),
        ("thesis", thesis_table(&results.thesis)),
        ("passes", passes(results)),
        ("threads_32", by_threads(results, 0)),
        ("threads_128", by_threads(results, 1)),
        ("sizes_gs", by_size(results, 0)),
        ("sizes_gt", by_size(results, 1)),
        ("variants", variants(&results.variants)),
    ]
}

/// The report for a terminal: lines of at most [`WIDTH`] characters.
pub fn text(results: &Results) -> String {
    let mut text = wrap(INTRODUCTION, WIDTH).join("\n") + "\n";
    for (name, table) in tables(results) {
        text.push('\n');
        // The reasons are sentences, which are wrapped.
        text += &if name == "hypotheses" { explanations(results) } else { table.text() };
    }
    text
}

fn explanations(results: &Results) -> String {
    let mut text = "Explanations\n".to_owned();
    for one in &results.hypotheses {
        let title = format!("{}: {} ({})", one.verdict.name(), one.words, one.stated_by);
        text += &format!("\n{}{}", hang(WIDTH, "  ", 2, &title), hang(WIDTH, "    ", 4, &one.reason));
    }
    text
}

fn decimals(value: f64, most: usize) -> String {
    let decimals = if value.abs() >= 100.0 { 0 } else { most };
    format!("{value:.decimals$}")
}

fn rows(title: &str, rows: &[Row], most: usize) -> Table {
    let mut table = Table::new(title, &["figure", "status", "paper", "model", "%"], 2);
    table.rows = rows
        .iter()
        .map(|row| {
            let status = row.status.name();
            let [paper, model] = [row.paper, row.model].map(|value| decimals(value, most));
            vec![row.what.clone(), status.into(), paper, model, format!("{:+.1}", row.percent())]
        })
        .collect();
    table
}

fn constants(fit: &Fit) -> Table {
    let mut table = Table::new("Constants", &["constant", "basis", "value"], 2);
    let mut row =
        |name: &str, basis: &str, value: String| table.rows.push(vec![name.into(), basis.into(), value]);
    row(
        "instructions of coarse grain for an AES block",
        "fitted: 8800 GT, 128 MB",
        fit.instructions.to_string(),
    );
    row("time of a call without the kernel, us", "fitted: 8800 GT, 32 KB", format!("{:.1}", 1e6 * fit.call));
    row("clock of the 8400 GS / 900 MHz", "fitted: 8400 GS, 128 MB", format!("{:.3}", fit.clock));
    let with = ASSUMPTIONS;
    row(
        "loads in flight while T-boxes are copied",
        "tuned: Figure 7, 32 KB",
        with.loads_in_flight.to_string(),
    );
    row("clocks of a load from global memory", "assumed", with.global.to_string());
    row("clocks of a lookup", "assumed", with.lookup.to_string());
    row("clocks of the constant cache for a word", "assumed", with.constant_word.to_string());
    row("instructions, fine / coarse", "assumed", format!("{:.1}", with.fine_instructions));
    row(
        "bytes of state per thread, fine and coarse",
        "paper (16 or 32)",
        format!("{}, {}", with.state[0], with.state[1]),
    );
    table
}

fn hypotheses(results: &Results) -> Table {
    let mut table = Table::new("Explanations", &["explanation", "by", "verdict", "reason"], 4);
    table.rows = results
        .hypotheses
        .iter()
        .map(|one| {
            vec![one.words.into(), one.stated_by.into(), one.verdict.name().into(), one.reason.clone()]
        })
        .collect();
    table
}

fn thesis_table(rows: &[thesis::Row]) -> Table {
    let head = [
        "table",
        "memory",
        "status",
        "thesis, s",
        "runs, s",
        "model, s",
        "whole program: thesis",
        "whole program: model",
    ];
    let mut table =
        Table::new("The kernel of the thesis: files 1 to 4, without the copies of Table A7", &head, 3);
    let range = |(low, high): (f64, f64)| format!("{low:.1} to {high:.1}");
    let copies = thesis::copies();
    table.rows = rows
        .iter()
        .map(|row| {
            let memory = format!("{:.0} %", 100.0 * row.memory);
            let status = row.status.name();
            let whole = range((row.model.0 + copies, row.model.1 + copies));
            let thesis = [format!("{:.1}", row.thesis), range(row.range), range(row.model)];
            let [mean, runs, model] = thesis;
            vec![
                row.table.into(),
                memory,
                status.into(),
                mean,
                runs,
                model,
                format!("{:.1}", row.thesis + copies),
                whole,
            ]
        })
        .collect();
    table
}

fn passes(results: &Results) -> Table {
    let mut table =
        Table::new("Passes of a lookup of a half-warp", &["kernel", "16 threads", "8 threads"], 1);
    table.rows = KERNELS
        .iter()
        .zip(&results.passes)
        .map(|(kernel, [full, half])| vec![kernel.words().into(), format!("{full:.2}"), format!("{half:.2}")])
        .collect();
    table
}

fn by_threads(results: &Results, at: usize) -> Table {
    let threads: Vec<String> = THREADS.iter().map(u32::to_string).collect();
    let head: Vec<&str> = ["kernel"].into_iter().chain(threads.iter().map(String::as_str)).collect();
    let title = format!("Mbit/s on the 8800 GT by threads per block, {}", size(FIGURE_7[at] as u64));
    let mut table = Table::new(&title, &head, 1);
    table.rows = KERNELS
        .iter()
        .zip(&results.by_threads[at])
        .map(|(kernel, rates)| {
            let rate = |threads: &u32| rates.iter().find(|(of, _)| of == threads);
            let cells = THREADS
                .iter()
                .map(|threads| rate(threads).map_or("-".into(), |(_, rate)| format!("{rate:.0}")));
            std::iter::once(kernel.words().to_owned()).chain(cells).collect()
        })
        .collect();
    table
}

fn by_size(results: &Results, at: usize) -> Table {
    let names = KERNELS.map(super::program::Kernel::words);
    let head: Vec<&str> = ["plaintext"].into_iter().chain(names).collect();
    let title = format!("Mbit/s on the {} by size, best number of threads", [GS, GT][at].name);
    let mut table = Table::new(&title, &head, 1);
    table.rows = FIGURE_SIZES
        .iter()
        .enumerate()
        .map(|(row, bytes)| {
            let cells = results.by_size[at].iter().map(|rates| format!("{:.0}", rates[row]));
            std::iter::once(size(*bytes)).chain(cells).collect()
        })
        .collect();
    table
}

fn variants(variants: &[Variant]) -> Table {
    let head = [
        "assumption",
        "instructions",
        "call, us",
        "clock",
        "Table 1, worst %",
        "8x",
        "16x",
        "fine from",
        "even GT, KB",
        "even GS, KB",
    ];
    let mut table = Table::new("Other assumptions, each with its own fit", &head, 1);
    table.rows = variants
        .iter()
        .map(|variant| {
            let figure_7 = |at: usize| variant.figure_7[at].model;
            vec![
                variant.name.into(),
                variant.fit.instructions.to_string(),
                format!("{:.1}", 1e6 * variant.fit.call),
                format!("{:.3}", variant.fit.clock),
                format!("{:.1}", variant.worst),
                format!("{:.1}", figure_7(0)),
                format!("{:.1}", figure_7(1)),
                format!("{:.0}, {:.0}", figure_7(4), figure_7(5)),
                (variant.break_even[0] >> 10).to_string(),
                (variant.break_even[1] >> 10).to_string(),
            ]
        })
        .collect();
    table
}

/// The report as JSON.
pub fn json(results: &Results) -> Value {
    let rows = |rows: &[Row]| -> Value { rows.iter().map(row_json).collect() };
    let hypotheses = results.hypotheses.iter().map(|one| {
        json!({ "explanation": one.words, "stated_by": one.stated_by, "verdict": one.verdict.name(), "reason": one.reason })
    });
    let thesis = results.thesis.iter().map(|row| {
        json!({
            "table": row.table, "memory_rate": row.memory, "thesis_seconds": row.thesis, "thesis_seconds_range": row.range,
            "model_seconds_range": row.model, "status": row.status.name(),
        })
    });
    let kernels = KERNELS.iter().enumerate().map(|(at, kernel)| {
        let threads = FIGURE_7
            .iter()
            .enumerate()
            .map(|(size, bytes)| json!({ "bytes": bytes, "rates": results.by_threads[size][at] }));
        json!({
            "kernel": kernel.name(),
            "passes_of_16_threads": results.passes[at][0],
            "passes_of_8_threads": results.passes[at][1],
            "by_threads": threads.collect::<Value>(),
            "by_size_8400_gs": results.by_size[0][at],
            "by_size_8800_gt": results.by_size[1][at],
        })
    });
    let variants = results.variants.iter().map(|variant| {
        json!({
            "assumption": variant.name, "fit": fit_json(&variant.fit), "table_1_worst_percent": variant.worst,
            "figure_7": rows(&variant.figure_7), "break_even_bytes": variant.break_even,
        })
    });
    json!({
        "fit": fit_json(&results.fit),
        "figure_7": rows(&results.figure_7),
        "figures_5_and_6": rows(&results.figures_5_and_6),
        "table_1": rows(&results.table_1),
        "table_1_at_nominal_clock": rows(&results.nominal),
        "line_errors_percent": line_errors(),
        "explanations": hypotheses.collect::<Value>(),
        "thesis": thesis.collect::<Value>(),
        "sizes": FIGURE_SIZES,
        "kernels": kernels.collect::<Value>(),
        "variants": variants.collect::<Value>(),
    })
}

fn fit_json(fit: &Fit) -> Value {
    json!({ "instructions": fit.instructions, "call_seconds": fit.call, "clock_8400_gs": fit.clock })
}

fn row_json(row: &Row) -> Value {
    json!({
        "figure": row.what, "paper": row.paper, "model": row.model, "difference_percent": row.percent(),
        "status": row.status.name(),
    })
}
