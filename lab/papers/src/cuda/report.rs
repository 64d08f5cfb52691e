//! The paper's figures and its table, with the new measurements.

use serde_json::{Value, json};

use super::paper::{self, TABLE_1};
use super::{Measured, Point};
use lockstep_report::Table;
use lockstep_report::plot::{self, Line, Plot, Scale, escaped};
use lockstep_report::text::{WIDTH, digits, wrap};

/// Price and power of the device, if the user has given them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Worth {
    /// The price of the device in dollars.
    pub dollars: Option<f64>,
    /// The power of the device under load in watts.
    pub watts: Option<f64>,
}

/// The measurements with their date, and the price and power of the device.
pub struct Report {
    /// The measurements on the device.
    pub measured: Measured,
    /// The day of the measurements, as 2026-01-31.
    pub date: String,
    /// The price and power of the device, for the columns per dollar and per watt.
    pub worth: Worth,
}

const INTRODUCTION: &str = "AES-128-CTR by the kernels of A. Di Biagio and others, Design of a Parallel AES for Graphics \
Hardware using the CUDA framework (2009), and by Lockstep's. Medians after a warm-up run, random data, every output compared \
with the CPU's.";

/// The warning after the title of rates of the emulator.
const EMULATED: &str = " (on the emulator: these rates say nothing about a GPU)";

/// Returns the fastest of `kernels` at a size.
fn best<'p>(points: &'p [Point], bytes: usize, kernels: &[&str]) -> Option<&'p Point> {
    let here = points.iter().filter(|point| point.bytes == bytes && kernels.contains(&point.kernel));
    here.min_by(|a, b| a.seconds.total_cmp(&b.seconds))
}

fn mbit(point: Option<&Point>) -> String {
    point.map_or("-".into(), |point| format!("{:.0}", 8000.0 * point.rate()))
}

impl Report {
    /// Returns the smallest size in bytes from which on coarse grain is at least as fast as fine grain, with tables in shared memory.
    /// Returns `None` if coarse grain is slower at the largest size.
    pub fn break_even(&self) -> Option<usize> {
        let points = &self.measured.sizes;
        let ahead = |bytes| {
            let [fine, coarse] =
                [paper::KERNELS[0], paper::KERNELS[1]].map(|name| best(points, bytes, &[name]));
            fine.zip(coarse).map(|(fine, coarse)| coarse.seconds <= fine.seconds)
        };
        let mut sizes: Vec<usize> = points.iter().map(|point| point.bytes).collect();
        sizes.dedup();
        let behind = sizes.iter().rposition(|&bytes| ahead(bytes) != Some(true));
        sizes.get(behind.map_or(0, |last| last + 1)).copied()
    }

    fn lines(points: &[Point], which: impl Fn(&Point) -> Option<f64>) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        for point in points {
            let Some(across) = which(point) else { continue };
            let place = (across, point.rate());
            match lines.iter_mut().find(|line| line.name == point.kernel) {
                Some(line) => line.points.push(place),
                None => {
                    let name = point.kernel.into();
                    lines.push(Line { name, points: vec![place], spread: Vec::new() });
                }
            }
        }
        lines
    }

    /// The plots of Figures 5 and 6 (throughput by size) and of Figure 7 (throughput by threads per block).
    pub fn plots(&self) -> Vec<Plot> {
        let up = || "GB/s".to_owned();
        let mut plots = vec![Plot {
            title: self.title("Data in device memory: throughput by size (the paper's Figures 5 and 6)"),
            across: ("bytes of plaintext".into(), plot::bytes),
            up: up(),
            scale: Scale::Logarithmic,
            lines: Report::lines(&self.measured.sizes, |point| Some(point.bytes as f64)),
            marks: Vec::new(),
        }];
        for bytes in paper::FIGURE_7 {
            let of = |point: &Point| point.threads.filter(|_| point.bytes == bytes).map(f64::from);
            plots.push(Plot {
                title: self
                    .title(&format!("{} KiB: throughput by threads per block (Figure 7)", bytes >> 10)),
                across: ("threads per block".into(), plot::number),
                up: up(),
                scale: Scale::Logarithmic,
                lines: Report::lines(&self.measured.threads, of),
                marks: Vec::new(),
            });
        }
        plots
    }

    /// Returns Table 1 in Mbit/s, followed by the new measurements. It also has the throughput per dollar and per watt at the largest size.
    pub fn table_1(&self) -> Table {
        let head =
            ["", "whose", "32 KiB", "128 KiB", "32 MiB", "128 MiB", "dollars", "Mbit/s a dollar", "a watt"];
        let mut table = Table::new(&self.title("Table 1: host to host, Mbit/s"), &head, 2);
        for theirs in &TABLE_1 {
            let mut row = vec![theirs.name.to_owned(), "paper".into()];
            row.extend(theirs.rates.map(|rate| rate.to_string()));
            let per_dollar = f64::from(theirs.rates[3]) / f64::from(theirs.dollars);
            row.extend([theirs.dollars.to_string(), format!("{per_dollar:.1}"), "-".into()]);
            table.rows.push(row);
        }
        let points = &self.measured.hosts;
        let rows: [(&str, &[&str]); 4] = [
            ("the paper's best kernel", &paper::KERNELS),
            ("cuda/bitslice", &["cuda/bitslice"]),
            ("cuda/table", &["cuda/table"]),
            ("the CPU, one thread", &["cpu"]),
        ];
        for (name, kernels) in rows {
            let found = paper::SIZES.map(|bytes| best(points, bytes, kernels));
            let mut row = vec![name.to_owned(), "here".into()];
            row.extend(found.map(mbit));
            // Price and power refer to the GPU.
            let is_gpu = kernels != ["cpu"];
            let last = found.iter().rev().find_map(|point| *point).filter(|_| is_gpu);
            let per = |by: Option<f64>| match (last, by) {
                (Some(point), Some(by)) if by > 0.0 => format!("{:.1}", 8000.0 * point.rate() / by),
                _ => "-".into(),
            };
            let dollars = self.worth.dollars.filter(|_| is_gpu);
            row.push(dollars.map_or("-".into(), |dollars| format!("{dollars:.0}")));
            row.extend([per(dollars), per(self.worth.watts)]);
            table.rows.push(row);
        }
        table
    }

    /// A table of the throughput of each kernel by the size of the plaintext.
    pub fn sizes(&self) -> Table {
        let mut names: Vec<&str> = Vec::new();
        let points = &self.measured.sizes;
        points.iter().for_each(|point| {
            if !names.contains(&point.kernel) {
                names.push(point.kernel);
            }
        });
        let head: Vec<&str> = std::iter::once("bytes").chain(names.iter().copied()).collect();
        let mut table = Table::new(&self.title("Data in device memory, GB/s (threads per block)"), &head, 1);
        let mut sizes: Vec<usize> = points.iter().map(|point| point.bytes).collect();
        sizes.dedup();
        for bytes in sizes {
            let mut row = vec![plot::bytes(bytes as f64)];
            row.extend(names.iter().map(|name| {
                best(points, bytes, &[name]).map_or("-".into(), |point| match point.threads {
                    Some(threads) => format!("{:.2} ({threads})", point.rate()),
                    None => format!("{:.2}", point.rate()),
                })
            }));
            table.rows.push(row);
        }
        table
    }

    /// Figure 7: the throughput of the paper's kernels by threads per block, for both sizes.
    pub fn threads(&self) -> [Table; 2] {
        let threads: Vec<String> = paper::THREADS.iter().map(u32::to_string).collect();
        let head: Vec<&str> = std::iter::once("kernel").chain(threads.iter().map(String::as_str)).collect();
        paper::FIGURE_7.map(|bytes| {
            let title = format!("Figure 7: GB/s by threads per block, {} KiB in device memory", bytes >> 10);
            let mut table = Table::new(&self.title(&title), &head, 1);
            for kernel in paper::KERNELS {
                let points = || {
                    self.measured
                        .threads
                        .iter()
                        .filter(|point| (point.bytes, point.kernel) == (bytes, kernel))
                };
                let rate = |threads: &u32| points().find(|point| point.threads == Some(*threads));
                let cells = paper::THREADS
                    .iter()
                    .map(|threads| rate(threads).map_or("-".into(), |point| digits(point.rate())));
                table.rows.push(std::iter::once(kernel.to_owned()).chain(cells).collect());
            }
            table
        })
    }

    /// The title of a table or plot of rates. If the rates are from the emulator, the title has a warning.
    fn title(&self, title: &str) -> String {
        format!("{title}{}", if self.measured.is_emulated { EMULATED } else { "" })
    }

    fn findings(&self) -> String {
        let theirs = paper::BREAK_EVEN.map(|bytes| plot::bytes(bytes as f64)).join("B and ");
        let ours = self
            .break_even()
            .map_or("at no measured size".into(), |bytes| format!("at {}B", plot::bytes(bytes as f64)));
        let ours = format!("Coarse grain reaches the speed of fine grain {ours}");
        let findings = format!("{}; in the paper at {theirs}B (8400 GS and 8800 GT).", self.title(&ours));
        let is_smallest = |bytes| self.measured.sizes.first().is_some_and(|point| point.bytes == bytes);
        match self.break_even().filter(|&bytes| !self.measured.is_emulated && !is_smallest(bytes)) {
            Some(bytes) => format!(
                "{findings} `--kernel cuda/coarse-shared --launch fine={}` selects the grain by this size.",
                bytes >> 10
            ),
            None => findings,
        }
    }

    /// The report for a terminal.
    pub fn text(&self) -> String {
        let Measured { device, cpu, .. } = &self.measured;
        let lines = |text: &str| wrap(text, WIDTH).join("\n");
        format!(
            "{}\n\n{}\nCPU: {cpu}\n{}\n\n{}\n{}\n{}\n{}\n",
            lines(INTRODUCTION),
            lines(device),
            self.date,
            self.table_1().text(),
            self.sizes().text(),
            self.threads().each_ref().map(Table::text).join("\n"),
            lines(&self.findings())
        )
    }

    /// The report as JSON.
    pub fn json(&self) -> Value {
        let points = |points: &[Point]| -> Vec<Value> {
            let one = |point: &Point| {
                json!({
                    "kernel": point.kernel, "bytes": point.bytes, "threads": point.threads, "seconds": point.seconds,
                })
            };
            points.iter().map(one).collect()
        };
        json!({
            "device": self.measured.device,
            "emulated": self.measured.is_emulated,
            "cpu": self.measured.cpu,
            "date": self.date,
            "dollars": self.worth.dollars,
            "watts": self.worth.watts,
            "break_even_bytes": self.break_even(),
            "on_device": points(&self.measured.sizes),
            "threads": points(&self.measured.threads),
            "host_to_host": points(&self.measured.hosts),
        })
    }

    /// The report as one HTML page without other resources.
    pub fn html(&self) -> String {
        let table = |table: &Table| {
            let row = |cells: &[String], tag: &str| {
                let cells: String =
                    cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect();
                format!("<tr>{cells}</tr>\n")
            };
            let rows: String = table.rows.iter().map(|cells| row(cells, "td")).collect();
            format!("<h2>{}</h2>\n<table>\n{}{rows}</table>\n", escaped(&table.title), row(&table.head, "th"))
        };
        let plots: String = self.plots().iter().map(Plot::svg).collect();
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>AES in CUDA</title>\n<style>\n\
             body {{ font-family: sans-serif; max-width: 60rem; margin: 2rem auto; }}\n\
             td, th {{ padding: 0.2rem 0.7rem; text-align: right; }} td:first-child {{ text-align: left; }}\n\
             tr:nth-child(even) {{ background: #f4f4f4; }}\n</style>\n\
             <h1>AES-CTR in CUDA: the paper's kernels and Lockstep's</h1>\n<p>{}</p>\n<p>{}<br>CPU: {}<br>{}</p>\n<p>{}</p>\n\
             {}{plots}{}</html>\n",
            escaped(INTRODUCTION),
            escaped(&self.measured.device),
            escaped(&self.measured.cpu),
            escaped(&self.date),
            escaped(&self.findings()),
            table(&self.table_1()),
            table(&self.sizes()),
        )
    }
}

#[cfg(test)]
mod tests;
