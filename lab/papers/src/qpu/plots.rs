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
    let model = |of: fn(&Rates) -> f64| {
        report.encryption().iter().map(move |(row, rates)| (row.bytes as f64, of(rates)))
    };
    let thesis = || paper::TABLE_5_1.iter().map(|row| (row.bytes as f64, row));
    plot.lines = vec![
        line("thesis: kernel", thesis().map(|(bytes, row)| (bytes, row.kernel))),
        line("model: kernel", model(|rates| rates.kernel)),
        line("thesis: 12 QPUs", thesis().map(|(bytes, row)| (bytes, row.twelve))),
        line("model: 12 QPUs", model(|rates| rates.twelve)),
        line("thesis: 1 QPU", thesis().filter_map(|(bytes, row)| Some((bytes, row.one?)))),
        line("model: 1 QPU", model(|rates| rates.one)),
        line("thesis: OpenSSL", thesis().filter_map(|(bytes, row)| Some((bytes, row.openssl?)))),
        line("qpu/bitslice: kernel", model(|rates| rates.bitslice)),
    ];
    plot
}

fn decryption(report: &Report) -> Plot {
    let mut plot = by_bytes("Table 5.2: decryption");
    let model = |of: fn(&Rates) -> f64| {
        report.decryption().iter().map(move |(row, rates)| (row.bytes as f64, of(rates)))
    };
    let thesis = || paper::TABLE_5_2.iter().map(|row| (row.bytes as f64, row));
    plot.lines = vec![
        line("thesis: 12 QPUs", thesis().map(|(bytes, row)| (bytes, row.twelve))),
        line("model: 12 QPUs", model(|rates| rates.twelve)),
        line("thesis: 1 QPU", thesis().filter_map(|(bytes, row)| Some((bytes, row.one?)))),
        line("model: 1 QPU", model(|rates| rates.one)),
        line("thesis: OpenSSL", thesis().filter_map(|(bytes, row)| Some((bytes, row.openssl?)))),
        line("qpu/bitslice: kernel", model(|rates| rates.bitslice)),
    ];
    plot
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
