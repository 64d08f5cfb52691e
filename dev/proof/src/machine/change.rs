//! The effect of a change of instructions: which bits of later values differ because of it.

use iced_x86::Instruction;

use super::{Kind, Machine, Program, Step};
use crate::value::{Domain, Flag};

/// Instructions that other instructions replace. Runs of a program with a change execute the instructions before the change. Bits that the
/// instructions after it would leave with another value are marked as secret, and keys and data are not. If no result, no branch and no
/// address is marked, the change has no effect on the run.
#[derive(Clone, Debug)]
pub struct Change {
    /// The instructions before the change.
    pub before: Vec<Instruction>,
    /// The instructions after the change, which have as many bytes.
    pub after: Vec<Instruction>,
}

impl Change {
    fn address(&self) -> u64 {
        self.before[0].ip()
    }

    /// True if an address is inside of the instructions.
    pub(super) fn contains(&self, address: u64) -> bool {
        let end = self.before.last().map_or(0, Instruction::next_ip);
        (self.address()..end).contains(&address)
    }
}

impl<D: Domain> Machine<D> {
    /// True if marks show the effect of a change, and not secrets.
    pub fn follows_change(&self) -> bool {
        self.program.change.is_some()
    }

    /// Executes the instructions before a change, and those after it on a copy of the state.
    pub(super) fn step_both(&mut self, program: &Program<D>, change: &Change) -> Step {
        let mut other = self.clone();
        self.execute_all(program, change, &change.before)?;
        let is_outside = self.at != change.address();
        if is_outside
            || other.execute_all(program, change, &change.after).is_err()
            || other.next != self.next
            || other.findings != self.findings
        {
            self.find(Kind::Branch, "the change leads to another instruction");
        }
        self.mark_differences(&other);
        Ok(())
    }

    /// Executes instructions of a list until one leads out of the change.
    fn execute_all(&mut self, program: &Program<D>, change: &Change, list: &[Instruction]) -> Step {
        while change.contains(self.next) {
            let Some(instruction) = list.iter().find(|instruction| instruction.ip() == self.next) else {
                return Err(self.stop("a jump into an instruction"));
            };
            self.next = instruction.next_ip();
            self.execute_one(
                instruction,
                (program.semantics)(instruction.mnemonic()),
                instruction.rflags_undefined(),
            )?;
        }
        Ok(())
    }

    /// Marks all bits that differ in another state.
    fn mark_differences(&mut self, other: &Machine<D>) {
        let Machine { domain, memory, flags, masks, general, vectors, .. } = self;
        let mut mark = |bytes: &mut [D::Byte], others: &[D::Byte]| {
            for (byte, other) in bytes.iter_mut().zip(others).filter(|(byte, other)| byte != other) {
                *byte = domain.marked(*byte, *other);
            }
        };
        mark(general.as_flattened_mut(), other.general.as_flattened());
        mark(vectors.as_flattened_mut(), other.vectors.as_flattened());
        mark(masks.as_flattened_mut(), other.masks.as_flattened());
        memory.combine(&other.memory, mark);
        let mark = |flag: &mut Flag, other: Flag| flag.secret |= *flag != other;
        mark(&mut flags.carry, other.flags.carry);
        mark(&mut flags.parity, other.flags.parity);
        mark(&mut flags.zero, other.flags.zero);
        mark(&mut flags.sign, other.flags.sign);
        mark(&mut flags.overflow, other.flags.overflow);
    }
}
