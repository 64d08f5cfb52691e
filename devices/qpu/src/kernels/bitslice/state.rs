//! Common parts of the bitsliced programs: variables that keep their values during the whole program, round keys, and the
//! transfers of a QPU.
//!
//! A QPU uses four rows of the VPM, so the data of a unit are loaded and stored in two halves. The programs start the transfers
//! between rounds, so that the rounds hide the time of the transfers.

use super::ops::Ops;
use super::rounds::{Planes, ROWS, Round, round};
use super::transpose::transposed;
use crate::compiler::{Input, Item, Label, Read, Variable, Write};
use crate::isa::{AddOp, BranchCondition, Condition};
use crate::lang::{Int, Var};

/// Number of bytes of a unit, which has 32 blocks.
pub const UNIT: usize = 512;

/// Number of bytes from a round key in memory to the next round key. With this number, adding one to one byte of an address
/// gives the address of the next key. The number is also half of the bytes of a unit.
pub const KEY_STRIDE: u32 = 256;

/// Words for setups, without the bits for the rows of a QPU. VECTORS sets up 16 reads or writes of 16 consecutive bytes of the
/// VPM. LOAD and STORE set up transfers of four rows of 64 bytes.
const VECTORS: u32 = 1 << 12 | 1 << 11;
const LOAD: u32 = 1 << 31 | 3 << 24 | 4 << 16 | 1 << 12;
const STORE: u32 = 1 << 31 | 4 << 23 | 16 << 16 | 1 << 14;

/// A half of a unit. It contains 16 blocks, which occupy two bytes of each element of eight registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    First,
    Second,
}

impl Half {
    fn bytes(self) -> [u8; 2] {
        match self {
            Half::First => [0, 1],
            Half::Second => [2, 3],
        }
    }
}

/// The variables that keep their values during the whole program.
pub(super) struct State {
    /// The setups for the rows of this QPU: for reads and writes of the VPM, and for DMA loads and stores.
    vpm: Variable,
    load: Variable,
    store: Variable,
    /// The addresses of the first round key, for each element, and the addresses of the next round key that is requested.
    keys: Variable,
    next_key: Variable,
    key_stride: Variable,
    /// The number of rounds before the last one.
    rounds: Variable,
    /// The number of rounds until the subroutine returns, and the return address.
    count: Variable,
    link: Variable,
    /// The label of the subroutine with the rounds.
    subroutine: Label,
    pub(super) planes: Planes,
    /// A constant that distinguishes the rows of a column: see [`ROWS`].
    rows: Variable,
    /// The bytes of the last computed blocks: eight registers, with four bytes in each element.
    pub(super) bytes: Planes,
}

impl State {
    /// Sets the values that do not change. The blocks before the first unit are zero.
    pub(super) fn new(ops: &mut Ops<'_>, me: Var<Int>, keys: Var<Int>, rounds: Var<Int>) -> State {
        let row_of = |ops: &mut Ops<'_>, word: u32, shift: u32| {
            let word = ops.constant(word);
            let rows = ops.with_small(AddOp::Shl, me.variable(), shift);
            ops.add_op(AddOp::Or, word, rows)
        };
        // The rows of a QPU start at row 4 * me, and contain 16 vectors of bytes. The number of the row is at bit 4 of the word
        // for loads, and at bit 7 of the word for stores.
        let vpm = row_of(ops, VECTORS, 4);
        let (load, store) = (row_of(ops, LOAD, 6), row_of(ops, STORE, 9));
        // There are no bytes between stored rows.
        let no_gap = ops.constant(0xc000_0000);
        ops.write(Write::StoreSetup, no_gap);
        State {
            vpm,
            load,
            store,
            keys: keys.variable(),
            next_key: ops.code.variable(),
            key_stride: ops.constant(KEY_STRIDE),
            rounds: rounds.variable(),
            count: ops.code.variable(),
            link: ops.code.variable(),
            subroutine: ops.code.label(),
            planes: std::array::from_fn(|_| ops.code.variable()),
            rows: rows(ops),
            bytes: std::array::from_fn(|_| ops.constant(0)),
        }
    }

    /// Requests the round key with number 0 or 1. Later requests are for the keys that follow it.
    pub(super) fn first_key(&self, ops: &mut Ops<'_>, number: u8) {
        match number {
            0 => ops.set(self.next_key, self.keys),
            _ => {
                ops.sum(self.keys, self.key_stride);
                ops.last_to(self.next_key);
            }
        }
        self.request_key(ops);
    }

    /// Requests the next round key.
    pub(super) fn request_key(&self, ops: &mut Ops<'_>) {
        ops.write(Write::Tmu, self.next_key);
        // The addresses of the keys differ in one byte only, and this byte does not overflow.
        ops.sum(self.next_key, self.key_stride);
        ops.last_to(self.next_key);
    }

    /// Starts the load of a half from an address.
    pub(super) fn start_load(&self, ops: &mut Ops<'_>, address: Variable) {
        ops.write(Write::LoadSetup, self.load);
        ops.write(Write::LoadAddress, address);
    }

    /// Starts the store of a half to an address.
    pub(super) fn start_store(&self, ops: &mut Ops<'_>, address: Variable) {
        ops.write(Write::StoreSetup, self.store);
        ops.write(Write::StoreAddress, address);
    }

    /// Sets up 16 reads of vectors.
    pub(super) fn set_up_reads(&self, ops: &mut Ops<'_>) {
        ops.write(Write::LoadSetup, self.vpm);
    }

    /// Sets up writes of vectors.
    pub(super) fn set_up_writes(&self, ops: &mut Ops<'_>) {
        ops.write(Write::StoreSetup, self.vpm);
    }

    /// Writes a half of the blocks to the VPM, XORed with the vectors that are in the VPM.
    pub(super) fn combine(&self, ops: &mut Ops<'_>, half: Half) {
        for byte in half.bytes() {
            self.bytes.into_iter().for_each(|register| ops.xor_byte_to_vpm(register, byte));
        }
    }

    /// Writes a half of the computed blocks to the VPM.
    pub(super) fn write(&self, ops: &mut Ops<'_>, half: Half) {
        for byte in half.bytes() {
            self.bytes.into_iter().for_each(|register| ops.byte_to_vpm(register, byte));
        }
    }

    /// Reads a half of the blocks from the VPM into eight registers.
    pub(super) fn read(ops: &mut Ops<'_>, half: Half, to: Planes) {
        for byte in half.bytes() {
            to.into_iter().for_each(|register| ops.byte_from_vpm(register, byte));
        }
    }

    /// Returns an address plus half of the bytes of a unit.
    pub(super) fn second(&self, ops: &mut Ops<'_>, address: Variable) -> Variable {
        ops.add_op(AddOp::Add, address, self.key_stride)
    }

    /// Executes a number of rounds.
    pub(super) fn call(&self, ops: &mut Ops<'_>, count: u32) {
        ops.set_small_if(self.count, count, Condition::Always);
        ops.code.items.push(Item::Call { target: self.subroutine, link: self.link });
    }

    /// Executes all rounds before the last round, except the `executed` rounds that have already been executed.
    pub(super) fn call_rest(&self, ops: &mut Ops<'_>, executed: u32) {
        ops.with_small(AddOp::Sub, self.rounds, executed);
        ops.last_to(self.count);
        ops.code.items.push(Item::Call { target: self.subroutine, link: self.link });
    }

    /// The subroutine that executes the requested number of rounds. The result is in [`State::planes`].
    pub(super) fn subroutine(&self, ops: &mut Ops<'_>, kind: Round) {
        ops.code.place(self.subroutine);
        self.request_key(ops);
        ops.receive();
        round(ops, self.planes, self.rows, kind);
        ops.count_down(self.count);
        ops.code.branch(BranchCondition::AnyNotZero, self.subroutine);
        ops.code.items.push(Item::Return(self.link));
    }

    /// The last round. [`State::to_bytes`] must transpose the result.
    pub(super) fn last_round(&self, ops: &mut Ops<'_>, kind: Round) -> Planes {
        ops.receive();
        round(ops, self.planes, self.rows, kind)
    }

    /// Converts planes to bytes, and puts them in [`State::bytes`].
    pub(super) fn to_bytes(&self, ops: &mut Ops<'_>, planes: Planes) {
        transposed(ops, planes, self.bytes);
    }
}

/// The words of [`ROWS`].
fn rows(ops: &mut Ops<'_>) -> Variable {
    let rows = ops.code.variable();
    let element = ops.element();
    let row = ops.with_small(AddOp::And, element, 3);
    let words = ROWS.map(|word| ops.constant(word));
    ops.set(rows, words[0]);
    for (number, word) in (0..).zip(words).skip(1) {
        ops.flags(AddOp::Sub, Input::Variable(row), number);
        ops.set_if(rows, word, Condition::Zero);
    }
    rows
}

/// Waits until the last store has ended. If a variable is given, the wait follows the computation of this variable.
pub(super) fn wait_for_store(ops: &mut Ops<'_>, after: Option<Variable>) {
    ops.wait_after(Read::StoreWait, after);
}

/// Waits until the last load has ended. If a variable is given, the wait follows the computation of this variable.
pub(super) fn wait_for_load(ops: &mut Ops<'_>, after: Option<Variable>) {
    ops.wait_after(Read::LoadWait, after);
}

/// Adds a variable to another one.
pub(super) fn add_to(ops: &mut Ops<'_>, to: Variable, number: Variable) {
    ops.add_op(AddOp::Add, to, number);
    ops.last_to(to);
}
