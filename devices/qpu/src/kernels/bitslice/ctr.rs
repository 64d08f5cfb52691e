//! The program for CTR. It computes the planes of the counter blocks, and combines the result with the data.

use super::ops::Ops;
use super::rounds::Round;
use super::state::{Half, State, add_to, wait_for_load, wait_for_store};
use crate::compiler::{Code, Input, Read, Variable};
use crate::isa::{AddOp, BranchCondition, Condition};
use crate::lang::{Int, Kernel, element, uniform};

/// The bits of the numbers 0 to 31, as planes.
const NUMBERS: [u32; 5] = [0xaaaa_aaaa, 0xcccc_cccc, 0xf0f0_f0f0, 0xff00_ff00, 0xffff_0000];

/// Number of rounds of a unit that are executed before the second half of the previous unit is combined with its data.
const EARLY_ROUNDS: u32 = 4;

/// CTR with a counter of 32 bits.
///
/// The uniforms are, in this order: the number of the QPU; the number of QPUs; the address of the round keys; the number of
/// rounds minus one; the addresses of input and output; the number of units; the counter of the first block, which is a
/// multiple of 32; the difference to the counter of the next unit of this QPU; and the address of three vectors. Each round key
/// has 16 words. The highest eight bits of each word contain one byte of the key. The address of the first round key is a
/// multiple of 4096, and each further round key is 256 bytes after the previous one. The program may read memory before the
/// input and write memory before the output, up to the bytes of one unit for each QPU. The first vector contains, in the
/// highest bits, the first round key XORed with the bytes of the counter block; for this XOR, the last four bytes of the
/// counter block are zero. The second vector contains, for each byte of the block, the number of bits by which the counter is
/// shifted left. The third vector contains 0xff000000 for the last four bytes, and zero for all other bytes. The constant of
/// the S-box has been XORed into all round keys except the first.
pub fn ctr() -> Code {
    let mut k = Kernel::new();
    let keys = k.var(uniform() + (element() << 2));
    let rounds = k.var(uniform());
    let [input, output, units, counter, counter_step] = std::array::from_fn(|_| k.var(uniform()).variable());
    let vectors = k.var(uniform() + (element() << 2));
    for number in 0..3 {
        k.gather(vectors + 64 * number);
    }
    let vectors = std::array::from_fn(|_| k.receive::<Int>().variable());
    let me = k.me();
    let ops = &mut Ops { code: k.code() };
    let state = State::new(ops, me, keys, rounds);
    let unit = ops.code.label();
    ops.code.place(unit);
    counter_planes(ops, &state, counter, vectors);
    add_to(ops, counter, counter_step);
    start_second(ops, &state, input, counter_step, Some(state.planes[7]));
    state.first_key(ops, 1);
    state.call(ops, EARLY_ROUNDS);
    finish_second(ops, &state, output, counter_step);
    state.call_rest(ops, EARLY_ROUNDS);
    wait_for_store(ops, None);
    state.start_load(ops, input);
    let planes = state.last_round(ops, Round::EncryptLast);
    // The load takes about 200 clocks, so the program waits for it only here.
    wait_for_load(ops, Some(planes[0]));
    state.set_up_reads(ops);
    state.set_up_writes(ops);
    state.to_bytes(ops, planes);
    state.combine(ops, Half::First);
    state.start_store(ops, output);
    let step = step(ops, counter_step);
    add_to(ops, input, step);
    add_to(ops, output, step);
    ops.count_down(units);
    ops.code.branch(BranchCondition::AnyNotZero, unit);
    start_second(ops, &state, input, counter_step, None);
    finish_second(ops, &state, output, counter_step);
    wait_for_store(ops, None);
    let end = ops.code.label();
    ops.code.branch(BranchCondition::Always, end);
    state.subroutine(ops, Round::Encrypt);
    k.code().place(end);
    k.finish()
}

/// The number of bytes from a unit of this QPU to its next unit: 16 for each block.
fn step(ops: &mut Ops<'_>, counter_step: Variable) -> Variable {
    ops.with_small(AddOp::Shl, counter_step, 4)
}

/// Computes the bit planes of 32 counter blocks, XORed with the first round key.
fn counter_planes(ops: &mut Ops<'_>, state: &State, counter: Variable, vectors: [Variable; 3]) {
    let [start, shifts, mask] = vectors;
    let shifted = ops.add_op(AddOp::Shl, counter, shifts);
    let masked = ops.and(shifted, mask);
    let bytes = ops.xor(masked, start);
    for pair in (0..4).rev() {
        // Shifting left by n sets C to bit 32 - n and N to bit 31 - n.
        ops.flags(AddOp::Shl, Input::Variable(bytes), 7 - 2 * pair as u32);
        for (plane, condition) in [(2 * pair + 1, Condition::Carry), (2 * pair, Condition::Negative)] {
            ops.set_small_if(state.planes[plane], 0, Condition::Always);
            ops.set_small_if(state.planes[plane], u32::MAX, condition);
        }
    }
    // The number of a block within its unit is XORed into the last byte of the counter.
    ops.flags(AddOp::Sub, Input::Read(Read::Element), 15);
    for (plane, number) in state.planes.into_iter().zip(NUMBERS) {
        let number = ops.constant(number);
        ops.xor_if(plane, number, Condition::Zero);
    }
}

/// Starts the load of the data for the second half of the previous unit, after the last store has ended.
fn start_second(
    ops: &mut Ops<'_>,
    state: &State,
    input: Variable,
    counter_step: Variable,
    after: Option<Variable>,
) {
    wait_for_store(ops, after);
    let address = second_before(ops, state, input, counter_step);
    state.start_load(ops, address);
}

/// XORs the keystream of the second half of the previous unit with its data, and starts the store of the result.
fn finish_second(ops: &mut Ops<'_>, state: &State, output: Variable, counter_step: Variable) {
    let address = second_before(ops, state, output, counter_step);
    wait_for_load(ops, None);
    state.set_up_reads(ops);
    state.set_up_writes(ops);
    state.combine(ops, Half::Second);
    state.start_store(ops, address);
}

/// The address of the second half of the previous unit.
fn second_before(ops: &mut Ops<'_>, state: &State, address: Variable, counter_step: Variable) -> Variable {
    let step = step(ops, counter_step);
    let before = ops.add_op(AddOp::Sub, address, step);
    state.second(ops, before)
}
