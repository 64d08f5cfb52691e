//! Blocks in vector registers, and the cipher on several of them at once.

use std::arch::aarch64::*;

use super::schedule::{RoundKeys, Schedule};
use crate::kernel::{Block, Span};

/// A block as a vector.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn vector(block: &Block) -> uint8x16_t {
    // SAFETY: a Block is 16 readable bytes; the load requires no alignment.
    unsafe { vld1q_u8(block.as_ptr()) }
}

/// A vector as a block.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn block(vector: uint8x16_t) -> Block {
    let mut block = [0; 16];
    // SAFETY: a Block is 16 writable bytes; the store requires no alignment.
    unsafe { vst1q_u8(block.as_mut_ptr(), vector) };
    block
}

/// Loads `N` blocks of the source, starting at block `first`.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn load<const N: usize>(data: &Span<'_>, first: usize) -> [uint8x16_t; N] {
    assert!(N <= data.len() / 16 && first <= data.len() / 16 - N);
    let mut blocks = [vdupq_n_u8(0); N];
    for (i, block) in blocks.iter_mut().enumerate() {
        // SAFETY: the blocks lie within the span, whose source is valid for reads; the load requires no alignment.
        *block = unsafe { vld1q_u8(data.src().add(16 * (first + i))) };
    }
    blocks
}

/// Writes `N` blocks of the destination, starting at block `first`.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn store<const N: usize>(data: &mut Span<'_>, first: usize, blocks: [uint8x16_t; N]) {
    assert!(N <= data.len() / 16 && first <= data.len() / 16 - N);
    for (i, block) in blocks.into_iter().enumerate() {
        // SAFETY: the blocks lie within the span, whose destination is valid for writes; the store requires no alignment.
        unsafe { vst1q_u8(data.dst().add(16 * (first + i)), block) };
    }
}

/// XORs one set of blocks into another.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn add<const N: usize>(blocks: &mut [uint8x16_t; N], other: &[uint8x16_t; N]) {
    for (block, other) in blocks.iter_mut().zip(other) {
        *block = veorq_u8(*block, *other);
    }
}

/// A middle round, which starts with the addition of a key: of the cipher (FIPS 197, 5.1), or of the equivalent inverse cipher
/// (5.3.5).
#[inline]
#[target_feature(enable = "neon,aes")]
pub(crate) fn round<const ENCRYPTS: bool>(state: uint8x16_t, key: &Block) -> uint8x16_t {
    let key = vector(key);
    if ENCRYPTS { vaesmcq_u8(vaeseq_u8(state, key)) } else { vaesimcq_u8(vaesdq_u8(state, key)) }
}

/// The last round, with the keys before and after it.
#[inline]
#[target_feature(enable = "neon,aes")]
pub(crate) fn last<const ENCRYPTS: bool>(
    state: uint8x16_t,
    before: uint8x16_t,
    key: uint8x16_t,
) -> uint8x16_t {
    veorq_u8(if ENCRYPTS { vaeseq_u8(state, before) } else { vaesdq_u8(state, before) }, key)
}

/// Encrypts or decrypts blocks under one key.
#[inline]
#[target_feature(enable = "neon,aes")]
pub(crate) fn crypt<const ENCRYPTS: bool, const N: usize>(key: &Schedule, blocks: &mut [uint8x16_t; N]) {
    let [middle @ .., before, after] = key.keys::<ENCRYPTS>() else { unreachable!("a schedule has rounds") };
    // The states are in registers during the rounds.
    let mut state = *blocks;
    for key in middle {
        for block in &mut state {
            *block = round::<ENCRYPTS>(*block, key);
        }
    }
    let (before, after) = (vector(before), vector(after));
    for block in &mut state {
        *block = last::<ENCRYPTS>(*block, before, after);
    }
    *blocks = state;
}

/// Encrypts or decrypts blocks, each under its own key; all keys have the same number of rounds.
#[inline]
#[target_feature(enable = "neon,aes")]
pub(crate) fn crypt_with<const ENCRYPTS: bool, const N: usize>(
    keys: [&RoundKeys; N],
    blocks: &mut [uint8x16_t; N],
) {
    let end = keys[0].len() - 1;
    for index in 0..end - 1 {
        for (block, keys) in blocks.iter_mut().zip(&keys) {
            *block = round::<ENCRYPTS>(*block, &keys[index]);
        }
    }
    for (block, keys) in blocks.iter_mut().zip(&keys) {
        *block = last::<ENCRYPTS>(*block, vector(&keys[end - 1]), vector(&keys[end]));
    }
}
