//! A compiler that schedules operations. Where possible, it combines operations of both ALUs in one word, stores values that
//! are used soon in accumulators, and fills the delay slots of branches.
//!
//! Variables that are needed across labels and branches have a register for the whole program. Operations are reordered only
//! within a part, that is, between two labels or branches.

mod graph;
mod place;
mod registers;
mod search;

pub use search::search;

use std::fmt;

use super::CompileError;
use super::flow::{Live, Set, live};
use super::ir::{Action, Code, Item, Label, Op, Rotation, Variable};
use super::sequential::{branch, set_target};
use super::word::{END, Location, NOTHING};
use crate::isa::registers::{FILE, VPM_SETUP};
use crate::isa::{BranchCondition, Instruction};
use graph::Graph;

/// Decisions of the compiler that were found by search, in the order of the operations of a program. Where there is no hint,
/// the compiler decides by its own rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hints {
    /// The number that is added to the priority of an operation. Without hints, the priority is 16 for each word of the
    /// longest chain of dependent operations.
    pub priorities: Vec<i8>,
    /// The preferred registers for the result of an operation. 0 means accumulators, then file A. 1 means accumulators, then
    /// file B. 2 means file A. 3 means file B. For any other value, the compiler decides by its own rules.
    pub kinds: Vec<u8>,
}

impl Hints {
    /// Reads the format that [`fmt::Display`] writes: for each operation a priority and a kind, with `-` if there is no hint.
    /// Any other text also means that there is no hint.
    pub fn parse(text: &str) -> Hints {
        let pair = |word: &str| {
            let (priority, kind) = word.split_once(':').unwrap_or((word, "-"));
            (priority.parse().unwrap_or(0), kind.parse().unwrap_or(u8::MAX))
        };
        let (priorities, kinds) = text.split_whitespace().map(pair).unzip();
        Hints { priorities, kinds }
    }

    fn priority(&self, number: usize) -> i8 {
        self.priorities.get(number).copied().unwrap_or(0)
    }

    fn kind(&self, number: usize) -> Option<u8> {
        self.kinds.get(number).copied().filter(|kind| *kind < 4)
    }

    /// Returns the hints for the operations from `number` on.
    fn from(&self, number: usize) -> Hints {
        Hints {
            priorities: self.priorities.get(number..).unwrap_or_default().to_vec(),
            kinds: self.kinds.get(number..).unwrap_or_default().to_vec(),
        }
    }
}

impl fmt::Display for Hints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for number in 0..self.priorities.len().max(self.kinds.len()) {
            write!(f, "{}", self.priority(number))?;
            if let Some(kind) = self.kind(number) {
                write!(f, ":{kind}")?;
            }
            f.write_str(if number % 20 == 19 { "\n" } else { " " })?;
        }
        Ok(())
    }
}

/// The end of a part of a program.
enum Ending {
    /// The next part follows without a branch.
    Next,
    Branch(Item),
    End,
}

/// Operations without a label or a branch between them.
struct Part {
    graph: Graph,
    ending: Ending,
    /// The labels before the part.
    labels: Vec<Label>,
    /// The number of operations of the program before the part.
    start: usize,
}

impl Part {
    /// The words of the part, including the branch at its end.
    fn words(&self, hints: &Hints, homes: &Homes) -> Result<Vec<Instruction>, CompileError> {
        // The last words of the part fill the slots after the branch. The return address is therefore written before these
        // words are executed.
        let link = match &self.ending {
            Ending::Branch(Item::Call { link, .. }) => homes.locations[link.0 as usize],
            _ => None,
        };
        let (mut words, setter) = place::place(&self.graph, hints, link)?;
        end_part(&mut words, setter, &self.ending, homes);
        Ok(words)
    }
}

/// Compiles a program.
///
/// # Errors
/// [`CompileError::Registers`] if more variables are needed at once than there are registers.
pub fn compile(code: &Code, hints: &Hints) -> Result<Vec<Instruction>, CompileError> {
    let live = live(code);
    let homes = Homes::of(code, &live.after)?;
    let mut instructions = Vec::new();
    let mut places = vec![0; code.labels()];
    let mut branches = Vec::new();
    for part in parts(code, &live, &homes) {
        part.labels.iter().for_each(|label| places[label.0 as usize] = instructions.len());
        let words = part.words(&hints.from(part.start), &homes)?;
        if let Ending::Branch(Item::Branch { target, .. } | Item::Call { target, .. }) = part.ending {
            let place = words.iter().position(|word| matches!(word, Instruction::Branch(_)));
            branches.push((instructions.len() + place.unwrap_or_default(), target));
        }
        instructions.extend(words);
    }
    for (place, target) in branches {
        set_target(&mut instructions, place, places[target.0 as usize]);
    }
    Ok(instructions)
}

/// The parts of a program, in order.
fn parts(code: &Code, live: &Live, homes: &Homes) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut labels = Vec::new();
    let (mut place, mut start) = (0, 0);
    while place < code.items.len() {
        if let Item::Label(label) = code.items[place] {
            labels.push(label);
            place += 1;
            continue;
        }
        let rest = &code.items[place..];
        let op = |item: &Item| if let Item::Op(op) = item { Some(*op) } else { None };
        let ops: Vec<Op> = rest.iter().map_while(op).collect();
        let (ending, last) = match rest.get(ops.len()) {
            None | Some(Item::Label(_)) => (Ending::Next, place + ops.len() - 1),
            Some(Item::End) => (Ending::End, place + ops.len()),
            Some(item) => (Ending::Branch(*item), place + ops.len()),
        };
        let graph = Graph::of(&ops, &homes.locations, &live.before[place], &live.after[last]);
        parts.push(Part { graph, ending, labels: std::mem::take(&mut labels), start });
        place = last + 1;
        start += ops.len();
    }
    parts
}

/// Appends the end of a part to its words: a branch, whose delay slots are filled with the last words of the part, or the end
/// of the program.
fn end_part(words: &mut Vec<Instruction>, setter: Option<usize>, ending: &Ending, homes: &Homes) {
    // The first word of the next part may read any variable, and the VPM.
    if words.last().is_some_and(writes_file) {
        words.push(NOTHING);
    }
    while words.iter().rev().take(3).any(writes_setup) {
        words.push(NOTHING);
    }
    match ending {
        Ending::Next => {}
        Ending::End => words.extend(END),
        Ending::Branch(item) => {
            let word = match item {
                Item::Branch { condition, .. } => branch(*condition, None, None),
                Item::Call { link, .. } => branch(BranchCondition::Always, homes.file_a(*link), None),
                Item::Return(link) => branch(BranchCondition::Always, None, homes.file_a(*link)),
                _ => return,
            };
            let needs_flags =
                matches!(item, Item::Branch { condition, .. } if *condition != BranchCondition::Always);
            let earliest = if needs_flags { setter.map_or(0, |setter| setter + 1) } else { 0 };
            while words.len() < earliest + 3 {
                words.push(NOTHING);
            }
            words.insert(words.len() - 3, word);
        }
    }
}

/// The registers that the ALUs write.
fn outputs(instruction: &Instruction) -> [u8; 2] {
    match instruction {
        Instruction::Alu(alu) => [alu.to.add, alu.to.mul],
        Instruction::LoadImmediate(load) => [load.to.add, load.to.mul],
        Instruction::Semaphore(semaphore) => [semaphore.to.add, semaphore.to.mul],
        Instruction::Branch(branch) => [branch.link_add, branch.link_mul],
    }
}

/// True if an instruction writes a general register.
fn writes_file(instruction: &Instruction) -> bool {
    outputs(instruction).iter().any(|register| *register < FILE)
}

/// True if an instruction writes a setup of the VPM or of DMA.
fn writes_setup(instruction: &Instruction) -> bool {
    outputs(instruction).contains(&VPM_SETUP)
}

/// The registers of variables that are needed across labels and branches.
struct Homes {
    locations: Vec<Option<Location>>,
}

impl Homes {
    fn file_a(&self, variable: Variable) -> Option<u8> {
        match self.locations[variable.0 as usize] {
            Some(Location::A(number)) => Some(number),
            _ => None,
        }
    }

    fn of(code: &Code, live: &[Set]) -> Result<Homes, CompileError> {
        let mut crossing = Set::new(code.variables());
        for (place, item) in code.items.iter().enumerate() {
            let is_border =
                !matches!(item, Item::Op(_)) || matches!(code.items.get(place + 1), Some(Item::Label(_)));
            if is_border {
                crossing.extend(&live[place]);
            }
        }
        let mut must_be_a = Set::new(code.variables());
        let mut pairs = Vec::new();
        for item in &code.items {
            match item {
                Item::Call { link, .. } | Item::Return(link) => {
                    must_be_a.insert(*link);
                    crossing.insert(*link);
                }
                Item::Op(op) => {
                    let mut variables = op.used_inputs().iter().filter_map(|input| match input {
                        super::ir::Input::Variable(variable) => Some(*variable),
                        _ => None,
                    });
                    let (one, other) = (variables.next(), variables.next());
                    if let Some(one) = one
                        && (op.unpack != 0 || matches!(op.rotation, Some(Rotation::Quad(_))))
                    {
                        must_be_a.insert(one);
                    }
                    if op.pack != 0 {
                        op.writes().into_iter().for_each(|variable| must_be_a.insert(variable));
                    }
                    pairs.extend(one.zip(other));
                    // A small immediate is encoded in the field for the read of file B.
                    let has_small = op.used_inputs().iter().any(|i| matches!(i, super::ir::Input::Small(_)));
                    if has_small && !matches!(op.action, Action::Move) {
                        pairs.extend(one.map(|one| (one, one)));
                    }
                }
                _ => {}
            }
        }
        Homes::choose(code, &crossing, &must_be_a, &pairs)
    }

    /// Assigns a separate register to each variable. Its file is the one that contains fewer of the variables that are read
    /// together with it.
    fn choose(
        code: &Code,
        crossing: &Set,
        must_be_a: &Set,
        pairs: &[(Variable, Variable)],
    ) -> Result<Homes, CompileError> {
        let mut homes = Homes { locations: vec![None; code.variables()] };
        let (mut next_a, mut next_b) = (0, 0);
        for variable in crossing.iter() {
            let (mut in_a, mut in_b) = (0, 0);
            for (one, other) in pairs.iter().filter(|(one, other)| *one == variable || *other == variable) {
                let partner = if *one == variable { other } else { one };
                match homes.locations[partner.0 as usize] {
                    // The second input is a small immediate, which also uses the read of file B.
                    None if *partner == variable => in_b += 1,
                    Some(Location::A(_)) => in_a += 1,
                    Some(Location::B(_)) => in_b += 1,
                    _ => {}
                }
            }
            // Both files must keep free registers for values that are needed only within a part.
            let left = crossing.iter().filter(|other| *other >= variable);
            let forced = left.filter(|other| must_be_a.contains(*other)).count() as u8;
            let is_a_full = next_a + forced >= 20;
            let wants_a = must_be_a.contains(variable)
                || !is_a_full && (in_a < in_b || in_a == in_b && next_a <= next_b || next_b > next_a + 4);
            let location = match wants_a && next_a < FILE || next_b == FILE {
                true => Location::A(next_a),
                false => Location::B(next_b),
            };
            match location {
                Location::A(_) => next_a += 1,
                _ if must_be_a.contains(variable) => return Err(CompileError::Registers),
                _ => next_b += 1,
            }
            if next_a > FILE {
                return Err(CompileError::Registers);
            }
            homes.locations[variable.0 as usize] = Some(location);
        }
        Ok(homes)
    }
}
