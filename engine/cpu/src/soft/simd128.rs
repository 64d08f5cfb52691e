//! The register of WebAssembly's SIMD128, and its lookups for GHASH.

use std::arch::wasm32::*;
use std::ops::{BitAnd, BitOr, BitXor};

use super::lookup::{Lookup, Row, Table};
use super::register::{Permutation, Register, SWAP_LAST, bitwise, counters_one_by_one, only_low_bits_change};
use super::vector::Vector;
use crate::kernel::Block;
use crate::kernel::counter::Counting;

/// One block in a vector.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Simd128(v128);

/// The source of each byte of a plane or a block.
#[repr(align(16))]
struct Sources(Block);

/// The order of the bytes of a plane: position `4 r + c` has row `r` of column `c`, which is byte `4 c + r` of a block.
pub(super) const ROW_BY_ROW: Block = {
    let mut sources = [0; 16];
    let mut i = 0;
    while i < 16 {
        sources[i] = (4 * (i % 4) + i / 4) as u8;
        i += 1;
    }
    sources
};
static ARRANGE: Sources = Sources(ROW_BY_ROW);

/// ShiftRows and InvShiftRows: row `r` is rotated by `r` columns.
static SHIFT_ROWS: [Sources; 2] = {
    const fn rotated(columns: usize) -> Sources {
        let mut sources = [0; 16];
        let mut i = 0;
        while i < 16 {
            let (row, column) = (i / 4, i % 4);
            sources[i] = (4 * row + (column + columns * row) % 4) as u8;
            i += 1;
        }
        Sources(sources)
    }
    [rotated(1), rotated(3)]
};

impl Sources {
    /// Loads the sources. The load is volatile because LLVM replaces a swizzle by a known vector with a shuffle. For each shuffle, V8 builds
    /// the vector of sources in a register by four instructions, which makes CTR slower by a sixth.
    #[inline(always)]
    fn load(&'static self) -> v128 {
        // SAFETY: there are 16 readable bytes at an aligned address.
        unsafe { self.0.as_ptr().cast::<v128>().read_volatile() }
    }
}

bitwise! { Simd128: BitXor bitxor v128_xor, BitAnd bitand v128_and, BitOr bitor v128_or }

/// Byte `i` of the result is the byte with the number `sources[i]` of the two vectors together. The sources are constants.
macro_rules! shuffle {
    ($a:expr, $b:expr, $sources:expr) => {
        Simd128(i8x16_shuffle::<
            { $sources[0] as usize },
            { $sources[1] as usize },
            { $sources[2] as usize },
            { $sources[3] as usize },
            { $sources[4] as usize },
            { $sources[5] as usize },
            { $sources[6] as usize },
            { $sources[7] as usize },
            { $sources[8] as usize },
            { $sources[9] as usize },
            { $sources[10] as usize },
            { $sources[11] as usize },
            { $sources[12] as usize },
            { $sources[13] as usize },
            { $sources[14] as usize },
            { $sources[15] as usize },
        >($a.0, $b.0))
    };
}

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
            Permutation::UpOne => Simd128(u32x4_shuffle::<1, 2, 3, 0>(self.0, self.0)),
            Permutation::UpTwo => Simd128(u32x4_shuffle::<2, 3, 0, 1>(self.0, self.0)),
            Permutation::ShiftRows => Simd128(u8x16_swizzle(self.0, SHIFT_ROWS[0].load())),
            Permutation::UnshiftRows => Simd128(u8x16_swizzle(self.0, SHIFT_ROWS[1].load())),
        }
    }

    #[inline(always)]
    unsafe fn counters<C: Counting>(counter: &Block, count: usize, registers: &mut [Self; 8]) {
        // SAFETY: every engine that has compiled this module has SIMD128; a block is 16 readable bytes.
        unsafe {
            if !only_low_bits_change::<C>(counter, count) {
                return counters_one_by_one::<Self, C>(counter, count, registers);
            }
            let counter = <Self as Register>::load(counter.as_ptr());
            let mut next = shuffle!(counter, counter, SWAP_LAST);
            for register in &mut registers[..count] {
                *register = shuffle!(next, next, SWAP_LAST);
                next = Simd128(u32x4_add(next.0, u32x4(0, 0, 0, 1)));
            }
        }
    }
}

/// The sources of the bytes of two vectors that are interleaved: of their lower halves and of their upper halves.
const INTERLEAVE: [[u8; 16]; 2] = [
    [0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23],
    [8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31],
];

impl Row for Simd128 {
    #[inline(always)]
    fn interleave(self, other: Self) -> [Self; 2] {
        [shuffle!(self, other, INTERLEAVE[0]), shuffle!(self, other, INTERLEAVE[1])]
    }
}

impl Lookup for Simd128 {
    type Row = Simd128;
    /// The high nibbles and the low nibbles.
    type Nibbles = [Simd128; 2];
    type Sum = Simd128;

    #[inline(always)]
    fn nibbles(row: Simd128) -> [Simd128; 2] {
        [Simd128(u8x16_shr(row.0, 4)), Simd128(v128_and(row.0, u8x16_splat(15)))]
    }

    #[inline(always)]
    fn look_up(table: &Table, [high, low]: [Simd128; 2]) -> Simd128 {
        // SAFETY: the table is twice 16 readable bytes; the loads require no alignment.
        let (of_high, of_low) =
            unsafe { (v128_load(table.as_ptr().cast()), v128_load(table.as_ptr().add(16).cast())) };
        Simd128(v128_xor(u8x16_swizzle(of_high, high.0), u8x16_swizzle(of_low, low.0)))
    }

    #[inline(always)]
    fn fold(sum: Simd128) -> Simd128 {
        sum
    }
}
