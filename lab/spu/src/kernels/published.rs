//! AES by lookups in registers with the paper's operations. This crate's scheduler arranges the operations, and the rounds are unrolled.
//! The kernels as published have the paper's SubBytes. The fastest kernels with several blocks in flight have the paper's MixColumns and the
//! SubBytes of `lookup`.
//!
//! SubBytes is the table lookup of the Cell's programming handbook: eight lookups by five bits, and selections by the other three bits. The
//! paper has several versions of MixColumns (its appendices A and D).

use super::aes::AesRounds;
use super::field::sbox;
use super::lookup::substitute;
use super::permutation::{SHIFT_ROWS, after, rotated};
use crate::schedule::{Flow, Value};

/// The paper's versions of ShiftRows, MixColumns and AddRoundKey.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Columns {
    /// 2 r0 + 3 r1 + r2 + r3 from the state after ShiftRows, with three rotations of words: CTR1 (version 1).
    Direct,
    /// 2 (r0 + r1) + r1 + (r2 + r3), with the permutations of ShiftRows in the lookups of the rows: CTR2 and CTR4a
    /// (version 2).
    Rows,
    /// [`Columns::Rows`] with the reduction by instructions of the odd pipe.
    FewEven,
    /// [`Columns::FewEven`], where one of each four blocks also computes the mask of the reduction by instructions of the odd pipe (`gbb`
    /// and `fsmb`): CTR4 and ECB4 (version 4).
    FewestEven,
    /// The version with the shortest latency: CBC2 (appendix D). The constant of the reduction is added to r1 + r2 + r3 while r0 + r1 is
    /// shifted. The shifted sum is added last.
    Feedback,
}

/// The SubBytes that [`super::Way::Columns`] uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Substitution {
    /// The paper's SubBytes.
    Selections,
    /// The SubBytes of [`super::Way::Lookup`].
    Lookup,
    /// [`Substitution::Lookup`] with alternatives for both pipes.
    LookupBalanced,
}

/// Encryption with the paper's operations, or with this crate's SubBytes and the paper's other operations.
pub(super) struct Published(pub Substitution, pub Columns);

impl Published {
    fn substitute(&self, f: &mut Flow, x: Value) -> Value {
        match self.0 {
            Substitution::Selections => selections(f, x, sbox),
            Substitution::Lookup => substitute(f, x, false),
            Substitution::LookupBalanced => substitute(f, x, true),
        }
    }
}

/// Computes SubBytes or InvSubBytes by the lookup of the programming handbook. `table` returns the 256 bytes of the table.
pub(super) fn selections(f: &mut Flow, x: Value, table: fn(u8) -> u8) -> Value {
    let index = f.and_bytes(x, 0x1f);
    let bit = |f: &mut Flow, bit: u8| {
        let bits = f.and_bytes(x, bit);
        f.bytes_equal(bits, bit)
    };
    let (bit5, bit6) = (bit(f, 0x20), bit(f, 0x40));
    let bit7 = f.top_bit_set(x);
    let mut parts: Vec<Value> = (0..8)
        .map(|part| {
            let [low, high] = [0, 16]
                .map(|start| f.constant(std::array::from_fn(|i| table((32 * part + start + i) as u8))));
            f.shuffle(low, high, index)
        })
        .collect();
    for mask in [bit5, bit6, bit7] {
        parts = parts.chunks(2).map(|pair| f.select(pair[0], pair[1], mask)).collect();
    }
    parts[0]
}

/// Version 1 of the paper: see [`Columns::Direct`].
fn direct(f: &mut Flow, s: Value, key: Value) -> Value {
    let s = f.permute(s, SHIFT_ROWS);
    let low = f.and_bytes(s, 0x7f);
    let shifted = f.shift_left(low, 1);
    let reduced = f.xor_bytes(shifted, 0x1b);
    let mask = f.top_bit_set(s);
    let doubled = f.select(shifted, reduced, mask);
    let tripled = f.xor(doubled, s);
    let [row1, row2, row3] = [(tripled, 8), (s, 16), (s, 24)].map(|(row, bits)| f.rotate_words(row, bits));
    f.sum(&[doubled, row2, row3, row1, key])
}

/// Returns the state after ShiftRows, with each column rotated such that row `number` comes first.
fn row(f: &mut Flow, s: Value, number: usize) -> Value {
    f.permute(s, after(&SHIFT_ROWS, &rotated(number)))
}

/// Version 2 of the paper: see [`Columns::Rows`].
fn rows(f: &mut Flow, s: Value, key: Value) -> Value {
    let (row1, row0) = (row(f, s, 1), row(f, s, 0));
    let row01 = f.xor(row0, row1);
    let row23 = f.permute(row01, rotated(2));
    let keyed = f.sum(&[row1, key, row23]);
    let mask = f.top_bit_set(row01);
    let shifted = f.shift_left(row01, 1);
    let shifted = f.and_bytes(shifted, 0xfe);
    let reduced = f.xor_bytes(shifted, 0x1b);
    let doubled = f.select(shifted, reduced, mask);
    f.xor(keyed, doubled)
}

/// Version 4 of the paper, for three of each four blocks. Two lookups give 0x1B in the bytes that are reduced.
fn few_even(f: &mut Flow, s: Value, key: Value) -> Value {
    let (row1, row0) = (row(f, s, 1), row(f, s, 0));
    let row01 = f.xor(row0, row1);
    let row23 = f.permute(row01, rotated(2));
    let keyed = f.sum(&[row1, key, row23]);
    let shifted = f.shift_left(row01, 1);
    let shifted = f.and_bytes(shifted, 0xfe);
    // The two shuffles map FF to 80 and then to 00. They map 00 to 1B, and 1B to 1B.
    let clear = f.top_bit_clear(row01);
    let polynomial = f.bytes(0x1b);
    let once = f.shuffle(polynomial, polynomial, clear);
    let reduction = f.shuffle(polynomial, polynomial, once);
    f.sum(&[keyed, shifted, reduction])
}

/// Version 4 of the paper, for one of each four blocks. Instructions of the odd pipe also compute the mask.
fn fewest_even(f: &mut Flow, s: Value, key: Value) -> Value {
    let (row1, row0) = (row(f, s, 1), row(f, s, 0));
    let row01 = f.xor(row0, row1);
    let row23 = f.permute(row01, rotated(2));
    let keyed = f.sum(&[row1, key, row23]);
    // A rotation of the quadword puts the top bit of each byte into the low bit of the byte before it.
    let shifted = f.rotate_left(row01, 1);
    let bits = f.gather_low_bits(shifted);
    let masks = f.spread_bits(bits);
    let set = f.rotate_bytes(masks, -1);
    let shifted = f.and_bytes(shifted, 0xfe);
    // The three shuffles map FF to 80, then to 00 and then to 1B. They map 00 to 1B, then to 1B and then to 00.
    let (polynomial, zero) = (f.bytes(0x1b), f.bytes(0));
    let once = f.shuffle(polynomial, polynomial, set);
    let twice = f.shuffle(polynomial, polynomial, once);
    let reduction = f.shuffle(polynomial, zero, twice);
    f.sum(&[keyed, shifted, reduction])
}

/// The version of the paper's CBC2: see [`Columns::Feedback`].
fn feedback(f: &mut Flow, s: Value, key: Value) -> Value {
    let [row1, row0, row2, row3] = [1, 0, 2, 3].map(|number| row(f, s, number));
    let keyed = f.xor(row1, key);
    let row01 = f.xor(row0, row1);
    let keyed = f.sum(&[keyed, row2, row3]);
    let mask = f.top_bit_set(row01);
    let shifted = f.shift_left(row01, 1);
    let shifted = f.and_bytes(shifted, 0xfe);
    let reduced = f.xor_bytes(keyed, 0x1b);
    let keyed = f.select(keyed, reduced, mask);
    f.xor(keyed, shifted)
}

impl AesRounds for Published {
    fn round(&self, f: &mut Flow, _: usize, x: Value, key: Value) -> Value {
        let s = self.substitute(f, x);
        match self.1 {
            Columns::Direct => direct(f, s, key),
            Columns::Rows => rows(f, s, key),
            Columns::FewestEven if f.current_block().is_multiple_of(4) => fewest_even(f, s, key),
            Columns::FewEven | Columns::FewestEven => few_even(f, s, key),
            Columns::Feedback => feedback(f, s, key),
        }
    }

    fn last_round(
        &self,
        f: &mut Flow,
        _: usize,
        x: Value,
        key: Value,
        chained: bool,
    ) -> (Value, Option<Value>) {
        let s = self.substitute(f, x);
        let shifted = f.permute(s, SHIFT_ROWS);
        (f.xor(shifted, key), chained.then_some(shifted))
    }
}
