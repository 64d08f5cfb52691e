//! Four 32-bit lanes: a vector register on architectures whose processors all have vector registers, four integers on
//! others.
//!
//! All operations take constant time: bitwise operations, shifts and fixed permutations.

use std::ops::{BitAnd, BitOr, BitXor};

use zeroize::Zeroize;

use super::register::{Permutation, Register, bitwise};
use crate::kernel::Block;

/// Defines functions by expressions, such as intrinsics that every processor of the target has.
macro_rules! define {
    ($($name:ident$(<$n:ident>)?($($argument:ident: $type:ty),*) -> $result:ty = $call:expr;)*) => {$(
        #[allow(unused_unsafe, reason = "integers need no intrinsics")]
        #[inline(always)]
        pub(super) fn $name$(<const $n: i32>)?($($argument: $type),*) -> $result {
            // SAFETY: every processor of the target has the intrinsic. A vector has the size of a number, and any bits are valid.
            unsafe { $call }
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
mod lanes {
    use std::arch::x86_64::*;
    use std::mem::transmute;

    pub(super) type Lanes = __m128i;

    define! {
        xor(a: Lanes, b: Lanes) -> Lanes = _mm_xor_si128(a, b);
        and(a: Lanes, b: Lanes) -> Lanes = _mm_and_si128(a, b);
        or(a: Lanes, b: Lanes) -> Lanes = _mm_or_si128(a, b);
        splat(a: u32) -> Lanes = _mm_set1_epi32(a as i32);
        from_u128(a: u128) -> Lanes = transmute(a);
        to_u128(a: Lanes) -> u128 = transmute(a);
        shift_left<N>(a: Lanes) -> Lanes = _mm_slli_epi32::<N>(a);
        shift_right<N>(a: Lanes) -> Lanes = _mm_srli_epi32::<N>(a);
        rotate1(a: Lanes) -> Lanes = _mm_shuffle_epi32::<0b00_11_10_01>(a);
        rotate2(a: Lanes) -> Lanes = _mm_shuffle_epi32::<0b01_00_11_10>(a);
        rotate3(a: Lanes) -> Lanes = _mm_shuffle_epi32::<0b10_01_00_11>(a);
    }
}

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod lanes {
    use std::arch::aarch64::*;
    use std::mem::transmute;

    pub(super) type Lanes = uint32x4_t;

    define! {
        xor(a: Lanes, b: Lanes) -> Lanes = veorq_u32(a, b);
        and(a: Lanes, b: Lanes) -> Lanes = vandq_u32(a, b);
        or(a: Lanes, b: Lanes) -> Lanes = vorrq_u32(a, b);
        splat(a: u32) -> Lanes = vdupq_n_u32(a);
        from_u128(a: u128) -> Lanes = transmute(a);
        to_u128(a: Lanes) -> u128 = transmute(a);
        shift_left<N>(a: Lanes) -> Lanes = vshlq_n_u32::<N>(a);
        shift_right<N>(a: Lanes) -> Lanes = vshrq_n_u32::<N>(a);
        rotate1(a: Lanes) -> Lanes = vextq_u32::<1>(a, a);
        rotate2(a: Lanes) -> Lanes = vextq_u32::<2>(a, a);
        rotate3(a: Lanes) -> Lanes = vextq_u32::<3>(a, a);
    }
}

#[cfg(any(test, not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))))]
#[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), allow(dead_code))]
mod portable {
    pub(super) type Lanes = [u32; 4];

    #[inline(always)]
    fn each(a: Lanes, b: Lanes, f: impl Fn(u32, u32) -> u32) -> Lanes {
        std::array::from_fn(|i| f(a[i], b[i]))
    }

    define! {
        xor(a: Lanes, b: Lanes) -> Lanes = each(a, b, |a, b| a ^ b);
        and(a: Lanes, b: Lanes) -> Lanes = each(a, b, |a, b| a & b);
        or(a: Lanes, b: Lanes) -> Lanes = each(a, b, |a, b| a | b);
        splat(a: u32) -> Lanes = [a; 4];
        from_u128(a: u128) -> Lanes = std::array::from_fn(|i| (a >> (32 * i)) as u32);
        to_u128(a: Lanes) -> u128 = (0..4).fold(0, |sum, i| sum | (u128::from(a[i]) << (32 * i)));
        shift_left<N>(a: Lanes) -> Lanes = a.map(|a| a << N);
        shift_right<N>(a: Lanes) -> Lanes = a.map(|a| a >> N);
        rotate1(a: Lanes) -> Lanes = [a[1], a[2], a[3], a[0]];
        rotate2(a: Lanes) -> Lanes = [a[2], a[3], a[0], a[1]];
        rotate3(a: Lanes) -> Lanes = [a[3], a[0], a[1], a[2]];
    }
}
#[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))))]
use portable as lanes;

/// One block as four little-endian columns, or one bit plane of eight blocks.
#[derive(Clone, Copy)]
pub(crate) struct Vector(pub(super) lanes::Lanes);

impl Vector {
    #[inline(always)]
    pub(crate) fn zero() -> Self {
        Self::splat(0)
    }

    /// Four equal lanes.
    #[inline(always)]
    pub(crate) fn splat(lane: u32) -> Self {
        Vector(lanes::splat(lane))
    }

    #[inline(always)]
    pub(crate) fn from_block(block: Block) -> Self {
        Vector(lanes::from_u128(u128::from_le_bytes(block)))
    }

    #[inline(always)]
    pub(crate) fn to_block(self) -> Block {
        lanes::to_u128(self.0).to_le_bytes()
    }

    /// Moves lane `i + n` (modulo 4) to the place of lane `i`.
    #[inline(always)]
    pub(crate) fn rotate(self, n: usize) -> Self {
        match n {
            0 => self,
            1 => Vector(lanes::rotate1(self.0)),
            2 => Vector(lanes::rotate2(self.0)),
            _ => Vector(lanes::rotate3(self.0)),
        }
    }
}

bitwise! { Vector: BitXor bitxor lanes::xor, BitAnd bitand lanes::and, BitOr bitor lanes::or }

/// Takes row `r` from vector `r`, for each of the four rows.
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
        Vector(lanes::shift_left::<N>(self.0))
    }

    #[inline(always)]
    fn shift_right<const N: i32>(self) -> Self {
        Vector(lanes::shift_right::<N>(self.0))
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

impl Zeroize for Vector {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: u128 = 0x8123_4567_89ab_cdef_fedc_ba98_7654_3210;
    const B: u128 = 0x0f1e_2d3c_4b5a_6978_8796_a5b4_c3d2_e1f0;

    fn v(x: u128) -> Vector {
        Vector::from_block(x.to_le_bytes())
    }

    fn n(x: Vector) -> u128 {
        u128::from_le_bytes(x.to_block())
    }

    #[test]
    fn vectors_and_integers_agree() {
        let (pa, pb) = (portable::from_u128(A), portable::from_u128(B));
        assert_eq!((n(v(A) ^ v(B)), n(v(A) & v(B)), n(v(A) | v(B))), (A ^ B, A & B, A | B));
        assert_eq!(portable::to_u128(portable::xor(pa, pb)), A ^ B);
        assert_eq!(portable::to_u128(portable::and(pa, pb)), A & B);
        assert_eq!(portable::to_u128(portable::or(pa, pb)), A | B);
        assert_eq!(n(v(A).shift_left::<5>()), portable::to_u128(portable::shift_left::<5>(pa)));
        assert_eq!(n(v(A).shift_right::<5>()), portable::to_u128(portable::shift_right::<5>(pa)));
        for (turns, rotated) in
            [pa, portable::rotate1(pa), portable::rotate2(pa), portable::rotate3(pa)].iter().enumerate()
        {
            assert_eq!(portable::to_u128(*rotated), A.rotate_right(32 * turns as u32));
            assert_eq!(n(v(A).rotate(turns)), A.rotate_right(32 * turns as u32));
        }
    }
}
