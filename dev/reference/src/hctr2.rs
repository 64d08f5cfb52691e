//! HCTR2 with AES: Crowley, Huckleberry and Biggers, "Length-preserving encryption with HCTR2", IACR ePrint 2021/1441.
//! Names and steps are those of its specification (section 2).

use crate::polyval::polyval;
use crate::{Aes, Block, xor, zero_padded};

/// Encrypt(k, T, P): a permutation of the messages of the same length, selected by the tweak, which has any length.
///
/// # Panics
///
/// If `plaintext` has fewer than 16 bytes.
pub fn encrypt(aes: &Aes, tweak: &[u8], plaintext: &[u8]) -> Vec<u8> {
    let keys = Keys::new(aes);
    let (m, n) = split(plaintext);
    let mm = xor(m, keys.hash(tweak, n));
    let uu = aes.encrypt(mm);
    let s = xor(xor(mm, uu), keys.l);
    let v = xctr(aes, s, n);
    let u = xor(uu, keys.hash(tweak, &v));
    [&u, &v[..]].concat()
}

/// Decrypt(k, T, C), the inverse of [`encrypt`].
///
/// # Panics
///
/// If `ciphertext` has fewer than 16 bytes.
pub fn decrypt(aes: &Aes, tweak: &[u8], ciphertext: &[u8]) -> Vec<u8> {
    let keys = Keys::new(aes);
    let (u, v) = split(ciphertext);
    let uu = xor(u, keys.hash(tweak, v));
    let mm = aes.decrypt(uu);
    let s = xor(xor(mm, uu), keys.l);
    let n = xctr(aes, s, v);
    let m = xor(mm, keys.hash(tweak, &n));
    [&m, &n[..]].concat()
}

/// XCTR_k(S): E_k(S ^ bin(1)) || E_k(S ^ bin(2)) || ..., added to `data`.
///
/// Unlike the counter of CTR, the number is XORed into S, as a little-endian integer.
pub fn xctr(aes: &Aes, s: Block, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    for (i, chunk) in (1..).zip(data.chunks(16)) {
        let pad = aes.encrypt(xor(s, bin(i)));
        out.extend(chunk.iter().zip(pad).map(|(d, p)| d ^ p));
    }
    out
}

/// h = E_k(bin(0)), the key of the hash, and L = E_k(bin(1)).
struct Keys {
    h: Block,
    l: Block,
}

impl Keys {
    fn new(aes: &Aes) -> Keys {
        Keys { h: aes.encrypt(bin(0)), l: aes.encrypt(bin(1)) }
    }

    /// H_h(T, M): POLYVAL of the concatenation of a block, the padded tweak and the message. The block contains the length of the tweak in
    /// bits, and one bit that states whether the message consists of whole blocks. A partial last block is padded with a bit of 1 and
    /// zeros.
    fn hash(&self, t: &[u8], m: &[u8]) -> Block {
        let t_bits = 8 * t.len() as u128;
        let hashed = if m.len().is_multiple_of(16) {
            [&bin(2 * t_bits + 2)[..], &zero_padded(t), m].concat()
        } else {
            // Bits are numbered from the least significant bit of the first byte, so a bit of 1 and seven zeros are the byte 01.
            [&bin(2 * t_bits + 3)[..], &zero_padded(t), &zero_padded(&[m, &[1]].concat())].concat()
        };
        polyval(&self.h, &hashed)
    }
}

/// bin(x): 16 bytes, little-endian.
fn bin(x: u128) -> Block {
    x.to_le_bytes()
}

/// Splits data into M, the first block, and N, the other bytes.
fn split(data: &[u8]) -> (Block, &[u8]) {
    let (m, n) = data
        .split_first_chunk()
        .unwrap_or_else(|| panic!("HCTR2 needs at least 16 bytes, not {}", data.len()));
    (*m, n)
}
