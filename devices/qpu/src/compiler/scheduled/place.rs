//! The placement of operations in words. Words are filled one after the other, with operations whose inputs are available. Of
//! these, the operations with the longest chains of dependent operations are placed first. The register of a result is chosen
//! when the operation is placed.

use super::super::CompileError;
use super::super::ir::{Action, Input, Op, Output, Rotation};
use super::super::word::{Location, NOTHING, Placed, Source, Target, alone, combined};
use super::Hints;
use super::graph::{Graph, Node};
use super::registers::{ACCUMULATORS, Kind, ORDERS, Place, Registers};
use crate::isa::Instruction;
use crate::sim::Hazards;

/// Limits for consecutive words in which no operation could be placed. After `PATIENCE` words, a value is moved out of an
/// accumulator. After `LIMIT` words, the compilation fails.
const PATIENCE: usize = 4;
const LIMIT: usize = 64;

/// The priority of an operation rises by this number for each value that no later operation reads.
const LAST_READER: i64 = 40;

/// The current content of a word.
#[derive(Default)]
struct Word {
    add: Option<Placed>,
    mul: Option<Placed>,
    receives: bool,
    whole: Option<Placed>,
}

impl Word {
    fn instruction(&self) -> Option<Instruction> {
        match &self.whole {
            Some(placed) => Some(alone(placed)),
            None => combined(self.add.as_ref(), self.mul.as_ref(), self.receives).map(Instruction::Alu),
        }
    }

    fn is_empty(&self) -> bool {
        self.add.is_none() && self.mul.is_none() && !self.receives && self.whole.is_none()
    }
}

/// A schedule under construction.
struct Placer<'g> {
    graph: &'g Graph,
    /// For each operation, its priority.
    priorities: Vec<i64>,
    hints: &'g Hints,
    copies: Vec<Vec<Place>>,
    /// For each value, the number of readers that have not been placed.
    readers_left: Vec<usize>,
    registers: Registers,
    placed_at: Vec<Option<usize>>,
    hazards: Hazards,
    instructions: Vec<Instruction>,
}

/// Fills words with the operations of a part. The operations do not use the register of the return address. Returns
/// the words, and the word of the last operation that sets flags.
///
/// # Errors
/// [`CompileError::Registers`] if the values do not fit into the registers, [`CompileError::Unwritten`] if a value
/// was never written.
pub(super) fn place(
    graph: &Graph,
    hints: &Hints,
    link: Option<Location>,
) -> Result<(Vec<Instruction>, Option<usize>), CompileError> {
    let mut placer = Placer::new(graph, hints);
    placer.registers.homes.extend(link.map(|link| (link, usize::MAX)));
    if graph.reads_unwritten() {
        return Err(CompileError::Unwritten);
    }
    let mut idle = 0;
    while placer.placed_at.iter().any(Option::is_none) {
        if placer.word() {
            idle = 0;
            continue;
        }
        idle += 1;
        if idle > LIMIT {
            return Err(CompileError::Registers);
        }
    }
    let setter = graph.last_setter.and_then(|setter| placer.placed_at[setter]);
    Ok((placer.instructions, setter))
}

impl<'g> Placer<'g> {
    fn new(graph: &'g Graph, hints: &'g Hints) -> Placer<'g> {
        let height = |(home, node): &(Location, usize)| (*home, graph.nodes[*node].height);
        let mut registers = Registers::new(graph.written_homes.iter().map(height).collect());
        let mut copies = vec![Vec::new(); graph.values.len()];
        for (value, location) in &graph.at_start {
            // The last word of the previous part writes no variable. Therefore the first word of this part can read all
            // variables.
            copies[*value].push(Place { location: *location, from: 0 });
            if let Some(holder) = registers.holder(*location) {
                *holder = Some(*value);
            }
        }
        let priority =
            |(number, node): (usize, &Node)| 16 * node.height as i64 + i64::from(hints.priority(number));
        Placer {
            graph,
            priorities: graph.nodes.iter().enumerate().map(priority).collect(),
            hints,
            copies,
            readers_left: graph.values.iter().map(|value| value.readers.len()).collect(),
            registers,
            placed_at: vec![None; graph.nodes.len()],
            hazards: Hazards::new(),
            instructions: Vec::new(),
        }
    }

    /// Fills a word. Returns false if no operation could be placed.
    fn word(&mut self) -> bool {
        let now = self.instructions.len();
        let mut word = Word::default();
        let ready = self.ready(now);
        for node in &ready {
            self.try_node(*node, &mut word, now, false);
        }
        // An operation that both ALUs can execute is placed in the mul ALU if another operation can be placed in the add ALU.
        for node in &ready {
            let action = self.graph.nodes[*node].op.action;
            if self.placed_at[*node].is_none() && matches!(action, Action::Move | Action::Either(..)) {
                self.try_node(*node, &mut word, now, true);
            }
        }
        let has_placed = ready.iter().any(|node| self.placed_at[*node].is_some());
        self.try_copies(&ready, &mut word, now);
        self.evict(&ready, &mut word, now);
        if word.is_empty()
            && self.instructions.iter().rev().take_while(|i| **i == NOTHING).count() >= PATIENCE
        {
            self.spill(&mut word, now);
        }
        let instruction = word.instruction().unwrap_or(NOTHING);
        let allowed = self.hazards.check(&instruction);
        debug_assert_eq!(allowed, Ok(()));
        self.instructions.push(instruction);
        has_placed
    }

    /// Returns the operations that may be executed now: their inputs are available, and all operations that must precede them
    /// have been placed.
    fn ready(&self, now: usize) -> Vec<usize> {
        let is_ready = |number: &usize| {
            let node = &self.graph.nodes[*number];
            let is_after = |(before, distance): &(usize, usize)| {
                self.placed_at[*before].is_some_and(|at| at + distance <= now)
            };
            self.placed_at[*number].is_none()
                && self.is_wanted(*number, now)
                && node.after.iter().all(is_after)
                && node.inputs.into_iter().flatten().all(|value| self.is_readable(value, now))
                && self.is_kept_written(node, now)
        };
        let mut ready: Vec<usize> = (0..self.graph.nodes.len()).filter(is_ready).collect();
        ready.sort_by_key(|number| (-self.priority(*number), *number));
        ready
    }

    /// The priority of an operation. The last reader of a value has a higher priority, because it frees the register of the
    /// value.
    fn priority(&self, number: usize) -> i64 {
        let last = |value: &usize| self.readers_left[*value] == 1 && self.graph.values[*value].home.is_none();
        let freed = self.graph.nodes[number].read_values(&self.graph.values).filter(last).count();
        self.priorities[number] + LAST_READER * freed as i64
    }

    /// False if the operation loads a constant that no other operation could use yet.
    fn is_wanted(&self, number: usize, now: usize) -> bool {
        let node = &self.graph.nodes[number];
        let (Action::Constant(_), Some(value)) = (node.op.action, node.output) else { return true };
        self.graph.values[value].home.is_some()
            || self.graph.values[value].readers.iter().any(|reader| {
                let reader = &self.graph.nodes[*reader];
                let others = reader.inputs.into_iter().flatten().filter(|other| *other != value);
                others.clone().all(|other| self.is_readable(other, now + 1))
            })
    }

    /// An operation may overwrite only a part of a register. True if the earlier value of this register has been written, or if the
    /// operation overwrites a whole register. The operation does not read the earlier value: the ALU leaves the other parts unchanged.
    fn is_kept_written(&self, node: &Node, now: usize) -> bool {
        let kept = node.output.and_then(|output| self.graph.values[output].replaces);
        kept.is_none_or(|kept| {
            self.copies[kept].iter().any(|copy| match copy.location {
                Location::Accumulator(_) => copy.from <= now,
                _ => copy.from <= now + 1,
            })
        })
    }

    fn is_readable(&self, value: usize, now: usize) -> bool {
        self.copies[value].iter().any(|copy| copy.from <= now)
    }

    /// Places an operation in the word if it fits.
    fn try_node(&mut self, number: usize, word: &mut Word, now: usize, in_add: bool) {
        let node = &self.graph.nodes[number];
        if word.whole.is_some() {
            return;
        }
        match node.op.action {
            Action::Receive if !word.receives => {
                word.receives = true;
                if self.fits(word) {
                    self.placed_at[number] = Some(now);
                } else {
                    word.receives = false;
                }
            }
            Action::Constant(_) | Action::Semaphore { .. } if word.is_empty() => {
                self.try_whole(number, word, now);
            }
            Action::Add(_) if word.add.is_none() => self.try_alu(number, word, now, false),
            Action::Mul(_) if word.mul.is_none() => self.try_alu(number, word, now, true),
            Action::Move | Action::Either(..)
                if (node.op.rotation.is_some() || !in_add) && word.mul.is_none() =>
            {
                self.try_alu(number, word, now, true);
            }
            // Only the mul ALU can rotate, so an operation with a rotation does not go to the add ALU.
            Action::Move | Action::Either(..)
                if in_add && node.op.rotation.is_none() && word.add.is_none() =>
            {
                self.try_alu(number, word, now, false);
            }
            _ => {}
        }
    }

    /// True if the word is an instruction that may follow the previous words.
    fn fits(&self, word: &Word) -> bool {
        word.instruction().is_some_and(|instruction| self.hazards.clone().check(&instruction).is_ok())
    }

    fn try_whole(&mut self, number: usize, word: &mut Word, now: usize) {
        for target in self.targets(number) {
            let op = self.graph.nodes[number].op;
            word.whole =
                Some(Placed { op, inputs: [Source::At(Location::Received); 2], target, is_mul: false });
            if self.fits(word) {
                self.accept(number, target, now);
                return;
            }
            word.whole = None;
        }
    }

    fn try_alu(&mut self, number: usize, word: &mut Word, now: usize, is_mul: bool) {
        let targets = self.targets(number);
        for inputs in self.input_choices(number, now) {
            for target in &targets {
                let placed = Placed { op: self.graph.nodes[number].op, inputs, target: *target, is_mul };
                if self.try_placed(word, placed) {
                    self.accept(number, *target, now);
                    return;
                }
            }
        }
    }

    /// Adds an operation to the word, if it fits.
    fn try_placed(&self, word: &mut Word, placed: Placed) -> bool {
        let slot = if placed.is_mul { &mut word.mul } else { &mut word.add };
        *slot = Some(placed);
        if self.fits(word) {
            return true;
        }
        *(if placed.is_mul { &mut word.mul } else { &mut word.add }) = None;
        false
    }

    /// The registers from which the inputs can be read.
    fn input_choices(&self, number: usize, now: usize) -> Vec<[Source; 2]> {
        let node = &self.graph.nodes[number];
        let choices = |index: usize| -> Vec<Source> {
            let Some(input) = node.op.used_inputs().get(index) else {
                return vec![Source::At(Location::Received)];
            };
            match (input, node.inputs[index]) {
                (Input::Small(value), _) => vec![Source::Small(*value)],
                (Input::Read(read), _) => vec![Source::Read(*read)],
                (Input::Variable(_), Some(value)) => {
                    let is_right = |location: Location| match node.op.rotation {
                        Some(Rotation::Full(_)) => matches!(location, Location::Accumulator(_)),
                        Some(Rotation::Quad(_)) => matches!(location, Location::A(_)),
                        None => index > 0 || node.op.unpack == 0 || matches!(location, Location::A(_)),
                    };
                    let all = self.copies[value].iter().filter(|copy| copy.from <= now);
                    all.map(|copy| copy.location).filter(|l| is_right(*l)).map(Source::At).collect()
                }
                _ => vec![Source::At(Location::Received)],
            }
        };
        let seconds = choices(1);
        let pair = |first: Source| seconds.iter().map(move |second| [first, *second]);
        choices(0).into_iter().flat_map(pair).collect()
    }

    /// The possible destinations of an operation, in the order of preference.
    fn targets(&self, number: usize) -> Vec<Target> {
        let node = &self.graph.nodes[number];
        let value = match (node.op.output, node.output) {
            (Output::Write(write), _) => return vec![Target::Write(write)],
            (Output::Variable(_), Some(value)) => value,
            _ => return vec![Target::Nothing],
        };
        let of = &self.graph.values[value];
        if let Some(old) = of.replaces {
            let all = self.copies[old].iter().map(|copy| copy.location);
            let is_right = |location: &Location| {
                of.home.is_none_or(|home| home == *location)
                    && (node.op.pack == 0 || matches!(location, Location::A(_)))
            };
            return all.filter(is_right).map(Target::At).collect();
        }
        if let Some(home) = of.home {
            let is_free = match self.registers.at(home) {
                Some(holder) => {
                    self.readers_left[holder] == 1
                        && node.read_values(&self.graph.values).any(|v| v == holder)
                }
                None => true,
            };
            return if is_free { vec![Target::At(home)] } else { Vec::new() };
        }
        let height = self.lowest_reader(value);
        let kinds = self.kinds(number, value);
        // If this operation is the last reader of an input, the register of the input becomes free for the result.
        let mut free = kinds.iter().filter_map(|kind| self.registers.free(*kind, height)).collect::<Vec<_>>();
        for input in node.inputs.into_iter().flatten() {
            let is_last = self.readers_left[input] == 1 && self.graph.values[input].home.is_none();
            if is_last {
                let own = self.copies[input].iter().map(|copy| copy.location);
                free.extend(own.filter(|location| self.registers.is_allowed(*location, height)));
            }
        }
        let rank = |location: &Location| kinds.iter().position(|kind| *kind == Kind::of(*location));
        free.sort_by_key(rank);
        free.dedup();
        let allowed = |location: &Location| match of.is_replaced && of.needs_a {
            true => matches!(location, Location::A(_)),
            false if of.is_replaced && of.needs_accumulator => matches!(location, Location::Accumulator(_)),
            false => !(of.avoids_b && matches!(location, Location::B(_))),
        };
        free.into_iter().filter(allowed).map(Target::At).collect()
    }

    /// The kinds of registers for a result, in the order of preference.
    fn kinds(&self, number: usize, value: usize) -> [Kind; 3] {
        if let Some(order) = self.hints.kind(number) {
            return ORDERS[usize::from(order) % ORDERS.len()];
        }
        let of = &self.graph.values[value];
        let file = self.file_for(value);
        // Accumulators are for values that can be read soon.
        let others = self.partners(value);
        let is_allowed = |reader: &usize| {
            self.graph.nodes[*reader]
                .after
                .iter()
                .all(|(before, _)| *before == number || self.placed_at[*before].is_some())
        };
        let is_soon = of.readers.len() <= 2
            && of.readers.iter().all(is_allowed)
            && others.iter().all(|other| !self.copies[*other].is_empty());
        match (of.needs_accumulator || is_soon && !of.needs_a, file) {
            (true, Kind::B) => ORDERS[1],
            (true, _) => ORDERS[0],
            (false, Kind::B) => ORDERS[3],
            (false, _) => ORDERS[2],
        }
    }

    /// The values that are read together with a value.
    fn partners(&self, value: usize) -> Vec<usize> {
        let left =
            self.graph.values[value].readers.iter().filter(|reader| self.placed_at[**reader].is_none());
        let inputs = left.flat_map(|reader| self.graph.nodes[*reader].inputs).flatten();
        inputs.filter(|other| *other != value).collect()
    }

    /// The file that has fewer of the values that are read together with a value.
    fn file_for(&self, value: usize) -> Kind {
        let others = self.partners(value);
        let in_file = |kind: Kind| {
            let is_there =
                |other: &&usize| self.copies[**other].iter().all(|copy| Kind::of(copy.location) == kind);
            others.iter().filter(|other| !self.copies[**other].is_empty()).filter(is_there).count()
        };
        let is_a = self.graph.values[value].needs_a || in_file(Kind::A) <= in_file(Kind::B);
        if is_a { Kind::A } else { Kind::B }
    }

    /// Returns the smallest height of the operations that have yet to read a value.
    fn lowest_reader(&self, value: usize) -> usize {
        let left =
            self.graph.values[value].readers.iter().filter(|reader| self.placed_at[**reader].is_none());
        left.map(|reader| self.graph.nodes[*reader].height).min().unwrap_or(usize::MAX)
    }

    /// Records that an operation is in the current word.
    fn accept(&mut self, number: usize, target: Target, now: usize) {
        self.placed_at[number] = Some(now);
        let node = &self.graph.nodes[number];
        let reads: Vec<usize> = node.read_values(&self.graph.values).collect();
        for value in reads {
            self.readers_left[value] -= 1;
            if self.readers_left[value] == 0 {
                self.release_copies(value);
            }
        }
        if let (Some(value), Target::At(location)) = (node.output, target) {
            if let Some(old) = self.graph.values[value].replaces {
                self.release(old);
            }
            self.hold(value, location, now);
        }
    }

    /// Frees the registers of a value that has been read, except its home.
    fn release_copies(&mut self, value: usize) {
        let home = self.graph.values[value].home;
        let kept: Vec<Place> =
            self.copies[value].iter().filter(|copy| Some(copy.location) == home).copied().collect();
        self.copies[value].retain(|copy| Some(copy.location) != home);
        self.release(value);
        self.copies[value] = kept;
    }

    fn release(&mut self, value: usize) {
        for copy in std::mem::take(&mut self.copies[value]) {
            if let Some(holder) =
                self.registers.holder(copy.location).filter(|holder| **holder == Some(value))
            {
                *holder = None;
            }
        }
    }

    fn hold(&mut self, value: usize, location: Location, now: usize) {
        let latency = if matches!(location, Location::Accumulator(_)) { 1 } else { 2 };
        if let Some(holder) = self.registers.holder(location) {
            *holder = Some(value);
        }
        // Copies in accumulators come first, because reads of accumulators never conflict.
        self.copies[value].push(Place { location, from: now + latency });
        self.copies[value].sort_by_key(|copy| !matches!(copy.location, Location::Accumulator(_)));
        // If no operation reads the result, its register is freed at once.
        if self.readers_left[value] == 0 {
            self.release_copies(value);
        }
    }

    /// Copies inputs of operations that no word could execute with the present registers of these inputs.
    fn try_copies(&mut self, ready: &[usize], word: &mut Word, now: usize) {
        for number in ready {
            if word.whole.is_some() || word.mul.is_some() && word.add.is_some() {
                return;
            }
            if self.placed_at[*number].is_none() && !self.could_be_alone(*number) {
                self.try_copy(*number, word, now);
            }
        }
    }

    /// True if a word with only this operation could read its inputs.
    fn could_be_alone(&self, number: usize) -> bool {
        let node = &self.graph.nodes[number];
        let is_mul = matches!(node.op.action, Action::Mul(_)) || node.op.rotation.is_some();
        if matches!(node.op.action, Action::Constant(_) | Action::Semaphore { .. } | Action::Receive) {
            return true;
        }
        // This includes copies that can only be read from the next word on.
        self.input_choices(number, usize::MAX).into_iter().any(|inputs| {
            let op = Op { pack: 0, ..node.op };
            let placed = Placed { op, inputs, target: Target::Nothing, is_mul };
            let (add, mul) = if is_mul { (None, Some(&placed)) } else { (Some(&placed), None) };
            combined(add, mul, false).is_some()
        })
    }

    fn try_copy(&mut self, number: usize, word: &mut Word, now: usize) {
        let node = &self.graph.nodes[number];
        for (index, value) in node.inputs.into_iter().enumerate() {
            let Some(value) = value else { continue };
            let kinds: &[Kind] = match node.op.rotation {
                Some(Rotation::Full(_)) => &[Kind::Accumulator],
                Some(Rotation::Quad(_)) => &[Kind::A],
                None if index == 0 && node.op.unpack != 0 => &[Kind::A],
                None => &[Kind::Accumulator, Kind::A, Kind::B],
            };
            let sources: Vec<Location> =
                self.copies[value].iter().filter(|copy| copy.from <= now).map(|copy| copy.location).collect();
            for source in sources {
                for kind in kinds.iter().filter(|kind| Kind::of(source) != **kind) {
                    let height = self.lowest_reader(value);
                    let Some(location) = self.registers.free(*kind, height) else { continue };
                    if self.try_move(word, value, source, location, now) {
                        return;
                    }
                }
            }
        }
    }

    /// Copies a value to another register.
    fn try_move(&mut self, word: &mut Word, value: usize, from: Location, to: Location, now: usize) -> bool {
        let op = Op::new(Action::Move, [Input::Received; 2], Output::Nothing);
        for is_mul in [true, false] {
            let is_free = if is_mul { word.mul.is_none() } else { word.add.is_none() };
            let placed = Placed { op, inputs: [Source::At(from); 2], target: Target::At(to), is_mul };
            if is_free && self.try_placed(word, placed) {
                self.hold(value, to, now);
                return true;
            }
        }
        false
    }

    /// Frees accumulators whose values no operation reads soon. This concerns all accumulators whose values are also in other
    /// registers, and one accumulator whose value an idle ALU can move to a file.
    fn evict(&mut self, ready: &[usize], word: &mut Word, now: usize) {
        for number in 0..ACCUMULATORS {
            let Some(value) = self.registers.accumulators[usize::from(number)] else { continue };
            let is_read_soon = ready.iter().any(|node| {
                self.placed_at[*node].is_none() && self.graph.nodes[*node].inputs.contains(&Some(value))
            });
            let from = Location::Accumulator(number);
            let copies = &self.copies[value];
            let is_new = copies.iter().any(|copy| copy.location == from && copy.from > now);
            if is_read_soon
                || is_new
                || self.graph.values[value].needs_accumulator
                || self.graph.values[value].is_replaced
            {
                continue;
            }
            let mut has_other = copies.iter().any(|copy| copy.location != from);
            if !has_other && word.mul.is_none() && word.whole.is_none() {
                let height = self.lowest_reader(value);
                let [first, second] = match self.file_for(value) {
                    Kind::B => [Kind::B, Kind::A],
                    _ => [Kind::A, Kind::B],
                };
                let free = self.registers.free(first, height).or_else(|| self.registers.free(second, height));
                has_other = free.is_some_and(|location| self.try_move(word, value, from, location, now));
            }
            if has_other {
                self.copies[value].retain(|copy| copy.location != from);
                self.registers.accumulators[usize::from(number)] = None;
            }
        }
    }

    /// Moves a value out of an accumulator. Called if all accumulators contain values whose readers wait for other values.
    fn spill(&mut self, word: &mut Word, now: usize) {
        for number in 0..ACCUMULATORS {
            let Some(value) = self.registers.accumulators[usize::from(number)] else { continue };
            let from = Location::Accumulator(number);
            let has_other = self.copies[value].iter().any(|copy| copy.location != from);
            let height = self.lowest_reader(value);
            let free = || [Kind::A, Kind::B].into_iter().find_map(|kind| self.registers.free(kind, height));
            let is_moved =
                has_other || free().is_some_and(|location| self.try_move(word, value, from, location, now));
            if is_moved {
                self.copies[value].retain(|copy| copy.location != from);
                self.registers.accumulators[usize::from(number)] = None;
                return;
            }
        }
    }
}
