//! CBC-MAC, the MAC inside CCM: FIPS 113, and SP 800-38C, section 6.1.
//!
//! CBC-MAC alone authenticates only messages of one fixed length: use [`crate::cmac`] instead.

use crate::{Aes, Block, blocks, xor};

/// Continues a CBC-MAC over whole blocks: Y_i = CIPH_K(B_i ^ Y_(i-1)), where Y_0 is `state` (SP 800-38C, section 6.1, steps
/// 2 to 3). For the first blocks of a message, `state` is zero.
///
/// # Panics
///
/// If the length of `data` is not a multiple of 16.
pub fn update(aes: &Aes, state: Block, data: &[u8]) -> Block {
    let mut y = state;
    for b in blocks(data) {
        y = aes.encrypt(xor(*b, y));
    }
    y
}
