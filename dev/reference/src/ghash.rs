//! GHASH, the universal hash of GCM: SP 800-38D, sections 6.3 and 6.4.

use crate::{Block, blocks, xor};

/// GHASH_H of whole blocks (SP 800-38D, section 6.4, algorithm 2).
///
/// # Panics
///
/// If the length of `data` is not a multiple of 16.
pub fn ghash(h: &Block, data: &[u8]) -> Block {
    update(h, [0; 16], data)
}

/// Continues GHASH_H: the steps of algorithm 2, with `state` as Y_0 (SP 800-38D, section 6.4).
///
/// # Panics
///
/// If the length of `data` is not a multiple of 16.
pub fn update(h: &Block, state: Block, data: &[u8]) -> Block {
    let mut y = state;
    for x in blocks(data) {
        y = mul(xor(y, *x), *h);
    }
    y
}

/// The product of two blocks in GF(2^128) modulo x^128 + x^7 + x^2 + x + 1, where the first bit of a block is
/// the coefficient of x^0 (SP 800-38D, section 6.3, algorithm 1).
pub fn mul(x: Block, y: Block) -> Block {
    /// R = 11100001 || 0^120.
    const R: u128 = 0xe1 << 120;
    let x = u128::from_be_bytes(x);
    let mut z = 0;
    let mut v = u128::from_be_bytes(y);
    for i in 0..128 {
        // x_i is the i-th bit from the left.
        if x >> (127 - i) & 1 == 1 {
            z ^= v;
        }
        v = if v & 1 == 0 { v >> 1 } else { (v >> 1) ^ R };
    }
    z.to_be_bytes()
}

#[cfg(test)]
mod tests;
