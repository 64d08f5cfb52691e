//! Cipher feedback with segments of 128, 8 and 1 bits: SP 800-38A, section 6.3.
//!
//! For segments of s bits, the forward cipher computes an output block O_j from an input block I_j. The first s bits of O_j
//! are added to the segment. I_(j+1) is I_j shifted left by s bits, with the *ciphertext* segment shifted in. Encryption
//! shifts in its output; decryption shifts in its input.

use crate::{Aes, Block};

/// CFB128 encryption, of any length (SP 800-38A, section 6.3).
/// The standard requires whole segments; here a shorter last segment is added to the first bytes of its output block, as in
/// OpenSSL.
pub fn encrypt128(aes: &Aes, iv: &Block, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    let mut input = *iv;
    for segment in data.chunks(16) {
        let o = aes.encrypt(input);
        for (i, p) in segment.iter().enumerate() {
            input[i] = p ^ o[i];
        }
        out.extend(&input[..segment.len()]);
    }
    out
}

/// CFB128 decryption, of any length (SP 800-38A, section 6.3); see [`encrypt128`] for a short last segment.
pub fn decrypt128(aes: &Aes, iv: &Block, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    let mut input = *iv;
    for segment in data.chunks(16) {
        let o = aes.encrypt(input);
        out.extend(segment.iter().zip(o).map(|(c, o)| c ^ o));
        input[..segment.len()].copy_from_slice(segment);
    }
    out
}

/// CFB8 encryption, of any length (SP 800-38A, section 6.3).
pub fn encrypt8(aes: &Aes, iv: &Block, data: &[u8]) -> Vec<u8> {
    let mut input = *iv;
    let segment = |p: &u8| {
        let c = p ^ aes.encrypt(input)[0];
        input = shift_in_byte(input, c);
        c
    };
    data.iter().map(segment).collect()
}

/// CFB8 decryption, of any length (SP 800-38A, section 6.3).
pub fn decrypt8(aes: &Aes, iv: &Block, data: &[u8]) -> Vec<u8> {
    let mut input = *iv;
    let segment = |c: &u8| {
        let p = c ^ aes.encrypt(input)[0];
        input = shift_in_byte(input, *c);
        p
    };
    data.iter().map(segment).collect()
}

/// CFB1 encryption of the first `bits` bits of `data` (SP 800-38A, section 6.3).
/// Bit i is bit 7 - (i mod 8) of byte i / 8: the most significant first. Unused bits of the last byte are 0 in the
/// output.
///
/// # Panics
///
/// If `data` has fewer than `bits` bits.
pub fn encrypt1(aes: &Aes, iv: &Block, data: &[u8], bits: usize) -> Vec<u8> {
    let mut out = vec![0; bits.div_ceil(8)];
    let mut input = *iv;
    for i in 0..bits {
        let c = bit(data, i) ^ bit(&aes.encrypt(input), 0);
        out[i / 8] |= c << (7 - i % 8);
        input = shift_in_bit(input, c);
    }
    out
}

/// CFB1 decryption of the first `bits` bits of `data` (SP 800-38A, section 6.3); see [`encrypt1`] for their
/// order.
///
/// # Panics
///
/// If `data` has fewer than `bits` bits.
pub fn decrypt1(aes: &Aes, iv: &Block, data: &[u8], bits: usize) -> Vec<u8> {
    let mut out = vec![0; bits.div_ceil(8)];
    let mut input = *iv;
    for i in 0..bits {
        let c = bit(data, i);
        let p = c ^ bit(&aes.encrypt(input), 0);
        out[i / 8] |= p << (7 - i % 8);
        input = shift_in_bit(input, c);
    }
    out
}

/// LSB_120(input) | c.
fn shift_in_byte(input: Block, c: u8) -> Block {
    (u128::from_be_bytes(input) << 8 | u128::from(c)).to_be_bytes()
}

/// LSB_127(input) | c.
fn shift_in_bit(input: Block, c: u8) -> Block {
    (u128::from_be_bytes(input) << 1 | u128::from(c)).to_be_bytes()
}

/// Bit `i` of `data`; bit 0 is the most significant bit of the first byte.
fn bit(data: &[u8], i: usize) -> u8 {
    data[i / 8] >> (7 - i % 8) & 1
}
