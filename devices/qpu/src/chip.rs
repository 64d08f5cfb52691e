//! The chips that execute programs: the simulator, or the QPUs of a board.

use std::fmt;
use std::ops::Range;

use crate::sim::{Fault, Machine, Program, Run};

/// QPUs that execute programs.
pub trait Chip: Send {
    /// Acquires the QPUs, and memory for runs that use at most `bytes` bytes. Returns the address of the memory, which is valid
    /// until the next call of this function or of [`Chip::finish`].
    ///
    /// # Errors
    /// [`ChipError::Board`] if the QPUs cannot be acquired, or if there is not enough memory.
    fn reserve(&mut self, bytes: usize) -> Result<u32, ChipError>;

    /// Executes a program in the reserved memory. After the run, the reserved memory contains no copy of `run.memory`. The
    /// registers, the VPM and the caches of a board keep their values until another program overwrites them.
    ///
    /// # Errors
    /// [`ChipError`]. After an error, the content of `memory` is undefined.
    fn run(&mut self, run: ProgramRun<'_>) -> Result<Run, ChipError>;

    /// Releases the QPUs and the memory, if the chip has kept them.
    fn finish(&mut self) {}
}

/// A program and its data. The data may be keys, so this type cannot be printed.
pub struct ProgramRun<'r> {
    /// The program, which each QPU executes.
    pub program: &'r Program,
    /// For each QPU, the address of its first uniform.
    pub uniforms: &'r [u32],
    /// The content of the reserved memory, which starts at the address that [`Chip::reserve`] returned.
    pub memory: &'r mut [u8],
    /// The range of the memory that is needed after the run. Bytes outside of this range may keep their old values.
    pub output: Range<usize>,
    /// The number of clocks after which a run fails. Only the simulator has this limit.
    pub budget: u64,
}

/// The reason why a run failed.
#[derive(Debug)]
pub enum ChipError {
    /// The program caused a fault in the simulator.
    Fault(Fault),
    /// The board rejected a request, or failed.
    Board(BoardError),
}

impl fmt::Display for ChipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChipError::Fault(fault) => fault.fmt(f),
            ChipError::Board(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ChipError {}

/// A failure of a board, and its remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardError {
    /// The request that the board rejected, or the failure.
    pub reason: String,
    /// The action by which the user can solve the problem.
    pub remedy: &'static str,
}

impl fmt::Display for BoardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.remedy)
    }
}

impl std::error::Error for BoardError {}

impl From<BoardError> for ChipError {
    fn from(error: BoardError) -> ChipError {
        ChipError::Board(error)
    }
}

/// The simulator, whose memory begins at address 0.
#[derive(Debug, Clone, Copy, Default)]
pub struct Simulator;

impl Chip for Simulator {
    fn reserve(&mut self, _: usize) -> Result<u32, ChipError> {
        Ok(0)
    }

    fn run(&mut self, run: ProgramRun<'_>) -> Result<Run, ChipError> {
        Machine::new(run.program, run.uniforms).run(run.memory, run.budget).map_err(ChipError::Fault)
    }
}
