//! The processor as a device: its kernels, their costs, and the number of threads.

mod passes;
mod serial;

use std::sync::Arc;

use lockstep_core::backend::{Backend, Completion, Cost, Device, DeviceId, Discovery, KernelId, KernelInfo};
use lockstep_core::stack;
use lockstep_core::work::{Operation, Pass, Task, Work};
use lockstep_core::{KeySize, Result};

pub use crate::host::CPU;
use crate::kernels::{self, AnyKernel, with_kernel};

/// Options of the CPU backend.
#[derive(Debug, Clone, Default)]
pub struct CpuOptions {
    /// Maximum number of threads for large work; `None` stands for the number of logical processors.
    pub threads: Option<usize>,
}

/// The backend for the processor that the program runs on.
#[derive(Debug, Clone, Default)]
pub struct CpuBackend {
    options: CpuOptions,
}

impl CpuBackend {
    /// A backend with these options.
    pub fn new(options: CpuOptions) -> Self {
        CpuBackend { options }
    }
}

impl Backend for CpuBackend {
    fn name(&self) -> &'static str {
        CPU.backend
    }

    fn discover(&self) -> Discovery {
        Discovery { devices: vec![Arc::new(Cpu::new(&self.options))], missing: None }
    }
}

/// The processor as a device.
pub struct Cpu {
    /// The kernels; a [`KernelId`] is an index.
    infos: Vec<KernelInfo>,
    /// One for each of `infos`; `None` for a kernel that the processor cannot run.
    kernels: Vec<Option<AnyKernel>>,
    threads: usize,
}

impl Cpu {
    /// Detects the kernels that the processor can run.
    pub fn new(options: &CpuOptions) -> Self {
        let available = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = options.threads.unwrap_or_else(available).max(1);
        let mut cpu = Cpu { infos: Vec::new(), kernels: Vec::new(), threads };
        for (name, row, kernel) in kernels::all() {
            let missing = kernel.is_none().then(|| format!("this processor has no {}", row.lacks));
            let description = row.description;
            cpu.infos.push(KernelInfo { name, description, constant_time: true, missing });
            cpu.kernels.push(kernel);
        }
        cpu
    }

    fn kernel(&self, id: KernelId) -> Option<AnyKernel> {
        *self.kernels.get(usize::from(id.0))?
    }
}

impl Device for Cpu {
    fn id(&self) -> DeviceId {
        CPU
    }

    fn is_trusted(&self) -> bool {
        true
    }

    fn description(&self) -> String {
        let threads = self.threads;
        format!("{}, {threads} thread{}", processor_name(), if threads == 1 { "" } else { "s" })
    }

    fn kernels(&self) -> &[KernelInfo] {
        &self.infos
    }

    fn cost(&self, kernel: KernelId, operation: Operation, key: KeySize) -> Option<Cost> {
        passes::cost(self.kernel(kernel)?.row(), operation, key)
    }

    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, mut work: Work<'w, 'd>) -> Result<Completion<'w>> {
        let Some(any) = self.kernel(kernel) else {
            let name = self.infos.get(usize::from(kernel.0)).map_or("this processor", |info| info.name);
            return Err(work.task.operation().unsupported_by(name));
        };
        // The task is passed by reference, because a copy that follows the stores of its fields has to wait for them.
        run(any, &mut work.task, self.threads).map(|()| Completion::Done)
    }
}

/// Runs a task on at most this number of threads, and wipes the stack that the kernel has used.
pub(crate) fn run(kernel: AnyKernel, task: &mut Task<'_, '_>, threads: usize) -> Result<()> {
    let outcome = with_kernel!(kernel, kernel => passes::run(kernel, task, threads));
    wipe_stack_of(kernel, task);
    outcome
}

/// Overwrites the stack that a task has used. Serial passes leave their registers and texts there, and so does `cpu/soft`. On x86-64,
/// `make prove` has shown that parallel passes and fused AEADs of kernels with AES instructions leave nothing secret, except `cpu/vaes256`
/// in CTR: at most four bytes, which may be plaintext. This holds for builds with link-time optimisation; in a development build, XTS leaves
/// a round key, so the stack is wiped after XTS too. The stack of other processors is not searched. The expansion of a key is not included,
/// since [`Key::prepared`](lockstep_core::Key::prepared) wipes the stack itself.
fn wipe_stack_of(kernel: AnyKernel, task: &Task<'_, '_>) {
    match task {
        // A step of many messages has their keys and blocks on the stack.
        Task::Pass(pass, segments) if pass.is_serial() && segments.len() > 4 => stack::wipe::<8>(),
        Task::Pass(pass, _) if pass.is_serial() => stack::wipe::<4>(),
        Task::Pass(Pass::XtsEncrypt | Pass::XtsDecrypt, _) => stack::wipe::<2>(),
        _ if cfg!(not(target_arch = "x86_64")) || matches!(kernel, AnyKernel::Soft(_)) => stack::wipe::<4>(),
        _ => {}
    }
}

/// The model name that the system reports, or the architecture.
fn processor_name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| std::env::consts::ARCH.into(), |(_, name)| name.trim().into())
}
