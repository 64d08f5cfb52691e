//! AES by its definition (FIPS 197), on expressions.

use super::expressions::{Expr, Expressions};

/// The 16 bytes of a block.
pub(super) type State = [[Expr; 8]; 16];

/// A block of public bytes.
pub(super) fn public(bytes: [u8; 16]) -> State {
    bytes.map(|byte| std::array::from_fn(|bit| Expr::from(byte >> bit & 1)))
}

pub(super) fn add(expressions: &mut Expressions, x: &State, y: &State) -> State {
    std::array::from_fn(|byte| std::array::from_fn(|bit| expressions.xor(x[byte][bit], y[byte][bit])))
}

/// MixColumns, or its inverse.
pub(super) fn mix_columns(expressions: &mut Expressions, state: &State, inverse: bool) -> State {
    let columns = state.as_chunks::<4>().0.iter().map(|column| expressions.mix_column(*column, inverse));
    let mixed: Vec<[Expr; 8]> = columns.flatten().collect();
    *mixed.first_chunk().expect("16 bytes")
}

/// AES with given round keys.
pub(super) struct Cipher {
    pub(super) round_keys: Vec<State>,
}

impl Cipher {
    /// Round keys that are independent of each other, for a key of `bits` bits.
    pub(super) fn new(expressions: &mut Expressions, bits: usize) -> Cipher {
        let mut key = || std::array::from_fn(|_| expressions.input(false));
        Cipher { round_keys: (0..=bits / 32 + 6).map(|_| key()).collect() }
    }

    /// The key expansion (5.2).
    pub(super) fn expanded(expressions: &mut Expressions, key: &[[Expr; 8]]) -> Cipher {
        let mut words: Vec<[[Expr; 8]; 4]> = key.as_chunks().0.to_vec();
        let (count, mut constant) = (words.len(), 1u8);
        for i in count..4 * (count + 7) {
            let mut word = words[i - 1];
            if i % count == 0 {
                word.rotate_left(1);
                word = word.map(|byte| expressions.sub_byte(byte, false));
                for (bit, expr) in word[0].iter_mut().enumerate() {
                    *expr = expressions.xor(*expr, Expr::from(constant >> bit & 1));
                }
                constant = constant << 1 ^ if constant & 0x80 != 0 { 0x1b } else { 0 };
            } else if count > 6 && i % count == 4 {
                word = word.map(|byte| expressions.sub_byte(byte, false));
            }
            // The kernel computes the names that inputs of S-boxes have been given.
            words[i - 1] = words[i - 1].map(|byte| byte.map(|expr| expressions.settle(expr, 0).expr));
            let before = words[i - count];
            words.push(std::array::from_fn(|byte| {
                std::array::from_fn(|bit| expressions.xor(before[byte][bit], word[byte][bit]))
            }));
        }
        Cipher { round_keys: words.as_flattened().as_chunks().0.to_vec() }
    }

    /// The schedule in memory: the round keys for encryption, then those for decryption in the order of use. InvMixColumns is applied to
    /// the latter except the first and the last.
    pub(super) fn schedule(&self, expressions: &mut Expressions) -> Vec<[Expr; 8]> {
        let last = self.round_keys.len() - 1;
        let mut all = self.round_keys.clone();
        for round in (0..=last).rev() {
            let key = self.round_keys[round];
            let is_end = round == 0 || round == last;
            all.push(if is_end { key } else { mix_columns(expressions, &key, true) });
        }
        all.into_flattened()
    }

    pub(super) fn rounds(&self) -> usize {
        self.round_keys.len() - 1
    }

    /// Rounds of CIPHER (5.1), on a state after AddRoundKey.
    pub(super) fn encrypt_rounds(
        &self,
        expressions: &mut Expressions,
        mut state: State,
        rounds: impl Iterator<Item = usize>,
    ) -> State {
        for round in rounds {
            state = state.map(|byte| expressions.sub_byte(byte, false));
            // ShiftRows: row r of column c comes from column c + r.
            state = std::array::from_fn(|place| state[(place + 4 * (place % 4)) % 16]);
            if round < self.rounds() {
                state = mix_columns(expressions, &state, false);
            }
            state = add(expressions, &state, &self.round_keys[round]);
        }
        state
    }

    /// CIPHER (5.1).
    pub(super) fn encrypt(&self, expressions: &mut Expressions, block: &State) -> State {
        let state = add(expressions, block, &self.round_keys[0]);
        self.encrypt_rounds(expressions, state, 1..self.round_keys.len())
    }

    /// INVCIPHER (5.3).
    pub(super) fn decrypt(&self, expressions: &mut Expressions, block: &State) -> State {
        let mut state = add(expressions, block, &self.round_keys[self.rounds()]);
        for round in (0..self.rounds()).rev() {
            // InvShiftRows: row r of column c comes from column c - r.
            state = std::array::from_fn(|place| state[(place + 12 * (place % 4)) % 16]);
            state = state.map(|byte| expressions.sub_byte(byte, true));
            state = add(expressions, &state, &self.round_keys[round]);
            if round > 0 {
                state = mix_columns(expressions, &state, true);
            }
        }
        state
    }
}
