//! Conditions for single elements, and tests over all elements.

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
    /// Returns the condition on the flags that the difference of the two values sets.
    pub(super) fn condition(self) -> Condition {
        match self {
            Comparison::Equal => Condition::Zero,
            Comparison::NotEqual => Condition::NotZero,
            Comparison::Less => Condition::Negative,
            Comparison::AtLeast => Condition::NotNegative,
        }
    }
}

/// Returns the condition that is true for exactly those elements for which `condition` is false.
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

/// Returns a value that meets `condition` if the flags are set from this value.
pub(super) fn value_with(condition: Condition) -> u32 {
    match condition {
        Condition::NotZero => 1,
        Condition::Negative => u32::MAX,
        _ => 0,
    }
}

/// A condition that is true or false for each element.
#[derive(Debug, Clone)]
pub struct Boolean(pub(super) BooleanTree);

#[derive(Debug, Clone)]
pub(super) enum BooleanTree {
    /// A comparison. `AddOp` subtracts the second value from the first.
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

/// A test over all elements, which decides a branch.
#[derive(Debug, Clone)]
pub struct Test {
    pub(super) boolean: Boolean,
    pub(super) all: bool,
}

/// Returns the condition of a branch that is taken if all elements meet `condition`, or, if `all` is false, if at least one
/// element does.
///
/// # Panics
/// Panics for conditions that are not the result of a comparison.
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
