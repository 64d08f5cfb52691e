//! Four 32-bit lanes. The compiler makes vector instructions of the operations, where the processors of the target have them.
//!
//! All operations take constant time: bitwise operations, shifts and fixed permutations.

use std::array::from_fn;
use std::ops::{BitAnd, BitOr, BitXor};

use zeroize::Zeroize;

use super::register::{Permutation, Register, bitwise};
use crate::kernel::Block;

/// One block as four little-endian columns, or one bit plane of eight blocks.
#[derive(Clone, Copy, Zeroize)]
#[repr(align(16))]
pub(crate) struct Vector(pub(super) [u32; 4]);

impl Vector {
    /// A vector in which each lane has this value.
    #[inline(always)]
    pub(crate) fn splat(lane: u32) -> Self {
        Vector([lane; 4])
    }

    #[inline(always)]
    pub(crate) fn from_block(block: Block) -> Self {
        let columns = block.as_chunks::<4>().0;
        Vector(from_fn(|i| u32::from_le_bytes(columns[i])))
    }

    #[inline(always)]
    pub(crate) fn to_block(self) -> Block {
        let mut block = Block::default();
        block.as_chunks_mut::<4>().0.copy_from_slice(&self.0.map(u32::to_le_bytes));
        block
    }

    /// Moves lane `i + n` (modulo 4) to the place of lane `i`.
    #[inline(always)]
    pub(crate) fn rotate(self, n: usize) -> Self {
        Vector(from_fn(|i| self.0[(i + n) % 4]))
    }
}

#[inline(always)]
fn xor(a: [u32; 4], b: [u32; 4]) -> [u32; 4] {
    from_fn(|i| a[i] ^ b[i])
}

#[inline(always)]
fn and(a: [u32; 4], b: [u32; 4]) -> [u32; 4] {
    from_fn(|i| a[i] & b[i])
}

#[inline(always)]
fn or(a: [u32; 4], b: [u32; 4]) -> [u32; 4] {
    from_fn(|i| a[i] | b[i])
}

bitwise! { Vector: BitXor bitxor xor, BitAnd bitand and, BitOr bitor or }

/// A plane whose row `r` is row `r` of vector `r`.
#[inline(always)]
fn select_rows(rows: [Vector; 4]) -> Vector {
    let [a0, a1, a2, a3] = rows;
    let low = (a0 & Vector::splat(0x0000_00ff)) | (a1 & Vector::splat(0x0000_ff00));
    let high = (a2 & Vector::splat(0x00ff_0000)) | (a3 & Vector::splat(0xff00_0000));
    low | high
}

impl Register for Vector {
    const BLOCKS: usize = 1;

    #[inline(always)]
    unsafe fn splat(lane: u32) -> Self {
        Vector::splat(lane)
    }

    #[inline(always)]
    unsafe fn repeat(part: Vector) -> Self {
        part
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller guarantees a valid block; a Block has alignment 1.
        Vector::from_block(unsafe { from.cast::<Block>().read() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller guarantees a valid block; a Block has alignment 1.
        unsafe { to.cast::<Block>().write(self.to_block()) }
    }

    #[inline(always)]
    fn shift_left<const N: i32>(self) -> Self {
        Vector(self.0.map(|lane| lane << N))
    }

    #[inline(always)]
    fn shift_right<const N: i32>(self) -> Self {
        Vector(self.0.map(|lane| lane >> N))
    }

    /// Round keys have the order of the planes of SIMD128.
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    #[inline(always)]
    fn arrange(self) -> Self {
        let block = self.to_block();
        Vector::from_block(from_fn(|i| block[super::simd128::ROW_BY_ROW[i] as usize]))
    }

    #[inline(always)]
    fn permute(self, permutation: Permutation) -> Self {
        match permutation {
            Permutation::UpOne => self.shift_right::<8>() | self.shift_left::<24>(),
            Permutation::UpTwo => self.shift_right::<16>() | self.shift_left::<16>(),
            Permutation::ShiftRows => select_rows([self, self.rotate(1), self.rotate(2), self.rotate(3)]),
            Permutation::UnshiftRows => select_rows([self, self.rotate(3), self.rotate(2), self.rotate(1)]),
        }
    }
}

#[cfg(test)]
mod tests;
