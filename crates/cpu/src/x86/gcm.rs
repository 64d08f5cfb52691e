//! GCM's CTR and GHASH in one loop, since they use different execution units.
//!
//! A step is eight vectors of four blocks. The products of GHASH are computed between the rounds of CTR, one vector after
//! each round. When encrypting, they use the ciphertext of the previous step; when decrypting, the ciphertext of the current
//! step. As in [`super::ghash`], each place of a vector holds a separate hash, and all places are multiplied by the same
//! power of H. The blocks of the last step are multiplied by different powers.

use std::arch::x86_64::__m128i;

use super::cipher::{extra_rounds, for_eight, opaque};
use super::ghash::{HashKey, MODULUS, Sum};
use super::schedule::Schedule;
use super::vector::{Vector, Xmm};
use crate::counter::{Counting, Low32};
use crate::kernel::{Block, Span};

/// Vectors of a step.
const WIDTH: usize = 8;

/// Bytes of a step of [`crypt`], with vectors of four blocks.
pub(super) const STEP: usize = WIDTH * 64;

struct Gcm<V: Vector> {
    keys: *const __m128i,
    rounds: usize,
    /// The counters of the next vector. `stride` is the number of blocks in a vector. Both are little-endian numbers.
    counters: V,
    stride: V,
    modulus: V,
    /// The hashes so far, one for each place of a vector.
    hash: V,
}

impl<V: Vector> Gcm<V> {
    /// Encrypts or decrypts a step, and adds the step of ciphertext at `hashed` to the hash. Whether `hashed` is `None` is
    /// known at compile time.
    ///
    /// # Safety
    ///
    /// The same as for [`Vector`]. In addition, the three pointers are valid for a step, and there are `rounds` + 1 keys.
    #[inline(always)]
    unsafe fn step(&mut self, src: *const u8, dst: *mut u8, hashed: Option<(*const u8, &HashKey<V::Raw>)>) {
        // SAFETY: the caller guarantees the conditions of this function.
        unsafe {
            let keys = opaque(self.keys);
            let (first, last) = (V::broadcast(keys), V::broadcast(keys.add(self.rounds)));
            let mut x = [first; WIDTH];
            for_eight!(I => {
                x[I] = first.xor(self.counters.reversed());
                self.counters = self.counters.add32(self.stride);
            });
            let mut sum = Sum::zero(self.hash);
            // The additional rounds come first, so that the other rounds and the code that uses their result form one basic
            // block.
            extra_rounds!(self.rounds, 1, round => {
                let key = V::broadcast(keys.add(round));
                for_eight!(I => x[I] = x[I].aesenc(key));
            });
            let keys = opaque(keys.add(self.rounds - 10));
            for_eight!(ROUND => {
                let key = V::broadcast(keys.add(ROUND + 1));
                for_eight!(I => x[I] = x[I].aesenc(key));
                if let Some((hashed, hash_key)) = hashed {
                    // The first vector is hashed last, because it depends on the hash of the previous step.
                    let vector = WIDTH - 1 - ROUND;
                    let mut text = V::load(hashed.add(vector * V::BYTES)).reversed();
                    if vector == 0 {
                        text = text.xor(self.hash);
                    }
                    let power = (WIDTH - vector) * V::BLOCKS;
                    sum = sum.plus(Sum::product(text, hash_key.power(power)));
                }
            });
            let key = V::broadcast(keys.add(9));
            for_eight!(I => x[I] = x[I].aesenc(key));
            if hashed.is_some() {
                self.hash = sum.reduced(self.modulus);
            }
            for_eight!(I => {
                let text = V::load(src.add(I * V::BYTES));
                x[I].aesenclast(last.xor(text)).store(dst.add(I * V::BYTES));
            });
        }
    }

    /// Adds the last step of ciphertext to the hash, each block with its own power, and returns the GHASH state.
    ///
    /// # Safety
    ///
    /// The same as for [`Gcm::step`].
    #[inline(always)]
    unsafe fn last(&self, hashed: *const u8, hash_key: &HashKey<V::Raw>) -> Xmm {
        // SAFETY: the caller guarantees the conditions of this function.
        unsafe {
            let mut sum = Sum::zero(self.hash);
            for_eight!(I => {
                let mut text = V::load(hashed.add(I * V::BYTES)).reversed();
                if I == 0 {
                    text = text.xor(self.hash);
                }
                sum = sum.plus(Sum::product(text, hash_key.powers((WIDTH - I) * V::BLOCKS)));
            });
            sum.folded().reduced(Xmm::numbers([MODULUS; 4]))
        }
    }
}

/// Encrypts or decrypts one or more whole steps, and adds the ciphertext to the GHASH state. The counter is advanced.
///
/// # Safety
///
/// The same as for [`Vector`]. In addition, a vector has four blocks.
#[inline(always)]
pub(super) unsafe fn crypt<V: Vector, const ENCRYPT: bool>(
    schedule: &Schedule,
    hash_key: &HashKey<V::Raw>,
    counter: &mut Block,
    state: &mut Block,
    data: Span<'_>,
) {
    let steps = data.len() / STEP;
    assert!(V::BYTES * WIDTH == STEP && data.len().is_multiple_of(STEP) && steps > 0, "whole steps");
    let start = u128::from_be_bytes(*counter);
    *counter = Low32::advance(start, data.len() as u128 / 16).to_be_bytes();
    let (src, dst) = (data.src(), data.dst());
    // SAFETY: the caller guarantees that the processor has the instructions. Each step lies in the span. When encrypting,
    // ciphertext is hashed after it is written. When decrypting, it is hashed before it is overwritten.
    unsafe {
        let mut gcm = Gcm::<V> {
            keys: schedule.encrypt(),
            rounds: schedule.rounds(),
            counters: V::splat(Xmm::number(start)).add32(V::numbers([0, 1, 2, 3])),
            stride: V::numbers([V::BLOCKS as u128; 4]),
            modulus: V::numbers([MODULUS; 4]),
            hash: V::widen(Xmm::load(state.as_ptr()).reversed()),
        };
        let last = STEP * (steps - 1);
        if ENCRYPT {
            gcm.step(src, dst, None);
            for at in (STEP..data.len()).step_by(STEP) {
                gcm.step(src.add(at), dst.add(at), Some((dst.add(at - STEP).cast_const(), hash_key)));
            }
            gcm.last(dst.add(last).cast_const(), hash_key).reversed().store(state.as_mut_ptr());
        } else {
            for at in (0..last).step_by(STEP) {
                gcm.step(src.add(at), dst.add(at), Some((src.add(at), hash_key)));
            }
            gcm.last(src.add(last), hash_key).reversed().store(state.as_mut_ptr());
            gcm.step(src.add(last), dst.add(last), None);
        }
    }
}
