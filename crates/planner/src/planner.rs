//! The planner: which device and kernel does a piece of work.
//!
//! It takes the cheapest, by what was measured on this machine ([`crate::calibrate`]) and by what devices state where nothing
//! was. Kernels that leak timing and simulated devices are taken only when asked for by name. No kernel is used for an
//! operation before it has passed the known-answer test of that operation on that very device ([`crate::selftest`]); one
//! that fails is passed over, and [`Planner::failures`] tells.
//!
//! **It looks for other devices late.** To start a GPU's driver takes longer than most work. So a planner that may choose
//! begins with the processor, and looks around when that has been at work for as long as is worth the trouble
//! ([`Planner::looking`]). In the same way an operation is measured when it has taken as long as measuring does.

mod candidates;
mod names;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

use crate::calibrate::Calibrator;
use crate::timing::Shape;
use crate::verify::{self, Judge, Verify};
use lockstep_core::backend::{Completion, Device, DeviceId, KernelId};
use lockstep_core::error::{Error, Result};
use lockstep_core::key::KeySize;
use lockstep_core::work::{Operation, Work};

pub(crate) use candidates::{Candidate, Measured, Roster};
use candidates::{LAST_RESORT_NS, Member};

/// What the user asked for; nothing asked for means `auto`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// A device's name, such as `cpu`; or several of a backend, `cuda:0,1` or `cuda:all`, among which large work is shared out.
    pub device: Option<String>,
    /// A kernel's name, such as `cpu/vaes512`.
    pub kernel: Option<String>,
}

/// Work from so many bytes on counts: it is what other devices are looked for and measured for. What is shorter is done
/// before a GPU has begun.
const COUNTS_FROM: usize = 16 << 10;

/// Other devices are looked for when the processor has been at work for so long, in nanoseconds, if none is known to be there:
/// 60 ms, which it takes to find that there is none, are then 3 %.
const LOOK_AFTER_NS: u64 = 2_000_000_000;

/// The same if one was there and measured before: about what its driver takes to start.
const LOOK_AGAIN_AFTER_NS: u64 = 200_000_000;

/// An operation is measured when it has taken so long, in nanoseconds: about as long as measuring it takes.
const MEASURE_AFTER_NS: u64 = 50_000_000;

/// Measurements that are nearer to each other than this are the same: whatever else the machine does moves them as much.
const CLEARLY: f64 = 0.9;

/// Chooses devices and kernels. Shared by all work of a program, and locked for moments only: where somebody looks for devices or
/// measures, others go on by what is known.
pub struct Planner {
    /// Those that need not be looked for.
    near: Roster,
    /// All, once they were looked for.
    all: OnceLock<Roster>,
    /// There may be others than the near ones.
    looks: bool,
    /// Looks for them, once.
    look: Mutex<Option<Look>>,
    is_looking: AtomicBool,
    /// What was measured before of the near ones has been read.
    recalled: Once,
    /// Nanoseconds of work after which others are looked for.
    look_after: AtomicU64,
    /// Nanoseconds of work that counts, about.
    spent: AtomicU64,
    calibrator: Option<Calibrator>,
    verify: Verify,
    /// Over the processor that runs this program: what others' results are compared with, and who works for them.
    trusted: Option<Box<Planner>>,
    /// The user named a device or a kernel.
    is_narrowed: bool,
    calls: AtomicUsize,
    incidents: Mutex<Vec<Error>>,
    /// What was chosen, if somebody wants to know.
    decisions: Option<Mutex<BTreeMap<DecisionKey, Decision>>>,
}

/// Finds the devices beside the processor.
pub type Look = Box<dyn FnOnce() -> Vec<Arc<dyn Device>> + Send>;

/// Incidents that are remembered.
const MOST_INCIDENTS: usize = 64;

/// What somebody weighed, and what was decided: for people.
#[derive(Debug, Clone)]
pub struct Considered {
    /// The device.
    pub device: DeviceId,
    /// Its kernel.
    pub kernel: &'static str,
    /// Nanoseconds that the work would take.
    pub ns: f64,
    /// True if that rests on measurements, false if on what the device states.
    pub is_measured: bool,
    /// Why it was passed over although it may be the cheapest.
    pub passed_over: Option<String>,
    /// True for the one that is chosen.
    pub is_chosen: bool,
}

/// Work of one kind and about one size by one kernel: operation, key size, the binary logarithm of the bytes, whether there are
/// several messages; device and kernel.
type DecisionKey = (Operation, KeySize, u32, bool, usize, KernelId);

/// What was chosen for work of one kind and about one size, and that by one kernel.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The operation.
    pub operation: Operation,
    /// The size of the keys.
    pub key: KeySize,
    /// The first work of this kind.
    pub shape: Shape,
    /// How many calls there were.
    pub calls: u64,
    /// All their bytes.
    pub bytes: u64,
    /// Who could have done the first of them, the chosen one marked.
    pub considered: Vec<Considered>,
}

/// A choice of the planner.
#[derive(Clone, Copy)]
pub struct Plan<'p> {
    planner: &'p Planner,
    /// The device.
    pub device: &'p dyn Device,
    /// Its kernel.
    pub kernel: KernelId,
    /// Who is charged with the work while it is run, and nanoseconds of it.
    charged: Option<(&'p Member, u64)>,
}

impl<'p> Plan<'p> {
    /// The name of the kernel.
    pub fn kernel_name(&self) -> &'static str {
        self.device.kernels()[usize::from(self.kernel.0)].name
    }

    /// Submits work to the chosen device. Results that stay on it are verified when the completion is waited for, as the
    /// planner was told: see [`crate::verify`].
    ///
    /// # Errors
    /// Those of [`Device::submit`].
    pub fn submit<'w, 'd: 'w>(self, work: impl Into<Work<'w, 'd>>) -> Result<Completion<'w>>
    where
        'p: 'w,
    {
        let work = work.into();
        match self.planner.judge(self.device) {
            Some(judge) => verify::submit(self, judge, work),
            None => self.submit_unverified(work),
        }
    }

    /// Submits work to the chosen device, and that is all.
    pub(crate) fn submit_unverified<'w, 'd: 'w>(
        self,
        work: impl Into<Work<'w, 'd>>,
    ) -> Result<Completion<'w>> {
        self.device.submit(self.kernel, work.into())
    }

    pub(crate) fn planner(&self) -> &'p Planner {
        self.planner
    }

    /// Submits work to the chosen device and waits for it. Results in host memory are verified as the planner was told, and
    /// wrong ones made again: see [`crate::verify`].
    ///
    /// # Errors
    /// Those of [`Device::submit`].
    pub fn run<'w, 'd: 'w>(self, work: impl Into<Work<'w, 'd>>) -> Result<()> {
        let work = work.into();
        let _charge = self.charged.map(|(member, ns)| Charge::new(member, ns));
        match self.planner.judge(self.device) {
            Some(judge) => verify::run(self, &judge, work),
            None => {
                let outcome = self.submit_unverified(work).and_then(Completion::wait);
                if let Err(Error::DeviceFailed { device, .. }) = &outcome {
                    self.planner.roster().count_failure(*device);
                }
                outcome
            }
        }
    }

    /// Remembers that the device failed, and that others did its work.
    pub(crate) fn tell(self, incident: Error) {
        if let Error::DeviceFailed { device, .. } | Error::WrongResult { device } = &incident {
            self.planner.roster().count_failure(*device);
        }
        let mut incidents = self.planner.incidents.lock().unwrap_or_else(PoisonError::into_inner);
        if incidents.len() < MOST_INCIDENTS {
            incidents.push(incident);
        }
    }
}

/// Work that a device has in hand.
struct Charge<'p>(&'p Member, u64);

impl<'p> Charge<'p> {
    fn new(member: &'p Member, ns: u64) -> Charge<'p> {
        member.in_hand_ns.fetch_add(ns, Ordering::Relaxed);
        Charge(member, ns)
    }
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        self.0.in_hand_ns.fetch_sub(self.1, Ordering::Relaxed);
    }
}

impl Planner {
    /// A planner over these devices, narrowed to what was selected.
    ///
    /// # Errors
    /// [`Error::UnknownDevice`] or [`Error::UnknownKernel`] if the selection names what is not there.
    pub fn new(devices: Vec<Arc<dyn Device>>, selection: &Selection) -> Result<Planner> {
        let trusted: Vec<_> = devices.iter().filter(|device| device.is_trusted()).cloned().collect();
        let trusted = if trusted.is_empty() {
            None
        } else {
            Some(Box::new(Planner::over(trusted, &Selection::default())?))
        };
        Ok(Planner { trusted, ..Planner::over(devices, selection)? })
    }

    /// A planner that chooses by itself: among these devices, and, once there is enough to do, among those that `look` finds
    /// as well.
    pub fn looking(near: Vec<Arc<dyn Device>>, look: Look) -> Planner {
        let mut planner = Planner::new(near, &Selection::default()).expect("nothing was selected");
        planner.looks = true;
        planner.look = Mutex::new(Some(look));
        planner
    }

    fn over(devices: Vec<Arc<dyn Device>>, selection: &Selection) -> Result<Planner> {
        let near = Roster::new(names::select(devices, selection)?, selection, None);
        Ok(Planner {
            near,
            all: OnceLock::new(),
            looks: false,
            look: Mutex::new(None),
            is_looking: AtomicBool::new(false),
            recalled: Once::new(),
            look_after: AtomicU64::new(LOOK_AFTER_NS),
            spent: AtomicU64::new(0),
            calibrator: None,
            verify: Verify::default(),
            trusted: None,
            is_narrowed: selection.device.is_some() || selection.kernel.is_some(),
            calls: AtomicUsize::new(0),
            incidents: Mutex::default(),
            decisions: None,
        })
    }

    /// How results of devices are checked.
    pub fn with_verify(mut self, verify: Verify) -> Planner {
        self.verify = verify;
        self
    }

    /// Who checks the work of a device, if anybody does.
    fn judge(&self, device: &dyn Device) -> Option<Judge<'_>> {
        if self.verify == Verify::Off || device.is_trusted() {
            return None;
        }
        let planner = self.trusted.as_deref()?;
        // The golden ratio: the places that are looked at spread evenly, however long a stretch is.
        let calls = self.calls.fetch_add(1, Ordering::Relaxed) as u64;
        let seed = (calls.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize;
        Some(Judge { planner, verify: self.verify, seed, redoes_failures: !self.is_narrowed })
    }

    /// What devices did wrong or failed to do, and others have done in their place.
    pub fn incidents(&self) -> Vec<Error> {
        self.incidents.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Chooses by what was measured, and measures what it needs.
    pub fn with_calibrator(mut self, calibrator: Calibrator) -> Planner {
        self.calibrator = Some(calibrator);
        self
    }

    /// Remembers what it chooses, for [`Planner::decisions`].
    pub fn with_decisions(mut self) -> Planner {
        self.decisions = Some(Mutex::default());
        self
    }

    /// What was chosen so far, if it is remembered.
    pub fn decisions(&self) -> Vec<Decision> {
        let decisions = self.decisions.as_ref().map(|all| all.lock().unwrap_or_else(PoisonError::into_inner));
        decisions.map_or_else(Vec::new, |all| all.values().cloned().collect())
    }

    /// The devices it chooses among; looks for all there are.
    pub fn devices(&self) -> &[Arc<dyn Device>] {
        &self.all().devices
    }

    /// The devices that it has found so far, without looking further.
    pub fn devices_so_far(&self) -> &[Arc<dyn Device>] {
        &self.roster().devices
    }

    fn roster(&self) -> &Roster {
        self.all.get().unwrap_or(&self.near)
    }

    /// After looking for all devices there are.
    pub(crate) fn all(&self) -> &Roster {
        if !self.looks {
            return &self.near;
        }
        self.all.get_or_init(|| {
            let look = self.look.lock().unwrap_or_else(PoisonError::into_inner).take();
            let found = look.map_or_else(Vec::new, |look| look());
            let mut devices = self.near.devices.clone();
            devices.extend(found.into_iter().filter(|device| !device.is_simulated()));
            let roster = Roster::new(devices, &Selection::default(), Some(&self.near));
            self.recall(&roster);
            roster
        })
    }

    /// Takes what was measured before, by earlier processes.
    fn recall(&self, roster: &Roster) {
        if let Some(calibrator) = &self.calibrator {
            calibrator.recall(roster, self.verify);
        }
    }

    fn recall_near(&self) {
        if !self.recalled.is_completed() {
            self.recalled.call_once(|| {
                self.recall(&self.near);
                if self.calibrator.as_ref().is_some_and(Calibrator::knows_others) {
                    self.look_after.store(LOOK_AGAIN_AFTER_NS, Ordering::Relaxed);
                }
            });
        }
    }

    /// True if some kernel it may use does this operation.
    pub fn supports(&self, operation: Operation, key: KeySize) -> bool {
        !self.roster().choice(operation, key).candidates.is_empty()
    }

    /// The device of this name, if it is among those chosen from.
    ///
    /// # Errors
    /// [`Error::UnknownDevice`] if it is not.
    pub fn device(&self, id: DeviceId) -> Result<&dyn Device> {
        let roster = if self.roster().has(id) { self.roster() } else { self.all() };
        match roster.devices.iter().find(|device| device.id() == id) {
            Some(device) => Ok(&**device),
            None => Err(Error::UnknownDevice { name: id.to_string(), known: names::known(&roster.devices) }),
        }
    }

    /// The cheapest proven kernel for so much work, on the device where the data are, if they are on one.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if no kernel it may use does the operation; [`Error::SelfTest`] if none of those that
    /// do passed their test.
    #[inline]
    pub fn plan(
        &self,
        operation: Operation,
        key: KeySize,
        work: impl Into<Shape>,
        resident: Option<DeviceId>,
    ) -> Result<Plan<'_>> {
        self.plan_shape(operation, key, work.into(), resident)
    }

    fn plan_shape(
        &self,
        operation: Operation,
        key: KeySize,
        shape: Shape,
        resident: Option<DeviceId>,
    ) -> Result<Plan<'_>> {
        let mut roster = self.roster();
        if resident.is_some_and(|id| !roster.has(id)) {
            roster = self.all();
        }
        if roster.has_rivals && self.calibrator.is_some() {
            self.recall_near();
        }
        let mut best = self.best(roster, operation, key, shape, resident);
        if shape.bytes >= COUNTS_FROM
            && resident.is_none()
            && let Some((_, ns)) = best
            && self.learns(roster, operation, key, ns)
        {
            roster = self.roster();
            best = self.best(roster, operation, key, shape, resident);
        }
        match best {
            Some((index, ns)) => {
                let candidate = &roster.choice(operation, key).candidates[index];
                if let Some(decisions) = &self.decisions {
                    self.decide(decisions, roster, (operation, key), (index, candidate), shape, resident);
                }
                let member = roster.member_of(candidate);
                let charged = (!member.is_trusted).then_some((member, ns as u64));
                Ok(Plan { charged, ..self.plan_of(roster, candidate) })
            }
            None => Err(self.no_plan(roster, operation, key, resident)),
        }
    }

    pub(crate) fn plan_of<'p>(&'p self, roster: &'p Roster, candidate: &Candidate) -> Plan<'p> {
        let device = &*roster.member_of(candidate).device;
        Plan { planner: self, device, kernel: candidate.kernel, charged: None }
    }

    /// The candidate that takes least, and how long.
    fn best(
        &self,
        roster: &Roster,
        operation: Operation,
        key: KeySize,
        shape: Shape,
        resident: Option<DeviceId>,
    ) -> Option<(usize, f64)> {
        let choice = roster.choice(operation, key);
        let among = |gives_up: bool| {
            let mut best: Option<(usize, f64)> = None;
            let mut best_member = usize::MAX;
            for (index, candidate) in choice.candidates.iter().enumerate() {
                let member = roster.member_of(candidate);
                if resident.is_some_and(|id| member.device.id() != id)
                    || (gives_up && roster.is_given_up(candidate))
                {
                    continue;
                }
                let mut ns = choice.ns(index, member.pair().is_some(), shape, resident.is_some());
                if !member.is_trusted {
                    // The processor has a thread for each who asks; of a device there is one.
                    ns += member.in_hand_ns.load(Ordering::Relaxed) as f64;
                }
                // A device lists its best kernels first: others must be measured to be clearly better.
                let is_close =
                    candidate.member == best_member && choice.is_measured(index, resident.is_some());
                let margin = if is_close { CLEARLY } else { 1.0 };
                if ns < best.map_or(f64::INFINITY, |(_, least)| margin * least)
                    && roster.prove(candidate, operation).is_ok()
                {
                    best = Some((index, ns));
                    best_member = candidate.member;
                }
            }
            best
        };
        // A device that fails all the time is better than none.
        let gives_up = resident.is_none() && !self.is_narrowed && roster.has_failures();
        among(gives_up).or_else(|| among(false))
    }

    /// Counts work that takes so long. True if something has been found out that may change the choice.
    fn learns(&self, roster: &Roster, operation: Operation, key: KeySize, ns: f64) -> bool {
        if !self.recalled.is_completed() {
            self.recall_near();
            return true;
        }
        let add = |sum: &AtomicU64| sum.fetch_add(ns as u64, Ordering::Relaxed).saturating_add(ns as u64);
        if self.looks && self.all.get().is_none() {
            if add(&self.spent) < self.look_after.load(Ordering::Relaxed)
                || self.is_looking.swap(true, Ordering::Relaxed)
            {
                return false;
            }
            self.all();
            return true;
        }
        let choice = roster.choice(operation, key);
        let Some(calibrator) = self.calibrator.as_ref().filter(|_| roster.has_rivals) else { return false };
        if choice.measured.get().is_some() || add(&choice.spent) < MEASURE_AFTER_NS {
            return false;
        }
        // Where somebody measures already, the work goes on meanwhile by what is known.
        calibrator.measure(self, roster, operation, key).map(|all| choice.set_measured(all)).is_some()
    }

    /// Looks for devices and measures the operation now, as it would after a while of work, if it would.
    pub fn settle(&self, operation: Operation, key: KeySize) {
        self.recall_near();
        let roster = self.all();
        let choice = roster.choice(operation, key);
        if let Some(calibrator) = self.calibrator.as_ref().filter(|_| roster.has_rivals)
            && choice.measured.get().is_none()
            && let Some(all) = calibrator.measure(self, roster, operation, key)
        {
            choice.set_measured(all);
        }
    }

    /// Everybody who could do the work, and what is known of them; the chosen one is marked. Nothing is measured or looked for.
    pub fn consider(
        &self,
        operation: Operation,
        key: KeySize,
        work: impl Into<Shape>,
        resident: Option<DeviceId>,
    ) -> Vec<Considered> {
        self.recall_near();
        let (shape, roster) = (work.into(), self.roster());
        let chosen = self.best(roster, operation, key, shape, resident).map(|(index, _)| index);
        self.considered(roster, (operation, key), chosen, shape, resident)
    }

    fn considered(
        &self,
        roster: &Roster,
        (operation, key): (Operation, KeySize),
        chosen: Option<usize>,
        shape: Shape,
        resident: Option<DeviceId>,
    ) -> Vec<Considered> {
        let choice = roster.choice(operation, key);
        let mut all = Vec::new();
        for (index, candidate) in choice.candidates.iter().enumerate() {
            let member = roster.member_of(candidate);
            let ns = choice.ns(index, member.pair().is_some(), shape, resident.is_some());
            if resident.is_some_and(|id| member.device.id() != id) || !ns.is_finite() {
                continue;
            }
            let ns = if ns >= LAST_RESORT_NS { ns - LAST_RESORT_NS } else { ns };
            let failed = roster.proof(candidate, operation).and_then(|proof| proof.as_ref().err());
            let given_up = || roster.is_given_up(candidate).then(|| "it has failed too often".to_owned());
            all.push(Considered {
                device: member.device.id(),
                kernel: member.device.kernels()[usize::from(candidate.kernel.0)].name,
                ns,
                is_measured: choice.is_measured(index, resident.is_some()),
                passed_over: failed.map(ToString::to_string).or_else(given_up),
                is_chosen: chosen == Some(index),
            });
        }
        all.sort_by(|one, other| one.ns.total_cmp(&other.ns));
        all
    }

    fn decide(
        &self,
        decisions: &Mutex<BTreeMap<DecisionKey, Decision>>,
        roster: &Roster,
        (operation, key): (Operation, KeySize),
        (index, chosen): (usize, &Candidate),
        shape: Shape,
        resident: Option<DeviceId>,
    ) {
        let (size, is_batch) = ((shape.bytes + 1).ilog2(), shape.messages > 1);
        let about = (operation, key, size, is_batch, chosen.member, chosen.kernel);
        let mut decisions = decisions.lock().unwrap_or_else(PoisonError::into_inner);
        let decision = decisions.entry(about).or_insert_with(|| {
            let considered = self.considered(roster, (operation, key), Some(index), shape, resident);
            Decision { operation, key, shape, calls: 0, bytes: 0, considered }
        });
        decision.calls += 1;
        decision.bytes += shape.bytes as u64;
    }

    #[cold]
    fn no_plan(
        &self,
        roster: &Roster,
        operation: Operation,
        key: KeySize,
        resident: Option<DeviceId>,
    ) -> Error {
        if let Some(id) = resident
            && let Err(error) = self.device(id)
        {
            return error;
        }
        let here =
            |candidate: &&Candidate| resident.is_none_or(|id| roster.member_of(candidate).device.id() == id);
        let all = roster.choice(operation, key).candidates.iter().filter(here);
        let failed = all.filter_map(|candidate| roster.proof(candidate, operation)?.clone().err()).next();
        let asked_for = || match roster.devices.first() {
            Some(device) if self.is_narrowed => device.id().backend,
            _ => "this machine",
        };
        failed.unwrap_or_else(|| Error::Unsupported {
            kernel: roster.forced.unwrap_or_else(asked_for),
            operation: operation.to_string(),
        })
    }

    /// Kernels that failed their self-test so far, with what they failed.
    pub fn failures(&self) -> Vec<Error> {
        self.roster().outcomes().filter_map(|outcome| outcome.as_ref().err().cloned()).collect()
    }

    pub(crate) fn verify(&self) -> Verify {
        self.verify
    }

    pub(crate) fn calibrator(&self) -> Option<&Calibrator> {
        self.calibrator.as_ref()
    }
}
