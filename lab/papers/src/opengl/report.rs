//! The chapter's Figure 36-9 with the new measurements, and the rates of the modes.

use lockstep_core::work::Pass;
use lockstep_report::Table;
use lockstep_report::plot::{self, Line, Plot};
use lockstep_report::text::{WIDTH, wrap};
use serde_json::{Value, json};

use super::measure::{MODES, Measured};
use super::paper;

/// The measurements with their date.
pub struct Report {
    /// The rates of the kernels.
    pub measured: Measured,
    /// The day of the measurements, as 2026-01-31.
    pub date: String,
}

impl Report {
    /// The conditions of the measurement, in a few sentences.
    fn introduction(&self) -> String {
        let conditions = &self.measured.conditions;
        format!(
            "AES-128-ECB as in Figure 36-9 of GPU Gems 3 (T. Yamanouchi, chapter 36, 2007), and the modes of its section \
             36.5, from host to host. Each of {} runs processes {}B of random data batch by batch, after a warm-up run. The \
             rates are means, in MB/s of 10^6 bytes. Every output was compared with the CPU's. `openssl` is `openssl speed` \
             on one thread.{}",
            conditions.runs,
            plot::bytes(conditions.total as f64),
            if self.measured.is_emulated {
                " CUDA is an emulator here, whose rates say nothing about a GPU."
            } else {
                ""
            },
        )
    }

    /// Names of kernels, in the order of the first batch size.
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for point in &self.measured.points {
            if !names.contains(&point.name.as_str()) {
                names.push(&point.name);
            }
        }
        names
    }

    /// A table of the kernels with their rates for each batch size, and of the chapter's rates at the chapter's batch size.
    pub fn table(&self) -> Table {
        let batches: Vec<usize> = self.batches();
        let head: Vec<String> = ["".into(), "whose".into()]
            .into_iter()
            .chain(batches.iter().map(|batch| plot::bytes(*batch as f64)))
            .collect();
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        let mut table = Table::new("Figure 36-9: MB/s by bytes of a batch", &head, 2);
        let theirs = [
            ("vertex program", paper::VERTEX),
            ("fragment program", paper::FRAGMENT),
            ("openssl", paper::OPENSSL),
        ];
        for (name, rate) in theirs {
            let mut row = vec![name.to_owned(), "chapter".into()];
            let at = |batch: &usize| if *batch == paper::BATCH { format!("{rate:.0}") } else { "-".into() };
            row.extend(batches.iter().map(at));
            table.rows.push(row);
        }
        for name in self.names() {
            let mut row = vec![name.to_owned(), "here".into()];
            let rate = |batch: &usize| {
                self.measured.find(name, *batch).map_or("-".into(), |point| rounded(point.rate))
            };
            row.extend(batches.iter().map(rate));
            table.rows.push(row);
        }
        table
    }

    /// A table of the kernels with their rates in each mode.
    pub fn modes(&self) -> Table {
        let modes = &self.measured.modes;
        let batch = modes.first().map_or("-".into(), |point| plot::bytes(point.batch as f64));
        let title = format!("MB/s by mode, batches of {batch}B");
        let head: Vec<&str> = std::iter::once("").chain(MODES.map(name_of)).collect();
        let mut table = Table::new(&title, &head, 1);
        let mut names: Vec<&str> = Vec::new();
        for point in modes {
            if !names.contains(&point.name.as_str()) {
                names.push(&point.name);
            }
        }
        for name in names {
            let rate = |pass| modes.iter().find(|point| point.name == name && point.pass == pass);
            let cells = MODES.map(|pass| rate(pass).map_or("-".into(), |point| rounded(point.rate)));
            table.rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
        }
        table
    }

    fn batches(&self) -> Vec<usize> {
        let mut batches: Vec<usize> = self.measured.points.iter().map(|point| point.batch).collect();
        batches.dedup();
        batches
    }

    /// A plot of the throughput by batch size.
    pub fn plot(&self) -> Plot {
        let line = |name: &&str| {
            let points = self.measured.points.iter().filter(|point| point.name == **name);
            Line {
                name: (*name).into(),
                points: points.clone().map(|point| (point.batch as f64, point.rate)).collect(),
                spread: points.map(|point| point.spread).collect(),
            }
        };
        let title = format!("Figure 36-9: AES-128-ECB by batch size, {}", self.date);
        let mut plot = Plot::new(&title, ("bytes of a batch", plot::bytes), "MB/s");
        plot.lines = self.names().iter().map(line).collect();
        for (name, rate) in [("chapter: vertex", paper::VERTEX), ("chapter: fragment", paper::FRAGMENT)] {
            plot.push(name, (paper::BATCH as f64, rate), (rate, rate));
        }
        plot
    }

    /// A comparison of the fragment program with the vertex program, here and in the chapter.
    fn findings(&self) -> String {
        let rate = |name| self.measured.find(name, paper::BATCH).map(|point| point.rate);
        let [vertex, fragment] = [rate(paper::KERNELS[0]), rate(paper::KERNELS[1])];
        let theirs = paper::FRAGMENT / paper::VERTEX;
        match fragment.zip(vertex) {
            Some((fragment, vertex)) => format!(
                "With batches of 1 MiB the fragment program is {:.2} times as fast as the vertex program; in the chapter, \
                 {theirs:.2} times.",
                fragment / vertex
            ),
            None => format!(
                "In the chapter the fragment program is {theirs:.2} times as fast as the vertex program."
            ),
        }
    }

    /// The report for a terminal.
    pub fn text(&self) -> String {
        let lines = |text: &str| wrap(text, WIDTH).join("\n");
        let devices: Vec<String> = self.measured.devices.iter().map(|device| lines(device)).collect();
        format!(
            "{}\n\n{}\n{}\n\n{}\n{}\n\n{}",
            lines(&self.introduction()),
            devices.join("\n"),
            self.date,
            self.table().text(),
            lines(&self.findings()),
            self.modes().text()
        )
    }

    /// The report as JSON. Rates are in bytes per second.
    pub fn json(&self) -> Value {
        let point = |point: &super::Point| {
            json!({
                "name": point.name, "mode": name_of(point.pass), "batch_bytes": point.batch, "bytes_per_second": point.rate * 1e6,
                "slowest": point.spread.0 * 1e6, "fastest": point.spread.1 * 1e6,
            })
        };
        let conditions = &self.measured.conditions;
        json!({
            "devices": self.measured.devices,
            "date": self.date,
            "total_bytes": conditions.total,
            "runs": conditions.runs,
            "emulated": self.measured.is_emulated,
            "points": self.measured.points.iter().map(point).collect::<Vec<_>>(),
            "modes": self.measured.modes.iter().map(point).collect::<Vec<_>>(),
            "chapter": {
                "batch_bytes": paper::BATCH,
                "vertex": paper::VERTEX * 1e6,
                "fragment": paper::FRAGMENT * 1e6,
                "openssl": paper::OPENSSL * 1e6,
            },
        })
    }
}

/// The name of one of [`MODES`] in tables.
fn name_of(pass: Pass) -> &'static str {
    match pass {
        Pass::EcbEncrypt => "ECB encryption",
        Pass::EcbDecrypt => "ECB decryption",
        Pass::CbcDecrypt => "CBC decryption",
        _ => "CTR",
    }
}

/// A rate in MB/s, with a decimal below 100.
fn rounded(rate: f64) -> String {
    if rate < 100.0 { format!("{rate:.1}") } else { format!("{rate:.0}") }
}

#[cfg(test)]
mod tests;
