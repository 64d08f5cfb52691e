//! Words of functions of a byte are compared with numbers, for all values of the byte; definitions with the reference implementation.

use lockstep_reference::{Aes, ghash};

use super::expressions::{Bit, Expr, Expressions};
use super::word::{self, Word};
use crate::random::Random;
use crate::symbols::Symbols;
use crate::symbols::definition;
use crate::symbols::truth::{Truth, truth};
use crate::value::Domain;

fn value(truth: &Truth, x: u8) -> bool {
    truth[usize::from(x) / 64] >> (x % 64) & 1 == 1
}

/// The value of a word for a value of the byte.
fn number(expressions: &mut Expressions, word: &Word, x: u8) -> u32 {
    (0..32).fold(0, |number, place| {
        let bit = word.bit(place);
        let bit = match bit.value() {
            Some(value) => value,
            None => value(&expressions.view(bit.expr).expect("a function of the byte").1, x),
        };
        number | u32::from(bit) << place
    })
}

/// A word whose bits are random functions of the byte, or constants at the places of a mask.
fn random_word(expressions: &mut Expressions, random: &mut Random, constants: u32) -> Word {
    Word::of(std::array::from_fn(|place| {
        let table: Truth = std::array::from_fn(|_| random.next());
        match constants >> place & 1 {
            1 => Bit::known(table[0] & 1 == 1),
            _ => Bit { expr: expressions.function(0, truth(|x| value(&table, x))), owner: 1 },
        }
    }))
}

#[test]
fn operations_are_those_on_numbers() {
    let expressions = &mut Expressions::new();
    let random = &mut Random(7);
    expressions.input(true);
    for round in 0..12u32 {
        let mut inputs = || random_word(expressions, random, if round % 3 == 0 { 0xf0f0_ff00 } else { 0 });
        let [a, b, c] = [inputs(), inputs(), inputs()];
        let table = random.next() as u8;
        let (digits, count, factor) = (random.next() as u32, random.below(64), random.next() as u32);
        let logic = word::logic(expressions, table, [&a, &b, &c]);
        let sum = word::add(expressions, &a, &b, round % 2 == 1);
        let product = word::multiply_add(expressions, &a, &Word::Known(factor), [&b, &c]);
        let permuted = word::permuted(&a, &b, digits);
        let left = word::shifted([&a, &b], count, true, Bit::default());
        let right = word::shifted([&a, &b], count, false, b.bit(31));
        for x in 0..=255 {
            let [p, q, r] = [&a, &b, &c].map(|word| number(expressions, word, x));
            let mut check = |word: &Word, expected: u32| assert_eq!(number(expressions, word, x), expected);
            let each = |place: u32| {
                let index = (p >> place & 1) << 2 | (q >> place & 1) << 1 | (r >> place & 1);
                u32::from(table >> index & 1) << place
            };
            check(&logic, (0..32).map(each).sum());
            check(&sum, p.wrapping_add(q).wrapping_add(round % 2));
            let total = (u64::from(p) * u64::from(factor)).wrapping_add(u64::from(r) << 32 | u64::from(q));
            check(&product[0], total as u32);
            check(&product[1], (total >> 32) as u32);
            let pair = u64::from(q) << 32 | u64::from(p);
            let byte = |i: u32| {
                let digit = digits >> (4 * i) & 15;
                let byte = (pair >> (8 * (digit & 7))) as u8;
                let byte = if digit & 8 == 0 { byte } else { 0u8.wrapping_sub(byte >> 7) };
                u32::from(byte) << (8 * i)
            };
            check(&permuted, (0..4).map(byte).sum());
            check(&left[0], (pair << count) as u32);
            check(&left[1], (pair << count >> 32) as u32);
            check(&right[0], (pair as i64 >> count) as u32);
            check(&right[1], (pair as i64 >> count >> 32) as u32);
        }
    }
}

#[test]
fn definitions_are_those_of_the_reference() {
    let random = &mut Random(3);
    let mut block = || -> [u8; 16] { std::array::from_fn(|_| random.next() as u8) };
    for key_len in [16, 24, 32] {
        let expressions = &mut Expressions::new();
        let (text, key) = (block(), [block(), block()].concat());
        let reference = Aes::new(&key[..key_len]);
        let key: Vec<[Expr; 8]> = key[..key_len].iter().map(|byte| Symbols::constant(*byte)).collect();
        let round_keys = definition::round_keys(expressions, &key);
        let input = text.map(Symbols::constant);
        let output = definition::encrypt(expressions, &round_keys, &input);
        assert_eq!(output.map(Symbols::value), reference.encrypt(text));
        let decryption_keys = definition::decryption_keys(expressions, &round_keys);
        let output = definition::decrypt(expressions, &decryption_keys, &input);
        assert_eq!(output.map(Symbols::value), reference.decrypt(text));
    }
    let (x, h) = (block(), block());
    let [a, b] = [x, h].map(|block| block.map(Symbols::constant));
    let product = super::ghash::product_of_blocks(&mut Expressions::new(), &a, &b);
    assert_eq!(product.map(Symbols::value), ghash::mul(x, h));
}

#[test]
fn owners_are_not_mixed_up() {
    let expressions = &mut Expressions::new();
    let (own, shared) = (expressions.input(true), expressions.input(false));
    let bits = |owner| [Bit { expr: own[0], owner }, Bit { expr: own[1], owner }];
    let ([a, b], [c, d]) = (bits(1), bits(2));
    let key = Bit { expr: shared[0], owner: 0 };
    let (and, xor) = (0xc0, 0x3c);
    let zero = Bit::default();
    assert_ne!(expressions.logic(and, [a, b, zero]), expressions.logic(and, [c, d, zero]));
    assert_ne!(expressions.logic(and, [a, d, zero]), expressions.logic(and, [a, b, zero]));
    let product = expressions.logic(and, [a, d, zero]);
    assert_eq!((product.owner, product.value()), (0, None), "a product of two owners is not known");
    let sum = expressions.logic(xor, [a, c, zero]);
    assert_eq!(expressions.logic(xor, [sum, c, zero]), a);
    let with_key = expressions.logic(xor, [a, key, zero]);
    assert_eq!(with_key.owner, 1);
    assert_eq!(expressions.logic(xor, [with_key, a, zero]), key);
}
