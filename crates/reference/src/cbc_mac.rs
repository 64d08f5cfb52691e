//! CBC-MAC, the MAC inside CCM: FIPS 113, and SP 800-38C, section 6.1.
//!
//! By itself it authenticates only messages of one fixed length: use [`crate::cmac`] instead.

use crate::{Aes, Block, blocks, xor};

/// The chain of CBC-MAC continued over whole blocks: Y_i = CIPH_K(B_i ^ Y_(i-1)) from Y = `state`, at first
/// zero (SP 800-38C, section 6.1, steps 2 to 3).
///
/// # Panics
///
/// If `data` is not whole blocks.
pub fn update(aes: &Aes, state: Block, data: &[u8]) -> Block {
    let mut y = state;
    for b in blocks(data) {
        y = aes.encrypt(xor(*b, y));
    }
    y
}
