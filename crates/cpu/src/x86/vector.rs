//! One register of AES blocks: 1 in an xmm, 2 in a ymm, 4 in a zmm.
//!
//! The three impls come from one macro, since they differ in the names of the intrinsics alone. Only loading makes a
//! vector, and loading is unsafe: its caller vouches for the instructions. So a value in hand is the proof that
//! they exist, and arithmetic on it is safe.
//!
//! Everything here is `#[inline(always)]`: the intrinsics must end up in the body of an entry function that has the
//! target features (see [`super`]).

use std::arch::x86_64::*;

/// AES blocks in one register.
///
/// # Safety of the loads
///
/// Every unsafe function here demands that the processor has the instructions of this vector (as the kernel's
/// `detect` found) and that the pointer is valid for the bytes that are named.
pub(super) trait Vector: Copy {
    /// Blocks in a register.
    const BLOCKS: usize;
    /// Bytes in a register.
    const BYTES: usize = 16 * Self::BLOCKS;

    /// A whole vector from memory of any alignment.
    unsafe fn load(ptr: *const u8) -> Self;
    /// The first `blocks` blocks, fewer than a vector; zeros after them.
    unsafe fn load_blocks(ptr: *const u8, blocks: usize) -> Self;
    /// The first `bytes` bytes, fewer than a vector; anything may follow them.
    unsafe fn load_bytes(ptr: *const u8, bytes: usize) -> Self;
    /// The block at `ptr`, aligned, in every place.
    unsafe fn broadcast(ptr: *const __m128i) -> Self;
    /// The first blocks of `blocks`, each as a little-endian number; for constants.
    unsafe fn numbers(blocks: [u128; 4]) -> Self;
    /// The block in every place.
    unsafe fn splat(block: Xmm) -> Self;
    /// The block in the first place, zeros after it.
    unsafe fn widen(block: Xmm) -> Self;
    /// The first blocks of `blocks`.
    unsafe fn join(blocks: [Xmm; 4]) -> Self;
    /// Block `i` from `ptrs[i] + offset`.
    unsafe fn gather(ptrs: *const *const u8, offset: usize) -> Self;

    /// Writes the whole vector.
    unsafe fn store(self, ptr: *mut u8);
    /// Writes the first `blocks` blocks, fewer than a vector.
    unsafe fn store_blocks(self, ptr: *mut u8, blocks: usize);
    /// Writes the first `bytes` bytes, fewer than a vector.
    unsafe fn store_bytes(self, ptr: *mut u8, bytes: usize);
    /// Block `i` to `ptrs[i] + offset`.
    unsafe fn scatter(self, ptrs: *const *mut u8, offset: usize);

    /// Exclusive or.
    fn xor(self, other: Self) -> Self;
    /// One round of encryption.
    fn aesenc(self, key: Self) -> Self;
    /// The last round of encryption.
    fn aesenclast(self, key: Self) -> Self;
    /// One round of decryption, equivalent inverse cipher.
    fn aesdec(self, key: Self) -> Self;
    /// The last round of decryption.
    fn aesdeclast(self, key: Self) -> Self;

    /// The bytes of each block in reverse.
    fn reversed(self) -> Self;
    /// Adds to each 64-bit half.
    fn add64(self, other: Self) -> Self;
    /// Adds to each 32-bit quarter.
    fn add32(self, other: Self) -> Self;
    /// The blocks moved up by one place, the last block of `before` entering at the bottom.
    fn after(self, before: Self) -> Self;

    /// Carry-less product of the low halves.
    fn clmul_low(self, other: Self) -> Self;
    /// Carry-less product of the high halves.
    fn clmul_high(self, other: Self) -> Self;
    /// Carry-less product of the high half of `self` and the low half of `other`.
    fn clmul_high_low(self, other: Self) -> Self;
    /// The halves of each block exchanged.
    fn swapped(self) -> Self;
    /// The first block.
    fn lowest(self) -> Xmm;
    /// The exclusive or of all blocks.
    fn folded(self) -> Xmm;
    /// Each block times alpha^`power` (XTS, IEEE 1619, 5.2); `power` is below 8 and a multiple of BLOCKS. `modulus` has 0x87 in
    /// the low half of each block.
    fn times_alpha(self, power: usize, modulus: Self) -> Self;
    /// Each block times alpha^(8 `bytes`), for at most 4 bytes.
    fn times_alpha_8(self, bytes: usize) -> Self;
}

macro_rules! vector {
    (
        $(#[$doc:meta])*
        $name:ident($raw:ty), blocks: $blocks:literal, alpha: [$($power:literal)*],
        memory: $load:ident, $store:ident, splat: $splat:ident, widen: $widen:ident, lowest: $lowest:ident,
        two: { $($two:ident: $two_op:ident,)* },
        clmul: $clmul:ident, shuffle_bytes: $shuffle:ident, shuffle_words: $words:ident,
        shifts: $left:ident, $right:ident, $left_bytes:ident, $right_bytes:ident,
        folded: |$fold:ident| $folded:expr,
        after: |$this:ident, $before:ident| $after:expr,
        { $($rest:tt)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(super) struct $name($raw);

        impl Vector for $name {
            const BLOCKS: usize = $blocks;

            #[inline(always)]
            unsafe fn load(ptr: *const u8) -> Self {
                // SAFETY: the caller vouches for the instruction and for a whole vector at `ptr`.
                unsafe { $name($load(ptr.cast())) }
            }

            #[inline(always)]
            unsafe fn broadcast(ptr: *const __m128i) -> Self {
                // SAFETY: the caller vouches for the instruction and for an aligned block at `ptr`.
                unsafe { Self::splat(Xmm(*ptr)) }
            }

            #[inline(always)]
            unsafe fn splat(block: Xmm) -> Self {
                // SAFETY: the caller vouches for the instruction.
                unsafe { $name($splat(block.0)) }
            }

            #[inline(always)]
            unsafe fn widen(block: Xmm) -> Self {
                // SAFETY: the caller vouches for the instruction.
                unsafe { $name($widen(block.0)) }
            }

            #[inline(always)]
            unsafe fn numbers(blocks: [u128; 4]) -> Self {
                // SAFETY: four blocks are at least a vector; the caller vouches for the instruction.
                unsafe { Self::load(blocks.as_ptr().cast()) }
            }

            #[inline(always)]
            unsafe fn store(self, ptr: *mut u8) {
                // SAFETY: a vector exists, so does the instruction; the caller vouches for the memory.
                unsafe { $store(ptr.cast(), self.0) }
            }

            $(#[inline(always)]
            fn $two(self, other: Self) -> Self {
                // SAFETY: a vector exists, so do its instructions.
                unsafe { $name($two_op(self.0, other.0)) }
            })*

            #[inline(always)]
            fn reversed(self) -> Self {
                const ORDER: [u128; 4] = [0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f; 4];
                // SAFETY: a vector exists, so do its instructions.
                unsafe { $name($shuffle(self.0, Self::numbers(ORDER).0)) }
            }

            #[inline(always)]
            fn after(self, before: Self) -> Self {
                let ($this, $before) = (self.0, before.0);
                // SAFETY: a vector exists, so do its instructions.
                unsafe { $name($after) }
            }

            #[inline(always)]
            fn clmul_low(self, other: Self) -> Self {
                // SAFETY: a vector exists, so do its instructions.
                unsafe { $name($clmul::<0x00>(self.0, other.0)) }
            }

            #[inline(always)]
            fn clmul_high(self, other: Self) -> Self {
                // SAFETY: a vector exists, so do its instructions.
                unsafe { $name($clmul::<0x11>(self.0, other.0)) }
            }

            #[inline(always)]
            fn clmul_high_low(self, other: Self) -> Self {
                // SAFETY: a vector exists, so do its instructions.
                unsafe { $name($clmul::<0x01>(self.0, other.0)) }
            }

            #[inline(always)]
            fn swapped(self) -> Self {
                // SAFETY: a vector exists, so do its instructions.
                unsafe { $name($words::<0x4e>(self.0)) }
            }

            #[inline(always)]
            fn lowest(self) -> Xmm {
                // SAFETY: a vector exists, so do its instructions.
                unsafe { Xmm($lowest(self.0)) }
            }

            #[inline(always)]
            fn folded(self) -> Xmm {
                let $fold = self.0;
                // SAFETY: a vector exists, so do its instructions.
                unsafe { Xmm($folded) }
            }

            #[inline(always)]
            fn times_alpha(self, power: usize, modulus: Self) -> Self {
                // SAFETY: a vector exists, so do its instructions.
                unsafe {
                    match power {
                        0 => self,
                        $($power => {
                            // What leaves the top of each half: upwards, or back times 0x87.
                            let out = $right::<{ 64 - $power }>(self.0);
                            let up = $name($left_bytes::<8>(out));
                            $name($left::<$power>(self.0)).xor(up).xor($name(out).clmul_high_low(modulus))
                        })*
                        _ => unreachable!("not a multiple of the blocks in a vector, below 8"),
                    }
                }
            }

            #[inline(always)]
            fn times_alpha_8(self, bytes: usize) -> Self {
                macro_rules! times {
                    ($bytes:literal) => {{
                        // SAFETY: a vector exists, so do its instructions.
                        unsafe {
                            // What leaves the top comes back times 0x87 = 1 + x + x^2 + x^7.
                            let out = $right_bytes::<{ 16 - $bytes }>(self.0);
                            let back = $name(out).xor($name($left::<1>(out)));
                            let back = back.xor($name($left::<2>(out))).xor($name($left::<7>(out)));
                            back.xor($name($left_bytes::<$bytes>(self.0)))
                        }
                    }};
                }
                match bytes {
                    1 => times!(1),
                    2 => times!(2),
                    3 => times!(3),
                    4 => times!(4),
                    _ => unreachable!("more than 4 bytes"),
                }
            }

            $($rest)*
        }
    };
}

vector! {
    /// One block in an xmm register.
    Xmm(__m128i), blocks: 1, alpha: [1 2 3 4 5 6 7],
    memory: _mm_loadu_si128, _mm_storeu_si128, splat: identity, widen: identity, lowest: identity,
    two: {
        xor: _mm_xor_si128,
        aesenc: _mm_aesenc_si128, aesenclast: _mm_aesenclast_si128,
        aesdec: _mm_aesdec_si128, aesdeclast: _mm_aesdeclast_si128,
        add64: _mm_add_epi64, add32: _mm_add_epi32,
    },
    clmul: _mm_clmulepi64_si128, shuffle_bytes: _mm_shuffle_epi8, shuffle_words: _mm_shuffle_epi32,
    shifts: _mm_slli_epi64, _mm_srli_epi64, _mm_bslli_si128, _mm_bsrli_si128,
    folded: |this| identity(this),
    after: |_this, before| identity(before),
    {
        #[inline(always)]
        unsafe fn join(blocks: [Xmm; 4]) -> Self {
            blocks[0]
        }

        #[inline(always)]
        unsafe fn load_blocks(_: *const u8, _: usize) -> Self {
            unreachable!("fewer blocks than one")
        }

        #[inline(always)]
        unsafe fn load_bytes(ptr: *const u8, bytes: usize) -> Self {
            let mut whole = [0; 16];
            // SAFETY: bytes < 16 on either side; the caller vouches for `ptr` and the instructions.
            unsafe {
                copy_below_16(ptr, whole.as_mut_ptr(), bytes);
                Self::load(whole.as_ptr())
            }
        }

        #[inline(always)]
        unsafe fn gather(ptrs: *const *const u8, offset: usize) -> Self {
            // SAFETY: the caller vouches for one pointer and its block.
            unsafe { Self::load((*ptrs).add(offset)) }
        }

        #[inline(always)]
        unsafe fn store_blocks(self, _: *mut u8, _: usize) {
            unreachable!("fewer blocks than one")
        }

        #[inline(always)]
        unsafe fn store_bytes(self, ptr: *mut u8, bytes: usize) {
            let mut whole = [0; 16];
            // SAFETY: bytes < 16 on either side; the caller vouches for `ptr`.
            unsafe {
                self.store(whole.as_mut_ptr());
                copy_below_16(whole.as_ptr(), ptr, bytes);
            }
        }

        #[inline(always)]
        unsafe fn scatter(self, ptrs: *const *mut u8, offset: usize) {
            // SAFETY: the caller vouches for one pointer and its block.
            unsafe { self.store((*ptrs).add(offset)) }
        }
    }
}

vector! {
    /// Two blocks in a ymm register.
    Ymm(__m256i), blocks: 2, alpha: [2 4 6],
    memory: _mm256_loadu_si256, _mm256_storeu_si256, splat: _mm256_broadcastsi128_si256, widen: _mm256_zextsi128_si256, lowest: _mm256_castsi256_si128,
    two: {
        xor: _mm256_xor_si256,
        aesenc: _mm256_aesenc_epi128, aesenclast: _mm256_aesenclast_epi128,
        aesdec: _mm256_aesdec_epi128, aesdeclast: _mm256_aesdeclast_epi128,
        add64: _mm256_add_epi64, add32: _mm256_add_epi32,
    },
    clmul: _mm256_clmulepi64_epi128, shuffle_bytes: _mm256_shuffle_epi8, shuffle_words: _mm256_shuffle_epi32,
    shifts: _mm256_slli_epi64, _mm256_srli_epi64, _mm256_bslli_epi128, _mm256_bsrli_epi128,
    folded: |this| _mm_xor_si128(_mm256_castsi256_si128(this), _mm256_extracti128_si256::<1>(this)),
    after: |this, before| _mm256_permute2x128_si256::<0x21>(before, this),
    {
        #[inline(always)]
        unsafe fn join(blocks: [Xmm; 4]) -> Self {
            // SAFETY: the caller vouches for the instructions.
            unsafe {
                let low = _mm256_castsi128_si256(blocks[0].0);
                Ymm(_mm256_inserti128_si256::<1>(low, blocks[1].0))
            }
        }

        #[inline(always)]
        unsafe fn load_blocks(ptr: *const u8, _: usize) -> Self {
            // SAFETY: fewer than two blocks and more than none: one; the caller vouches for it.
            unsafe { Ymm(_mm256_zextsi128_si256(_mm_loadu_si128(ptr.cast()))) }
        }

        #[inline(always)]
        unsafe fn load_bytes(ptr: *const u8, bytes: usize) -> Self {
            // SAFETY: either part is below 16 bytes or just that, and inside what the caller vouches for.
            unsafe {
                if bytes < 16 {
                    Ymm(_mm256_castsi128_si256(Xmm::load_bytes(ptr, bytes).0))
                } else {
                    let low = _mm256_castsi128_si256(Xmm::load(ptr).0);
                    Ymm(_mm256_inserti128_si256::<1>(low, Xmm::load_bytes(ptr.add(16), bytes - 16).0))
                }
            }
        }

        #[inline(always)]
        unsafe fn gather(ptrs: *const *const u8, offset: usize) -> Self {
            // SAFETY: the caller vouches for two pointers and their blocks.
            unsafe {
                let blocks = [Xmm::gather(ptrs, offset), Xmm::gather(ptrs.add(1), offset)];
                Self::join([blocks[0], blocks[1], blocks[0], blocks[1]])
            }
        }

        #[inline(always)]
        unsafe fn store_blocks(self, ptr: *mut u8, _: usize) {
            // SAFETY: fewer than two blocks and more than none: one; the caller vouches for it.
            unsafe { _mm_storeu_si128(ptr.cast(), _mm256_castsi256_si128(self.0)) }
        }

        #[inline(always)]
        unsafe fn store_bytes(self, ptr: *mut u8, bytes: usize) {
            // SAFETY: either part is below 16 bytes or just that, and inside what the caller vouches for.
            unsafe {
                let low = Xmm(_mm256_castsi256_si128(self.0));
                if bytes < 16 {
                    low.store_bytes(ptr, bytes);
                } else {
                    low.store(ptr);
                    Xmm(_mm256_extracti128_si256::<1>(self.0)).store_bytes(ptr.add(16), bytes - 16);
                }
            }
        }

        #[inline(always)]
        unsafe fn scatter(self, ptrs: *const *mut u8, offset: usize) {
            // SAFETY: the caller vouches for two pointers and their blocks.
            unsafe {
                Xmm(_mm256_castsi256_si128(self.0)).scatter(ptrs, offset);
                Xmm(_mm256_extracti128_si256::<1>(self.0)).scatter(ptrs.add(1), offset);
            }
        }
    }
}

vector! {
    /// Four blocks in a zmm register.
    Zmm(__m512i), blocks: 4, alpha: [4],
    memory: _mm512_loadu_si512, _mm512_storeu_si512, splat: _mm512_broadcast_i32x4, widen: _mm512_zextsi128_si512, lowest: _mm512_castsi512_si128,
    two: {
        xor: _mm512_xor_si512,
        aesenc: _mm512_aesenc_epi128, aesenclast: _mm512_aesenclast_epi128,
        aesdec: _mm512_aesdec_epi128, aesdeclast: _mm512_aesdeclast_epi128,
        add64: _mm512_add_epi64, add32: _mm512_add_epi32,
    },
    clmul: _mm512_clmulepi64_epi128, shuffle_bytes: _mm512_shuffle_epi8, shuffle_words: _mm512_shuffle_epi32,
    shifts: _mm512_slli_epi64, _mm512_srli_epi64, _mm512_bslli_epi128, _mm512_bsrli_epi128,
    folded: |this| Ymm(_mm512_castsi512_si256(this)).xor(Ymm(_mm512_extracti64x4_epi64::<1>(this))).folded().0,
    after: |this, before| _mm512_alignr_epi64::<6>(this, before),
    {
        #[inline(always)]
        unsafe fn join(blocks: [Xmm; 4]) -> Self {
            // SAFETY: the caller vouches for the instructions.
            unsafe {
                let low = _mm512_castsi256_si512(Ymm::join(blocks).0);
                let high = Ymm::join([blocks[2], blocks[3], blocks[2], blocks[3]]).0;
                Zmm(_mm512_inserti64x4::<1>(low, high))
            }
        }

        // By halves and not by masks: what was stored by a mask is not forwarded to the next load.
        #[inline(always)]
        unsafe fn load_blocks(ptr: *const u8, blocks: usize) -> Self {
            // SAFETY: one, two or three blocks, which the caller vouches for.
            unsafe {
                if blocks == 1 {
                    return Self::widen(Xmm::load(ptr));
                }
                let low = _mm512_zextsi256_si512(Ymm::load(ptr).0);
                if blocks == 2 {
                    return Zmm(low);
                }
                Zmm(_mm512_inserti32x4::<2>(low, Xmm::load(ptr.add(32)).0))
            }
        }

        #[inline(always)]
        unsafe fn load_bytes(ptr: *const u8, bytes: usize) -> Self {
            // SAFETY: the mask keeps the load inside the bytes that the caller vouches for.
            unsafe { Zmm(_mm512_maskz_loadu_epi8((1u64 << bytes) - 1, ptr.cast())) }
        }

        #[inline(always)]
        unsafe fn gather(ptrs: *const *const u8, offset: usize) -> Self {
            // SAFETY: the caller vouches for four pointers and their blocks.
            unsafe {
                let low = _mm512_castsi256_si512(Ymm::gather(ptrs, offset).0);
                Zmm(_mm512_inserti64x4::<1>(low, Ymm::gather(ptrs.add(2), offset).0))
            }
        }

        #[inline(always)]
        unsafe fn store_blocks(self, ptr: *mut u8, blocks: usize) {
            // SAFETY: one, two or three blocks, which the caller vouches for.
            unsafe {
                if blocks == 1 {
                    return Xmm(_mm512_castsi512_si128(self.0)).store(ptr);
                }
                Ymm(_mm512_castsi512_si256(self.0)).store(ptr);
                if blocks == 3 {
                    Xmm(_mm512_extracti32x4_epi32::<2>(self.0)).store(ptr.add(32));
                }
            }
        }

        #[inline(always)]
        unsafe fn store_bytes(self, ptr: *mut u8, bytes: usize) {
            // SAFETY: the mask keeps the store inside the bytes that the caller vouches for.
            unsafe { _mm512_mask_storeu_epi8(ptr.cast(), (1u64 << bytes) - 1, self.0) }
        }

        #[inline(always)]
        unsafe fn scatter(self, ptrs: *const *mut u8, offset: usize) {
            // SAFETY: the caller vouches for four pointers and their blocks.
            unsafe {
                Ymm(_mm512_castsi512_si256(self.0)).scatter(ptrs, offset);
                Ymm(_mm512_extracti64x4_epi64::<1>(self.0)).scatter(ptrs.add(2), offset);
            }
        }
    }
}

impl Xmm {
    /// A little-endian number, by way of registers: two stores of 8 bytes are not forwarded to a load of 16.
    ///
    /// # Safety
    ///
    /// As [`Vector`].
    #[inline(always)]
    pub(super) unsafe fn number(value: u128) -> Xmm {
        // SAFETY: the caller vouches for the instruction.
        Xmm(unsafe { _mm_set_epi64x((value >> 64) as i64, value as i64) })
    }
}

/// What [`Xmm`] has in place of an intrinsic.
///
/// # Safety
///
/// None; unsafe as an intrinsic is.
#[inline(always)]
unsafe fn identity(vector: __m128i) -> __m128i {
    vector
}

/// Copies fewer than 16 bytes without a call: two overlapping words of the largest size that fits.
///
/// # Safety
///
/// `src` is valid for reads of `len` bytes and `dst` for writes; they do not overlap.
#[inline(always)]
unsafe fn copy_below_16(src: *const u8, dst: *mut u8, len: usize) {
    macro_rules! words {
        ($word:ty) => {{
            let last = len - size_of::<$word>();
            // SAFETY: `len` is at least a word, so both words lie inside.
            unsafe {
                let (a, b) = (src.cast::<$word>().read_unaligned(), src.add(last).cast::<$word>().read_unaligned());
                dst.cast::<$word>().write_unaligned(a);
                dst.add(last).cast::<$word>().write_unaligned(b);
            }
        }};
    }
    match len {
        8.. => words!(u64),
        4.. => words!(u32),
        2.. => words!(u16),
        1 => words!(u8),
        0 => {}
    }
}
