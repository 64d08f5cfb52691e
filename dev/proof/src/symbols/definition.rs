//! AES (FIPS 197) and the arithmetic of GHASH and POLYVAL (RFC 8452), as the standards define them, on expressions.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use super::{Bit, Symbol, Symbols, Table, ZERO};
use crate::value::Domain;

/// A block of 16 bytes.
pub(crate) type Block = [Symbol; 16];

/// The operations of the definitions on expressions.
pub(crate) trait Operations {
    fn xor(&mut self, x: Bit, y: Bit) -> Bit;

    fn sum(&mut self, terms: &[Bit]) -> Bit;

    /// The S-box, or its inverse.
    fn sub_byte(&mut self, byte: Symbol, inverse: bool) -> Symbol;

    /// The expression that results of code have in place of this one.
    fn settled(&mut self, bit: Bit) -> Bit {
        bit
    }
}

impl Operations for Table {
    fn xor(&mut self, x: Bit, y: Bit) -> Bit {
        Table::xor(self, x, y)
    }

    fn sum(&mut self, terms: &[Bit]) -> Bit {
        Table::sum(self, terms)
    }

    fn sub_byte(&mut self, byte: Symbol, inverse: bool) -> Symbol {
        Table::sub_byte(self, byte, inverse)
    }
}

/// The XOR of two blocks.
pub(crate) fn add(table: &mut impl Operations, x: &Block, y: &Block) -> Block {
    std::array::from_fn(|byte| std::array::from_fn(|bit| table.xor(x[byte][bit], y[byte][bit])))
}

/// The round keys of a key (FIPS 197, 5.2).
pub(crate) fn round_keys(table: &mut impl Operations, key: &[Symbol]) -> Vec<Block> {
    let mut words: Vec<[Symbol; 4]> = key.as_chunks().0.to_vec();
    let (count, mut constant) = (words.len(), 1u8);
    for i in count..4 * (count + 7) {
        let mut word = words[i - 1];
        if i % count == 0 {
            word.rotate_left(1);
            word = word.map(|byte| table.sub_byte(byte, false));
            let bits = Symbols::constant(constant);
            word[0] = std::array::from_fn(|bit| table.xor(word[0][bit], bits[bit]));
            constant = constant << 1 ^ if constant & 0x80 != 0 { 0x1b } else { 0 };
        } else if count > 6 && i % count == 4 {
            word = word.map(|byte| table.sub_byte(byte, false));
        }
        words[i - 1] = words[i - 1].map(|byte| byte.map(|bit| table.settled(bit)));
        let before = words[i - count];
        words.push(std::array::from_fn(|byte| {
            std::array::from_fn(|bit| table.xor(before[byte][bit], word[byte][bit]))
        }));
    }
    words.as_flattened().as_chunks().0.to_vec()
}

/// Rounds of CIPHER (FIPS 197, 5.1), on a state after AddRoundKey.
pub(crate) fn encrypt_rounds(
    table: &mut impl Operations,
    round_keys: &[Block],
    mut state: Block,
    rounds: RangeInclusive<usize>,
) -> Block {
    for round in rounds {
        state = state.map(|byte| table.sub_byte(byte, false));
        // ShiftRows: row r of column c comes from column c + r.
        state = std::array::from_fn(|place| state[(place + 4 * (place % 4)) % 16]);
        if round + 1 < round_keys.len() {
            state = mix_columns(table, &state, false);
        }
        state = add(table, &state, &round_keys[round]);
    }
    state
}

/// CIPHER (FIPS 197, 5.1).
pub(crate) fn encrypt(table: &mut impl Operations, round_keys: &[Block], block: &Block) -> Block {
    let state = add(table, block, &round_keys[0]);
    encrypt_rounds(table, round_keys, state, 1..=round_keys.len() - 1)
}

/// The round keys of [`decrypt`] (KEYEXPANSIONEIC of FIPS 197, 5.3.5).
pub(crate) fn decryption_keys(table: &mut impl Operations, round_keys: &[Block]) -> Vec<Block> {
    let rounds = round_keys.len() - 1;
    let mut keys = round_keys.to_vec();
    keys[1..rounds].iter_mut().for_each(|key| *key = mix_columns(table, key, true));
    keys
}

/// EQINVCIPHER (FIPS 197, 5.3.5), which is equal to INVCIPHER. It is used because its sums have fewer terms.
pub(crate) fn decrypt(table: &mut impl Operations, decryption_keys: &[Block], block: &Block) -> Block {
    let rounds = decryption_keys.len() - 1;
    let mut state = add(table, block, &decryption_keys[rounds]);
    for round in (0..rounds).rev() {
        state = state.map(|byte| table.sub_byte(byte, true));
        // InvShiftRows: row r of column c comes from column c - r.
        state = std::array::from_fn(|place| state[(place + 12 * (place % 4)) % 16]);
        if round > 0 {
            state = mix_columns(table, &state, true);
        }
        state = add(table, &state, &decryption_keys[round]);
    }
    state
}

/// For each bit of a byte: terms, which are the row and the bit of an input.
type Terms = [Vec<(usize, usize)>; 8];

/// The terms of MixColumns, or of its inverse (FIPS 197, 5.1.3 and 5.3.3): for each bit of the first byte of a column, the inputs that are
/// added.
fn mixing(inverse: bool) -> Terms {
    // The first row of the matrix.
    let factors: [u8; 4] = if inverse { [0xe, 0xb, 0xd, 0x9] } else { [2, 3, 1, 1] };
    let mut terms: Terms = Default::default();
    for (row, factor) in factors.into_iter().enumerate() {
        // Bit j of the factor adds the byte times x^j, modulo x^8 + x^4 + x^3 + x + 1 (4.2).
        let mut product: Terms = std::array::from_fn(|bit| vec![(row, bit)]);
        for power in 0..4 {
            if factor >> power & 1 == 1 {
                terms.iter_mut().zip(&product).for_each(|(terms, bits)| terms.extend(bits));
            }
            product.rotate_right(1);
            let carry = product[0].clone();
            [1, 3, 4].into_iter().for_each(|bit| product[bit].extend(&carry));
        }
    }
    terms
}

/// MixColumns, or its inverse (FIPS 197, 5.1.3 and 5.3.3).
pub(crate) fn mix_columns(table: &mut impl Operations, state: &Block, inverse: bool) -> Block {
    static TERMS: LazyLock<[Terms; 2]> = LazyLock::new(|| [mixing(false), mixing(true)]);
    let mut terms = Vec::new();
    std::array::from_fn(|place| {
        let (column, first) = (place / 4 * 4, place % 4);
        std::array::from_fn(|bit| {
            let inputs = &TERMS[usize::from(inverse)][bit];
            terms.clear();
            terms.extend(inputs.iter().map(|(row, bit)| state[column + (first + row) % 4][*bit]));
            table.sum(&terms)
        })
    })
}

/// The exponents of the modulus of POLYVAL's field without x^128: x^128 + x^127 + x^126 + x^121 + 1 (RFC 8452, section 3).
pub(crate) const POLYVAL: [usize; 4] = [0, 121, 126, 127];

/// Multiplies a polynomial by x, modulo the sum of x^128 and the powers of x with the exponents `modulus`. The bits of `value` are
/// the 128 coefficients, in ascending order of the powers.
pub(crate) fn times_x(table: &mut impl Operations, value: &[Bit; 128], modulus: &[usize]) -> [Bit; 128] {
    std::array::from_fn(|place| {
        let below = if place == 0 { ZERO } else { value[place - 1] };
        if modulus.contains(&place) { table.xor(below, value[127]) } else { below }
    })
}

/// Divides an element of POLYVAL's field by x: the inverse of [`times_x`].
pub(crate) fn divided_by_x(table: &mut impl Operations, value: &[Bit; 128]) -> [Bit; 128] {
    // `times_x` adds the highest bit to the bits of the modulus. The lowest bit is otherwise zero.
    std::array::from_fn(|place| match place + 1 {
        128 => value[0],
        next if POLYVAL.contains(&next) => table.xor(value[next], value[0]),
        next => value[next],
    })
}

/// The product of two elements of POLYVAL's field times x^-128 (`dot` of RFC 8452, section 3). `terms` has the terms of each of the
/// coefficients of the product of the polynomials.
pub(crate) fn reduced(table: &mut impl Operations, mut terms: [Vec<Bit>; 256]) -> [Bit; 128] {
    // Multiples of the modulus are added to clear the coefficients below x^128, from the lowest one on. The remaining
    // coefficients are then divided by x^128.
    for place in 0..128 {
        let lowest = std::mem::take(&mut terms[place]);
        let bit = table.sum(&lowest);
        // The term 1 of the modulus clears this coefficient.
        for exponent in POLYVAL[1..].iter().chain(&[128]) {
            terms[place + exponent].push(bit);
        }
    }
    std::array::from_fn(|place| table.sum(&terms[128 + place]))
}
