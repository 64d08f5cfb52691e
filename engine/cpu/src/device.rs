//! The processor as a device: its kernels, their costs, and the number of threads.

use std::sync::Arc;

use lockstep_core::backend::{
    Backend, Completion, Cost, Device, DeviceId, Discovery, KernelId, KernelInfo, Unit,
};
use lockstep_core::stack;
use lockstep_core::work::{Operation, Pass, Task, Work};
use lockstep_core::{KeySize, Result};

use crate::aws_lc::AwsLc;
use crate::inline::SingleStreamKernel;
use crate::passes::Passes;
use crate::soft::Soft;

/// The identifier of the only device of this backend.
pub const CPU: DeviceId = DeviceId { backend: "cpu", unit: Unit::Only };

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

/// The object-safe interface of a kernel.
pub(crate) trait AnyKernel: Send + Sync {
    /// The cost of an operation; `None` if the kernel does not support it.
    fn cost(&self, operation: Operation, key: KeySize) -> Option<Cost>;

    /// Runs a task on at most `threads` threads. The task is passed by reference, because a copy that follows the stores of its
    /// fields has to wait for them.
    fn run(&self, task: &mut Task<'_, '_>, threads: usize) -> Result<()>;
}

/// The processor.
pub struct Cpu {
    infos: Vec<KernelInfo>,
    kernels: Vec<Option<Box<dyn AnyKernel>>>,
    threads: usize,
}

impl Cpu {
    /// Detects the kernels that the processor can run.
    pub fn new(options: &CpuOptions) -> Self {
        let available = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = options.threads.unwrap_or_else(available).max(1);
        let mut cpu = Cpu { infos: Vec::new(), kernels: Vec::new(), threads };
        #[cfg(target_arch = "x86_64")]
        {
            use crate::x86::{AesNi, Vaes256, Vaes512};
            cpu.add::<Vaes512>("AES on 512-bit vectors (VAES, AVX-512)", "no VAES with AVX-512");
            cpu.add::<Vaes256>("AES on 256-bit vectors (VAES, AVX2)", "no VAES with AVX2");
            cpu.add::<AesNi>("AES instructions (AES-NI)", "no AES-NI");
        }
        #[cfg(target_arch = "aarch64")]
        cpu.add::<crate::armv8::Armv8>(
            "AES instructions (Armv8 cryptography extension)",
            "no AES instructions",
        );
        cpu.add::<Soft>("bitsliced, for any processor", "");
        cpu.infos.push(KernelInfo {
            name: AwsLc::NAME,
            description: "AWS-LC's fused GCM",
            constant_time: true,
            missing: None,
        });
        cpu.kernels.push(Some(Box::new(AwsLc)));
        cpu
    }

    fn add<K: SingleStreamKernel>(&mut self, description: &'static str, lacks: &str) {
        let kernel = K::detect();
        self.infos.push(KernelInfo {
            name: K::NAME,
            description,
            constant_time: true,
            missing: kernel.is_none().then(|| format!("this processor has {lacks}")),
        });
        self.kernels.push(kernel.map(|kernel| Box::new(Passes::new(kernel)) as Box<dyn AnyKernel>));
    }

    /// Maximum number of threads for one task.
    pub fn threads(&self) -> usize {
        self.threads
    }

    fn kernel(&self, id: KernelId) -> Option<&dyn AnyKernel> {
        self.kernels.get(usize::from(id.0))?.as_deref()
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
        self.kernel(kernel)?.cost(operation, key)
    }

    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, mut work: Work<'w, 'd>) -> Result<Completion<'w>> {
        let Some(runner) = self.kernel(kernel) else {
            let name = self.infos.get(usize::from(kernel.0)).map_or("this processor", |info| info.name);
            return Err(work.task.operation().unsupported_by(name));
        };
        let operation = work.task.operation();
        let outcome = runner.run(&mut work.task, self.threads);
        wipe_stack_of(operation);
        outcome.map(|()| Completion::Done)
    }
}

/// Overwrites the stack that a kernel has used: loops with many vectors leave the first and the last round key there. In the compiled
/// x86 kernels, the frames of the parallel passes have up to 576 bytes, without those of their callers, and the frames of all other
/// loops have up to 4 KiB. The expansion of a key is not included, since [`Key::prepared`](lockstep_core::Key::prepared) wipes the stack itself.
fn wipe_stack_of(operation: Operation) {
    use Pass::{CbcDecrypt, Cfb128Decrypt, Ctr, Ctr32, CtrLittle32, EcbDecrypt, EcbEncrypt};
    match operation {
        Operation::Pass(EcbEncrypt | EcbDecrypt | Ctr | Ctr32 | CtrLittle32 | CbcDecrypt | Cfb128Decrypt) => {
            stack::wipe::<2048>()
        }
        Operation::Pass(_) | Operation::Fused(_) => stack::wipe::<4096>(),
    }
}

/// The model name that the system reports, or the architecture.
fn processor_name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| std::env::consts::ARCH.into(), |(_, name)| name.trim().into())
}
