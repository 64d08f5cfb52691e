//! Runs of a kernel: the preparation of the memory and of the uniforms of each QPU, the run, and its result.

mod layout;
mod memory;
mod programs;

use lockstep_core::Block;
use lockstep_core::key::RoundKeys;
use zeroize::Zeroizing;

use self::layout::{KEYS_ALIGNMENT, Layout};
use self::memory::Memory;
use crate::chip::{Chip, ChipError, ProgramRun, Simulator};
use crate::kernels::bitslice::{Blocks, Combination, UNIT};
use crate::sim::{Fault, QPUS, Run};

/// Maximum number of bytes of a run.
pub const MAX_RUN_BYTES: usize = 64 * UNIT * QPUS as usize;

/// The limit of clocks for each byte, after which a run is ended. It is much larger than the number of clocks that any correct
/// program needs.
const CLOCKS_PER_BYTE: u64 = 2000;

/// A kernel, with its program for one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launch {
    /// A bitsliced program that encrypts or decrypts blocks. The units of 32 blocks are distributed to the QPUs in turn: one
    /// unit to each QPU, then the next unit to each QPU, and so on. For [`Combination::Chain`], the units of a QPU must contain
    /// the successive blocks of 32 messages.
    Blocks(Blocks),
    /// The bitsliced program for CTR.
    Ctr,
    /// ECB by the second kernel of the [thesis](crate), as it was published.
    Packed {
        /// True for decryption, false for encryption.
        decrypts: bool,
    },
    /// ECB decryption with the second kernel of the [thesis](crate), but with an InvMixColumns that processes all bytes of an
    /// element at once.
    PackedFastDecryption,
    /// ECB by the second kernel of the [thesis](crate), tuned.
    PackedTuned {
        /// True for decryption, false for encryption.
        decrypts: bool,
    },
    /// ECB by the first kernel of the [thesis](crate).
    Naive {
        /// True for decryption, which the thesis does not contain. False for encryption.
        decrypts: bool,
    },
}

/// The input of a run. It contains keys, so it cannot be printed.
#[derive(Clone, Copy)]
pub struct Job<'j> {
    /// The round keys of encryption.
    pub keys: &'j RoundKeys,
    /// For CTR: the first counter block. Its last four bytes must not overflow during the run.
    pub counter: Block,
    /// The blocks, at most [`MAX_RUN_BYTES`]. For CTR, any number of bytes is allowed; for all other operations, whole blocks
    /// are required.
    pub input: &'j [u8],
    /// For [`Combination::Data`], the data with which the result is combined; they must be as long as the input. For
    /// [`Combination::Tweak`], the tweaks as planes of 32-bit words; [`UNIT`] bytes of tweaks are required for each [`UNIT`]
    /// bytes of the input, and for an incomplete unit at its end. For all other programs, this must be empty.
    pub other: &'j [u8],
}

impl Launch {
    /// Runs the program on QPUs of the simulator. Returns the output, which is as long as the input.
    ///
    /// # Errors
    /// A fault of the program.
    ///
    /// # Panics
    /// As [`Launch::run`].
    pub fn simulate(self, job: &Job<'_>, qpus: u8) -> Result<(Zeroizing<Vec<u8>>, Run), Fault> {
        self.run(&mut Simulator, job, qpus).map_err(|error| match error {
            ChipError::Fault(fault) => fault,
            ChipError::Board(error) => unreachable!("the simulator is no board: {error}"),
        })
    }

    /// Runs the program on QPUs of a chip, which may keep memory for the next run until [`Chip::finish`]. Returns the
    /// output, which is as long as the input.
    ///
    /// # Errors
    /// Errors of the chip.
    ///
    /// # Panics
    /// Panics if the input is longer than [`MAX_RUN_BYTES`], or does not consist of whole blocks (except for CTR). Also panics
    /// if `job.other` does not have the length that the program requires, or if `qpus` is 0 or more than [`QPUS`].
    pub fn run(
        self,
        chip: &mut dyn Chip,
        job: &Job<'_>,
        qpus: u8,
    ) -> Result<(Zeroizing<Vec<u8>>, Run), ChipError> {
        assert!(job.input.len() <= MAX_RUN_BYTES, "{} bytes in a run", job.input.len());
        assert!((1..=QPUS).contains(&qpus), "{qpus} QPUs");
        assert!(self == Launch::Ctr || job.input.len().is_multiple_of(16), "{} bytes", job.input.len());
        assert_eq!(job.other.len(), self.other_bytes(job.input.len()));
        if job.input.is_empty() {
            return Ok((Zeroizing::new(Vec::new()), Run::default()));
        }
        let bytes = memory_bytes(job.input.len(), qpus);
        let mut memory = Memory::new(chip.reserve(bytes)?, bytes);
        let Layout { program, uniforms, output } = self.layout(&mut memory, job, u32::from(qpus));
        // The first kernel stores each byte in a word.
        let stride = if matches!(self, Launch::Naive { .. }) { 4 } else { 1 };
        let start = memory.place(output);
        let output = start..start + stride * job.input.len();
        let budget = (job.input.len() + UNIT * usize::from(qpus)) as u64 * CLOCKS_PER_BYTE;
        let run = ProgramRun {
            program,
            uniforms: &uniforms,
            memory: memory.bytes(),
            output: output.clone(),
            budget,
        };
        let run = chip.run(run)?;
        let output = memory.bytes()[output].iter().step_by(stride);
        Ok((Zeroizing::new(output.copied().collect()), run))
    }

    /// Returns the required length of [`Job::other`] for an input of `input` bytes.
    fn other_bytes(self, input: usize) -> usize {
        match self {
            Launch::Blocks(Blocks { combination: Combination::Data, .. }) => input,
            Launch::Blocks(Blocks { combination: Combination::Tweak, .. }) => input.next_multiple_of(UNIT),
            _ => 0,
        }
    }

    fn layout(self, memory: &mut Memory, job: &Job<'_>, qpus: u32) -> Layout {
        match self {
            Launch::Ctr => layout::ctr(memory, job, qpus),
            Launch::Blocks(kind) => layout::blocks(memory, job, qpus, kind),
            Launch::Packed { decrypts } => {
                layout::packed(memory, job, qpus, decrypts, &programs::PACKED[usize::from(decrypts)])
            }
            Launch::PackedFastDecryption => {
                layout::packed(memory, job, qpus, true, &programs::PACKED_FAST_DECRYPTION)
            }
            Launch::PackedTuned { decrypts } => layout::packed_tuned(memory, job, qpus, decrypts),
            Launch::Naive { decrypts } => layout::naive(memory, job, qpus, decrypts),
        }
    }
}

/// Returns the number of bytes of memory for a run: for the keys, for the margins, for three copies of the data (or for four
/// times the bytes of the data, if each byte is stored in a word), and for small parts.
fn memory_bytes(input: usize, qpus: u8) -> usize {
    4 * input + 8 * UNIT * usize::from(qpus) + 4 * KEYS_ALIGNMENT
}
