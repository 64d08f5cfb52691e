//! A tuned kernel with four blocks in a vector. One lookup computes SubBytes and MixColumns for a byte. Unpacking in file A
//! extracts bytes, and rotations within quads compute ShiftRows. Round keys stay in registers, and four vectors are stored at
//! once. The texture unit limits the speed: with a key of 128 bits, a vector needs 40 lookups of 16 clocks, and two QPUs share
//! a unit. Decryption is the equivalent inverse cipher (FIPS 197, section 5.3.5).
//!
//! The kernel is not constant time.
//!
//! The uniforms are the number of the QPU; the number of QPUs; the address of the first unit of 256 bytes; the address of the round keys in the
//! order in which they are added; the address of the table [`TABLE`] or [`INVERSE_TABLE`]; the address of the table of the last round, which is
//! [`TABLE`] or the inverse S-box as words; the number of units; and the number of bytes from a unit of this QPU to the next. After the last unit
//! of a QPU, the program reads 64 bytes of the next unit.

use super::{INVERSE_SBOX, SBOX};
use crate::compiler::{Code, Write};
use crate::lang::{Expression, Int, Kernel, Var, element, rotate_in_quads, uniform};

/// Number of bytes of a unit: four vectors, which are stored at once.
pub const UNIT: u32 = 256;

/// For each byte, its contribution to its column in MixColumns if the byte is in row 0: the S-box value times 2, 1, 1 and 3.
pub static TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let s = SBOX[byte];
        let double = super::double(s);
        table[byte] = u32::from_le_bytes([double, s, s, double ^ s]);
        byte += 1;
    }
    table
};

/// For each byte, its contribution to its column in InvMixColumns if the byte is in row 0: the inverse S-box value times 14, 9,
/// 13 and 11.
pub static INVERSE_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let s = INVERSE_SBOX[byte];
        let (two, four) = (super::double(s), super::double(super::double(s)));
        let eight = super::double(four);
        table[byte] = u32::from_le_bytes([eight ^ four ^ two, eight ^ s, eight ^ four ^ s, eight ^ two ^ s]);
        byte += 1;
    }
    table
};

/// Setups that start at row 4 * me of the VPM: for writes of rows, and for a store of four rows.
const WRITE: u32 = 1 << 12 | 1 << 11 | 2 << 8;
const STORE: u32 = 1 << 31 | 4 << 23 | 16 << 16 | 1 << 14;

/// ECB encryption or decryption with a number of rounds.
pub fn blocks(rounds: u8, decrypts: bool) -> Code {
    let mut k = Kernel::new();
    let [blocks, keys, table, last_table, units, step]: [Var<Int>; 6] =
        std::array::from_fn(|_| k.var(uniform()));
    let lanes = k.var(element() << 2);
    let keys: Vec<Var<Int>> = (0..=u32::from(rounds))
        .map(|round| {
            k.gather(keys + ((element() & 3) << 2) + 16 * round);
            k.receive()
        })
        .collect();
    let rows = k.var(k.me() << 2);
    let write = k.var(rows | WRITE);
    let store = k.var((rows << 7) | STORE);
    let no_gap = k.var(0xc000_0000u32);
    k.write_register(Write::StoreSetup, no_gap);
    let left = k.var(units);
    let input = k.var(blocks + lanes);
    k.gather(input);
    k.while_(&left.is_greater(0).any(), |k| {
        k.wait_for_stores();
        k.write_register(Write::StoreSetup, write);
        let vectors = k.var::<Int>(4);
        k.while_(&vectors.is_greater(0).any(), |k| {
            let state = k.receive::<Int>();
            k.set(state, state ^ keys[0]);
            for key in &keys[1..usize::from(rounds)] {
                columns(k, state, table, decrypts);
                k.set(state, state ^ *key);
            }
            let result = last_columns(k, state, last_table, decrypts);
            // The address of the next vector. After the last vector of this unit, the next vector is the first vector of this
            // QPU's next unit.
            k.set(vectors, vectors - 1);
            k.set(input, input + 64);
            k.where_(vectors.is(0), |k| k.set(input, input + (step - UNIT)));
            k.gather(input);
            k.write_expression(Write::Vpm, result ^ keys[usize::from(rounds)]);
        });
        k.write_register(Write::StoreSetup, store);
        k.write_register(Write::StoreAddress, blocks);
        k.set(blocks, blocks + step);
        k.set(left, left - 1);
    });
    k.receive::<Int>();
    k.wait_for_stores();
    k.finish()
}

/// Requests a word of the table for each byte. Each byte is first moved to its column after ShiftRows.
fn look_up(k: &mut Kernel, state: Var<Int>, table: Var<Int>, decrypts: bool) {
    for row in 0..4 {
        // Row r moves by r columns towards the first column, so element i moves to i - r within its block. For decryption, the
        // row moves in the other direction.
        let by = if decrypts { row } else { 4 - row };
        let byte = k.var(rotate_in_quads(state.byte(row), by));
        k.gather(table + (byte << 2));
    }
}

/// SubBytes, ShiftRows and MixColumns, or their inverses.
fn columns(k: &mut Kernel, state: Var<Int>, table: Var<Int>, decrypts: bool) {
    look_up(k, state, table, decrypts);
    k.receive_into(state);
    for row in 1..4u32 {
        // The table contains the contribution of a byte in row 0. The contribution of a byte in row r is the same word, rotated
        // by r rows.
        let word = k.receive::<Int>();
        k.set(state, state ^ word.ror(32 - 8 * row));
    }
}

/// Computes SubBytes and ShiftRows, or their inverses. The S-box value is byte 1 of a word of [`TABLE`]; the inverse S-box
/// value is byte 0 of a word of the table for decryption.
fn last_columns(k: &mut Kernel, state: Var<Int>, table: Var<Int>, decrypts: bool) -> Var<Int> {
    look_up(k, state, table, decrypts);
    let result = k.var::<Int>(0);
    for row in 0..4 {
        let word = k.receive::<Int>();
        let byte: Expression<Int> = word.byte(if decrypts { 0 } else { 1 });
        let byte = k.var(byte);
        k.set_byte(result, row, byte);
    }
    result
}
