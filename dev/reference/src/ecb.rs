//! Electronic codebook: SP 800-38A, section 6.1.

use crate::{Aes, Block, blocks};

/// ECB encryption of whole blocks (SP 800-38A, section 6.1).
///
/// # Panics
///
/// If the length of `data` is not a multiple of 16.
pub fn encrypt(aes: &Aes, data: &[u8]) -> Vec<u8> {
    blocks(data).iter().flat_map(|p: &Block| aes.encrypt(*p)).collect()
}

/// ECB decryption of whole blocks (SP 800-38A, section 6.1).
///
/// # Panics
///
/// If the length of `data` is not a multiple of 16.
pub fn decrypt(aes: &Aes, data: &[u8]) -> Vec<u8> {
    blocks(data).iter().flat_map(|c: &Block| aes.decrypt(*c)).collect()
}
