//! The block cipher: FIPS 197, section 5.

use crate::gf256::{inverse, mul, xtime};
use crate::{Block, xor};

/// AES under one key: AES-128, AES-192 or AES-256 (FIPS 197, sections 5 and 6).
#[derive(Clone)]
pub struct Aes {
    round_keys: Vec<Block>,
}

impl Aes {
    /// Expands `key`: `KeyExpansion()` (FIPS 197, section 5.2, algorithm 2).
    ///
    /// # Panics
    ///
    /// If `key` is not 16, 24 or 32 bytes.
    pub fn new(key: &[u8]) -> Aes {
        assert!(matches!(key.len(), 16 | 24 | 32), "an AES key has 16, 24 or 32 bytes, not {}", key.len());
        // Nk, the number of words of the key, and Nr, the number of rounds (section 5).
        let nk = key.len() / 4;
        let nr = nk + 6;

        let mut w: Vec<[u8; 4]> = key.as_chunks().0.to_vec();
        let mut rcon = 0x01;
        for i in nk..4 * (nr + 1) {
            let mut temp = w[i - 1];
            if i % nk == 0 {
                temp.rotate_left(1); // RotWord
                temp = temp.map(sub_byte); // SubWord
                temp[0] ^= rcon;
                rcon = xtime(rcon);
            } else if nk > 6 && i % nk == 4 {
                temp = temp.map(sub_byte);
            }
            w.push(std::array::from_fn(|j| w[i - nk][j] ^ temp[j]));
        }
        Aes { round_keys: blocks_of_words(&w) }
    }

    /// The round keys in the order of encryption: 11, 13 or 15 (FIPS 197, section 5.2).
    pub fn round_keys(&self) -> &[Block] {
        &self.round_keys
    }

    /// Encrypts one block: `Cipher()` (FIPS 197, section 5.1, algorithm 1).
    pub fn encrypt(&self, block: Block) -> Block {
        let nr = self.round_keys.len() - 1;
        let mut state = xor(block, self.round_keys[0]); // AddRoundKey (section 5.1.4)
        for round_key in &self.round_keys[1..nr] {
            state = xor(mix_columns(shift_rows(sub_bytes(state))), *round_key);
        }
        xor(shift_rows(sub_bytes(state)), self.round_keys[nr])
    }

    /// Decrypts one block: `InvCipher()` (FIPS 197, section 5.3, algorithm 3).
    pub fn decrypt(&self, block: Block) -> Block {
        let nr = self.round_keys.len() - 1;
        let mut state = xor(block, self.round_keys[nr]);
        for round_key in self.round_keys[1..nr].iter().rev() {
            state = inv_mix_columns(xor(inv_sub_bytes(inv_shift_rows(state)), *round_key));
        }
        xor(inv_sub_bytes(inv_shift_rows(state)), self.round_keys[0])
    }
}

/// Groups words into round keys of four words (FIPS 197, section 5.2).
fn blocks_of_words(w: &[[u8; 4]]) -> Vec<Block> {
    w.as_flattened().as_chunks().0.to_vec()
}

/// The byte of row `r` and column `c` in the state: bytes fill the state column by column (FIPS 197, section
/// 3.4).
const fn at(r: usize, c: usize) -> usize {
    r + 4 * c
}

/// The S-box, by its definition: the inverse in GF(2^8), then an affine map (FIPS 197, section 5.1.1).
const SBOX: [u8; 256] = {
    let mut sbox = [0; 256];
    let mut b = 0;
    while b < 256 {
        let x = inverse(b as u8);
        // Bit i of the sum is x_i + x_(i+4) + x_(i+5) + x_(i+6) + x_(i+7), indices mod 8.
        let sum = x ^ x.rotate_right(4) ^ x.rotate_right(5) ^ x.rotate_right(6) ^ x.rotate_right(7);
        sbox[b] = sum ^ 0x63;
        b += 1;
    }
    sbox
};

/// The inverse of the S-box (FIPS 197, section 5.3.2).
const INV_SBOX: [u8; 256] = {
    let mut inv_sbox = [0; 256];
    let mut b = 0;
    while b < 256 {
        inv_sbox[SBOX[b] as usize] = b as u8;
        b += 1;
    }
    inv_sbox
};

fn sub_byte(b: u8) -> u8 {
    SBOX[b as usize]
}

/// `SubBytes()` (FIPS 197, section 5.1.1).
fn sub_bytes(state: Block) -> Block {
    state.map(sub_byte)
}

/// `InvSubBytes()` (FIPS 197, section 5.3.2).
fn inv_sub_bytes(state: Block) -> Block {
    state.map(|b| INV_SBOX[b as usize])
}

/// `ShiftRows()`: row r moves r columns to the left (FIPS 197, section 5.1.2).
fn shift_rows(state: Block) -> Block {
    let mut shifted = [0; 16];
    for r in 0..4 {
        for c in 0..4 {
            shifted[at(r, c)] = state[at(r, (c + r) % 4)];
        }
    }
    shifted
}

/// `InvShiftRows()`: row r moves r columns to the right (FIPS 197, section 5.3.1).
fn inv_shift_rows(state: Block) -> Block {
    let mut shifted = [0; 16];
    for r in 0..4 {
        for c in 0..4 {
            shifted[at(r, (c + r) % 4)] = state[at(r, c)];
        }
    }
    shifted
}

/// `MixColumns()`: each column times the circulant matrix of 2, 3, 1, 1 (FIPS 197, section 5.1.3).
fn mix_columns(state: Block) -> Block {
    let by_2 = state.map(xtime);
    let by_3 = xor(by_2, state);
    let mut mixed = [0; 16];
    for c in 0..4 {
        for r in 0..4 {
            let row = |k: usize| at((r + k) % 4, c);
            mixed[at(r, c)] = by_2[row(0)] ^ by_3[row(1)] ^ state[row(2)] ^ state[row(3)];
        }
    }
    mixed
}

/// Products of every byte with 14, 11, 13 and 9: a table, since computing them would make [`inv_mix_columns`] very
/// slow.
const TIMES: [[u8; 256]; 4] = {
    let factors = [0x0e, 0x0b, 0x0d, 0x09];
    let mut times = [[0; 256]; 4];
    let mut k = 0;
    while k < 4 {
        let mut b = 0;
        while b < 256 {
            times[k][b] = mul(b as u8, factors[k]);
            b += 1;
        }
        k += 1;
    }
    times
};

/// `InvMixColumns()`: each column times the circulant matrix of 14, 11, 13, 9 (FIPS 197, section 5.3.3).
fn inv_mix_columns(state: Block) -> Block {
    let mut mixed = [0; 16];
    for c in 0..4 {
        for r in 0..4 {
            for (k, times) in TIMES.iter().enumerate() {
                mixed[at(r, c)] ^= times[state[at((r + k) % 4, c)] as usize];
            }
        }
    }
    mixed
}

#[cfg(test)]
mod tests;
