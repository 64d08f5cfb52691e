//! The register of WebAssembly's SIMD128, and its lookups for GHASH.

use std::arch::wasm32::*;
use std::ops::{BitAnd, BitOr, BitXor};

use super::lookup::Row;
use super::register::{Permutation, Register, bitwise};
use super::vector::Vector;
use crate::kernel::Block;

/// One block in a vector.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Simd128(v128);

/// The source of each byte of a plane or a block.
#[repr(align(16))]
struct Sources(Block);

/// The order of the bytes of a plane: position `4 r + c` has row `r` of column `c`, which is byte `4 c + r` of a block.
pub(super) const ROW_BY_ROW: Block = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];
static ARRANGE: Sources = Sources(ROW_BY_ROW);

/// ShiftRows and InvShiftRows: row `r` is rotated by `r` columns.
static SHIFT_ROWS: [Sources; 2] = [
    Sources([0, 1, 2, 3, 5, 6, 7, 4, 10, 11, 8, 9, 15, 12, 13, 14]),
    Sources([0, 1, 2, 3, 7, 4, 5, 6, 10, 11, 8, 9, 13, 14, 15, 12]),
];

impl Sources {
    /// Loads the sources. The load is volatile because LLVM replaces a swizzle by a known vector with a shuffle. For each shuffle, V8 builds
    /// the vector of sources in a register by four instructions, which makes CTR slower by a sixth.
    #[inline(always)]
    fn load(&'static self) -> v128 {
        // SAFETY: there are 16 readable bytes at an aligned address.
        unsafe { self.0.as_ptr().cast::<v128>().read_volatile() }
    }
}

impl Simd128 {
    /// Moves lane `i + N` (modulo 4) to the place of lane `i`.
    #[inline(always)]
    pub(super) fn rotate<const N: usize>(self) -> Self {
        Simd128(match N {
            1 => u32x4_shuffle::<1, 2, 3, 0>(self.0, self.0),
            2 => u32x4_shuffle::<2, 3, 0, 1>(self.0, self.0),
            _ => u32x4_shuffle::<3, 0, 1, 2>(self.0, self.0),
        })
    }

    /// The lower halves, and the upper halves, of two vectors, whose lanes are interleaved.
    #[inline(always)]
    pub(super) fn interleave_lanes(self, other: Self) -> [Self; 2] {
        [u32x4_shuffle::<0, 4, 1, 5>(self.0, other.0), u32x4_shuffle::<2, 6, 3, 7>(self.0, other.0)]
            .map(Simd128)
    }

    /// In each byte, bit `b` of the byte in all bits.
    #[inline(always)]
    pub(super) fn bit(self, b: usize) -> Self {
        let bit = u8x16_splat(1 << b);
        Simd128(u8x16_eq(v128_and(self.0, bit), bit))
    }
}

bitwise! { Simd128: BitXor bitxor v128_xor, BitAnd bitand v128_and, BitOr bitor v128_or }

impl Register for Simd128 {
    const BLOCKS: usize = 1;

    #[inline(always)]
    unsafe fn splat(lane: u32) -> Self {
        Simd128(u32x4_splat(lane))
    }

    #[inline(always)]
    unsafe fn repeat(part: Vector) -> Self {
        // SAFETY: a `Vector` is 16 readable bytes; the load requires no alignment.
        Simd128(unsafe { v128_load(part.0.as_ptr().cast()) })
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller guarantees 16 readable bytes; the load requires no alignment.
        Simd128(unsafe { v128_load(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller guarantees 16 writable bytes; the store requires no alignment.
        unsafe { v128_store(to.cast(), self.0) }
    }

    #[inline(always)]
    fn shift_left<const N: i32>(self) -> Self {
        Simd128(u32x4_shl(self.0, N as u32))
    }

    #[inline(always)]
    fn shift_right<const N: i32>(self) -> Self {
        Simd128(u32x4_shr(self.0, N as u32))
    }

    #[inline(always)]
    fn arrange(self) -> Self {
        Simd128(u8x16_swizzle(self.0, ARRANGE.load()))
    }

    #[inline(always)]
    fn permute(self, permutation: Permutation) -> Self {
        match permutation {
            // Rows are lanes. For a rotation of lanes, V8 emits one instruction (`pshufd`), whereas a swizzle takes three and a load.
            Permutation::UpOne => self.rotate::<1>(),
            Permutation::UpTwo => self.rotate::<2>(),
            Permutation::ShiftRows => Simd128(u8x16_swizzle(self.0, SHIFT_ROWS[0].load())),
            Permutation::UnshiftRows => Simd128(u8x16_swizzle(self.0, SHIFT_ROWS[1].load())),
        }
    }
}

impl Row for Simd128 {
    #[inline(always)]
    fn interleave(self, other: Self) -> [Self; 2] {
        [
            i8x16_shuffle::<0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23>(self.0, other.0),
            i8x16_shuffle::<8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31>(self.0, other.0),
        ]
        .map(Simd128)
    }

    #[inline(always)]
    fn look_up(self, indices: Self) -> Self {
        Simd128(u8x16_swizzle(self.0, indices.0))
    }
}
