//! A kernel with one byte in each element, as the first kernel of the thesis (section 4.2 of the thesis). A vector is a block,
//! and element i is byte i. SubBytes looks up bytes in a table through the texture unit, so this kernel is not constant time.
//!
//! The uniforms are the number of the QPU; the number of QPUs; the addresses of the blocks, of the round keys, of the table and
//! of the matrix of MixColumns; the number of rounds; and the number of words of the blocks. In the blocks, the keys, the table
//! and the matrix, each byte occupies a word.

use crate::compiler::Code;
use crate::lang::{Int, Kernel, Var, element, rotate, uniform};

/// The first column of the matrix of MixColumns (FIPS 197, section 5.1.3), for each column of a block. The other columns are
/// this column, rotated by one to three elements.
pub const MATRIX: [u32; 16] = [2, 1, 1, 3, 2, 1, 1, 3, 2, 1, 1, 3, 2, 1, 1, 3];

/// The first column of the matrix of InvMixColumns (FIPS 197, section 5.3.3), for each column of a block.
pub const INVERSE_MATRIX: [u32; 16] = [14, 9, 13, 11, 14, 9, 13, 11, 14, 9, 13, 11, 14, 9, 13, 11];

/// ShiftRows, or InvShiftRows, moves a byte to each element from a source element. The number of the source element is the
/// number of the element times this constant, modulo 16.
const SHIFT: i32 = 5;
const INVERSE_SHIFT: i32 = 13;

/// Encryption by the first kernel of the thesis, as published.
pub fn encrypt_as_published() -> Code {
    let mut k = Kernel::new();
    let [blocks, keys, table, matrix, rounds, words] = std::array::from_fn(|_| k.var(uniform()));
    let blocks: Var<Int> = k.var(blocks + (element() << 2) + ((k.me() << 4) << 2));
    let increment = k.var(k.qpus() << 4);
    k.gather(matrix + (element() << 2));
    let matrix = k.receive::<Int>();
    k.gather(blocks);
    k.for_(0, words, increment, |k, i| {
        let state = k.receive::<Int>();
        add_round_key(k, state, keys + (element() << 2));
        k.for_(1, rounds, 1, |k, round| {
            sub_bytes(k, state, table);
            let shifted = shift_rows(k, state, SHIFT);
            k.set(state, shifted);
            let mixed = mix_columns(k, state, matrix, galois_multiply);
            k.set(state, mixed);
            add_round_key(k, state, keys + ((round << 4) << 2) + (element() << 2));
        });
        sub_bytes(k, state, table);
        let shifted = shift_rows(k, state, SHIFT);
        k.set(state, shifted);
        add_round_key(k, state, keys + ((rounds << 4) << 2) + (element() << 2));
        k.gather(blocks + ((i + increment) << 2));
        k.store(state, blocks + (i << 2));
    });
    let unused = k.unset::<Int>();
    k.receive_into(unused);
    k.finish()
}

/// Decryption with the method of the published encryption. The thesis contains no such kernel.
pub fn decrypt() -> Code {
    let mut k = Kernel::new();
    let [blocks, keys, table, matrix, rounds, words] = std::array::from_fn(|_| k.var(uniform()));
    let blocks: Var<Int> = k.var(blocks + (element() << 2) + ((k.me() << 4) << 2));
    let increment = k.var(k.qpus() << 4);
    k.gather(matrix + (element() << 2));
    let matrix = k.receive::<Int>();
    k.gather(blocks);
    k.for_(0, words, increment, |k, i| {
        let state = k.receive::<Int>();
        add_round_key(k, state, keys + ((rounds << 4) << 2) + (element() << 2));
        k.for_down(rounds - 1, 0, 1, |k, round| {
            let shifted = shift_rows(k, state, INVERSE_SHIFT);
            k.set(state, shifted);
            sub_bytes(k, state, table);
            add_round_key(k, state, keys + ((round << 4) << 2) + (element() << 2));
            let mixed = mix_columns(k, state, matrix, multiply_by_four_bits);
            k.set(state, mixed);
        });
        let shifted = shift_rows(k, state, INVERSE_SHIFT);
        k.set(state, shifted);
        sub_bytes(k, state, table);
        add_round_key(k, state, keys + (element() << 2));
        k.gather(blocks + ((i + increment) << 2));
        k.store(state, blocks + (i << 2));
    });
    let unused = k.unset::<Int>();
    k.receive_into(unused);
    k.finish()
}

fn add_round_key(k: &mut Kernel, state: Var<Int>, address: crate::lang::Expression<Int>) {
    k.gather(address);
    let key = k.receive::<Int>();
    k.set(state, state ^ key);
}

fn sub_bytes(k: &mut Kernel, state: Var<Int>, table: Var<Int>) {
    k.gather(table + (state << 2));
    k.receive_into(state);
}

fn shift_rows(k: &mut Kernel, argument: Var<Int>, factor: i32) -> Var<Int> {
    let state = k.var(argument);
    // The number of elements by which a byte moves: the difference between its positions before and after the move.
    let shift = k.var((element().mul24(factor) & 0x0f) - element());
    let before = k.var(state);
    k.where_(shift.is(-12) | shift.is(4), |k| k.set(state, rotate(before, 12)));
    k.where_((shift & 0x0f).is(8), |k| k.set(state, rotate(before, 8)));
    k.where_(shift.is(-4) | shift.is(12), |k| k.set(state, rotate(before, 4)));
    state
}

/// Computes MixColumns with products. A product multiplies a column of the matrix by a byte of the block. The byte is first
/// copied to the elements of its column.
fn mix_columns(
    k: &mut Kernel,
    argument: Var<Int>,
    matrix: Var<Int>,
    multiply: fn(&mut Kernel, Var<Int>, Var<Int>) -> Var<Int>,
) -> Var<Int> {
    let state = k.var(argument);
    let vectors = rotated_columns(k, state);
    let product = multiply(k, matrix, vectors[0]);
    let mut sum = k.var(product);
    for (number, vector) in (1..).zip(vectors).skip(1) {
        let column = k.var(rotate(matrix, number - 1));
        let product = multiply(k, column, vector);
        sum = k.var(sum ^ product);
    }
    sum
}

/// Returns the bytes of rows 0 to 3 of each column, in the order that the rotated matrix requires.
fn rotated_columns(k: &mut Kernel, state: Var<Int>) -> [Var<Int>; 4] {
    let v0 = k.var(state);
    let v1 = k.var(rotate(state, 1));
    let v2 = k.var(rotate(state, 2));
    let v3 = k.var(v1);
    let (by_14, by_15) = (k.var(rotate(state, 14)), k.var(rotate(state, 15)));
    let row = k.var(element() & 3);
    k.where_(row.is(0), |k| {
        k.set(v1, by_15);
        k.set(v2, by_14);
        k.set(v3, rotate(state, 13));
    });
    k.where_(row.is(1), |k| {
        k.set(v0, v1);
        k.set(v1, state);
        k.set(v2, by_15);
        k.set(v3, by_14);
    });
    k.where_(row.is(2), |k| {
        k.set(v0, v2);
        k.set(v2, state);
        k.set(v3, by_15);
    });
    k.where_(row.is(3), |k| {
        k.set(v3, v1);
        k.set(v0, rotate(state, 3));
        k.set(v1, v2);
        k.set(v2, v3);
        k.set(v3, state);
    });
    [v0, v1, v2, v3]
}

/// The product of a number from 1 to 3 and a byte.
pub fn galois_multiply(k: &mut Kernel, number: Var<Int>, byte: Var<Int>) -> Var<Int> {
    let (left, byte) = (k.var(number), k.var(byte));
    let product = k.var::<Int>(0);
    k.where_((left & 1).is_not(0), |k| k.set(product, product ^ byte));
    let before = k.var(byte);
    k.set(byte, byte << 1);
    k.where_((before & 0x80).is_not(0), |k| k.set(byte, (before << 1) ^ 0x11b));
    k.set(left, left >> 1);
    k.where_((left & 1).is_not(0), |k| k.set(product, product ^ byte));
    product
}

/// The product of a number from 1 to 15 and a byte.
fn multiply_by_four_bits(k: &mut Kernel, number: Var<Int>, byte: Var<Int>) -> Var<Int> {
    let (left, byte) = (k.var(number), k.var(byte));
    let product = k.var::<Int>(0);
    for bit in 0..4 {
        if bit > 0 {
            let before = k.var(byte);
            k.set(byte, byte << 1);
            k.where_((before & 0x80).is_not(0), |k| k.set(byte, (before << 1) ^ 0x11b));
            k.set(left, left >> 1);
        }
        k.where_((left & 1).is_not(0), |k| k.set(product, product ^ byte));
    }
    product
}
