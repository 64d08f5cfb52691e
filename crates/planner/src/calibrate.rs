//! Calibration: what operations really take, on each device by each kernel of this machine.
//!
//! A measurement runs the operation as users do, through the planner and with the verification it is set to, on data in host
//! memory (and in the device's own, if it has some), in place, at five lengths from 64 bytes to 16 MiB, and many messages at once,
//! twice over; the shortest of all runs counts ([`Calibrator`]).
//!
//! What was measured is kept in the user's cache directory, a file for each device, under a key that has its name, its
//! description (model and driver) and the version of this library. Files that are damaged, or of another device or
//! version, are ignored and written anew; a directory that cannot be written to costs the measurement, nothing else.

mod measure;
mod store;

use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Instant;

use crate::planner::{Candidate, Measured, Planner, Roster};
use crate::timing::{Shape, Timing};
use crate::verify::Verify;
use lockstep_cache::Cache;
use lockstep_core::backend::{Cost, Device, DeviceId};
use lockstep_core::error::Result;
use lockstep_core::key::KeySize;
use lockstep_core::work::Operation;

pub use measure::Place;
use measure::{Bench, Samples};
use store::{Entry, Store};

/// How long something takes.
pub trait Clock: Send + Sync {
    /// Does the work, and gives the nanoseconds that it took.
    ///
    /// # Errors
    /// Those of the work.
    fn time(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<f64>;
}

/// The time that passes.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn time(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
        let start = Instant::now();
        work()?;
        Ok(start.elapsed().as_nanos() as f64)
    }
}

/// Measures, and keeps what was measured.
pub struct Calibrator {
    clock: Box<dyn Clock>,
    cache: Option<Cache>,
    /// One measurement at a time, for others would disturb it.
    turn: Mutex<()>,
}

/// What an operation was found to take.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The device.
    pub device: DeviceId,
    /// Its kernel.
    pub kernel: &'static str,
    /// The operation.
    pub operation: Operation,
    /// The size of the keys.
    pub key: KeySize,
    /// Where the data were.
    pub place: Place,
    /// The time it takes.
    pub timing: Timing,
}

/// A device that says that it takes a second to begin says that its programs must be compiled first: it is believed.
const NOT_AT_HAND_NS: f64 = 1e9;

/// Of one device, a kernel that by its own account takes so many times as long as another for long work is not measured, nor one
/// that takes as long as one before it.
const HOPELESS: f64 = 2.0;
const ALIKE: f64 = 0.02;

/// How often everything is measured.
const ROUNDS: usize = 2;

/// Sharing work out is measured where by calculation it takes so much of the time of the better one alone.
const WORTH_SHARING: f64 = 0.9;

impl Calibrator {
    /// By this clock; `cache` is where results are kept, if anywhere.
    pub fn new(clock: impl Clock + 'static, cache: Option<Cache>) -> Calibrator {
        Calibrator { clock: Box::new(clock), cache, turn: Mutex::new(()) }
    }

    /// By the time that passes, kept in the user's cache directory.
    pub fn of_user() -> Calibrator {
        Calibrator::new(SystemClock, Cache::of_user("calibration"))
    }

    /// Forgets what was measured of all devices.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn forget(&self) -> std::io::Result<()> {
        let Some(cache) = &self.cache else { return Ok(()) };
        let names = cache.names();
        let removed = names.iter().filter(|name| store::is_ours(name)).map(|name| cache.remove(name));
        // All that can be removed, whatever cannot.
        removed.fold(Ok(()), std::io::Result::and)
    }

    /// True if a real device other than the processor has been measured on this machine.
    pub(crate) fn knows_others(&self) -> bool {
        let names = self.cache.as_ref().map_or_else(Vec::new, Cache::names);
        names.iter().any(|name| store::is_of_other_device(name))
    }

    /// Takes what is kept for operations of which all that would be measured is known.
    pub(crate) fn recall(&self, roster: &Roster, verify: Verify) {
        let Some(cache) = &self.cache else { return };
        let stores: Vec<Store> =
            roster.members().iter().map(|member| Store::read(cache, &*member.device)).collect();
        for operation in Operation::all() {
            for key in KeySize::ALL {
                let choice = roster.choice(operation, key);
                let found = choice.candidates.iter().map(|candidate| {
                    let of = |place, verify| {
                        let kernel = kernel_name(roster, candidate);
                        stores[candidate.member].timing(kernel, operation, key, place, verify).cloned()
                    };
                    let verify = judged(&*roster.member_of(candidate).device, verify);
                    Measured { host: of(Place::Host, verify), device: of(Place::Device, verify) }
                });
                let mut found: Vec<Measured> = found.collect();
                let mut is_complete = true;
                for index in 0..found.len() {
                    let candidate = &choice.candidates[index];
                    if roster.member_of(candidate).pair().is_some() {
                        match learns_to_share(roster, operation, key, &found, candidate) {
                            true => is_complete &= found[index].host.is_some(),
                            false => found[index] = Measured::default(),
                        }
                        continue;
                    }
                    // One kernel of a device is enough: others may have failed.
                    let same = |other: &Candidate| other.member == candidate.member;
                    let of_device = choice.candidates.iter().zip(&found).filter(|(other, _)| same(other));
                    let has_any =
                        of_device.map(|(_, measured)| measured).any(|measured| measured.host.is_some());
                    is_complete &= has_any || !is_promising(roster, operation, key, candidate);
                }
                if is_complete && found.iter().any(|measured| measured.host.is_some()) {
                    choice.set_measured(found);
                }
            }
        }
    }

    /// Measures all who can do an operation on host memory, and keeps it; nothing if somebody is measuring already, for others
    /// would disturb that.
    pub(crate) fn measure(
        &self,
        planner: &Planner,
        roster: &Roster,
        operation: Operation,
        key: KeySize,
    ) -> Option<Vec<Measured>> {
        let _turn = match self.turn.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(turn)) => turn.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let mut bench = Bench::new(&*self.clock);
        let all = self.measure_choice(&mut bench, planner, roster, operation, key, false);
        self.keep(roster, planner.verify(), &[(operation, key, &all)]);
        Some(all)
    }

    fn measure_choice(
        &self,
        bench: &mut Bench<'_>,
        planner: &Planner,
        roster: &Roster,
        operation: Operation,
        key: KeySize,
        also_on_device: bool,
    ) -> Vec<Measured> {
        let choice = roster.choice(operation, key);
        let mut samples: Vec<(Option<Samples>, Option<Samples>)> =
            vec![(None, None); choice.candidates.len()];
        // One after the other, and again: what disturbs one round spares the other.
        for round in 0..ROUNDS {
            for (samples, candidate) in samples.iter_mut().zip(&choice.candidates) {
                let member = roster.member_of(candidate);
                if member.pair().is_some()
                    || !is_promising(roster, operation, key, candidate)
                    || roster.prove(candidate, operation).is_err()
                {
                    continue;
                }
                let plan = planner.plan_of(roster, candidate);
                // A device that fails is not measured, and so not chosen.
                let failures = || roster.failures_of(candidate);
                let mut again = |before: Option<Samples>, place: Place| {
                    if round > 0 && before.is_none() {
                        return None;
                    }
                    let now = bench.samples(plan, operation, key, place, &failures).ok()?;
                    Some(match before {
                        Some(before) => before.best_of(now),
                        None => now,
                    })
                };
                samples.0 = again(samples.0.take(), Place::Host);
                if also_on_device && member.device.memory().is_some() {
                    samples.1 = again(samples.1.take(), Place::Device);
                }
            }
        }
        let timing = |samples: Option<Samples>| samples.and_then(|samples| samples.timing(operation));
        let measured =
            samples.into_iter().map(|(host, device)| Measured { host: timing(host), device: timing(device) });
        let mut all: Vec<Measured> = measured.collect();
        for index in 0..all.len() {
            let candidate = &choice.candidates[index];
            if learns_to_share(roster, operation, key, &all, candidate)
                && roster.prove(candidate, operation).is_ok()
            {
                let plan = planner.plan_of(roster, candidate);
                let failures = || roster.failures_of(candidate);
                let samples = bench.samples(plan, operation, key, Place::Host, &failures).ok();
                all[index].host = samples.and_then(|samples| samples.timing(operation));
            }
        }
        all
    }

    /// Keeps what was measured, beside what is kept already.
    fn keep(&self, roster: &Roster, verify: Verify, findings: &[(Operation, KeySize, &Vec<Measured>)]) {
        let Some(cache) = &self.cache else { return };
        for (number, member) in roster.members().iter().enumerate() {
            let mut entries = Vec::new();
            for (operation, key, all) in findings {
                let candidates = &roster.choice(*operation, *key).candidates;
                for (candidate, measured) in candidates.iter().zip(*all).filter(|(c, _)| c.member == number) {
                    let places = [(Place::Host, &measured.host), (Place::Device, &measured.device)];
                    for (place, timing) in places.into_iter().filter_map(|(p, t)| Some((p, t.clone()?))) {
                        entries.push(Entry {
                            kernel: kernel_name(roster, candidate).into(),
                            operation: *operation,
                            key: *key,
                            place,
                            verify: judged(&*member.device, verify),
                            timing,
                        });
                    }
                }
            }
            if !entries.is_empty() {
                let mut store = Store::read(cache, &*member.device);
                entries.into_iter().for_each(|entry| store.set(entry));
                // What cannot be kept is measured again.
                let _ = store.write(cache, &*member.device);
            }
        }
    }
}

impl Planner {
    /// Measures every operation by every kernel that may be chosen, in host memory and in the devices' own, and keeps it:
    /// about two seconds a processor. `report` is told before each operation how many are done, and of how many.
    ///
    /// Only a planner that has a [`Calibrator`] does; and it goes on with what was known when it began.
    pub fn calibrate(&self, report: &mut dyn FnMut(usize, usize)) -> Vec<Finding> {
        let Some(calibrator) = self.calibrator() else { return Vec::new() };
        let roster = self.all();
        let _turn = calibrator.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bench = Bench::new(&*calibrator.clock);
        let mut findings = Vec::new();
        for (done, operation) in Operation::all().enumerate() {
            report(done, Operation::COUNT);
            let mut measure = |key| calibrator.measure_choice(&mut bench, self, roster, operation, key, true);
            let (least, most) = (measure(KeySize::Aes128), measure(KeySize::Aes256));
            // 12 rounds lie between 10 and 14.
            let middle = between(roster, operation, [&least, &most]);
            let [one, two, three] = KeySize::ALL;
            let all = [(operation, one, &least), (operation, two, &middle), (operation, three, &most)];
            calibrator.keep(roster, self.verify(), &all);
            for (key, all) in KeySize::ALL.into_iter().zip([least, middle, most]) {
                for (candidate, measured) in roster.choice(operation, key).candidates.iter().zip(all) {
                    let finding = |place, timing: Option<Timing>| {
                        let device = roster.member_of(candidate).device.id();
                        let kernel = kernel_name(roster, candidate);
                        Some(Finding { device, kernel, operation, key, place, timing: timing? })
                    };
                    findings.extend(finding(Place::Host, measured.host));
                    findings.extend(finding(Place::Device, measured.device));
                }
            }
        }
        report(Operation::COUNT, Operation::COUNT);
        findings
    }
}

/// For 192 bits, by kernel, what lies between 128 and 256.
fn between(roster: &Roster, operation: Operation, ends: [&Vec<Measured>; 2]) -> Vec<Measured> {
    let of = |key: KeySize, all: &Vec<Measured>, candidate: &Candidate| {
        let candidates = &roster.choice(operation, key).candidates;
        let same = |other: &Candidate| other.member == candidate.member && other.kernel == candidate.kernel;
        let index = candidates.iter().position(same)?;
        all.get(index).cloned()
    };
    let middle = roster.choice(operation, KeySize::Aes192).candidates.iter().map(|candidate| {
        let least = of(KeySize::Aes128, ends[0], candidate).unwrap_or_default();
        let most = of(KeySize::Aes256, ends[1], candidate).unwrap_or_default();
        let mean = |a: Option<Timing>, b: Option<Timing>| a?.between(&b?);
        Measured { host: mean(least.host, most.host), device: mean(least.device, most.device) }
    });
    middle.collect()
}

/// Work that is long.
const LONG: usize = 16 << 20;

/// True if a candidate may be the best for something.
fn is_promising(roster: &Roster, operation: Operation, key: KeySize, candidate: &Candidate) -> bool {
    let stated = |candidate: &Candidate| candidate.stated.ns(Shape::from(LONG));
    let same = || {
        let all = roster.choice(operation, key).candidates.iter();
        all.filter(|other| other.member == candidate.member)
    };
    let best = same().map(stated).fold(f64::INFINITY, f64::min);
    // Several kernels often have the same code for serial passes.
    let is_alike = |other: &Candidate| (stated(other) / stated(candidate) - 1.0).abs() < ALIKE;
    let is_another = same().any(|other| other.kernel < candidate.kernel && is_alike(other));
    candidate.stated.fixed_ns() < NOT_AT_HAND_NS && stated(candidate) <= HOPELESS * best && !is_another
}

/// If the candidate is the processor with a device beside it, and to share out pays by what each alone was measured to take, it
/// is told how. True then.
fn learns_to_share(
    roster: &Roster,
    operation: Operation,
    key: KeySize,
    all: &[Measured],
    candidate: &Candidate,
) -> bool {
    let Some(pair) = roster.member_of(candidate).pair() else { return false };
    let of = |wanted: &dyn Fn(&Candidate) -> bool| {
        let those = roster.choice(operation, key).candidates.iter().zip(all).filter(|(c, _)| wanted(c));
        let timings = those.filter_map(|(c, measured)| Some((c.kernel, measured.host.as_ref()?)));
        timings.min_by(|(_, one), (_, other)| one.ns(LONG.into()).total_cmp(&other.ns(LONG.into())))
    };
    let near = of(&|other| roster.member_of(other).device.is_trusted());
    let far =
        of(&|other| other.kernel == candidate.kernel && roster.member_of(other).device.id() == pair.other);
    let (Some((near, near_timing)), Some((_, far_timing))) = (near, far) else { return false };
    let costs = worth_sharing(operation, [near_timing, far_timing]);
    let learns = costs.is_some();
    if let Some(costs) = costs {
        pair.group.learn(candidate.kernel, operation, key, near, costs);
    }
    learns
}

/// What each costs in work that both share, if that takes less than the better one alone by as much as is worth it.
fn worth_sharing(operation: Operation, timings: [&Timing; 2]) -> Option<Vec<Cost>> {
    /// Long enough for both to be at full speed.
    const HUGE: f64 = 64.0 * 1024.0 * 1024.0;
    if matches!(operation, Operation::Pass(pass) if !lockstep_core::share::can_cut(pass)) {
        return None;
    }
    let costs = timings.map(Timing::marginal);
    let speed: f64 = costs.iter().map(|cost| 1.0 / cost.ns_per_byte).sum();
    let head_start: f64 = costs.iter().map(|cost| cost.fixed_ns / cost.ns_per_byte).sum();
    let together = (HUGE + head_start) / speed;
    let alone =
        costs.iter().map(|cost| cost.fixed_ns + HUGE * cost.ns_per_byte).fold(f64::INFINITY, f64::min);
    (together < WORTH_SHARING * alone).then(|| costs.into())
}

/// The processor is not verified, so that it takes the same however others are.
fn judged(device: &dyn Device, verify: Verify) -> Verify {
    if device.is_trusted() { Verify::Off } else { verify }
}

fn kernel_name(roster: &Roster, candidate: &Candidate) -> &'static str {
    roster.member_of(candidate).device.kernels()[usize::from(candidate.kernel.0)].name
}
