//! Runs of a program on several QPUs.

use super::qpu::{Progress, Qpu, Vector};
use super::shared::Shared;
use super::{Fault, FaultKind};
use crate::isa::{INSTRUCTION_BYTES, Instruction};

/// The number of QPUs of the chip.
pub const QPUS: u8 = 12;

/// The totals of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Run {
    /// Clocks until the last QPU has ended.
    pub clocks: u64,
    /// Instructions of all QPUs.
    pub instructions: u64,
    /// The number of interrupts of the host.
    pub interrupts: u64,
}

/// QPUs with a program. Each QPU runs it from its first instruction, with uniforms of its own.
pub struct Machine {
    program: Vec<Instruction>,
    qpus: Vec<Qpu>,
}

impl Machine {
    /// QPUs with the addresses of their first uniforms.
    ///
    /// # Panics
    /// If there are more than [`QPUS`].
    pub fn new(program: &[Instruction], uniforms: &[u32]) -> Machine {
        assert!(uniforms.len() <= usize::from(QPUS), "the chip has {QPUS} QPUs");
        let qpus = (0..).zip(uniforms).map(|(number, uniforms)| Qpu::new(number, *uniforms));
        Machine { program: program.to_vec(), qpus: qpus.collect() }
    }

    /// Runs until all QPUs have ended. Each has executed about the same number of clocks at any time.
    ///
    /// # Errors
    /// The first [`Fault`]; [`FaultKind::Budget`] if a QPU has not ended after a number of clocks, and
    /// [`FaultKind::Deadlock`] if all that have not ended wait.
    pub fn run(&mut self, memory: &mut [u8], budget: u64) -> Result<Run, Fault> {
        let mut shared = Shared::new(memory);
        let mut running: Vec<usize> = (0..self.qpus.len()).collect();
        while !running.is_empty() {
            let mut ended = Vec::new();
            let mut is_blocked = true;
            for &number in &running {
                let qpu = &mut self.qpus[number];
                let address = qpu.address;
                let fault = |kind| Fault { qpu: number as u8, address, kind };
                if qpu.clocks >= budget {
                    return Err(fault(FaultKind::Budget(budget)));
                }
                let instruction = self.program.get((address / INSTRUCTION_BYTES) as usize);
                let instruction = instruction.filter(|_| address.is_multiple_of(INSTRUCTION_BYTES));
                let instruction = instruction.ok_or_else(|| fault(FaultKind::OutsideProgram))?;
                match qpu.step(instruction, &mut shared).map_err(fault)? {
                    Progress::Runs => is_blocked = false,
                    Progress::Waits => qpu.clocks += super::CLOCKS_PER_INSTRUCTION,
                    Progress::Ended => {
                        is_blocked = false;
                        ended.push(number);
                    }
                }
            }
            if is_blocked {
                let qpu = running[0];
                let address = self.qpus[qpu].address;
                return Err(Fault { qpu: qpu as u8, address, kind: FaultKind::Deadlock });
            }
            running.retain(|number| !ended.contains(number));
        }
        Ok(Run {
            clocks: self.qpus.iter().map(|qpu| qpu.clocks).max().unwrap_or(0),
            instructions: self.qpus.iter().map(|qpu| qpu.instructions).sum(),
            interrupts: shared.interrupts,
        })
    }

    /// A general register of a QPU, of file B if `is_b`.
    ///
    /// # Panics
    /// If there is no such QPU or register.
    pub fn register(&self, qpu: usize, is_b: bool, number: u8) -> &Vector {
        self.qpus[qpu].register(is_b, number)
    }

    /// An accumulator of a QPU.
    ///
    /// # Panics
    /// If there is no such QPU or accumulator.
    pub fn accumulator(&self, qpu: usize, number: u8) -> &Vector {
        self.qpus[qpu].accumulator(number)
    }
}
