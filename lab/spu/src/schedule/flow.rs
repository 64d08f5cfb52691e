//! The dataflow graph that kernels are written in.

use std::collections::HashMap;

use super::Node;
use crate::isa::Op;

/// A value: the result of an instruction in one iteration, a constant, a parameter, or a carried value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub(super) u32);

/// A value that each iteration passes to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carried(pub(super) usize);

/// The origin of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// A quadword of the pool, loaded into a register before the loop.
    Pool(usize),
    /// A value that the previous iteration has computed.
    Carried(usize),
    Node,
    /// The value of one of the two alternatives of a choice.
    Choice(usize),
}

/// Two alternatives for the same value.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    pub nodes: [std::ops::Range<usize>; 2],
    pub values: [Value; 2],
}

#[derive(Debug, Clone, Copy)]
pub(super) struct CarriedState {
    /// The initial value: a quadword of the pool.
    pub start: usize,
    pub value: Value,
    pub next: Option<Value>,
}

/// The body of a loop as dataflow.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    pub(super) nodes: Vec<Node>,
    pub(super) origins: Vec<Origin>,
    pub(super) pool: Vec<[u8; 16]>,
    pub(super) parameters: Vec<usize>,
    pub(super) carried: Vec<CarriedState>,
    pub(super) choices: Vec<Choice>,
    constants: HashMap<[u8; 16], Value>,
    pub(super) lane: u32,
}

impl Flow {
    /// Creates an empty body.
    pub fn new() -> Flow {
        Flow::default()
    }

    fn value(&mut self, origin: Origin) -> Value {
        self.origins.push(origin);
        Value(self.origins.len() as u32 - 1)
    }

    fn pooled(&mut self, bytes: [u8; 16]) -> usize {
        self.pool.push(bytes);
        self.pool.len() - 1
    }

    /// Adds a constant, which stays in a register.
    pub fn constant(&mut self, bytes: [u8; 16]) -> Value {
        if let Some(&value) = self.constants.get(&bytes) {
            return value;
        }
        let at = self.pooled(bytes);
        let value = self.value(Origin::Pool(at));
        self.constants.insert(bytes, value);
        value
    }

    /// Adds a constant with the same byte in all positions.
    pub fn bytes(&mut self, byte: u8) -> Value {
        self.constant([byte; 16])
    }

    /// Adds a parameter: a quadword that is written before the program runs, and that stays in a register.
    pub fn parameter(&mut self) -> Value {
        let at = self.pooled([0; 16]);
        self.parameters.push(at);
        self.value(Origin::Pool(at))
    }

    /// Adds a value that is carried from iteration to iteration. Its initial value is a parameter.
    pub fn carried(&mut self) -> (Carried, Value) {
        let start = self.pooled([0; 16]);
        self.parameters.push(start);
        let index = self.carried.len();
        let value = self.value(Origin::Carried(index));
        self.carried.push(CarriedState { start, value, next: None });
        (Carried(index), value)
    }

    /// Sets the value for the next iteration.
    pub fn carry(&mut self, carried: Carried, next: Value) {
        // The next value must be the result of an instruction, so that it can be written to the register of the carried
        // value.
        let next = if self.origins[next.0 as usize] == Origin::Node { next } else { self.copy(next) };
        self.carried[carried.0].next = Some(next);
    }

    /// Assigns the following instructions to the block with this number among the blocks in flight. The scheduler can
    /// then stagger the blocks.
    pub fn block_in_flight(&mut self, number: u32) {
        self.lane = number;
    }

    /// The number of the block in flight to which the following instructions belong.
    pub fn current_block(&self) -> u32 {
        self.lane
    }

    /// Returns a value that either of two alternatives can compute. The scheduler chooses the alternative that balances the pipes.
    pub fn either(
        &mut self,
        a: impl FnOnce(&mut Flow) -> Value,
        b: impl FnOnce(&mut Flow) -> Value,
    ) -> Value {
        let start = self.nodes.len();
        let first = a(self);
        let middle = self.nodes.len();
        let second = b(self);
        let choice = Choice { nodes: [start..middle, middle..self.nodes.len()], values: [first, second] };
        self.choices.push(choice);
        let index = self.choices.len() - 1;
        self.value(Origin::Choice(index))
    }

    fn node(&mut self, op: Op, sources: [Option<Value>; 3], imm: i32) -> Value {
        let out = self.value(Origin::Node);
        self.nodes.push(Node { op, out: Some(out), sources, imm, lane: self.lane });
        out
    }

    fn two(&mut self, op: Op, a: Value, b: Value) -> Value {
        self.node(op, [Some(a), Some(b), None], 0)
    }

    fn with(&mut self, op: Op, a: Value, imm: i32) -> Value {
        self.node(op, [Some(a), None, None], imm)
    }

    /// A copy of the value in another register.
    pub fn copy(&mut self, a: Value) -> Value {
        self.with(Op::Ori, a, 0)
    }

    /// Bitwise exclusive or of quadwords.
    pub fn xor(&mut self, a: Value, b: Value) -> Value {
        self.two(Op::Xor, a, b)
    }

    /// Exclusive or of all values.
    pub fn sum(&mut self, values: &[Value]) -> Value {
        let (&first, rest) = values.split_first().expect("something to add");
        rest.iter().fold(first, |sum, &value| self.xor(sum, value))
    }

    /// Bitwise and of quadwords.
    pub fn and(&mut self, a: Value, b: Value) -> Value {
        self.two(Op::And, a, b)
    }

    /// Bitwise and with the complement of `b`.
    pub fn and_not(&mut self, a: Value, b: Value) -> Value {
        self.two(Op::Andc, a, b)
    }

    /// Bitwise and of each byte with a mask.
    pub fn and_bytes(&mut self, a: Value, mask: u8) -> Value {
        self.with(Op::Andbi, a, i32::from(mask as i8))
    }

    /// Bitwise exclusive or of each byte with a constant.
    pub fn xor_bytes(&mut self, a: Value, byte: u8) -> Value {
        self.with(Op::Xorbi, a, i32::from(byte as i8))
    }

    /// The sum of each word, modulo 2^32.
    pub fn add_words(&mut self, a: Value, b: Value) -> Value {
        self.two(Op::A, a, b)
    }

    /// Sums of words and a small constant.
    pub fn add_to_words(&mut self, a: Value, imm: i32) -> Value {
        self.with(Op::Ai, a, imm)
    }

    /// The bits of `a` where the mask is zero, and the bits of `b` where the mask is one.
    pub fn select(&mut self, a: Value, b: Value, mask: Value) -> Value {
        self.node(Op::Selb, [Some(a), Some(b), Some(mask)], 0)
    }

    /// For each byte: 0xff if its top bit is set, else 0.
    pub fn top_bit_set(&mut self, a: Value) -> Value {
        self.with(Op::Clgtbi, a, 0x7f)
    }

    /// For each byte: 0xff if its top bit is clear, else 0.
    pub fn top_bit_clear(&mut self, a: Value) -> Value {
        self.with(Op::Cgtbi, a, -1)
    }

    /// For each byte: 0xff if it equals `byte`, else 0.
    pub fn bytes_equal(&mut self, a: Value, byte: u8) -> Value {
        self.with(Op::Ceqbi, a, i32::from(byte as i8))
    }

    /// Each word rotated left by `bits` bits.
    pub fn rotate_words(&mut self, a: Value, bits: i32) -> Value {
        self.with(Op::Roti, a, bits)
    }

    /// Each word shifted left by `bits` bits.
    pub fn shift_words_left(&mut self, a: Value, bits: i32) -> Value {
        self.with(Op::Shli, a, bits)
    }

    /// Each word shifted right by `bits` bits, filled with zeros.
    pub fn shift_words_right(&mut self, a: Value, bits: i32) -> Value {
        self.with(Op::Rotmi, a, -bits)
    }

    /// Bytes selected from two registers; see the instruction `shufb`.
    pub fn shuffle(&mut self, a: Value, b: Value, control: Value) -> Value {
        self.node(Op::Shufb, [Some(a), Some(b), Some(control)], 0)
    }

    /// A permutation of the bytes of one register.
    pub fn permute(&mut self, a: Value, control: [u8; 16]) -> Value {
        let control = self.constant(control);
        self.shuffle(a, a, control)
    }

    /// Gathers the lowest bits of the 16 bytes into the low 16 bits of the preferred slot. The bit of byte 0 is leftmost.
    pub fn gather_low_bits(&mut self, a: Value) -> Value {
        self.node(Op::Gbb, [Some(a), None, None], 0)
    }

    /// Expands each of the low 16 bits of the preferred slot to a byte of ones or zeros, the leftmost bit first.
    pub fn spread_bits(&mut self, a: Value) -> Value {
        self.node(Op::Fsmb, [Some(a), None, None], 0)
    }

    /// A quadword shifted left by up to 7 bits.
    pub fn shift_left(&mut self, a: Value, bits: i32) -> Value {
        self.with(Op::Shlqbii, a, bits)
    }

    /// A quadword rotated left by up to 7 bits.
    pub fn rotate_left(&mut self, a: Value, bits: i32) -> Value {
        self.with(Op::Rotqbii, a, bits)
    }

    /// A quadword shifted right by up to 7 bits.
    pub fn shift_right(&mut self, a: Value, bits: i32) -> Value {
        self.with(Op::Rotqmbii, a, -bits)
    }

    /// A quadword rotated left by bytes.
    pub fn rotate_bytes(&mut self, a: Value, bytes: i32) -> Value {
        self.with(Op::Rotqbyi, a, bytes)
    }

    /// Loads a quadword. Its address is the preferred slot of `base` plus a constant.
    ///
    /// A kernel must not store to an address that it loads from, unless the store depends on the load. The scheduler
    /// moves loads before the stores of other iterations.
    pub fn load_at(&mut self, base: Value, offset: i32) -> Value {
        self.with(Op::Lqd, base, offset >> 4)
    }

    /// Stores a quadword. Its address is the preferred slot of `base` plus a constant.
    pub fn store_at(&mut self, value: Value, base: Value, offset: i32) {
        let sources = [Some(base), None, Some(value)];
        self.nodes.push(Node { op: Op::Stqd, out: None, sources, imm: offset >> 4, lane: self.lane });
    }
}
