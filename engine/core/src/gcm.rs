//! The parts of GCM's definition (SP 800-38D) that the mode, fused kernels and self-tests share.

use std::hint::black_box;

use subtle::ConstantTimeEq;

use crate::key::Block;
use crate::tag::{Status, Tag};

/// The maximum plaintext of a message in bytes. SP 800-38D, 5.2.1.1, allows at most 2^39 - 256 bits.
pub const MAX_DATA: u64 = (1 << 36) - 32;

/// The maximum additional data and the maximum IV of a message in bytes: less than 2^64 bits (SP 800-38D, 5.2.1.1).
pub const MAX_AAD_OR_IV: u64 = (1 << 61) - 1;

/// The maximum plaintext, and the maximum additional data, of a message of GCM-SIV in bytes (RFC 8452, section 6).
pub const MAX_GCM_SIV: u64 = 1 << 36;

/// The counter block of a 12-byte nonce: the nonce followed by a 32-bit big-endian number. Number 1 masks the tag, and
/// the data begin with number 2 (SP 800-38D, 7.1).
///
/// # Panics
/// If the nonce does not have 12 bytes.
pub fn counter_block(nonce: &[u8], number: u32) -> Block {
    let mut block = Block::default();
    block[..12].copy_from_slice(nonce);
    block[12..].copy_from_slice(&number.to_be_bytes());
    block
}

/// Writes the tag, or compares it in constant time; returns the status of the message.
#[inline]
pub fn settle(tag: &mut Tag<'_>, computed: &Block) -> Status {
    match tag {
        Tag::Write(tag) => {
            // A copy of a variable length is a call.
            match <&mut Block>::try_from(&mut **tag) {
                Ok(tag) => *tag = *computed,
                Err(_) => tag.copy_from_slice(&computed[..tag.len()]),
            }
            Status::Done
        }
        Tag::Expect(tag) if tags_match(computed, tag) => Status::Done,
        Tag::Expect(_) => Status::AuthenticationFailed,
    }
}

/// True if a tag of 1 to 16 bytes equals the first bytes of the computed one. The time does not depend on the bytes. The tags
/// are compared as numbers, because a comparison of single bytes takes longer than encrypting a block.
pub fn tags_match(computed: &Block, tag: &[u8]) -> bool {
    if !(1..=16).contains(&tag.len()) {
        return false;
    }
    let expected = Block::try_from(tag).unwrap_or_else(|_| {
        let mut expected = Block::default();
        expected[..tag.len()].copy_from_slice(tag);
        expected
    });
    let difference = u128::from_le_bytes(*computed) ^ u128::from_le_bytes(expected);
    let difference = difference << (128 - 8 * tag.len());
    let are_equal: bool = (((difference >> 64) | difference) as u64).ct_eq(&0).into();
    // The bits above the verdict in its register may be bits of the difference. A load from memory replaces them.
    black_box(are_equal)
}

/// The block of two bit lengths that ends a GHASH (SP 800-38D, 7.1, step 5).
pub fn lengths_block(aad: u64, data: u64) -> Block {
    (u128::from(aad * 8) << 64 | u128::from(data * 8)).to_be_bytes()
}

#[cfg(test)]
mod tests;
