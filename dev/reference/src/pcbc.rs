//! Propagating cipher block chaining.
//!
//! This mode is not in a NIST standard. It comes from Kerberos version 4 (Steiner, Neuman and Schiller, "Kerberos: An Authentication
//! Service for Open Network Systems", USENIX Winter 1988) and is described in Schneier, "Applied Cryptography": the chaining value is the
//! XOR of the last plaintext block and the last ciphertext block.

use crate::{Aes, Block, blocks, xor};

/// PCBC encryption of whole blocks: C_j = CIPH(P_j ^ P_(j-1) ^ C_(j-1)), with P_0 ^ C_0 the IV (see the
/// [module](self) for sources).
///
/// # Panics
///
/// If the length of `data` is not a multiple of 16.
pub fn encrypt(aes: &Aes, iv: &Block, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    let mut chain = *iv;
    for p in blocks(data) {
        let c = aes.encrypt(xor(*p, chain));
        out.extend(c);
        chain = xor(*p, c);
    }
    out
}

/// PCBC decryption of whole blocks: P_j = CIPH^-1(C_j) ^ P_(j-1) ^ C_(j-1), with P_0 ^ C_0 the IV (see the
/// [module](self) for sources).
///
/// # Panics
///
/// If the length of `data` is not a multiple of 16.
pub fn decrypt(aes: &Aes, iv: &Block, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    let mut chain = *iv;
    for c in blocks(data) {
        let p = xor(aes.decrypt(*c), chain);
        out.extend(p);
        chain = xor(p, *c);
    }
    out
}
