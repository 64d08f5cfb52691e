//! GHASH (SP 800-38D, 6.4) with PMULL, eight blocks for each reduction.
//!
//! RBIT reverses the bits of each byte, which puts the coefficients in ascending order: a block is then a polynomial with
//! the coefficient of x^0 in the lowest bit. Products are reduced modulo x^128 + x^7 + x^2 + x + 1.

use std::arch::aarch64::*;

use zeroize::Zeroize;

use super::vector::{block, vector};
use crate::kernel::Block;
use crate::kernel::boxed;

/// Number of precomputed powers.
const POWERS: usize = 8;

/// The first powers of a hash key H; zeroed on drop.
pub struct HashKey {
    /// They are on the heap, so that moving the key leaves no copy behind.
    powers: Box<Powers>,
}

/// The powers of H, starting with H, with coefficients in ascending order.
struct Powers {
    whole: [Block; POWERS],
    /// For each power, the exclusive or of its two halves, stored in both halves.
    sums: [Block; POWERS],
}

impl HashKey {
    /// A hash key without powers; `None` if memory cannot be allocated.
    pub(crate) fn blank() -> Option<Self> {
        let blank = || Powers { whole: [[0; 16]; POWERS], sums: [[0; 16]; POWERS] };
        Some(HashKey { powers: boxed::try_new(blank)? })
    }

    /// Replaces H.
    #[target_feature(enable = "neon,aes")]
    pub(crate) fn set(&mut self, h: &Block) {
        let Powers { whole, sums } = &mut *self.powers;
        let h = vrbitq_u8(vector(h));
        let mut power = h;
        for (whole, sum) in whole.iter_mut().zip(sums) {
            *whole = block(power);
            *sum = block(veorq_u8(power, swapped(power)));
            power = Product::of(power, h, veorq_u8(h, swapped(h))).reduce();
        }
    }

    /// A block times H^power, for powers from 1 to 8.
    #[inline]
    #[target_feature(enable = "neon,aes")]
    pub(super) fn times_power(&self, block: uint8x16_t, power: usize) -> Product {
        let Powers { whole, sums } = &*self.powers;
        Product::of(block, vector(&whole[power - 1]), vector(&sums[power - 1]))
    }
}

impl Drop for HashKey {
    fn drop(&mut self) {
        self.powers.whole.zeroize();
        self.powers.sums.zeroize();
    }
}

/// A product of two blocks before its reduction (Karatsuba): the product of the lower halves, the product of the upper
/// halves, and the product of the two sums of a lower and an upper half.
#[derive(Clone, Copy)]
pub(super) struct Product {
    low: uint8x16_t,
    middle: uint8x16_t,
    high: uint8x16_t,
}

/// The lower half of a block times the lower half of another.
#[inline]
#[target_feature(enable = "neon,aes")]
fn multiply_low(a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
    let (a, b) = (vreinterpretq_p64_u8(a), vreinterpretq_p64_u8(b));
    vreinterpretq_u8_p128(vmull_p64(vgetq_lane_p64::<0>(a), vgetq_lane_p64::<0>(b)))
}

/// The upper half of a block times the upper half of another.
#[inline]
#[target_feature(enable = "neon,aes")]
fn multiply_high(a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
    vreinterpretq_u8_p128(vmull_high_p64(vreinterpretq_p64_u8(a), vreinterpretq_p64_u8(b)))
}

/// Both halves exchanged.
#[inline]
#[target_feature(enable = "neon")]
fn swapped(a: uint8x16_t) -> uint8x16_t {
    vextq_u8::<8>(a, a)
}

impl Product {
    /// A product, if the exclusive or of the halves of `b` is known.
    #[inline]
    #[target_feature(enable = "neon,aes")]
    fn of(a: uint8x16_t, b: uint8x16_t, b_sum: uint8x16_t) -> Self {
        let (low, high) = (multiply_low(a, b), multiply_high(a, b));
        Product { low, middle: multiply_low(veorq_u8(a, swapped(a)), b_sum), high }
    }

    /// An empty sum of products.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn zero() -> Self {
        let zero = vdupq_n_u8(0);
        Product { low: zero, middle: zero, high: zero }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn add(self, other: Self) -> Self {
        Product {
            low: veorq_u8(self.low, other.low),
            middle: veorq_u8(self.middle, other.middle),
            high: veorq_u8(self.high, other.high),
        }
    }

    #[inline]
    #[target_feature(enable = "neon,aes")]
    pub(super) fn reduce(self) -> uint8x16_t {
        let zero = vdupq_n_u8(0);
        let middle = veorq_u8(veorq_u8(self.middle, self.low), self.high);
        let low = veorq_u8(self.low, vextq_u8::<8>(zero, middle));
        let high = veorq_u8(self.high, vextq_u8::<8>(middle, zero));

        // x^128 = x^7 + x^2 + x + 1: reduces the uppermost 64 bits, then the next 64.
        let modulus = vreinterpretq_u8_u64(vdupq_n_u64(0x87));
        let folded = multiply_high(high, modulus);
        let low = veorq_u8(low, vextq_u8::<8>(zero, folded));
        let high = veorq_u8(high, vextq_u8::<8>(folded, zero));
        veorq_u8(low, multiply_low(high, modulus))
    }
}

/// Adds whole blocks to the state.
#[target_feature(enable = "neon,aes")]
pub(crate) fn update(key: &HashKey, state: &mut Block, data: &[u8]) {
    let mut y = vrbitq_u8(vector(state));
    let (blocks, _) = data.as_chunks::<16>();
    for group in blocks.chunks(POWERS) {
        let mut sum = key.times_power(veorq_u8(y, vrbitq_u8(vector(&group[0]))), group.len());
        for (i, block) in group.iter().enumerate().skip(1) {
            sum = sum.add(key.times_power(vrbitq_u8(vector(block)), group.len() - i));
        }
        y = sum.reduce();
    }
    *state = block(vrbitq_u8(y));
}
