//! Several devices as one: work on host memory is shared out among them, by what each says it costs. Work on a device's own
//! memory is that device's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use lockstep_core::backend::{
    Completion, Cost, Device, DeviceId, KernelId, KernelInfo, Part, Unit, kernel_by_name,
};
use lockstep_core::data::Data;
use lockstep_core::error::{Error, Result};
use lockstep_core::key::KeySize;
use lockstep_core::share;
use lockstep_core::work::{AeadMessage, FusedAead, Operation, Pass, Segment, Tag, Task, Work};

/// Among no more devices than there are pieces of so many bytes: fewer are not worth the launches.
pub(crate) const LEAST_SHARE: usize = 1 << 20;

/// Devices that work together.
pub struct Group {
    id: DeviceId,
    members: Vec<Arc<dyn Device>>,
    kernels: Vec<KernelInfo>,
    kind: Kind,
    least_share: usize,
    /// What was measured of the members, where it was: better than what they state.
    measured: RwLock<BTreeMap<(KernelId, Operation, KeySize), Learned>>,
}

/// What was measured of the members.
#[derive(Clone)]
struct Learned {
    costs: Vec<Cost>,
    /// The processor's kernel that this holds for.
    kernel: KernelId,
}

/// What its kernels are.
#[derive(PartialEq)]
enum Kind {
    /// Those that all members have, by name.
    Alike,
    /// Those of the second of two; the first, which is the processor itself, takes its cheapest.
    BesideProcessor,
}

impl Group {
    /// These devices, one at least, under a name such as `cuda:all`; kernels are those of the first one that all have.
    pub fn new(backend: &'static str, name: &str, members: Vec<Arc<dyn Device>>) -> Group {
        let mut kernels: Vec<KernelInfo> =
            members.first().map_or_else(Vec::new, |first| first.kernels().to_vec());
        for info in &mut kernels {
            for member in &members {
                if let Err(error) = kernel_by_name(&**member, info.name) {
                    info.missing.get_or_insert_with(|| error.to_string());
                }
            }
        }
        let id = DeviceId { backend, unit: Unit::Named(interned(name)) };
        Group::of(id, members, kernels, Kind::Alike)
    }

    /// A device with the processor that runs this program beside it: `cpu+cuda:0` with the kernel `cpu+cuda/bitslice`.
    pub fn beside(processor: Arc<dyn Device>, other: Arc<dyn Device>) -> Group {
        let (near, far) = (processor.id().backend, other.id());
        let kernels = other.kernels().iter().map(|info| KernelInfo {
            name: interned(&format!("{near}+{}", info.name)),
            description: "shared out between the processor and a device",
            ..info.clone()
        });
        let id = DeviceId { backend: interned(&format!("{near}+{}", far.backend)), unit: far.unit };
        let kernels = kernels.collect();
        Group::of(id, vec![processor, other], kernels, Kind::BesideProcessor)
    }

    fn of(id: DeviceId, members: Vec<Arc<dyn Device>>, kernels: Vec<KernelInfo>, kind: Kind) -> Group {
        Group { id, members, kernels, kind, least_share: LEAST_SHARE, measured: RwLock::default() }
    }

    /// The same group, whose devices take smaller shares: for tests.
    pub fn with_least_share(mut self, bytes: usize) -> Group {
        self.least_share = bytes.max(1);
        self
    }

    /// Beside the processor, who does its part by `near`: shares work out by these costs from now on, one for each member.
    pub fn learn(
        &self,
        kernel: KernelId,
        operation: Operation,
        key: KeySize,
        near: KernelId,
        costs: Vec<Cost>,
    ) {
        let mut measured = self.measured.write().unwrap_or_else(PoisonError::into_inner);
        measured.insert((kernel, operation, key), Learned { costs, kernel: near });
    }

    fn learned(&self, kernel: KernelId, operation: Operation, key: KeySize) -> Option<Learned> {
        let measured = self.measured.read().unwrap_or_else(PoisonError::into_inner);
        measured.get(&(kernel, operation, key)).cloned()
    }

    /// A member's kernel for the group's, for keys of a size if that is known.
    fn kernel_of(
        &self,
        member: usize,
        kernel: KernelId,
        operation: Operation,
        key: Option<KeySize>,
    ) -> Option<KernelId> {
        let device = &*self.members[member];
        match (&self.kind, member) {
            (Kind::Alike, _) => kernel_by_name(device, self.kernels.get(usize::from(kernel.0))?.name).ok(),
            (Kind::BesideProcessor, 0) => {
                let learned = key.and_then(|key| self.learned(kernel, operation, key));
                learned.map(|learned| learned.kernel).or_else(|| cheapest(device, operation))
            }
            (Kind::BesideProcessor, _) => {
                let info = device.kernels().get(usize::from(kernel.0))?;
                info.missing.is_none().then_some(kernel)
            }
        }
    }

    fn costs(&self, kernel: KernelId, operation: Operation, key: KeySize) -> Option<Vec<Cost>> {
        if let Some(learned) = self.learned(kernel, operation, key) {
            return Some(learned.costs);
        }
        (0..self.members.len())
            .map(|member| {
                self.members[member].cost(
                    self.kernel_of(member, kernel, operation, Some(key))?,
                    operation,
                    key,
                )
            })
            .collect()
    }

    /// How many bytes each device is to have, of so many, for all to end at one time.
    fn targets(&self, costs: &[Cost], bytes: usize) -> Vec<usize> {
        let most = (bytes / self.least_share).clamp(1, costs.len().max(1)).min(costs.len());
        let speed = |cost: &Cost| 1.0 / cost.ns_per_byte.max(f64::MIN_POSITIVE);
        let mut working: Vec<&Cost> = costs[..most].iter().collect();
        // The time t at which the sum of (t - fixed) * speed is all there is; who has not even begun by then is left out.
        let end = loop {
            let head_start: f64 = working.iter().map(|cost| cost.fixed_ns * speed(cost)).sum();
            let together: f64 = working.iter().map(|cost| speed(cost)).sum();
            let end = (bytes as f64 + head_start) / together;
            let before = working.len();
            working.retain(|cost| cost.fixed_ns < end);
            if working.len() == before || working.is_empty() {
                break end;
            }
        };
        let share = |cost: &Cost| ((end - cost.fixed_ns).max(0.0) * speed(cost)).ceil() as usize;
        costs[..most].iter().map(share).collect()
    }

    fn run_pass(
        &self,
        kernel: KernelId,
        stream: lockstep_core::work::Stream,
        pass: Pass,
        segments: &mut [Segment<'_>],
        targets: &[usize],
    ) -> Result<()> {
        let Some(size) = segments.first().map(|segment| segment.key.size()) else { return Ok(()) };
        let outcome = share::segments(pass, segments, targets, |lists| {
            self.each(lists, kernel, (Operation::Pass(pass), size), |list| Work {
                stream,
                task: Task::Pass(pass, list),
            })
        });
        outcome.inspect_err(|_| {
            if !pass.is_read_only() {
                segments.iter_mut().for_each(|segment| zero(&mut segment.data));
            }
        })
    }

    fn run_fused(
        &self,
        kernel: KernelId,
        stream: lockstep_core::work::Stream,
        fused: FusedAead,
        messages: &mut [AeadMessage<'_>],
        targets: &[usize],
    ) -> Result<()> {
        let Some(size) = messages.first().map(|message| message.key.size()) else { return Ok(()) };
        let lists = share::items(messages, targets, weight);
        let operation = Operation::Fused(fused);
        let outcome = self
            .each(lists, kernel, (operation, size), |list| Work { stream, task: Task::Fused(fused, list) });
        outcome.inspect_err(|_| {
            for message in messages.iter_mut() {
                message.status = lockstep_core::work::Status::Pending;
                zero(&mut message.data);
                if let Tag::Write(tag) = &mut message.tag {
                    tag.fill(0);
                }
            }
        })
    }

    /// Gives each list to the device whose turn it is, all at once, and waits for all.
    fn each<'w, 'd: 'w, T: Send>(
        &self,
        lists: Vec<&'w mut [T]>,
        kernel: KernelId,
        (operation, key): (Operation, KeySize),
        work: impl Fn(&'w mut [T]) -> Work<'w, 'd> + Sync,
    ) -> Result<()> {
        let mut shares: Vec<(usize, &mut [T])> = lists.into_iter().enumerate().collect();
        shares.retain(|(_, list)| !list.is_empty());
        let outcome = Mutex::new(Ok(()));
        share::at_once(shares, |(member, list)| {
            let done = match self.kernel_of(member, kernel, operation, Some(key)) {
                Some(kernel) => self.members[member].submit(kernel, work(list)).and_then(Completion::wait),
                None => Err(Error::OutOfReach { device: self.id, what: "a kernel that all have".into() }),
            };
            if let Err(error) = done {
                let mut outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner);
                if outcome.is_ok() {
                    *outcome = Err(error);
                }
            }
        });
        outcome.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The kernel of a device that states the least for long work of this kind.
fn cheapest(device: &dyn Device, operation: Operation) -> Option<KernelId> {
    const LONG: usize = 1 << 20;
    let usable =
        device.kernels().iter().enumerate().filter(|(_, info)| info.constant_time && info.missing.is_none());
    let costs = usable.filter_map(|(number, _)| {
        let kernel = KernelId(number as u16);
        Some((kernel, device.cost(kernel, operation, KeySize::Aes128)?.ns(LONG)))
    });
    costs.min_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(kernel, _)| kernel)
}

/// Nobody is to take half of a result for a whole one.
fn zero(data: &mut Data<'_>) {
    if let Data::Host(data) = data {
        data.output().fill(0);
    }
}

/// A short message costs about as much as 1 KiB does, for its key and its tag.
fn weight(message: &AeadMessage<'_>) -> usize {
    message.data.len() + message.aad.len() + 1024
}

/// Names live as long as the program, each once.
fn interned(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = Box::leak(name.into());
    names.insert(name);
    name
}

impl Device for Group {
    fn id(&self) -> DeviceId {
        self.id
    }

    fn description(&self) -> String {
        let name = |member: &Arc<dyn Device>| format!("{} ({})", member.id(), member.description());
        let names: Vec<String> = self.members.iter().map(name).collect();
        format!("{} together", names.join(", "))
    }

    fn is_simulated(&self) -> bool {
        self.members.iter().any(|member| member.is_simulated())
    }

    fn is_trusted(&self) -> bool {
        !self.members.is_empty() && self.members.iter().all(|member| member.is_trusted())
    }

    fn parts(&self, kernel: KernelId, operation: Operation) -> Vec<Part> {
        let part = |member: usize| {
            let kernel = self.kernel_of(member, kernel, operation, None)?;
            Some(Part { device: Arc::clone(&self.members[member]), kernel })
        };
        (0..self.members.len()).filter_map(part).collect()
    }

    fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }

    fn cost(&self, kernel: KernelId, operation: Operation, key: KeySize) -> Option<Cost> {
        let costs = self.costs(kernel, operation, key)?;
        // The slowest start counts, and a thread for each; from there on their speeds add up.
        let start = costs.iter().map(|cost| cost.fixed_ns).fold(0.0, f64::max);
        let speed: f64 = costs.iter().map(|cost| 1.0 / cost.ns_per_byte).sum();
        Some(Cost { fixed_ns: start + 30_000.0 * costs.len() as f64, ns_per_byte: 1.0 / speed })
    }

    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
        let operation = work.task.operation();
        let unsupported = || Error::Unsupported {
            kernel: self.kernels.get(usize::from(kernel.0)).map_or("this group", |info| info.name),
            operation: operation.to_string(),
        };
        let out_of_reach = || Error::OutOfReach {
            device: self.id,
            what: "memory that is not the host's: choose the device that it belongs to".into(),
        };
        let is_host = |data: &Data<'_>| matches!(data, Data::Host(_));
        match work.task {
            Task::Pass(pass, segments) => {
                let Some(size) = segments.first().map(|segment| segment.key.size()) else {
                    return Ok(Completion::Done);
                };
                let costs = self.costs(kernel, operation, size).ok_or_else(unsupported)?;
                if !segments.iter().all(|segment| is_host(&segment.data)) {
                    return Err(out_of_reach());
                }
                let bytes = segments.iter().map(|segment| segment.data.len()).sum();
                self.run_pass(kernel, work.stream, pass, segments, &self.targets(&costs, bytes))?;
            }
            Task::Fused(fused, messages) => {
                let Some(size) = messages.first().map(|message| message.key.size()) else {
                    return Ok(Completion::Done);
                };
                let costs = self.costs(kernel, operation, size).ok_or_else(unsupported)?;
                if !messages.iter().all(|message| is_host(&message.data)) {
                    return Err(out_of_reach());
                }
                let bytes = messages.iter().map(weight).sum();
                self.run_fused(kernel, work.stream, fused, messages, &self.targets(&costs, bytes))?;
            }
            Task::Table(..) => return Err(out_of_reach()),
        }
        Ok(Completion::Done)
    }
}
