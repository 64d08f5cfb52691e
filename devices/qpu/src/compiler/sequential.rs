//! A compiler that generates the code of a simple compiler for QPUs: one operation in each word, in the order of the program.
//! The delay slots of branches are empty, and an accumulator is used only for a value whose only reader is the next operation.
//! The thesis's kernels were compiled by such a compiler.

use super::CompileError;
use super::flow::{Set, live};
use super::ir::{Action, Code, Input, Item, Op, Output, Read, Rotation, Variable};
use super::word::{END, Location, NOTHING, Placed, Source, Target, alone};
use crate::isa::registers::{FILE, NOP};
use crate::isa::{Branch, BranchCondition, INSTRUCTION_BYTES, Instruction};
use crate::sim::Hazards;

/// `NEXT` is the accumulator for values whose only reader is the next operation. `MOVED` is the accumulator for inputs that
/// must be moved before an operation can read them.
const NEXT: Location = Location::Accumulator(1);
const MOVED: Location = Location::Accumulator(0);

/// Compiles a program.
///
/// # Errors
/// [`CompileError::Registers`] if more than 64 variables are needed at once.
pub fn compile(code: &Code) -> Result<Vec<Instruction>, CompileError> {
    compile_with_places(code).map(|(instructions, _)| instructions)
}

/// Compiles a program. Also returns the index of the first instruction of each item of the program.
///
/// # Errors
/// As [`compile`].
pub fn compile_with_places(code: &Code) -> Result<(Vec<Instruction>, Vec<usize>), CompileError> {
    let live = live(code).after;
    let locations = Allocation::of(code, &live)?;
    let mut emitter = Emitter { instructions: Vec::new(), hazards: Hazards::new() };
    let mut places = vec![0; code.labels()];
    let mut branches = Vec::new();
    let mut starts = Vec::with_capacity(code.items.len());
    for (place, item) in code.items.iter().enumerate() {
        starts.push(emitter.instructions.len());
        match item {
            Item::Label(label) => places[label.0 as usize] = emitter.instructions.len(),
            Item::Op(op) => emitter.op(
                op,
                |variable| locations.read_at(place, variable),
                |variable| locations.written_at(place, variable),
            ),
            Item::Branch { condition, target } => {
                branches.push((emitter.instructions.len(), *target));
                emitter.branch(*condition, None, None);
            }
            Item::Call { target, link } => {
                branches.push((emitter.instructions.len(), *target));
                emitter.branch(BranchCondition::Always, locations.register_a(*link), None);
            }
            Item::Return(link) => {
                emitter.branch(BranchCondition::Always, None, locations.register_a(*link));
            }
            Item::End => END.into_iter().for_each(|instruction| emitter.push(instruction)),
        }
    }
    for (place, target) in branches {
        set_target(&mut emitter.instructions, place, places[target.0 as usize]);
    }
    Ok((emitter.instructions, starts))
}

/// Sets the target of the branch at index `place`.
pub(super) fn set_target(instructions: &mut [Instruction], place: usize, target: usize) {
    if let Instruction::Branch(branch) = &mut instructions[place] {
        branch.offset = (target as i32 - place as i32 - 4) * INSTRUCTION_BYTES as i32;
    }
}

/// A branch whose target is set later.
pub(super) fn branch(condition: BranchCondition, link: Option<u8>, register: Option<u8>) -> Instruction {
    Instruction::Branch(Branch {
        condition,
        is_relative: register.is_none(),
        register,
        is_swapped: false,
        link_add: link.unwrap_or(NOP),
        link_mul: NOP,
        offset: 0,
    })
}

struct Emitter {
    instructions: Vec<Instruction>,
    hazards: Hazards,
}

impl Emitter {
    /// Appends an instruction. If the hazard rules require it, instructions without operations are inserted before it.
    fn push(&mut self, instruction: Instruction) {
        // No rule requires more than three other instructions before this one.
        for _ in 0..4 {
            if self.hazards.clone().check(&instruction).is_ok() {
                break;
            }
            let allowed = self.hazards.check(&NOTHING);
            debug_assert_eq!(allowed, Ok(()));
            self.instructions.push(NOTHING);
        }
        let allowed = self.hazards.check(&instruction);
        debug_assert_eq!(allowed, Ok(()), "{instruction:?}");
        self.instructions.push(instruction);
    }

    fn branch(&mut self, condition: BranchCondition, link: Option<u8>, register: Option<u8>) {
        self.push(branch(condition, link, register));
        (0..3).for_each(|_| self.push(NOTHING));
    }

    fn op(
        &mut self,
        op: &Op,
        read_at: impl Fn(Variable) -> Location,
        written_at: impl Fn(Variable) -> Location,
    ) {
        let source = |input: &Input| match input {
            Input::Variable(variable) => Source::At(read_at(*variable)),
            Input::Small(value) => Source::Small(*value),
            Input::Read(read) => Source::Read(*read),
            Input::Received => Source::At(Location::Received),
        };
        let target = match op.output {
            Output::Variable(variable) => Target::At(written_at(variable)),
            Output::Write(write) => Target::Write(write),
            Output::Nothing => Target::Nothing,
        };
        let mut inputs = op.inputs.each_ref().map(source);
        if matches!(op.rotation, Some(Rotation::Full(_))) {
            inputs[0] = self.moved(inputs[0]);
            self.push(NOTHING);
        } else if op.used_inputs().len() == 2 && conflict(inputs) {
            // Small immediates and inputs that are unpacked cannot be moved, so the other input is moved. Only the first input
            // can be unpacked.
            let moved = usize::from(matches!(inputs[0], Source::Small(_)) || op.unpack != 0);
            inputs[moved] = self.moved(inputs[moved]);
        }
        let is_mul = matches!(op.action, Action::Mul(_)) || op.rotation.is_some();
        self.push(alone(&Placed { op: *op, inputs, target, is_mul }));
    }

    /// Moves an input to an accumulator.
    fn moved(&mut self, input: Source) -> Source {
        let op = Op::new(Action::Move, [Input::Received; 2], Output::Nothing);
        self.push(alone(&Placed { op, inputs: [input; 2], target: Target::At(MOVED), is_mul: false }));
        Source::At(MOVED)
    }
}

/// True if one word cannot read both inputs.
fn conflict(inputs: [Source; 2]) -> bool {
    let file = |source: Source| match source {
        Source::At(Location::A(number)) => Some((false, number)),
        Source::At(Location::B(number)) => Some((true, number)),
        Source::Read(Read::Element | Read::LoadWait) => Some((false, u8::MAX)),
        Source::Read(Read::Qpu | Read::StoreWait) => Some((true, u8::MAX)),
        // A small immediate is encoded in the field for the read of file B.
        Source::Small(_) => Some((true, u8::MAX - 1)),
        _ => None,
    };
    match inputs.map(file) {
        [Some(one), Some(other)] => one.0 == other.0 && one != other,
        _ => false,
    }
}

/// The registers of all variables.
struct Allocation {
    registers: Vec<Option<Location>>,
    /// For each operation that writes or reads a value in [`NEXT`], the variable of this value.
    next: Vec<Option<Variable>>,
    used_up: Vec<Option<Variable>>,
}

impl Allocation {
    /// The register from which the operation at `place` reads a variable.
    fn read_at(&self, place: usize, variable: Variable) -> Location {
        match self.used_up[place] == Some(variable) {
            true => NEXT,
            false => self.register(variable),
        }
    }

    /// The register to which the operation at `place` writes a variable.
    fn written_at(&self, place: usize, variable: Variable) -> Location {
        match self.next[place] == Some(variable) {
            true => NEXT,
            false => self.register(variable),
        }
    }

    fn register(&self, variable: Variable) -> Location {
        // A variable that is never read also requires a destination.
        self.registers[variable.0 as usize].unwrap_or(NEXT)
    }

    fn register_a(&self, variable: Variable) -> Option<u8> {
        match self.register(variable) {
            Location::A(number) => Some(number),
            other => unreachable!("links are in file A, not in {other:?}"),
        }
    }

    fn of(code: &Code, live: &[Set]) -> Result<Allocation, CompileError> {
        let mut allocation = Allocation {
            registers: vec![None; code.variables()],
            next: vec![None; code.items.len()],
            used_up: vec![None; code.items.len()],
        };
        allocation.find_next(code, live);
        allocation.choose_registers(code, live)?;
        Ok(allocation)
    }

    /// Finds values whose only reader is the next operation.
    fn find_next(&mut self, code: &Code, live: &[Set]) {
        for (place, pair) in (1..).zip(code.items.windows(2)) {
            let [Item::Op(first), Item::Op(second)] = pair else { continue };
            let Some(variable) = first.writes() else { continue };
            let is_used_up = second.reads().any(|read| read == variable) && !live[place].contains(variable);
            let is_whole = !first.is_partial() && !second.is_partial();
            // An input that is unpacked, or rotated within quads, must be in file A.
            let is_bound = second.unpack != 0 || matches!(second.rotation, Some(Rotation::Quad(_)));
            if is_used_up && is_whole && !is_bound && second.writes() != Some(variable) {
                self.next[place - 1] = Some(variable);
                self.used_up[place] = Some(variable);
            }
        }
    }

    fn choose_registers(&mut self, code: &Code, live: &[Set]) -> Result<(), CompileError> {
        let count = code.variables();
        let preferences = self.preferences(code);
        let mut neighbours = vec![Set::new(count); count];
        for (place, item) in code.items.iter().enumerate() {
            let written = match item {
                Item::Op(op) => op.writes(),
                Item::Call { link, .. } => Some(*link),
                _ => None,
            };
            let mut together: Vec<Variable> = live[place].iter().collect();
            together.extend(written.filter(|_| self.next[place].is_none()));
            // These variables are needed at the same time, so any two of them require different registers. The list may contain
            // the written variable twice.
            if together.len() > 2 * usize::from(FILE) + 1 {
                return Err(CompileError::Registers);
            }
            for one in &together {
                together.iter().filter(|other| *other != one).for_each(|other| {
                    neighbours[one.0 as usize].insert(*other);
                });
            }
        }
        let mut last_is_b = true;
        for variable in 0..count {
            let is_free = |location: Location| {
                !neighbours[variable].iter().any(|other| self.registers[other.0 as usize] == Some(location))
            };
            let free_a = (0..FILE).map(Location::A).find(|location| is_free(*location));
            let free_b = (0..FILE).map(Location::B).find(|location| is_free(*location));
            let Preference { a, b, must_be_a } = preferences[variable];
            let chosen = match (free_a, free_b) {
                (chosen, _) if must_be_a => chosen,
                (Some(of_a), Some(of_b)) if a == b => Some(if last_is_b { of_a } else { of_b }),
                (Some(of_a), Some(of_b)) => Some(if a > b { of_a } else { of_b }),
                (one, other) => one.or(other),
            };
            let chosen = chosen.ok_or(CompileError::Registers)?;
            last_is_b = matches!(chosen, Location::B(_));
            self.registers[variable] = Some(chosen);
        }
        Ok(())
    }

    /// For each variable, counts the operations that prefer it in file A, and those that prefer it in file B.
    fn preferences(&self, code: &Code) -> Vec<Preference> {
        let mut all = vec![Preference::default(); code.variables()];
        for (place, item) in code.items.iter().enumerate() {
            let op = match item {
                Item::Op(op) => op,
                Item::Call { link, .. } | Item::Return(link) => {
                    all[link.0 as usize].must_be_a = true;
                    continue;
                }
                _ => continue,
            };
            if op.pack != 0 {
                op.writes().into_iter().for_each(|variable| all[variable.0 as usize].must_be_a = true);
            }
            let variable = |input: &Input| match input {
                Input::Variable(variable) => Some(*variable).filter(|v| self.used_up[place] != Some(*v)),
                _ => None,
            };
            if op.unpack != 0 || matches!(op.rotation, Some(Rotation::Quad(_))) {
                variable(&op.inputs[0]).into_iter().for_each(|v| all[v.0 as usize].must_be_a = true);
            }
            let [one, other] = op.used_inputs() else { continue };
            match (variable(one), variable(other)) {
                (Some(one), Some(other)) => {
                    let (one, other) = (one.0 as usize, other.0 as usize);
                    let (to_a, to_b) = match all[one].a > all[other].a || all[other].b > all[one].b {
                        true => (one, other),
                        false => (other, one),
                    };
                    all[to_a].a += 1;
                    all[to_b].b += 1;
                }
                // A small immediate is encoded in the field for the read of file B.
                (Some(one), None) if matches!(other, Input::Small(_)) => all[one.0 as usize].a += 1,
                (None, Some(other)) if matches!(one, Input::Small(_)) => all[other.0 as usize].a += 1,
                _ => {}
            }
        }
        all
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Preference {
    a: u32,
    b: u32,
    must_be_a: bool,
}
