//! The parts of OCB3's definition (RFC 7253) that the mode and fused kernels share.

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::key::Block;
use crate::lengths::Lengths;

/// The masks of a key (RFC 7253, section 4.1): L_*, L_$ and L_0, L_1, ...
///
/// Moving the masks leaves a copy in the old place. Put the default value, which is zeros, in its final place, and call
/// [`Masks::fill`] there.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Masks {
    /// L_*, the encrypted block of zeros, for partial blocks.
    pub star: Block,
    /// L_$, for the tag.
    pub dollar: Block,
    /// L_i. The offsets of blocks n - 1 and n, which are counted from 1, differ by L_i, where 2^i is the largest power of
    /// two that divides n.
    l: [Block; MASKS],
}

/// Enough masks for 2^48 blocks.
const MASKS: usize = 48;

/// The maximum number of bytes of the data and of the associated data of a message. RFC 7253 has no limit for a message; its
/// section 5.1 advises to process at most 2^48 blocks with a key. Data and associated data of this length have 2^47 blocks
/// together. The masks are sufficient for more blocks: they are enough for all numbers below 2^48, and devices also compute
/// offsets of some numbers beyond the end of the data.
pub const MAX_DATA: u64 = 1 << 50;

/// The lengths of nonces (RFC 7253, section 4.2).
pub const NONCES: Lengths = Lengths { ranges: &[1..=15], words: "1 to 15" };

impl Default for Masks {
    fn default() -> Masks {
        Masks { star: [0; 16], dollar: [0; 16], l: [[0; 16]; MASKS] }
    }
}

impl Masks {
    /// Makes these the masks of a key that encrypts the block of zeros to `star`.
    pub fn fill(&mut self, star: &Block) {
        self.star = *star;
        self.dollar = double(star);
        let mut last = &self.dollar;
        for l in &mut self.l {
            *l = double(last);
            last = l;
        }
    }

    /// Replaces these masks by a copy of others, which is written to its final place only.
    pub fn copy_from(&mut self, other: &Masks) {
        self.star = other.star;
        self.dollar = other.dollar;
        self.l.copy_from_slice(&other.l);
    }

    /// L_i.
    ///
    /// # Panics
    /// If `i` is 48 or more.
    pub fn l(&self, i: u32) -> &Block {
        &self.l[i as usize]
    }

    /// The offset of block `number`, which is counted from 1. `first` is the offset before the first block. The result is
    /// the XOR of `first` and the L_i for the bits that are set in the Gray code of the number: the Gray codes of `number`
    /// and of the number before it differ in bit ntz(`number`).
    ///
    /// # Panics
    /// If the number is 2^48 or more.
    pub fn offset(&self, first: &Block, number: u64) -> Block {
        let gray = number ^ (number >> 1);
        let mut offset = *first;
        for i in (0..u64::BITS).filter(|i| gray >> i & 1 == 1) {
            xor(&mut offset, self.l(i));
        }
        offset
    }

    /// Changes the offset of the block before block `number`, which is counted from 1, to the offset of block `number`.
    pub fn advance(&self, offset: &mut Block, number: u64) {
        xor(offset, self.l(number.trailing_zeros()));
    }
}

/// Doubling in GF(2^128), most significant bit first, without a branch on the value.
pub fn double(block: &Block) -> Block {
    let value = u128::from_be_bytes(*block);
    ((value << 1) ^ ((value >> 127) * 0x87)).to_be_bytes()
}

/// The block that is encrypted to Ktop, and the number of bits by which the result is shifted (RFC 7253, section 4.2).
///
/// # Panics
/// If the nonce does not have 1 to 15 bytes, which [`crate::work::FusedAead::check_lengths`] excludes.
pub fn nonce_block(nonce: &[u8], tag_len: usize) -> (Block, u32) {
    let mut bytes = [0; 16];
    bytes[..nonce.len()].copy_from_slice(nonce);
    nonce_block_of_number(u128::from_le_bytes(bytes), nonce.len(), tag_len)
}

/// Like [`nonce_block`]. `nonce` has the bytes of the nonce in little-endian order, and `len` is their number.
///
/// # Panics
/// If the length is not 1 to 15.
#[inline]
pub fn nonce_block_of_number(nonce: u128, len: usize, tag_len: usize) -> (Block, u32) {
    assert!((1..=15).contains(&len), "the caller has checked the length of the nonce");
    // The nonce is at the end of the block, after a bit that marks its beginning.
    let block = (nonce << 8 | 1) << (8 * (15 - len));
    // The length of the tag in bits, modulo 128, is in the first seven bits.
    let block = block | ((8 * tag_len % 128) << 1) as u128;
    // The last six bits.
    const BOTTOM: u128 = 0x3f << 120;
    ((block & !BOTTOM).to_le_bytes(), ((block & BOTTOM) >> 120) as u32)
}

/// Computes the offset before the first block from the encrypted nonce block (RFC 7253, section 4.2). The shift depends on
/// the nonce only, which is public.
pub fn first_offset(ktop: &Block, bottom: u32) -> Block {
    let top = u128::from_be_bytes(*ktop);
    let extension = ((top >> 64) ^ (top >> 56)) as u64;
    let shifted = match bottom {
        0 => top,
        _ => top << bottom | u128::from(extension >> (64 - bottom)),
    };
    shifted.to_be_bytes()
}

/// XORs `mask` into `block`.
pub fn xor(block: &mut Block, mask: &Block) {
    *block = (u128::from_ne_bytes(*block) ^ u128::from_ne_bytes(*mask)).to_ne_bytes();
}

#[cfg(test)]
mod tests;
