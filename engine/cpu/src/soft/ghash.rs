//! GHASH (SP 800-38D, 6.4) in constant time. It uses integer multiplication or, if there are enough blocks and the processor
//! has a byte permutation, lookups in registers (`lookup`).
//!
//! Carry-less products are computed by integer products of masked factors, as in Thomas Pornin's BearSSL (`ghash_ctmul64`).
//! If only every fourth bit of the factors may be set, a column of the product is the sum of at most 16 ones. Only a sum of
//! 16 needs a fifth bit, which would carry into the next column in use. That carry falls into the upper half of the product,
//! which BearSSL discards. This module needs all 128 bits of a product. It clears the top four bits of the fixed factor, so
//! that no sum exceeds 15, and multiplies by these four bits separately with masks.
//!
//! The multiply instruction must be constant-time, as on 64-bit x86 and ARM.

use std::sync::atomic::{Ordering, compiler_fence};

use zeroize::Zeroize;

use super::lookup::{self, Lookup, STREAMS, Tables};
use crate::kernel::Block;
use crate::kernel::boxed;
use crate::kernel::wiped::Wiped;

const EVERY_FOURTH: u64 = 0x1111_1111_1111_1111;

/// A fixed factor of carry-less products.
#[derive(Clone, Copy, Default)]
struct Factor {
    /// Four parts of the factor: `holes[k]` has every fourth bit, starting at bit `k`, without the top four bits.
    holes: [u64; 4],
    /// The top four bits, each expanded to a mask of 64 bits.
    top: [u64; 4],
}

impl Factor {
    fn new(y: u64) -> Self {
        Factor {
            holes: std::array::from_fn(|k| y & (EVERY_FOURTH >> 4 << k)),
            top: std::array::from_fn(|k| 0u64.wrapping_sub((y >> (60 + k)) & 1)),
        }
    }

    /// The carry-less product with `x`.
    #[inline(always)]
    fn times(&self, x: u64) -> u128 {
        let x_holes: [u64; 4] = std::array::from_fn(|k| x & (EVERY_FOURTH << k));
        let mut product = 0;
        for column in 0..4 {
            let mut sum = 0;
            for (k, x) in x_holes.into_iter().enumerate() {
                sum ^= u128::from(x) * u128::from(self.holes[(column + 4 - k) % 4]);
            }
            const EVERY_FOURTH_WIDE: u128 = (EVERY_FOURTH as u128) << 64 | EVERY_FOURTH as u128;
            product ^= sum & (EVERY_FOURTH_WIDE << column);
        }
        for k in 0..4 {
            product ^= u128::from(x & self.top[k]) << (60 + k);
        }
        product
    }
}

/// Smallest number of blocks for which lookups are faster: two for each stream.
pub(super) const LOOKUPS_FROM: usize = 2 * STREAMS;

/// A GHASH key; zeroed on drop.
pub struct HashKey {
    /// On the heap, so that moving the key leaves no copy behind.
    powers: Box<Powers>,
}

/// H and the values that are computed from H.
struct Powers {
    h: u128,
    /// The factors of H, which is a big-endian number.
    factors: [Factor; 3],
    /// The tables of `H^16`, if they are computed.
    tables: Tables,
    has_tables: bool,
}

impl HashKey {
    /// A hash key without H; `None` if memory cannot be allocated.
    pub(crate) fn blank() -> Option<Self> {
        let factors = [Factor::default(); 3];
        let powers = || Powers { h: 0, factors, tables: [[0; 32]; 17], has_tables: false };
        Some(HashKey { powers: boxed::try_new(|| Some(powers()))? })
    }

    /// Replaces H.
    pub(crate) fn set(&mut self, h: &Block) {
        let powers = &mut *self.powers;
        powers.h = u128::from_be_bytes(*h);
        powers.factors = factors(powers.h);
        if std::mem::take(&mut powers.has_tables) {
            // The tables of the previous H.
            powers.tables.as_flattened_mut().zeroize();
        }
    }

    /// Computes the tables for lookups, unless they are computed already. A function of its own, so that its frame can be wiped.
    #[inline(never)]
    pub(super) fn ensure_tables(&mut self) {
        let Powers { h, tables, has_tables, .. } = &mut *self.powers;
        if !*has_tables {
            const { assert!(STREAMS == 1 << 4) };
            // Set before the tables are written: if another thread forks the process in between, the child process erases them.
            *has_tables = true;
            compiler_fence(Ordering::SeqCst);
            lookup::tables((0..4).fold(*h, |power, _| multiply(&factors(power), power)), tables);
        }
    }
}

impl Drop for HashKey {
    fn drop(&mut self) {
        self.powers.h.zeroize();
        for factor in self.powers.factors.iter_mut() {
            factor.holes.zeroize();
            factor.top.zeroize();
        }
        self.powers.tables.as_flattened_mut().zeroize();
    }
}

/// The upper half, the lower half and their sum as factors (Karatsuba).
fn factors(y: u128) -> [Factor; 3] {
    let (high, low) = ((y >> 64) as u64, y as u64);
    [high, low, high ^ low].map(Factor::new)
}

/// The product of `x` and the number with these factors. Bits are reflected: the most significant bit is the coefficient of x^0.
#[inline(always)]
fn multiply(factors: &[Factor; 3], x: u128) -> u128 {
    let (x_high, x_low) = ((x >> 64) as u64, x as u64);
    let high = factors[0].times(x_high);
    let low = factors[1].times(x_low);
    let middle = factors[2].times(x_high ^ x_low) ^ high ^ low;
    reduce_product(high ^ (middle >> 64), low ^ (middle << 64))
}

/// The remainder of the product of two reflected numbers modulo the field's polynomial. The product has 255 bits.
#[inline(always)]
fn reduce_product(upper: u128, lower: u128) -> u128 {
    // The product is shifted to the top of 256 bits.
    let (upper, lower) = ((upper << 1) | (lower >> 127), lower << 1);
    // x^128 = x^7 + x^2 + x + 1. The coefficients above x^127 are in `lower`. The bits that the shifts move out of `lower`
    // are reduced first.
    let out = (lower << 127) ^ (lower << 126) ^ (lower << 121);
    let lower = lower ^ out;
    upper ^ lower ^ (lower >> 1) ^ (lower >> 2) ^ (lower >> 7)
}

/// Adds whole blocks to the state, by integer multiplication.
pub(super) fn update(key: &HashKey, state: &mut Block, data: &[u8]) {
    let mut y = u128::from_be_bytes(*state);
    for block in data.as_chunks::<16>().0 {
        y = multiply(&key.powers.factors, y ^ u128::from_be_bytes(*block));
    }
    *state = y.to_be_bytes();
}

/// Adds whole blocks to the state. Lookups process whole groups of 16 blocks if the key has tables.
///
/// # Safety
///
/// The processor must have the instructions of `B`.
#[inline(always)]
pub(super) unsafe fn update_by_lookups<B: Lookup>(key: &HashKey, state: &mut Block, data: &[u8]) {
    let mut rest = data;
    if key.powers.has_tables && data.len() >= 16 * LOOKUPS_FROM {
        let (groups, tail) = data.split_at(data.len() / (16 * STREAMS) * (16 * STREAMS));
        let mut streams = Wiped::<STREAMS>::zero();
        streams[0] = *state;
        // SAFETY: the caller guarantees that the processor has the instructions.
        unsafe { lookup::fold::<B>(&key.powers.tables, &mut streams, groups) };
        // The last block of stream i is followed by 15 - i blocks, so it is multiplied by H^(16 - i).
        *state = [0; 16];
        update(key, state, streams.as_flattened());
        rest = tail;
    }
    update(key, state, rest);
}

#[cfg(test)]
mod tests;
