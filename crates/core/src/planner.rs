//! The planner: which device and kernel does a piece of work.
//!
//! It takes the cheapest by the costs that devices state. Kernels that leak timing and simulated devices are taken
//! only when asked for by name. No kernel is used for an operation before it has passed the known-answer test of
//! that operation on that very device ([`crate::selftest`]); one that fails is passed over, and
//! [`Planner::failures`] tells.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::backend::{Completion, Cost, Device, DeviceId, KernelId, kernel_by_name};
use crate::error::{Error, Result};
use crate::group::Group;
use crate::key::KeySize;
use crate::selftest;
use crate::verify::{self, Judge, Verify};
use crate::work::{Operation, Work};

/// What the user asked for; nothing asked for means `auto`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// A device's name, such as `cpu`; or several of a backend, `cuda:0,1` or `cuda:all`, among which large work is shared out.
    pub device: Option<String>,
    /// A kernel's name, such as `cpu/vaes512`.
    pub kernel: Option<String>,
}

/// Chooses devices and kernels. Shared by all work of a program; never locked but to remember an incident.
pub struct Planner {
    devices: Vec<Arc<dyn Device>>,
    /// For each operation and key size, who can do it.
    candidates: Vec<[Vec<Candidate>; 3]>,
    /// For each kernel of each device and each operation: the outcome of its self-test, once it was run.
    proofs: Vec<Vec<Vec<OnceLock<Result<()>>>>>,
    /// The kernel that was asked for, for messages.
    forced: Option<&'static str>,
    verify: Verify,
    /// Over the processor that runs this program: what others' results are compared with, and who works for them.
    trusted: Option<Box<Planner>>,
    /// The user named a device or a kernel.
    is_narrowed: bool,
    calls: AtomicUsize,
    incidents: Mutex<Vec<Error>>,
}

/// Incidents that are remembered.
const MOST_INCIDENTS: usize = 64;

struct Candidate {
    device: usize,
    kernel: KernelId,
    cost: Cost,
}

/// A choice of the planner.
#[derive(Clone, Copy)]
pub struct Plan<'p> {
    planner: &'p Planner,
    /// The device.
    pub device: &'p dyn Device,
    /// Its kernel.
    pub kernel: KernelId,
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
        match self.planner.judge(self.device) {
            Some(judge) => verify::run(self, &judge, work),
            None => self.submit_unverified(work)?.wait(),
        }
    }

    /// Remembers that the device failed, and that others did its work.
    pub(crate) fn tell(self, incident: Error) {
        let mut incidents = self.planner.incidents.lock().unwrap_or_else(PoisonError::into_inner);
        if incidents.len() < MOST_INCIDENTS {
            incidents.push(incident);
        }
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

    fn over(devices: Vec<Arc<dyn Device>>, selection: &Selection) -> Result<Planner> {
        let devices = select_devices(devices, selection)?;
        let mut forced = None;
        let mut candidates: Vec<[Vec<Candidate>; 3]> =
            (0..Operation::COUNT).map(|_| std::array::from_fn(|_| Vec::new())).collect();
        for (index, device) in devices.iter().enumerate() {
            for (number, info) in device.kernels().iter().enumerate() {
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
                        if let Some(cost) = device.cost(kernel, operation, size) {
                            candidates[operation.index()][size as usize].push(Candidate {
                                device: index,
                                kernel,
                                cost,
                            });
                        }
                    }
                }
            }
        }
        let proofs = devices
            .iter()
            .map(|device| {
                let unproved = || (0..Operation::COUNT).map(|_| OnceLock::new()).collect();
                device.kernels().iter().map(|_| unproved()).collect()
            })
            .collect();
        Ok(Planner {
            devices,
            candidates,
            proofs,
            forced,
            verify: Verify::default(),
            trusted: None,
            is_narrowed: selection.device.is_some() || selection.kernel.is_some(),
            calls: AtomicUsize::new(0),
            incidents: Mutex::default(),
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

    /// The devices it chooses among.
    pub fn devices(&self) -> &[Arc<dyn Device>] {
        &self.devices
    }

    /// True if some kernel it may use does this operation.
    pub fn supports(&self, operation: Operation, key: KeySize) -> bool {
        !self.candidates[operation.index()][key as usize].is_empty()
    }

    /// The device of this name, if it is among those chosen from.
    ///
    /// # Errors
    /// [`Error::UnknownDevice`] if it is not.
    pub fn device(&self, id: DeviceId) -> Result<&dyn Device> {
        match self.devices.iter().find(|device| device.id() == id) {
            Some(device) => Ok(&**device),
            None => Err(Error::UnknownDevice { name: id.to_string(), known: known(&self.devices) }),
        }
    }

    /// The cheapest proven kernel for so many bytes, on the device where they are, if they are on one.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if no kernel it may use does the operation; [`Error::SelfTest`] if none of those that
    /// do passed their test.
    #[inline]
    pub fn plan(
        &self,
        operation: Operation,
        key: KeySize,
        bytes: usize,
        resident: Option<DeviceId>,
    ) -> Result<Plan<'_>> {
        let all = &self.candidates[operation.index()][key as usize];
        let mut best: Option<(&Candidate, f64)> = None;
        for candidate in all {
            if resident.is_some_and(|id| self.devices[candidate.device].id() != id) {
                continue;
            }
            let ns = candidate.cost.ns(bytes);
            if best.is_none_or(|(_, least)| ns < least) && self.prove(candidate, operation).is_ok() {
                best = Some((candidate, ns));
            }
        }
        match best {
            Some((candidate, _)) => {
                Ok(Plan { planner: self, device: &*self.devices[candidate.device], kernel: candidate.kernel })
            }
            None => Err(self.no_plan(operation, all, resident)),
        }
    }

    #[cold]
    fn no_plan(&self, operation: Operation, candidates: &[Candidate], resident: Option<DeviceId>) -> Error {
        let here =
            |candidate: &&Candidate| resident.is_none_or(|id| self.devices[candidate.device].id() == id);
        let failed = candidates
            .iter()
            .filter(here)
            .find_map(|candidate| self.prove(candidate, operation).clone().err());
        match failed {
            Some(error) => error,
            None if resident.is_some_and(|id| self.device(id).is_err()) => {
                self.device(resident.expect("checked")).err().expect("checked")
            }
            None => Error::Unsupported {
                kernel: self.forced.unwrap_or("this machine"),
                operation: operation.to_string(),
            },
        }
    }

    /// Kernels that failed their self-test so far, with what they failed.
    pub fn failures(&self) -> Vec<Error> {
        let outcomes = self.proofs.iter().flatten().flatten().filter_map(OnceLock::get);
        outcomes.filter_map(|outcome| outcome.as_ref().err().cloned()).collect()
    }

    fn prove(&self, candidate: &Candidate, operation: Operation) -> &Result<()> {
        let proof = &self.proofs[candidate.device][usize::from(candidate.kernel.0)][operation.index()];
        proof.get_or_init(|| {
            let device = &*self.devices[candidate.device];
            let name = device.kernels()[usize::from(candidate.kernel.0)].name;
            for member in device.members() {
                selftest::run(&**member, kernel_by_name(&**member, name)?, operation)?;
            }
            selftest::run(device, candidate.kernel, operation)
        })
    }
}

fn known(devices: &[Arc<dyn Device>]) -> String {
    let names: Vec<_> = devices.iter().map(|device| device.id().to_string()).collect();
    if names.is_empty() { "there is none".into() } else { format!("there are {}", names.join(", ")) }
}

/// The devices that a name means: one, or several of a backend, `cuda:0,1` or `cuda:all`, each alone and all together.
fn named(devices: &[Arc<dyn Device>], name: &str) -> Result<Vec<Arc<dyn Device>>> {
    let find = |name: &str| devices.iter().find(|device| device.id().to_string() == *name).cloned();
    if let Some(device) = find(name) {
        return Ok(vec![device]);
    }
    let unknown = || Error::UnknownDevice { name: name.into(), known: known(devices) };
    let (backend, units) = name.split_once(':').ok_or_else(unknown)?;
    let mut members: Vec<Arc<dyn Device>> = if units == "all" {
        let real = |device: &&Arc<dyn Device>| device.id().backend == backend && !device.is_simulated();
        devices.iter().filter(real).cloned().collect()
    } else {
        let one = |unit: &str| find(&format!("{backend}:{unit}")).ok_or_else(unknown);
        units.split(',').map(one).collect::<Result<_>>()?
    };
    let mut seen = Vec::new();
    members.retain(|device| {
        let is_new = !seen.contains(&device.id());
        seen.push(device.id());
        is_new
    });
    match members.first() {
        None => return Err(unknown()),
        Some(first) if members.len() > 1 => {
            let group = Group::new(first.id().backend, units, members.clone());
            members.insert(0, Arc::new(group));
        }
        Some(_) => {}
    }
    Ok(members)
}

fn select_devices(mut devices: Vec<Arc<dyn Device>>, selection: &Selection) -> Result<Vec<Arc<dyn Device>>> {
    if let Some(name) = &selection.device {
        devices = named(&devices, name)?;
    }
    if let Some(name) = &selection.kernel {
        // A kernel's name begins with its backend's: `cpu/soft`.
        let backend = name.split('/').next().unwrap_or_default();
        let Some(device) = devices.iter().find(|device| device.id().backend == backend) else {
            return Err(Error::UnknownDevice { name: backend.into(), known: known(&devices) });
        };
        kernel_by_name(&**device, name)?;
        devices.retain(|device| device.id().backend == backend);
        // A kernel's name alone means the simulated device only where there is no real one.
        if selection.device.is_none() && devices.iter().any(|device| !device.is_simulated()) {
            devices.retain(|device| !device.is_simulated());
        }
    }
    if selection.device.is_none() && selection.kernel.is_none() {
        devices.retain(|device| !device.is_simulated());
    }
    Ok(devices)
}
