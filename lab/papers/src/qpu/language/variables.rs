//! The variables of a function that is being inlined: their names, and whether each of them has a value at the current position.

use std::collections::{HashMap, HashSet};

use super::value::Slot;

/// Whether a variable has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Assigned {
    /// No statement before the current position assigns a value.
    No,
    /// Statements assign a value, but not on every path to the current position, or not to every element.
    InPart,
    /// Each element has a value.
    Yes,
}

struct Variable {
    slot: Slot,
    assigned: Assigned,
}

/// A variable: the number of its block among the open blocks, and its name.
type Place<'t> = (usize, &'t str);

/// The variables that a branch has given a value. They had none before the branch.
pub(super) type Branch<'t> = Vec<Place<'t>>;

/// The variables of the open blocks of a function.
pub(super) struct Variables<'t> {
    blocks: Vec<HashMap<&'t str, Variable>>,
    /// The variables whose first value was assigned after their declaration, in the order of these assignments. [`Variables::end_branch`]
    /// removes the variables of a branch from the end of this list, so the work for a branch depends on its assignments and not on the
    /// number of variables.
    given: Vec<Place<'t>>,
}

impl<'t> Variables<'t> {
    /// No variables, in one block.
    pub(super) fn new() -> Variables<'t> {
        Variables { blocks: vec![HashMap::new()], given: Vec::new() }
    }

    pub(super) fn open_block(&mut self) {
        self.blocks.push(HashMap::new());
    }

    pub(super) fn close_block(&mut self) {
        self.blocks.pop();
    }

    /// Adds a variable to the innermost block. Returns false if that block already has a variable of this name.
    pub(super) fn declare(&mut self, name: &'t str, slot: Slot, assigned: Assigned) -> bool {
        let block = self.blocks.last_mut().expect("a function has a block");
        block.insert(name, Variable { slot, assigned }).is_none()
    }

    /// Finds a variable to which a statement assigns, and marks it.
    pub(super) fn assign(&mut self, name: &str) -> Option<Slot> {
        let (number, block) =
            self.blocks.iter_mut().enumerate().rev().find(|(_, block)| block.contains_key(name))?;
        let place = (number, *block.get_key_value(name)?.0);
        let variable = block.get_mut(name)?;
        if variable.assigned != Assigned::Yes {
            variable.assigned = Assigned::Yes;
            self.given.push(place);
        }
        Some(variable.slot)
    }

    /// Finds a variable that an expression reads.
    pub(super) fn read(&self, name: &str) -> Option<(Slot, Assigned)> {
        let variable = self.blocks.iter().rev().find_map(|block| block.get(name))?;
        Some((variable.slot, variable.assigned))
    }

    /// Starts a branch: statements that may not be executed, or not for all elements. Returns the argument for
    /// [`Variables::end_branch`].
    pub(super) fn start_branch(&self) -> usize {
        self.given.len()
    }

    /// Ends a branch. A variable with an assignment in the branch then counts as assigned in part only. Returns the variables that it has
    /// given a value.
    pub(super) fn end_branch(&mut self, start: usize) -> Branch<'t> {
        let mut given = self.given.split_off(start);
        // Variables of blocks within the branch no longer exist.
        given.retain(|(block, _)| *block < self.blocks.len());
        given.iter().for_each(|place| self.set(*place, Assigned::InPart));
        given
    }

    /// Marks the variables to which both of two alternative branches have given a value.
    pub(super) fn join(&mut self, one: Branch<'t>, other: Branch<'t>) {
        let one: HashSet<Place<'t>> = one.into_iter().collect();
        let both: HashSet<Place<'t>> = other.into_iter().filter(|place| one.contains(place)).collect();
        for place in both {
            self.set(place, Assigned::Yes);
            self.given.push(place);
        }
    }

    fn set(&mut self, (block, name): Place<'t>, assigned: Assigned) {
        if let Some(variable) = self.blocks[block].get_mut(name) {
            variable.assigned = assigned;
        }
    }
}
