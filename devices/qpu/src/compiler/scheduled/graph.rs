//! The dependencies between the operations of a part of a program without branches.

use super::super::flow::Set;
use super::super::ir::{Action, Input, Op, Output, Read, Rotation, Variable, Write};
use super::super::word::{Location, depends_on_flags};

/// A value: the result of an operation, or the value of a variable at the start of the part.
#[derive(Debug, Clone)]
pub(super) struct Value {
    /// The operations that read the value.
    pub(super) readers: Vec<usize>,
    /// The register that must contain the value at the end of the part.
    pub(super) home: Option<Location>,
    /// An earlier value in the same register, if this value overwrites only a part of the register.
    pub(super) replaces: Option<usize>,
    /// True if a reader needs the value in file A.
    pub(super) needs_a: bool,
    /// True if a reader needs the value in an accumulator.
    pub(super) needs_accumulator: bool,
    /// True if another operation overwrites a part of the value.
    pub(super) is_replaced: bool,
    /// True if an operation that overwrites a part of the value also reads the value and has a small immediate. The value must
    /// then not be in file B, because the small immediate is encoded in the field for the read of file B.
    pub(super) avoids_b: bool,
}

impl Value {
    fn new() -> Value {
        Value {
            readers: Vec::new(),
            home: None,
            replaces: None,
            needs_a: false,
            needs_accumulator: false,
            is_replaced: false,
            avoids_b: false,
        }
    }
}

/// An operation, with the values of its variables.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) op: Op,
    /// The values of the inputs that are variables.
    pub(super) inputs: [Option<usize>; 2],
    pub(super) output: Option<usize>,
    /// The operations that must be executed before this one. For each of them, the minimum distance in words, which may be
    /// zero.
    pub(super) after: Vec<(usize, usize)>,
    /// The minimum number of words from this operation to the end of the part, if all values are in accumulators.
    pub(super) height: usize,
}

impl Node {
    /// Returns the values that the operation reads, and the value that it overwrites in part, if any.
    pub(super) fn read_values<'v>(&self, values: &'v [Value]) -> impl Iterator<Item = usize> + use<'v> {
        let kept = self.output.and_then(|output| values[output].replaces);
        let [one, other] = self.inputs;
        let other = other.filter(|other| Some(*other) != one);
        one.into_iter().chain(other).chain(kept.filter(|kept| Some(*kept) != one && Some(*kept) != other))
    }
}

/// The operations of a part of a program without branches.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    pub(super) values: Vec<Value>,
    /// The values that exist at the start of the part, with their locations.
    pub(super) at_start: Vec<(usize, Location)>,
    /// The registers whose values are needed after the part. For each of them, the first operation that writes it.
    pub(super) written_homes: Vec<(Location, usize)>,
    /// The last operation that sets flags, if any.
    pub(super) last_setter: Option<usize>,
}

/// A graph under construction.
struct Builder<'h> {
    graph: Graph,
    /// The current value of each variable.
    current: Vec<Option<usize>>,
    homes: &'h [Option<Location>],
    setter: Option<usize>,
    flag_readers: Vec<usize>,
    /// The operation whose result is in r4, and the number of words after which the result can be read.
    received: Option<(usize, usize)>,
    received_readers: Vec<usize>,
    last_tmu: Option<usize>,
    last_vpm: Option<(usize, bool)>,
    last_uniform: Option<usize>,
    barrier: Option<usize>,
}

impl Graph {
    /// Builds the graph of the operations of a part. `live_after` contains the variables that are needed after the part. A
    /// variable that has a home is in its home at the start and at the end of the part.
    pub(super) fn of(ops: &[Op], homes: &[Option<Location>], live_before: &Set, live_after: &Set) -> Graph {
        let graph = Graph {
            nodes: Vec::new(),
            values: Vec::new(),
            at_start: Vec::new(),
            written_homes: Vec::new(),
            last_setter: None,
        };
        let mut builder = Builder {
            graph,
            current: vec![None; homes.len()],
            homes,
            setter: None,
            flag_readers: Vec::new(),
            received: None,
            received_readers: Vec::new(),
            last_tmu: None,
            last_vpm: None,
            last_uniform: None,
            barrier: None,
        };
        let mut first = vec![None; homes.len()];
        for variable in live_before.iter() {
            let Some(home) = homes[variable.0 as usize] else { continue };
            let value = builder.value();
            builder.graph.at_start.push((value, home));
            builder.current[variable.0 as usize] = Some(value);
            first[variable.0 as usize] = Some(value);
        }
        ops.iter().for_each(|op| builder.add(op));
        builder.finish(&first, live_after);
        builder.graph.set_heights();
        builder.graph
    }

    /// True if an operation reads a value that no operation has written, or overwrites a part of such a value.
    pub(super) fn reads_unwritten(&self) -> bool {
        (0..self.values.len()).any(|value| {
            !self.values[value].readers.is_empty()
                && self.at_start.iter().all(|(start, _)| *start != value)
                && self.nodes.iter().all(|node| node.output != Some(value))
        })
    }

    fn set_heights(&mut self) {
        for number in (0..self.nodes.len()).rev() {
            let height = self.nodes[number].height.max(1);
            self.nodes[number].height = height;
            for (before, distance) in self.nodes[number].after.clone() {
                self.nodes[before].height = self.nodes[before].height.max(height + distance);
            }
            for value in self.nodes[number].read_values(&self.values).collect::<Vec<_>>() {
                // The operation that writes a value precedes the operations that read it.
                let writer = self.nodes[..number].iter().rposition(|node| node.output == Some(value));
                if let Some(writer) = writer {
                    self.nodes[writer].height = self.nodes[writer].height.max(height + 1);
                }
            }
        }
    }
}

impl Builder<'_> {
    fn value(&mut self) -> usize {
        self.graph.values.push(Value::new());
        self.graph.values.len() - 1
    }

    fn now(&mut self, variable: Variable) -> usize {
        match self.current[variable.0 as usize] {
            Some(value) => value,
            // The variable is read before it is written. The compiler rejects such a program later.
            None => {
                let value = self.value();
                self.current[variable.0 as usize] = Some(value);
                value
            }
        }
    }

    fn add(&mut self, op: &Op) {
        let number = self.graph.nodes.len();
        let mut inputs = [None; 2];
        for (index, input) in op.used_inputs().iter().enumerate() {
            if let Input::Variable(variable) = input {
                let value = self.now(*variable);
                inputs[index] = Some(value);
                let needs = &mut self.graph.values[value];
                if needs.readers.last() != Some(&number) {
                    needs.readers.push(number);
                }
                needs.needs_a |=
                    index == 0 && op.unpack != 0 || matches!(op.rotation, Some(Rotation::Quad(_)));
                needs.needs_accumulator |= matches!(op.rotation, Some(Rotation::Full(_)));
            }
        }
        let mut after = self.order(number, op);
        let output = op.writes().map(|variable| {
            let old = op.is_partial().then(|| self.now(variable));
            let value = self.value();
            if let Some(old) = old {
                self.graph.values[value].replaces = Some(old);
                self.graph.values[value].needs_a = op.pack != 0;
                self.graph.values[old].is_replaced = true;
                let has_small = op.rotation.is_some()
                    || op.used_inputs().iter().any(|input| matches!(input, Input::Small(_)));
                self.graph.values[old].avoids_b |= has_small && inputs.contains(&Some(old));
                self.graph.values[old].needs_a |= op.pack != 0;
                let readers = self.graph.values[old].readers.clone();
                after.extend(readers.iter().filter(|reader| **reader != number).map(|reader| (*reader, 0)));
                if !inputs.contains(&Some(old)) {
                    self.graph.values[old].readers.push(number);
                }
            }
            self.current[variable.0 as usize] = Some(value);
            value
        });
        self.graph.nodes.push(Node { op: *op, inputs, output, after, height: 0 });
    }

    /// Returns the operations that must precede an operation, in addition to the operations that write its inputs.
    fn order(&mut self, number: usize, op: &Op) -> Vec<(usize, usize)> {
        let mut after = Vec::new();
        if depends_on_flags(op) {
            after.extend(self.setter.map(|setter| (setter, 1)));
            self.flag_readers.push(number);
        }
        if op.sets_flags {
            after.extend(self.setter.map(|setter| (setter, 1)));
            after.extend(
                self.flag_readers.drain(..).filter(|reader| *reader != number).map(|reader| (reader, 0)),
            );
            self.setter = Some(number);
        }
        if op.used_inputs().contains(&Input::Received) {
            after.extend(self.received);
            self.received_readers.push(number);
        }
        let is_receive = op.action == Action::Receive;
        if is_receive || op.output == Output::Write(Write::Tmu) {
            after.extend(self.last_tmu.replace(number).map(|last| (last, 1)));
        }
        let is_special = matches!(op.output, Output::Write(Write::Special(_)));
        if is_receive || is_special {
            after.extend(self.received_readers.drain(..).map(|reader| (reader, 0)));
            // The result of a special function is written to r4 three words later. Until then, r4 must not be written by
            // another operation.
            after.extend(self.received.replace((number, if is_special { 3 } else { 1 })));
        }
        let reads = |read: Read| op.used_inputs().contains(&Input::Read(read));
        if reads(Read::Uniform) {
            after.extend(self.last_uniform.replace(number).map(|last| (last, 1)));
        }
        let reads_vpm = reads(Read::Vpm);
        let is_of_vpm = reads_vpm
            || [Read::LoadWait, Read::StoreWait, Read::Mutex].into_iter().any(reads)
            || matches!(op.output, Output::Write(write) if write != Write::Tmu);
        if is_of_vpm {
            // The setup of a read must precede the read by four words.
            let is_setup = op.output == Output::Write(Write::LoadSetup);
            let distance = |after_setup: bool| if after_setup && reads_vpm { 4 } else { 1 };
            after.extend(
                self.last_vpm.replace((number, is_setup)).map(|(last, setup)| (last, distance(setup))),
            );
        }
        // No operation is moved across a semaphore, an interrupt or an access to the mutex.
        let is_barrier = matches!(op.action, Action::Semaphore { .. })
            || op.output == Output::Write(Write::Interrupt)
            || op.output == Output::Write(Write::Mutex)
            || reads(Read::Mutex);
        if is_barrier {
            after.extend((0..number).map(|before| (before, 1)));
            self.barrier = Some(number);
        } else {
            after.extend(self.barrier.map(|barrier| (barrier, 1)));
        }
        after
    }

    /// Assigns homes to the values that are needed after the part.
    fn finish(&mut self, first: &[Option<usize>], live_after: &Set) {
        for variable in live_after.iter() {
            let index = variable.0 as usize;
            let (Some(home), Some(last)) = (self.homes[index], self.current[index]) else { continue };
            self.graph.values[last].home = Some(home);
            // Values may form a chain in which each value overwrites a part of the previous one. This finds the first value of
            // the chain.
            let chain = std::iter::successors(Some(last), |value| self.graph.values[*value].replaces);
            let written = chain.take_while(|value| Some(*value) != first[index]).last();
            let is_writer = |node: &Node| node.output.is_some() && node.output == written;
            if let Some(writer) = self.graph.nodes.iter().position(is_writer) {
                self.graph.written_homes.push((home, writer));
            }
        }
        // A value that is overwritten in part has the same home as the value that overwrites this part.
        for value in (0..self.graph.values.len()).rev() {
            let Some(old) = self.graph.values[value].replaces else { continue };
            if self.graph.values[old].home.is_none() {
                self.graph.values[old].home = self.graph.values[value].home;
            }
            self.graph.values[old].needs_a |= self.graph.values[value].needs_a;
            self.graph.values[old].avoids_b |= self.graph.values[value].avoids_b;
            self.graph.values[old].needs_accumulator |=
                self.graph.values[value].needs_accumulator && self.graph.values[value].home.is_none();
        }
        self.graph.last_setter = self.setter;
    }
}
