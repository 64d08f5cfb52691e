//! The instructions of 64-bit Arm that the kernels use. An instruction that is not in this table stops a run.
//!
//! Source: Arm Architecture Reference Manual for A-profile architecture (DDI 0487), chapters C6 and C7. The crate `yaxpeax-arm` decodes.
//! A test compares the table with the instructions of QEMU's emulator (docs/proof.md).

mod control;
mod integer;
mod memory;
mod operands;
mod permutations;
mod vector;

use crate::decoder::Instruction;
use crate::machine::{Machine, Step};
use crate::value::Domain;

/// Executes an instruction. [`Machine::next`] is the address of the next instruction.
///
/// # Errors
/// If the run cannot go on.
pub fn execute<D: Domain>(m: &mut Machine<D>, instruction: Option<&Instruction>) -> Step {
    let Some(i) = instruction else { return Err(m.stop("the word is not an instruction")) };
    if let Some(is_done) = control::execute(m, i)
        .or_else(|| memory::execute(m, i))
        .or_else(|| vector::execute(m, i))
        .or_else(|| permutations::execute(m, i))
        .or_else(|| integer::execute(m, i))
    {
        return is_done;
    }
    Err(m.stop(format!("the instruction `{i}` has no semantics")))
}
