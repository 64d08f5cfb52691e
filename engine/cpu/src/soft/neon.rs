//! The register of AArch64 with the byte permutation of NEON, and its lookups for GHASH.

use std::arch::aarch64::*;
use std::ops::{BitAnd, BitOr, BitXor};

use super::lookup::Row;
use super::register::{
    Permutation, Register, SOURCES, SWAP_LAST, bitwise, counters_one_by_one, only_low_bits_change,
};
use super::vector::Vector;
use crate::kernel::Block;
use crate::kernel::counter::Counting;

/// One block in a vector register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Neon(uint8x16_t);

bitwise! { Neon: BitXor bitxor veorq_u8, BitAnd bitand vandq_u8, BitOr bitor vorrq_u8 }

impl Neon {
    /// Byte `i` becomes the byte with the number `sources[i]`.
    #[inline(always)]
    fn shuffle(self, sources: &[u8; 16]) -> Self {
        // SAFETY: every processor of this target has NEON; `sources` is 16 readable bytes.
        Neon(unsafe { vqtbl1q_u8(self.0, vld1q_u8(sources.as_ptr())) })
    }
}

impl Register for Neon {
    const BLOCKS: usize = 1;

    #[inline(always)]
    unsafe fn splat(lane: u32) -> Self {
        // SAFETY: every processor of this target has NEON.
        Neon(unsafe { vreinterpretq_u8_u32(vdupq_n_u32(lane)) })
    }

    #[inline(always)]
    unsafe fn repeat(part: Vector) -> Self {
        // SAFETY: every processor of this target has NEON.
        Neon(unsafe { vreinterpretq_u8_u32(vld1q_u32(part.0.as_ptr())) })
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller guarantees 16 readable bytes; the load requires no alignment.
        Neon(unsafe { vld1q_u8(from) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller guarantees 16 writable bytes; the store requires no alignment.
        unsafe { vst1q_u8(to, self.0) }
    }

    #[inline(always)]
    fn shift_left<const N: i32>(self) -> Self {
        // SAFETY: every processor of this target has NEON.
        Neon(unsafe { vreinterpretq_u8_u32(vshlq_n_u32::<N>(vreinterpretq_u32_u8(self.0))) })
    }

    #[inline(always)]
    fn shift_right<const N: i32>(self) -> Self {
        // SAFETY: every processor of this target has NEON.
        Neon(unsafe { vreinterpretq_u8_u32(vshrq_n_u32::<N>(vreinterpretq_u32_u8(self.0))) })
    }

    #[inline(always)]
    fn permute(self, permutation: Permutation) -> Self {
        match permutation {
            // SAFETY: every processor of this target has NEON.
            Permutation::UpTwo => unsafe {
                Neon(vreinterpretq_u8_u16(vrev32q_u16(vreinterpretq_u16_u8(self.0))))
            },
            _ => self.shuffle(&SOURCES[permutation as usize]),
        }
    }

    #[inline(always)]
    unsafe fn counters<C: Counting>(counter: &Block, count: usize, registers: &mut [Self; 8]) {
        // SAFETY: every processor of this target has NEON; the loads read 16 bytes of arrays of 16 bytes.
        unsafe {
            if !only_low_bits_change::<C>(counter, count) {
                return counters_one_by_one::<Self, C>(counter, count, registers);
            }
            let one = vld1q_u32([0, 0, 0, 1].as_ptr());
            let mut next = Neon(vld1q_u8(counter.as_ptr())).shuffle(&SWAP_LAST);
            for register in &mut registers[..count] {
                *register = next.shuffle(&SWAP_LAST);
                next = Neon(vreinterpretq_u8_u32(vaddq_u32(vreinterpretq_u32_u8(next.0), one)));
            }
        }
    }
}

impl Row for Neon {
    #[inline(always)]
    fn interleave(self, other: Self) -> [Self; 2] {
        // SAFETY: every processor of this target has NEON.
        unsafe { [Neon(vzip1q_u8(self.0, other.0)), Neon(vzip2q_u8(self.0, other.0))] }
    }

    #[inline(always)]
    fn look_up(self, indices: Self) -> Self {
        // SAFETY: every processor of this target has NEON.
        Neon(unsafe { vqtbl1q_u8(self.0, indices.0) })
    }
}
