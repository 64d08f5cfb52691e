//! AES-SIV: synthetic initialization vector, RFC 5297.

use crate::cmac::{cmac, double};
use crate::{Aes, Block, ctr, xor};

/// The largest number of strings of [`s2v`]: associated data and the plaintext (RFC 5297, sections 2.6 and 7).
const MAX_STRINGS: usize = 127;

/// SIV-ENCRYPT (RFC 5297, section 2.6). Returns the ciphertext and V, the synthetic IV; the standard's Z is V || C.
///
/// `key` has 32, 48 or 64 bytes. Its first half authenticates, and its second half encrypts. For encryption with a nonce,
/// the nonce is the last string of `associated_data` (section 3).
///
/// # Panics
///
/// If `key` is not 32, 48 or 64 bytes, or there are more than 126 strings of associated data.
pub fn seal(key: &[u8], associated_data: &[&[u8]], plaintext: &[u8]) -> (Vec<u8>, Block) {
    let (k1, k2) = keys(key);
    let v = s2v(&k1, &[associated_data, &[plaintext]].concat());
    (ctr::apply(&k2, &counter(v), plaintext), v)
}

/// SIV-DECRYPT (RFC 5297, section 2.7). See [`seal`].
///
/// `None` if `v` is not the synthetic IV of the decrypted plaintext and the associated data, or is not 16 bytes.
///
/// # Panics
///
/// As [`seal`].
pub fn open(key: &[u8], associated_data: &[&[u8]], ciphertext: &[u8], v: &[u8]) -> Option<Vec<u8>> {
    let (k1, k2) = keys(key);
    let v = v.try_into().ok()?;
    let plaintext = ctr::apply(&k2, &counter(v), ciphertext);
    let t = s2v(&k1, &[associated_data, &[&plaintext]].concat());
    (t == v).then_some(plaintext)
}

/// S2V of any number of strings (RFC 5297, section 2.4). An empty string differs from no string.
///
/// # Panics
///
/// If there are more than 127 strings.
pub fn s2v(aes: &Aes, strings: &[&[u8]]) -> Block {
    assert!(strings.len() <= MAX_STRINGS, "S2V takes at most {MAX_STRINGS} strings, not {}", strings.len());
    let Some((s_n, before)) = strings.split_last() else {
        let one = 1u128.to_be_bytes();
        return cmac(aes, &one);
    };
    let mut d = cmac(aes, &[0; 16]);
    for s_i in before {
        d = xor(double(d), cmac(aes, s_i));
    }
    let t = if s_n.len() >= 16 {
        // Sn xorend D: D is added to the last 16 bytes.
        let (head, last) = s_n.split_last_chunk::<16>().expect("at least 16 bytes");
        [head, &xor(*last, d)].concat()
    } else {
        xor(double(d), pad(s_n)).to_vec()
    };
    cmac(aes, &t)
}

/// pad(X): X || 10..0, for fewer than 16 bytes (RFC 5297, section 2.1).
fn pad(x: &[u8]) -> Block {
    let mut padded = [0; 16];
    padded[..x.len()].copy_from_slice(x);
    padded[x.len()] = 0x80;
    padded
}

/// Q = V bitand (1^64 || 0^1 || 1^31 || 0^1 || 1^31), the first counter block (RFC 5297, section 2.6).
fn counter(v: Block) -> Block {
    let mut q = v;
    q[8] &= 0x7f;
    q[12] &= 0x7f;
    q
}

/// K1 = leftmost(K, len(K)/2) and K2 = rightmost(K, len(K)/2) (RFC 5297, section 2.6).
fn keys(key: &[u8]) -> (Aes, Aes) {
    assert!(matches!(key.len(), 32 | 48 | 64), "an AES-SIV key has 32, 48 or 64 bytes, not {}", key.len());
    let (k1, k2) = key.split_at(key.len() / 2);
    (Aes::new(k1), Aes::new(k2))
}
