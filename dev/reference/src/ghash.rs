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
mod tests {
    use super::*;

    /// Field laws that follow from the definition: 1 is the block in which only the first bit is set.
    #[test]
    fn field_laws() {
        let one = (1u128 << 127).to_be_bytes();
        let [a, b, c]: [Block; 3] =
            [3u8, 29, 101].map(|s| std::array::from_fn(|i| s.wrapping_mul(i as u8 + 7)));
        assert_eq!(mul(a, one), a);
        assert_eq!(mul(a, b), mul(b, a));
        assert_eq!(mul(mul(a, b), c), mul(a, mul(b, c)));
        assert_eq!(mul(xor(a, b), c), xor(mul(a, c), mul(b, c)));
    }

    #[test]
    fn update_continues() {
        let h: Block = std::array::from_fn(|i| 5 * i as u8 + 1);
        let data: Vec<u8> = (0..80).collect();
        assert_eq!(update(&h, ghash(&h, &data[..32]), &data[32..]), ghash(&h, &data));
    }
}
