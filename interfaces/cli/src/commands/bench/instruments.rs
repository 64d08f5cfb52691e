//! The instruments measure the elapsed time and the CPU time of this process for each timed stretch. On machines with energy counters they also measure energy: RAPL counts the energy of Intel
//! and AMD processor packages and is read through Linux's powercap interface, and NVML counts the energy of NVIDIA GPUs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lockstep_cuda::Energy;
use lockstep_report::text::count;
use rustix::time::{ClockId, clock_gettime};

/// CPU time of this process so far: user and system time of all threads.
pub(super) fn process_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap_or_default()
}

/// CPU time of the child processes that have ended and were waited for. The resolution is one clock tick, usually 10
/// ms. `None` without `/proc`.
pub(super) fn children_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in parentheses. The name may contain any character, so the fields are
    // counted from the last parenthesis.
    let mut fields = text.rsplit_once(") ")?.1.split(' ').skip(13);
    let ticks = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// The time and the energy of timed stretches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spent {
    /// Number of bytes that the calls processed.
    pub(super) bytes: f64,
    pub(super) elapsed: Duration,
    /// CPU time of the process.
    pub(super) cpu: Duration,
    pub(super) joules: Joules,
}

impl Spent {
    pub(super) const NOTHING: Spent =
        Spent { bytes: 0.0, elapsed: Duration::ZERO, cpu: Duration::ZERO, joules: [Some(0.0); 2] };

    pub(super) fn add(&mut self, more: Spent) {
        self.bytes += more.bytes;
        self.elapsed += more.elapsed;
        self.cpu += more.cpu;
        self.joules = std::array::from_fn(|meter| Some(self.joules[meter]? + more.joules[meter]?));
    }

    /// Bytes per second.
    pub(super) fn rate(self) -> f64 {
        self.bytes / self.elapsed.as_secs_f64()
    }

    /// Joules per byte; `None` if the stretches took less than a second. RAPL counters are updated every millisecond and NVML
    /// counters every 100 ms, so the energy of a shorter time would be inexact.
    pub(super) fn joules_per_byte(self) -> Joules {
        let is_long = self.elapsed >= Duration::from_secs(1);
        self.joules.map(|joules| joules.filter(|_| is_long).map(|joules| joules / self.bytes))
    }
}

/// Runs a stretch and measures its time. The caller must set the bytes and the energy in the result.
pub(super) fn timed<T>(stretch: impl FnOnce() -> T) -> (T, Spent) {
    let before = process_time();
    let start = Instant::now();
    let returned = stretch();
    let elapsed = start.elapsed();
    (returned, Spent { bytes: 0.0, elapsed, cpu: process_time().saturating_sub(before), joules: [None; 2] })
}

/// The folder of the powercap zones on Linux.
const POWERCAP: &str = "/sys/class/powercap";

/// The energy counters of the processor packages and of the GPUs.
pub(super) struct Meter {
    /// The processor packages, or the reason why their energy is not measured.
    pub(super) packages: Result<Vec<Package>, String>,
    pub(super) gpus: Option<Energy>,
}

/// A processor package.
#[derive(Clone)]
pub(super) struct Package {
    /// The file that contains the value of the counter, in microjoules.
    counter: PathBuf,
    /// The value at which the counter wraps around, if it is known.
    range: Option<u64>,
}

/// The energy in joules that each of the [`METERS`] measured. `None` for a meter that did not measure it.
pub(super) type Joules = [Option<f64>; 2];

/// The meters. Each has a name for titles, a heading for columns, and a name for JSON.
pub(super) const METERS: [(&str, &str, &str); 2] =
    [("processors", "CPU J/GB", "joules_per_gb"), ("GPUs", "GPU J/GB", "gpu_joules_per_gb")];

/// The values of the counters: microjoules for each package, and millijoules for all GPUs together.
pub(super) struct Reading {
    packages: Vec<Option<u64>>,
    gpus: Option<u64>,
}

impl Meter {
    /// Opens the counters of this machine.
    pub(super) fn open() -> Meter {
        Meter { packages: Meter::packages_in(Path::new(POWERCAP)), gpus: Energy::open().ok() }
    }

    fn packages_in(folder: &Path) -> Result<Vec<Package>, String> {
        let none = || "no power meters (RAPL, NVML) on this machine".to_owned();
        let is_package = |zone: &PathBuf| {
            // Only the zones of packages are read, because a package includes its cores and memory controllers, which have
            // zones of their own. The zones have the same names on AMD processors.
            let name = fs::read_to_string(zone.join("name")).unwrap_or_default();
            // A zone whose file name starts with `intel-rapl-mmio` is a second interface to the counter of a package.
            let file_name = zone.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("package-") && !file_name.starts_with("intel-rapl-mmio")
        };
        let zones = fs::read_dir(folder).map_err(|_| none())?.flatten().map(|entry| entry.path());
        let packages = zones.filter(is_package).map(|zone| {
            let counter = zone.join("energy_uj");
            // If the counter of one package cannot be read, no sum is reported: readers of the report would take the sum
            // of the remaining packages for the sum of all packages.
            read(&counter).map_err(|error| {
                format!("power meters cannot be read: {}: {error} (root may)", counter.display())
            })?;
            Ok(Package { range: read(&zone.join("max_energy_range_uj")).ok(), counter })
        });
        let packages = packages.collect::<Result<Vec<_>, String>>()?;
        if packages.is_empty() { Err(none()) } else { Ok(packages) }
    }

    /// The indices in [`METERS`] of the meters that this machine has.
    pub(super) fn present(&self) -> Vec<usize> {
        let is_present = [self.packages.is_ok(), self.gpus.is_some()];
        (0..METERS.len()).filter(|&meter| is_present[meter]).collect()
    }

    /// A sentence for the report that states which energy is measured.
    pub(super) fn describe(&self) -> String {
        let gpus = self.gpus.as_ref().map(|gpus| format!("{} by NVML", count(gpus.devices(), "GPU")));
        let (measured, missing) = match (&self.packages, gpus) {
            (Err(why), None) => return format!("not measured: {why}"),
            (Err(why), Some(gpus)) => (gpus, format!("; processors not measured: {why}")),
            (Ok(packages), gpus) => {
                let packages = format!("{} by RAPL", count(packages.len(), "processor package"));
                (std::iter::once(packages).chain(gpus).collect::<Vec<_>>().join(" and "), String::new())
            }
        };
        format!(
            "{measured}; includes everything that runs on them; reported for at least one second of timed work{missing}"
        )
    }

    /// The counters now.
    pub(super) fn read(&self) -> Reading {
        let counters = self.packages.iter().flatten().map(|package| read(&package.counter).ok());
        Reading { packages: counters.collect(), gpus: self.gpus.as_ref().and_then(Energy::millijoules) }
    }

    /// Joules used since `before` by all programs on the measured devices; `None` where a counter could not be read.
    pub(super) fn since(&self, before: &Reading) -> Joules {
        let now = self.read();
        let used = |(package, (now, before)): (&Package, (&Option<u64>, &Option<u64>))| {
            let (now, before) = ((*now)?, (*before)?);
            // If the counter is below its earlier value, it has wrapped around.
            let wrapped = || package.range?.checked_sub(before)?.checked_add(now);
            Some(now.checked_sub(before).or_else(wrapped)? as f64 / 1e6)
        };
        let packages = self.packages.as_ref().ok();
        let readings = now.packages.iter().zip(&before.packages);
        let cpu = packages.and_then(|all| all.iter().zip(readings).map(used).sum());
        let gpu = now.gpus.zip(before.gpus).and_then(|(now, before)| now.checked_sub(before));
        [cpu, gpu.map(|millijoules| millijoules as f64 / 1e3)]
    }
}

fn read(path: &Path) -> Result<u64, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    text.trim().parse().map_err(|_| "it does not contain a number".into())
}

#[cfg(test)]
mod tests;
