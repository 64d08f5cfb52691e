//! The programs: loops over units of 32 blocks.
//!
//! A QPU has four rows of the VPM, so that the data of a unit are loaded and stored in halves. The second half of a unit is combined
//! with its data between rounds of the next unit, so that no transfer is waited for.

use super::ops::Ops;
use super::rounds::{Planes, ROWS, Round, round};
use super::transpose::transposed;
use crate::compiler::{Code, Input, Item, Read, Variable, Write};
use crate::isa::{AddOp, BranchCondition, Condition};
use crate::lang::{Int, Kernel, element, uniform};

/// Bytes of 32 blocks.
pub const UNIT: usize = 512;

/// Bytes from a round key in memory to the next: so many that adding one to a byte of an address moves on. It is also half of a unit.
pub const KEY_STRIDE: u32 = 256;

/// Setups without the rows of a QPU: 16 reads of 16 consecutive bytes of the VPM, which is also a setup of writes; loads and stores
/// of four rows of 64 bytes.
const VECTORS: u32 = 1 << 12 | 1 << 11;
const LOAD: u32 = 1 << 31 | 3 << 24 | 4 << 16 | 1 << 12;
const STORE: u32 = 1 << 31 | 4 << 23 | 16 << 16 | 1 << 14;

/// The bits of the numbers 0 to 31 as planes.
const NUMBERS: [u32; 5] = [0xaaaa_aaaa, 0xcccc_cccc, 0xf0f0_f0f0, 0xff00_ff00, 0xffff_0000];

/// Rounds between the start of a unit and the second half of the one before.
const EARLY_ROUNDS: u32 = 4;

/// What the program needs all the time.
struct State {
    /// The setups of the rows of this QPU: for reads and writes of the VPM, for DMA loads and stores.
    vpm: Variable,
    load: Variable,
    store: Variable,
    /// The addresses of the first round key, for each element, and of the next one that is requested.
    keys: Variable,
    next_key: Variable,
    key_stride: Variable,
    /// The number of rounds before the last one.
    rounds: Variable,
    /// Rounds until the return, and where that goes.
    count: Variable,
    link: Variable,
    planes: Planes,
    /// What tells the rows of a column apart: see [`super::rounds::ROWS`].
    rows: Variable,
    /// The bytes of the blocks, eight registers of four.
    bytes: Planes,
    /// Addresses of the unit.
    input: Variable,
    output: Variable,
}

/// CTR with a counter of 32 bits.
///
/// Uniforms after the number of the QPU and of QPUs: the address of the round keys, each of which has 16 words with a byte in their
/// highest bits and is 256 bytes after the one before; the number of rounds minus one; the addresses of input and output, before
/// each of which are as many bytes as one unit for each QPU has, which may be read and written; the number of units; the counter
/// of the first block, a multiple of 32, and the difference to that of the next unit of this QPU; the address of three vectors: the first round key XORed with the bytes of the
/// counter block (zero for the last four), all in the highest bits; by how many bits the counter is shifted left for each byte of the
/// block; and 0xff000000 for the last four bytes, zero for the others.
pub fn ctr() -> Code {
    let mut k = Kernel::new();
    let keys = k.var(uniform() + (element() << 2));
    let rounds = k.var(uniform());
    let (input, output) = (k.var(uniform()), k.var(uniform()));
    let units = k.var(uniform());
    let (counter, counter_step) = (k.var(uniform()), k.var(uniform()));
    let vectors = k.var(uniform() + (element() << 2));
    for number in 0..3 {
        k.gather(vectors + 64 * number);
    }
    let [start, shifts, mask] = std::array::from_fn(|_| k.receive::<Int>());
    let rows = k.me().variable();
    let ops = &mut Ops { code: k.code() };
    let state =
        State::new(ops, rows, keys.variable(), rounds.variable(), [input.variable(), output.variable()]);
    let (counter, counter_step) = (counter.variable(), counter_step.variable());
    let (unit, rounds_label) = (ops.code.label(), ops.code.label());
    ops.code.place(unit);
    state.counter_planes(ops, counter, [start.variable(), shifts.variable(), mask.variable()]);
    add(ops, counter, counter_step);
    state.start_second(ops, counter_step, Some(state.planes[7]));
    state.first_key(ops);
    state.call(ops, rounds_label, EARLY_ROUNDS);
    state.finish_second(ops, counter_step);
    state.call_rest(ops, rounds_label);
    state.last_round(ops, Round::EncryptLast);
    // 16 bytes for each block.
    let step = ops.with_small(AddOp::Shl, counter_step, 4);
    add(ops, state.input, step);
    add(ops, state.output, step);
    ops.count_down(units.variable());
    ops.code.branch(BranchCondition::AnyNotZero, unit);
    state.start_second(ops, counter_step, None);
    state.finish_second(ops, counter_step);
    ops.wait_after(Read::StoreWait, None);
    let end = ops.code.label();
    ops.code.branch(BranchCondition::Always, end);
    state.subroutine(ops, rounds_label, Round::Encrypt);
    k.code().place(end);
    k.finish()
}

/// Adds a variable to another one.
fn add(ops: &mut Ops<'_>, to: Variable, number: Variable) {
    ops.add_op(AddOp::Add, to, number);
    ops.last_to(to);
}

impl State {
    /// Sets what does not change. The second half before the first unit has zeros.
    fn new(
        ops: &mut Ops<'_>,
        me: Variable,
        keys: Variable,
        rounds: Variable,
        addresses: [Variable; 2],
    ) -> State {
        let [input, output] = addresses;
        let row_of = |ops: &mut Ops<'_>, word: u32, shift: u32| {
            let word = ops.constant(word);
            let rows = ops.with_small(AddOp::Shl, me, shift);
            ops.add_op(AddOp::Or, word, rows)
        };
        // Row 4 me: in units of bytes of 4 x 16 for the VPM, at bit 4 for loads and at bit 7 for stores.
        let vpm = row_of(ops, VECTORS, 4);
        let (load, store) = (row_of(ops, LOAD, 6), row_of(ops, STORE, 9));
        let no_gap = ops.constant(0xc000_0000);
        ops.write(Write::StoreSetup, no_gap);
        let key_stride = ops.constant(KEY_STRIDE);
        let next_key = ops.code.variable();
        let planes = std::array::from_fn(|_| ops.code.variable());
        let bytes: Planes = std::array::from_fn(|_| ops.constant(0));
        let (count, link) = (ops.code.variable(), ops.code.variable());
        let rows = ops.code.variable();
        let element = ops.element();
        let row = ops.with_small(AddOp::And, element, 3);
        let words = ROWS.map(|word| ops.constant(word));
        ops.set(rows, words[0]);
        for number in 1..4 {
            ops.flags(AddOp::Sub, Input::Variable(row), number);
            ops.set_if(rows, words[number as usize], Condition::Zero);
        }
        State {
            vpm,
            load,
            store,
            keys,
            next_key,
            key_stride,
            rounds,
            count,
            link,
            planes,
            rows,
            bytes,
            input,
            output,
        }
    }

    /// The planes of 32 counter blocks after the first round key.
    fn counter_planes(&self, ops: &mut Ops<'_>, counter: Variable, vectors: [Variable; 3]) {
        let [start, shifts, mask] = vectors;
        let shifted = ops.add_op(AddOp::Shl, counter, shifts);
        let masked = ops.and(shifted, mask);
        let bytes = ops.xor(masked, start);
        for pair in (0..4).rev() {
            ops.flags(AddOp::Shl, Input::Variable(bytes), 7 - 2 * pair as u32);
            for (plane, condition) in [(2 * pair + 1, Condition::Carry), (2 * pair, Condition::Negative)] {
                ops.set_small_if(self.planes[plane], 0, Condition::Always);
                ops.set_small_if(self.planes[plane], u32::MAX, condition);
            }
        }
        // The last byte counts the blocks.
        ops.flags(AddOp::Sub, Input::Read(Read::Element), 15);
        for (plane, number) in self.planes.into_iter().zip(NUMBERS) {
            let number = ops.constant(number);
            ops.xor_if(plane, number, Condition::Zero);
        }
    }

    /// Requests the round key of the first round.
    fn first_key(&self, ops: &mut Ops<'_>) {
        ops.sum(self.keys, self.key_stride);
        ops.last_to(self.next_key);
        self.request_key(ops);
    }

    fn request_key(&self, ops: &mut Ops<'_>) {
        ops.write(Write::Tmu, self.next_key);
        // The addresses of the keys differ in one byte, which does not overflow.
        ops.sum(self.next_key, self.key_stride);
        ops.last_to(self.next_key);
    }

    /// Starts the load of the data of the second half of the unit before, when the last store has ended.
    fn start_second(&self, ops: &mut Ops<'_>, counter_step: Variable, after: Option<Variable>) {
        ops.wait_after(Read::StoreWait, after);
        ops.write(Write::LoadSetup, self.load);
        let address = self.second(ops, self.input, counter_step);
        ops.write(Write::LoadAddress, address);
    }

    /// Combines that half with its data, and starts its store.
    fn finish_second(&self, ops: &mut Ops<'_>, counter_step: Variable) {
        let address = self.second(ops, self.output, counter_step);
        ops.wait_after(Read::LoadWait, None);
        self.set_up_vectors(ops);
        self.combine(ops, 2);
        ops.write(Write::StoreAddress, address);
    }

    /// The address of the second half of the unit before.
    fn second(&self, ops: &mut Ops<'_>, address: Variable, counter_step: Variable) -> Variable {
        let step = ops.with_small(AddOp::Shl, counter_step, 4);
        let before = ops.add_op(AddOp::Sub, address, step);
        // 256 bytes are half of a unit.
        ops.add_op(AddOp::Add, before, self.key_stride)
    }

    fn set_up_vectors(&self, ops: &mut Ops<'_>) {
        ops.write(Write::LoadSetup, self.vpm);
        ops.write(Write::StoreSetup, self.vpm);
    }

    /// Combines half of the bytes with the data in the VPM.
    fn combine(&self, ops: &mut Ops<'_>, first: u8) {
        for byte in [first, first + 1] {
            self.bytes.into_iter().for_each(|register| ops.xor_byte_to_vpm(register, byte));
        }
        ops.write(Write::StoreSetup, self.store);
    }

    fn call(&self, ops: &mut Ops<'_>, rounds: crate::compiler::Label, count: u32) {
        ops.set_small_if(self.count, count, Condition::Always);
        ops.code.items.push(Item::Call { target: rounds, link: self.link });
    }

    fn call_rest(&self, ops: &mut Ops<'_>, rounds: crate::compiler::Label) {
        ops.with_small(AddOp::Sub, self.rounds, EARLY_ROUNDS);
        ops.last_to(self.count);
        ops.code.items.push(Item::Call { target: rounds, link: self.link });
    }

    /// Some rounds, as many as `count` says.
    fn subroutine(&self, ops: &mut Ops<'_>, label: crate::compiler::Label, kind: Round) {
        ops.code.place(label);
        self.request_key(ops);
        ops.receive();
        round(ops, self.planes, self.rows, kind);
        ops.count_down(self.count);
        ops.code.branch(BranchCondition::AnyNotZero, label);
        ops.code.items.push(Item::Return(self.link));
    }

    /// The last round, and the first half of the result.
    fn last_round(&self, ops: &mut Ops<'_>, kind: Round) {
        ops.wait_after(Read::StoreWait, None);
        ops.write(Write::LoadSetup, self.load);
        ops.write(Write::LoadAddress, self.input);
        ops.receive();
        let planes = round(ops, self.planes, self.rows, kind);
        // Not earlier: the load takes about 200 clocks.
        ops.wait_after(Read::LoadWait, Some(planes[0]));
        self.set_up_vectors(ops);
        transposed(ops, planes, self.bytes);
        self.combine(ops, 0);
        ops.write(Write::StoreAddress, self.output);
    }
}
