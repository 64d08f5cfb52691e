//! The programs for all passes that read blocks: ECB, CBC and CFB decryption, XTS, and serial passes over many messages.

use super::ops::Ops;
use super::rounds::{Planes, Round, add_key};
use super::state::{Half, State, add_to, wait_for_load, wait_for_store};
use super::transpose::transposed;
use crate::compiler::{Code, Variable, Write};
use crate::isa::{AddOp, BranchCondition};
use crate::lang::{Kernel, element, uniform};

/// Bytes of a plane of tweaks.
const BYTES_OF_PLANE: u32 = 64;

/// The data with which a program combines the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Combination {
    /// No data: ECB.
    None,
    /// The result is XORed with further data. For CBC decryption, these data are the previous ciphertext blocks. For CFB
    /// decryption, the previous ciphertext blocks are encrypted, and the further data are the input.
    Data,
    /// Input and result are XORed with a tweak: XTS.
    Tweak,
    /// The input is XORed with the result of the previous unit: CBC encryption of 32 messages.
    Chain,
}

/// The kind of a program for blocks: its direction, and the data with which it combines the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Blocks {
    /// True if blocks are decrypted.
    pub decrypts: bool,
    /// The data with which the blocks are combined.
    pub combination: Combination,
}

/// The current addresses of a program in memory, and the distances to the next unit.
struct Places {
    input: Variable,
    output: Variable,
    /// The address of the data with which the result is combined, or of the tweaks.
    other: Variable,
    step: Variable,
    /// The blocks of the next unit, in eight registers. Each element has four bytes.
    next: Planes,
    combination: Combination,
    /// For chains: the last result.
    last: Planes,
}

/// Encrypts or decrypts each block.
///
/// The uniforms are, in this order: the number of the QPU; the number of QPUs; the address of the round keys; the number of
/// rounds minus one; the addresses of the input, of the output, and of the data with which blocks are combined (any address for
/// ECB and chains); the number of units; and the number of bytes from a unit of this QPU to the next. The round keys are in the
/// order in which they are added. A round key has 16 words. The highest eight bits of each word contain one byte of the key.
/// The address of the first round key is a multiple of 4096, and each further round key is 256 bytes after the previous one.
/// The constant of the S-box has been XORed into the round keys: for encryption into all except the first, and for decryption
/// into all except the last.
///
/// The tweaks of a unit are eight vectors. Word i of vector b contains bit b of byte i of 32 tweaks.
///
/// The program may access memory outside the data, up to the number of bytes of one step. It may write before the output. It
/// may read before the data with which the result is combined, and after the input and the tweaks. The output and the other
/// data must not overlap.
pub fn blocks(kind: Blocks) -> Code {
    let mut k = Kernel::new();
    let keys = k.var(uniform() + (element() << 2));
    let rounds = k.var(uniform());
    let [input, output, other, units, step] = std::array::from_fn(|_| k.var(uniform()).variable());
    let me = k.me();
    let ops = &mut Ops { code: k.code() };
    let state = State::new(ops, me, keys, rounds);
    let next = std::array::from_fn(|_| ops.constant(0));
    let combination = kind.combination;
    let last = std::array::from_fn(|_| match combination {
        Combination::Chain => ops.constant(0),
        Combination::None | Combination::Data | Combination::Tweak => ops.code.variable(),
    });
    let places = Places { input, output, other, step, next, combination, last };
    if combination == Combination::Tweak {
        // The addresses of the words, one for each element.
        let element = ops.element();
        let offset = ops.with_small(AddOp::Shl, element, 2);
        add_to(ops, other, offset);
    }
    let (round, last_round) = match kind.decrypts {
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
    let executed = transfers(ops, &state, &places);
    state.call_rest(ops, executed);
    wait_for_load(ops, None);
    places.finish_input(ops, &state, Half::Second);
    places.finish_unit(ops, &state, last_round);
    for address in [output, other] {
        add_to(ops, address, step);
    }
    ops.count_down(units);
    ops.code.branch(BranchCondition::AnyNotZero, unit);
    for half in [Half::First, Half::Second] {
        if combination == Combination::Data {
            places.start_other(ops, &state, half);
            wait_for_load(ops, None);
        }
        places.result(ops, &state, half);
        wait_for_store(ops, None);
    }
    let end = ops.code.label();
    ops.code.branch(BranchCondition::Always, end);
    state.subroutine(ops, round);
    k.code().place(end);
    k.finish()
}

/// Computes the planes of the next unit, XORed with the first round key.
fn start_unit(ops: &mut Ops<'_>, state: &State, places: &Places) {
    state.first_key(ops, 0);
    let tweaks = Tweaks::request(ops, places);
    if tweaks.is_none() {
        state.request_key(ops);
    }
    let mut planes = std::array::from_fn(|_| ops.code.variable());
    transposed(ops, places.next, planes);
    if places.combination == Combination::Chain {
        planes = std::array::from_fn(|bit| ops.xor(planes[bit], places.last[bit]));
    }
    ops.receive();
    add_key(ops, planes);
    if let Some(tweaks) = tweaks {
        planes = tweaks.add(ops, planes);
        state.request_key(ops);
    }
    for (to, plane) in state.planes.into_iter().zip(planes) {
        ops.set(to, plane);
    }
}

/// The tweaks of a unit. The first tweaks have already been requested.
struct Tweaks {
    /// The address of the next vector that is requested.
    next: Variable,
    stride: Variable,
}

impl Tweaks {
    /// Number of requests that may be outstanding in addition to the request of a round key.
    const AHEAD: usize = 3;

    /// Requests the first tweaks, if there are any.
    fn request(ops: &mut Ops<'_>, places: &Places) -> Option<Tweaks> {
        if places.combination != Combination::Tweak {
            return None;
        }
        let mut tweaks = Tweaks { next: places.other, stride: ops.constant(BYTES_OF_PLANE) };
        (0..Tweaks::AHEAD).for_each(|_| tweaks.request_next(ops));
        Some(tweaks)
    }

    fn request_next(&mut self, ops: &mut Ops<'_>) {
        ops.write(Write::Tmu, self.next);
        self.next = ops.add_op(AddOp::Add, self.next, self.stride);
    }

    /// Receives all tweaks of the unit, and XORs them with the planes.
    fn add(mut self, ops: &mut Ops<'_>, planes: Planes) -> Planes {
        std::array::from_fn(|bit| {
            ops.receive();
            let sum = ops.xor_received(planes[bit]);
            if bit + Tweaks::AHEAD < planes.len() {
                self.request_next(ops);
            }
            sum
        })
    }
}

/// Makes the transfers between the rounds of a unit: writes the result of the previous unit, and loads the input of the next
/// unit. Returns the number of rounds that are executed between the transfers. After these rounds, the load of the second half
/// of the input must be completed.
fn transfers(ops: &mut Ops<'_>, state: &State, places: &Places) -> u32 {
    if places.combination == Combination::Data {
        places.start_other(ops, state, Half::First);
        state.call(ops, 1);
        wait_for_load(ops, None);
        places.result(ops, state, Half::First);
        state.call(ops, 1);
        wait_for_store(ops, None);
        places.start_other(ops, state, Half::Second);
        state.call(ops, 1);
        wait_for_load(ops, None);
        places.result(ops, state, Half::Second);
        state.call(ops, 1);
    } else {
        places.result(ops, state, Half::First);
        state.call(ops, 2);
        wait_for_store(ops, None);
        places.result(ops, state, Half::Second);
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
    /// The last round of a unit. The result is combined and converted to bytes.
    fn finish_unit(&self, ops: &mut Ops<'_>, state: &State, round: Round) {
        let tweaks = Tweaks::request(ops, self);
        let mut planes = state.last_round(ops, round);
        if let Some(tweaks) = tweaks {
            planes = tweaks.add(ops, planes);
        }
        if self.combination == Combination::Chain {
            for (to, plane) in self.last.into_iter().zip(planes) {
                ops.set(to, plane);
            }
        }
        state.to_bytes(ops, planes);
    }

    /// Starts the load of a half of the next unit.
    fn start_input(&self, ops: &mut Ops<'_>, state: &State, half: Half) {
        let address = self.half(ops, state, self.input, half);
        state.start_load(ops, address);
    }

    fn finish_input(&self, ops: &mut Ops<'_>, state: &State, half: Half) {
        state.set_up_reads(ops);
        State::read(ops, half, self.next);
    }

    /// Starts the load of the data with which a half of the previous unit is combined.
    fn start_other(&self, ops: &mut Ops<'_>, state: &State, half: Half) {
        let before = ops.add_op(AddOp::Sub, self.other, self.step);
        let address = self.half(ops, state, before, half);
        state.start_load(ops, address);
    }

    /// Writes a half of the previous unit, and starts the store of this half.
    fn result(&self, ops: &mut Ops<'_>, state: &State, half: Half) {
        state.set_up_writes(ops);
        if self.combination == Combination::Data {
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
