//! Galois/counter mode and GMAC: SP 800-38D, section 7.

use crate::ctr::{apply32, inc32};
use crate::ghash::ghash;
use crate::{Aes, Block, xor, zero_padded};

/// Authenticated encryption: GCM-AE (SP 800-38D, section 7.1, algorithm 4).
///
/// Returns the ciphertext and the tag of 16 bytes; a shorter tag is its first bytes (MSB_t, step 6).
///
/// # Panics
///
/// If `iv` is empty.
pub fn seal(aes: &Aes, iv: &[u8], aad: &[u8], plaintext: &[u8]) -> (Vec<u8>, Block) {
    let j0 = pre_counter_block(aes, iv);
    let ciphertext = apply32(aes, &inc32(j0), plaintext);
    let tag = tag(aes, j0, aad, &ciphertext);
    (ciphertext, tag)
}

/// Authenticated decryption: GCM-AD (SP 800-38D, section 7.2, algorithm 5).
///
/// `None` if the tag is wrong, or has a length that section 5.2.1.2 does not allow (16, 15, 14, 13, 12, 8 or 4 bytes).
///
/// # Panics
///
/// If `iv` is empty.
pub fn open(aes: &Aes, iv: &[u8], aad: &[u8], ciphertext: &[u8], tag: &[u8]) -> Option<Vec<u8>> {
    if !matches!(tag.len(), 4 | 8 | 12..=16) {
        return None;
    }
    let j0 = pre_counter_block(aes, iv);
    let expected = self::tag(aes, j0, aad, ciphertext);
    (tag == &expected[..tag.len()]).then(|| apply32(aes, &inc32(j0), ciphertext))
}

/// GMAC: the tag of additional data without a message (SP 800-38D, sections 3 and 7.1).
///
/// # Panics
///
/// If `iv` is empty.
pub fn gmac(aes: &Aes, iv: &[u8], aad: &[u8]) -> Block {
    seal(aes, iv, aad, &[]).1
}

/// H = CIPH_K(0^128) (SP 800-38D, section 7.1, step 1).
fn hash_subkey(aes: &Aes) -> Block {
    aes.encrypt([0; 16])
}

/// J_0 (SP 800-38D, section 7.1, step 2).
fn pre_counter_block(aes: &Aes, iv: &[u8]) -> Block {
    assert!(!iv.is_empty(), "GCM needs an IV of at least one byte");
    let mut j0 = zero_padded(iv);
    if iv.len() == 12 {
        j0[15] = 1;
        j0.try_into().expect("12 bytes pad to one block")
    } else {
        j0.extend([0; 8]);
        j0.extend(bits(iv));
        ghash(&hash_subkey(aes), &j0)
    }
}

/// T before truncation (SP 800-38D, section 7.1, steps 5 and 6).
fn tag(aes: &Aes, j0: Block, aad: &[u8], ciphertext: &[u8]) -> Block {
    let mut hashed = zero_padded(aad);
    hashed.extend(zero_padded(ciphertext));
    hashed.extend(bits(aad));
    hashed.extend(bits(ciphertext));
    let s = ghash(&hash_subkey(aes), &hashed);
    // GCTR_K(J_0, S)
    xor(s, aes.encrypt(j0))
}

/// [len(x)]_64: the length in bits, as eight bytes.
fn bits(x: &[u8]) -> [u8; 8] {
    (8 * x.len() as u64).to_be_bytes()
}
