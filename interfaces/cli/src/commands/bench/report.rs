//! Writes the results as text, JSON or HTML.

mod page;

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use lockstep_bench::peers;
pub(super) use lockstep_report::text::{self, digits, time};
use lockstep_report::{Table, hang};
use serde_json::{Map, Value, json};

use super::measure::{Measured, Rate};
use super::session::Session;
use crate::error::Error;
use crate::memory;

/// The results of a suite.
#[derive(Default)]
pub(super) struct Section {
    /// The name of the suite.
    pub(super) name: &'static str,
    /// The subject of the suite.
    pub(super) title: &'static str,
    /// Explains how to read the results.
    pub(super) about: &'static str,
    pub(super) tables: Vec<Table>,
    /// Plots and bar charts, as SVG.
    pub(super) pictures: Vec<String>,
    /// Sentences for the report.
    pub(super) findings: Vec<String>,
    /// The results as JSON, one value for each workload, size or contender.
    pub(super) results: Vec<Value>,
    /// Seconds of the longest first call of each contender, by the name of the contender.
    pub(super) first_calls: BTreeMap<Arc<str>, f64>,
    /// The error, if the suite failed. A suite that failed has no results.
    pub(super) error: Option<Error>,
}

impl Section {
    /// Records the time of the first call of a contender, for [`Section::report_first_calls`].
    pub(super) fn add_first_call(&mut self, measured: &Measured) {
        let longest = self.first_calls.entry(Arc::clone(&measured.name)).or_default();
        *longest = longest.max(measured.first.unwrap_or_default());
    }

    /// If there are first calls, adds a sentence with the longest time of a first call for each contender.
    pub(super) fn report_first_calls(&mut self) {
        let times: Vec<_> =
            self.first_calls.iter().map(|(name, first)| format!("{name} {}", time(*first))).collect();
        if !times.is_empty() {
            self.findings.push(format!("Longest first calls, not counted: {}.", times.join(", ")));
        }
    }

    fn json(&self) -> Value {
        let mut json = json!({"results": self.results, "findings": self.findings});
        if let Some(error) = &self.error {
            json["error"] = error.to_string().into();
        }
        json
    }
}

/// The results of a run.
pub(super) struct Report<'a> {
    pub(super) session: &'a Session<'a>,
    pub(super) date: String,
    pub(super) command: String,
    pub(super) sections: Vec<Section>,
}

/// A description of the method, which is the same for all suites.
pub(super) const METHOD: &str = "Medians of the rounds, after one round of warm-up that does not count; every round runs all \
contenders in turn. ± is half of the difference between the slowest and the fastest round. GB/s are 10^9 bytes per second, of data \
in host memory, read and written. Each timed call was repeated by another kernel of the CPU, and both gave the same \
bytes. First calls, with self-tests and compilation, are reported separately and not counted.";

impl Report<'_> {
    /// The lines at the top of the report, each with a name and a description.
    fn about(&self) -> Vec<(&'static str, String)> {
        let mut lines = self.session.machine.lines.clone();
        let devices = self.session.used_devices();
        lines.extend(devices.iter().map(|(name, what)| ("device", format!("{name}: {what}"))));
        let mut versions = vec![concat!("lockstep ", env!("CARGO_PKG_VERSION"))];
        versions.extend(self.session.openssl.iter().map(|openssl| openssl.version.as_str()));
        versions.extend(peers::PEERS.map(|peer| peer.version));
        lines.push(("versions", versions.join("; ")));
        lines.push(("date", self.date.clone()));
        lines.push(("command", self.command.clone()));
        lines
    }

    /// The report as text for a terminal.
    pub(super) fn text(&self) -> String {
        let wrapped = |text: &str| hang(100, "", 0, text);
        let mut text = String::new();
        for (name, what) in self.about() {
            text += &wrapped(&format!("{name}: {what}"));
        }
        text.push('\n');
        text += &wrapped(METHOD);
        for section in &self.sections {
            text.push('\n');
            text += &wrapped(&format!("== {}: {}. {}", section.name, section.title, section.about));
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
    pub(super) fn json(&self) -> Value {
        let devices = self.session.used_devices();
        let devices: Vec<_> =
            devices.iter().map(|(id, what)| json!({"id": id, "description": what})).collect();
        let openssl: Vec<_> = self.session.openssl.iter().map(|openssl| &openssl.version).collect();
        let suites: Map<_, _> =
            self.sections.iter().map(|section| (section.name.to_owned(), section.json())).collect();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "date": self.date,
            "command": self.command,
            "machine": self.session.machine.json,
            "devices": devices,
            "openssl": openssl,
            "suites": suites,
        })
    }
}

/// A table cell with a rate and its spread.
pub(super) fn rate(rate: Rate) -> String {
    let half = (rate.most - rate.least) / 2.0 / rate.median * 100.0;
    format!("{} ±{half:.0} %", digits(rate.median / 1e9))
}

/// A table cell with the CPU time of a gigabyte in seconds. `per_byte` is the time of a byte.
pub(super) fn per_gb(per_byte: Option<f64>) -> String {
    per_byte.map_or("-".into(), |value| digits(value * 1e9))
}

/// A size with its unit, not rounded.
pub(super) fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

/// Properties of the machine.
pub(super) struct Machine {
    /// Lines of the report, each with a name and a description.
    pub(super) lines: Vec<(&'static str, String)>,
    pub(super) json: Value,
}

impl Machine {
    /// Reads the properties of this machine, and its load.
    pub(super) fn here() -> Machine {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once([':', '='])?.1.trim().trim_matches('"').to_owned())
        };
        let cpuinfo = text("/proc/cpuinfo");
        let processor = field(&cpuinfo, "model name").unwrap_or_else(|| std::env::consts::ARCH.into());
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let is_virtual = field(&cpuinfo, "flags").is_some_and(|flags| flags.contains(" hypervisor"));
        let bytes = memory::number(&text("/proc/meminfo"), "MemTotal:").map(|kib| kib << 10);
        let uname = rustix::system::uname();
        let kernel = format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy());
        let release = field(&text("/etc/os-release"), "PRETTY_NAME");
        let system = release.map_or(kernel.clone(), |name| format!("{name}, {kernel}"));
        // The load is the average number of processes that were running or runnable in the last minute.
        let load: Option<f64> = text("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok());

        let memory = bytes.map_or(String::new(), |bytes| format!(", {}", text::bytes(bytes)));
        let kind = if is_virtual { ", virtual machine" } else { "" };
        let count = text::count(processors, "processor");
        let mut lines =
            vec![("machine", format!("{processor}, {count}{memory}{kind}")), ("system", system.clone())];
        lines.extend(load.map(|load| ("load before", format!("{load:.2} of {count}"))));
        let json = json!({
            "processor": processor,
            "processors": processors,
            "memory_bytes": bytes,
            "virtual": is_virtual,
            "system": system,
            "load_before": load,
        });
        Machine { lines, json }
    }
}

#[cfg(test)]
mod tests;
