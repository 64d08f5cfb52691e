//! The cipher by tables in the local store: a table of 256 quadwords for each of the 16 bytes, 64 KiB in total.
//!
//! An entry is the result of SubBytes, ShiftRows and MixColumns for one byte: one column, and zeros in the other
//! columns. A round consists of 16 lookups and as many additions. The tables start at address 0, and the entries of a
//! byte value for all 16 positions are adjacent. So the address of a lookup is 256 times the byte plus a constant for
//! the position, and the load adds this constant. Addresses have 18 bits, and higher bits are ignored. So after every
//! other byte has been cleared, one shift gives the address for one byte of each of the four words. A load uses the
//! address in the preferred slot, so the addresses in the other three words must be rotated into this slot.
//!
//! The addresses depend on the data. The local store has no cache that could leak the addresses, but these kernels are
//! not declared constant time.

use std::sync::LazyLock;

use zeroize::Zeroizing;

use super::aes::{AesRounds, Block, Caching, inverse_key_form};
use super::field::{inverse_sbox, mul, sbox};
use super::permutation::{Permutation, SHIFT_ROWS, inverse, rotated};
use super::published::selections;
use crate::schedule::{Flow, Value};

/// Bytes of all tables.
pub(crate) const TABLES: usize = 16 * 256 * 16;

/// Encryption by tables.
pub(crate) struct Tables {
    /// Number of words, not counting the first, whose second and fourth byte are rotated into the preferred slot
    /// together and then shifted separately on the even pipe. In the other words each address is rotated separately.
    /// This number balances the pipes.
    pub shared: usize,
}

/// A row in which MixColumns multiplies a byte by 1. The row is counted from the row of the byte.
const ROW_OF_ONE: usize = 1;

/// Returns a column with the products of `value` and each of `factors`, from the row of the byte downwards. `to` is the position of the
/// byte after the permutation of the rows.
fn column(to: u8, value: u8, factors: [u8; 4]) -> Block {
    let (column, row) = (usize::from(to / 4), usize::from(to % 4));
    let mut entry = [0; 16];
    for (down, by) in factors.into_iter().enumerate() {
        entry[column * 4 + (row + down) % 4] = mul(value, by);
    }
    entry
}

/// Returns the result of ShiftRows and MixColumns for a byte at a position after SubBytes.
fn entry(place: usize, substituted: u8) -> Block {
    column(inverse(&SHIFT_ROWS)[place], substituted, [2, 1, 1, 3])
}

/// Returns the result of InvShiftRows and InvMixColumns for a byte at a position after InvSubBytes.
fn inverse_entry(place: usize, substituted: u8) -> Block {
    column(SHIFT_ROWS[place], substituted, [14, 9, 13, 11])
}

fn contents(substitute: fn(u8) -> u8, entry: fn(usize, u8) -> Block) -> Vec<u8> {
    (0..=255).map(substitute).flat_map(|byte| (0..16).flat_map(move |place| entry(place, byte))).collect()
}

/// All tables of the cipher. A run of a loop over rounds loads them again, so they are computed once.
pub(crate) static CONTENTS: LazyLock<Vec<u8>> = LazyLock::new(|| contents(sbox, entry));

/// All tables of the inverse cipher.
pub(crate) static INVERSE_CONTENTS: LazyLock<Vec<u8>> =
    LazyLock::new(|| contents(inverse_sbox, inverse_entry));

/// The equivalent inverse cipher (FIPS 197, section 5.3.5) by tables. No entry has a byte multiplied by 1, so the last round
/// looks up the inverse S-box in registers, as the paper suggests for CBC (section 2.3).
pub(crate) struct InverseTables;

impl AesRounds for InverseTables {
    fn key_form(&self, keys: &[Block]) -> Zeroizing<Vec<Block>> {
        inverse_key_form(keys)
    }

    fn round(&self, f: &mut Flow, _: usize, x: Value, key: Value) -> Value {
        let entries = entries(f, x, 2);
        add(f, key, &entries)
    }

    fn last_round(
        &self,
        f: &mut Flow,
        _: usize,
        x: Value,
        key: Value,
        chained: bool,
    ) -> (Value, Option<Value>) {
        let s = selections(f, x, inverse_sbox);
        let back: Permutation = inverse(&SHIFT_ROWS);
        let shifted = f.permute(s, back);
        (f.xor(shifted, key), chained.then_some(shifted))
    }
}

/// Loads the entries of the tables for the 16 bytes of `x`.
pub(crate) fn entries(f: &mut Flow, x: Value, shared: usize) -> Vec<Value> {
    let addresses = addresses(f, x, shared);
    (0..16).map(|place| f.load_at(addresses[place], 16 * place as i32)).collect()
}

/// Returns for each byte of `x` a quadword whose preferred slot contains 256 times the byte. Only the bits of the address are valid.
fn addresses(f: &mut Flow, x: Value, shared: usize) -> Vec<Value> {
    let odd_bytes = f.constant(std::array::from_fn(|i| if i % 2 == 1 { 0xff } else { 0 }));
    let second_and_fourth = f.and(x, odd_bytes);
    let first_and_third = f.and_not(x, odd_bytes);
    // Shifts a byte to the position of the third byte of its word, which has the weight 256. The third byte itself
    // needs no shift.
    let shifted = |f: &mut Flow, byte: usize, second_and_fourth: Value| match byte {
        0 => f.shift_words_right(first_and_third, 16),
        1 => f.shift_words_right(second_and_fourth, 8),
        2 => first_and_third,
        _ => f.shift_words_left(second_and_fourth, 8),
    };
    let first: Vec<Value> = (0..4).map(|byte| shifted(f, byte, second_and_fourth)).collect();
    let mut addresses = first.clone();
    for word in 1..4 {
        let turned = (word <= shared).then(|| f.rotate_bytes(second_and_fourth, 4 * word as i32));
        for (byte, &value) in first.iter().enumerate() {
            addresses.push(match turned {
                Some(turned) if byte % 2 == 1 => shifted(f, byte, turned),
                _ => f.rotate_bytes(value, 4 * word as i32),
            });
        }
    }
    addresses
}

impl AesRounds for Tables {
    fn round(&self, f: &mut Flow, _: usize, x: Value, key: Value) -> Value {
        let entries = entries(f, x, self.shared);
        add(f, key, &entries)
    }

    /// The last round has no MixColumns, so it needs only the S-box value of each byte. An entry contains this value,
    /// multiplied by 1, one row below the row of the byte. So the result is rotated by one row.
    fn last_round(
        &self,
        f: &mut Flow,
        _: usize,
        x: Value,
        key: Value,
        chained: bool,
    ) -> (Value, Option<Value>) {
        let mut out = None;
        for (place, entry) in entries(f, x, self.shared).into_iter().enumerate() {
            let to = usize::from(inverse(&SHIFT_ROWS)[place]);
            let below = to / 4 * 4 + (to + ROW_OF_ONE) % 4;
            let mask = f.constant(std::array::from_fn(|i| if i == below { 0xff } else { 0 }));
            out = Some(match out {
                None => entry,
                Some(so_far) => f.select(so_far, entry, mask),
            });
        }
        let s = f.permute(out.expect("sixteen bytes"), rotated(ROW_OF_ONE));
        (f.xor(s, key), chained.then_some(s))
    }

    fn caching(&self) -> Option<&dyn Caching> {
        Some(self)
    }
}

impl Caching for Tables {
    fn first_round(&self, f: &mut Flow, entered: Value, rest: Value) -> Value {
        // The scheduler removes the addresses that are not used.
        let addresses = addresses(f, entered, 0);
        let entries: Vec<Value> =
            (12..16).map(|place| f.load_at(addresses[place], 16 * place as i32)).collect();
        add(f, rest, &entries)
    }

    fn rest_of_first_round(&self, keys: &[Block], counter: &Block) -> Zeroizing<Block> {
        let mut sum = Zeroizing::new(keys[1]);
        for place in 0..12 {
            let entry = entry(place, sbox(counter[place] ^ keys[0][place]));
            sum.iter_mut().zip(entry).for_each(|(sum, byte)| *sum ^= byte);
        }
        sum
    }
}

/// Returns the sum of all entries, computed as two running sums. Two sums have a short latency and keep few values live at the same time.
pub(crate) fn add(f: &mut Flow, first: Value, entries: &[Value]) -> Value {
    let (a, b) = entries.split_at(entries.len() / 2);
    let a = a.iter().fold(first, |sum, &entry| f.xor(sum, entry));
    let b = f.sum(b);
    f.xor(a, b)
}
