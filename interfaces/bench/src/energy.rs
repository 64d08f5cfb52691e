//! Energy measurement, on machines that have counters: the RAPL counters of Intel and AMD processor packages, read
//! through Linux's powercap interface, and the NVML counters of NVIDIA GPUs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lockstep_cuda::Energy;

/// The folder of the powercap zones on Linux.
const POWERCAP: &str = "/sys/class/powercap";

/// The energy counters of the processor packages and of the GPUs.
#[derive(Clone)]
pub(crate) struct Meter {
    packages: Vec<Package>,
    /// The reason why the packages are not measured; set if only GPUs are measured.
    unavailable: Option<String>,
    gpus: Option<Arc<Energy>>,
}

/// A processor package.
#[derive(Clone)]
struct Package {
    /// The file of the counter, in microjoules.
    counter: PathBuf,
    /// The value at which the counter wraps around, if it is known.
    range: Option<u64>,
}

/// Joules of processor packages and of GPUs; `None` where they are not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Joules {
    pub(crate) cpu: Option<f64>,
    pub(crate) gpu: Option<f64>,
}

impl Joules {
    /// The start value of a sum.
    pub(crate) const ZERO: Joules = Joules { cpu: Some(0.0), gpu: Some(0.0) };

    /// The sum; `None` where either value is `None`.
    pub(crate) fn plus(self, more: Joules) -> Joules {
        let sum = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
        Joules { cpu: sum(self.cpu, more.cpu), gpu: sum(self.gpu, more.gpu) }
    }

    /// Joules per byte, for this number of bytes.
    pub(crate) fn per_byte(self, bytes: f64) -> Joules {
        Joules { cpu: self.cpu.map(|joules| joules / bytes), gpu: self.gpu.map(|joules| joules / bytes) }
    }
}

/// The values of the counters: packages in microjoules, the sum of all GPUs in millijoules.
pub(crate) struct Reading {
    packages: Option<Vec<u64>>,
    gpus: Option<u64>,
}

impl Meter {
    /// Opens the counters of this machine.
    ///
    /// # Errors
    /// A message with the reason why no counter can be used.
    pub(crate) fn find() -> Result<Meter, String> {
        let gpus = Energy::open().ok().map(Arc::new);
        match (Meter::packages_in(Path::new(POWERCAP)), gpus) {
            (Err(why), None) => Err(why),
            (Err(why), gpus) => Ok(Meter { packages: Vec::new(), unavailable: Some(why), gpus }),
            (Ok(packages), gpus) => Ok(Meter { packages, unavailable: None, gpus }),
        }
    }

    fn packages_in(folder: &Path) -> Result<Vec<Package>, String> {
        let entries =
            fs::read_dir(folder).map_err(|_| "no power meters (RAPL, NVML) on this machine".to_owned())?;
        let mut packages = Vec::new();
        let mut unavailable = None;
        for entry in entries.flatten() {
            let zone = entry.path();
            // A zone with this name is a second interface to the counter of a package.
            if entry.file_name().to_string_lossy().starts_with("intel-rapl-mmio") {
                continue;
            }
            // Only packages are read, because the zones of cores and memory controllers are parts of a package. AMD's
            // zones have the same names.
            let name = fs::read_to_string(zone.join("name")).unwrap_or_default();
            if !name.starts_with("package-") {
                continue;
            }
            let counter = zone.join("energy_uj");
            match read(&counter) {
                Ok(_) => {
                    let range = read(&zone.join("max_energy_range_uj")).ok();
                    packages.push(Package { counter, range });
                }
                Err(error) => unavailable = Some(format!("{}: {error}", counter.display())),
            }
        }
        match (packages.is_empty(), unavailable) {
            // If the counter of one package cannot be read, no sum is reported: readers would take it for the sum of
            // all packages.
            (_, Some(unavailable)) => Err(format!("power meters cannot be read: {unavailable} (root may)")),
            (false, None) => Ok(packages),
            (true, None) => Err("no power meters (RAPL, NVML) on this machine".into()),
        }
    }

    /// A description of what is measured, for the report.
    pub(crate) fn describe(&self) -> String {
        let count = |count: usize, what: &str| {
            let plural = if count == 1 { "" } else { "s" };
            (count > 0).then(|| format!("{count} {what}{plural}"))
        };
        let gpus = self.gpus.as_ref().map_or(0, |gpus| gpus.devices());
        let parts = [
            count(self.packages.len(), "processor package").map(|text| format!("{text} by RAPL")),
            count(gpus, "GPU").map(|text| format!("{text} by NVML")),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        let unavailable = self
            .unavailable
            .as_ref()
            .map(|why| format!("; processors not measured: {why}"))
            .unwrap_or_default();
        format!(
            "{}; includes everything that runs on them; reported for at least one second of timed work{unavailable}",
            parts.join(" and ")
        )
    }

    /// True if processor packages are measured.
    pub(crate) fn has_packages(&self) -> bool {
        !self.packages.is_empty()
    }

    /// True if GPUs are measured.
    pub(crate) fn has_gpus(&self) -> bool {
        self.gpus.is_some()
    }

    /// The counters now.
    pub(crate) fn read(&self) -> Reading {
        let packages = self.packages.iter().map(|package| read(&package.counter).ok()).collect();
        Reading { packages, gpus: self.gpus.as_ref().and_then(|gpus| gpus.millijoules()) }
    }

    /// Joules used since `before` by all programs on the measured devices; `None` where a counter could not be read.
    pub(crate) fn since(&self, before: &Reading) -> Joules {
        let now = self.read();
        let used = |(package, (now, before)): (&Package, (&u64, &u64))| {
            let used = match now.checked_sub(*before) {
                Some(used) => used,
                None => package.range?.checked_sub(*before)?.checked_add(*now)?,
            };
            Some(used as f64 / 1e6)
        };
        let counters = now.packages.as_ref().zip(before.packages.as_ref()).filter(|_| self.has_packages());
        let cpu = counters.and_then(|(now, before)| {
            self.packages.iter().zip(now.iter().zip(before)).map(used).sum::<Option<f64>>()
        });
        let gpu = now.gpus.zip(before.gpus).and_then(|(now, before)| now.checked_sub(before));
        Joules { cpu, gpu: gpu.map(|millijoules| millijoules as f64 / 1e3) }
    }
}

fn read(path: &Path) -> Result<u64, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    text.trim().parse().map_err(|_| "it does not contain a number".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_packages_are_added_and_wrap_around() {
        let folder = tempfile::tempdir().unwrap();
        let put = |zone: &str, name: &str, energy: u64| {
            let zone = folder.path().join(zone);
            fs::create_dir_all(&zone).unwrap();
            fs::write(zone.join("name"), format!("{name}\n")).unwrap();
            fs::write(zone.join("energy_uj"), format!("{energy}\n")).unwrap();
            fs::write(zone.join("max_energy_range_uj"), "1000000\n").unwrap();
        };
        assert!(Meter::packages_in(folder.path()).is_err());
        put("intel-rapl:0", "package-0", 400_000);
        put("intel-rapl:1", "package-1", 900_000);
        put("intel-rapl:0:0", "core", 5);
        // A second zone of the first package. It must not be counted twice.
        put("intel-rapl-mmio:0", "package-0", 400_000);
        let meter =
            Meter { packages: Meter::packages_in(folder.path()).unwrap(), unavailable: None, gpus: None };
        assert!(meter.describe().starts_with("2 processor packages by RAPL;"));
        let before = meter.read();
        put("intel-rapl:0", "package-0", 600_000);
        put("intel-rapl-mmio:0", "package-0", 600_000);
        put("intel-rapl:1", "package-1", 200_000);
        assert_eq!(meter.since(&before), Joules { cpu: Some(0.2 + 0.3), gpu: None });
        // Without a range, the energy is unknown if the counter wrapped around.
        let mut unknown = meter.clone();
        unknown.packages.iter_mut().for_each(|package| package.range = None);
        assert_eq!(unknown.since(&before), Joules::default());
        // The energy is also unknown if the first value of the counter exceeds the range of the counter.
        put("intel-rapl:1", "package-1", 2_000_000);
        let beyond = meter.read();
        put("intel-rapl:1", "package-1", 0);
        assert_eq!(meter.since(&beyond), Joules::default());
        fs::write(folder.path().join("intel-rapl:1/energy_uj"), "none").unwrap();
        assert_eq!(meter.since(&before), Joules::default());
        // If one of two packages cannot be read, the other one is not reported as the total.
        assert!(Meter::packages_in(folder.path()).err().unwrap().contains("root may"));
        assert!(Meter::packages_in(Path::new("/nonexistent")).err().unwrap().contains("RAPL"));
    }

    #[test]
    fn a_missing_value_makes_the_sum_missing() {
        let [both, none] = [Joules { cpu: Some(1.5), gpu: Some(4.0) }, Joules { cpu: None, gpu: Some(1.0) }];
        let sum = Joules::ZERO.plus(both).plus(none).plus(both);
        assert_eq!(sum.per_byte(2.0), Joules { cpu: None, gpu: Some(4.5) });
        assert_eq!(Joules::ZERO.plus(both).per_byte(0.5), Joules { cpu: Some(3.0), gpu: Some(8.0) });
    }
}
