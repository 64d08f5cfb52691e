//! `spu/ctr0`: a direct implementation of the cipher with the assembler, without the scheduler.
//!
//! The program is a loop over rounds in a loop over blocks. Instructions are neither reordered nor arranged in pairs,
//! and branches have no hints. This kernel is the baseline for the other kernels. [`Hints`] adds hints, to measure their effect.

use super::field::sbox;
use super::modes::Parameter;
use super::permutation::SHIFT_ROWS;
use super::r;
use crate::asm::{Assembler, Label};
use crate::isa::Reg;
use crate::schedule::Program;

const STATE: Reg = r(3);
const COUNTER: Reg = r(4);
const ROUND: Reg = r(5);
const KEY: Reg = r(6);
const INDEX: Reg = r(7);
const BIT: Reg = r(8);
const DOUBLED: Reg = r(9);
const TRIPLED: Reg = r(10);
const SUM: Reg = r(11);
const TURNED: Reg = r(12);
/// The first of the registers for the results of the eight lookups. Later these registers hold the bytes selected from these results.
const PART: u8 = 16;
const FIRST_ROUND: Reg = r(30);
const KEYS: Reg = r(31);
const ONE: Reg = r(32);
const ROWS: Reg = r(33);
const INPUT: Reg = r(34);
const OUTPUT: Reg = r(35);
const LEFT: Reg = r(36);
/// The address of the hints of the rounds, and the hint of the next round.
const HINTS: Reg = r(37);
const HINT: Reg = r(38);
/// The first register of the S-box.
const TABLE: u8 = 64;

/// The hints of the branches of the two loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hints {
    /// No hints: each branch that is taken costs 18 cycles.
    None,
    /// Each hint states that its loop continues. The last branch of each loop over rounds costs 18 cycles.
    Fixed,
    /// The hint of each round is read from a table, as in the paper. For the last round, the table has the address after the loop, so no
    /// branch of a loop over rounds costs cycles.
    Table,
}

/// The labels of the data, which the code loads and [`data`] binds.
struct Labels {
    turns: Label,
    counter: Label,
    input: Label,
    output: Label,
    one: Label,
    rows: Label,
    /// The 16 quadwords of the S-box.
    table: [Label; 16],
    last_but_one_key: Label,
    /// The address of the hint of the last round.
    last_hint: Label,
}

/// Builds the program, and the types of its parameters.
pub(super) fn program(rounds: usize, hints: Hints) -> Result<(Program, Vec<Parameter>), String> {
    let mut asm = Assembler::new();
    let [turns, counter, input, output, one, rows, last_but_one_key, last_hint] =
        std::array::from_fn(|_| asm.label());
    let table = std::array::from_fn(|_| asm.label());
    let labels = Labels { turns, counter, input, output, one, rows, table, last_but_one_key, last_hint };
    prologue(&mut asm, &labels, rounds, hints);
    let targets = block_loop(&mut asm, hints);
    asm.begin_data();
    let iterations_at = asm.here();
    let (places, parameters) = data(&mut asm, labels, rounds);
    if hints == Hints::Table {
        hint_table(&mut asm, last_hint, rounds, targets);
    }
    let program = Program {
        image: asm.finish().map_err(|error| error.to_string())?,
        parameters: places,
        carried: Vec::new(),
        iterations_at,
        stages: 1,
        // An estimate that includes a penalty for each branch. It is used only for the cycle budget.
        interval: 90 * rounds as u64,
        counts: [0; 2],
        registers: if hints == Hints::Table { 54 } else { 52 },
    };
    Ok((program, parameters))
}

/// Loads the parameters and the constants.
fn prologue(asm: &mut Assembler, labels: &Labels, rounds: usize, hints: Hints) {
    let Labels { turns, counter, input, output, one, rows, ref table, last_but_one_key, last_hint } = *labels;
    for (reg, label) in
        [(LEFT, turns), (COUNTER, counter), (INPUT, input), (OUTPUT, output), (ONE, one), (ROWS, rows)]
    {
        asm.lqa(reg, label);
    }
    for (i, &part) in table.iter().enumerate() {
        asm.lqa(r(TABLE + i as u8), part);
    }
    // The round counter counts up to zero. The sum of the counter and the address of the second to last round key is
    // the address of the current round key.
    asm.lqa(KEYS, last_but_one_key);
    asm.il(FIRST_ROUND, -16 * (rounds as i32 - 1));
    if hints == Hints::Table {
        asm.lqa(HINTS, last_hint);
    }
    // The number of remaining bytes is stored as a negative number, which also counts up to zero. The address of a block is this number
    // plus the end address of the buffer.
    asm.shli(LEFT, LEFT, 4);
    asm.a(INPUT, INPUT, LEFT);
    asm.a(OUTPUT, OUTPUT, LEFT);
    asm.sfi(LEFT, LEFT, 0);
    // The loop over rounds starts five instructions after this padding, or six with hints. The padding aligns the loop to a pair, so
    // that some instructions issue in pairs.
    asm.align_pair();
    if hints == Hints::None {
        asm.nop();
    }
}

/// Adds the loop over blocks, which contains the loop over rounds. Returns the address of the loop over rounds and the address after it.
fn block_loop(asm: &mut Assembler, hints: Hints) -> [u32; 2] {
    let [block, round, block_branch, round_branch] = std::array::from_fn(|_| asm.label());
    asm.bind_named(block, "block");
    asm.ori(STATE, COUNTER, 0);
    asm.a(COUNTER, COUNTER, ONE);
    asm.ori(ROUND, FIRST_ROUND, 0);
    match hints {
        Hints::None => {}
        Hints::Fixed => asm.hbrr(round_branch, round),
        Hints::Table => asm.lqx(HINT, HINTS, ROUND),
    }
    asm.lqx(KEY, KEYS, ROUND);
    asm.xor(STATE, STATE, KEY);
    let loop_at = asm.here();
    asm.bind_named(round, "loop");
    if hints == Hints::Table {
        asm.hbr(round_branch, HINT);
    }
    asm.ai(ROUND, ROUND, 16);
    substitute(asm);
    asm.shufb(STATE, STATE, STATE, ROWS);
    if hints == Hints::Table {
        asm.lqx(HINT, HINTS, ROUND);
    }
    mix_columns(asm);
    asm.lqx(KEY, KEYS, ROUND);
    asm.xor(STATE, STATE, KEY);
    asm.bind(round_branch);
    asm.brnz(ROUND, round);
    let after_loop = asm.here();

    if hints != Hints::None {
        asm.hbrr(block_branch, block);
    }
    asm.ai(ROUND, ROUND, 16);
    substitute(asm);
    asm.shufb(STATE, STATE, STATE, ROWS);
    asm.lqx(KEY, KEYS, ROUND);
    asm.xor(STATE, STATE, KEY);
    asm.lqx(SUM, INPUT, LEFT);
    asm.xor(STATE, STATE, SUM);
    asm.stqx(STATE, OUTPUT, LEFT);
    asm.ai(LEFT, LEFT, 16);
    asm.bind(block_branch);
    asm.brnz(LEFT, block);
    asm.stop(0);
    [loop_at, after_loop]
}

/// The hints of the rounds: the address of the loop, and for the last round the address after it. The sum of the address of the last hint,
/// 16, and the round counter is the address of the hint of a round.
fn hint_table(asm: &mut Assembler, last_hint: Label, rounds: usize, [loop_at, after_loop]: [u32; 2]) {
    for _ in 1..rounds - 1 {
        asm.quadword(super::scalar(loop_at));
    }
    let last = asm.here();
    asm.quadword(super::scalar(after_loop));
    asm.bind(last_hint);
    asm.quadword(super::scalar(last + 16));
}

/// Adds the data: parameters, constants, the S-box and the round keys. Returns the addresses and the types of the parameters.
fn data(asm: &mut Assembler, labels: Labels, rounds: usize) -> (Vec<u32>, Vec<Parameter>) {
    let Labels { turns, counter, input, output, one, rows, table: parts, last_but_one_key, .. } = labels;
    let (mut places, mut parameters) = (Vec::new(), Vec::new());
    for (label, what) in [
        (turns, None),
        (counter, Some(Parameter::Counter)),
        (input, Some(Parameter::Input)),
        (output, Some(Parameter::Output)),
    ] {
        places.extend(what.map(|_| asm.here()));
        parameters.extend(what);
        asm.bind(label);
        asm.quadword([0; 16]);
    }
    asm.bind(one);
    asm.quadword(1u128.to_be_bytes());
    asm.bind(rows);
    asm.quadword(SHIFT_ROWS);
    let [table, keys] = [(); 2].map(|()| asm.label());
    asm.bind_named(table, "table");
    for (i, part) in parts.into_iter().enumerate() {
        asm.bind(part);
        asm.quadword(std::array::from_fn(|j| sbox((16 * i + j) as u8)));
    }
    asm.bind_named(keys, "keys");
    for round in 0..=rounds {
        places.push(asm.here());
        parameters.push(Parameter::RoundKey(round));
        asm.quadword([0; 16]);
    }
    let at = asm.here() - 32;
    asm.bind(last_but_one_key);
    asm.quadword(super::scalar(at));
    (places, parameters)
}

/// SubBytes: eight lookups by five bits, then three selections by the other bits.
fn substitute(asm: &mut Assembler) {
    asm.andbi(INDEX, STATE, 0x1f);
    for i in 0..8 {
        asm.shufb(r(PART + i), r(TABLE + 2 * i), r(TABLE + 2 * i + 1), INDEX);
    }
    asm.andbi(BIT, STATE, 0x20);
    asm.ceqbi(BIT, BIT, 0x20);
    for i in 0..4 {
        asm.selb(r(PART + i), r(PART + 2 * i), r(PART + 2 * i + 1), BIT);
    }
    asm.andbi(BIT, STATE, 0x40);
    asm.ceqbi(BIT, BIT, 0x40);
    for i in 0..2 {
        asm.selb(r(PART + i), r(PART + 2 * i), r(PART + 2 * i + 1), BIT);
    }
    asm.clgtbi(BIT, STATE, 0x7f);
    asm.selb(STATE, r(PART), r(PART + 1), BIT);
}

/// MixColumns: 2 r0 + 3 r1 + r2 + r3.
fn mix_columns(asm: &mut Assembler) {
    asm.andbi(DOUBLED, STATE, 0x7f);
    asm.shlqbii(DOUBLED, DOUBLED, 1);
    asm.xorbi(TRIPLED, DOUBLED, 0x1b);
    asm.clgtbi(BIT, STATE, 0x7f);
    asm.selb(DOUBLED, DOUBLED, TRIPLED, BIT);
    asm.xor(TRIPLED, DOUBLED, STATE);
    asm.roti(TURNED, TRIPLED, 8);
    asm.xor(SUM, DOUBLED, TURNED);
    asm.roti(TURNED, STATE, 16);
    asm.xor(SUM, SUM, TURNED);
    asm.roti(TURNED, STATE, 24);
    asm.xor(STATE, SUM, TURNED);
}
