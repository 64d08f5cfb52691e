//! Several devices of one backend that act as one device, such as `cuda:all` or `cuda:0,1`. Work on host memory is shared in
//! proportion to the speeds that the members state. For work on a member's own memory, the planner chooses that member, not
//! the group.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use lockstep_core::backend::{
    Completion, Cost, Device, DeviceId, DeviceProperties, KernelId, KernelInfo, Unit, kernel_by_name,
};
use lockstep_core::data::Data;
use lockstep_core::error::{Error, Result};
use lockstep_core::key::KeySize;
use lockstep_core::share;
use lockstep_core::work::{AeadMessage, Operation, Task, Work};

/// Minimum number of bytes of a share. At the 6 GB/s that a CUDA device states for host memory, a share of this size takes
/// 170 µs, which is twice the time of starting a thread and of launching a kernel.
const MIN_SHARE: usize = 1 << 20;

/// Nanoseconds to start and join a thread: see [`share::at_once`].
const THREAD_NS: f64 = 30_000.0;

/// Bytes that are added to the length of each message when work is divided into shares. A short message takes about as long
/// as 1 KiB of data, because its key has to be expanded and its tag computed.
const MESSAGE_WEIGHT: usize = 1024;

const NOT_HOST: &str = "memory that is not the host's: choose the device that it belongs to";

/// Devices that share work.
pub struct Group {
    id: DeviceId,
    members: Vec<Arc<dyn Device>>,
    kernels: Vec<KernelInfo>,
    min_share: usize,
}

impl Group {
    /// Makes a group of at least one device. Its name consists of the backend and the units, such as `all`. The group has
    /// the kernels of the first device. A kernel that another device lacks is marked as missing.
    pub fn new(backend: &'static str, units: &str, members: Vec<Arc<dyn Device>>) -> Group {
        let mut kernels: Vec<KernelInfo> =
            members.first().map_or_else(Vec::new, |first| first.kernels().to_vec());
        for info in &mut kernels {
            for member in &members {
                if let Err(error) = kernel_by_name(&**member, info.name) {
                    info.missing.get_or_insert_with(|| error.to_string());
                }
            }
        }
        let id = DeviceId { backend, unit: Unit::Named(interned(units)) };
        Group { id, members, kernels, min_share: MIN_SHARE }
    }

    /// This group with smaller shares, for tests.
    pub fn with_min_share(mut self, bytes: usize) -> Group {
        self.min_share = bytes.max(1);
        self
    }

    /// The kernel of a member that corresponds to a kernel of the group.
    fn kernel_of(&self, member: &dyn Device, kernel: KernelId) -> Option<KernelId> {
        kernel_by_name(member, self.kernels.get(usize::from(kernel.0))?.name).ok()
    }

    fn costs(&self, kernel: KernelId, operation: Operation, key: KeySize) -> Option<Vec<Cost>> {
        let cost = |member: &Arc<dyn Device>| member.cost(self.kernel_of(&**member, kernel)?, operation, key);
        self.members.iter().map(cost).collect()
    }

    /// The number of bytes of each member's share. The shares are chosen so that all members end at the same time.
    fn shares(&self, costs: &[Cost], bytes: usize) -> Vec<usize> {
        let most = (bytes / self.min_share).clamp(1, costs.len().max(1)).min(costs.len());
        let speed = |cost: &Cost| 1.0 / cost.ns_per_byte.max(f64::MIN_POSITIVE);
        let mut working: Vec<&Cost> = costs[..most].iter().collect();
        // At the time `end`, the sum of (end - fixed) * speed over the working members equals all bytes. Members whose fixed
        // time is not below `end` are left out.
        let end = loop {
            let lost: f64 = working.iter().map(|cost| cost.fixed_ns * speed(cost)).sum();
            let together: f64 = working.iter().map(|cost| speed(cost)).sum();
            let end = (bytes as f64 + lost) / together;
            let before = working.len();
            working.retain(|cost| cost.fixed_ns < end);
            if working.len() == before || working.is_empty() {
                break end;
            }
        };
        let share = |cost: &Cost| ((end - cost.fixed_ns).max(0.0) * speed(cost)).ceil() as usize;
        costs[..most].iter().map(share).collect()
    }

    /// Submits one list of work to each member at the same time, and waits for all members.
    fn run_lists<'w, 'd: 'w, T: Send>(
        &self,
        lists: Vec<&'w mut [T]>,
        kernel: KernelId,
        work: impl Fn(&'w mut [T]) -> Work<'w, 'd> + Sync,
    ) -> Result<()> {
        let mut lists: Vec<_> = self.members.iter().zip(lists).collect();
        lists.retain(|(_, list)| !list.is_empty());
        let outcomes = share::at_once(lists, |(member, list)| match self.kernel_of(&**member, kernel) {
            Some(kernel) => member.submit(kernel, work(list)).and_then(Completion::wait),
            None => Err(self.out_of_reach("a kernel that all devices have")),
        });
        outcomes.into_iter().collect()
    }

    fn out_of_reach(&self, what: &str) -> Error {
        Error::OutOfReach { device: self.id, what: what.into() }
    }
}

/// Returns a copy of the text that is never freed. Each distinct text is allocated once.
fn interned(text: &str) -> &'static str {
    static TEXTS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = texts.get(text) {
        return known;
    }
    let text: &'static str = Box::leak(text.into());
    texts.insert(text);
    text
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

    fn properties(&self) -> DeviceProperties {
        let any = |has: fn(DeviceProperties) -> bool| self.members.iter().any(|it| has(it.properties()));
        DeviceProperties {
            simulated: any(|properties| properties.simulated),
            by_name_only: any(|properties| properties.by_name_only),
            slow: any(|properties| properties.slow),
        }
    }

    fn notice(&self) -> Option<String> {
        self.members.iter().find_map(|member| member.notice())
    }

    fn is_trusted(&self) -> bool {
        !self.members.is_empty() && self.members.iter().all(|member| member.is_trusted())
    }

    fn variants(&self) -> Vec<Arc<dyn Device>> {
        let with_variants = |member: &Arc<dyn Device>| [vec![member.clone()], member.variants()].concat();
        self.members.iter().flat_map(with_variants).collect()
    }

    fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }

    fn cost(&self, kernel: KernelId, operation: Operation, key: KeySize) -> Option<Cost> {
        let costs = self.costs(kernel, operation, key)?;
        // The fixed cost of the group is the largest fixed cost of a member, plus the cost of one thread for each member.
        // The speed of the group is the sum of the members' speeds.
        let start = costs.iter().map(|cost| cost.fixed_ns).fold(0.0, f64::max);
        let speed: f64 = costs.iter().map(|cost| 1.0 / cost.ns_per_byte).sum();
        Some(Cost { fixed_ns: start + THREAD_NS * costs.len() as f64, ns_per_byte: 1.0 / speed })
    }

    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
        let (operation, stream) = (work.task.operation(), work.stream);
        let mut all = work.task;
        if all.is_empty() {
            return Ok(Completion::Done);
        }
        let costs = self.costs(kernel, operation, all.key(0).size()).ok_or_else(|| {
            let name = self.kernels.get(usize::from(kernel.0)).map_or("this group", |info| info.name);
            operation.unsupported_by(name)
        })?;
        if !(0..all.len()).all(|index| matches!(all.data(index), Data::Host(_))) {
            return Err(self.out_of_reach(NOT_HOST));
        }
        let outcome = match all.reborrow() {
            Task::Pass(pass, segments) => {
                let shares = self.shares(&costs, segments.iter().map(|segment| segment.data.len()).sum());
                share::segments(pass, segments, &shares, |lists| {
                    self.run_lists(lists, kernel, |list| Work { stream, task: Task::Pass(pass, list) })
                })
            }
            Task::Fused(fused, messages) => {
                let weight =
                    |message: &AeadMessage<'_>| message.data.len() + message.aad.len() + MESSAGE_WEIGHT;
                let shares = self.shares(&costs, messages.iter().map(weight).sum());
                let lists = share::items(messages, &shares, weight);
                self.run_lists(lists, kernel, |list| Work { stream, task: Task::Fused(fused, list) })
            }
        };
        outcome.map(|()| Completion::Done).inspect_err(|_| {
            // A partial result must not be taken for the whole result.
            all.invalidate(true);
            all.zero_host_output();
        })
    }
}
