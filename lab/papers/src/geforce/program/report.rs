//! The times of the programs, and their use of processors over time.

use lockstep_report::Table;
use lockstep_report::plot::{self, Line, Plot, Scale};
use lockstep_report::text::{WIDTH, count, wrap};
use serde_json::{Value, json};

use super::{Conditions, Point};
use crate::geforce::paper::{A4_8800, A5_6800, A5_CPU, Runs};

/// The runs with their date.
pub struct Report {
    /// The conditions of the runs.
    pub conditions: Conditions,
    /// The runs by file, and for each file by program.
    pub points: Vec<Point>,
    /// The day of the runs, as 2026-01-31.
    pub date: String,
}

/// The number of parts into which the picture divides a run.
const PARTS: usize = 20;

impl Report {
    fn introduction(&self) -> String {
        let Conditions { version, scale, runs, .. } = &self.conditions;
        let size = if *scale == 1 { "of full size".into() } else { format!("of 1/{scale} of their size") };
        format!(
            "The files of Table 6.2.1 {size}, encrypted by the program `openssl` ({version}) from a file to a file, as in the \
             thesis: means of {} after a warm-up run. `cp` copies the file. `openssl` is OpenSSL's own AES; the other \
             programs are `openssl` with Lockstep's provider, which gets 4096 bytes at a time. Every ciphertext was compared \
             with the CPU's.",
            count(*runs, "run"),
        )
    }

    fn programs(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for point in &self.points {
            if !names.contains(&point.program.as_str()) {
                names.push(&point.program);
            }
        }
        names
    }

    fn table(&self, title: &str, value: impl Fn(&Point) -> f64) -> Table {
        let head: Vec<&str> = ["file", "MB"].into_iter().chain(self.programs()).collect();
        let mut table = Table::new(title, &head, 0);
        let mut files: Vec<(u32, u64)> = self.points.iter().map(|point| (point.file, point.bytes)).collect();
        files.dedup();
        for (file, bytes) in files {
            let mut row = vec![file.to_string(), format!("{:.1}", bytes as f64 / 1e6)];
            let of = |program: &&str| {
                self.points.iter().find(|point| point.file == file && point.program == *program)
            };
            row.extend(
                self.programs()
                    .iter()
                    .map(|program| of(program).map_or("-".into(), |point| digits(value(point)))),
            );
            table.rows.push(row);
        }
        table
    }

    /// The rates of the thesis's programs, for comparison.
    fn thesis(&self) -> Table {
        let head = ["file", "CPU (A5)", "8800 (A4)", "6800 (A5)"];
        let mut table = Table::new("The thesis's programs: MB/s", &head, 0);
        for number in &self.conditions.files {
            let bytes = crate::geforce::files::File::of(*number).bytes as f64;
            let rate = |runs: &[Runs]| {
                let runs = runs.iter().find(|runs| runs.file == *number);
                runs.map_or("-".into(), |runs| digits(bytes / runs.mean() / 1e6))
            };
            table.rows.push(vec![number.to_string(), rate(&A5_CPU), rate(&A4_8800), rate(&A5_6800)]);
        }
        table
    }

    /// All tables, in their order.
    pub fn tables(&self) -> Vec<Table> {
        vec![
            self.table("MB/s", |point| point.bytes as f64 / point.seconds() / 1e6),
            self.table("Seconds", Point::seconds),
            self.table("Processors in use (Appendix B)", |point| point.cpu_seconds() / point.seconds()),
            self.thesis(),
        ]
    }

    /// The processors in use over time, for the first file and the last run of each program (Figure B1, Tables B1 to B3).
    pub fn plot(&self) -> Plot {
        let file = self.points.first().map_or(0, |point| point.file);
        let title = format!("Processors in use while file {file} is encrypted (Appendix B), {}", self.date);
        let mut plot = Plot::new(&title, ("percent of the run", plot::number), "processors");
        plot.scale = Scale::Even;
        for point in self.points.iter().filter(|point| point.file == file) {
            let Some(run) = point.runs.last() else { continue };
            // Each value is in the middle of its part.
            let place = |(part, used): (usize, f64)| (100.0 * (part as f64 + 0.5) / PARTS as f64, used);
            let points = run.usage(PARTS).into_iter().enumerate().map(place).collect();
            let name = format!("{} ({} s)", point.program, digits(run.seconds));
            plot.lines.push(Line { name, points, spread: Vec::new() });
        }
        plot
    }

    /// The report for a terminal.
    pub fn text(&self) -> String {
        let tables: Vec<String> = self.tables().iter().map(Table::text).collect();
        format!("{}\n{}\n\n{}", wrap(&self.introduction(), WIDTH).join("\n"), self.date, tables.join("\n"))
    }

    /// The report as JSON.
    pub fn json(&self) -> Value {
        let point = |point: &Point| {
            let run = |run: &super::Run| json!({ "seconds": run.seconds, "cpu_seconds": run.cpu_seconds, "processors": run.usage(PARTS) });
            json!({
                "file": point.file, "program": point.program, "bytes": point.bytes,
                "runs": point.runs.iter().map(run).collect::<Value>(),
            })
        };
        json!({
            "date": self.date,
            "openssl": self.conditions.version,
            "scale": self.conditions.scale,
            "points": self.points.iter().map(point).collect::<Value>(),
        })
    }
}

/// A number with about three digits.
fn digits(value: f64) -> String {
    match value {
        ..10.0 => format!("{value:.2}"),
        ..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}
