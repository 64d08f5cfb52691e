//! One QPU: its state, and the execution of its instructions in order.

use std::collections::VecDeque;

use zeroize::Zeroize;

use super::dma::Engine;
use super::flags::Flags;
use super::program::Step;
use super::shared::Shared;
use super::timing::CLOCKS_PER_INSTRUCTION;
use super::tmu::Results;
use super::vpm::Access;
use super::{FaultKind, Hazards};
use crate::isa::registers::FILE;
use crate::isa::{Branch, ELEMENTS, INSTRUCTION_BYTES, Instruction, Semaphore, Signal};

/// A register: the values of all elements.
pub type Vector = [u32; ELEMENTS];

/// Number of instructions after a branch that are executed before its target.
const DELAY_SLOTS: u8 = 3;

/// The state of a QPU after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    Runs,
    /// The instruction waits for another QPU, and must be executed again.
    Waits,
    Ended,
}

/// One QPU.
pub(super) struct Qpu {
    pub(super) number: u8,
    /// The general registers of files A and B.
    pub(super) files: [[Vector; FILE as usize]; 2],
    /// r0 to r5.
    pub(super) accumulators: [Vector; 6],
    pub(super) flags: Flags,
    /// The address of the next instruction.
    pub(super) address: u32,
    /// The line that was last fetched from the instruction cache.
    line: Option<u32>,
    /// The target of a branch that has been taken, and the number of instructions that are still executed before it.
    branch: Option<(u32, u8)>,
    /// The number of instructions until the end of the program. `None` until an instruction signals the end.
    ending: Option<u8>,
    /// The address of the next uniform.
    pub(super) uniforms: u32,
    /// True once the program has requested that the numbers of the texture units are not exchanged.
    pub(super) is_unswapped: bool,
    /// The results that this QPU has requested from each of its two texture units.
    pub(super) requests: [Results; 2],
    pub(super) vpm_reads: Option<Access>,
    pub(super) vpm_writes: Option<Access>,
    pub(super) loads: Engine,
    pub(super) stores: Engine,
    hazards: Hazards,
    /// The number of instructions that have been executed.
    pub(super) instructions: u64,
    /// The number of clocks since the start of the run.
    pub(super) clocks: u64,
    /// The number of clocks for which the next instruction has waited for other QPUs.
    pub(super) waited: u64,
}

impl Drop for Qpu {
    fn drop(&mut self) {
        self.files.zeroize();
        self.accumulators.zeroize();
        self.requests.iter_mut().flatten().for_each(|(words, _)| words.zeroize());
    }
}

impl Qpu {
    /// A QPU whose uniforms start at an address. All registers are zero.
    pub(super) fn new(number: u8, uniforms: u32) -> Qpu {
        Qpu {
            number,
            files: [[[0; ELEMENTS]; FILE as usize]; 2],
            accumulators: [[0; ELEMENTS]; 6],
            flags: Flags::NONE,
            address: 0,
            line: None,
            branch: None,
            ending: None,
            uniforms,
            is_unswapped: false,
            requests: [VecDeque::new(), VecDeque::new()],
            vpm_reads: None,
            vpm_writes: None,
            loads: Engine::new(),
            stores: Engine::new(),
            hazards: Hazards::new(),
            instructions: 0,
            clocks: 0,
            waited: 0,
        }
    }

    /// Sets all registers to a value.
    pub(super) fn fill(&mut self, value: u32) {
        self.files = [[[value; ELEMENTS]; FILE as usize]; 2];
        self.accumulators = [[value; ELEMENTS]; 6];
    }

    /// The content of a general register, of file B if `is_b` is true and otherwise of file A.
    pub(super) fn register(&self, is_b: bool, number: u8) -> &Vector {
        &self.files[usize::from(is_b)][usize::from(number)]
    }

    pub(super) fn accumulator(&self, number: u8) -> &Vector {
        &self.accumulators[usize::from(number)]
    }

    /// Executes the instruction at the current address.
    #[inline]
    pub(super) fn step(&mut self, step: &Step, shared: &mut Shared<'_>) -> Result<Progress, FaultKind> {
        if step.is_shared && self.must_wait(&step.instruction, shared)? {
            return Ok(Progress::Waits);
        }
        self.hazards.check_properties(&step.properties).map_err(FaultKind::Hazard)?;
        self.count_fetch(shared);
        let mut ends = false;
        let mut taken = None;
        match &step.instruction {
            Instruction::Alu(alu) => {
                self.alu(alu, shared)?;
                ends = alu.signal == Signal::End;
            }
            Instruction::LoadImmediate(load) => {
                self.write_constant(&load.to, std::array::from_fn(|index| load.element(index)), shared)?;
            }
            Instruction::Semaphore(Semaphore { to, number, decrements }) => {
                let value = u32::from(*number) | u32::from(*decrements) << 4;
                self.write_constant(to, [value; ELEMENTS], shared)?;
            }
            Instruction::Branch(branch) => taken = self.branch(branch),
        }
        self.instructions += 1;
        self.clocks += CLOCKS_PER_INSTRUCTION;
        self.advance(taken);
        Ok(self.end_after(ends))
    }

    /// Changes the semaphore, or locks the mutex, that an instruction uses. Returns true if the instruction must wait.
    fn must_wait(&self, instruction: &Instruction, shared: &mut Shared<'_>) -> Result<bool, FaultKind> {
        match instruction {
            Instruction::Semaphore(semaphore) => {
                Ok(!shared.change_semaphore(semaphore.number, semaphore.decrements))
            }
            Instruction::Alu(alu) if alu.reads_mutex() => Ok(!shared.lock(self.number)?),
            _ => Ok(false),
        }
    }

    fn count_fetch(&mut self, shared: &mut Shared<'_>) {
        let line = self.address / 64;
        if self.line != Some(line) {
            self.line = Some(line);
            shared.fetch_line(self.number, self.address);
        }
    }

    fn advance(&mut self, taken: Option<u32>) {
        self.address = match &mut self.branch {
            Some((target, 0)) => {
                let target = *target;
                self.branch = None;
                target
            }
            Some((_, slots)) => {
                *slots -= 1;
                self.address.wrapping_add(INSTRUCTION_BYTES)
            }
            None => self.address.wrapping_add(INSTRUCTION_BYTES),
        };
        if let Some(target) = taken {
            self.branch = Some((target, DELAY_SLOTS - 1));
        }
    }

    /// Counts the instructions until the end of the program, which is two instructions after the signal.
    fn end_after(&mut self, ends: bool) -> Progress {
        match &mut self.ending {
            None if ends => self.ending = Some(2),
            None => {}
            Some(1) => return Progress::Ended,
            Some(left) => *left -= 1,
        }
        Progress::Runs
    }

    /// The target of a branch, if it is taken.
    fn branch(&mut self, branch: &Branch) -> Option<u32> {
        if !self.flags.allow(branch.condition) {
            return None;
        }
        let after = self.address.wrapping_add(4 * INSTRUCTION_BYTES);
        // The value of element 15 is used (vc4asm's addendum).
        let base = branch.register.map_or(0, |number| self.files[0][usize::from(number)][ELEMENTS - 1]);
        let start = if branch.is_relative { after } else { 0 };
        for (is_b, address) in [(branch.is_swapped, branch.link_add), (!branch.is_swapped, branch.link_mul)] {
            if address < FILE {
                self.files[usize::from(is_b)][usize::from(address)] = [after; ELEMENTS];
            }
        }
        Some(start.wrapping_add(base).wrapping_add_signed(branch.offset))
    }
}
