//! The kernels whose runs are measured.

use lockstep_core::Key;
use lockstep_qpu::chip::{Chip, ChipError, ProgramRun, Simulator};
use lockstep_qpu::kernels::bitslice::{self, Blocks, Combination};
use lockstep_qpu::kernels::packed_tuned;
use lockstep_qpu::launch::{Job, Launch};
use lockstep_qpu::sim::{Machine, Observer, Run};

use super::Error;
use crate::data::random_bytes;

/// A kernel with one of its modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// The name of the kernel, such as `qpu/bitslice`.
    pub kernel: &'static str,
    /// The mode, such as `CBC`.
    pub mode: &'static str,
    /// True if the mode decrypts.
    pub decrypts: bool,
    /// The program that the kernel runs for this mode.
    pub launch: Launch,
    /// Bytes that a QPU processes in an iteration of its main loop.
    pub unit: usize,
    /// Iterations of the two runs whose difference gives the clocks of an iteration.
    pub turns: [usize; 2],
}

/// Numbers of iterations of the two runs for most kernels. After ten iterations, the QPUs of a chip use the shared
/// units in a periodic order.
const TURNS: [usize; 2] = [10, 30];

/// Numbers of iterations for kernels whose iterations are long. They are smaller, because the simulator takes longer for each iteration.
const FEW_TURNS: [usize; 2] = [4, 12];

const fn of_bitslice(mode: &'static str, decrypts: bool, launch: Launch) -> Named {
    Named { kernel: "qpu/bitslice", mode, decrypts, launch, unit: bitslice::UNIT, turns: TURNS }
}

const fn of_blocks(mode: &'static str, decrypts: bool, kind: Blocks) -> Named {
    of_bitslice(mode, decrypts, Launch::Blocks(kind))
}

/// Makes an entry for a mode that decrypts by the inverse cipher, such as ECB. Other modes, such as CFB, always use the forward cipher.
const fn of_both(mode: &'static str, decrypts: bool, combination: Combination) -> Named {
    of_blocks(mode, decrypts, Blocks { decrypts, combination })
}

const fn of_packed_tuned(decrypts: bool) -> Named {
    let launch = Launch::PackedTuned { decrypts };
    let unit = packed_tuned::UNIT as usize;
    Named { kernel: "qpu/packed-tuned", mode: "ECB", decrypts, launch, unit, turns: TURNS }
}

const fn of_packed(decrypts: bool) -> Named {
    let turns = if decrypts { FEW_TURNS } else { TURNS };
    Named {
        kernel: "qpu/packed",
        mode: "ECB",
        decrypts,
        launch: Launch::Packed { decrypts },
        unit: 64,
        turns,
    }
}

const fn of_naive(decrypts: bool) -> Named {
    let launch = Launch::Naive { decrypts };
    Named { kernel: "qpu/naive", mode: "ECB", decrypts, launch, unit: 16, turns: FEW_TURNS }
}

/// All kernels with their modes. Each row of this table is a row of the tables in the report.
pub const KERNELS: &[Named] = &[
    of_bitslice("CTR", false, Launch::Ctr),
    of_both("ECB", false, Combination::None),
    of_both("ECB", true, Combination::None),
    of_both("CBC", false, Combination::Chain),
    of_both("CBC", true, Combination::Data),
    // CFB decryption encrypts the previous blocks.
    of_blocks("CFB", true, Blocks { decrypts: false, combination: Combination::Data }),
    of_both("XTS", false, Combination::Tweak),
    of_both("XTS", true, Combination::Tweak),
    of_packed_tuned(false),
    of_packed_tuned(true),
    of_packed(false),
    of_packed(true),
    Named { launch: Launch::PackedFastDecryption, ..of_packed(true) },
    of_naive(false),
    of_naive(true),
];

/// A simulated chip whose instructions are observed.
struct Observed<'o, O>(&'o mut O);

impl<O: Observer + Send> Chip for Observed<'_, O> {
    fn reserve(&mut self, bytes: usize) -> Result<u32, ChipError> {
        Simulator.reserve(bytes)
    }

    fn run(&mut self, run: ProgramRun<'_>) -> Result<Run, ChipError> {
        let mut machine = Machine::new(run.program, run.uniforms);
        machine.run_observed(run.memory, run.budget, self.0).map_err(ChipError::Fault)
    }
}

/// A simulated chip whose texture units have another latency, in clocks.
struct WithLatency(u64);

impl Chip for WithLatency {
    fn reserve(&mut self, bytes: usize) -> Result<u32, ChipError> {
        Simulator.reserve(bytes)
    }

    fn run(&mut self, run: ProgramRun<'_>) -> Result<Run, ChipError> {
        let mut machine = Machine::new(run.program, run.uniforms).with_texture_latency(self.0);
        machine.run(run.memory, run.budget).map_err(ChipError::Fault)
    }
}

/// A chip that keeps the program and executes nothing.
struct Words(Vec<u64>);

impl Chip for Words {
    fn reserve(&mut self, bytes: usize) -> Result<u32, ChipError> {
        Simulator.reserve(bytes)
    }

    fn run(&mut self, run: ProgramRun<'_>) -> Result<Run, ChipError> {
        self.0 = run.program.words().collect();
        Ok(Run::default())
    }
}

impl Named {
    /// Returns the kernel that has this launch.
    ///
    /// # Panics
    /// If [`KERNELS`] does not have it.
    pub fn of(launch: Launch) -> &'static Named {
        KERNELS.iter().find(|named| named.launch == launch).expect("the list has all launches")
    }

    /// The mode as an argument of the command, such as `cbc-decrypt`.
    pub fn argument(&self) -> String {
        let direction = if self.decrypts { "-decrypt" } else { "" };
        let fast = if self.is_fast() { "-fast" } else { "" };
        self.mode.to_lowercase() + direction + fast
    }

    /// The mode as text, such as `CBC decryption`.
    pub fn mode_text(&self) -> String {
        match (self.mode, self.decrypts) {
            ("CTR", _) => "CTR".into(),
            (mode, true) if self.is_fast() => format!("{mode} decryption, fast"),
            (mode, true) => format!("{mode} decryption"),
            (mode, false) => format!("{mode} encryption"),
        }
    }

    /// True for the fast decryption, which is not part of the thesis.
    fn is_fast(&self) -> bool {
        self.launch == Launch::PackedFastDecryption
    }

    /// Simulates a run.
    ///
    /// # Errors
    /// [`Error::KeySize`]; [`Error::Kernel`] if the kernel does not run, which is a bug.
    pub fn simulate(&self, bits: u32, qpus: u8, bytes: usize) -> Result<Run, Error> {
        self.run_on(&mut Simulator, bits, qpus, bytes)
    }

    /// Simulates a run whose instructions are observed.
    ///
    /// # Errors
    /// Those of [`Named::simulate`].
    pub fn observe(
        &self,
        bits: u32,
        qpus: u8,
        bytes: usize,
        observer: &mut (impl Observer + Send),
    ) -> Result<Run, Error> {
        self.run_on(&mut Observed(observer), bits, qpus, bytes)
    }

    /// Clocks of an iteration of each QPU with a key of 128 bits, on a chip whose texture units have another latency.
    ///
    /// # Errors
    /// Those of [`Named::simulate`].
    pub(super) fn clocks_with_latency(&self, qpus: u8, latency: u64) -> Result<f64, Error> {
        let mut chip = WithLatency(latency);
        let [short, long] = self.turns;
        let mut clocks = |turns: usize| {
            let run = self.run_on(&mut chip, 128, qpus, turns * usize::from(qpus) * self.unit)?;
            Ok::<_, Error>(run.clocks as f64)
        };
        Ok((clocks(long)? - clocks(short)?) / (long - short) as f64)
    }

    /// The words of the program.
    ///
    /// # Errors
    /// Those of [`Named::simulate`].
    pub fn words(&self, bits: u32) -> Result<Vec<u64>, Error> {
        let mut chip = Words(Vec::new());
        self.run_on(&mut chip, bits, 1, self.unit)?;
        Ok(chip.0)
    }

    /// Runs the kernel on a random key and random data, since the time depends on neither.
    fn run_on(&self, chip: &mut dyn Chip, bits: u32, qpus: u8, bytes: usize) -> Result<Run, Error> {
        let key = Key::new(&random_bytes(bits as usize / 8)).map_err(|_| Error::KeySize { bits })?;
        let input = random_bytes(bytes);
        let other = random_bytes(match self.launch {
            Launch::Blocks(Blocks { combination: Combination::Data, .. }) => bytes,
            Launch::Blocks(Blocks { combination: Combination::Tweak, .. }) => {
                bytes.next_multiple_of(bitslice::UNIT)
            }
            _ => 0,
        });
        let job = Job { keys: key.round_keys(), counter: [0; 16], input: &input, other: &other };
        let run = self.launch.run(chip, &job, qpus);
        run.map(|(_, run)| run).map_err(|error| Error::Kernel(error.to_string()))
    }
}
