//! Cipher block chaining: SP 800-38A, section 6.2.

use crate::{Aes, Block, blocks, xor};

/// CBC encryption of whole blocks: C_j = CIPH(P_j ^ C_(j-1)), with C_0 the IV (SP 800-38A, section 6.2).
///
/// # Panics
///
/// If the length of `data` is not a multiple of 16.
pub fn encrypt(aes: &Aes, iv: &Block, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    let mut previous = *iv;
    for p in blocks(data) {
        let c = aes.encrypt(xor(*p, previous));
        out.extend(c);
        previous = c;
    }
    out
}

/// CBC decryption of whole blocks: P_j = CIPH^-1(C_j) ^ C_(j-1), with C_0 the IV (SP 800-38A, section 6.2).
///
/// # Panics
///
/// If the length of `data` is not a multiple of 16.
pub fn decrypt(aes: &Aes, iv: &Block, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    let mut previous = *iv;
    for c in blocks(data) {
        out.extend(xor(aes.decrypt(*c), previous));
        previous = *c;
    }
    out
}
