//! The vector of 64-bit Arm: one block in a register of NEON, with the instructions AESE, AESMC, AESD, AESIMC and PMULL, which are
//! constant-time; and key expansion.
//!
//! AESE adds the round key before SubBytes; AESENC of x86-64 adds it after MixColumns. [`Single`] therefore adds zero in AESE. The
//! compiler (InstCombine of LLVM) replaces this zero by the key that was added before, so that a round has no further instruction.

use std::arch::aarch64::*;
use std::arch::asm;
use std::mem::transmute;

use lockstep_core::key;

use super::schedule::Schedule;
use super::vector::{HIGH, HIGH_LOW, LOW, RawBlock, Vector, functions_of_one_block, vector};
use crate::kernel::{Block, partial};

vector! {
    /// One block in a register of NEON.
    Single(uint8x16_t), blocks: 1, alpha: [1 2 3 4 5 6 7],
    memory: vld1q_u8, vst1q_u8, splat: identity, widen: identity, lowest: identity,
    two: {
        xor: veorq_u8, and: vandq_u8,
        aesenc: aesenc, aesenclast: aesenclast, aesdec: aesdec, aesdeclast: aesdeclast,
        add32: add32, low_halves: low_halves, high_halves: high_halves,
    },
    clmul: clmul, shuffle_bytes: vqtbl1q_u8, shuffle_words: swap_halves,
    shifts: shift_left, shift_right, shift_left_bytes, align: align,
    folded: |this| this,
    after: |_this, before| identity(before),
    {
        functions_of_one_block!();

        #[inline(always)]
        fn pinned(mut self) -> Self {
            // SAFETY: the assembly contains no instruction.
            unsafe { asm!("/* {0:v} */", inout(vreg) self.0, options(nomem, nostack, preserves_flags)) };
            self
        }

        #[inline(always)]
        fn native(self) -> Self {
            self.swapped()
        }
    }
}

/// Defines functions for [`vector`], with the names and the parameters of the intrinsics of x86-64 that they replace.
macro_rules! intrinsics {
    ($($name:ident$(<$n:ident>)?($($arg:ident),*) = $call:expr;)*) => {$(
        #[inline]
        #[target_feature(enable = "neon,aes")]
        fn $name$(<const $n: i32>)?($($arg: uint8x16_t),*) -> uint8x16_t {
            $call
        }
    )*};
}

intrinsics! {
    aesenc(state, key) = veorq_u8(vaesmcq_u8(vaeseq_u8(state, vdupq_n_u8(0))), key);
    aesenclast(state, key) = veorq_u8(vaeseq_u8(state, vdupq_n_u8(0)), key);
    aesdec(state, key) = veorq_u8(vaesimcq_u8(vaesdq_u8(state, vdupq_n_u8(0))), key);
    aesdeclast(state, key) = veorq_u8(vaesdq_u8(state, vdupq_n_u8(0)), key);
    add32(a, b) = vreinterpretq_u8_u32(vaddq_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b)));
    low_halves(a, b) = {
        // The compiler replaces the intrinsic of this instruction by two moves.
        let halves;
        // SAFETY: the instruction only has an effect on the register of the result.
        unsafe { asm!("zip1 {0:v}.2d, {1:v}.2d, {2:v}.2d", out(vreg) halves, in(vreg) a, in(vreg) b, options(pure, nomem, nostack)) };
        halves
    };
    high_halves(a, b) = vreinterpretq_u8_u64(vzip2q_u64(vreinterpretq_u64_u8(a), vreinterpretq_u64_u8(b)));
    swap_halves<ORDER>(a) = vextq_u8::<8>(a, a);
    shift_left<N>(a) = vreinterpretq_u8_u64(vshlq_n_u64::<N>(vreinterpretq_u64_u8(a)));
    shift_right<N>(a) = vreinterpretq_u8_u64(vshrq_n_u64::<N>(vreinterpretq_u64_u8(a)));
    shift_left_bytes<EIGHT>(a) = vextq_u8::<8>(vdupq_n_u8(0), a);
    align<N>(high, low) = vextq_u8::<N>(low, high);
    clmul<HALVES>(a, b) = {
        let (a, b) = (vreinterpretq_p64_u8(a), vreinterpretq_p64_u8(b));
        let product = match HALVES {
            LOW => vmull_p64(vgetq_lane_p64::<0>(a), vgetq_lane_p64::<0>(b)),
            HIGH => vmull_high_p64(a, b),
            _ => vmull_p64(vgetq_lane_p64::<1>(a), vgetq_lane_p64::<0>(b)),
        };
        vreinterpretq_u8_p128(product)
    };
    inverse_mix_columns(key) = vaesimcq_u8(key);
    identity(a) = a;
}

/// # Safety of the unsafe functions
///
/// The same as for [`Vector`].
impl Single {
    /// A little-endian number.
    #[inline(always)]
    pub(super) unsafe fn number(value: u128) -> Single {
        // SAFETY: both have 16 bytes, and every value is valid.
        Single(unsafe { transmute::<u128, uint8x16_t>(value) })
    }

    /// The little-endian number.
    #[inline(always)]
    pub(super) fn to_number(self) -> u128 {
        // SAFETY: both have 16 bytes, and every value is valid.
        unsafe { transmute::<uint8x16_t, u128>(self.0) }
    }

    /// A vector of two words, the lower first.
    #[inline(always)]
    pub(super) unsafe fn words(low: u64, high: u64) -> Single {
        // SAFETY: the caller guarantees that the processor has the instructions.
        unsafe { Single::number(u128::from(high) << 64 | u128::from(low)) }
    }

    /// The top bit of the first byte, as a number.
    #[inline(always)]
    pub(super) fn top_of_first_byte(self) -> Single {
        // SAFETY: a vector exists only if the processor has its instructions.
        unsafe { Single::byte(self.first_byte() >> 7) }
    }

    /// The little-endian number times two, modulo 2^128.
    #[inline(always)]
    pub(super) fn doubled(self) -> Single {
        // SAFETY: a vector exists only if the processor has its instructions.
        unsafe { Single::number(self.to_number() << 1) }
    }

    /// All bits set if the highest bit of the little-endian number is set, otherwise none.
    #[inline(always)]
    pub(super) fn top_everywhere(self) -> Single {
        // SAFETY: a vector exists only if the processor has its instructions.
        unsafe { Single::number((self.to_number() as i128 >> 127) as u128) }
    }

    /// All bytes but the first, followed by the first byte of `next`.
    #[inline(always)]
    pub(super) fn shifted_in(self, next: Single) -> Single {
        // SAFETY: a vector exists only if the processor has its instructions.
        Single(unsafe { vextq_u8::<1>(self.0, next.0) })
    }
}

/// Does nothing: a hint has not been measured on 64-bit Arm.
///
/// # Safety
///
/// There is no condition.
#[inline(always)]
pub(super) unsafe fn prefetch(_: *const u8) {}

/// SubWord. ShiftRows does not change a state of four equal columns, so AESE with a zero key computes SubBytes.
///
/// # Safety
///
/// The processor has the AES instructions.
#[inline(always)]
unsafe fn sub_word(word: [u8; 4]) -> [u8; 4] {
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe {
        let state = vreinterpretq_u8_u32(vdupq_n_u32(u32::from_le_bytes(word)));
        vgetq_lane_u32::<0>(vreinterpretq_u32_u8(aesenclast(state, vdupq_n_u8(0)))).to_le_bytes()
    }
}

/// Replaces a schedule by the schedule of another key of 16, 24 or 32 bytes, for both directions.
///
/// # Safety
///
/// The processor has the AES instructions.
#[inline(always)]
pub(super) unsafe fn expand_into(key: &[u8], place: &mut Schedule) {
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe { expand_to_encrypt_into(key, place) };
    let Schedule { encrypt, rounds, decrypt, .. } = place;
    decrypt[0] = encrypt[*rounds];
    decrypt[*rounds] = encrypt[0];
    for i in 1..*rounds {
        // SAFETY: as above.
        decrypt[i] = unsafe { inverse_mix_columns(encrypt[*rounds - i]) };
    }
    // The remaining round keys of a longer key.
    decrypt[*rounds + 1..].copy_from_slice(&encrypt[*rounds + 1..]);
}

/// Replaces schedules by the schedules of other keys, one for each place, for encryption only.
///
/// # Safety
///
/// The same as for [`expand_into`].
#[inline(always)]
pub(super) unsafe fn expand_each(keys: &[&[u8]], places: &mut [Schedule]) {
    assert_eq!(keys.len(), places.len(), "one place for each key");
    for (key, place) in keys.iter().zip(places) {
        // SAFETY: the caller guarantees that the processor has the instructions.
        unsafe { expand_to_encrypt_into(key, place) };
    }
}

/// Replaces a schedule by the schedule of another key, for encryption only: the round keys of decryption are not changed. The places
/// of the round keys of a longer key are erased.
///
/// # Safety
///
/// The same as for [`expand_into`].
#[inline(always)]
pub(super) unsafe fn expand_to_encrypt_into(key: &[u8], place: &mut Schedule) {
    // SAFETY: a register has 16 bytes, and the alignment of a block is less. The caller guarantees that the processor has the
    // instructions.
    unsafe {
        let blocks = &mut *place.encrypt.as_mut_ptr().cast::<[Block; 15]>();
        let count = key::expand(key, blocks, |word| sub_word(word));
        blocks[count..].fill([0; 16]);
        place.rounds = count - 1;
    }
}
