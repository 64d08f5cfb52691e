//! Registers of x86-64 with a byte permutation: xmm with SSSE3, ymm with AVX2, zmm with AVX-512; and their lookups for GHASH.

use std::arch::x86_64::*;
use std::ops::{BitAnd, BitOr, BitXor};

use super::lookup::{Lookup, Row, Table};
use super::register::{
    Permutation, Register, SOURCES, SWAP_LAST, bitwise, counters_one_by_one, only_low_bits_change,
};
use super::vector::Vector;
use crate::kernel::Block;
use crate::kernel::counter::Counting;

/// Repeats 128 bits in each part of a register: the form for registers of one part.
#[inline(always)]
unsafe fn identity(part: __m128i) -> __m128i {
    part
}

macro_rules! register {
    (
        $(#[$doc:meta])* $name:ident($raw:ty), blocks: $blocks:literal, numbers: $numbers:expr,
        $xor:ident, $and:ident, $or:ident, $splat:ident, $repeat:ident, $load:ident, $store:ident,
        $left:ident, $right:ident, $shuffle:ident, $add:ident
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub(crate) struct $name($raw);

        bitwise! { $name: BitXor bitxor $xor, BitAnd bitand $and, BitOr bitor $or }

        impl $name {
            /// In each part of 128 bits, byte `i` becomes the byte with the number `sources[i]`.
            #[inline(always)]
            fn shuffle(self, sources: &[u8; 16]) -> Self {
                // SAFETY: a value exists, so the processor has the instructions; `sources` is 16 readable bytes.
                unsafe { $name($shuffle(self.0, $repeat(_mm_loadu_si128(sources.as_ptr().cast())))) }
            }
        }

        impl Register for $name {
            const BLOCKS: usize = $blocks;

            #[inline(always)]
            unsafe fn splat(lane: u32) -> Self {
                // SAFETY: the caller guarantees that the processor has the instructions.
                $name(unsafe { $splat(lane as i32) })
            }

            #[inline(always)]
            unsafe fn repeat(part: Vector) -> Self {
                // SAFETY: the caller guarantees that the processor has the instructions; four lanes have the size and the alignment.
                $name(unsafe { $repeat(_mm_load_si128(part.0.as_ptr().cast())) })
            }

            #[inline(always)]
            unsafe fn load(from: *const u8) -> Self {
                // SAFETY: the caller guarantees that the processor has the instructions and that the memory is valid; the load
                // requires no alignment.
                $name(unsafe { $load(from.cast()) })
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut u8) {
                // SAFETY: the caller guarantees that the memory is valid; the store requires no alignment.
                unsafe { $store(to.cast(), self.0) }
            }

            #[inline(always)]
            fn shift_left<const N: i32>(self) -> Self {
                // SAFETY: a value exists, so the processor has the instructions.
                $name(unsafe { $left(self.0, _mm_cvtsi32_si128(N)) })
            }

            #[inline(always)]
            fn shift_right<const N: i32>(self) -> Self {
                // SAFETY: a value exists, so the processor has the instructions.
                $name(unsafe { $right(self.0, _mm_cvtsi32_si128(N)) })
            }

            #[inline(always)]
            fn permute(self, permutation: Permutation) -> Self {
                self.shuffle(&SOURCES[permutation as usize])
            }

            #[inline(always)]
            unsafe fn counters<C: Counting>(counter: &Block, count: usize, registers: &mut [Self; 8]) {
                // SAFETY: the caller guarantees that the processor has the instructions; `numbers` has as many words as a
                // register.
                unsafe {
                    if !only_low_bits_change::<C>(counter, count) {
                        return counters_one_by_one::<Self, C>(counter, count, registers);
                    }
                    let numbers: [[u32; 4]; $blocks] = $numbers;
                    let step = $name($repeat(_mm_set_epi32($blocks, 0, 0, 0)));
                    let first = Self::repeat(Vector::from_block(*counter)).shuffle(&SWAP_LAST);
                    let mut next = $name($add(first.0, <Self as Register>::load(numbers.as_ptr().cast()).0));
                    for register in &mut registers[..count.div_ceil($blocks)] {
                        *register = next.shuffle(&SWAP_LAST);
                        next = $name($add(next.0, step.0));
                    }
                }
            }
        }
    };
}

register! {
    /// One block in an xmm register.
    Xmm(__m128i), blocks: 1, numbers: [[0, 0, 0, 0]],
    _mm_xor_si128, _mm_and_si128, _mm_or_si128, _mm_set1_epi32, identity, _mm_loadu_si128, _mm_storeu_si128,
    _mm_sll_epi32, _mm_srl_epi32, _mm_shuffle_epi8, _mm_add_epi32
}

register! {
    /// Two blocks in a ymm register.
    Ymm(__m256i), blocks: 2, numbers: [[0, 0, 0, 0], [0, 0, 0, 1]],
    _mm256_xor_si256, _mm256_and_si256, _mm256_or_si256, _mm256_set1_epi32, _mm256_broadcastsi128_si256,
    _mm256_loadu_si256, _mm256_storeu_si256,
    _mm256_sll_epi32, _mm256_srl_epi32, _mm256_shuffle_epi8, _mm256_add_epi32
}

register! {
    /// Four blocks in a zmm register.
    Zmm(__m512i), blocks: 4, numbers: [[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 2], [0, 0, 0, 3]],
    _mm512_xor_si512, _mm512_and_si512, _mm512_or_si512, _mm512_set1_epi32, _mm512_broadcast_i32x4,
    _mm512_loadu_si512, _mm512_storeu_si512,
    _mm512_sll_epi32, _mm512_srl_epi32, _mm512_shuffle_epi8, _mm512_add_epi32
}

impl Row for Xmm {
    #[inline(always)]
    fn interleave(self, other: Self) -> [Self; 2] {
        // SAFETY: every x86-64 processor has SSE2.
        unsafe { [Xmm(_mm_unpacklo_epi8(self.0, other.0)), Xmm(_mm_unpackhi_epi8(self.0, other.0))] }
    }

    #[inline(always)]
    fn look_up(self, indices: Self) -> Self {
        // SAFETY: a value exists, so the processor has SSSE3.
        Xmm(unsafe { _mm_shuffle_epi8(self.0, indices.0) })
    }
}

/// Looks nibbles up in the two halves of a ymm register.
pub(crate) struct Both;

impl Lookup for Both {
    type Row = Xmm;
    type Nibbles = Ymm;
    type Sum = Ymm;

    #[inline(always)]
    fn nibbles(row: Xmm) -> Ymm {
        // SAFETY: the functions that use this type have AVX2.
        unsafe {
            let both = _mm256_set_m128i(row.0, _mm_srli_epi16::<4>(row.0));
            Ymm(_mm256_and_si256(both, _mm256_set1_epi8(15)))
        }
    }

    #[inline(always)]
    fn look_up(table: &Table, nibbles: Ymm) -> Ymm {
        // SAFETY: a value exists, so the processor has AVX2; the table is 32 readable bytes.
        unsafe { Ymm(_mm256_shuffle_epi8(_mm256_loadu_si256(table.as_ptr().cast()), nibbles.0)) }
    }

    #[inline(always)]
    fn fold(sum: Ymm) -> Xmm {
        // SAFETY: a value exists, so the processor has AVX2.
        unsafe {
            let (high, low) = (_mm256_castsi256_si128(sum.0), _mm256_extracti128_si256::<1>(sum.0));
            Xmm(_mm_xor_si128(high, low))
        }
    }
}
