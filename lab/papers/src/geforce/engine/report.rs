//! The thesis's tables with the new measurements.

use lockstep_report::Table;
use lockstep_report::text::{WIDTH, wrap};
use serde_json::{Value, json};

use super::hot_card::Outcome;
use super::measure::{LAUNCHES, Measured, Overhead, Time};
use crate::geforce::files::FILES;
use crate::geforce::paper::{
    A1_8800, A2_8800, A3_8800, A4_8800, A5_6800, A5_CPU, A6_6800, A7_COPIES_6800, A7_COPIES_8800, A7_NULL,
    EDGE, LARGE_EDGE, Runs,
};

/// The measurements with their date.
pub struct Report {
    /// The times of the thesis's files on this machine.
    pub measured: Measured,
    /// The file on the hot card, once for each kind of verification.
    pub hot_card: Vec<Outcome>,
    /// The day of the measurements, as 2026-01-31.
    pub date: String,
}

const PASSES: &str = "\
*whole*: each call draws a whole texture, also for the padding, as the thesis does. *fitted*: a call draws as many fragments as \
it has blocks, which the thesis proposes.";

/// Returns the MB/s of a file, from the mean time of the thesis.
fn rate(table: &[Runs], file: u32) -> String {
    let runs = table.iter().find(|runs| runs.file == file);
    runs.map_or("-".into(), |runs| rounded(FILES[file as usize - 1].bytes as f64 / runs.mean() / 1e6))
}

/// A rate in MB/s, with a decimal below 100.
fn rounded(rate: f64) -> String {
    if rate < 100.0 { format!("{rate:.1}") } else { format!("{rate:.0}") }
}

fn table(title: &str, head: &[String], text_columns: usize) -> Table {
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    Table::new(title, &head, text_columns)
}

impl Report {
    fn introduction(&self) -> String {
        let conditions = &self.measured.conditions;
        let scale =
            |scale| if scale == 1 { "of full size".into() } else { format!("of 1/{scale} of their size") };
        let mut on_8800 = String::new();
        if !self.measured.on_8800.is_empty() && conditions.scale_8800 != conditions.scale {
            on_8800 = format!(" The files for the 8800 are {}.", scale(conditions.scale_8800));
        }
        if self.measured.is_emulated {
            on_8800 += " An emulator takes the place of the 8800; its rates are meaningless.";
        }
        format!(
            "The eight files of Table 6.2.1 {}, in ECB mode with AES-128, from host to host: means of {} runs after a warm-up \
             call.{on_8800} The times here are those of the calls of the engine, one for each buffer and one for the padding. \
             The times of the thesis are those of the program `openssl`, including its disk accesses. Every encryption by a \
             device was compared with the CPU's.",
            scale(conditions.scale),
            conditions.runs,
        )
    }

    /// Makes a table with a row for each file. It has a column for the CPU. For each edge, it has a column with whole passes and a column
    /// with fitted passes.
    fn by_edge(&self, title: &str, of_thesis: bool, value: impl Fn(&Time) -> String) -> Table {
        let measured = &self.measured;
        let mut head = vec!["file".to_owned(), "whose".into(), "CPU".into()];
        for edge in &measured.conditions.edges {
            head.extend([format!("{edge} whole"), "fitted".into()]);
        }
        let mut table = table(title, &head, 2);
        for (file, cpu) in &measured.cpu {
            if of_thesis {
                let mut row = vec![file.to_string(), "thesis".into(), rate(&A5_CPU, *file)];
                for edge in &measured.conditions.edges {
                    let theirs: &[Runs] = match u32::try_from(*edge) {
                        Ok(EDGE) => &A5_6800,
                        Ok(LARGE_EDGE) => &A6_6800,
                        _ => &[],
                    };
                    row.extend([rate(theirs, *file), "-".into()]);
                }
                table.rows.push(row);
            }
            let mut row = vec![file.to_string(), "here".into(), value(cpu)];
            for time in measured.on_6800.iter().filter(|time| time.file == *file) {
                row.extend([value(&time.whole), value(&time.resized)]);
            }
            table.rows.push(row);
        }
        table
    }

    fn padding(&self) -> Table {
        let title = "The padding, 16 bytes, in a call of its own: milliseconds";
        let mut table = Table::new(title, &["edge", "whole", "fitted"], 0);
        for padding in &self.measured.padding {
            let milliseconds = |seconds: f64| format!("{:.2}", 1e3 * seconds);
            let times = [milliseconds(padding.whole), milliseconds(padding.resized)];
            table.rows.push([padding.edge.to_string()].into_iter().chain(times).collect());
        }
        table
    }

    fn overhead(&self) -> Table {
        let title = &format!(
            "Nothing, copies without the run, and the run: milliseconds (Table A7; edge {}, the thesis's {EDGE})",
            self.measured.overhead_edge
        );
        Report::without_encryption(title, &self.measured.overhead, [&A7_NULL, &A7_COPIES_6800, &A5_6800])
    }

    fn overhead_8800(&self) -> Table {
        let title = "The 8800: nothing, copies without the run, and the run: milliseconds (Tables A7, A4)";
        Report::without_encryption(title, &self.measured.overhead_8800, [&A7_NULL, &A7_COPIES_8800, &A4_8800])
    }

    /// Makes a table of times without encryption, with the medians of the thesis's tables for the same three columns.
    fn without_encryption(title: &str, overheads: &[Overhead], thesis: [&[Runs]; 3]) -> Table {
        let head = ["file", "whose", "MB", "nothing", "copies", "run"];
        let mut table = Table::new(title, &head, 2);
        let megabytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
        for overhead in overheads {
            let file = overhead.file;
            let theirs = thesis.map(|table| {
                let runs = table.iter().find(|runs| runs.file == file);
                runs.map_or("-".into(), |runs| format!("{:.0}", 1e3 * runs.median()))
            });
            let row = [file.to_string(), "thesis".into(), megabytes(FILES[file as usize - 1].bytes)];
            table.rows.push(row.into_iter().chain(theirs).collect());
            let ours = [overhead.nothing, overhead.copies, overhead.all];
            let row = [file.to_string(), "here".into(), megabytes(overhead.all.bytes)];
            table
                .rows
                .push(row.into_iter().chain(ours.map(|time| format!("{:.1}", 1e3 * time.seconds))).collect());
        }
        table
    }

    fn on_8800(&self) -> Table {
        let shape =
            |launch: &super::Launch| format!("{} x {} x {}", launch.blocks, launch.threads, launch.rounds);
        let mut head = vec!["file".to_owned(), "whose".into()];
        for launch in &LAUNCHES {
            head.push(format!("{}: {} {:.1} MB", launch.tables, shape(launch), launch.buffer as f64 / 1e6));
        }
        head.push("A4: as A2, with X".into());
        let title = "The 8800: MB/s by blocks x threads x rounds in a thread, and buffer (Tables A1 to A4)";
        let mut table = table(title, &head, 2);
        for file in FILES.map(|file| file.number) {
            let theirs = [&A1_8800[..], &A2_8800, &A3_8800, &A4_8800].map(|table| rate(table, file));
            table.rows.push([file.to_string(), "thesis".into()].into_iter().chain(theirs).collect());
            let mut row = vec![file.to_string(), "here".into()];
            let ours = self.measured.on_8800.iter().filter(|point| point.file == file);
            row.extend(ours.map(|point| format!("{:.3}", point.time.rate())));
            row.push("-".into());
            table.rows.push(row);
        }
        table
    }

    fn hot_card(&self) -> Table {
        let head = ["--verify", "wrong blocks in the output", "calls", "by the device", "noticed"];
        let title = match self.hot_card.first() {
            Some(one) => format!(
                "A hot card: {:.2} MB on a device whose results have errors after {:.2} MB",
                one.bytes as f64 / 1e6,
                one.hot_from as f64 / 1e6
            ),
            None => "A hot card".into(),
        };
        let mut table = Table::new(&title, &head, 1);
        for outcome in &self.hot_card {
            table.rows.push(vec![
                outcome.verify.into(),
                outcome.wrong_blocks.to_string(),
                outcome.calls.0.to_string(),
                outcome.calls.1.to_string(),
                if outcome.incident.is_some() { "yes" } else { "no" }.into(),
            ]);
        }
        table
    }

    /// All tables of the report, in their order.
    pub fn tables(&self) -> Vec<Table> {
        let processors = |time: &Time| format!("{:.2}", time.processors());
        let mut tables = vec![
            self.by_edge("MB/s by edge of the texture (Tables A5, A6)", true, |time| rounded(time.rate())),
            self.by_edge(
                "Processors of this machine in use (Table B3; `lab geforce openssl` has a picture)",
                false,
                processors,
            ),
            self.padding(),
            self.overhead(),
        ];
        if !self.measured.on_8800.is_empty() {
            tables.extend([self.on_8800(), self.overhead_8800()]);
        }
        tables.push(self.hot_card());
        tables
    }

    /// The report for a terminal.
    pub fn text(&self) -> String {
        let lines = |text: &str| wrap(text, WIDTH).join("\n");
        let devices: Vec<String> = self.measured.devices.iter().map(|device| lines(device)).collect();
        let tables: Vec<String> = self.tables().iter().map(Table::text).collect();
        format!(
            "{}\n\n{}\n\n{}\n{}\n\n{}",
            lines(&self.introduction()),
            lines(&PASSES.replace('*', "")),
            devices.join("\n"),
            self.date,
            tables.join("\n")
        )
    }

    /// The report as JSON.
    pub fn json(&self) -> Value {
        let measured = &self.measured;
        let time = |time: &Time| json!({ "bytes": time.bytes, "seconds": time.seconds, "cpu_seconds": time.cpu_seconds });
        let on_6800 = measured.on_6800.iter().map(|point| {
            json!({
                "file": point.file, "edge": point.edge, "whole": time(&point.whole), "fitted": time(&point.resized),
            })
        });
        let padding = measured.padding.iter().map(|padding| {
            json!({ "edge": padding.edge, "whole_seconds": padding.whole, "fitted_seconds": padding.resized })
        });
        let overhead = |overheads: &[Overhead]| {
            let one = |point: &Overhead| {
                json!({
                    "file": point.file, "nothing": time(&point.nothing), "copies": time(&point.copies),
                    "run": time(&point.all),
                })
            };
            overheads.iter().map(one).collect::<Value>()
        };
        let on_8800 = measured.on_8800.iter().map(|point| {
            let launch = &LAUNCHES[point.launch];
            json!({
                "file": point.file, "blocks": launch.blocks, "threads": launch.threads, "rounds": launch.rounds,
                "buffer_bytes": launch.buffer, "time": time(&point.time),
            })
        });
        let hot_card = self.hot_card.iter().map(|outcome| {
            json!({
                "verify": outcome.verify, "bytes": outcome.bytes, "errors_after_bytes": outcome.hot_from,
                "wrong_blocks": outcome.wrong_blocks, "calls": outcome.calls.0, "device_calls": outcome.calls.1,
                "incident": outcome.incident,
            })
        });
        let cpu = measured.cpu.iter().map(|(file, cpu)| json!({ "file": file, "time": time(cpu) }));
        json!({
            "devices": measured.devices,
            "date": self.date,
            "scale": measured.conditions.scale,
            "scale_8800": measured.conditions.scale_8800,
            "runs": measured.conditions.runs,
            "is_emulated_8800": measured.is_emulated,
            "overhead_edge": measured.overhead_edge,
            "cpu": cpu.collect::<Value>(),
            "geforce_6800": on_6800.collect::<Value>(),
            "padding": padding.collect::<Value>(),
            "overhead": overhead(&measured.overhead),
            "overhead_8800": overhead(&measured.overhead_8800),
            "geforce_8800": on_8800.collect::<Value>(),
            "hot_card": hot_card.collect::<Value>(),
        })
    }
}
