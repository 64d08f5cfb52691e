//! A program that has been loaded into the simulator. The simulator computes the properties of each instruction once, when it
//! loads the program.

use super::hazards::Properties;
use crate::isa::{Condition, Instruction, MulOp, Signal, registers};

/// An instruction, and its computed properties.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) instruction: Instruction,
    pub(super) properties: Properties,
    /// True if the instruction uses shared state, so that its result or its time may depend on other QPUs.
    pub(super) is_shared: bool,
    /// True if the instruction prints its input: see [`super::Observer::printed`].
    pub(super) is_print: bool,
}

/// A program for the simulator, with the properties of each instruction.
#[derive(Debug, Clone)]
pub struct Program {
    pub(super) steps: Vec<Step>,
}

impl Program {
    /// A program of these instructions, from address 0.
    pub fn new(instructions: &[Instruction]) -> Program {
        let step = |instruction: &Instruction| Step {
            instruction: *instruction,
            properties: Properties::of(instruction),
            is_shared: is_shared(instruction),
            is_print: is_print(instruction),
        };
        Program { steps: instructions.iter().map(step).collect() }
    }

    /// The instructions, each encoded as a word of 64 bits.
    pub fn words(&self) -> impl Iterator<Item = u64> {
        self.steps.iter().map(|step| step.instruction.encode())
    }
}

/// True for the instruction that prints: a `v8max` of a vector with itself, whose result is written nowhere. No compiler uses
/// this instruction for another purpose. The assembler gives the condition "never" to a result that is written nowhere, so it
/// does not generate this instruction either.
fn is_print(instruction: &Instruction) -> bool {
    match instruction {
        Instruction::Alu(alu) => {
            let [first, second] = alu.mul_inputs;
            let to = (alu.to.mul, alu.to.mul_condition);
            alu.mul == MulOp::V8max && first == second && to == (registers::NOP, Condition::Always)
        }
        _ => false,
    }
}

fn is_shared(instruction: &Instruction) -> bool {
    // The registers with addresses from `VPM` on use shared state, except the registers of the special functions.
    let is_shared_read = |address: u8| address >= registers::VPM;
    let is_shared_write = |address: u8| {
        address >= registers::VPM && !(registers::RECIPROCAL..=registers::LOGARITHM).contains(&address)
            || address == registers::HOST_INTERRUPT
    };
    match instruction {
        Instruction::Alu(alu) => {
            is_shared_read(alu.read_a)
                || alu.signal != Signal::SmallImmediate && is_shared_read(alu.read_b)
                || is_shared_write(alu.to.add)
                || is_shared_write(alu.to.mul)
        }
        Instruction::LoadImmediate(load) => is_shared_write(load.to.add) || is_shared_write(load.to.mul),
        Instruction::Semaphore(_) => true,
        Instruction::Branch(_) => false,
    }
}
