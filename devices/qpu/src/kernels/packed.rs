//! A kernel with four blocks in a vector, as the second kernel of the thesis (section 4.3 of the thesis). An element is a
//! column of a block, with row 0 in the lowest byte. SubBytes looks up bytes in a table through the texture unit, so this
//! kernel is not constant time.
//!
//! The uniforms are the number of the QPU; the number of QPUs; the addresses of the blocks, of the round keys and of the table, whose 256
//! entries are words; the number of rounds; and the number of words of the blocks.

use crate::compiler::Code;
use crate::lang::{Char, Expression, Int, Kernel, Var, element, rotate, uniform};

/// The parameters of the program.
struct Parameters {
    blocks: Var<Int>,
    keys: Var<Int>,
    table: Var<Int>,
    rounds: Var<Int>,
    words: Var<Int>,
}

fn parameters(k: &mut Kernel) -> Parameters {
    Parameters {
        blocks: k.var(uniform()),
        keys: k.var(uniform()),
        table: k.var(uniform()),
        rounds: k.var(uniform()),
        words: k.var(uniform()),
    }
}

/// Encryption as in the compiled kernel of the thesis: functions copy their arguments, and masks and shifts extract the bytes
/// of the vector.
pub fn encrypt_as_published() -> Code {
    let mut k = Kernel::new();
    let p = parameters(&mut k);
    let blocks = k.var(p.blocks + (element() << 2) + ((k.me() << 4) << 2));
    let increment = k.var(k.qpus() << 4);
    let (state, key) = (k.unset::<Int>(), k.unset::<Int>());
    k.gather(blocks);
    k.for_(0, p.words, increment, |k, i| {
        k.gather(p.keys + ((element() & 3) << 2));
        k.receive_into(state);
        k.receive_into(key);
        k.set(state, state ^ key);
        k.for_(1, p.rounds, 1, |k, round| {
            sub_bytes(k, state, p.table);
            k.gather(key_address(p.keys, round));
            let shifted = shift_rows(k, state);
            let mixed = mix_columns(k, shifted);
            k.set(state, mixed);
            k.receive_into(key);
            k.set(state, state ^ key);
        });
        sub_bytes(k, state, p.table);
        k.gather(key_address(p.keys, p.rounds));
        k.gather(blocks + ((i + increment) << 2));
        let shifted = shift_rows(k, state);
        k.set(state, shifted);
        k.receive_into(key);
        k.store(state ^ key, blocks + (i << 2));
    });
    k.receive_into(state);
    k.finish()
}

/// Decryption as in the compiled kernel of the thesis. InvMixColumns multiplies each byte of an element separately, in four
/// steps.
pub fn decrypt_as_published() -> Code {
    decrypt(inverse_mix_columns)
}

/// Decryption with an InvMixColumns that processes all bytes of an element at once. The thesis mentions this method as future
/// work (chapter 6 of the thesis).
pub fn decrypt_fast() -> Code {
    decrypt(fast_inverse_mix_columns)
}

fn decrypt(inverse_mix_columns: fn(&mut Kernel, Var<Int>) -> Var<Int>) -> Code {
    let mut k = Kernel::new();
    let p = parameters(&mut k);
    let blocks = k.var(p.blocks + (element() << 2) + ((k.me() << 4) << 2));
    let increment = k.var(k.qpus() << 4);
    let (state, key) = (k.unset::<Int>(), k.unset::<Int>());
    k.gather(blocks);
    k.for_(0, p.words, increment, |k, i| {
        k.gather(key_address(p.keys, p.rounds));
        k.receive_into(state);
        k.receive_into(key);
        k.set(state, state ^ key);
        k.for_down(p.rounds - 1, 0, 1, |k, round| {
            let shifted = inverse_shift_rows(k, state);
            k.set(state, shifted);
            sub_bytes(k, state, p.table);
            k.gather(key_address(p.keys, round));
            k.receive_into(key);
            k.set(state, state ^ key);
            let mixed = inverse_mix_columns(k, state);
            k.set(state, mixed);
        });
        let shifted = inverse_shift_rows(k, state);
        k.set(state, shifted);
        sub_bytes(k, state, p.table);
        k.gather(p.keys + ((element() & 3) << 2));
        k.gather(blocks + ((i + increment) << 2));
        k.receive_into(key);
        k.store(state ^ key, blocks + (i << 2));
    });
    k.receive_into(state);
    k.finish()
}

/// The address of the words of a round key. The four words are repeated.
fn key_address(keys: Var<Int>, round: Var<Int>) -> Expression<Int> {
    keys + ((round << 2) << 2) + ((element() & 3) << 2)
}

fn sub_bytes(k: &mut Kernel, argument: Var<Int>, table: Var<Int>) {
    let (state, table) = (k.var(argument), k.var(table));
    k.gather(table + ((state & 0xff) << 2));
    k.gather(table + ((state & 0xff00).shr_logical(8) << 2));
    k.gather(table + ((state & 0xff_0000).shr_logical(16) << 2));
    k.gather(table + ((state & 0xff00_0000u32).shr_logical(24) << 2));
    let lane = k.unset::<Int>();
    k.receive_into(state);
    k.receive_into(lane);
    k.set(state, state | (lane << 8));
    k.receive_into(lane);
    k.set(state, state | (lane << 16));
    k.receive_into(lane);
    let result = k.var(state | (lane << 24));
    k.set(argument, result);
}

fn shift_rows(k: &mut Kernel, argument: Var<Int>) -> Var<Int> {
    let state = k.var(argument);
    let column = k.var(element() & 3);
    let result = k.var(state & 0xff);
    let row = k.var(rotate(state & 0xff00, 15));
    k.where_(column.is(3), |k| k.set(row, rotate(row, 4)));
    k.set(result, result | row);
    k.set(row, rotate(state & 0xff_0000, 14));
    k.where_(column.is_greater(1), |k| k.set(row, rotate(row, 4)));
    k.set(result, result | row);
    k.set(row, rotate(state & 0xff00_0000u32, 13));
    k.where_(column.is_greater(0), |k| k.set(row, rotate(row, 4)));
    k.var(result | row)
}

fn mix_columns(k: &mut Kernel, argument: Var<Int>) -> Var<Int> {
    let state = k.var(argument);
    let doubled = double(k, state.into());
    let next = k.var(state.ror(8));
    let twice = double(k, next.into());
    let tripled = k.var(next ^ twice);
    k.var(doubled ^ tripled ^ state.ror(16) ^ state.ror(24))
}

/// Doubles the four bytes of each element in the field of AES.
fn double(k: &mut Kernel, argument: Expression<Int>) -> Var<Int> {
    let state = k.var(argument);
    let shifted: Var<Char> = k.var(((state.to_char() & 0x7f).to_int() << 1).to_char());
    let mask: Var<Char> = k.var(state.to_char() & 0x80);
    // The product of 0x80 and 253 is 0x7f. Together with the mask, this is 0xff.
    k.var((shifted ^ (Expression::<Char>::from(0x1b) & (mask | mask.muld(253)))).to_int())
}

fn inverse_shift_rows(k: &mut Kernel, argument: Var<Int>) -> Var<Int> {
    let state = k.var(argument);
    let column = k.var(element() & 3);
    let result = k.var(state & 0xff);
    // For each row: the mask of the row, the distance of the rotation, and the number of columns whose bytes come from the end
    // of the block.
    for (mask, by, columns) in [(0xff00u32, 1, 1), (0xff_0000, 2, 2), (0xff00_0000, 3, 3)] {
        let row = k.var(rotate(state & mask, by));
        k.where_(column.is_less(columns), |k| k.set(row, rotate(state & mask, by + 12)));
        k.set(result, result | row);
    }
    result
}

fn inverse_mix_columns(k: &mut Kernel, argument: Var<Int>) -> Var<Int> {
    let state = k.var(argument);
    let fourteen = multiplied_by_lane(k, state.into(), 0x0e);
    let eleven = multiplied_by_lane(k, state.ror(8), 0x0b);
    let thirteen = multiplied_by_lane(k, state.ror(16), 0x0d);
    let nine = multiplied_by_lane(k, state.ror(24), 0x09);
    k.var(fourteen ^ eleven ^ thirteen ^ nine)
}

/// Computes InvMixColumns in two steps. First, four times the sum of each byte and the byte two rows below is added to the
/// byte. Then MixColumns is applied.
fn fast_inverse_mix_columns(k: &mut Kernel, argument: Var<Int>) -> Var<Int> {
    let state = k.var(argument);
    let sum = k.var(state ^ state.ror(16));
    let twice = double(k, sum.into());
    let quadruple = double(k, twice.into());
    k.set(state, state ^ quadruple);
    mix_columns(k, state)
}

/// Multiplies each byte by a number, in the field of AES. The four bytes of the elements are processed one after the other.
fn multiplied_by_lane(k: &mut Kernel, argument: Expression<Int>, number: u32) -> Var<Int> {
    let (state, factor) = (k.var(argument), k.var(number));
    let result = k.var(0);
    k.for_(0, 4, 1, |k, i| {
        let all = k.var(0xff);
        let lane = k.var((state & (all << (i << 3))).shr_logical(i << 3));
        let left = k.var(factor);
        let product = k.var(0);
        for _ in 0..4 {
            k.where_((left & 1).is(1), |k| k.set(product, product ^ lane));
            let before = k.var(lane);
            k.set(lane, lane << 1);
            k.where_((before & 0x80).is(0x80), |k| k.set(lane, lane ^ 0x11b));
            k.set(left, left >> 1);
        }
        k.set(result, result | (product << (i << 3)));
    });
    result
}
