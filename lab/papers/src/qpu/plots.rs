//! Plots of the thesis's tables, with the figures of the thesis and of the model.

use lockstep_report::plot::{self, Line, Plot};

use super::paper;
use super::report::Report;
use super::throughput::Rates;

/// The names and the SVG of the plots.
pub(super) fn all(report: &Report) -> Vec<(String, String)> {
    let [sums, products] = report.transfers();
    let first: Vec<[f64; 2]> = report.first_kernel().iter().map(|row| row.milliseconds).collect();
    let first_paper = paper::TABLE_7_4.map(|thesis| [thesis]);
    [
        ("table-5-1", encryption(report)),
        ("table-5-2", decryption(report)),
        (
            "table-7-1",
            by_qpus("Table 7.1: sums of two arrays", &["blocking", "ahead"], &paper::TABLE_7_1, &sums),
        ),
        ("table-7-2", by_qpus("Table 7.2: products", &["blocking", "ahead"], &paper::TABLE_7_2, &products)),
        (
            "table-7-3",
            by_qpus(
                "Table 7.3: products without loads and stores",
                &["any", "exchanged", "small"],
                &paper::TABLE_7_3,
                &report.multiplications(),
            ),
        ),
        ("table-7-4", {
            let mut plot = by_qpus("Table 7.4: the first kernel", &["first kernel"], &first_paper, &[]);
            plot.lines.extend(
                [("model: instructions", 0), ("model: with waits", 1)]
                    .map(|(name, at)| line(name, (1..).map(f64::from).zip(first.iter().map(|row| row[at])))),
            );
            plot
        }),
    ]
    .map(|(name, plot)| (format!("{name}.svg"), plot.svg()))
    .into()
}

fn line(name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Line {
    Line { name: name.into(), points: points.into_iter().collect(), spread: Vec::new() }
}

fn by_bytes(title: &str) -> Plot {
    Plot::new(title, ("bytes of a call", plot::bytes), "kB/s")
}

fn encryption(report: &Report) -> Plot {
    let mut plot = by_bytes("Table 5.1: encryption");
    let thesis = paper::TABLE_5_1.iter().map(|row| (row.bytes as f64, row.kernel));
    let model = report.encryption().iter().map(|(row, rates)| (row.bytes as f64, rates.kernel));
    plot.lines = vec![line("thesis: kernel", thesis), line("model: kernel", model)];
    let thesis = paper::TABLE_5_1.map(|row| (row.bytes, [Some(row.twelve), row.one, row.openssl]));
    let model = report.encryption().iter().map(|(row, rates)| (row.bytes, *rates));
    with_copies(&mut plot, &thesis, &model.collect::<Vec<_>>());
    plot
}

fn decryption(report: &Report) -> Plot {
    let mut plot = by_bytes("Table 5.2: decryption");
    let thesis = paper::TABLE_5_2.map(|row| (row.bytes, [Some(row.twelve), row.one, row.openssl]));
    let model = report.decryption().iter().map(|(row, rates)| (row.bytes, *rates));
    with_copies(&mut plot, &thesis, &model.collect::<Vec<_>>());
    plot
}

/// Adds the lines that both tables have. `thesis` has the rates of 12 QPUs, of one QPU and of OpenSSL for each number of bytes.
fn with_copies(plot: &mut Plot, thesis: &[(u64, [Option<f64>; 3])], model: &[(u64, Rates)]) {
    let thesis =
        |column: usize| thesis.iter().filter_map(move |(bytes, rates)| Some((*bytes as f64, rates[column]?)));
    let model = |of: fn(&Rates) -> f64| model.iter().map(move |(bytes, rates)| (*bytes as f64, of(rates)));
    plot.lines.extend([
        line("thesis: 12 QPUs", thesis(0)),
        line("model: 12 QPUs", model(|rates| rates.twelve)),
        line("thesis: 1 QPU", thesis(1)),
        line("model: 1 QPU", model(|rates| rates.one)),
        line("thesis: OpenSSL", thesis(2)),
        line("qpu/bitslice: kernel", model(|rates| rates.bitslice)),
    ]);
}

/// Times by the number of QPUs. `model` may have no rows.
fn by_qpus<const COLUMNS: usize>(
    title: &str,
    names: &[&str; COLUMNS],
    thesis: &[[f64; COLUMNS]; 12],
    model: &[[f64; COLUMNS]],
) -> Plot {
    let mut plot = Plot::new(title, ("QPUs", plot::number), "ms");
    let qpus = || (1..).map(f64::from);
    for (column, name) in names.iter().enumerate() {
        let of = |rows: &[[f64; COLUMNS]]| qpus().zip(rows.iter().map(|row| row[column]).collect::<Vec<_>>());
        plot.lines.push(line(&format!("thesis: {name}"), of(thesis)));
        if !model.is_empty() {
            plot.lines.push(line(&format!("model: {name}"), of(model)));
        }
    }
    plot
}
