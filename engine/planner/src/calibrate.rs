//! Calibration: measures how long operations take with each kernel on each device of this machine.
//!
//! A measurement runs the operation in the same way as users' work: through the planner, with the verification that is set
//! for the planner. The operation runs in place, on data in host memory and in the device's memory, at five lengths from 64
//! bytes to 16 MiB, and on many messages at once. Each time is measured in two rounds, and the shortest run counts.
//!
//! Measurements are made when [`crate::Planner::calibrate`] is called, or automatically if
//! [`crate::Planner::calibrate_automatically`] permits it. The user's cache directory contains one file for each device,
//! with the measurements of that device. The file name contains a hash of the device's name, its description (model and
//! driver) and the version of this library. A file that is damaged, or belongs to another device or version, is ignored and
//! replaced by the next measurement. If the directory cannot be written to, the measurements are lost at the end of the
//! process.

mod measure;
mod store;

use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Instant;

use crate::candidates::{Candidate, CandidateTable, Measured};
use crate::timing::{Shape, Timing};
use crate::verify::Verify;
use lockstep_cache::Cache;
use lockstep_core::backend::{Device, DeviceId};
use lockstep_core::work::{Operation, Task};
use lockstep_core::{KeySize, Result};

pub use measure::Place;
use measure::{Bench, Samples, Subject};
use store::{Entry, Store};

/// Runs work and measures its time.
pub trait Clock: Send + Sync {
    /// Runs the work, and returns its time in nanoseconds.
    ///
    /// # Errors
    /// Errors of the work.
    fn time(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<f64>;
}

/// The system's monotonic clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn time(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
        let start = Instant::now();
        work()?;
        Ok(start.elapsed().as_nanos() as f64)
    }
}

/// The candidates of a table, and the function that runs work with them in the same way as users' work.
pub(crate) struct Measurable<'p> {
    pub(crate) table: &'p CandidateTable,
    /// How results of devices other than the CPU are verified.
    pub(crate) verify: Verify,
    /// Runs work with a candidate and waits for it.
    pub(crate) run: &'p dyn Fn(&Candidate, Task<'_, '_>) -> Result<()>,
}

/// Measures operations and stores the measurements.
pub struct Calibrator {
    clock: Box<dyn Clock>,
    cache: Option<Cache>,
    /// Locked during a measurement, because two measurements at the same time would disturb each other.
    turn: Mutex<()>,
}

/// The measured time of an operation.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The device.
    pub device: DeviceId,
    /// The kernel of the device.
    pub kernel: &'static str,
    /// The operation.
    pub operation: Operation,
    /// The size of the keys.
    pub key: KeySize,
    /// The memory that held the data.
    pub place: Place,
    /// The time.
    pub timing: Timing,
}

/// A kernel whose stated fixed cost is at least this value is not measured, because its programs must be compiled first.
/// CUDA states 60 s in this case.
const COMPILATION_NS: f64 = 1e9;

/// A kernel is measured only if its stated time for long work is at most this multiple of the stated time of the best kernel
/// of the device. In docs/measured/2026-11-22-zen4-2vcpu-throughput-2.md, the kernels with larger multiples (2.1 for
/// `cpu/aesni`, 40 for `cpu/soft`) are not faster by [`crate::MIN_SPEEDUP`] at any length.
const MAX_SLOWDOWN: f64 = 2.0;

/// If the stated times of two kernels of a device differ by less than this share, the calibrator assumes that both
/// kernels run the same code, and measures only the first kernel. Some kernels of the CPU have the same serial passes.
/// Stated rates have two digits.
const SAME_COST: f64 = 0.02;

/// Bytes of long work: 16 MiB, the longest length that is measured.
const LONG: usize = 16 << 20;

impl Calibrator {
    /// A calibrator with a clock and, optionally, a directory for the measurements.
    pub fn new(clock: impl Clock + 'static, cache: Option<Cache>) -> Calibrator {
        Calibrator { clock: Box::new(clock), cache, turn: Mutex::new(()) }
    }

    /// A calibrator with the system's clock and the user's cache directory.
    pub fn of_user() -> Calibrator {
        Calibrator::new(SystemClock, Cache::of_user("calibration"))
    }

    /// Removes the stored measurements of all devices.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn forget(&self) -> std::io::Result<()> {
        let Some(cache) = &self.cache else { return Ok(()) };
        let names = cache.names();
        let removed = names.iter().filter(|name| store::is_ours(name)).map(|name| cache.remove(name));
        // If the removal of one file fails, the other files are still removed.
        removed.fold(Ok(()), std::io::Result::and)
    }

    /// True if measurements are stored for a device other than the CPU that `auto` may choose.
    pub(crate) fn knows_other_devices(&self) -> bool {
        let names = self.cache.as_ref().map_or_else(Vec::new, Cache::names);
        names.iter().any(|name| store::is_of_other_device(name))
    }

    /// Reads the stored measurements of each operation for which the measurements are complete.
    pub(crate) fn recall(&self, table: &CandidateTable, verify: Verify) {
        let Some(cache) = &self.cache else { return };
        let stores: Vec<Store> = table.devices.iter().map(|device| Store::read(cache, &**device)).collect();
        for (operation, key) in Operation::all().flat_map(|it| KeySize::ALL.map(|key| (it, key))) {
            let choice = table.choice(operation, key);
            let found: Vec<Measured> = choice
                .candidates
                .iter()
                .map(|candidate| {
                    let verify = verification_of(&*table.entry_of(candidate).device, verify);
                    let kernel = table.kernel_name(candidate);
                    Place::ALL.map(|place| {
                        let entry = Entry { kernel: kernel.to_owned(), operation, key, place, verify };
                        stores[candidate.entry].timings.get(&entry).cloned()
                    })
                })
                .collect();
            // The measurements of an operation are complete if at least one kernel of each device has been measured.
            // The measurement of the other kernels may have failed.
            let measured = choice.candidates.iter().zip(&found).filter(|(_, places)| places[0].is_some());
            let measured: Vec<usize> = measured.map(|(candidate, _)| candidate.entry).collect();
            let is_missing =
                |it: &Candidate| !measured.contains(&it.entry) && is_promising(table, operation, key, it);
            if !measured.is_empty() && !choice.candidates.iter().any(is_missing) {
                choice.set_measured(found);
            }
        }
    }

    /// Measures all candidates for an operation on host memory, and stores the measurements. Returns `None` if another
    /// thread is measuring.
    pub(crate) fn measure(
        &self,
        subject: &Measurable<'_>,
        operation: Operation,
        key: KeySize,
    ) -> Option<Vec<Measured>> {
        let _turn = match self.turn.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(turn)) => turn.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let mut bench = Bench::new(&*self.clock);
        let all = measure_choice(&mut bench, subject, operation, key, &[Place::Host]);
        self.keep(subject, &findings(subject.table, operation, key, &all));
        Some(all)
    }

    /// Measures every operation with every candidate, in host memory and in the devices' memory, and stores the
    /// measurements. Before each operation, `report` is called with the number of completed operations and the number of all
    /// operations.
    pub(crate) fn measure_all(
        &self,
        subject: &Measurable<'_>,
        report: &mut dyn FnMut(usize, usize),
    ) -> Vec<Finding> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bench = Bench::new(&*self.clock);
        let mut all = Vec::new();
        for (done, operation) in Operation::all().enumerate() {
            report(done, Operation::COUNT);
            let before = all.len();
            for key in KeySize::ALL {
                let measured = measure_choice(&mut bench, subject, operation, key, &Place::ALL);
                all.extend(findings(subject.table, operation, key, &measured));
            }
            self.keep(subject, &all[before..]);
        }
        report(Operation::COUNT, Operation::COUNT);
        all
    }

    /// Adds measurements to the stored measurements.
    fn keep(&self, subject: &Measurable<'_>, findings: &[Finding]) {
        let Some(cache) = &self.cache else { return };
        for device in &subject.table.devices {
            let mut new = findings.iter().filter(|finding| finding.device == device.id()).peekable();
            if new.peek().is_none() {
                continue;
            }
            let verify = verification_of(&**device, subject.verify);
            let mut store = Store::read(cache, &**device);
            for Finding { kernel, operation, key, place, timing, .. } in new.cloned() {
                let entry = Entry { kernel: kernel.to_owned(), operation, key, place, verify };
                store.timings.insert(entry, timing);
            }
            // If the file cannot be written, the next process measures again.
            let _ = store.write(cache, &**device);
        }
    }
}

/// The measured times of the candidates for an operation.
fn findings(table: &CandidateTable, operation: Operation, key: KeySize, all: &[Measured]) -> Vec<Finding> {
    let candidates = table.choice(operation, key).candidates.iter().zip(all);
    let findings = candidates.flat_map(|(candidate, measured)| {
        let (device, kernel) = (table.entry_of(candidate).device.id(), table.kernel_name(candidate));
        Place::ALL.into_iter().zip(measured.clone()).filter_map(move |(place, timing)| {
            Some(Finding { device, kernel, operation, key, place, timing: timing? })
        })
    });
    findings.collect()
}

/// Measures the candidates that may be the fastest, in two rounds. A disturbance in one round does not affect the times
/// of the other round.
fn measure_choice(
    bench: &mut Bench<'_>,
    subject: &Measurable<'_>,
    operation: Operation,
    key: KeySize,
    places: &[Place],
) -> Vec<Measured> {
    let table = subject.table;
    let mut samples = |candidate: &Candidate, place| {
        let entry = table.entry_of(candidate);
        let is_measured = places.contains(&place)
            && (place == Place::Host || entry.device.memory().is_some())
            && is_promising(table, operation, key, candidate)
            && table.prove(candidate, operation).is_ok();
        let run = |task: Task<'_, '_>| (subject.run)(candidate, task);
        let subject = Subject { entry, run: &run, operation, key, place };
        if is_measured { bench.samples(subject).ok() } else { None }
    };
    let mut round = || -> Vec<[Option<Samples>; 2]> {
        let both = |candidate| Place::ALL.map(|place| samples(candidate, place));
        table.choice(operation, key).candidates.iter().map(both).collect()
    };
    let rounds = round().into_iter().zip(round());
    let timings = rounds.map(|(first, second)| {
        let mut places = first.into_iter().zip(second);
        Place::ALL.map(|_| {
            let (first, second) = places.next()?;
            first?.best_of(second?).timing(operation)
        })
    });
    timings.collect()
}

/// True if a candidate may be the fastest for some work.
fn is_promising(table: &CandidateTable, operation: Operation, key: KeySize, candidate: &Candidate) -> bool {
    let stated = |candidate: &Candidate| candidate.stated.ns(Shape::from(LONG));
    let all = &table.choice(operation, key).candidates;
    let same_device = || all.iter().filter(|other| other.entry == candidate.entry);
    let best = same_device().map(stated).fold(f64::INFINITY, f64::min);
    let is_same = |other: &Candidate| (stated(other) / stated(candidate) - 1.0).abs() < SAME_COST;
    let is_another = same_device().any(|other| other.kernel < candidate.kernel && is_same(other));
    candidate.stated.fixed_ns() < COMPILATION_NS && stated(candidate) <= MAX_SLOWDOWN * best && !is_another
}

/// Returns the kind of verification for work of a device. The results of the CPU are never verified.
fn verification_of(device: &dyn Device, verify: Verify) -> Verify {
    if device.is_trusted() { Verify::Off } else { verify }
}
