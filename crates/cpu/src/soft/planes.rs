//! Bit planes. Blocks are stored as eight planes, so that one instruction processes the same bit of many bytes.
//!
//! The passes are generic over two layouts of a plane:
//!
//! - [`Wide`] holds 32 blocks. A plane has a vector for each row of the state; the vector has a lane for each column, and
//!   the lane has a bit for each block. MixColumns permutes vectors, and ShiftRows rotates the lanes of a vector.
//! - [`Narrow`] holds eight blocks. A plane is one vector. It has a lane for each column; the lane has a byte for each row,
//!   and the byte has a bit for each block.

use zeroize::Zeroize;

use super::vector::Vector;

/// The largest number of blocks in a layout.
pub(crate) const MOST: usize = 32;

/// One bit of every byte of every block.
pub(crate) trait Plane: Copy + Zeroize {
    /// Number of blocks.
    const BLOCKS: usize;

    /// All zero.
    fn zero() -> Self;

    fn xor(self, other: Self) -> Self;

    /// Moves row `r + 1` (modulo 4) to the place of row `r`.
    fn up_one(self) -> Self;

    /// Moves row `r + 2` (modulo 4) to the place of row `r`.
    fn up_two(self) -> Self;

    /// ShiftRows.
    fn shift_rows(self) -> Self;

    /// InvShiftRows.
    fn unshift_rows(self) -> Self;

    /// Applies a circuit to all bytes.
    fn substitute(state: &mut [Self; 8], circuit: impl Fn([Vector; 8]) -> [Vector; 8]);

    /// Transposes the first [`Plane::BLOCKS`] blocks to planes.
    fn pack(blocks: &[Vector; MOST]) -> [Self; 8];

    /// The planes of blocks that are all equal to `block`.
    fn repeat(block: Vector) -> [Self; 8];

    /// The inverse of [`Plane::pack`].
    fn unpack(planes: &[Self; 8], blocks: &mut [Vector; MOST]);
}

/// One step of the transposition of bit matrices. Before this step, the submatrices of `N` by `N` bits are transposed; after
/// it, the submatrices of `2 N` by `2 N` bits are. In each group of `2 N` bits, the step exchanges the upper half of
/// `words[i]` with the lower half of `words[i + N]`.
#[inline(always)]
fn swap_moves<const N: i32>(words: &mut [Vector], mask: u32) {
    let mask = Vector::splat(mask);
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
#[inline(always)]
fn transpose8(words: &mut [Vector]) {
    swap_moves::<1>(words, 0x5555_5555);
    swap_moves::<2>(words, 0x3333_3333);
    swap_moves::<4>(words, 0x0f0f_0f0f);
}

/// Transposes the 32 by 32 bit matrices that the lanes of 32 words form.
#[inline(always)]
fn transpose32(words: &mut [Vector; 32]) {
    transpose8(words);
    swap_moves::<8>(words, 0x00ff_00ff);
    swap_moves::<16>(words, 0x0000_ffff);
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
    const BLOCKS: usize = 32;

    #[inline(always)]
    fn zero() -> Self {
        Wide([Vector::zero(); 4])
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
    fn substitute(state: &mut [Self; 8], circuit: impl Fn([Vector; 8]) -> [Vector; 8]) {
        for row in 0..4 {
            let out = circuit(std::array::from_fn(|b| state[b].0[row]));
            for (plane, out) in state.iter_mut().zip(out) {
                plane.0[row] = out;
            }
        }
    }

    #[inline(always)]
    fn pack(blocks: &[Vector; MOST]) -> [Self; 8] {
        let mut words = *blocks;
        transpose32(&mut words);
        std::array::from_fn(|b| Wide([words[b], words[8 + b], words[16 + b], words[24 + b]]))
    }

    #[inline(always)]
    fn repeat(block: Vector) -> [Self; 8] {
        std::array::from_fn(|b| Wide(std::array::from_fn(|row| block.where_set(8 * row + b))))
    }

    #[inline(always)]
    fn unpack(planes: &[Self; 8], blocks: &mut [Vector; MOST]) {
        for (b, plane) in planes.iter().enumerate() {
            for (row, word) in plane.0.into_iter().enumerate() {
                blocks[8 * row + b] = word;
            }
        }
        transpose32(blocks);
    }
}

/// A plane of eight blocks.
#[derive(Clone, Copy)]
pub(crate) struct Narrow(Vector);

impl Zeroize for Narrow {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// Takes row `r` from vector `r`, for each of the four rows.
#[inline(always)]
fn select_rows(rows: [Vector; 4]) -> Vector {
    let [a0, a1, a2, a3] = rows;
    let low = (a0 & Vector::splat(0x0000_00ff)) | (a1 & Vector::splat(0x0000_ff00));
    let high = (a2 & Vector::splat(0x00ff_0000)) | (a3 & Vector::splat(0xff00_0000));
    low | high
}

impl Plane for Narrow {
    const BLOCKS: usize = 8;

    #[inline(always)]
    fn zero() -> Self {
        Narrow(Vector::zero())
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Narrow(self.0 ^ other.0)
    }

    #[inline(always)]
    fn up_one(self) -> Self {
        Narrow(self.0.shift_right::<8>() | self.0.shift_left::<24>())
    }

    #[inline(always)]
    fn up_two(self) -> Self {
        Narrow(self.0.shift_right::<16>() | self.0.shift_left::<16>())
    }

    #[inline(always)]
    fn shift_rows(self) -> Self {
        Narrow(select_rows([self.0, self.0.rotate(1), self.0.rotate(2), self.0.rotate(3)]))
    }

    #[inline(always)]
    fn unshift_rows(self) -> Self {
        Narrow(select_rows([self.0, self.0.rotate(3), self.0.rotate(2), self.0.rotate(1)]))
    }

    #[inline(always)]
    fn substitute(state: &mut [Self; 8], circuit: impl Fn([Vector; 8]) -> [Vector; 8]) {
        *state = circuit(state.map(|plane| plane.0)).map(Narrow);
    }

    #[inline(always)]
    fn pack(blocks: &[Vector; MOST]) -> [Self; 8] {
        let mut words: [Vector; 8] = std::array::from_fn(|i| blocks[i]);
        transpose8(&mut words);
        words.map(Narrow)
    }

    #[inline(always)]
    fn repeat(block: Vector) -> [Self; 8] {
        Self::pack(&[block; MOST])
    }

    #[inline(always)]
    fn unpack(planes: &[Self; 8], blocks: &mut [Vector; MOST]) {
        let mut words = planes.map(|plane| plane.0);
        transpose8(&mut words);
        blocks[..8].copy_from_slice(&words);
    }
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
    fn check<P: Plane>(bit: fn(&P, usize, usize) -> u8) {
        let blocks = random_blocks();
        let planes = P::pack(&blocks);
        for (b, plane) in planes.iter().enumerate() {
            for (j, block) in blocks.iter().enumerate().take(P::BLOCKS) {
                for (i, byte) in block.to_block().into_iter().enumerate() {
                    assert_eq!(bit(plane, i, j), (byte >> b) & 1, "bit {b} of byte {i} of block {j}");
                }
            }
        }
        let mut back = [Vector::zero(); MOST];
        P::unpack(&planes, &mut back);
        assert_eq!(back.map(Vector::to_block)[..P::BLOCKS], blocks.map(Vector::to_block)[..P::BLOCKS]);

        P::unpack(&P::repeat(blocks[3]), &mut back);
        assert!(back[..P::BLOCKS].iter().all(|block| block.to_block() == blocks[3].to_block()));
    }

    #[test]
    fn pack_places_every_bit() {
        check::<Narrow>(|plane, i, j| (plane.0.to_block()[i] >> j) & 1);
        check::<Wide>(|plane, i, j| (plane.0[i % 4].to_block()[4 * (i / 4) + j / 8] >> (j % 8)) & 1);
    }
}
