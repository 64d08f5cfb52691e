//! The results as text, JSON and HTML.

mod page;

use lockstep_report::bars::Bars;
use lockstep_report::plot::{self, Line, Plot, Scale};
pub(super) use lockstep_report::text::digits;
use lockstep_report::{Table, wrap};
use serde_json::{Map, Value, json};

use super::cpu_time::{self, Sample};
use super::machine::Machine;
use super::measure::{Measured, Rate};
use super::peers;
use crate::error::Error;

/// The results of a suite.
pub struct Section {
    /// The name of the suite.
    pub(crate) name: &'static str,
    /// What the suite measures.
    about: &'static str,
    pub(crate) tables: Vec<Table>,
    pub(crate) pictures: Vec<Picture>,
    /// Sentences for the report.
    pub(crate) findings: Vec<String>,
    /// The results as JSON.
    pub(crate) results: Vec<Value>,
    /// Why the suite has no results.
    error: Option<String>,
}

impl Section {
    /// A section without results.
    pub(crate) fn new(name: &'static str, about: &'static str) -> Section {
        Section {
            name,
            about,
            tables: Vec::new(),
            pictures: Vec::new(),
            findings: Vec::new(),
            results: Vec::new(),
            error: None,
        }
    }

    /// The section of a suite that failed.
    pub(crate) fn failed(name: &'static str, about: &'static str, error: &Error) -> Section {
        let error = error.to_string();
        let findings = vec![format!("This suite failed and has no results: {error}")];
        Section { findings, error: Some(error), ..Section::new(name, about) }
    }

    fn json(&self) -> Value {
        let mut json = json!({"results": self.results});
        if let Some(error) = &self.error {
            json["error"] = json!(error);
        }
        json["findings"] = json!(self.findings);
        json
    }
}

/// A line plot or a bar chart.
pub(crate) enum Picture {
    Plot(Plot),
    Bars(Bars),
}

impl Picture {
    pub(crate) fn svg(&self) -> String {
        match self {
            Picture::Plot(plot) => plot.svg(),
            Picture::Bars(bars) => bars.svg(),
        }
    }
}

/// The results of a run.
pub struct Report {
    pub(crate) date: String,
    pub(crate) command: String,
    pub(crate) machine: Machine,
    /// Names and descriptions of the devices.
    pub(crate) devices: Vec<(String, String)>,
    pub(crate) openssl: Vec<String>,
    /// What measures energy, or why energy is not measured.
    pub(crate) energy: String,
    pub(crate) sections: Vec<Section>,
    pub(crate) cpu_use: Vec<Sample>,
}

/// The method, which is the same for all suites.
pub(super) const METHOD: &str = "Medians of the rounds, after one round of warm-up that does not count; every round runs all \
contenders in turn. ± is half of the difference between the slowest and the fastest round. GB/s are 10^9 bytes per second, of data \
in host memory, read and written. Each timed call was repeated by another kernel of the CPU, and both gave the same \
bytes. First calls, with self-tests and compilation, are reported separately and not counted.";

impl Report {
    /// The lines above the sections, each with a name and a description.
    pub(super) fn about(&self) -> Vec<(&'static str, String)> {
        let mut lines = self.machine.lines();
        lines.extend(self.devices.iter().map(|(name, what)| ("device", format!("{name}: {what}"))));
        let mut versions = vec![concat!("lockstep ", env!("CARGO_PKG_VERSION")).to_owned()];
        versions.extend(self.openssl.iter().cloned());
        versions.extend(peers::VERSIONS.map(|(_, version)| version.to_owned()));
        lines.push(("versions", versions.join("; ")));
        lines.push(("energy", self.energy.clone()));
        lines.push(("date", self.date.clone()));
        lines.push(("command", self.command.clone()));
        lines
    }

    /// The report as text for a terminal.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, what) in self.about() {
            text += &wrapped(&format!("{name}: {what}"));
        }
        text.push('\n');
        text += &wrapped(METHOD);
        for section in &self.sections {
            text.push('\n');
            text += &wrapped(&format!("== {}: {}", section.name, section.about));
            text.push('\n');
            for table in &section.tables {
                text += &table.text();
                text.push('\n');
            }
            text.extend(section.findings.iter().map(|finding| wrapped(finding)));
        }
        text
    }

    /// The report as JSON, with rates in bytes per second and times in seconds.
    pub fn json(&self) -> Value {
        let devices: Vec<_> =
            self.devices.iter().map(|(id, what)| json!({"id": id, "description": what})).collect();
        let suites: Map<_, _> =
            self.sections.iter().map(|section| (section.name.to_owned(), section.json())).collect();
        let sample = |sample: &Sample| {
            json!({
                "who": &*sample.name, "begun": sample.at, "seconds": sample.seconds, "processors": sample.processors,
            })
        };
        let cpu_use: Vec<_> = self.cpu_use.iter().map(sample).collect();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "date": self.date,
            "command": self.command,
            "machine": self.machine.json(),
            "devices": devices,
            "openssl": self.openssl,
            "energy": self.energy,
            "suites": suites,
            "cpu_use": cpu_use,
        })
    }

    /// The report as one HTML page that loads no other resource.
    pub fn html(&self) -> String {
        page::html(self)
    }

    /// CPU use over the run, one line for each contender.
    pub(super) fn cpu_plot(&self) -> Option<Plot> {
        let line = |curve: cpu_time::CpuCurve| Line {
            name: format!("{}, {}", curve.name, time(curve.seconds)),
            points: curve.points,
            spread: Vec::new(),
        };
        let lines: Vec<_> = cpu_time::curves(&self.cpu_use, 50).into_iter().map(line).collect();
        (!lines.is_empty()).then(|| Plot {
            title: "CPU use of each contender".into(),
            across: ("% of its timed work in this run".into(), plot::decimal),
            up: "processors".into(),
            scale: Scale::Even,
            lines,
            marks: Vec::new(),
        })
    }
}

/// Lines of at most 100 characters, each with its line break.
fn wrapped(text: &str) -> String {
    wrap(text, 100).join("\n") + "\n"
}

/// A table cell with a rate and its spread.
pub(super) fn rate(rate: Rate) -> String {
    let half = (rate.most - rate.least) / 2.0 / rate.median * 100.0;
    format!("{} ±{half:.0} %", digits(rate.median / 1e9))
}

/// A table cell with seconds of CPU time per GB.
pub(super) fn cpu(measured: &Measured) -> String {
    per_gb(measured.cpu)
}

/// A table cell with joules of processors per GB.
pub(super) fn cpu_joules(measured: &Measured) -> String {
    per_gb(measured.joules.cpu)
}

/// A table cell with joules of GPUs per GB.
pub(super) fn gpu_joules(measured: &Measured) -> String {
    per_gb(measured.joules.gpu)
}

fn per_gb(per_byte: Option<f64>) -> String {
    per_byte.map_or("-".into(), |value| digits(value * 1e9))
}

/// A time with its unit.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{} ms", digits(s * 1e3)),
        s if s >= 1e-6 => format!("{} µs", digits(s * 1e6)),
        s => format!("{:.0} ns", s * 1e9),
    }
}

/// A size with its unit, not rounded.
pub(super) fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 && bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 && bytes % (1 << 10) == 0 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

/// A sentence with the longest time of a first call for each contender. `None` if no first call was measured.
pub(super) fn first_calls<'m>(measured: impl Iterator<Item = &'m Measured>) -> Option<String> {
    let mut longest: Vec<(&str, f64)> = Vec::new();
    for one in measured {
        let Some(first) = one.first else { continue };
        match longest.iter_mut().find(|(name, _)| *name == &*one.name) {
            Some((_, most)) => *most = most.max(first),
            None => longest.push((&one.name, first)),
        }
    }
    let times: Vec<_> = longest.iter().map(|(name, first)| format!("{name} {}", time(*first))).collect();
    (!times.is_empty()).then(|| format!("Longest first calls, not counted: {}.", times.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_units() {
        assert_eq!(rate(Rate { median: 20e9, least: 19e9, most: 21e9 }), "20.0 ±5 %");
        assert_eq!(
            [digits(123.4), digits(1.234), digits(0.1234), digits(0.01234)],
            ["123", "1.23", "0.123", "0.0123"]
        );
        assert_eq!(
            [time(1.5), time(0.0123), time(1.5e-6), time(25e-9)],
            ["1.50 s", "12.3 ms", "1.50 µs", "25 ns"]
        );
        assert_eq!([size(16), size(16384), size(3 << 20), size(1500)], ["16 B", "16 KiB", "3 MiB", "1500 B"]);
    }
}
