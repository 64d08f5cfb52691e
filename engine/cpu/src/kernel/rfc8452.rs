//! POLYVAL and the counter mode of AES-GCM-SIV (RFC 8452), composed of a kernel's GHASH and ECB. These are the default
//! implementations of [`Kernel::polyval`] and [`Kernel::ctr_little32`].

use zeroize::Zeroizing;

use super::{Block, Kernel, Span};

/// Number of blocks that are reversed, or filled with counters, at once; they stay in the L1 cache.
const CHUNK: usize = 64;

/// The GHASH key whose products equal those of the POLYVAL key `h` on reversed blocks: mulX_GHASH(ByteReverse(h)) (RFC 8452,
/// appendix A).
pub(crate) fn ghash_key_of_polyval_key(h: &Block) -> Block {
    let h = u128::from_le_bytes(*h);
    // GHASH stores the coefficient of x^0 in the most significant bit, so the product with x is a shift to the right. The
    // modulus x^128 + x^7 + x^2 + x + 1 is 0xe1 followed by zeros. The shift of a signed number makes a mask of the bit that
    // was shifted out, so that no branch depends on the key.
    let carry = ((h << 127) as i128 >> 127) as u128;
    ((h >> 1) ^ (carry & (0xe1 << 120))).to_be_bytes()
}

/// Adds whole blocks to a POLYVAL state, by GHASH over reversed blocks (RFC 8452, appendix A).
pub(crate) fn polyval_by_ghash<K: Kernel>(kernel: K, key: &K::HashKey, state: &mut Block, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    let mut reversed = Zeroizing::new([[0; 16]; CHUNK]);
    state.reverse();
    for chunk in data.as_chunks::<16>().0.chunks(CHUNK) {
        for (place, block) in reversed.iter_mut().zip(chunk) {
            *place = u128::from_le_bytes(*block).to_be_bytes();
        }
        kernel.ghash(key, state, reversed[..chunk.len()].as_flattened());
    }
    state.reverse();
}

/// CTR whose first 32 bits are a little-endian counter (RFC 8452, section 4), by ECB. Any length; the counter is increased by
/// the number of blocks, including a partial one.
pub(crate) fn ctr_by_ecb<K: Kernel>(kernel: K, key: &K::Schedule, counter: &mut Block, data: Span<'_>) {
    let mut keystream = Zeroizing::new([[0; 16]; CHUNK]);
    let mut number = u128::from_le_bytes(*counter) as u32;
    let mut rest = data;
    while !rest.is_empty() {
        let len = rest.len().min(16 * CHUNK);
        let (piece, after) = rest.split_at(len);
        let blocks = &mut keystream[..piece.len().div_ceil(16)];
        for block in &mut *blocks {
            *block = *counter;
            block[..4].copy_from_slice(&number.to_le_bytes());
            number = number.wrapping_add(1);
        }
        let bytes = blocks.as_flattened_mut();
        kernel.ecb(key, true, Span::in_place(bytes));
        piece.into_host().xor_with(bytes);
        rest = after;
    }
    counter[..4].copy_from_slice(&number.to_le_bytes());
}
