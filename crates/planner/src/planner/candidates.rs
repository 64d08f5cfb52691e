//! The devices that are known, who of them can do what, and what they were measured to take for it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::Selection;
use crate::group::{self, Group};
use crate::selftest;
use crate::timing::{Shape, Timing};
use lockstep_core::backend::{Device, DeviceId, KernelId};
use lockstep_core::error::Result;
use lockstep_core::key::KeySize;
use lockstep_core::work::Operation;

/// A device that failed so often is not chosen again, unless it is the one that was asked for.
const MOST_FAILURES: u32 = 3;

/// Longer than anything takes.
pub(super) const LAST_RESORT_NS: f64 = 1e18;

/// Devices among which is chosen.
pub(crate) struct Roster {
    /// Those that were found or named.
    pub(super) devices: Vec<Arc<dyn Device>>,
    /// These, and each real one with the processor beside it.
    members: Vec<Arc<Member>>,
    /// For each operation and key size, who can do it, and what is known of that.
    choices: Vec<[Choice; 3]>,
    /// The kernel that was asked for, for messages.
    pub(super) forced: Option<&'static str>,
    /// Whether any device has failed.
    has_failures: AtomicBool,
    /// More than one device, so that there is something to find out.
    pub(super) has_rivals: bool,
}

/// A device, and how it has behaved.
pub(crate) struct Member {
    pub(crate) device: Arc<dyn Device>,
    /// For each kernel and operation: the outcome of its self-test, once it was run.
    proofs: Vec<Vec<OnceLock<Result<()>>>>,
    failures: AtomicU32,
    pub(super) is_trusted: bool,
    /// Nanoseconds of the work that it has in hand, about: who comes next waits for that.
    pub(super) in_hand_ns: AtomicU64,
    /// What it shares work with, if it is a pair.
    pair: Option<Pair>,
}

/// The processor with a device beside it.
pub(crate) struct Pair {
    /// The same device as the group that it is.
    pub(crate) group: Arc<Group>,
    /// The device beside the processor.
    pub(crate) other: DeviceId,
}

/// Who can do an operation with keys of a size.
#[derive(Default)]
pub(crate) struct Choice {
    pub(crate) candidates: Vec<Candidate>,
    /// What was measured, by candidate.
    pub(super) measured: OnceLock<Vec<Measured>>,
    /// Nanoseconds that this took so far, about.
    pub(super) spent: AtomicU64,
}

/// A kernel that can do an operation.
pub(crate) struct Candidate {
    pub(crate) member: usize,
    pub(crate) kernel: KernelId,
    /// What its device says that it takes.
    pub(crate) stated: Timing,
}

/// What a candidate was measured to take, for data in memory of the host and of the device; nothing where it was not.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Measured {
    pub(crate) host: Option<Timing>,
    pub(crate) device: Option<Timing>,
}

impl Member {
    fn new(device: Arc<dyn Device>, pair: Option<Pair>) -> Arc<Member> {
        let unproved = || (0..Operation::COUNT).map(|_| OnceLock::new()).collect();
        let proofs = device.kernels().iter().map(|_| unproved()).collect();
        let is_trusted = device.is_trusted();
        Arc::new(Member {
            device,
            proofs,
            failures: AtomicU32::new(0),
            is_trusted,
            in_hand_ns: AtomicU64::new(0),
            pair,
        })
    }

    pub(crate) fn pair(&self) -> Option<&Pair> {
        self.pair.as_ref()
    }

    fn prove(&self, kernel: KernelId, operation: Operation) -> &Result<()> {
        let proof = &self.proofs[usize::from(kernel.0)][operation.index()];
        proof.get_or_init(|| {
            for part in self.device.parts(kernel, operation) {
                selftest::run(&*part.device, part.kernel, operation)?;
            }
            selftest::run(&*self.device, kernel, operation)
        })
    }
}

impl Roster {
    /// Of these devices, with what the selection leaves of their kernels. What `known` has of them already stays as it is.
    pub(super) fn new(
        devices: Vec<Arc<dyn Device>>,
        selection: &Selection,
        known: Option<&Roster>,
    ) -> Roster {
        let member = |device: &Arc<dyn Device>| {
            let same = known.and_then(|known| known.member(device.id()));
            same.map_or_else(|| Member::new(Arc::clone(device), None), Arc::clone)
        };
        let mut members: Vec<Arc<Member>> = devices.iter().map(member).collect();
        let has_rivals = members.len() > 1;
        if selection.device.is_none() && selection.kernel.is_none() {
            members.extend(pairs(&devices));
        }
        let mut forced = None;
        let mut choices: Vec<[Choice; 3]> = (0..Operation::COUNT).map(|_| Default::default()).collect();
        for (index, member) in members.iter().enumerate() {
            for (number, info) in member.device.kernels().iter().enumerate() {
                let wanted = match &selection.kernel {
                    Some(name) => name == info.name,
                    None => info.constant_time,
                };
                if !wanted || info.missing.is_some() {
                    continue;
                }
                if selection.kernel.is_some() {
                    forced = Some(info.name);
                }
                let kernel = KernelId(number as u16);
                for operation in Operation::all() {
                    for size in KeySize::ALL {
                        if let Some(cost) = member.device.cost(kernel, operation, size) {
                            let candidate = Candidate { member: index, kernel, stated: cost.into() };
                            choices[operation.index()][size as usize].candidates.push(candidate);
                        }
                    }
                }
            }
        }
        Roster { devices, members, choices, forced, has_failures: AtomicBool::new(false), has_rivals }
    }

    pub(crate) fn choice(&self, operation: Operation, key: KeySize) -> &Choice {
        &self.choices[operation.index()][key as usize]
    }

    pub(crate) fn member_of(&self, candidate: &Candidate) -> &Member {
        &self.members[candidate.member]
    }

    fn member(&self, id: DeviceId) -> Option<&Arc<Member>> {
        self.members.iter().find(|member| member.device.id() == id)
    }

    pub(crate) fn members(&self) -> &[Arc<Member>] {
        &self.members
    }

    pub(super) fn has(&self, id: DeviceId) -> bool {
        self.devices.iter().any(|device| device.id() == id)
    }

    pub(crate) fn prove(&self, candidate: &Candidate, operation: Operation) -> &Result<()> {
        self.member_of(candidate).prove(candidate.kernel, operation)
    }

    /// The outcome of its self-test, if it was run.
    pub(super) fn proof(&self, candidate: &Candidate, operation: Operation) -> Option<&Result<()>> {
        self.member_of(candidate).proofs[usize::from(candidate.kernel.0)][operation.index()].get()
    }

    /// The outcomes of all self-tests that were run.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = &Result<()>> {
        self.members.iter().flat_map(|member| member.proofs.iter().flatten().filter_map(OnceLock::get))
    }

    /// The device failed to do its work, or did it wrong.
    pub(super) fn count_failure(&self, id: DeviceId) {
        if let Some(member) = self.member(id) {
            member.failures.fetch_add(1, Ordering::Relaxed);
            self.has_failures.store(true, Ordering::Relaxed);
        }
    }

    /// False as long as no device has failed: then none is given up.
    pub(super) fn has_failures(&self) -> bool {
        self.has_failures.load(Ordering::Relaxed)
    }

    /// How often the device of a candidate failed, and who is beside it in a pair.
    pub(crate) fn failures_of(&self, candidate: &Candidate) -> u32 {
        let failures = |member: &Member| member.failures.load(Ordering::Relaxed);
        let member = self.member_of(candidate);
        let other = member.pair().and_then(|pair| self.member(pair.other));
        failures(member) + other.map_or(0, |other| failures(other))
    }

    /// True if there is no sense in asking the device again.
    pub(super) fn is_given_up(&self, candidate: &Candidate) -> bool {
        let failed = |member: &Member| member.failures.load(Ordering::Relaxed) >= MOST_FAILURES;
        let member = self.member_of(candidate);
        let other = member.pair().and_then(|pair| self.member(pair.other));
        failed(member) || other.is_some_and(|other| failed(other))
    }
}

impl Choice {
    /// Nanoseconds that a candidate takes for work of a shape, where the data are. Infinite for a pair that was not measured, and
    /// for work too short to be shared out.
    pub(super) fn ns(&self, index: usize, is_pair: bool, shape: Shape, is_resident: bool) -> f64 {
        match self.measured_timing(index, is_resident) {
            Some(_) if is_pair && shape.bytes < 2 * group::LEAST_SHARE => f64::INFINITY,
            Some(timing) => timing.ns(shape),
            None if is_pair => f64::INFINITY,
            // What was measured is not comparable with what is stated: those that were not worth measuring, or failed, come last.
            None if self.has_measured(is_resident) => {
                LAST_RESORT_NS + self.candidates[index].stated.ns(shape)
            }
            None => self.candidates[index].stated.ns(shape),
        }
    }

    fn has_measured(&self, is_resident: bool) -> bool {
        let of = |measured: &Measured| {
            if is_resident { measured.device.is_some() } else { measured.host.is_some() }
        };
        self.measured.get().is_some_and(|all| all.iter().any(of))
    }

    /// What was measured, if nothing else was taken for it before.
    pub(crate) fn set_measured(&self, all: Vec<Measured>) {
        let _ = self.measured.set(all);
    }

    fn measured_timing(&self, index: usize, is_resident: bool) -> Option<&Timing> {
        let measured = self.measured.get()?.get(index)?;
        if is_resident { measured.device.as_ref() } else { measured.host.as_ref() }
    }

    pub(super) fn is_measured(&self, index: usize, is_resident: bool) -> bool {
        self.measured_timing(index, is_resident).is_some()
    }
}

/// The processor with each of the others beside it.
fn pairs(devices: &[Arc<dyn Device>]) -> Vec<Arc<Member>> {
    let Some(processor) = devices.iter().find(|device| device.is_trusted()) else { return Vec::new() };
    let others = devices.iter().filter(|device| !device.is_trusted());
    let pair = |other: &Arc<dyn Device>| {
        let group = Arc::new(Group::beside(Arc::clone(processor), Arc::clone(other)));
        Member::new(Arc::clone(&group) as Arc<dyn Device>, Some(Pair { group, other: other.id() }))
    };
    others.map(pair).collect()
}
