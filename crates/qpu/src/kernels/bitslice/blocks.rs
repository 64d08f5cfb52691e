//! ECB, and CBC and CFB decryption: blocks are read, and the result is written, or combined with other data.

use super::ops::Ops;
use super::rounds::{Planes, Round, add_key};
use super::state::{Half, State, add_to, wait_for_load, wait_for_store};
use super::transpose::transposed;
use crate::compiler::{Code, Variable};
use crate::isa::{AddOp, BranchCondition};
use crate::lang::{Kernel, element, uniform};

/// What a program does with blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Blocks {
    /// True if blocks are decrypted.
    pub decrypts: bool,
    /// True if the result is XORed with other data: those before the block for CBC decryption, or the input for CFB decryption,
    /// where the blocks are those before.
    pub combines: bool,
}

/// Where a program is in memory, and by how much it moves on.
struct Places {
    input: Variable,
    output: Variable,
    /// The data that the result is combined with.
    other: Variable,
    step: Variable,
    /// The blocks of the next unit: eight registers of four bytes.
    next: Planes,
}

/// Blocks, each encrypted or decrypted.
///
/// The uniforms are the number of the QPU; the number of QPUs; the address of the round keys in the order in which they are added, each of
/// which has 16 words with a byte in their highest bits and is 256 bytes after the one before, the first at a multiple of 4096; the
/// number of rounds minus one; the addresses of input, output and of the data that the result is combined with (any, if it is not);
/// before each output and other data, and after each input, are as many bytes as one unit for each QPU has, which may be read and
/// written; the number of units; and bytes from a unit of this QPU to the next. The constant of the S-box is part of the round keys:
/// for encryption of all but the first, for decryption of all but the last.
///
/// If the result is combined, output and the other data must not overlap.
pub fn blocks(kind: Blocks) -> Code {
    let mut k = Kernel::new();
    let keys = k.var(uniform() + (element() << 2));
    let rounds = k.var(uniform());
    let [input, output, other, units, step] = std::array::from_fn(|_| k.var(uniform()).variable());
    let me = k.me();
    let ops = &mut Ops { code: k.code() };
    let state = State::new(ops, me, keys, rounds);
    let next = std::array::from_fn(|_| ops.constant(0));
    let places = Places { input, output, other, step, next };
    let (round, last) = match kind.decrypts {
        true => (Round::Decrypt, Round::DecryptLast),
        false => (Round::Encrypt, Round::EncryptLast),
    };
    for half in [Half::First, Half::Second] {
        places.start_input(ops, &state, half);
        wait_for_load(ops, None);
        places.finish_input(ops, &state, half);
    }
    let unit = ops.code.label();
    ops.code.place(unit);
    add_to(ops, input, step);
    start_unit(ops, &state, &places);
    let executed = transfers(ops, &state, &places, kind.combines);
    state.call_rest(ops, executed);
    wait_for_load(ops, None);
    places.finish_input(ops, &state, Half::Second);
    state.last_round(ops, last, |_, _| ());
    for address in [output, other] {
        add_to(ops, address, step);
    }
    ops.count_down(units);
    ops.code.branch(BranchCondition::AnyNotZero, unit);
    for half in [Half::First, Half::Second] {
        if kind.combines {
            places.start_other(ops, &state, half);
            wait_for_load(ops, None);
        }
        places.result(ops, &state, half, kind.combines);
        wait_for_store(ops, None);
    }
    let end = ops.code.label();
    ops.code.branch(BranchCondition::Always, end);
    state.subroutine(ops, round);
    k.code().place(end);
    k.finish()
}

/// The planes of the next unit after the first round key.
fn start_unit(ops: &mut Ops<'_>, state: &State, places: &Places) {
    state.first_key(ops, 0);
    state.request_key(ops);
    let planes = std::array::from_fn(|_| ops.code.variable());
    transposed(ops, places.next, planes);
    ops.receive();
    add_key(ops, planes);
    for (to, plane) in state.planes.into_iter().zip(planes) {
        ops.set(to, plane);
    }
}

/// The transfers between the rounds of a unit: the result of the unit before, and the input of the next. Returns the number of
/// rounds between them; after it, the load of the second half of the input is to be finished.
fn transfers(ops: &mut Ops<'_>, state: &State, places: &Places, combines: bool) -> u32 {
    if combines {
        places.start_other(ops, state, Half::First);
        state.call(ops, 1);
        wait_for_load(ops, None);
        places.result(ops, state, Half::First, true);
        state.call(ops, 1);
        wait_for_store(ops, None);
        places.start_other(ops, state, Half::Second);
        state.call(ops, 1);
        wait_for_load(ops, None);
        places.result(ops, state, Half::Second, true);
        state.call(ops, 1);
    } else {
        places.result(ops, state, Half::First, false);
        state.call(ops, 2);
        wait_for_store(ops, None);
        places.result(ops, state, Half::Second, false);
        state.call(ops, 2);
    }
    wait_for_store(ops, None);
    places.start_input(ops, state, Half::First);
    state.call(ops, 2);
    wait_for_load(ops, None);
    places.finish_input(ops, state, Half::First);
    places.start_input(ops, state, Half::Second);
    6
}

impl Places {
    /// Starts the load of a half of the next unit.
    fn start_input(&self, ops: &mut Ops<'_>, state: &State, half: Half) {
        let address = self.half(ops, state, self.input, half);
        state.start_load(ops, address);
    }

    fn finish_input(&self, ops: &mut Ops<'_>, state: &State, half: Half) {
        state.set_up_reads(ops);
        State::read(ops, half, self.next);
    }

    /// Starts the load of what a half of the unit before is combined with.
    fn start_other(&self, ops: &mut Ops<'_>, state: &State, half: Half) {
        let before = ops.add_op(AddOp::Sub, self.other, self.step);
        let address = self.half(ops, state, before, half);
        state.start_load(ops, address);
    }

    /// Writes a half of the unit before, and starts its store.
    fn result(&self, ops: &mut Ops<'_>, state: &State, half: Half, combines: bool) {
        state.set_up_writes(ops);
        if combines {
            state.set_up_reads(ops);
            state.combine(ops, half);
        } else {
            state.write(ops, half);
        }
        let before = ops.add_op(AddOp::Sub, self.output, self.step);
        let address = self.half(ops, state, before, half);
        state.start_store(ops, address);
    }

    fn half(&self, ops: &mut Ops<'_>, state: &State, address: Variable, half: Half) -> Variable {
        match half {
            Half::First => address,
            Half::Second => state.second(ops, address),
        }
    }
}
