//! A description of the machine, for reports.

use std::fs;

use serde_json::{Value, json};

/// Properties of the machine.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    /// The model name, or the architecture.
    processor: String,
    processors: usize,
    memory: Option<u64>,
    is_virtual: bool,
    system: String,
    /// The load average of the last minute: the average number of processes that were running or runnable.
    load: Option<f64>,
}

impl Machine {
    /// Reads the properties of this machine.
    pub(crate) fn here() -> Machine {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once([':', '='])?.1.trim().trim_matches('"').to_owned())
        };
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kib = field(&memory, "MemTotal").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let uname = rustix::system::uname();
        let kernel = format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy());
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Machine {
            processor: field(&cpuinfo, "model name").unwrap_or_else(|| std::env::consts::ARCH.into()),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            memory: kib.map(|kib| kib << 10),
            is_virtual: field(&cpuinfo, "flags").is_some_and(|flags| flags.contains(" hypervisor")),
            system: match field(&release, "PRETTY_NAME") {
                Some(name) => format!("{name}, {kernel}"),
                None => kernel,
            },
            load: load.split(' ').next().and_then(|load| load.parse().ok()),
        }
    }

    /// Lines of the report, each with a name and a description.
    pub(crate) fn lines(&self) -> Vec<(&'static str, String)> {
        let memory =
            self.memory.map_or(String::new(), |bytes| format!(", {}", lockstep_report::text::bytes(bytes)));
        let kind = if self.is_virtual { ", virtual machine" } else { "" };
        let plural = if self.processors == 1 { "" } else { "s" };
        let mut lines = vec![
            ("machine", format!("{}, {} processor{plural}{memory}{kind}", self.processor, self.processors)),
            ("system", self.system.clone()),
        ];
        if let Some(load) = self.load {
            lines.push(("load before", format!("{load:.2} of {} processor{plural}", self.processors)));
        }
        lines
    }

    /// The properties as JSON.
    pub(crate) fn json(&self) -> Value {
        json!({
            "processor": self.processor,
            "processors": self.processors,
            "memory_bytes": self.memory,
            "virtual": self.is_virtual,
            "system": self.system,
            "load_before": self.load,
        })
    }
}
