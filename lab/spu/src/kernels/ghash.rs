//! GHASH by 16 tables of 256 quadwords, as proposed in the paper. The tables give the contribution of each byte of a
//! block to the product with H. A second variant has no data-dependent addresses: it masks the contribution of each of
//! the 128 bits.

use zeroize::Zeroizing;

use super::aes::Block;
use super::modes::Parameter;
use super::tables::{add, entries};
use crate::schedule::{Flow, Value};

/// Size in bytes of the table for the bitwise loop.
pub(crate) const POWERS: usize = 128 * 16;

/// H times x^j for each j: bit j counts from the most significant bit of byte 0. No branch depends on H. The values are
/// computed in place, since moving them would leave copies in memory.
fn fill_multiples(multiples: &mut [u128; 128], h: &Block) {
    multiples[0] = u128::from_be_bytes(*h);
    for j in 1..128 {
        let before = multiples[j - 1];
        multiples[j] = before >> 1 ^ (0xe1 << 120) & 0u128.wrapping_sub(before & 1);
    }
}

/// Fills the 64 KiB of tables for the hash key `h`. They have the same layout as the tables of the cipher.
pub(crate) fn fill_tables(bytes: &mut [u8], h: &Block) {
    let mut multiples = Zeroizing::new([0; 128]);
    fill_multiples(&mut multiples, h);
    bytes.fill(0);
    let mut product = Zeroizing::new(0);
    for place in 0..16 {
        for value in 1..256usize {
            *product = 0;
            for bit in (0..8).filter(|bit| value >> (7 - bit) & 1 != 0) {
                *product ^= multiples[8 * place + bit];
            }
            write(&mut bytes[(value * 16 + place) * 16..][..16], *product);
        }
    }
}

/// Fills the 2 KiB table that contains the contribution of each bit.
pub(crate) fn fill_powers(bytes: &mut [u8], h: &Block) {
    let mut multiples = Zeroizing::new([0; 128]);
    fill_multiples(&mut multiples, h);
    for (bytes, multiple) in bytes.chunks_exact_mut(16).zip(&*multiples) {
        write(bytes, *multiple);
    }
}

/// Writes sixteen bytes, and wipes the temporary copy.
fn write(bytes: &mut [u8], value: u128) {
    bytes.copy_from_slice(&*Zeroizing::new(value.to_be_bytes()));
}

/// The product by tables.
fn by_tables(f: &mut Flow, x: Value) -> Value {
    let entries = entries(f, x, 3);
    add(f, entries[0], &entries[1..])
}

/// The bitwise product. Expands sixteen bits at a time to sixteen bytes of ones or zeros. Each byte is then copied to
/// all bytes of a quadword. This quadword is the mask for the table entry of the bit.
fn by_bits(f: &mut Flow, x: Value) -> Value {
    // The table is at address 0. The address is copied in each iteration, so that the loads depend on an instruction
    // and the scheduler does not place them last.
    let powers = f.constant([0; 16]);
    let powers = f.copy(powers);
    let mut sums: [Option<Value>; 4] = [None; 4];
    for half in 0..8 {
        // The next sixteen bits are rotated to bytes 2 and 3, the right half of the preferred slot.
        let turned = f.rotate_bytes(x, (2 * half + 14) % 16);
        let masks = f.spread_bits(turned);
        for bit in 0..16 {
            let mask = f.permute(masks, [bit as u8; 16]);
            let power = f.load_at(powers, 16 * (16 * half + bit));
            let added = f.and(power, mask);
            let sum = &mut sums[bit as usize % 4];
            *sum = Some(sum.map_or(added, |sum| f.xor(sum, added)));
        }
    }
    f.sum(&sums.map(|sum| sum.expect("32 bits each")))
}

/// Builds the loop over blocks, with one block per iteration. Each product depends on the previous one. The running hash is stored after
/// each block.
pub(crate) fn build(with_tables: bool) -> (Flow, Vec<Parameter>) {
    let mut f = Flow::new();
    let (hash, y) = f.carried();
    let (input, from) = f.carried();
    let (output, to) = f.carried();
    let block = f.load_at(from, 0);
    let x = f.xor(y, block);
    let next = if with_tables { by_tables(&mut f, x) } else { by_bits(&mut f, x) };
    f.store_at(next, to, 0);
    f.carry(hash, next);
    let next_from = f.add_to_words(from, 16);
    f.carry(input, next_from);
    let next_to = f.add_to_words(to, 16);
    f.carry(output, next_to);
    (f, vec![Parameter::Hash, Parameter::Input, Parameter::Output])
}
