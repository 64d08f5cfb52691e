//! Control flow: the items of a program that may follow each item, and the variables that are needed before and after each
//! item.

use super::ir::{Code, Item, Variable};

/// A set of variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Set(Vec<u64>);

impl Set {
    pub(super) fn new(variables: usize) -> Set {
        Set(vec![0; variables.div_ceil(64)])
    }

    pub(super) fn contains(&self, variable: Variable) -> bool {
        self.0[variable.0 as usize / 64] >> (variable.0 % 64) & 1 == 1
    }

    pub(super) fn insert(&mut self, variable: Variable) {
        self.0[variable.0 as usize / 64] |= 1 << (variable.0 % 64);
    }

    pub(super) fn remove(&mut self, variable: Variable) {
        self.0[variable.0 as usize / 64] &= !(1 << (variable.0 % 64));
    }

    /// Adds all variables of another set. Returns true if this changes the set.
    pub(super) fn extend(&mut self, other: &Set) -> bool {
        let before = self.clone();
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
        *self != before
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Variable> + '_ {
        let all = (0..self.0.len() as u32 * 64).map(Variable);
        all.filter(|variable| self.contains(*variable))
    }
}

/// For each item, the items that may follow it.
fn successors(code: &Code) -> Vec<Vec<usize>> {
    let mut places = vec![0; code.labels()];
    for (place, item) in code.items.iter().enumerate() {
        if let Item::Label(label) = item {
            places[label.0 as usize] = place;
        }
    }
    let after_calls: Vec<usize> = (code.items.iter().enumerate())
        .filter(|(_, item)| matches!(item, Item::Call { .. }))
        .map(|(place, _)| place + 1)
        .collect();
    let of = |(place, item): (usize, &Item)| match item {
        Item::Branch { condition: crate::isa::BranchCondition::Always, target } => {
            vec![places[target.0 as usize]]
        }
        Item::Branch { target, .. } => vec![place + 1, places[target.0 as usize]],
        Item::Call { target, .. } => vec![places[target.0 as usize]],
        Item::Return(_) => after_calls.clone(),
        Item::End => Vec::new(),
        Item::Op(_) | Item::Label(_) => vec![place + 1],
    };
    code.items.iter().enumerate().map(of).collect()
}

/// The variables that are needed before and after each item of a program.
pub(super) struct Live {
    pub(super) before: Vec<Set>,
    pub(super) after: Vec<Set>,
}

/// Finds the variables that are needed before and after each item of a program.
pub(super) fn live(code: &Code) -> Live {
    let successors = successors(code);
    let empty = Set::new(code.variables());
    let mut before = vec![empty.clone(); code.items.len() + 1];
    let mut after = vec![empty; code.items.len()];
    let mut has_changed = true;
    while has_changed {
        has_changed = false;
        for (place, item) in code.items.iter().enumerate().rev() {
            for successor in &successors[place] {
                let needed = before[*successor].clone();
                after[place].extend(&needed);
            }
            let mut needed = after[place].clone();
            match item {
                Item::Op(op) => {
                    if let Some(variable) = op.writes() {
                        needed.remove(variable);
                    }
                    op.reads().for_each(|variable| needed.insert(variable));
                }
                Item::Call { link, .. } => needed.remove(*link),
                Item::Return(link) => needed.insert(*link),
                _ => {}
            }
            has_changed |= before[place].extend(&needed);
        }
    }
    Live { before, after }
}
