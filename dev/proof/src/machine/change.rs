//! The effect of a change of instructions: the bits of later values that differ because of the change.

use iced_x86::Instruction;

use super::{Kind, Machine, Program, Step};
use crate::value::Domain;

/// A change: instructions, and the instructions that replace them. A run of a program with a change executes the old instructions. It
/// marks the bits that would have another value after the new instructions as secret; keys and data are not marked. If no result, no
/// branch and no address is marked, the change has no effect on the run.
#[derive(Clone, Debug)]
pub struct Change {
    /// The old instructions.
    pub before: Vec<Instruction>,
    /// The new instructions, which have as many bytes as the old ones.
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
    /// True if marked bits are the effect of a change. Otherwise they depend on secrets.
    pub fn follows_change(&self) -> bool {
        self.program.change.is_some()
    }

    /// Executes the old instructions of a change, and the new instructions on a copy of the state. Marks the bits that
    /// differ afterwards.
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

    /// Executes the instructions of a list until the next address is outside of the change.
    fn execute_all(&mut self, program: &Program<D>, change: &Change, list: &[Instruction]) -> Step {
        while change.contains(self.next) {
            let Some(instruction) = list.iter().find(|instruction| instruction.ip() == self.next) else {
                return Err(self.stop("a jump into an instruction"));
            };
            self.next = instruction.next_ip();
            self.execute_one(
                instruction,
                (program.semantics.x86)(instruction.mnemonic()),
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
        let mut others = other.flags;
        for (flag, other) in flags.all().into_iter().zip(others.all()) {
            flag.secret |= flag != other;
        }
        self.lowest = self.lowest.min(other.lowest);
    }
}
