//! GHASH by 16 tables of 256 quadwords, as the paper wanted it: for each byte of a block what it adds to the product with H.

use zeroize::Zeroizing;

use super::cipher::Block;
use super::modes::Parameter;
use super::tables::{TABLES, add, entries};
use crate::schedule::Flow;

/// The tables of a hash key, laid out as those of the cipher. No branch and no address depends on it.
pub(crate) fn contents(h: &Block) -> Zeroizing<Vec<u8>> {
    // H times x^j: bit j counts from the most significant bit of byte 0.
    let mut powers = Zeroizing::new([0u128; 128]);
    let mut power = Zeroizing::new(u128::from_be_bytes(*h));
    for place in powers.iter_mut() {
        *place = *power;
        *power = *power >> 1 ^ (0xe1 << 120) & 0u128.wrapping_sub(*power & 1);
    }
    let mut bytes = Zeroizing::new(vec![0; TABLES]);
    for place in 0..16 {
        for value in 1..256usize {
            let product = (0..8)
                .filter(|bit| value >> (7 - bit) & 1 != 0)
                .fold(0, |sum, bit| sum ^ powers[8 * place + bit]);
            bytes[(value * 16 + place) * 16..][..16].copy_from_slice(&product.to_be_bytes());
        }
    }
    bytes
}

/// The loop: one block after the other, each product waits for the one before. The running hash is stored each time.
pub(crate) fn build() -> (Flow, Vec<Parameter>) {
    let mut f = Flow::new();
    let (hash, y) = f.carried();
    let (input, from) = f.carried();
    let (output, to) = f.carried();
    let block = f.load_at(from, 0);
    let x = f.xor(y, block);
    let entries = entries(&mut f, x, 3);
    let next = add(&mut f, entries[0], &entries[1..]);
    f.store_at(next, to, 0);
    f.carry(hash, next);
    let next_from = f.add_to_words(from, 16);
    f.carry(input, next_from);
    let next_to = f.add_to_words(to, 16);
    f.carry(output, next_to);
    (f, vec![Parameter::Hash, Parameter::Input, Parameter::Output])
}
