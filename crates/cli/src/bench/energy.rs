//! Energy, where the machine exposes it: RAPL counters of processor packages (Intel's and AMD's, by Linux's powercap), and
//! NVML's of NVIDIA's GPUs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lockstep_cuda::Energy;

/// Where Linux has them.
const POWERCAP: &str = "/sys/class/powercap";

/// The energy counters of the processor packages, and of the GPUs.
#[derive(Clone)]
pub(crate) struct Meter {
    /// For each package: its counter, and where that wraps around, in microjoules.
    packages: Vec<(PathBuf, u64)>,
    gpus: Option<Arc<Energy>>,
}

/// The counters at one time: of packages in microjoules, and of all GPUs together in millijoules.
pub(crate) struct Reading {
    packages: Vec<u64>,
    gpus: u64,
}

impl Meter {
    /// The meter of this machine, or why there is none.
    pub(crate) fn find() -> Result<Meter, String> {
        let gpus = Energy::open().ok().map(Arc::new);
        match (Meter::packages_in(Path::new(POWERCAP)), gpus) {
            (Err(why), None) => Err(why),
            (packages, gpus) => Ok(Meter { packages: packages.unwrap_or_default(), gpus }),
        }
    }

    fn packages_in(folder: &Path) -> Result<Vec<(PathBuf, u64)>, String> {
        let entries =
            fs::read_dir(folder).map_err(|_| "no power meters (RAPL, NVML) on this machine".to_owned())?;
        let mut packages = Vec::new();
        let mut refused = None;
        for entry in entries.flatten() {
            let zone = entry.path();
            // Packages only: cores and memory controllers are parts of them. AMD's have the same names.
            let name = fs::read_to_string(zone.join("name")).unwrap_or_default();
            if !name.starts_with("package-") {
                continue;
            }
            let counter = zone.join("energy_uj");
            match read(&counter) {
                Ok(_) => {
                    let range = read(&zone.join("max_energy_range_uj")).unwrap_or(u64::MAX);
                    packages.push((counter, range));
                }
                Err(error) => refused = Some(format!("{}: {error}", counter.display())),
            }
        }
        match (packages.is_empty(), refused) {
            (false, _) => Ok(packages),
            (true, Some(refused)) => Err(format!("power meters cannot be read: {refused} (root may)")),
            (true, None) => Err("no power meters (RAPL, NVML) on this machine".into()),
        }
    }

    /// What it measures, in words.
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
        format!("{}; all that runs on them counts", parts.join(" and "))
    }

    /// The counters now; nothing if one of them fails.
    pub(crate) fn read(&self) -> Option<Reading> {
        let packages = self.packages.iter().map(|(counter, _)| read(counter).ok()).collect::<Option<_>>()?;
        let gpus = match &self.gpus {
            Some(gpus) => gpus.millijoules()?,
            None => 0,
        };
        Some(Reading { packages, gpus })
    }

    /// Joules since a reading, of everything that runs there.
    pub(crate) fn since(&self, before: &Reading) -> Option<f64> {
        let now = self.read()?;
        let parts = now.packages.iter().zip(&before.packages).zip(&self.packages);
        let packages: u64 = parts
            .map(|((now, before), (_, range))| {
                now.checked_sub(*before).unwrap_or_else(|| (range - before.min(range)).saturating_add(*now))
            })
            .sum();
        Some(packages as f64 / 1e6 + now.gpus.checked_sub(before.gpus)? as f64 / 1e3)
    }
}

fn read(path: &Path) -> Result<u64, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    text.trim().parse().map_err(|_| "it holds no number".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_added_and_wrap_around() {
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
        let meter = Meter { packages: Meter::packages_in(folder.path()).unwrap(), gpus: None };
        assert!(meter.describe().starts_with("2 processor packages by RAPL;"));
        let before = meter.read().unwrap();
        put("intel-rapl:0", "package-0", 600_000);
        put("intel-rapl:1", "package-1", 200_000);
        assert_eq!(meter.since(&before), Some(0.2 + 0.3));
        put("intel-rapl:1", "package-1", 0);
        fs::write(folder.path().join("intel-rapl:1/energy_uj"), "none").unwrap();
        assert_eq!(meter.since(&before), None);
        assert!(Meter::packages_in(Path::new("/nonexistent")).unwrap_err().contains("RAPL"));
    }
}
