//! The pictures of the page.

use lockstep_report::bars::{Bar, Bars};
use lockstep_report::plot::{self, Line, Plot, Scale};

use super::boards::{Board, GS, GT};
use super::model::{FIGURE_SIZES, table_1};
use super::program::KERNELS;
use super::rows::{GROWTH, Row, Status, size};
use super::thesis;
use super::{Results, figures};
use crate::cuda::paper::{BREAK_EVEN, FIGURE_7, SIZES};

/// The names and the SVG of all pictures.
pub(super) fn all(results: &Results) -> Vec<(String, String)> {
    let [first, second] = [0, 1].map(|at| by_threads(results, at).svg());
    let plots = [
        ("figure-7-32kb", first),
        ("figure-7-128kb", second),
        ("figure-5", by_size(results, 0, &GS, BREAK_EVEN[0]).svg()),
        ("figure-6", by_size(results, 1, &GT, BREAK_EVEN[1]).svg()),
        ("table-1", bars_of_table_1(&results.table_1)),
        ("steps", steps(results).svg()),
        ("thesis", bars_of_thesis(&results.thesis)),
    ];
    plots.into_iter().chain(figures::all()).map(|(name, svg)| (format!("{name}.svg"), svg)).collect()
}

fn line(name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Line {
    Line { name: name.into(), points: points.into_iter().collect(), spread: Vec::new() }
}

fn by_threads(results: &Results, at: usize) -> Plot {
    let bytes = FIGURE_7[at];
    let title = format!("Figure 7: {} on the 8800 GT, by the model", size(bytes as u64));
    let mut plot = Plot::new(&title, ("threads per block", plot::number), "Mbit/s");
    for (kernel, rates) in KERNELS.iter().zip(&results.by_threads[at]) {
        plot.lines
            .push(line(kernel.words(), rates.iter().map(|&(threads, rate)| (f64::from(threads), rate))));
    }
    let best = table_1(&GT)[SIZES.iter().position(|size| *size == bytes).expect("Table 1 has both sizes")];
    plot.lines.push(line("paper: best (Table 1)", [(8.0, best), (512.0, best)]));
    let slowest = best / GROWTH[at];
    plot.lines.push(line(&format!("paper: best / {}", GROWTH[at]), [(8.0, slowest), (16.0, slowest)]));
    plot
}

fn by_size(results: &Results, at: usize, board: &Board, break_even: usize) -> Plot {
    let title = format!("Figure {}: {}, by the model, and Table 1", 5 + at, board.name);
    let mut plot = Plot::new(&title, ("bytes of plaintext", plot::bytes), "Mbit/s");
    for (kernel, rates) in KERNELS.iter().zip(&results.by_size[at]) {
        let points = FIGURE_SIZES.iter().zip(rates).map(|(&bytes, &rate)| (bytes as f64, rate));
        plot.lines.push(line(kernel.words(), points));
    }
    // Table 1 has no sizes between 128 KiB and 32 MiB, so its points are two separate lines.
    let points = SIZES.map(|bytes| bytes as f64).into_iter().zip(table_1(board));
    plot.lines.push(line("paper: Table 1, small", points.clone().take(2)));
    plot.lines.push(line("paper: Table 1, large", points.skip(2)));
    plot.marks.push((break_even as f64, "break-even in the paper".into()));
    plot
}

fn steps(results: &Results) -> Plot {
    let of =
        |which: usize| results.steps.iter().map(move |(bytes, rates)| ((*bytes >> 10) as f64, rates[which]));
    let mut plot = Plot::new(
        "Whole blocks of threads on 14 multiprocessors",
        ("KB of plaintext", plot::number),
        "Mbit/s",
    );
    plot.scale = Scale::Even;
    plot.lines = vec![line("fine, shared", of(0)), line("coarse, shared", of(1))];
    plot
}

fn bars_of_table_1(rows: &[Row]) -> String {
    let group = |row: &Row| {
        let bar = |series, value| Bar { series, value, spread: (value, value) };
        let fitted = if row.status == Status::Fitted { " (fitted)" } else { "" };
        (format!("{}{fitted}", row.what), vec![bar(0, row.paper), bar(1, row.model)])
    };
    let groups = rows.iter().map(group).collect();
    Bars { title: "Table 1, Mbit/s".into(), series: vec!["paper".into(), "model".into()], groups }.svg()
}

fn bars_of_thesis(rows: &[thesis::Row]) -> String {
    let nominal = rows.iter().filter(|row| row.memory >= 1.0);
    let group = |row: &thesis::Row| {
        let other = rows
            .iter()
            .find(|other| other.table == row.table && other.memory < 1.0)
            .expect("each table has both rates");
        let middle = |range: (f64, f64)| (range.0 + range.1) / 2.0;
        let bar = |series, value, spread| Bar { series, value, spread };
        let bars = vec![
            bar(0, row.thesis, row.range),
            bar(1, middle(row.model), row.model),
            bar(2, middle(other.model), other.model),
        ];
        (format!("Table {}", row.table), bars)
    };
    let series = vec!["thesis, and its runs".into(), "model, 64 GB/s".into(), "model, 67 % of it".into()];
    Bars {
        title: "Seconds of the kernel for files 1 to 4".into(),
        series,
        groups: nominal.map(group).collect(),
    }
    .svg()
}
