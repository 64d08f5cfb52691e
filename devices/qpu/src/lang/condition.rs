//! Conditions of single elements, and tests of all elements.

use std::ops::{BitAnd, BitOr, Not};

use super::expression::Tree;
use crate::isa::{AddOp, BranchCondition, Condition};

/// A comparison of two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    AtLeast,
}

impl Comparison {
    /// The condition for elements whose difference has set the flags.
    pub(super) fn condition(self) -> Condition {
        match self {
            Comparison::Equal => Condition::Zero,
            Comparison::NotEqual => Condition::NotZero,
            Comparison::Less => Condition::Negative,
            Comparison::AtLeast => Condition::NotNegative,
        }
    }
}

/// The condition that is true for the other elements.
pub(super) fn negated(condition: Condition) -> Condition {
    match condition {
        Condition::Never => Condition::Always,
        Condition::Always => Condition::Never,
        Condition::Zero => Condition::NotZero,
        Condition::NotZero => Condition::Zero,
        Condition::Negative => Condition::NotNegative,
        Condition::NotNegative => Condition::Negative,
        Condition::Carry => Condition::NoCarry,
        Condition::NoCarry => Condition::Carry,
    }
}

/// A value that meets a condition when it sets the flags.
pub(super) fn value_with(condition: Condition) -> u32 {
    match condition {
        Condition::NotZero => 1,
        Condition::Negative => u32::MAX,
        _ => 0,
    }
}

/// A condition that each element meets or does not meet.
#[derive(Debug, Clone)]
pub struct Boolean(pub(super) BooleanTree);

#[derive(Debug, Clone)]
pub(super) enum BooleanTree {
    /// The operation subtracts the second value from the first.
    Compare(Comparison, AddOp, Box<[Tree; 2]>),
    Not(Box<BooleanTree>),
    Or(Box<[BooleanTree; 2]>),
}

impl Boolean {
    pub(super) fn of(comparison: Comparison, subtraction: AddOp, left: Tree, right: Tree) -> Boolean {
        Boolean(BooleanTree::Compare(comparison, subtraction, Box::new([left, right])))
    }

    /// True if some element meets the condition.
    pub fn any(self) -> Test {
        Test { boolean: self, all: false }
    }

    /// True if all elements meet the condition.
    pub fn all(self) -> Test {
        Test { boolean: self, all: true }
    }
}

impl Not for Boolean {
    type Output = Boolean;

    fn not(self) -> Boolean {
        Boolean(BooleanTree::Not(Box::new(self.0)))
    }
}

impl BitOr for Boolean {
    type Output = Boolean;

    fn bitor(self, other: Boolean) -> Boolean {
        Boolean(BooleanTree::Or(Box::new([self.0, other.0])))
    }
}

impl BitAnd for Boolean {
    type Output = Boolean;

    fn bitand(self, other: Boolean) -> Boolean {
        !(!self | !other)
    }
}

/// A test of all elements, on which a branch depends.
#[derive(Debug, Clone)]
pub struct Test {
    pub(super) boolean: Boolean,
    pub(super) all: bool,
}

/// The condition of a branch that is taken if all elements, or some, meet a condition.
///
/// # Panics
/// For conditions that are not the result of a comparison.
pub(super) fn branch_condition(condition: Condition, all: bool) -> BranchCondition {
    match (condition, all) {
        (Condition::Zero, true) => BranchCondition::AllZero,
        (Condition::Zero, false) => BranchCondition::AnyZero,
        (Condition::NotZero, true) => BranchCondition::AllNotZero,
        (Condition::NotZero, false) => BranchCondition::AnyNotZero,
        (Condition::Negative, true) => BranchCondition::AllNegative,
        (Condition::Negative, false) => BranchCondition::AnyNegative,
        (Condition::NotNegative, true) => BranchCondition::AllNotNegative,
        (Condition::NotNegative, false) => BranchCondition::AnyNotNegative,
        _ => unreachable!("comparisons have conditions of Z and N"),
    }
}
