//! The vectors: xmm, ymm and zmm registers.

use std::arch::asm;
use std::arch::x86_64::*;

use super::cipher::opaque_number;
use super::vector::{HIGH_LOW, RawBlock, Vector, functions_of_one_block, vector};
use crate::kernel::partial;

vector! {
    /// One block in an xmm register.
    Single(__m128i), blocks: 1, alpha: [1 2 3 4 5 6 7],
    memory: _mm_loadu_si128, _mm_storeu_si128, splat: identity, widen: identity, lowest: identity,
    two: {
        xor: _mm_xor_si128, and: _mm_and_si128,
        aesenc: _mm_aesenc_si128, aesenclast: _mm_aesenclast_si128,
        aesdec: _mm_aesdec_si128, aesdeclast: _mm_aesdeclast_si128,
        add32: _mm_add_epi32,
        low_halves: _mm_unpacklo_epi64, high_halves: _mm_unpackhi_epi64,
    },
    clmul: _mm_clmulepi64_si128, shuffle_bytes: _mm_shuffle_epi8, shuffle_words: _mm_shuffle_epi32,
    shifts: _mm_slli_epi64, _mm_srli_epi64, _mm_bslli_si128, align: _mm_alignr_epi8,
    folded: |this| this,
    after: |_this, before| identity(before),
    { functions_of_one_block!(); }
}

vector! {
    /// Two blocks in a ymm register.
    Ymm(__m256i), blocks: 2, alpha: [2 4 6],
    memory: _mm256_loadu_si256, _mm256_storeu_si256, splat: _mm256_broadcastsi128_si256,
    widen: _mm256_zextsi128_si256, lowest: _mm256_castsi256_si128,
    two: {
        xor: _mm256_xor_si256, and: _mm256_and_si256,
        aesenc: _mm256_aesenc_epi128, aesenclast: _mm256_aesenclast_epi128,
        aesdec: _mm256_aesdec_epi128, aesdeclast: _mm256_aesdeclast_epi128,
        add32: _mm256_add_epi32,
        low_halves: _mm256_unpacklo_epi64, high_halves: _mm256_unpackhi_epi64,
    },
    clmul: _mm256_clmulepi64_epi128, shuffle_bytes: _mm256_shuffle_epi8, shuffle_words: _mm256_shuffle_epi32,
    shifts: _mm256_slli_epi64, _mm256_srli_epi64, _mm256_bslli_epi128, align: _mm256_alignr_epi8,
    folded: |this| this.lowest().xor(this.highest()),
    after: |this, before| _mm256_permute2x128_si256::<0x21>(before, this),
    {
        #[inline(always)]
        unsafe fn join(blocks: [Single; 4]) -> Self {
            // SAFETY: the caller guarantees that the processor has the instructions.
            unsafe { Self::pair(blocks[0], blocks[1]) }
        }

        #[inline(always)]
        unsafe fn load_blocks(ptr: *const u8, _: usize) -> Self {
            // SAFETY: the number of blocks is less than two and not zero, so it is one. The caller guarantees that `ptr` is
            // valid for this block.
            unsafe { Self::widen(Single::load(ptr)) }
        }

        #[inline(always)]
        unsafe fn load_bytes(ptr: *const u8, bytes: usize) -> Self {
            // SAFETY: each part has at most 16 bytes and lies inside the bytes that the caller guarantees.
            unsafe {
                if bytes < 16 {
                    return Ymm(_mm256_castsi128_si256(Single::load_bytes(ptr, bytes).0));
                }
                Self::pair(Single::load(ptr), Single::load_bytes(ptr.add(16), bytes - 16))
            }
        }

        #[inline(always)]
        unsafe fn gather(ptrs: *const *const u8, offset: usize) -> Self {
            // SAFETY: the caller guarantees two pointers to valid blocks.
            unsafe { Self::pair(Single::gather(ptrs, offset), Single::gather(ptrs.add(1), offset)) }
        }

        #[inline(always)]
        unsafe fn store_blocks(self, ptr: *mut u8, _: usize) {
            // SAFETY: the number of blocks is less than two and not zero, so it is one. The caller guarantees that `ptr` is
            // valid for this block.
            unsafe { self.lowest().store(ptr) }
        }

        #[inline(always)]
        unsafe fn store_bytes(self, ptr: *mut u8, bytes: usize) {
            // SAFETY: each part has at most 16 bytes and lies inside the bytes that the caller guarantees.
            unsafe {
                if bytes < 16 {
                    return self.lowest().store_bytes(ptr, bytes);
                }
                self.lowest().store(ptr);
                self.highest().store_bytes(ptr.add(16), bytes - 16);
            }
        }

        #[inline(always)]
        unsafe fn scatter(self, ptrs: *const *mut u8, offset: usize) {
            // SAFETY: the caller guarantees two pointers to valid blocks.
            unsafe {
                self.lowest().scatter(ptrs, offset);
                self.highest().scatter(ptrs.add(1), offset);
            }
        }
    }
}

vector! {
    /// Four blocks in a zmm register.
    Zmm(__m512i), blocks: 4, alpha: [4],
    memory: _mm512_loadu_si512, _mm512_storeu_si512, splat: _mm512_broadcast_i32x4,
    widen: _mm512_zextsi128_si512, lowest: _mm512_castsi512_si128,
    two: {
        xor: _mm512_xor_si512, and: _mm512_and_si512,
        aesenc: _mm512_aesenc_epi128, aesenclast: _mm512_aesenclast_epi128,
        aesdec: _mm512_aesdec_epi128, aesdeclast: _mm512_aesdeclast_epi128,
        add32: _mm512_add_epi32,
        low_halves: _mm512_unpacklo_epi64, high_halves: _mm512_unpackhi_epi64,
    },
    clmul: _mm512_clmulepi64_epi128, shuffle_bytes: _mm512_shuffle_epi8, shuffle_words: _mm512_shuffle_epi32,
    shifts: _mm512_slli_epi64, _mm512_srli_epi64, _mm512_bslli_epi128, align: _mm512_alignr_epi8,
    folded: |this| this.lower_half().xor(this.upper_half()).folded(),
    after: |this, before| _mm512_alignr_epi64::<6>(this, before),
    {
        #[inline(always)]
        fn pinned(self) -> Self {
            #[inline]
            #[target_feature(enable = "avx512f")]
            fn pin(mut vector: __m512i) -> __m512i {
                // SAFETY: the assembly contains no instruction.
                unsafe { asm!("/* {0} */", inout(zmm_reg) vector, options(nomem, nostack, preserves_flags)) };
                vector
            }
            // SAFETY: a vector exists only if the processor has its instructions.
            Zmm(unsafe { pin(self.0) })
        }

        #[inline(always)]
        fn with_upper_half(self, other: Self) -> Self {
            // SAFETY: a vector exists only if the processor has its instructions.
            Zmm(unsafe { _mm512_mask_blend_epi64(0xf0, self.0, other.0) })
        }

        #[inline(always)]
        unsafe fn join(blocks: [Single; 4]) -> Self {
            // SAFETY: the caller guarantees that the processor has the instructions.
            unsafe { Self::halves(Ymm::pair(blocks[0], blocks[1]), Ymm::pair(blocks[2], blocks[3])) }
        }

        // This function loads halves and does not use masks, because a masked store is not forwarded to a later load.
        #[inline(always)]
        unsafe fn load_blocks(ptr: *const u8, blocks: usize) -> Self {
            // SAFETY: the caller guarantees that `ptr` is valid for the one, two or three blocks.
            unsafe {
                if blocks == 1 {
                    return Self::widen(Single::load(ptr));
                }
                let low = _mm512_zextsi256_si512(Ymm::load(ptr).0);
                if blocks == 2 {
                    return Zmm(low);
                }
                Zmm(_mm512_inserti32x4::<2>(low, Single::load(ptr.add(32)).0))
            }
        }

        #[inline(always)]
        unsafe fn load_bytes(ptr: *const u8, bytes: usize) -> Self {
            // SAFETY: the mask keeps the load inside the bytes that the caller guarantees.
            unsafe { Zmm(_mm512_maskz_loadu_epi8((1u64 << bytes) - 1, ptr.cast())) }
        }

        #[inline(always)]
        unsafe fn store_blocks(self, ptr: *mut u8, blocks: usize) {
            // SAFETY: the caller guarantees that `ptr` is valid for the one, two or three blocks.
            unsafe {
                if blocks == 1 {
                    return self.lowest().store(ptr);
                }
                self.lower_half().store(ptr);
                if blocks == 3 {
                    Single(_mm512_extracti32x4_epi32::<2>(self.0)).store(ptr.add(32));
                }
            }
        }

        #[inline(always)]
        unsafe fn store_bytes(self, ptr: *mut u8, bytes: usize) {
            // SAFETY: the mask keeps the store inside the bytes that the caller guarantees.
            unsafe { _mm512_mask_storeu_epi8(ptr.cast(), (1u64 << bytes) - 1, self.0) }
        }
    }
}

impl Ymm {
    /// # Safety
    ///
    /// The same as for [`Vector`].
    #[inline(always)]
    unsafe fn pair(low: Single, high: Single) -> Ymm {
        // SAFETY: the caller guarantees that the processor has the instructions.
        Ymm(unsafe { _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low.0), high.0) })
    }

    /// The second block.
    #[inline(always)]
    fn highest(self) -> Single {
        // SAFETY: a vector exists only if the processor has its instructions.
        Single(unsafe { _mm256_extracti128_si256::<1>(self.0) })
    }
}

impl Zmm {
    /// # Safety
    ///
    /// The same as for [`Vector`].
    #[inline(always)]
    unsafe fn halves(low: Ymm, high: Ymm) -> Zmm {
        // SAFETY: the caller guarantees that the processor has the instructions.
        Zmm(unsafe { _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low.0), high.0) })
    }

    /// The first two blocks.
    #[inline(always)]
    fn lower_half(self) -> Ymm {
        // SAFETY: a vector exists only if the processor has its instructions.
        Ymm(unsafe { _mm512_castsi512_si256(self.0) })
    }

    /// The last two blocks.
    #[inline(always)]
    fn upper_half(self) -> Ymm {
        // SAFETY: a vector exists only if the processor has its instructions.
        Ymm(unsafe { _mm512_extracti64x4_epi64::<1>(self.0) })
    }
}

impl Single {
    /// A little-endian number. It is built in registers, because two 8-byte stores would not be forwarded to a 16-byte load.
    ///
    /// # Safety
    ///
    /// The same as for [`Vector`].
    #[inline(always)]
    pub(super) unsafe fn number(value: u128) -> Single {
        // SAFETY: the caller guarantees that the processor has the instruction.
        Single(unsafe { _mm_set_epi64x((value >> 64) as i64, value as i64) })
    }

    /// The little-endian number, without a copy in memory.
    #[inline(always)]
    pub(super) fn to_number(self) -> u128 {
        // SAFETY: a vector exists only if the processor has its instructions.
        let (low, high) =
            unsafe { (_mm_cvtsi128_si64(self.0), _mm_cvtsi128_si64(_mm_unpackhi_epi64(self.0, self.0))) };
        u128::from(high as u64) << 64 | u128::from(low as u64)
    }

    /// A vector of two words, the lower first. The words are hidden from the compiler, which would otherwise replace two loads by
    /// the load of a vector; a store of smaller words is not forwarded to this load.
    ///
    /// # Safety
    ///
    /// The same as for [`Vector`].
    #[inline(always)]
    pub(super) unsafe fn words(low: u64, high: u64) -> Single {
        let (low, high) = (opaque_number(low as usize), opaque_number(high as usize));
        // SAFETY: the caller guarantees that the processor has the instruction.
        Single(unsafe { _mm_set_epi64x(high as i64, low as i64) })
    }

    /// The top bit of the first byte, as a number.
    #[inline(always)]
    pub(super) fn top_of_first_byte(self) -> Single {
        // SAFETY: a vector exists only if the processor has its instructions.
        Single(unsafe { _mm_and_si128(_mm_srli_epi64::<7>(self.0), _mm_set_epi64x(0, 1)) })
    }

    /// The little-endian number times two, modulo 2^128.
    #[inline(always)]
    pub(super) fn doubled(self) -> Single {
        // SAFETY: a vector exists only if the processor has its instructions.
        Single(unsafe {
            let carry = _mm_bslli_si128::<8>(_mm_srli_epi64::<63>(self.0));
            _mm_or_si128(_mm_add_epi64(self.0, self.0), carry)
        })
    }

    /// All bits set if the highest bit of the little-endian number is set, otherwise none.
    #[inline(always)]
    pub(super) fn top_everywhere(self) -> Single {
        // SAFETY: a vector exists only if the processor has its instructions.
        Single(unsafe { _mm_shuffle_epi32::<0xff>(_mm_srai_epi32::<31>(self.0)) })
    }

    /// All bytes but the first, followed by the first byte of `next`.
    #[inline(always)]
    pub(super) fn shifted_in(self, next: Single) -> Single {
        // SAFETY: a vector exists only if the processor has its instructions (every kernel requires SSSE3).
        Single(unsafe { _mm_alignr_epi8::<1>(next.0, self.0) })
    }
}

/// Loads a cache line early.
///
/// # Safety
///
/// There is no condition: a prefetch never faults, so every address is allowed.
#[inline(always)]
pub(super) unsafe fn prefetch(ptr: *const u8) {
    // SAFETY: every x86-64 processor has SSE.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(ptr.cast()) }
}

/// Returns its argument. It takes the place of an intrinsic that [`Single`] does not need.
///
/// # Safety
///
/// No conditions. The function is unsafe only because it must have the type of an intrinsic.
#[inline(always)]
unsafe fn identity(vector: __m128i) -> __m128i {
    vector
}
