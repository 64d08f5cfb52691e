//! GHASH by lookups in registers: sixteen streams, whose bytes are in sixteen registers.
//!
//! A byte permutation is a lookup of 16 indices in a table of 16 bytes that is in a register. No address depends on the
//! indices. Register `p` holds byte `p` of 16 blocks, and each block is multiplied by the same factor, `H^16`. The product with
//! a byte at place `p` is the product with the same byte at place 0, moved by `p` bytes. Thus there is one table for each of
//! the 17 bytes of the product of H^16 and a nibble, for the high nibble of a byte and for the low nibble.
//!
//! Bits are reflected as in GHASH: the most significant bit of byte 0 is the coefficient of x^0.

// Loops use indices, because intrinsics would not be inlined into the closures of iterators.
#![allow(clippy::needless_range_loop)]

use std::ops::BitXor;

use super::register::Register;
use crate::kernel::Block;

/// Number of streams: block `i` of the data belongs to stream `i` modulo 16.
pub(super) const STREAMS: usize = 16;

/// The results of a byte's 16 high nibbles, then of its 16 low nibbles.
pub(super) type Table = [u8; 32];

/// The tables of a factor: one for each byte of the products of the factor and a byte.
pub(super) type Tables = [Table; 17];

/// A register of sixteen bytes, one of each stream.
pub(super) trait Row: Register {
    /// The lower halves, and the upper halves, of two registers, interleaved bytewise.
    fn interleave(self, other: Self) -> [Self; 2];

    /// Replaces each index, which is below 16, by the byte with this number.
    fn look_up(self, indices: Self) -> Self;
}

/// A way to look up the nibbles of a row.
pub(super) trait Lookup {
    type Row: Row;

    /// The nibbles of 16 bytes.
    type Nibbles: Copy;

    /// The sum of results of lookups.
    type Sum: Copy + BitXor<Output = Self::Sum>;

    fn nibbles(row: Self::Row) -> Self::Nibbles;

    /// Looks up both nibbles of each byte.
    fn look_up(table: &Table, nibbles: Self::Nibbles) -> Self::Sum;

    /// The sum of the results for both nibbles.
    fn fold(sum: Self::Sum) -> Self::Row;
}

impl<R: Row> Lookup for R {
    type Row = R;
    /// The high nibbles and the low nibbles.
    type Nibbles = [R; 2];
    type Sum = R;

    #[inline(always)]
    fn nibbles(row: R) -> [R; 2] {
        // SAFETY: a value exists, so the processor has the instructions.
        let mask = unsafe { R::splat(0x0f0f_0f0f) };
        [row.shift_right::<4>() & mask, row & mask]
    }

    #[inline(always)]
    fn look_up(table: &Table, [high, low]: [R; 2]) -> R {
        // SAFETY: a value exists, so the processor has the instructions; the table is twice 16 readable bytes.
        let (of_high, of_low) = unsafe { (R::load(table.as_ptr()), R::load(table.as_ptr().add(16))) };
        of_high.look_up(high) ^ of_low.look_up(low)
    }

    #[inline(always)]
    fn fold(sum: R) -> R {
        sum
    }
}

pub(super) fn tables(factor: u128, tables: &mut Tables) {
    for (half, table) in [0, 16].into_iter().zip([0, 4]) {
        for nibble in 0..16 {
            // The most significant bit of the nibble has the lowest exponent.
            let mut product = [0; 17];
            for bit in 0..4 {
                let mask = 0u128.wrapping_sub((nibble as u128 >> (3 - bit)) & 1);
                let shift = table + bit;
                let upper = ((factor >> shift) & mask).to_be_bytes();
                let last = ((factor << (8 - shift)) & mask) as u8;
                for (byte, more) in product.iter_mut().zip(upper) {
                    *byte ^= more;
                }
                product[16] ^= last;
            }
            for (table, byte) in tables.iter_mut().zip(product) {
                table[half + nibble] = byte;
            }
        }
    }
}

/// The tables for the reduction: `REDUCE[0]` and `REDUCE[1]` are the first and the second byte of the product of a byte and
/// 1 + x + x^2 + x^7 = x^128.
const REDUCE: [Table; 2] = {
    let mut tables = [[0; 32]; 2];
    let mut i = 0;
    while i < 32 {
        let byte = if i < 16 { (i as u16) << 4 } else { i as u16 & 15 };
        let wide = byte << 8;
        let product = wide ^ (wide >> 1) ^ (wide >> 2) ^ (wide >> 7);
        tables[0][i] = (product >> 8) as u8;
        tables[1][i] = product as u8;
        i += 1;
    }
    tables
};

/// Transposes 16 times 16 bytes.
#[inline(always)]
fn transpose<R: Row>(rows: &mut [R; 16]) {
    for _ in 0..4 {
        let old = *rows;
        for i in 0..8 {
            [rows[2 * i], rows[2 * i + 1]] = old[i].interleave(old[i + 8]);
        }
    }
}

/// Adds byte `K` of the products to `sum`. `K` is a parameter of the type, so that the loop is unrolled.
#[inline(always)]
fn product_byte<B: Lookup, const K: usize>(
    tables: &Tables,
    nibbles: &[B::Nibbles; 16],
    mut sum: B::Sum,
) -> B::Sum {
    for p in const { K.saturating_sub(16) }..const { if K < 16 { K + 1 } else { 16 } } {
        sum = sum ^ B::look_up(&tables[K - p], nibbles[p]);
    }
    sum
}

/// Multiplies each stream by the factor of the tables.
#[inline(always)]
fn multiply<B: Lookup>(tables: &Tables, state: &mut [B::Row; 16]) {
    // The nibbles are computed first, since each is used 17 times.
    let mut nibbles = [B::nibbles(state[0]); 16];
    for p in 1..16 {
        nibbles[p] = B::nibbles(state[p]);
    }

    // The upper half of the product, from the last byte on, and what its reduction adds to each byte.
    let zero = B::look_up(&[0; 32], nibbles[0]);
    let mut carry = [zero; 17];
    macro_rules! upper {
        ($($k:literal)*) => {$(
            let start = if $k == 0 { carry[16] } else { zero };
            let upper = B::nibbles(B::fold(product_byte::<B, { 16 + $k }>(tables, &nibbles, start)));
            carry[$k + 1] = carry[$k + 1] ^ B::look_up(&REDUCE[1], upper);
            carry[$k] = B::look_up(&REDUCE[0], upper);
        )*};
    }
    macro_rules! lower {
        ($($k:literal)*) => {$(
            state[$k] = B::fold(product_byte::<B, $k>(tables, &nibbles, carry[$k]));
        )*};
    }
    upper!(15 14 13 12 11 10 9 8 7 6 5 4 3 2 1 0);
    lower!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
}

/// Folds blocks into the streams: `streams[i]` becomes the hash of the blocks `i`, `i + 16`, ... with H^16 in place of H, but
/// without the last multiplication. The streams are added to the first blocks. The number of blocks is a multiple of 16.
///
/// # Safety
///
/// The processor must have the instructions of `B`.
#[inline(always)]
pub(super) unsafe fn fold<B: Lookup>(tables: &Tables, streams: &mut [Block; STREAMS], data: &[u8]) {
    // SAFETY: the pointers are valid for a block; the caller guarantees that the processor has the instructions.
    unsafe {
        let mut state = [B::Row::load(streams[0].as_ptr()); 16];
        for i in 1..16 {
            state[i] = B::Row::load(streams[i].as_ptr());
        }
        transpose(&mut state);
        for (n, group) in data.as_chunks::<{ 16 * STREAMS }>().0.iter().enumerate() {
            if n > 0 {
                multiply::<B>(tables, &mut state);
            }
            let mut rows = state;
            for i in 0..16 {
                rows[i] = B::Row::load(group.as_ptr().add(16 * i));
            }
            transpose(&mut rows);
            for i in 0..16 {
                state[i] = state[i] ^ rows[i];
            }
        }
        transpose(&mut state);
        for i in 0..16 {
            state[i].store(streams[i].as_mut_ptr());
        }
    }
}
