//! The table of candidates: for each operation and key size, the kernels of each device that support the operation, and
//! their times.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::selection::Selection;
use crate::selftest;
use crate::timing::{Shape, Timing};
use lockstep_core::backend::{Device, DeviceId, KernelId};
use lockstep_core::work::Operation;
use lockstep_core::{KeySize, Result};

/// After this number of failures, a device is no longer chosen, unless the user named it. A single failure is tolerated
/// because it may be an accident. More failures are not, because the CPU repeats the work after each failure, which
/// costs time.
const MAX_FAILURES: u32 = 3;

/// A kernel is preferred to an earlier kernel in the list of its device only if it was measured to be faster by this factor.
/// Repeated measurements of one kernel differ by up to 10 % at lengths up to 4 KiB
/// (docs/measured/2026-11-22-zen4-2vcpu-calibrate.md).
pub const MIN_SPEEDUP: f64 = 1.1;

/// Added to the time of a candidate if this time is not comparable with the times of the other candidates. The value is
/// 30 years, which is longer than any work takes.
pub(crate) const LAST_RESORT_NS: f64 = 1e18;

/// The devices to choose from, and for each operation and key size the candidates.
pub(crate) struct CandidateTable {
    pub(crate) devices: Vec<Arc<dyn Device>>,
    /// One entry for each device.
    entries: Vec<Arc<DeviceEntry>>,
    /// The candidates, by operation and key size.
    choices: Vec<[Choice; 3]>,
    /// The kernel that the user named, for error messages.
    pub(crate) forced: Option<&'static str>,
    has_failures: AtomicBool,
}

/// A device with the outcomes of its self-tests, its failures and its queued work.
pub(crate) struct DeviceEntry {
    pub(crate) device: Arc<dyn Device>,
    /// The outcome of each self-test that has run, by kernel and operation.
    proofs: Vec<Vec<OnceLock<Result<()>>>>,
    pub(crate) failures: AtomicU32,
    pub(crate) is_trusted: bool,
    /// Estimated nanoseconds of the work that is being run on the device.
    pub(crate) queued_ns: AtomicU64,
    /// The bytes of the work that the device has done.
    pub(crate) bytes: AtomicU64,
}

/// The candidates for an operation with keys of one size.
#[derive(Default)]
pub(crate) struct Choice {
    pub(crate) candidates: Vec<Candidate>,
    /// The candidate whose stated time is the shortest for work of every shape, if its device is trusted and its self-test has
    /// succeeded. It is used only as long as no times are measured. The value is the index of the candidate, and the stated
    /// nanoseconds for each byte of long data.
    sole: OnceLock<(usize, f64)>,
    /// Measured times, by candidate.
    pub(crate) measured: OnceLock<Vec<Measured>>,
    /// Estimated nanoseconds that this operation took so far.
    pub(crate) spent: AtomicU64,
}

/// The work for which the fastest candidate is searched, and the conditions for the candidate.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) operation: Operation,
    pub(crate) key: KeySize,
    pub(crate) shape: Shape,
    /// The device whose memory holds the data.
    pub(crate) resident: Option<DeviceId>,
    /// True if the candidate must belong to a trusted device.
    pub(crate) trusted_only: bool,
}

/// A kernel that can do an operation.
pub(crate) struct Candidate {
    /// Index into the table's entries.
    pub(crate) entry: usize,
    pub(crate) kernel: KernelId,
    /// The time that its device states.
    pub(crate) stated: Timing,
}

/// The measured times of a candidate, for data in host memory and in the device's memory; `None` where it was not measured.
pub(crate) type Measured = [Option<Timing>; 2];

impl DeviceEntry {
    fn new(device: Arc<dyn Device>) -> Arc<DeviceEntry> {
        let untested = || (0..Operation::COUNT).map(|_| OnceLock::new()).collect();
        let proofs = device.kernels().iter().map(|_| untested()).collect();
        let is_trusted = device.is_trusted();
        let (failures, queued_ns, bytes) = Default::default();
        Arc::new(DeviceEntry { device, proofs, failures, is_trusted, queued_ns, bytes })
    }
}

impl CandidateTable {
    /// The table for these devices and for the kernels that the selection permits. Devices that are in `earlier` keep their
    /// entries.
    pub(crate) fn new(
        devices: Vec<Arc<dyn Device>>,
        selection: &Selection,
        earlier: Option<&CandidateTable>,
    ) -> CandidateTable {
        let entry = |device: &Arc<dyn Device>| {
            let same = earlier.and_then(|earlier| earlier.entry(device.id()));
            same.map_or_else(|| DeviceEntry::new(Arc::clone(device)), Arc::clone)
        };
        let entries: Vec<Arc<DeviceEntry>> = devices.iter().map(entry).collect();
        let mut forced = None;
        let mut choices: Vec<[Choice; 3]> = (0..Operation::COUNT).map(|_| Default::default()).collect();
        for (index, device) in devices.iter().enumerate() {
            for (number, info) in device.kernels().iter().enumerate() {
                let is_wanted = match &selection.kernel {
                    Some(name) => name.as_str() == info.name,
                    None => info.constant_time,
                };
                if !is_wanted || info.missing.is_some() {
                    continue;
                }
                forced = selection.kernel.as_ref().map(|_| info.name);
                let kernel = KernelId(number as u16);
                for operation in Operation::all() {
                    for size in KeySize::ALL {
                        if let Some(cost) = device.cost(kernel, operation, size) {
                            let candidate = Candidate { entry: index, kernel, stated: cost.into() };
                            choices[operation.index()][size as usize].candidates.push(candidate);
                        }
                    }
                }
            }
        }
        CandidateTable { devices, entries, choices, forced, has_failures: AtomicBool::new(false) }
    }

    /// True if there is more than one device to choose from.
    pub(crate) fn has_rivals(&self) -> bool {
        self.devices.len() > 1
    }

    pub(crate) fn choice(&self, operation: Operation, key: KeySize) -> &Choice {
        &self.choices[operation.index()][key as usize]
    }

    pub(crate) fn entry_of(&self, candidate: &Candidate) -> &DeviceEntry {
        &self.entries[candidate.entry]
    }

    pub(crate) fn kernel_name(&self, candidate: &Candidate) -> &'static str {
        self.entry_of(candidate).device.kernels()[usize::from(candidate.kernel.0)].name
    }

    pub(crate) fn entry(&self, id: DeviceId) -> Option<&Arc<DeviceEntry>> {
        self.entries.iter().find(|entry| entry.device.id() == id)
    }

    /// The place where the outcome of a self-test is stored.
    fn slot(&self, candidate: &Candidate, operation: Operation) -> &OnceLock<Result<()>> {
        &self.entry_of(candidate).proofs[usize::from(candidate.kernel.0)][operation.index()]
    }

    /// Runs the self-test of a candidate for an operation if it has not run yet. Returns the outcome of the self-test.
    pub(crate) fn prove(&self, candidate: &Candidate, operation: Operation) -> &Result<()> {
        let device = &*self.entry_of(candidate).device;
        self.slot(candidate, operation).get_or_init(|| selftest::run(device, candidate.kernel, operation))
    }

    /// The index of the fastest candidate whose self-test succeeds, and its time in nanoseconds. If `gives_up` is true, devices that
    /// have failed too often are left out.
    pub(crate) fn fastest(&self, wanted: Wanted, gives_up: bool) -> Option<(usize, f64)> {
        let choice = self.choice(wanted.operation, wanted.key);
        loop {
            let (index, ns) = self.estimate(choice, wanted, gives_up)?;
            let candidate = &choice.candidates[index];
            // If the self-test fails, the next estimate leaves this candidate out.
            if self.prove(candidate, wanted.operation).is_ok() {
                if choice.sole.get().is_none() && self.entry_of(candidate).is_trusted {
                    choice.find_sole(index);
                }
                return Some((index, ns));
            }
        }
    }

    /// The candidate with the shortest time among those whose self-test has succeeded or has not run.
    fn estimate(&self, choice: &Choice, wanted: Wanted, gives_up: bool) -> Option<(usize, f64)> {
        let Wanted { operation, shape, resident, trusted_only, .. } = wanted;
        let mut best: Option<(usize, f64)> = None;
        let mut best_entry = usize::MAX;
        for (index, candidate) in choice.candidates.iter().enumerate() {
            let entry = self.entry_of(candidate);
            if resident.is_some_and(|id| entry.device.id() != id)
                || gives_up && self.is_given_up(candidate)
                || trusted_only && !entry.is_trusted
                || self.proof(candidate, operation).is_some_and(Result::is_err)
            {
                continue;
            }
            let mut ns = choice.ns(index, shape, resident.is_some());
            if !entry.is_trusted {
                // The CPU runs on the caller's thread. Any other device works for one caller at a time, so its queued work
                // adds to the time.
                ns += entry.queued_ns.load(Ordering::Relaxed) as f64;
            }
            let is_same_device =
                candidate.entry == best_entry && choice.is_measured(index, resident.is_some());
            let factor = if is_same_device { MIN_SPEEDUP } else { 1.0 };
            if factor * ns < best.map_or(f64::INFINITY, |(_, least)| least) {
                best = Some((index, ns));
                best_entry = candidate.entry;
            }
        }
        best
    }

    /// The outcome of a self-test, if it has run.
    pub(crate) fn proof(&self, candidate: &Candidate, operation: Operation) -> Option<&Result<()>> {
        self.slot(candidate, operation).get()
    }

    /// The outcomes of all self-tests that have run.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = &Result<()>> {
        self.entries.iter().flat_map(|entry| entry.proofs.iter().flatten().filter_map(OnceLock::get))
    }

    /// The devices that have done work, with the bytes of the work.
    pub(crate) fn worked(&self) -> impl Iterator<Item = (DeviceId, u64)> {
        let bytes = |entry: &Arc<DeviceEntry>| (entry.device.id(), entry.bytes.load(Ordering::Relaxed));
        self.entries.iter().map(bytes).filter(|(_, bytes)| *bytes > 0)
    }

    /// Counts a failure or a wrong result of a device.
    pub(crate) fn count_failure(&self, id: DeviceId) {
        if let Some(entry) = self.entry(id) {
            entry.failures.fetch_add(1, Ordering::Relaxed);
            self.has_failures.store(true, Ordering::Relaxed);
        }
    }

    /// True if a device has failed.
    pub(crate) fn has_failures(&self) -> bool {
        self.has_failures.load(Ordering::Relaxed)
    }

    /// True if the device of a candidate has failed too often.
    pub(crate) fn is_given_up(&self, candidate: &Candidate) -> bool {
        self.entry_of(candidate).failures.load(Ordering::Relaxed) >= MAX_FAILURES
    }
}

impl Choice {
    /// Stores a candidate as the sole one if, by the stated times, no other candidate is faster for work of any shape.
    fn find_sole(&self, index: usize) {
        const LONG: usize = 1 << 20;
        let stated = &self.candidates[index].stated;
        if self.candidates.iter().all(|other| stated.is_at_most(&other.stated)) {
            let _ = self.sole.set((index, stated.ns(LONG.into()) / LONG as f64));
        }
    }

    /// The only candidate that may be chosen, if it is known, and the nanoseconds for each byte of long data that its device
    /// states.
    #[inline]
    pub(crate) fn sole(&self) -> Option<(&Candidate, f64)> {
        let &(index, ns_per_byte) = self.sole.get().filter(|_| self.measured.get().is_none())?;
        Some((&self.candidates[index], ns_per_byte))
    }

    /// The time of a candidate for work of a shape, in nanoseconds. Measured and stated times are not comparable.
    /// Therefore, if some candidates have been measured, the candidates without measurements come last.
    pub(crate) fn ns(&self, index: usize, shape: Shape, is_resident: bool) -> f64 {
        match self.timing(index, is_resident) {
            Some(timing) => timing.ns(shape),
            None => {
                let is_any_measured = (0..self.candidates.len()).any(|i| self.is_measured(i, is_resident));
                let last = if is_any_measured { LAST_RESORT_NS } else { 0.0 };
                last + self.candidates[index].stated.ns(shape)
            }
        }
    }

    /// Stores measured times, unless measured times have already been stored.
    pub(crate) fn set_measured(&self, all: Vec<Measured>) {
        let _ = self.measured.set(all);
    }

    fn timing(&self, index: usize, is_resident: bool) -> Option<&Timing> {
        self.measured.get()?.get(index)?[usize::from(is_resident)].as_ref()
    }

    pub(crate) fn is_measured(&self, index: usize, is_resident: bool) -> bool {
        self.timing(index, is_resident).is_some()
    }
}
