//! Implements `Device` of `lockstep-core` for a GPU and for the emulator. Both of them are a `Machine`.

use std::sync::Arc;

use lockstep_core::backend::{
    Completion, Cost, Counter, Device, DeviceId, DeviceMemory, DeviceProperties, HardwareId, KernelId,
    KernelInfo,
};
use lockstep_core::launch::number;
use lockstep_core::work::{Operation, Pass, Segment, Stream, Table, Work};
use lockstep_core::{Error, KeySize, Result};
use lockstep_gpu_host::table::run_on_host;
use lockstep_gpu_host::{Kind, Messages, Overhead, submit};

use crate::gpu::Gpu;
use crate::kernel::{FAMILIES, Family, LaunchOptions, Part, helper};
use crate::machine::{Entry, Machine};
use crate::memory::Memory;
use crate::staging::Pool;
use crate::table;
use crate::task::Task;

/// A GPU, or the emulator of one. Clones share the machine.
#[derive(Clone)]
pub struct Cuda {
    pool: Arc<Pool>,
    memory: Memory,
    infos: Vec<KernelInfo>,
    simulated: bool,
    options: LaunchOptions,
}

/// A lower bound of the time that a compilation at run time takes, for the planner.
const COMPILATION_NS: f64 = 60e9;

impl Cuda {
    /// `missing` is the reason why the kernels cannot run on the device; `None` if they can.
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
        let pool = Arc::new(Pool::new(gpu));
        Cuda { memory: Memory(Arc::clone(&pool)), pool, infos, simulated, options: LaunchOptions::default() }
    }

    fn gpu(&self) -> &Arc<Gpu> {
        self.pool.device()
    }

    /// A copy of this device with other launch options.
    pub fn launched(&self, options: LaunchOptions) -> Cuda {
        Cuda { options, ..self.clone() }
    }

    /// Executes all steps of a pass over the segments, but runs no kernel.
    ///
    /// # Errors
    /// As [`Device::submit`].
    pub fn overhead<'w, 'd: 'w>(
        &self,
        kind: Overhead,
        segments: &'w mut [Segment<'d>],
        stream: Stream,
    ) -> Result<Completion<'w>> {
        match (kind, segments.first()) {
            (Overhead::Copy, Some(first)) => {
                let (pass, size) = (Pass::EcbEncrypt, first.key.size());
                let operation = (Operation::Pass(pass), Kind::of_pass(pass));
                let task = Task::new(&self.pool, None, operation, size, self.options, stream);
                submit(task, Messages::Pass(pass, segments))
            }
            _ => Ok(Completion::Done),
        }
    }

    /// The task of an operation with keys of one size.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    fn task(&self, kernel: KernelId, operation: Operation, size: KeySize, stream: Stream) -> Result<Task> {
        let name = self.infos.get(usize::from(kernel.0)).map_or("this device", |info| info.name);
        let unsupported = || operation.unsupported_by(name);
        let family =
            self.family(kernel).filter(|family| offers(family, operation)).ok_or_else(unsupported)?;
        let kind = Kind::of(operation).ok_or_else(unsupported)?;
        if !does(self.gpu(), family, operation, size) {
            return Err(unsupported());
        }
        Ok(Task::new(&self.pool, Some(family), (operation, kind), size, self.options, stream))
    }

    fn family(&self, kernel: KernelId) -> Option<&'static Family> {
        let index = usize::from(kernel.0);
        let info = self.infos.get(index)?;
        FAMILIES.get(index).filter(|_| info.missing.is_none())
    }
}

/// True if a family offers an operation.
fn offers(family: &Family, operation: Operation) -> bool {
    match operation {
        Operation::Pass(pass) => family.does(pass),
        Operation::Fused(fused) => family.does_fused(fused),
    }
}

/// True if the machine has all entry points that a family requires for an operation.
fn does(gpu: &Gpu, family: &Family, operation: Operation, size: KeySize) -> bool {
    let kind = Kind::of(operation).filter(|_| offers(family, operation) && operation.takes_key(size));
    kind.is_some_and(|kind| !entries(gpu, family, kind, size).into_iter().any(|entry| gpu.lacks(entry)))
}

/// True if all entry points of an operation can run without a compilation.
fn is_at_hand(gpu: &Gpu, family: &Family, operation: Operation, size: KeySize) -> bool {
    let kind = Kind::of(operation);
    kind.is_some_and(|kind| entries(gpu, family, kind, size).into_iter().all(|entry| gpu.is_at_hand(entry)))
}

/// The entry points that a family may launch for work of this kind, and for its known-answer tests. The list does not contain
/// entry points of the carry-less multiply-add, because a device can do the work without these.
fn entries(gpu: &Gpu, family: &Family, kind: Kind, size: KeySize) -> Vec<Entry> {
    // Work of any kind can take its messages from a table, and results of any kind can be sampled by `GATHER`.
    let mut entries =
        vec![family.expand(size), helper::TABLE_SEGMENTS, helper::TABLE_RESULTS, helper::GATHER];
    if let Kind::Chain(chain) = kind {
        entries.extend([helper::CHAIN_KEYS, helper::CHAIN_ENCRYPT]);
        entries.extend(chain.decrypts().then_some(helper::CHAIN_DECRYPT));
    }
    if kind.hashes() {
        entries.extend([
            helper::GHASH_POWERS,
            helper::GHASH_TILES,
            helper::GHASH_EACH,
            helper::UNIFORM_TILES,
        ]);
        if gpu.limits().tensor_bits {
            entries.extend([helper::GHASH_MATRICES, helper::GHASH_TENSOR_TILES]);
        }
    }
    if let Kind::Gcm { .. } = kind {
        entries.extend([helper::GCM_MESSAGES, helper::GCM_TAGS, helper::ZERO_REFUSED]);
    }
    if let Kind::Ocb { .. } = kind {
        entries.extend([
            helper::OCB_KEYS,
            helper::OCB_BEGIN,
            helper::OCB_SUM,
            helper::OCB_TAGS,
            helper::ZERO_REFUSED,
        ]);
    }
    for tiling in family.tilings() {
        entries.push(tiling.entry(Part::needed_by(kind), size));
        if kind.tweaks() || kind.hashes() || matches!(kind, Kind::Ocb { .. }) {
            entries.push(tiling.entry(Part::EcbEncrypt, size));
        }
    }
    entries.extend(kind.looks_back().then_some(helper::EDGES));
    entries.extend(kind.tweaks().then_some(helper::SET_STATES));
    entries
}

impl Device for Cuda {
    fn with_launch(&self, launch: &[(&'static str, u32)]) -> Result<Option<Arc<dyn Device>>> {
        let options = LaunchOptions {
            threads: number(launch, "threads"),
            blocks: number(launch, "blocks"),
            blocks_per_thread: number(launch, "rounds"),
            fine_below: number(launch, "fine"),
            ..self.options
        };
        // The kernels are compiled for the maximum number of threads in the table of options, so each thread has enough registers for this
        // number.
        let most = self.gpu().limits().threads;
        if let Some(threads) = options.threads.filter(|&threads| threads > most) {
            let expected = format!("{} runs at most {most} threads in a thread block", self.id());
            return Err(Error::LaunchOption { option: format!("threads={threads}"), expected });
        }
        Ok(Some(Arc::new(self.launched(options))))
    }

    fn variants(&self) -> Vec<Arc<dyn Device>> {
        let with = |options| Arc::new(self.launched(options)) as Arc<dyn Device>;
        self.options.of_each_grain().into_iter().map(with).collect()
    }

    fn notice(&self) -> Option<String> {
        self.gpu().notice()
    }

    fn id(&self) -> DeviceId {
        self.gpu().id()
    }

    fn description(&self) -> String {
        self.gpu().description()
    }

    fn properties(&self) -> DeviceProperties {
        if self.simulated { DeviceProperties::SIMULATOR } else { DeviceProperties::default() }
    }

    fn hardware(&self) -> Option<HardwareId> {
        self.gpu().hardware()
    }

    fn kernels(&self) -> &[KernelInfo] {
        &self.infos
    }

    fn cost(&self, kernel: KernelId, operation: Operation, key: KeySize) -> Option<Cost> {
        let family = self.family(kernel)?;
        if !does(self.gpu(), family, operation, key) {
            return None;
        }
        // The costs are estimates, not measurements. They apply to data in ordinary host memory, which are copied through staging buffers.
        // For work on device memory, the planner compares only the kernels of the same device.
        if !is_at_hand(self.gpu(), family, operation, key) {
            // A compilation takes longer than the GPU can save. Therefore kernels that must be compiled first are used only if
            // the caller names the device.
            return Some(Cost::new(COMPILATION_NS, 0.1));
        }
        Some(if self.simulated {
            Cost::new(1e6, 1e-4 * family.gb_per_s)
        } else if matches!(operation, Operation::Pass(pass) if pass.is_serial()) {
            // A message occupies one lane of one thread, so the CPU is faster unless there are thousands of messages.
            // The number of messages is not known here.
            Cost::new(60_000.0, 0.002)
        } else {
            Cost::new(60_000.0, 1.0 / (1.0 / 6.0 + 1.0 / family.gb_per_s))
        })
    }

    fn memory(&self) -> Option<&dyn DeviceMemory> {
        Some(&self.memory)
    }

    fn counters(&self) -> Vec<Counter> {
        self.gpu().counters()
    }

    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
        match work.task.key_size() {
            Some(size) => submit(self.task(kernel, work.task.operation(), size, work.stream)?, work.task),
            None => Ok(Completion::Done),
        }
    }

    fn submit_table(
        &self,
        kernel: KernelId,
        stream: Stream,
        operation: Operation,
        table: &Table,
    ) -> Result<Completion<'static>> {
        let task = self.task(kernel, operation, table.key_size, stream)?;
        // The host computes the nonce blocks of OCB3, so it must read the arrays of the table.
        if let Some(Kind::Ocb { .. }) = Kind::of(operation) {
            let run = |messages: Messages<'_, '_>| submit(task, messages)?.wait();
            return run_on_host(&self.memory, operation, table, stream, run).map(|()| Completion::Done);
        }
        table::submit(&task, table)
    }
}
