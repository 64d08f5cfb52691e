//! GCM's CTR and GHASH in one loop. CTR uses AESE and AESMC. GHASH uses PMULL, which runs on other execution units.
//!
//! A step is eight blocks. The product of one block is computed after each of eight rounds. If the output is hashed
//! (encryption), the products use the output of the previous step. If the input is hashed (decryption), they use the input
//! of the current step. Round keys and powers of H are loaded where they are used, because eight states and three sums of
//! products occupy the registers.

use std::arch::aarch64::*;

use super::ghash::{HashKey, Product};
use super::schedule::{RoundKeys, Schedule};
use super::vector::{block, round, vector};
use crate::kernel::counter::{Counting, Low32};
use crate::kernel::{Block, Span};

/// Blocks in a step.
const BLOCKS: usize = 8;

/// Bytes in a step.
pub(crate) const STEP: usize = 16 * BLOCKS;

struct Gcm<'k> {
    /// `extra` has the first round keys of the longer keys, `middle` the nine middle round keys of every key, and `last` the
    /// last two.
    extra: &'k RoundKeys,
    middle: &'k [Block; 9],
    last: [uint8x16_t; 2],
    hash_key: &'k HashKey,
    /// The counter block of the next block, whose last word is `number`.
    counter: uint8x16_t,
    number: u32,
    /// The hash so far, with coefficients in ascending order.
    hash: uint8x16_t,
}

/// One round of all states.
#[inline]
#[target_feature(enable = "neon,aes")]
fn rounds(states: &mut [uint8x16_t; BLOCKS], key: &Block) {
    for state in states {
        *state = round::<true>(*state, key);
    }
}

impl Gcm<'_> {
    /// The product of a block of a step of text; the first block includes the hash so far.
    ///
    /// # Safety
    ///
    /// `hashed` is valid for reads of a step.
    #[inline]
    #[target_feature(enable = "neon,aes")]
    unsafe fn product(&self, hashed: *const u8, index: usize) -> Product {
        // SAFETY: guaranteed by the caller; the load requires no alignment.
        let mut text = vrbitq_u8(unsafe { vld1q_u8(hashed.add(16 * index)) });
        if index == 0 {
            text = veorq_u8(text, self.hash);
        }
        self.hash_key.times_power(text, BLOCKS - index)
    }

    /// The counter blocks of a step.
    #[inline]
    #[target_feature(enable = "neon")]
    fn next_counters(&mut self) -> [uint8x16_t; BLOCKS] {
        let mut counters = [self.counter; BLOCKS];
        for counter in &mut counters {
            let words = vreinterpretq_u32_u8(self.counter);
            *counter = vreinterpretq_u8_u32(vsetq_lane_u32::<3>(self.number.swap_bytes(), words));
            self.number = self.number.wrapping_add(1);
        }
        counters
    }

    /// Encrypts or decrypts a step, and adds the step of text at `hashed` to the hash if HASHES is set.
    ///
    /// # Safety
    ///
    /// The pointers are valid for a step; `hashed` only if HASHES is set.
    #[inline]
    #[target_feature(enable = "neon,aes")]
    unsafe fn step<const HASHES: bool>(&mut self, src: *const u8, dst: *mut u8, hashed: *const u8) {
        let mut states = self.next_counters();
        for key in self.extra {
            rounds(&mut states, key);
        }
        let mut sum = Product::zero();
        for i in 0..BLOCKS {
            rounds(&mut states, &self.middle[i]);
            if HASHES {
                // The first block is multiplied last, because it depends on the hash of the previous step.
                // SAFETY: the caller guarantees a step of text.
                sum = sum.add(unsafe { self.product(hashed, BLOCKS - 1 - i) });
            }
        }
        rounds(&mut states, &self.middle[8]);
        if HASHES {
            self.hash = sum.reduce();
        }
        for (i, state) in states.iter().enumerate() {
            // SAFETY: the caller guarantees a step of input and output; loads and stores require no alignment.
            unsafe {
                let text = veorq_u8(vld1q_u8(src.add(16 * i)), self.last[1]);
                vst1q_u8(dst.add(16 * i), veorq_u8(vaeseq_u8(*state, self.last[0]), text));
            }
        }
    }

    /// Adds a step of text to the hash.
    ///
    /// # Safety
    ///
    /// `hashed` is valid for reads of a step.
    #[inline]
    #[target_feature(enable = "neon,aes")]
    unsafe fn hash(&mut self, hashed: *const u8) {
        let mut sum = Product::zero();
        for i in 0..BLOCKS {
            // SAFETY: guaranteed by the caller.
            sum = sum.add(unsafe { self.product(hashed, i) });
        }
        self.hash = sum.reduce();
    }
}

/// Encrypts or decrypts one or more whole steps, and adds the ciphertext to the state of the hash. The counter is advanced.
#[target_feature(enable = "neon,aes")]
pub(crate) fn crypt<const ENCRYPTS: bool>(
    key: &Schedule,
    hash_key: &HashKey,
    counter: &mut Block,
    state: &mut Block,
    data: Span<'_>,
) {
    let steps = data.len() / STEP;
    assert!(data.len().is_multiple_of(STEP) && steps > 0, "whole steps");
    let [first @ .., before_last, last] = key.keys::<true>() else { unreachable!("a schedule has rounds") };
    let (extra, middle) = first.split_last_chunk::<9>().expect("at least ten rounds");
    let start = u128::from_be_bytes(*counter);
    let mut gcm = Gcm {
        extra,
        middle,
        last: [vector(before_last), vector(last)],
        hash_key,
        counter: vector(counter),
        number: start as u32,
        hash: vrbitq_u8(vector(state)),
    };
    *counter = Low32::advance(start, data.len() as u128 / 16).to_be_bytes();
    let (src, dst) = (data.src(), data.dst());
    for at in (0..data.len()).step_by(STEP) {
        // SAFETY: each step lies in the span. Output is hashed after it is written, and input before it is overwritten.
        unsafe {
            let (src, dst) = (src.add(at), dst.add(at));
            match (ENCRYPTS, at) {
                (true, 0) => gcm.step::<false>(src, dst, src),
                (true, _) => gcm.step::<true>(src, dst, dst.sub(STEP)),
                (false, _) => gcm.step::<true>(src, dst, src),
            }
        }
    }
    if ENCRYPTS {
        // SAFETY: the last step of the output, which was written above.
        unsafe { gcm.hash(dst.add(data.len() - STEP)) };
    }
    *state = block(vrbitq_u8(gcm.hash));
}
