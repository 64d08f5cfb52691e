//! A description of the machine, for reports.

use std::fs;

use serde_json::{Value, json};

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
        let kib = field(&text("/proc/meminfo"), "MemTotal")
            .and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        let bytes = kib.map(|kib| kib << 10);
        let uname = rustix::system::uname();
        let kernel = format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy());
        let release = field(&text("/etc/os-release"), "PRETTY_NAME");
        let system = release.map_or(kernel.clone(), |name| format!("{name}, {kernel}"));
        // The average number of processes in the last minute that were running or runnable.
        let load: Option<f64> = text("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok());

        let memory =
            bytes.map_or(String::new(), |bytes| format!(", {}", lockstep_report::text::bytes(bytes)));
        let kind = if is_virtual { ", virtual machine" } else { "" };
        let count = lockstep_report::text::count(processors, "processor");
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
