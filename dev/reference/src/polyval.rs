//! POLYVAL, the universal hash of AES-GCM-SIV and HCTR2: RFC 8452, section 3.

use crate::{Block, blocks, xor};

/// x^-128 = x^127 + x^124 + x^121 + x^114 + 1 (RFC 8452, section 3).
const X_TO_MINUS_128: u128 = 1 << 127 | 1 << 124 | 1 << 121 | 1 << 114 | 1;

/// POLYVAL(H, X_1, ..., X_s) of whole blocks (RFC 8452, section 3).
///
/// # Panics
///
/// If the length of `data` is not a multiple of 16.
pub fn polyval(h: &Block, data: &[u8]) -> Block {
    update(h, [0; 16], data)
}

/// Continues POLYVAL: S_j = dot(S_(j-1) + X_j, H), with `state` as S_0 (RFC 8452, section 3).
///
/// # Panics
///
/// If the length of `data` is not a multiple of 16.
pub fn update(h: &Block, state: Block, data: &[u8]) -> Block {
    let mut s = state;
    for x in blocks(data) {
        s = dot(xor(s, *x), *h);
    }
    s
}

/// dot(a, b) = a * b * x^-128 (RFC 8452, section 3).
pub fn dot(a: Block, b: Block) -> Block {
    mul(mul(a, b), X_TO_MINUS_128.to_le_bytes())
}

/// The product of two blocks in GF(2^128) modulo x^128 + x^127 + x^126 + x^121 + 1, where the least significant bit of the
/// first byte is the coefficient of x^0 (RFC 8452, section 3).
pub fn mul(a: Block, b: Block) -> Block {
    let b = u128::from_le_bytes(b);
    let mut sum = 0;
    let mut a_times_xi = u128::from_le_bytes(a);
    for i in 0..128 {
        if b >> i & 1 == 1 {
            sum ^= a_times_xi;
        }
        a_times_xi = mul_x(a_times_xi);
    }
    sum.to_le_bytes()
}

/// `a` times x.
fn mul_x(a: u128) -> u128 {
    let carry = a >> 127 == 1;
    a << 1 ^ if carry { 1 << 127 | 1 << 126 | 1 << 121 | 1 } else { 0 }
}
