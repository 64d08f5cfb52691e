//! The S-box as 256 bytes in sixteen registers, as in the paper and in the Cell's programming handbook.
//!
//! `shufb` looks up one of 32 bytes by five bits of the index. The other three bits select among the results of eight
//! lookups. Two steps differ from the paper. First, the top bit is not used for a selection. Instead, each lookup is
//! done twice, once with the top bit flipped, and the two results are added. The control byte with the top bit set
//! gives a constant that depends only on the next two bits (00, 00, FF or 80). The tables include this constant, so
//! that it cancels in the sum. Second, the masks for the other two bits can be computed by a shift on the odd pipe.

use super::aes::{AesRounds, Block};
use super::field::sbox;
use super::permutation::{SHIFT_ROWS, after, rotated};
use crate::schedule::{Flow, Value};

/// Encryption by lookups in registers with the shortest latency, for one chain of dependent blocks.
pub(crate) struct Lookup;

/// The result of `shufb` for a control byte with the top bit set, indexed by the next two bits.
const CONSTANTS: [u8; 4] = [0, 0, 0xff, 0x80];

/// Sixteen bytes of the S-box. Each lookup is done twice, and one of the two results is a constant. This constant has
/// been added to the bytes of the table, so that it cancels in the sum of both results.
fn table(quarter: usize, part: usize, flipped: bool) -> Block {
    let start = quarter * 32 + part * 16 + if flipped { 128 } else { 0 };
    std::array::from_fn(|i| sbox((start + i) as u8) ^ CONSTANTS[quarter])
}

/// SubBytes. If `balanced`, the scheduler chooses for each mask between the even pipe and both pipes.
pub(super) fn substitute(f: &mut Flow, x: Value, balanced: bool) -> Value {
    let flipped = f.xor_bytes(x, 0x80);
    let quarters: [Value; 4] = std::array::from_fn(|quarter| {
        let mut half = |index, is_flipped| {
            let low = f.constant(table(quarter, 0, is_flipped));
            let high = f.constant(table(quarter, 1, is_flipped));
            f.shuffle(low, high, index)
        };
        let (a, b) = (half(x, false), half(flipped, true));
        f.xor(a, b)
    });
    let bit5 = mask(f, x, 5, balanced);
    let bit6 = mask(f, x, 6, balanced);
    let low = f.select(quarters[0], quarters[1], bit5);
    let high = f.select(quarters[2], quarters[3], bit5);
    f.select(low, high, bit6)
}

/// Returns 0xff in the bytes in which this bit is set.
fn mask(f: &mut Flow, x: Value, bit: u32, balanced: bool) -> Value {
    let tested = |f: &mut Flow| {
        let bits = f.and_bytes(x, 1 << bit);
        f.bytes_equal(bits, 1 << bit)
    };
    let shifted = |f: &mut Flow| {
        let top = f.shift_left(x, 7 - bit as i32);
        f.top_bit_set(top)
    };
    if balanced { f.either(tested, shifted) } else { tested(f) }
}

/// ShiftRows, MixColumns and AddRoundKey: the column (2, 3, 1, 1) computed as 2 (r0 + r1) + r1 + (r2 + r3). The result is ready ten
/// cycles after the sum of rows 0 and 1, if there is no conflict on the even pipe.
fn mix(f: &mut Flow, s: Value, key: Value) -> Value {
    let row1 = f.permute(s, after(&SHIFT_ROWS, &rotated(1)));
    let row0 = f.permute(s, SHIFT_ROWS);
    let row01 = f.xor(row0, row1);
    let keyed = f.xor(row1, key);
    // An addition doubles the bytes with half the latency of a shift.
    let low = f.and_bytes(row01, 0x7f);
    let doubled = f.add_words(low, low);
    // Both possible results of the reduction are computed before the bit that selects one of them is known.
    let reduced = f.xor_bytes(keyed, 0x1b);
    let mask = f.top_bit_set(row01);
    let keyed = f.select(keyed, reduced, mask);
    let row23 = f.permute(row01, rotated(2));
    f.sum(&[keyed, row23, doubled])
}

impl AesRounds for Lookup {
    fn round(&self, f: &mut Flow, _: usize, x: Value, key: Value) -> Value {
        let s = substitute(f, x, false);
        mix(f, s, key)
    }

    fn last_round(
        &self,
        f: &mut Flow,
        _: usize,
        x: Value,
        key: Value,
        chained: bool,
    ) -> (Value, Option<Value>) {
        let s = substitute(f, x, false);
        let shifted = f.permute(s, SHIFT_ROWS);
        (f.xor(shifted, key), chained.then_some(shifted))
    }
}
