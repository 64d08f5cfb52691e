//! The trait for a register of blocks, and its implementation for processors without a byte permutation.
//!
//! The constructors are unsafe: the processor must have the instructions of the register. A value proves that it has them, so
//! all other operations are safe.

use std::ops::{BitAnd, BitOr, BitXor};

use super::passes::{MOST, SPARE_BYTE};
use super::vector::Vector;
use crate::kernel::Block;
use crate::kernel::counter::{self, Counting};

/// Implements bitwise operators of a register.
macro_rules! bitwise {
    ($name:ident: $($operator:ident $method:ident $operation:path),*) => {
        $(impl $operator for $name {
            type Output = Self;

            #[allow(unused_unsafe, reason = "integers need no intrinsics")]
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                // SAFETY: a value exists, so the processor has the instructions.
                $name(unsafe { $operation(self.0, other.0) })
            }
        })*
    };
}
pub(super) use bitwise;

/// One or more blocks, or one bit plane of eight times as many blocks.
///
/// As a plane, each part of 128 bits belongs to eight blocks. A part has a lane of 32 bits for each column of the state; the
/// lane has a byte for each row, and the byte has a bit for each block. With SIMD128 of WebAssembly, a lane is a row, and its bytes
/// are the columns.
pub(crate) trait Register:
    Copy + BitXor<Output = Self> + BitAnd<Output = Self> + BitOr<Output = Self> + 'static
{
    /// Number of blocks in a register.
    const BLOCKS: usize;

    /// A register in which each lane of 32 bits has this value.
    ///
    /// # Safety
    ///
    /// The processor must have the instructions of this register.
    unsafe fn splat(lane: u32) -> Self;

    /// A register with `part` in each of its parts of 128 bits.
    ///
    /// # Safety
    ///
    /// The processor must have the instructions of this register.
    unsafe fn repeat(part: Vector) -> Self;

    /// Loads [`Register::BLOCKS`] consecutive blocks.
    ///
    /// # Safety
    ///
    /// The processor must have the instructions of this register, and the blocks must be valid for reads.
    unsafe fn load(from: *const u8) -> Self;

    /// Stores [`Register::BLOCKS`] consecutive blocks.
    ///
    /// # Safety
    ///
    /// The blocks must be valid for writes.
    unsafe fn store(self, to: *mut u8);

    /// Every lane of 32 bits shifted towards its most significant bit.
    fn shift_left<const N: i32>(self) -> Self;

    /// Every lane of 32 bits shifted towards its least significant bit.
    fn shift_right<const N: i32>(self) -> Self;

    /// Changes the order of the bytes of each block to the one that planes have, and back: its own inverse. By default, planes have the
    /// order of blocks.
    #[inline(always)]
    fn arrange(self) -> Self {
        self
    }

    /// Permutes the bytes of each 128 bits of a plane.
    fn permute(self, permutation: Permutation) -> Self;

    /// The first `count` counter blocks from `counter` on, in as many registers as needed; more counter blocks may follow.
    ///
    /// # Safety
    ///
    /// The processor must have the instructions of this register.
    #[inline(always)]
    unsafe fn counters<C: Counting>(counter: &Block, count: usize, registers: &mut [Self; 8]) {
        // SAFETY: the caller guarantees that the processor has the instructions.
        unsafe { counters_one_by_one::<Self, C>(counter, count, registers) }
    }
}

/// [`Register::counters`] for any counter.
///
/// # Safety
///
/// The processor must have the instructions of this register.
#[inline(always)]
pub(crate) unsafe fn counters_one_by_one<R: Register, C: Counting>(
    counter: &Block,
    count: usize,
    registers: &mut [R; 8],
) {
    let mut counter = *counter;
    for register in &mut registers[..count.div_ceil(R::BLOCKS)] {
        let mut blocks = [[SPARE_BYTE; 16]; MOST];
        counter::take::<C>(&mut counter, R::BLOCKS, |i, block| blocks[i] = block);
        // SAFETY: the caller guarantees that the processor has the instructions; `blocks` is longer than any register.
        *register = unsafe { R::load(blocks.as_ptr().cast()) };
    }
}

/// True if the low 32 bits of `counter` can be increased `count` times without a carry, or if the carry is dropped anyway.
/// Then only these bits differ in the counter blocks.
#[cfg_attr(target_arch = "wasm32", allow(dead_code, reason = "SIMD128 makes counter blocks one by one"))]
#[inline(always)]
pub(crate) fn only_low_bits_change<C: Counting>(counter: &Block, count: usize) -> bool {
    let first = u128::from_be_bytes(*counter);
    (C::advance(first, count as u128) ^ first) >> 32 == 0
}

/// A permutation of the bytes of a plane.
#[derive(Clone, Copy)]
pub(crate) enum Permutation {
    /// Moves row `r + 1` (modulo 4) to the place of row `r`.
    UpOne,
    /// Moves row `r + 2` (modulo 4) to the place of row `r`.
    UpTwo,
    /// ShiftRows.
    ShiftRows,
    /// InvShiftRows.
    UnshiftRows,
}

/// The source of each byte of a plane in each [`Permutation`], for registers with a byte permutation.
#[cfg_attr(target_arch = "wasm32", allow(dead_code, reason = "SIMD128 has another order of bytes"))]
pub(crate) const SOURCES: [[u8; 16]; 4] = {
    /// Byte `4 c + r` is row `r` of column `c`; it comes from row `r + rows` of column `c + columns * r`.
    const fn sources(rows: usize, columns: usize) -> [u8; 16] {
        let mut bytes = [0; 16];
        let mut i = 0;
        while i < 16 {
            let (column, row) = (i / 4, i % 4);
            bytes[i] = (4 * ((column + columns * row) % 4) + (row + rows) % 4) as u8;
            i += 1;
        }
        bytes
    }
    [sources(1, 0), sources(2, 0), sources(0, 1), sources(0, 3)]
};

/// Reverses the bytes of the last lane, in which a counter block has the low 32 bits of its counter.
#[cfg_attr(target_arch = "wasm32", allow(dead_code, reason = "SIMD128 makes counter blocks one by one"))]
pub(crate) const SWAP_LAST: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 14, 13, 12];
