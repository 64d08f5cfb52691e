//! The programs that the warps of the paper's four kernels execute: the accesses of a trace, and the instructions between them.

use lockstep_core::Error;
use lockstep_core::work::Pass;
use lockstep_cuda::AccessKind;

use super::multiprocessor::{ISSUE, LATENCY, LIMITS, Step};
use super::rules::{constant_passes, shared_passes, shared_passes_with_broadcasts};
use super::trace::trace;

/// The number of threads that encrypt an AES block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Grain {
    /// Four threads encrypt a block, with a barrier in each round.
    Fine,
    /// One thread.
    Coarse,
}

/// The memory of the T-boxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tables {
    /// Shared memory, to which each block of threads copies the T-boxes.
    Shared,
    /// Constant memory.
    Constant,
}

/// A kernel of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// The number of threads that encrypt an AES block.
    pub grain: Grain,
    /// The memory of the T-boxes.
    pub tables: Tables,
}

/// The four kernels.
pub const KERNELS: [Kernel; 4] = [
    Kernel { grain: Grain::Fine, tables: Tables::Shared },
    Kernel { grain: Grain::Coarse, tables: Tables::Shared },
    Kernel { grain: Grain::Fine, tables: Tables::Constant },
    Kernel { grain: Grain::Coarse, tables: Tables::Constant },
];

impl Kernel {
    /// The name of the kernel of Lockstep that has this design.
    pub fn name(self) -> &'static str {
        match (self.grain, self.tables) {
            (Grain::Fine, Tables::Shared) => "cuda/fine-shared",
            (Grain::Coarse, Tables::Shared) => "cuda/coarse-shared",
            (Grain::Fine, Tables::Constant) => "cuda/fine-constant",
            (Grain::Coarse, Tables::Constant) => "cuda/coarse-constant",
        }
    }

    /// The design in words.
    pub fn words(self) -> &'static str {
        match (self.grain, self.tables) {
            (Grain::Fine, Tables::Shared) => "fine, shared",
            (Grain::Coarse, Tables::Shared) => "coarse, shared",
            (Grain::Fine, Tables::Constant) => "fine, constant",
            (Grain::Coarse, Tables::Constant) => "coarse, constant",
        }
    }

    /// Bytes of the message for each thread.
    pub fn bytes_per_thread(self) -> u64 {
        match self.grain {
            Grain::Fine => 4,
            Grain::Coarse => 16,
        }
    }
}

/// The rule by which shared memory serves several threads that read the same word in one pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broadcast {
    /// One word of each pass is sent to all threads that read it, as NVIDIA's programming guide states.
    OneWord,
    /// Each bank sends one word in a pass to all threads that read it.
    EveryBank,
}

/// The assumptions about the machine and about the paper's programs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Assumptions {
    /// The instructions of fine grain for an AES block, summed over its four threads, divided by the instructions of coarse grain.
    pub fine_instructions: f64,
    /// Loads that a thread has in flight while a block copies the T-boxes to shared memory.
    pub loads_in_flight: u32,
    /// True if each block of threads copies the T-boxes.
    pub copies_tables: bool,
    /// True if fine grain has a barrier before each round.
    pub barriers: bool,
    /// Clocks of a load from global memory.
    pub global: u64,
    /// Clocks of a lookup in shared memory or in the constant cache.
    pub lookup: u64,
    /// Clocks in which the constant cache serves one word.
    pub constant_word: u64,
    /// Bytes of shared memory that the state of a thread takes: first with fine grain, then with coarse grain.
    pub state: [u32; 2],
    /// The rule by which shared memory serves threads that read the same word.
    pub broadcast: Broadcast,
}

/// The assumptions of the model.
pub const ASSUMPTIONS: Assumptions = Assumptions {
    fine_instructions: 1.0,
    loads_in_flight: 2,
    copies_tables: true,
    barriers: true,
    global: 450,
    lookup: 36,
    constant_word: 2,
    state: [8, 16],
    broadcast: Broadcast::OneWord,
};

/// Bytes of shared memory that a block takes in addition to tables and state: a header of 16 bytes, and the parameters.
const HEADER: u32 = 64;

/// Clocks of a pass of shared memory for a half-warp.
const PASS: u64 = 2;

/// The number of words of the T-boxes.
const WORDS: u32 = 1024;

/// The length of the traced message in bytes.
pub const TRACED: usize = 32 << 10;

/// Maximum number of different programs of warps. Further warps repeat them.
const WARPS: usize = 64;

/// The passes of the lookups of a kernel.
#[derive(Clone)]
pub struct Lookups {
    kernel: Kernel,
    /// The number of passes by each rule of [`Broadcast`], for each half-warp and lookup: first from a trace with half-warps of 16 threads,
    /// then from one with half-warps of 8 threads. For constant memory both rules have the same number.
    passes: [Vec<Vec<[u32; 2]>>; 2],
}

impl Lookups {
    /// Traces a kernel.
    ///
    /// # Errors
    /// The emulator's error.
    pub fn of(kernel: Kernel) -> Result<Lookups, Error> {
        let passes = |addresses: &[u64]| match kernel.tables {
            Tables::Shared => [shared_passes(addresses), shared_passes_with_broadcasts(addresses)],
            Tables::Constant => [constant_passes(addresses); 2],
        };
        let traced = |threads| -> Result<Vec<Vec<[u32; 2]>>, Error> {
            let half_warps = trace(kernel.name(), threads, Pass::Ctr, TRACED)?;
            let lookups = half_warps.iter().map(|half_warp| {
                let lookups = half_warp.iter().filter(|one| one.kind == AccessKind::Lookup);
                lookups.map(|one| passes(&one.addresses)).collect()
            });
            Ok(lookups.collect())
        };
        Ok(Lookups { kernel, passes: [traced(256)?, traced(8)?] })
    }

    /// Makes a kernel of fine grain whose lookups take as many passes as in this kernel of coarse grain. Each of four half-warps does a
    /// quarter of the lookups.
    pub fn as_fine(&self) -> Lookups {
        let passes = self.passes.each_ref().map(|half_warps| {
            let quarters = half_warps.iter().flat_map(|lookups| lookups.chunks(lookups.len() / 4));
            quarters.map(<[_]>::to_vec).collect()
        });
        Lookups { kernel: Kernel { grain: Grain::Fine, ..self.kernel }, passes }
    }

    /// Returns the mean number of passes of a lookup by half-warps of 16 or 8 threads.
    pub fn mean(&self, threads: u32, broadcast: Broadcast) -> f64 {
        let all = self.passes[usize::from(threads < 16)].iter().flatten();
        let (sum, count) =
            all.fold((0, 0), |(sum, count), passes| (sum + passes[broadcast as usize], count + 1));
        f64::from(sum) / f64::from(count)
    }

    /// The programs of the warps of a launch with this number of threads per block. `instructions` is the number of instructions of coarse
    /// grain for an AES block. They are distributed evenly between the lookups.
    pub fn programs(&self, threads: u32, instructions: u32, with: &Assumptions) -> Vec<Vec<Step>> {
        let half_warps = &self.passes[usize::from(threads < 16)];
        let halves = if threads >= 32 { 2 } else { 1 };
        let warps = half_warps.chunks_exact(halves).take(WARPS);
        warps.map(|halves| self.program(threads, halves, instructions, with)).collect()
    }

    fn program(
        &self,
        threads: u32,
        halves: &[Vec<[u32; 2]>],
        instructions: u32,
        with: &Assumptions,
    ) -> Vec<Step> {
        let Kernel { grain, tables } = self.kernel;
        let is_synchronised = grain == Grain::Fine && with.barriers;
        let mut steps = Vec::new();
        if tables == Tables::Shared && with.copies_tables {
            copy_tables(threads, with, &mut steps);
        }
        let access = Step::Access { port: ISSUE, latency: with.global };
        steps.push(access);
        if is_synchronised {
            steps.push(Step::Barrier);
        }
        let instructions = match grain {
            Grain::Coarse => instructions,
            Grain::Fine => (f64::from(instructions) / 4.0 * with.fine_instructions).round() as u32,
        };
        let lookups = halves[0].len();
        let mut done = 0;
        for lookup in 0..lookups {
            let up_to = ((lookup + 1) as u64 * u64::from(instructions) / lookups as u64) as u32;
            if up_to > done + 1 {
                steps.push(Step::Compute(up_to - done - 1));
            }
            done = up_to;
            let passes: u32 = halves.iter().map(|half| half[lookup][with.broadcast as usize]).sum();
            let pass = if tables == Tables::Shared { PASS } else { with.constant_word };
            steps.push(Step::Access { port: ISSUE.max(pass * u64::from(passes)), latency: with.lookup });
            // A round has four lookups of each thread.
            if is_synchronised && lookup % 4 == 3 && lookup + 1 < lookups {
                steps.push(Step::Barrier);
            }
        }
        steps.push(access);
        steps
    }

    /// Returns the number of blocks with this number of threads that are resident on a multiprocessor. It is 0 if a block does not fit.
    pub fn resident(&self, threads: u32, with: &Assumptions) -> u32 {
        let tables = if self.kernel.tables == Tables::Shared { 4 * WORDS } else { 0 };
        let state = with.state[usize::from(self.kernel.grain == Grain::Coarse)];
        LIMITS.resident(threads.div_ceil(32), tables + state * threads + HEADER)
    }
}

/// Adds the steps in which the threads of a block together copy the T-boxes from global memory, and the barrier after them.
fn copy_tables(threads: u32, with: &Assumptions, steps: &mut Vec<Step>) {
    let mut left = WORDS.div_ceil(threads);
    while left > 0 {
        let loads = left.min(with.loads_in_flight);
        let port = ISSUE * u64::from(loads);
        steps.push(Step::Access { port, latency: with.global });
        steps.push(Step::Access { port, latency: LATENCY });
        left -= loads;
    }
    steps.push(Step::Barrier);
}
