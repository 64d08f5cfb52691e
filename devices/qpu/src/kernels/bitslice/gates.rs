//! The circuits of the S-box as gates. Some of the gates are rewritten for the mul ALU.
//!
//! Only the add ALU has operations on bits, so it limits the speed of a round. The mul ALU can add and subtract bytes. If two
//! values have no bit in common, their sum equals their XOR. If the first value has all bits of the second value, their
//! difference equals their XOR. The values of the gates for all 256 input bytes show which pairs of gates have one of these
//! properties.

use std::cell::RefCell;
use std::ops::{BitAnd, BitXor};

/// The operation of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// AND, on the add ALU.
    And,
    /// XOR, on the add ALU.
    Xor,
    /// The sum of two values that have no bit in common, on either ALU.
    Sum,
    /// The difference of two values, on either ALU. The first value has all bits of the second value.
    Difference,
}

/// A gate. The numbers 0 to 7 are the bits of the input, with the lowest bit first. All further numbers are the values of
/// gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gate {
    /// The operation of the gate.
    pub kind: Kind,
    /// The numbers of the values that the gate reads.
    pub inputs: [usize; 2],
    /// The number of the value of the gate.
    pub value: usize,
}

/// The gates of a circuit, and the numbers of the values that are the bits of the result.
#[derive(Debug, Clone)]
pub struct Circuit {
    /// The gates, in an order in which they can be computed.
    pub gates: Vec<Gate>,
    /// The numbers of the values of the result, with the lowest bit first.
    pub outputs: [usize; 8],
    /// The number of values: the bits of the input, and one value for each gate.
    pub values: usize,
}

/// A value that records the operations on it.
#[derive(Clone, Copy)]
struct Wire<'r> {
    recorded: &'r RefCell<Vec<(Kind, [usize; 2])>>,
    value: usize,
}

impl<'r> Wire<'r> {
    fn gate(self, kind: Kind, other: Wire<'r>) -> Wire<'r> {
        let mut gates = self.recorded.borrow_mut();
        gates.push((kind, [self.value, other.value]));
        Wire { recorded: self.recorded, value: 7 + gates.len() }
    }
}

impl<'r> BitAnd for Wire<'r> {
    type Output = Wire<'r>;

    fn bitand(self, other: Wire<'r>) -> Wire<'r> {
        self.gate(Kind::And, other)
    }
}

impl<'r> BitXor for Wire<'r> {
    type Output = Wire<'r>;

    fn bitxor(self, other: Wire<'r>) -> Wire<'r> {
        self.gate(Kind::Xor, other)
    }
}

/// The S-box without its constant.
pub fn forward() -> Circuit {
    let recorded = RefCell::new(Vec::new());
    let outputs =
        lockstep_core::sbox::forward(std::array::from_fn(|value| Wire { recorded: &recorded, value }));
    Circuit::new(&recorded.borrow(), outputs.map(|wire| wire.value)).rewritten()
}

/// The inverse S-box, for values from which the constant of the S-box has been removed.
pub fn inverse() -> Circuit {
    let recorded = RefCell::new(Vec::new());
    let outputs =
        lockstep_core::sbox::inverse(std::array::from_fn(|value| Wire { recorded: &recorded, value }));
    Circuit::new(&recorded.borrow(), outputs.map(|wire| wire.value)).rewritten()
}

/// The values of a gate for all input bytes.
pub type Table = [u64; 4];

fn apply(kind: Kind, a: Table, b: Table) -> Table {
    std::array::from_fn(|word| match kind {
        Kind::And => a[word] & b[word],
        Kind::Xor | Kind::Sum | Kind::Difference => a[word] ^ b[word],
    })
}

fn is_zero(table: Table) -> bool {
    table == [0; 4]
}

impl Circuit {
    fn new(recorded: &[(Kind, [usize; 2])], outputs: [usize; 8]) -> Circuit {
        let gate = |(value, (kind, inputs)): (usize, &(Kind, [usize; 2]))| Gate {
            kind: *kind,
            inputs: *inputs,
            value: 8 + value,
        };
        let gates = recorded.iter().enumerate().map(gate).collect();
        Circuit { gates, outputs, values: 8 + recorded.len() }
    }

    /// The values of all gates for all input bytes. The value for a byte is bit `byte % 64` of word `byte / 64`.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = vec![[0; 4]; self.values];
        for (bit, table) in tables.iter_mut().take(8).enumerate() {
            for byte in (0..256).filter(|byte| byte >> bit & 1 == 1) {
                table[byte / 64] |= 1 << (byte % 64);
            }
        }
        for gate in &self.gates {
            let [a, b] = gate.inputs;
            tables[gate.value] = apply(gate.kind, tables[a], tables[b]);
        }
        tables
    }

    /// Returns a circuit with the same outputs and, as far as the rules below allow, fewer gates of the add ALU.
    fn rewritten(mut self) -> Circuit {
        let tables = self.tables();
        for place in 0..self.gates.len() {
            if self.gates[place].kind == Kind::Xor {
                self.as_one(place, &tables);
            }
        }
        for value in
            self.gates.iter().filter(|gate| gate.kind == Kind::Xor).map(|gate| gate.value).collect::<Vec<_>>()
        {
            if !self.with_and_of_inputs(value) {
                self.with_known_and(value, &tables);
            }
        }
        self
    }

    /// Replaces a gate by a sum or a difference of two existing values, if possible.
    fn as_one(&mut self, place: usize, tables: &[Table]) {
        let gate = self.gates[place];
        let before: Vec<usize> = (0..8).chain(self.gates[..place].iter().map(|gate| gate.value)).collect();
        for a in &before {
            let wanted = apply(Kind::Xor, tables[*a], tables[gate.value]);
            let Some(b) = before.iter().find(|b| tables[**b] == wanted) else { continue };
            let both = apply(Kind::And, tables[*a], tables[*b]);
            let kind = match () {
                () if is_zero(both) => Kind::Sum,
                () if both == tables[*b] => Kind::Difference,
                () => continue,
            };
            self.gates[place] = Gate { kind, inputs: [*a, *b], ..gate };
            return;
        }
    }

    /// Rewrites `v = a ^ b` and `w = v & a`. The new gate `q = a & b` replaces the AND of `w`. Then `w = a - q` and `v = w + (b
    /// - q)`.
    fn with_and_of_inputs(&mut self, v: usize) -> bool {
        let Some(place) = self.gates.iter().position(|gate| gate.value == v) else { return false };
        let [one, other] = self.gates[place].inputs;
        for (a, b) in [(one, other), (other, one)] {
            let is_w =
                |gate: &Gate| gate.kind == Kind::And && (gate.inputs == [v, a] || gate.inputs == [a, v]);
            let Some(w) = self.gates.iter().find(|gate| is_w(gate)).map(|gate| gate.value) else { continue };
            let (q, rest) = (self.values, self.values + 1);
            self.values += 2;
            self.gates.retain(|gate| gate.value != v && gate.value != w);
            self.gates.extend([
                Gate { kind: Kind::And, inputs: [a, b], value: q },
                Gate { kind: Kind::Difference, inputs: [a, q], value: w },
                Gate { kind: Kind::Difference, inputs: [b, q], value: rest },
                Gate { kind: Kind::Sum, inputs: [w, rest], value: v },
            ]);
            self.sort();
            return true;
        }
        false
    }

    /// Rewrites `v = p ^ r`, if there is a gate `q = p & r`. Then `v = (p - q) + (r - q)`.
    fn with_known_and(&mut self, v: usize, tables: &[Table]) -> bool {
        let ands: Vec<Gate> = self
            .gates
            .iter()
            .filter(|gate| gate.kind == Kind::And && gate.value < tables.len())
            .copied()
            .collect();
        for q in ands {
            let [p, r] = q.inputs;
            let is_it =
                p < tables.len() && r < tables.len() && apply(Kind::Xor, tables[p], tables[r]) == tables[v];
            if !is_it || [p, r, q.value].iter().any(|value| self.depends(*value, v)) {
                continue;
            }
            let (one, other) = (self.values, self.values + 1);
            self.values += 2;
            self.gates.retain(|gate| gate.value != v);
            self.gates.extend([
                Gate { kind: Kind::Difference, inputs: [p, q.value], value: one },
                Gate { kind: Kind::Difference, inputs: [r, q.value], value: other },
                Gate { kind: Kind::Sum, inputs: [one, other], value: v },
            ]);
            self.sort();
            return true;
        }
        false
    }

    /// True if `value` is `on`, or is computed from `on`.
    fn depends(&self, value: usize, on: usize) -> bool {
        value == on
            || self
                .gates
                .iter()
                .find(|gate| gate.value == value)
                .is_some_and(|gate| gate.inputs.iter().any(|input| self.depends(*input, on)))
    }

    /// Sorts the gates into an order in which they can be computed.
    fn sort(&mut self) {
        let mut is_known = vec![false; self.values];
        is_known[..8].fill(true);
        let mut left = std::mem::take(&mut self.gates);
        while !left.is_empty() {
            let place = left.iter().position(|gate| gate.inputs.iter().all(|input| is_known[*input]));
            let gate = left.remove(place.expect("a circuit without cycles"));
            is_known[gate.value] = true;
            self.gates.push(gate);
        }
    }
}
