//! A machine as a device of `lockstep-core`.

use std::sync::Arc;

use lockstep_core::backend::{
    Completion, Cost, Counter, Device, DeviceId, DeviceMemory, DeviceProperties, HardwareId, KernelId,
    KernelInfo,
};
use lockstep_core::messages::Messages;
use lockstep_core::work::{Operation, Pass, Segment, Stream, Task as CoreTask, Work};
use lockstep_core::{Error, KeySize, Result};

use crate::chunk::Task;
use crate::gpu::Gpu;
use crate::kernel::{FAMILIES, Family, LaunchOptions, Part, helper};
use crate::lane::Lanes;
use crate::machine::Machine;
use crate::memory::Memory;
use crate::passes::{Kind, Plan};
use crate::{pass, passes, table};

/// A GPU, or the emulator of one. Cloning shares it.
#[derive(Clone)]
pub struct Cuda {
    gpu: Arc<Gpu>,
    memory: Memory,
    lanes: Arc<Lanes>,
    infos: Vec<KernelInfo>,
    simulated: bool,
    options: LaunchOptions,
}

/// What compiling at run time takes at least, for the planner.
const COMPILATION_NS: f64 = 60e9;

/// What is run in place of a kernel to see what calls and transfers cost by themselves. They encrypt nothing, and so
/// are no kernels: no planner can choose them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overhead {
    /// Nothing at all: the call.
    Null,
    /// Data travel to the device and back, unchanged.
    Copy,
}

impl Cuda {
    /// `missing` says why its kernels cannot run, if they cannot.
    pub(crate) fn new(
        id: DeviceId,
        machine: Box<dyn Machine>,
        simulated: bool,
        missing: Option<String>,
    ) -> Cuda {
        let gpu = Gpu::new(id, machine);
        let info = |family: &'static Family| KernelInfo {
            name: family.name,
            description: family.description,
            constant_time: family.constant_time,
            missing: missing.clone().or_else(|| {
                let idle = Operation::all().all(|operation| !does(&gpu, family, operation, KeySize::Aes128));
                idle.then(|| "it is not part of this program".into())
            }),
        };
        let infos = FAMILIES.iter().map(info).collect();
        let lanes = Arc::new(Lanes::new(&gpu));
        Cuda {
            memory: Memory { gpu: Arc::clone(&gpu), lanes: Arc::clone(&lanes) },
            lanes,
            infos,
            simulated,
            options: LaunchOptions::default(),
            gpu,
        }
    }

    /// The same device, with kernels launched in another shape.
    pub fn launched(&self, options: LaunchOptions) -> Cuda {
        Cuda { options, ..self.clone() }
    }

    /// Does to the segments what a pass by a kernel would, but for the kernel.
    ///
    /// # Errors
    /// Those of [`Device::submit`].
    pub fn overhead<'w, 'd: 'w>(
        &self,
        what: Overhead,
        segments: &'w mut [Segment<'d>],
        stream: Stream,
    ) -> Result<Completion<'w>> {
        match (what, segments.first(), passes::plan(Pass::EcbEncrypt)) {
            (Overhead::Copy, Some(first), Some(plan)) => {
                let task = Task {
                    gpu: Arc::clone(&self.gpu),
                    family: None,
                    plan,
                    size: first.key.size(),
                    options: self.options,
                };
                pass::submit(&self.lanes, task, Messages::Segments(segments), stream)
            }
            _ => Ok(Completion::Done),
        }
    }

    fn family(&self, kernel: KernelId) -> Option<&'static Family> {
        let index = usize::from(kernel.0);
        let info = self.infos.get(index)?;
        FAMILIES.get(index).filter(|_| info.missing.is_none())
    }
}

/// How a family does an operation, if it is meant to.
fn plan(family: &Family, operation: Operation) -> Option<&'static Plan> {
    match operation {
        Operation::Pass(pass) => passes::plan(pass).filter(|_| family.does(pass)),
        Operation::Fused(fused) => {
            let both = family.does(Pass::Ctr32) && family.does(Pass::Ghash);
            both.then(|| passes::fused(fused))
        }
    }
}

/// True if the machine has all that a family needs for an operation.
fn does(gpu: &Gpu, family: &Family, operation: Operation, size: KeySize) -> bool {
    let Some(plan) = plan(family, operation) else { return false };
    let mut entries = vec![family.expand(size)];
    match plan.kind {
        Kind::Tiles => {}
        Kind::Chain(chain) => {
            entries.extend([helper::CHAIN_KEYS, helper::CHAIN_ENCRYPT]);
            entries.extend(chain.decrypts().then_some(helper::CHAIN_DECRYPT));
        }
        Kind::Ghash | Kind::Gcm { .. } => {
            entries.extend([helper::GHASH_POWERS, helper::GHASH_TILES, helper::GHASH_EACH]);
        }
    }
    if let Kind::Gcm { .. } = plan.kind {
        entries.extend([helper::GCM_TAGS, helper::GCM_ZERO]);
    }
    for tiling in family.tilings() {
        entries.push(tiling.entry(plan.part, size));
        if plan.tweaks || plan.kind.hashes() {
            entries.push(tiling.entry(Part::EcbEncrypt, size));
        }
    }
    if plan.edges {
        entries.push(helper::EDGES);
    }
    if plan.tweaks {
        entries.push(helper::SET_REGISTERS);
    }
    !entries.into_iter().any(|entry| gpu.lacks(entry))
}

impl Device for Cuda {
    fn id(&self) -> DeviceId {
        self.gpu.id()
    }

    fn description(&self) -> String {
        self.gpu.description()
    }

    fn properties(&self) -> DeviceProperties {
        if self.simulated { DeviceProperties::SIMULATOR } else { DeviceProperties::default() }
    }

    fn hardware(&self) -> Option<HardwareId> {
        self.gpu.hardware()
    }

    fn kernels(&self) -> &[KernelInfo] {
        &self.infos
    }

    fn cost(&self, kernel: KernelId, operation: Operation, key: KeySize) -> Option<Cost> {
        let family = self.family(kernel)?;
        if !does(&self.gpu, family, operation, key) {
            return None;
        }
        // Estimates for data in ordinary host memory, which goes through staging buffers: work on memory of the device
        // has no other device to be compared with. Of kernels, the faster wins.
        let at_hand = self.gpu.is_at_hand(family.expand(key))
            && family.tilings().all(|tiling| self.gpu.is_at_hand(tiling.entry(Part::EcbEncrypt, key)));
        if !at_hand {
            // Kernels that must be compiled first are for who names the device: no work is made faster by waiting for that.
            return Some(Cost::new(COMPILATION_NS, 0.1));
        }
        Some(if self.simulated {
            Cost::new(1e6, 1e-4 * family.gb_per_s)
        } else if matches!(operation, Operation::Pass(pass) if pass.is_serial()) {
            // A message is one lane of one thread: the CPU is faster unless thousands come at once, which is not known here.
            Cost::new(60_000.0, 0.002)
        } else {
            Cost::new(60_000.0, 1.0 / (1.0 / 6.0 + 1.0 / family.gb_per_s))
        })
    }

    fn memory(&self) -> Option<&dyn DeviceMemory> {
        Some(&self.memory)
    }

    fn counters(&self) -> Vec<Counter> {
        self.gpu.counters()
    }

    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
        let operation = work.task.operation();
        let unsupported = || Error::Unsupported {
            kernel: self.infos.get(usize::from(kernel.0)).map_or("this device", |info| info.name),
            operation: operation.to_string(),
        };
        let family = self.family(kernel).ok_or_else(unsupported)?;
        let plan = plan(family, operation).ok_or_else(unsupported)?;
        let key = match &work.task {
            CoreTask::Pass(_, segments) => segments.first().map(|segment| segment.key.size()),
            CoreTask::Fused(_, messages) => messages.first().map(|message| message.key.size()),
            CoreTask::Table(_, table) => Some(table.key_size),
        };
        let Some(size) = key else { return Ok(Completion::Done) };
        if !does(&self.gpu, family, operation, size) {
            return Err(unsupported());
        }
        let task =
            Task { gpu: Arc::clone(&self.gpu), family: Some(family), plan, size, options: self.options };
        match work.task {
            CoreTask::Pass(_, segments) => {
                pass::submit(&self.lanes, task, Messages::Segments(segments), work.stream)
            }
            CoreTask::Fused(_, messages) => {
                pass::submit(&self.lanes, task, Messages::Aead(messages), work.stream)
            }
            CoreTask::Table(operation, table) => {
                let unit = match operation {
                    Operation::Pass(pass) => pass.unit(),
                    Operation::Fused(_) => 1,
                };
                table::submit(&self.lanes, &task, unit, &table, work.stream)
            }
        }
    }
}
