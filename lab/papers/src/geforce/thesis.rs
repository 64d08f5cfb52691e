//! The times of the thesis: Tables A1 to A7 and 6.2.2 with their pictures, and an estimate of the copies to the GeForce 8800.

use lockstep_report::Table;
use lockstep_report::bars::Bars;

use super::files::{FILES, File};
use super::paper::{
    A5_6800, A5_CPU, A6_6800, A6_CPU, A7_COPIES_6800, A7_COPIES_8800, A7_NULL, COPIES, ON_8800, Runs,
    TABLE_6_2_2, runs,
};

/// Bytes of a call of the engine for the 8800 in Tables A2 and A4. The thesis does not state the buffer of Table A7. With 29,491,200 bytes,
/// as in Table A1, the estimate for files 1 to 4 is 0.91 s instead of 0.94 s.
const BUFFER: u64 = 58_982_400;

/// The tables, with their names in the page.
pub(super) fn tables() -> [(&'static str, Table); 6] {
    [
        (
            "seconds_8800",
            on_8800("Tables A1 to A4: seconds on the CPU and on the 8800", |_, runs| {
                format!("{:.1}", runs.mean())
            }),
        ),
        (
            "rates_8800",
            on_8800("Tables A1 to A4: MB/s on the CPU and on the 8800", |file, runs| {
                format!("{:.1}", FILES[file as usize - 1].bytes as f64 / runs.mean() / 1e6)
            }),
        ),
        ("ratios", ratios()),
        ("tables_6800", on_6800()),
        ("without_encryption", without_encryption()),
        ("copies", copies()),
    ]
}

/// The pictures of the tables.
pub(super) fn pictures() -> [(&'static str, String); 3] {
    let bar = |name, runs: &Runs| (name, runs.mean(), runs.range());
    let mut on_8800 = chart("Tables A1 to A4: seconds, means and runs");
    for pair in &ON_8800 {
        for (cpu, gpu) in pair.cpu.iter().zip(pair.on_8800).take(4) {
            on_8800.push(&format!("{}, file {}", pair.name, cpu.file), [bar("CPU", cpu), bar("8800", gpu)]);
        }
    }
    let mut on_6800 = chart("Tables A5 and A6: seconds, means and runs");
    for (name, cpu, gpu) in [("A5", &A5_CPU[..], &A5_6800[..]), ("A6", &A6_CPU, &A6_6800)] {
        for (cpu, gpu) in cpu.iter().zip(gpu) {
            on_6800.push(&format!("{name}, file {}", cpu.file), [bar("CPU", cpu), bar("6800", gpu)]);
        }
    }
    let mut engines = chart("Table A7: seconds, medians and runs");
    for null in &A7_NULL {
        let median = |name, runs: &Runs| (name, runs.median(), runs.range());
        let bars = [
            median("nothing", null),
            median("copies, 6800", &runs(&A7_COPIES_6800, null.file)),
            median("copies, 8800", &runs(&A7_COPIES_8800, null.file)),
        ];
        engines.push(&of_table_a7(null.file), bars);
    }
    [("tables-8800", on_8800.svg()), ("tables-6800", on_6800.svg()), ("engines", engines.svg())]
}

fn chart(title: &str) -> Bars {
    Bars { title: title.into(), ..Bars::default() }
}

/// The files of a row of Table A7.
fn of_table_a7(file: u32) -> String {
    if file == 1 { "files 1 to 4".into() } else { format!("file {file}") }
}

/// Tables A1 to A4: two columns for each table.
fn on_8800(title: &str, value: impl Fn(u32, &Runs) -> String) -> Table {
    let head = ON_8800.iter().flat_map(|pair| [format!("{}: CPU", pair.name), "8800".into()]);
    let head: Vec<String> = std::iter::once("file".into()).chain(head).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = Table::new(title, &head, 0);
    for file in FILES.map(|file| file.number) {
        let cell = |table: &[Runs]| {
            table.iter().find(|runs| runs.file == file).map_or("-".into(), |runs| value(file, runs))
        };
        let cells = ON_8800.iter().flat_map(|pair| [cell(pair.cpu), cell(pair.on_8800)]);
        table.rows.push(std::iter::once(file.to_string()).chain(cells).collect());
    }
    table
}

/// The mean times of a file in Tables A1 to A4: on the CPU, and on the 8800.
pub(super) fn means(file: u32) -> (f64, f64) {
    let mean = |of: fn(&super::paper::Pair) -> &'static [Runs]| {
        ON_8800.iter().map(|pair| runs(of(pair), file).mean()).sum::<f64>() / ON_8800.len() as f64
    };
    (mean(|pair| pair.cpu), mean(|pair| pair.on_8800))
}

/// Table 6.2.2, with the means of the twelve runs of Tables A1 to A4.
fn ratios() -> Table {
    let head = ["file", "6.2.2: CPU", "8800", "ratio", "A1 to A4: CPU", "8800", "ratio"];
    let mut table = Table::new("Table 6.2.2, and the means of all runs: seconds", &head, 0);
    for (file, printed) in (1..).zip(TABLE_6_2_2) {
        let cells = [printed, means(file)]
            .into_iter()
            .flat_map(|(cpu, gpu)| [format!("{cpu:.3}"), format!("{gpu:.3}"), format!("{:.3}", cpu / gpu)]);
        table.rows.push(std::iter::once(file.to_string()).chain(cells).collect());
    }
    table
}

/// Tables A5 and A6.
fn on_6800() -> Table {
    let head = ["file", "A5: CPU", "6800", "6800 / CPU", "A6: CPU", "6800", "6800 / CPU"];
    let mut table = Table::new("Tables A5 and A6: seconds on the CPU and on the 6800", &head, 0);
    for file in A5_CPU.map(|runs| runs.file) {
        let mean = |table: &[Runs]| table.iter().find(|runs| runs.file == file).map(Runs::mean);
        let cells =
            [(mean(&A5_CPU), mean(&A5_6800)), (mean(&A6_CPU), mean(&A6_6800))].into_iter().flat_map(|pair| {
                let (cpu, gpu) = match pair {
                    (Some(cpu), Some(gpu)) => (cpu, gpu),
                    _ => return ["-".to_owned(), "-".into(), "-".into()],
                };
                [format!("{cpu:.1}"), format!("{gpu:.1}"), format!("{:.2}", gpu / cpu)]
            });
        table.rows.push(std::iter::once(file.to_string()).chain(cells).collect());
    }
    table
}

/// Table A7 with the medians of the runs.
fn without_encryption() -> Table {
    let head = ["file", "nothing", "copies, 6800", "copies, 8800"];
    let mut table = Table::new("Table A7: seconds without encryption, medians (runs)", &head, 1);
    for null in &A7_NULL {
        let cell = |runs: Runs| {
            let (least, most) = runs.range();
            format!("{:.1} ({least:.1} to {most:.1})", runs.median())
        };
        let cells = [*null, runs(&A7_COPIES_6800, null.file), runs(&A7_COPIES_8800, null.file)].map(cell);
        table.rows.push(std::iter::once(of_table_a7(null.file)).chain(cells).collect());
    }
    table
}

/// Returns the seconds of the copies to the 8800 and back: in the thesis, by the medians and by the means of Table A7, and by the model at
/// the rate [`COPIES`].
pub(super) fn copy_seconds(file: u32) -> ([f64; 2], f64) {
    let of =
        |typical: fn(&Runs) -> f64| typical(&runs(&A7_COPIES_8800, file)) - typical(&runs(&A7_NULL, file));
    let thesis = [of(Runs::median), of(Runs::mean)];
    // The engine copies whole buffers, and one for the padding, in both directions.
    let buffers = File::of(file).bytes.div_ceil(BUFFER) + 1;
    (thesis, 2.0 * (buffers * BUFFER) as f64 / COPIES)
}

fn copies() -> Table {
    let head =
        ["file", "thesis, medians", "thesis, means", "at 2 GB/s", "medians - 2 GB/s", "means - 2 GB/s"];
    let mut table = Table::new("The copies to the 8800 and back: seconds", &head, 1);
    for null in &A7_NULL {
        let ([median, mean], model) = copy_seconds(null.file);
        let cells =
            [median, mean, model, median - model, mean - model].map(|seconds| format!("{seconds:.2}"));
        table.rows.push(std::iter::once(of_table_a7(null.file)).chain(cells).collect());
    }
    table
}

#[cfg(test)]
mod tests;
