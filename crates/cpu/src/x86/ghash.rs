//! GHASH by carry-less multiplication, many blocks to one reduction.
//!
//! Blocks are byte-reversed, which leaves polynomials with their bits in reverse (RFC 8452, appendix A, POLYVAL): a
//! product of two is then short of one factor x, which the key gets beforehand, and reduction works from the low end
//! (Montgomery), two products by the upper half of the modulus.
//!
//! With H^1, H^2, ... at hand, the blocks of N vectors are multiplied without any reduction and the sums
//! reduced once. In the loop each place of a vector is a hash of its own, all by the same power: no sum
//! across the places before the end. The last vectors are multiplied by the powers that fall to their blocks.

use std::arch::x86_64::*;

use zeroize::Zeroize;

use super::vector::{Vector, Xmm};
use crate::kernel::Block;

/// The upper half of x^128 + x^127 + x^126 + x^121 + 1, in both halves.
const MODULUS: u128 = 0xc200_0000_0000_0000_c200_0000_0000_0000;

/// Powers of a hash key, the first POWERS of them; wiped on drop.
#[repr(C, align(64))]
pub struct HashKey<const POWERS: usize> {
    /// H^POWERS down to H, so that a vector of consecutive blocks finds a vector of powers.
    powers: [__m128i; POWERS],
    /// The exclusive or of their halves, in both halves.
    sums: [__m128i; POWERS],
}

impl<const POWERS: usize> HashKey<POWERS> {
    /// H^power in every place.
    ///
    /// # Safety
    ///
    /// As [`Vector`]; `power` is at least 1 and at most POWERS.
    #[inline(always)]
    unsafe fn power<V: Vector>(&self, power: usize) -> Factor<V> {
        let at = POWERS - power;
        // SAFETY: as the caller vouches.
        unsafe {
            Factor {
                whole: V::broadcast(self.powers.as_ptr().add(at)),
                sum: V::broadcast(self.sums.as_ptr().add(at)),
            }
        }
    }

    /// H^power and the lower ones.
    ///
    /// # Safety
    ///
    /// As [`Vector`]; `power` is at most POWERS and at least the blocks of a vector.
    #[inline(always)]
    unsafe fn powers<V: Vector>(&self, power: usize) -> Factor<V> {
        let at = POWERS - power;
        // SAFETY: as the caller vouches.
        unsafe {
            Factor {
                whole: V::load(self.powers.as_ptr().add(at).cast()),
                sum: V::load(self.sums.as_ptr().add(at).cast()),
            }
        }
    }
}

impl<const POWERS: usize> Drop for HashKey<POWERS> {
    fn drop(&mut self) {
        self.powers.zeroize();
        self.sums.zeroize();
    }
}

/// A second factor: a power of H and the exclusive or of its halves.
struct Factor<V> {
    whole: V,
    sum: V,
}

impl<V: Vector> Factor<V> {
    #[inline(always)]
    fn of(whole: V) -> Self {
        Factor { whole, sum: whole.xor(whole.swapped()) }
    }
}

/// A sum of unreduced products, by Karatsuba: three multiplications instead of four, since a carry-less one occupies its
/// unit for two cycles (Zen 4), whatever the width.
struct Sum<V> {
    /// At x^0.
    low: V,
    /// At x^64, plus low and high.
    middle: V,
    /// At x^128.
    high: V,
}

impl<V: Vector> Sum<V> {
    #[inline(always)]
    fn product(a: V, b: Factor<V>) -> Self {
        Sum {
            low: a.clmul_low(b.whole),
            middle: a.xor(a.swapped()).clmul_low(b.sum),
            high: a.clmul_high(b.whole),
        }
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Sum {
            low: self.low.xor(other.low),
            middle: self.middle.xor(other.middle),
            high: self.high.xor(other.high),
        }
    }

    /// Folds the low 64 bits into what is above them, twice.
    #[inline(always)]
    fn reduced(self, modulus: V) -> V {
        let middle = self.middle.xor(self.low).xor(self.high);
        let middle = middle.xor(self.low.swapped()).xor(self.low.clmul_low(modulus));
        self.high.xor(middle.swapped()).xor(middle.clmul_low(modulus))
    }
}

/// Prepares the powers of H.
///
/// # Safety
///
/// As [`Vector`], of the widest vector and of [`Xmm`].
#[inline(always)]
pub(super) unsafe fn hash_key<V: Vector, const POWERS: usize>(h: &Block) -> HashKey<POWERS> {
    let h = u128::from_be_bytes(*h);
    // Times x: RFC 8452, appendix A, mulX_POLYVAL.
    let carry = ((h as i128) >> 127) as u128;
    let first = (h << 1) ^ (carry & 0xc200_0000_0000_0000_0000_0000_0000_0001);
    const { assert!(POWERS == 8 * V::BLOCKS) };
    // SAFETY: all bits zero are a vector.
    let zero = unsafe { _mm_setzero_si128() };
    let mut key = HashKey { powers: [zero; POWERS], sums: [zero; POWERS] };
    let (powers, sums): (*mut u8, *mut u8) = (key.powers.as_mut_ptr().cast(), key.sums.as_mut_ptr().cast());
    // SAFETY: the caller vouches for the instructions; eight vectors fill the arrays.
    unsafe {
        // By doubling, so that few products wait for each other: as many powers as a vector has,
        let modulus = Xmm::numbers([MODULUS; 4]);
        let mut lowest = [Xmm::number(first); 4];
        for i in 1..V::BLOCKS {
            let (a, b) = (lowest[i / 2], lowest[(i - 1) / 2]);
            lowest[i] = Sum::product(a, Factor::of(b)).reduced(modulus);
        }
        lowest[..V::BLOCKS].reverse();
        // then vectors of them.
        let modulus = V::numbers([MODULUS; 4]);
        let mut vectors = [V::join(lowest); 8];
        for i in 1..8usize {
            let known = 1 << i.ilog2();
            let highest = V::splat(vectors[known - 1].lowest());
            vectors[i] = Sum::product(vectors[i - known], Factor::of(highest)).reduced(modulus);
        }
        for i in 0..8 {
            let Factor { whole, sum } = Factor::of(vectors[i]);
            whole.store(powers.add((7 - i) * V::BYTES));
            sum.store(sums.add((7 - i) * V::BYTES));
        }
    }
    key
}

/// Folds whole blocks into a GHASH state, N vectors to a reduction.
///
/// # Safety
///
/// As [`Vector`]; POWERS is (N + 1) vectors.
#[inline(always)]
pub(super) unsafe fn ghash<V: Vector, const N: usize, const POWERS: usize>(
    key: &HashKey<POWERS>,
    state: &mut Block,
    data: &[u8],
) {
    const { assert!(POWERS == (N + 1) * V::BLOCKS) };
    let (mut ptr, mut left) = (data.as_ptr(), data.len() / 16);
    if left == 0 {
        return;
    }
    let start = u128::from_be_bytes(*state);
    // SAFETY: the caller vouches for the instructions, and each access lies inside the `left` blocks at `ptr`, the
    // POWERS powers of the key or a local.
    unsafe {
        let modulus = V::numbers([MODULUS; 4]);
        let mut hash = V::widen(Xmm::number(start));
        // Leaves at least a vector, so that what stands in each place meets a block there.
        while left >= POWERS {
            let mut x: V = V::load(ptr).reversed().xor(hash);
            let mut sum = Sum::product(x, key.power(N * V::BLOCKS));
            for i in 1..N {
                x = V::load(ptr.add(i * V::BYTES)).reversed();
                sum = sum.plus(Sum::product(x, key.power((N - i) * V::BLOCKS)));
            }
            hash = sum.reduced(modulus);
            ptr = ptr.add(N * V::BYTES);
            left -= N * V::BLOCKS;
        }
        // Each block by its own power; what was hashed goes with the first of them.
        let zero = hash.xor(hash);
        let mut sum = Sum { low: zero, middle: zero, high: zero };
        while left >= V::BLOCKS {
            let x = V::load(ptr).reversed().xor(hash);
            sum = sum.plus(Sum::product(x, key.powers(left)));
            hash = zero;
            ptr = ptr.add(V::BYTES);
            left -= V::BLOCKS;
        }
        let mut sum = Sum { low: sum.low.folded(), middle: sum.middle.folded(), high: sum.high.folded() };
        let mut hash = hash.lowest();
        while left > 0 {
            let x = Xmm::load(ptr).reversed().xor(hash);
            sum = sum.plus(Sum::product(x, key.powers(left)));
            hash = hash.xor(hash);
            ptr = ptr.add(16);
            left -= 1;
        }
        let mut out = 0u128;
        sum.reduced(Xmm::numbers([MODULUS; 4])).store((&raw mut out).cast());
        *state = out.to_be_bytes();
    }
}
