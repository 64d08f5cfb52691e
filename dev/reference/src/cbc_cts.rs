//! Ciphertext stealing in CBC mode: the addendum to SP 800-38A (October 2010), variants CBC-CS1, CBC-CS2 and CBC-CS3.

use crate::{Aes, Block, cbc, xor, zero_padded};

/// The order of the last two parts of the ciphertext (addendum to SP 800-38A). C_(n-1)* is the penultimate block,
/// shortened to the length of the last part of the plaintext, 1 to 16 bytes; C_n is the last block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// C_(n-1)*, C_n.
    Cs1,
    /// As [`Variant::Cs3`] if C_(n-1)* is shorter than a block, otherwise as [`Variant::Cs1`], which is CBC then.
    Cs2,
    /// C_n, C_(n-1)*: the order of Kerberos (RFC 3962, section 5).
    Cs3,
}

impl Variant {
    /// True if C_n precedes C_(n-1)*, where `d` is the length of C_(n-1)* in bytes.
    fn swaps(self, d: usize) -> bool {
        match self {
            Variant::Cs1 => false,
            Variant::Cs2 => d < 16,
            Variant::Cs3 => true,
        }
    }
}

/// CBC-CS1-Encrypt, CBC-CS2-Encrypt and CBC-CS3-Encrypt (addendum to SP 800-38A).
///
/// Each variant encrypts a message of one block as in CBC, since there is no block before it with which it could be swapped.
/// Some implementations reject one block for CBC-CS3.
///
/// # Panics
///
/// If `plaintext` has fewer than 16 bytes.
pub fn encrypt(aes: &Aes, variant: Variant, iv: &Block, plaintext: &[u8]) -> Vec<u8> {
    let Some((n_minus_1, d)) = parse(plaintext) else {
        return cbc::encrypt(aes, iv, plaintext);
    };
    // CBC of the plaintext, padded with zeros. C_(n-1)* is the first d bytes of C_(n-1).
    let c = cbc::encrypt(aes, iv, &zero_padded(plaintext));
    let (before, last_two) = c.split_at(n_minus_1);
    let (c_n_minus_1, c_n) = last_two.split_at(16);
    let shortened = &c_n_minus_1[..d];
    if variant.swaps(d) { [before, c_n, shortened].concat() } else { [before, shortened, c_n].concat() }
}

/// CBC-CS1-Decrypt, CBC-CS2-Decrypt and CBC-CS3-Decrypt (addendum to SP 800-38A). See [`encrypt`].
///
/// # Panics
///
/// If `ciphertext` has fewer than 16 bytes.
pub fn decrypt(aes: &Aes, variant: Variant, iv: &Block, ciphertext: &[u8]) -> Vec<u8> {
    let Some((n_minus_1, d)) = parse(ciphertext) else {
        return cbc::decrypt(aes, iv, ciphertext);
    };
    let (before, last_two) = ciphertext.split_at(n_minus_1);
    let (shortened, c_n) = if variant.swaps(d) {
        let (c_n, shortened) = last_two.split_at(16);
        (shortened, c_n)
    } else {
        last_two.split_at(d)
    };
    // Z = CIPH^-1(C_n) = C_(n-1) ^ (P_n* || 0...0): its end is the end of C_(n-1), which encryption cut off.
    let z = aes.decrypt(c_n.try_into().expect("C_n has 16 bytes"));
    let mut c_n_minus_1 = z;
    c_n_minus_1[..d].copy_from_slice(shortened);
    let mut plaintext = cbc::decrypt(aes, iv, &[before, &c_n_minus_1].concat());
    plaintext.extend(&xor(z, c_n_minus_1)[..d]);
    plaintext
}

/// The position of block n - 1, and d, the length of the last part: 1 to 16 bytes. `None` if there is only one block.
fn parse(data: &[u8]) -> Option<(usize, usize)> {
    assert!(data.len() >= 16, "ciphertext stealing needs at least 16 bytes, not {}", data.len());
    let n = data.len().div_ceil(16);
    (n > 1).then(|| (16 * (n - 2), data.len() - 16 * (n - 1)))
}
