use lockstep_reference::{ghash, polyval};

use super::*;
use crate::equality::cipher::{block, public};
use crate::value::Domain;

/// Both sides are linear in each factor. If they are equal for all pairs of single bits, they are therefore equal for all
/// blocks.
#[test]
fn ghash_is_polyval_of_reversed_blocks() {
    let symbols = Symbols::default();
    let single = |bit: usize| (1u128 << bit).to_be_bytes();
    for y in 0..128 {
        let key = ghash_key(&symbols, &block(&public(&single(y)))).map(Symbols::value);
        for x in 0..128 {
            let mut expected = ghash::mul(single(x), single(y));
            let mut reversed = single(x);
            expected.reverse();
            reversed.reverse();
            assert_eq!(polyval::dot(reversed, key), expected);
        }
    }
}

#[test]
fn dot_is_that_of_the_reference() {
    let mut table = Table::default();
    for seed in 1..20u128 {
        let x = (0x1234_5678_9abc_def1_1357_9bdf_0246_8aceu128).wrapping_mul(seed).to_le_bytes();
        let y = (0xfedc_ba98_7654_3211_0123_4567_89ab_cdefu128).wrapping_mul(seed * seed).to_le_bytes();
        let product = dot(&mut table, &block(&public(&x)), &block(&public(&y)));
        let bytes: Vec<u8> = product.as_chunks::<8>().0.iter().map(|byte| Symbols::value(*byte)).collect();
        assert_eq!(bytes, polyval::dot(x, y));
    }
}

#[test]
fn products_by_parts_are_those_of_the_reference() {
    let mut table = Table::default();
    for seed in 1..20u128 {
        let x = (0x1234_5678_9abc_def1_1357_9bdf_0246_8aceu128).wrapping_mul(seed).to_le_bytes();
        let y = (0xfedc_ba98_7654_3211_0123_4567_89ab_cdefu128).wrapping_mul(seed * seed).to_le_bytes();
        let key =
            divided_by_x(&mut table, block(&public(&y)).as_flattened().first_chunk().expect("128 bits"));
        let product = product_by_parts(&mut table, &block(&public(&x)), &block(key.as_chunks().0));
        let bytes: Vec<u8> = product.as_chunks::<8>().0.iter().map(|byte| Symbols::value(*byte)).collect();
        assert_eq!(bytes, polyval::dot(x, y));
    }
}

/// Multiplies two blocks as a kernel does.
fn multiply(symbols: &Symbols, x: &Block, y: &Block) -> Block {
    // The pair is noted.
    symbols.clone().carryless(x, y, [0, 0]);
    block(dot(&mut symbols.table(), x, y).as_chunks::<8>().0)
}

#[test]
fn only_the_right_sum_of_powers_is_accepted() {
    let symbols = Symbols::default();
    let input = || block(&symbols.inputs(16));
    let (key, blocks) = (input(), [input(), input(), input()]);
    let add = |x: &Block, y: &Block| super::super::cipher::xor_blocks(&symbols, x, y);
    // Each block is multiplied by a power of the key.
    let square = multiply(&symbols, &key, &key);
    let cube = multiply(&symbols, &square, &key);
    let products =
        [(0, cube), (1, square), (2, key)].map(|(place, power)| multiply(&symbols, &blocks[place], &power));
    let by_powers = add(&add(&products[0], &products[1]), &products[2]);
    // Block by block.
    let serial = blocks
        .iter()
        .fold([Symbols::constant(0); 16], |state, block| multiply(&symbols, &add(&state, block), &key));
    assert_ne!(by_powers, serial);
    let is_right = |blocks: &[Block], result: Block, ignored: Option<usize>| {
        Hashed { symbols: &symbols, key, blocks, result, ignored }.is_right()
    };
    for result in [by_powers, serial] {
        assert!(is_right(&blocks, result, None));
        assert!(!is_right(&blocks[..2], result, None));
        assert!(!is_right(&[blocks[1], blocks[0], blocks[2]], result, None));
        let mut changed = result;
        changed[15][7] = blocks[0][0][0];
        assert!(!is_right(&blocks, changed, None));
        assert!(is_right(&blocks, changed, Some(127)));
        assert!(!is_right(&blocks, changed, Some(126)));
    }
}
