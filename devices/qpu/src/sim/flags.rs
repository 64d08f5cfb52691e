//! The flags of all elements, and the conditions that depend on them.

use super::alu::Results;
use super::qpu::Vector;
use crate::isa::{BranchCondition, Condition, ELEMENTS};

/// The flags of all elements, as masks. All bits of an element of a mask are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flags {
    zero: Vector,
    negative: Vector,
    carry: Vector,
}

impl Flags {
    pub(super) const NONE: Flags =
        Flags { zero: [0; ELEMENTS], negative: [0; ELEMENTS], carry: [0; ELEMENTS] };

    /// Returns the mask of the elements that meet a condition.
    pub(super) fn have(&self, condition: Condition) -> Vector {
        let not = |mask: Vector| mask.map(|element| !element);
        match condition {
            Condition::Never => [0; ELEMENTS],
            Condition::Always => [u32::MAX; ELEMENTS],
            Condition::Zero => self.zero,
            Condition::NotZero => not(self.zero),
            Condition::Negative => self.negative,
            Condition::NotNegative => not(self.negative),
            Condition::Carry => self.carry,
            Condition::NoCarry => not(self.carry),
        }
    }

    /// Sets the flags of the elements that meet a condition.
    pub(super) fn set(&mut self, results: &Results, condition: Condition) {
        let mask = self.have(condition);
        for (index, chosen) in mask.into_iter().enumerate() {
            let value = results.values[index];
            let zero = if value == 0 { u32::MAX } else { 0 };
            let negative = ((value as i32) >> 31) as u32;
            self.zero[index] = self.zero[index] & !chosen | zero & chosen;
            self.negative[index] = self.negative[index] & !chosen | negative & chosen;
            self.carry[index] = self.carry[index] & !chosen | results.carry[index] & chosen;
        }
    }

    /// True if a branch is taken.
    pub(super) fn allow(&self, condition: BranchCondition) -> bool {
        use BranchCondition::*;
        let all = |mask: &Vector| mask.iter().fold(u32::MAX, |all, element| all & element) != 0;
        let any = |mask: &Vector| mask.iter().fold(0, |any, element| any | element) != 0;
        match condition {
            AllZero => all(&self.zero),
            AllNotZero => !any(&self.zero),
            AnyZero => any(&self.zero),
            AnyNotZero => !all(&self.zero),
            AllNegative => all(&self.negative),
            AllNotNegative => !any(&self.negative),
            AnyNegative => any(&self.negative),
            AnyNotNegative => !all(&self.negative),
            AllCarry => all(&self.carry),
            AllNoCarry => !any(&self.carry),
            AnyCarry => any(&self.carry),
            AnyNoCarry => !all(&self.carry),
            Always => true,
        }
    }
}
