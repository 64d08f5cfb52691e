//! Bit planes. Blocks are stored as eight planes, so that one instruction processes the same bit of many bytes.
//!
//! The passes are generic over two layouts of a plane:
//!
//! - [`Narrow`] is one register ([`Register`]), for eight blocks in each 128 bits.
//! - [`Wide`] holds 32 blocks. It has more independent instructions, so it is faster for registers of 128 bits. A plane has
//!   a vector for each row of the state; the vector has a lane for each column, and the lane has a bit for each block.
//!   MixColumns permutes vectors, and ShiftRows rotates the lanes of a vector.

// Loops use indices, because intrinsics would not be inlined into the closures of iterators.
#![allow(clippy::needless_range_loop)]

use std::borrow::Borrow;

use lockstep_core::sbox;
use zeroize::Zeroize;

use super::register::Register;
use super::schedule::{Keys, Schedule};
use super::vector::Vector;

/// The largest number of registers in a layout, and the largest number of blocks.
pub(crate) const MOST: usize = 32;

/// One bit of every byte of every block.
pub(crate) trait Plane: Copy {
    /// The blocks before and after the transposition.
    type Register: Register;

    /// A plane of a round key in memory.
    type Stored: Copy + Zeroize;

    /// Number of registers of blocks.
    const REGISTERS: usize;

    /// The round keys.
    type Keys<'a>: Borrow<Keys<Self::Stored>>;

    /// Smallest number of blocks for which one call with this layout is faster than several with [`Narrow`].
    const FROM: usize;

    /// Number of blocks.
    const BLOCKS: usize = Self::REGISTERS * Self::Register::BLOCKS;

    /// The round keys of a schedule.
    fn keys(schedule: &Schedule) -> Self::Keys<'_>;

    /// A plane of a round key.
    ///
    /// # Safety
    ///
    /// The processor must have the instructions of [`Plane::Register`].
    unsafe fn of(stored: &Self::Stored) -> Self;

    fn xor(self, other: Self) -> Self;

    /// Moves row `r + 1` (modulo 4) to the place of row `r`.
    fn up_one(self) -> Self;

    /// Moves row `r + 2` (modulo 4) to the place of row `r`.
    fn up_two(self) -> Self;

    /// ShiftRows.
    fn shift_rows(self) -> Self;

    /// InvShiftRows.
    fn unshift_rows(self) -> Self;

    /// Applies the S-box or its inverse to all bytes, without the affine constant.
    fn substitute<const INVERSE: bool>(state: &mut [Self; 8]);

    /// Transposes the first [`Plane::REGISTERS`] registers to planes.
    ///
    /// # Safety
    ///
    /// The processor must have the instructions of [`Plane::Register`].
    unsafe fn pack(blocks: &[Self::Register; MOST]) -> [Self; 8];

    /// The inverse of [`Plane::pack`].
    ///
    /// # Safety
    ///
    /// The processor must have the instructions of [`Plane::Register`].
    unsafe fn unpack(planes: &[Self; 8], blocks: &mut [Self::Register; MOST]);

    /// The planes of blocks that are all equal to `block`.
    fn repeat(block: Vector) -> [Self::Stored; 8];
}

/// One step of the transposition of bit matrices. Before this step, the submatrices of `N` by `N` bits are transposed; after
/// it, the submatrices of `2 N` by `2 N` bits are. In each group of `2 N` bits, the step exchanges the upper half of
/// `words[i]` with the lower half of `words[i + N]`.
///
/// # Safety
///
/// The processor must have the instructions of the register.
#[inline(always)]
unsafe fn swap_moves<const N: i32, R: Register>(words: &mut [R], mask: u32) {
    // SAFETY: the caller guarantees that the processor has the instructions.
    let mask = unsafe { R::splat(mask) };
    let n = N as usize;
    for group in words.chunks_exact_mut(2 * n) {
        let (upper, lower) = group.split_at_mut(n);
        for (a, b) in upper.iter_mut().zip(lower) {
            let t = (a.shift_right::<N>() ^ *b) & mask;
            *b = *b ^ t;
            *a = *a ^ t.shift_left::<N>();
        }
    }
}

/// Transposes the 8 by 8 bit matrices that the bytes of eight words form.
///
/// # Safety
///
/// The processor must have the instructions of the register.
#[inline(always)]
unsafe fn transpose8<R: Register>(words: &mut [R]) {
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe {
        swap_moves::<1, R>(words, 0x5555_5555);
        swap_moves::<2, R>(words, 0x3333_3333);
        swap_moves::<4, R>(words, 0x0f0f_0f0f);
    }
}

/// Transposes the 32 by 32 bit matrices that the lanes of 32 words form.
#[inline(always)]
fn transpose32(words: &mut [Vector; 32]) {
    // SAFETY: every processor of the target has the instructions of `Vector`.
    unsafe {
        transpose8(words);
        swap_moves::<8, Vector>(words, 0x00ff_00ff);
        swap_moves::<16, Vector>(words, 0x0000_ffff);
    }
}

/// The S-box or its inverse, without the affine constant. Functions do not take the circuit as a function pointer or a
/// closure, because the intrinsics would not be inlined then.
#[inline(always)]
fn circuit<const INVERSE: bool, R: Register>(planes: [R; 8]) -> [R; 8] {
    if INVERSE { sbox::inverse(planes) } else { sbox::forward(planes) }
}

/// A plane of 32 blocks: four rows.
#[derive(Clone, Copy)]
pub(crate) struct Wide([Vector; 4]);

impl Zeroize for Wide {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

impl Plane for Wide {
    type Register = Vector;
    type Stored = Wide;
    type Keys<'a> = Keys<Wide>;

    const REGISTERS: usize = 32;
    const FROM: usize = 25;

    fn keys(schedule: &Schedule) -> Keys<Wide> {
        schedule.wide()
    }

    #[inline(always)]
    unsafe fn of(stored: &Wide) -> Self {
        *stored
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        let ([a0, a1, a2, a3], [b0, b1, b2, b3]) = (self.0, other.0);
        Wide([a0 ^ b0, a1 ^ b1, a2 ^ b2, a3 ^ b3])
    }

    #[inline(always)]
    fn up_one(self) -> Self {
        let [a0, a1, a2, a3] = self.0;
        Wide([a1, a2, a3, a0])
    }

    #[inline(always)]
    fn up_two(self) -> Self {
        let [a0, a1, a2, a3] = self.0;
        Wide([a2, a3, a0, a1])
    }

    #[inline(always)]
    fn shift_rows(self) -> Self {
        let [a0, a1, a2, a3] = self.0;
        Wide([a0, a1.rotate(1), a2.rotate(2), a3.rotate(3)])
    }

    #[inline(always)]
    fn unshift_rows(self) -> Self {
        let [a0, a1, a2, a3] = self.0;
        Wide([a0, a1.rotate(3), a2.rotate(2), a3.rotate(1)])
    }

    #[inline(always)]
    fn substitute<const INVERSE: bool>(state: &mut [Self; 8]) {
        for row in 0..4 {
            let out = circuit::<INVERSE, _>(std::array::from_fn(|b| state[b].0[row]));
            for (plane, out) in state.iter_mut().zip(out) {
                plane.0[row] = out;
            }
        }
    }

    #[inline(always)]
    unsafe fn pack(blocks: &[Vector; MOST]) -> [Self; 8] {
        let mut words = *blocks;
        transpose32(&mut words);
        std::array::from_fn(|b| Wide([words[b], words[8 + b], words[16 + b], words[24 + b]]))
    }

    #[inline(always)]
    unsafe fn unpack(planes: &[Self; 8], blocks: &mut [Vector; MOST]) {
        for (b, plane) in planes.iter().enumerate() {
            for (row, word) in plane.0.into_iter().enumerate() {
                blocks[8 * row + b] = word;
            }
        }
        transpose32(blocks);
    }

    #[inline(always)]
    fn repeat(block: Vector) -> [Self; 8] {
        std::array::from_fn(|b| Wide(std::array::from_fn(|row| block.where_set(8 * row + b))))
    }
}

/// A plane of one register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Narrow<R>(R);

impl<R: Register> Plane for Narrow<R> {
    type Register = R;
    /// The planes of eight blocks, which all parts of a register have in common, since all blocks have the same key.
    type Stored = Vector;
    type Keys<'a> = &'a Keys<Vector>;

    const REGISTERS: usize = 8;
    const FROM: usize = 1;

    #[inline(always)]
    fn keys(schedule: &Schedule) -> &Keys<Vector> {
        schedule.narrow()
    }

    #[inline(always)]
    unsafe fn of(stored: &Vector) -> Self {
        // SAFETY: the caller guarantees that the processor has the instructions.
        Narrow(unsafe { R::repeat(*stored) })
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Narrow(self.0 ^ other.0)
    }

    #[inline(always)]
    fn up_one(self) -> Self {
        Narrow(self.0.up_one())
    }

    #[inline(always)]
    fn up_two(self) -> Self {
        Narrow(self.0.up_two())
    }

    #[inline(always)]
    fn shift_rows(self) -> Self {
        Narrow(self.0.shift_rows())
    }

    #[inline(always)]
    fn unshift_rows(self) -> Self {
        Narrow(self.0.unshift_rows())
    }

    #[inline(always)]
    fn substitute<const INVERSE: bool>(state: &mut [Self; 8]) {
        let [a0, a1, a2, a3, a4, a5, a6, a7] = *state;
        let out = circuit::<INVERSE, R>([a0.0, a1.0, a2.0, a3.0, a4.0, a5.0, a6.0, a7.0]);
        for b in 0..8 {
            state[b] = Narrow(out[b]);
        }
    }

    #[inline(always)]
    unsafe fn pack(blocks: &[R; MOST]) -> [Self; 8] {
        let mut words = [blocks[0]; 8];
        words.copy_from_slice(&blocks[..8]);
        // SAFETY: the caller guarantees that the processor has the instructions.
        unsafe { transpose8(&mut words) };
        let [a0, a1, a2, a3, a4, a5, a6, a7] = words;
        [Narrow(a0), Narrow(a1), Narrow(a2), Narrow(a3), Narrow(a4), Narrow(a5), Narrow(a6), Narrow(a7)]
    }

    #[inline(always)]
    unsafe fn unpack(planes: &[Self; 8], blocks: &mut [R; MOST]) {
        let words = &mut blocks[..8];
        for b in 0..8 {
            words[b] = planes[b].0;
        }
        // SAFETY: the caller guarantees that the processor has the instructions.
        unsafe { transpose8(words) };
    }

    #[inline(always)]
    fn repeat(block: Vector) -> [Vector; 8] {
        gather([block; 8])
    }
}

/// The planes of eight blocks, for round keys that differ from block to block.
#[inline(always)]
pub(crate) fn gather(blocks: [Vector; 8]) -> [Vector; 8] {
    let mut words = blocks;
    // SAFETY: every processor of the target has the instructions of `Vector`.
    unsafe { transpose8(&mut words) };
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_blocks() -> [Vector; MOST] {
        let mut seed = 1u128;
        std::array::from_fn(|_| {
            seed = seed.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645).wrapping_add(1);
            Vector::from_block((seed ^ (seed >> 61)).to_le_bytes())
        })
    }

    /// Checks `pack`; `bit(plane, byte, block)` reads the bit at its documented place.
    fn check<P: Plane<Register = Vector>>(bit: fn(&P, usize, usize) -> u8) {
        let blocks = random_blocks();
        let mut back = [Vector::zero(); MOST];
        // SAFETY: every processor of the target has the instructions of `Vector`.
        unsafe {
            let planes = P::pack(&blocks);
            for (b, plane) in planes.iter().enumerate() {
                for (j, block) in blocks.iter().enumerate().take(P::BLOCKS) {
                    for (i, byte) in block.to_block().into_iter().enumerate() {
                        assert_eq!(bit(plane, i, j), (byte >> b) & 1, "bit {b} of byte {i} of block {j}");
                    }
                }
            }
            P::unpack(&planes, &mut back);
            assert_eq!(back.map(Vector::to_block)[..P::BLOCKS], blocks.map(Vector::to_block)[..P::BLOCKS]);

            let repeated = P::repeat(blocks[3]);
            P::unpack(&std::array::from_fn(|b| P::of(&repeated[b])), &mut back);
        }
        assert!(back[..P::BLOCKS].iter().all(|block| block.to_block() == blocks[3].to_block()));
    }

    #[test]
    fn pack_places_every_bit() {
        check::<Narrow<Vector>>(|plane, i, j| (plane.0.to_block()[i] >> j) & 1);
        check::<Wide>(|plane, i, j| (plane.0[i % 4].to_block()[4 * (i / 4) + j / 8] >> (j % 8)) & 1);
    }
}
