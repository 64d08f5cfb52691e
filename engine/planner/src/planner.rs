//! The planner chooses the device and the kernel for each piece of work.
//!
//! The planner chooses the candidate with the shortest time. The time is measured on this machine ([`crate::calibrate`]) or,
//! without a measurement, stated by the device. Kernels that are not constant-time and devices that are used by name only
//! are chosen only if the user names them. Before its first use for an operation, a kernel must pass the known-answer test
//! of that operation on that device ([`crate::selftest`]); a kernel that fails is not used, and [`Planner::failures`]
//! reports it.
//!
//! **Lazy discovery.** Starting a GPU driver takes longer than most work. A planner with lazy discovery
//! ([`Planner::with_lazy_discovery`]) starts with the CPU alone. It discovers other devices when the total work of the CPU
//! has taken much longer than the discovery takes. With automatic calibration ([`Planner::calibrate_automatically`]), an
//! operation is measured after it has taken, in total, as long as its measurement takes.

mod decisions;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

use crate::calibrate::{Calibrator, Finding, Measurable};
use crate::candidates::{Candidate, CandidateTable, DeviceEntry, LAST_RESORT_NS, Wanted};
use crate::selection::{self, Selection};
use crate::timing::Shape;
use crate::verify::{self, Incident, Verifier, Verify};
use lockstep_core::backend::{Completion, Device, DeviceId, KernelId};
use lockstep_core::work::{Operation, Pass, Task, Work};
use lockstep_core::{Error, KeySize, Result};

use decisions::Decisions;
pub use decisions::{Considered, Decision};

/// Calls with fewer bytes do not count towards discovery and calibration. The CPU needs 2 µs for 16 KiB of CTR
/// (docs/measured/2026-11-22-zen4-2vcpu-calibrate.md), while the stated cost of a launch on a GPU is 60 µs.
const MIN_COUNTED_BYTES: usize = 16 << 10;

/// Estimated work of the CPU before other devices are discovered, in nanoseconds. On a machine with two processors and no
/// other device, discovery takes 60 ms, which is 3 % of this value.
const DISCOVERY_AFTER_NS: u64 = 2_000_000_000;

/// Replaces [`DISCOVERY_AFTER_NS`] if an earlier process has measured a device other than the CPU. A driver takes 50 to
/// 500 ms to start (docs/planner.md).
const REDISCOVERY_AFTER_NS: u64 = 200_000_000;

/// Estimated total time of an operation before the operation is measured, in nanoseconds. Measuring an operation with keys
/// of one size takes about half this time: 1.0 s for 21 operations and two key sizes
/// (docs/measured/2026-11-22-zen4-2vcpu-calibrate.md).
const CALIBRATION_AFTER_NS: u64 = 50_000_000;

/// Maximum number of stored incidents. Without a limit, the list would grow in every call of a device that always
/// fails.
const MAX_INCIDENTS: usize = 64;

/// Finds the devices other than the CPU.
pub type Discover = Box<dyn FnOnce() -> Vec<Arc<dyn Device>> + Send>;

/// Chooses devices and kernels. All threads of a program share one planner, whose locks are held only briefly. While one
/// thread discovers devices or measures, the others continue with the known devices and times.
pub struct Planner {
    /// The candidates of the devices that need no discovery.
    initial: CandidateTable,
    /// The candidates of all devices, after discovery.
    all: OnceLock<CandidateTable>,
    discovery: Option<LazyDiscovery>,
    calibrator: Option<Calibrator>,
    calibrates_automatically: bool,
    /// Whether earlier measurements have been read.
    recalled: Once,
    verify: Verify,
    /// A planner over the trusted devices. It computes the results with which results of other devices are compared, and
    /// repeats work of devices that fail.
    trusted: Option<Box<Planner>>,
    /// True if the user named a device or a kernel.
    is_narrowed: bool,
    /// The calls whose results were verified, by operation.
    calls: [AtomicUsize; Operation::COUNT],
    incidents: Mutex<Vec<Error>>,
    /// The passes that the CPU computed in place of the named devices, with the bytes of each.
    assisted: Mutex<BTreeMap<Pass, u64>>,
    decisions: Option<Decisions>,
}

/// The discovery of the devices other than the CPU. It starts after enough work has been done.
struct LazyDiscovery {
    discover: Mutex<Option<Discover>>,
    has_started: AtomicBool,
    /// Nanoseconds of work before discovery.
    after: AtomicU64,
    /// Estimated nanoseconds of work so far.
    spent: AtomicU64,
}

impl LazyDiscovery {
    /// Adds the estimated time of work. Returns true if discovery is due.
    fn count(&self, ns: f64) -> bool {
        count_towards(self.after.load(Ordering::Relaxed), &self.spent, ns)
    }
}

/// Adds to a sum of nanoseconds. Returns true if the sum has reached the limit. An atomic addition would wait until the previous work of
/// the thread has written its output. Therefore additions of other threads may be lost, and a thread that is interrupted before it stores
/// may set the sum back to an older value. The limit is then reached later.
fn count_towards(limit: u64, sum: &AtomicU64, ns: f64) -> bool {
    let total = sum.load(Ordering::Relaxed).saturating_add(ns as u64);
    sum.store(total, Ordering::Relaxed);
    total >= limit
}

/// A choice of the planner.
#[derive(Clone, Copy)]
pub struct Plan<'p> {
    planner: &'p Planner,
    /// The device.
    pub device: &'p dyn Device,
    /// The kernel of the device.
    pub kernel: KernelId,
    /// `None` for work of a trusted device.
    queued: Option<QueuedWork<'p>>,
}

/// Work that is counted as queued while it runs: its device, its estimated time in nanoseconds, and its bytes.
#[derive(Clone, Copy)]
struct QueuedWork<'p> {
    entry: &'p DeviceEntry,
    ns: u64,
    bytes: u64,
}

impl<'p> Plan<'p> {
    /// The name of the kernel.
    pub fn kernel_name(&self) -> &'static str {
        self.device.kernels()[usize::from(self.kernel.0)].name
    }

    /// Submits work to the chosen device. Results that stay on the device are verified when the completion is waited for: see
    /// [`crate::verify`].
    ///
    /// # Errors
    /// The errors of [`Device::submit`].
    pub fn submit<'w, 'd: 'w>(self, work: impl Into<Work<'w, 'd>>) -> Result<Completion<'w>>
    where
        'p: 'w,
    {
        let work = work.into();
        match self.verifier(&work.task) {
            Some(verifier) => verify::submit(verifier, work),
            None => self.device.submit(self.kernel, work),
        }
    }

    /// Submits work to the chosen device and waits for it. Results in host memory are verified, and wrong ones are computed
    /// again: see [`crate::verify`].
    ///
    /// # Errors
    /// The errors of [`Device::submit`].
    pub fn run<'w, 'd: 'w>(self, work: impl Into<Work<'w, 'd>>) -> Result<()> {
        let work = work.into();
        let _queued = self.queued.map(|QueuedWork { entry, ns, .. }| {
            entry.queued_ns.fetch_add(ns, Ordering::Relaxed);
            Queued(entry, ns)
        });
        let outcome = match self.verifier(&work.task) {
            Some(verifier) => verify::run(verifier, work).map(|incident| {
                incident.into_iter().for_each(|it| self.planner.record(self.device.id(), it))
            }),
            None => self.planner.finished(self.device.submit(self.kernel, work)),
        };
        if let (Ok(()), Some(queued)) = (&outcome, self.queued) {
            queued.entry.bytes.fetch_add(queued.bytes, Ordering::Relaxed);
        }
        outcome
    }

    /// The verifier for the results; `None` if they are not verified.
    fn verifier(&self, task: &Task<'_, '_>) -> Option<Verifier<'p>> {
        let Plan { planner, device, kernel, .. } = *self;
        if planner.verify == Verify::Off || device.is_trusted() {
            return None;
        }
        let trusted = planner.trusted.as_deref()?;
        // The seeds are the fractional parts of multiples of the golden ratio, in units of 2^-32. They differ from call to
        // call, and the sampled places are spread evenly.
        let calls = planner.calls[task.operation().index()].fetch_add(1, Ordering::Relaxed) as u64;
        let seed = (calls.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize;
        let (verify, repeats_failed_work) = (planner.verify, !planner.is_narrowed);
        Some(Verifier { device, kernel, executor: planner, trusted, verify, seed, repeats_failed_work })
    }
}

/// The estimated time of work that a device is doing. When this value is dropped, also during a panic, the time is subtracted
/// from the device's queued time.
struct Queued<'p>(&'p DeviceEntry, u64);

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.queued_ns.fetch_sub(self.1, Ordering::Relaxed);
    }
}

impl Planner {
    /// A planner over the devices that the selection permits.
    ///
    /// # Errors
    /// [`Error::UnknownDevice`] or [`Error::UnknownKernel`] if the selection names something that does not exist.
    pub fn new(devices: Vec<Arc<dyn Device>>, selection: &Selection) -> Result<Planner> {
        let trusted: Vec<_> = devices.iter().filter(|device| device.is_trusted()).cloned().collect();
        let trusted = match trusted.is_empty() {
            true => None,
            false => Some(Box::new(Planner::over(trusted, &Selection::default())?)),
        };
        Ok(Planner { trusted, ..Planner::over(devices, selection)? })
    }

    /// A planner without a selection. It uses these devices and, after enough work, also the devices that `discover` finds.
    pub fn with_lazy_discovery(initial: Vec<Arc<dyn Device>>, discover: Discover) -> Planner {
        let planner = Planner::new(initial, &Selection::default()).expect("nothing was selected");
        let discovery = LazyDiscovery {
            discover: Mutex::new(Some(discover)),
            has_started: AtomicBool::new(false),
            after: AtomicU64::new(DISCOVERY_AFTER_NS),
            spent: AtomicU64::new(0),
        };
        Planner { discovery: Some(discovery), ..planner }
    }

    fn over(devices: Vec<Arc<dyn Device>>, selection: &Selection) -> Result<Planner> {
        Ok(Planner {
            initial: CandidateTable::new(selection::select(devices, selection)?, selection, None),
            all: OnceLock::new(),
            discovery: None,
            calibrator: None,
            calibrates_automatically: false,
            recalled: Once::new(),
            verify: Verify::default(),
            trusted: None,
            is_narrowed: !selection.is_auto(),
            calls: std::array::from_fn(|_| AtomicUsize::new(0)),
            incidents: Mutex::default(),
            assisted: Mutex::default(),
            decisions: None,
        })
    }

    /// Sets how results of devices are verified.
    pub fn with_verify(self, verify: Verify) -> Planner {
        Planner { verify, ..self }
    }

    /// Sets the calibrator. The planner uses the measurements that the calibrator has stored, and [`Planner::calibrate`]
    /// makes new ones.
    pub fn with_calibrator(self, calibrator: Calibrator) -> Planner {
        Planner { calibrator: Some(calibrator), ..self }
    }

    /// Sets whether operations are measured, and the measurements stored, without a call of [`Planner::calibrate`]. An
    /// operation is measured within the call in which its total time reaches the time of a measurement. Off by default.
    pub fn calibrate_automatically(self, is_allowed: bool) -> Planner {
        Planner { calibrates_automatically: is_allowed, ..self }
    }

    /// Makes the planner record its choices, for [`Planner::decisions`].
    pub fn with_decisions(self) -> Planner {
        Planner { decisions: Some(Decisions::default()), ..self }
    }

    /// The choices so far, if they are recorded.
    pub fn decisions(&self) -> Vec<Decision> {
        self.decisions.as_ref().map_or_else(Vec::new, Decisions::all)
    }

    /// Records an incident: the reason why another device has repeated the work of `device`, or why the results were
    /// not verified.
    fn record(&self, device: DeviceId, Incident { error, is_failure }: Incident) {
        if is_failure {
            self.table().count_failure(device);
        }
        let mut incidents = self.incidents.lock().unwrap_or_else(PoisonError::into_inner);
        if incidents.len() < MAX_INCIDENTS {
            incidents.push(error);
        }
    }

    /// Failures and wrong results of devices whose work was then done by another device, and results that could not be verified
    /// because the host had too little memory.
    pub fn incidents(&self) -> Vec<Error> {
        self.incidents.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The passes that were given to the CPU because no named device supports them, and the total bytes of each pass. For
    /// example, GCM on a device needs GHASH, which the device may not support.
    pub fn assisted(&self) -> Vec<(Operation, u64)> {
        let assisted = self.assisted.lock().unwrap_or_else(PoisonError::into_inner);
        assisted.iter().map(|(pass, bytes)| (Operation::Pass(*pass), *bytes)).collect()
    }

    /// Returns the CPU for a pass without output, such as GHASH, that no named device supports. The named device must support
    /// the passes that write data. CMAC and GMAC write no data, so the CPU does not replace the device for them, and they are
    /// refused ([`Executor::check_mac`](lockstep_modes::Executor::check_mac)).
    pub(crate) fn assistant(&self, pass: Pass, bytes: usize) -> Option<&Planner> {
        let names_other_device =
            self.is_narrowed && self.initial.devices.iter().all(|device| !device.is_trusted());
        let trusted = self.trusted.as_deref().filter(|_| names_other_device && pass.is_read_only())?;
        let mut assisted = self.assisted.lock().unwrap_or_else(PoisonError::into_inner);
        *assisted.entry(pass).or_default() += bytes as u64;
        Some(trusted)
    }

    /// The devices other than the CPU that have completed work without an error, and the total bytes of the work of each. Work that
    /// the CPU has repeated counts too ([`Planner::incidents`] has the reason); self-tests and submitted work ([`Plan::submit`]) do
    /// not.
    pub fn worked(&self) -> Vec<(DeviceId, u64)> {
        self.table().worked().collect()
    }

    /// The devices to choose from. Discovers all devices.
    pub fn devices(&self) -> &[Arc<dyn Device>] {
        &self.all().devices
    }

    /// The devices to choose from that have been discovered so far.
    pub fn devices_so_far(&self) -> &[Arc<dyn Device>] {
        &self.table().devices
    }

    fn table(&self) -> &CandidateTable {
        self.all.get().unwrap_or(&self.initial)
    }

    /// The table of all devices. Discovers them.
    fn all(&self) -> &CandidateTable {
        let Some(discovery) = &self.discovery else { return &self.initial };
        self.all.get_or_init(|| {
            let discover = discovery.discover.lock().unwrap_or_else(PoisonError::into_inner).take();
            let mut devices = self.initial.devices.clone();
            devices.extend(discover.into_iter().flat_map(|discover| discover()));
            let devices = selection::candidates_of_auto(devices);
            let table = CandidateTable::new(devices, &Selection::default(), Some(&self.initial));
            if let Some(calibrator) = &self.calibrator {
                calibrator.recall(&table, self.verify);
            }
            table
        })
    }

    /// Reads earlier measurements of the initial devices, once.
    fn recall(&self) {
        self.recalled.call_once(|| {
            let Some(calibrator) = &self.calibrator else { return };
            calibrator.recall(&self.initial, self.verify);
            if let Some(discovery) = self.discovery.as_ref().filter(|_| calibrator.knows_other_devices()) {
                discovery.after.store(REDISCOVERY_AFTER_NS, Ordering::Relaxed);
            }
        });
    }

    /// True if a kernel that the planner may use supports this operation.
    pub fn supports(&self, operation: Operation, key: KeySize) -> bool {
        !self.table().choice(operation, key).candidates.is_empty()
    }

    /// The device of this name, if the planner may choose it.
    ///
    /// # Errors
    /// [`Error::UnknownDevice`] otherwise.
    pub fn device(&self, id: DeviceId) -> Result<&dyn Device> {
        let table = if self.table().entry(id).is_some() { self.table() } else { self.all() };
        let known = || selection::known(&table.devices);
        let unknown = || Error::UnknownDevice { name: id.to_string(), known: known() };
        table.entry(id).map(|entry| &*entry.device).ok_or_else(unknown)
    }

    /// The fastest candidate for work of a shape. Data in device memory restrict the choice to that device.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if no kernel that the planner may use supports the operation; [`Error::SelfTest`] if all
    /// kernels that support it failed their self-test.
    #[inline]
    pub fn plan(
        &self,
        operation: Operation,
        key: KeySize,
        work: impl Into<Shape>,
        resident: Option<DeviceId>,
    ) -> Result<Plan<'_>> {
        let wanted = Wanted { operation, key, shape: work.into(), resident, trusted_only: false };
        if resident.is_none()
            && let Some((device, kernel)) = self.sole(operation, key, wanted.shape.bytes)
        {
            return Ok(Plan { planner: self, device, kernel, queued: None });
        }
        self.choose(wanted)
    }

    /// The device and the kernel for work in host memory if there is nothing to choose: a trusted device has the only kernel that may be
    /// the fastest, and discovery is not due. A choice would take a large part of the time of short work. This function counts the
    /// estimated time of the work. If it returns `None`, the caller therefore calls [`Planner::choose`] and not [`Planner::plan`], which
    /// would count the time again.
    #[inline]
    pub(crate) fn sole(
        &self,
        operation: Operation,
        key: KeySize,
        bytes: usize,
    ) -> Option<(&dyn Device, KernelId)> {
        let table = self.table();
        let (candidate, ns_per_byte) = table.choice(operation, key).sole()?;
        let has_choice = table.has_rivals() || table.has_failures() || self.decisions.is_some();
        if has_choice || self.count_sole_work(bytes, ns_per_byte) {
            return None;
        }
        Some((&*table.entry_of(candidate).device, candidate.kernel))
    }

    /// Adds the estimated time of work on the only known device to the total time. Returns true if a kernel has to be chosen,
    /// because the work may start the discovery of other devices, or because earlier measurements have not been read.
    fn count_sole_work(&self, bytes: usize, ns_per_byte: f64) -> bool {
        let is_due = |discovery: &LazyDiscovery| discovery.count(bytes as f64 * ns_per_byte);
        bytes >= MIN_COUNTED_BYTES
            && (!self.recalled.is_completed() || self.undiscovered().is_some_and(is_due))
    }

    /// The discovery of devices. `None` after its end, or if the planner has no lazy discovery.
    fn undiscovered(&self) -> Option<&LazyDiscovery> {
        self.discovery.as_ref().filter(|_| self.all.get().is_none())
    }

    /// Waits for work. If the device fails, counts the failure. Usually the device has already finished; this case is
    /// handled first, so that the large value of a pending completion is not copied.
    #[inline]
    pub(crate) fn finished(&self, submitted: Result<Completion<'_>>) -> Result<()> {
        let outcome = match submitted {
            Ok(Completion::Done) => return Ok(()),
            Ok(pending) => pending.wait(),
            Err(error) => Err(error),
        };
        outcome.inspect_err(|error| {
            if let Error::DeviceFailed { device, .. } = error {
                self.table().count_failure(*device);
            }
        })
    }

    /// The fastest candidate, without the shortcut of [`Planner::sole`].
    pub(crate) fn choose(&self, wanted: Wanted) -> Result<Plan<'_>> {
        let Wanted { operation, key, shape, resident, .. } = wanted;
        let mut table = self.table();
        if resident.is_some_and(|id| table.entry(id).is_none()) {
            table = self.all();
        }
        if table.has_rivals() {
            self.recall();
        }
        let mut best = self.best(table, wanted);
        if shape.bytes >= MIN_COUNTED_BYTES
            && resident.is_none()
            && let Some((_, ns)) = best
            && self.maybe_calibrate(table, operation, key, ns)
        {
            table = self.table();
            best = self.best(table, wanted);
        }
        let Some((index, ns)) = best else { return Err(self.no_plan(table, wanted)) };
        let candidate = &table.choice(operation, key).candidates[index];
        if let Some(decisions) = &self.decisions {
            decisions.record(wanted, candidate, || self.considered(table, wanted, Some(index)));
        }
        let entry = table.entry_of(candidate);
        let work = QueuedWork { entry, ns: ns as u64, bytes: shape.bytes as u64 };
        let queued = (!entry.is_trusted).then_some(work);
        Ok(Plan { queued, ..self.plan_of(table, candidate) })
    }

    fn plan_of<'p>(&'p self, table: &'p CandidateTable, candidate: &Candidate) -> Plan<'p> {
        let device = &*table.entry_of(candidate).device;
        Plan { planner: self, device, kernel: candidate.kernel, queued: None }
    }

    /// The index of the fastest candidate, and its time in nanoseconds.
    fn best(&self, table: &CandidateTable, wanted: Wanted) -> Option<(usize, f64)> {
        // If there is no other device, a device that has failed too often is still used.
        let gives_up = wanted.resident.is_none() && !self.is_narrowed && table.has_failures();
        let trusted_only = self.repeats_macs(wanted);
        let best = table.fastest(Wanted { trusted_only, ..wanted }, gives_up);
        best.or_else(|| table.fastest(wanted, false))
    }

    /// True if the CPU computes all MACs of the work again to verify them, so that another device saves no time. A device that the
    /// user named is used nevertheless.
    fn repeats_macs(&self, Wanted { operation, shape, resident, .. }: Wanted) -> bool {
        let repeats = match self.verify {
            Verify::Off => false,
            Verify::Sample => shape.messages == 1,
            Verify::Full => true,
        };
        repeats && operation.is_read_only() && resident.is_none() && !self.is_narrowed
    }

    /// Adds the estimated time of work to the total times. Discovers devices or measures the operation if a limit is
    /// reached. Returns true if the choice may have changed.
    fn maybe_calibrate(&self, table: &CandidateTable, operation: Operation, key: KeySize, ns: f64) -> bool {
        if !self.recalled.is_completed() {
            self.recall();
            return true;
        }
        if let Some(discovery) = self.undiscovered() {
            let is_due = discovery.count(ns) && !discovery.has_started.swap(true, Ordering::Relaxed);
            if is_due {
                self.all();
            }
            return is_due;
        }
        self.calibrates_automatically
            && table.has_rivals()
            && count_towards(CALIBRATION_AFTER_NS, &table.choice(operation, key).spent, ns)
            && self.measure(table, operation, key)
    }

    /// Measures an operation, unless it has already been measured or another thread is measuring. Returns true if it was
    /// measured.
    fn measure(&self, table: &CandidateTable, operation: Operation, key: KeySize) -> bool {
        let choice = table.choice(operation, key);
        let Some(calibrator) = self.calibrator.as_ref().filter(|_| choice.measured.get().is_none()) else {
            return false;
        };
        let run = |candidate: &Candidate, task: Task<'_, '_>| self.plan_of(table, candidate).run(task);
        let subject = Measurable { table, verify: self.verify, run: &run };
        calibrator.measure(&subject, operation, key).map(|all| choice.set_measured(all)).is_some()
    }

    /// Measures every operation with every kernel that the planner may choose, in host memory and in the devices' memory,
    /// and stores the measurements. The measurement takes about two seconds for each device. Before each operation,
    /// `report` is called with the number of completed operations and the number of all operations.
    ///
    /// A planner without a [`Calibrator`] measures nothing. The new measurements do not affect the choices of this planner.
    pub fn calibrate(&self, report: &mut dyn FnMut(usize, usize)) -> Vec<Finding> {
        let Some(calibrator) = &self.calibrator else { return Vec::new() };
        let table = self.all();
        let run = |candidate: &Candidate, task: Task<'_, '_>| self.plan_of(table, candidate).run(task);
        calibrator.measure_all(&Measurable { table, verify: self.verify, run: &run }, report)
    }

    /// Discovers devices immediately, without waiting for enough work. Also measures the operation if this planner
    /// calibrates automatically.
    pub fn discover_and_measure(&self, operation: Operation, key: KeySize) {
        self.recall();
        let table = self.all();
        if self.calibrates_automatically && table.has_rivals() {
            self.measure(table, operation, key);
        }
    }

    /// All candidates for the work and their times. The candidate that would be chosen is marked. This function discovers
    /// and measures nothing.
    pub fn consider(
        &self,
        operation: Operation,
        key: KeySize,
        work: impl Into<Shape>,
        resident: Option<DeviceId>,
    ) -> Vec<Considered> {
        self.recall();
        let wanted = Wanted { operation, key, shape: work.into(), resident, trusted_only: false };
        let table = self.table();
        self.considered(table, wanted, self.best(table, wanted).map(|(index, _)| index))
    }

    fn considered(&self, table: &CandidateTable, wanted: Wanted, chosen: Option<usize>) -> Vec<Considered> {
        let Wanted { operation, key, shape, resident, .. } = wanted;
        let choice = table.choice(operation, key);
        let mut all = Vec::new();
        for (index, candidate) in choice.candidates.iter().enumerate() {
            let device = table.entry_of(candidate).device.id();
            if resident.is_some_and(|id| device != id) {
                continue;
            }
            let ns = choice.ns(index, shape, resident.is_some());
            let failed = table.proof(candidate, operation).and_then(|proof| proof.as_ref().err());
            let given_up = || table.is_given_up(candidate).then(|| "it has failed too often".to_owned());
            let is_repeated = self.repeats_macs(wanted) && !table.entry_of(candidate).is_trusted;
            let repeated = || is_repeated.then(|| "the CPU computes its MACs again".to_owned());
            all.push(Considered {
                device,
                kernel: table.kernel_name(candidate),
                ns: if ns >= LAST_RESORT_NS { ns - LAST_RESORT_NS } else { ns },
                is_measured: choice.is_measured(index, resident.is_some()),
                passed_over: failed.map(ToString::to_string).or_else(given_up).or_else(repeated),
                is_chosen: chosen == Some(index),
            });
        }
        all.sort_by(|one, other| one.ns.total_cmp(&other.ns));
        all
    }

    #[cold]
    fn no_plan(&self, table: &CandidateTable, Wanted { operation, key, resident, .. }: Wanted) -> Error {
        if let Some(id) = resident
            && let Err(error) = self.device(id)
        {
            return error;
        }
        let is_there =
            |candidate: &&Candidate| resident.is_none_or(|id| table.entry_of(candidate).device.id() == id);
        let candidates = table.choice(operation, key).candidates.iter().filter(is_there);
        let failed = candidates.filter_map(|it| table.proof(it, operation)?.clone().err()).next();
        let selected = || match table.devices.first() {
            Some(device) if self.is_narrowed => device.id().backend,
            _ => "this machine",
        };
        failed.unwrap_or_else(|| operation.unsupported_by(table.forced.unwrap_or_else(selected)))
    }

    /// The kernels that failed their self-test so far, with the test that failed.
    pub fn failures(&self) -> Vec<Error> {
        self.table().outcomes().filter_map(|outcome| outcome.as_ref().err().cloned()).collect()
    }
}
