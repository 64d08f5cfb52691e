use lockstep_reference::{ghash, polyval};

use super::*;
use crate::gpu::expressions::tests::{value_of, values};
use crate::random::Random;

/// Products of symbols, of products, and of names of products, with values for all inputs.
#[test]
fn products_of_symbols_have_the_values_of_products() {
    let random = &mut Random(5);
    let expressions = &mut Expressions::new();
    // The key is shared, and the data are own.
    let [key, data]: [Block; 2] = [true, false].map(|is_own| from_fn(|_| expressions.input(!is_own)));
    let (k, x) = (element(&key, true), element(&data, true));
    let product = dot(expressions, &x, &k);
    let named = defined_product(expressions, &x, &k);
    let square = defined_product(expressions, &named, &k);
    let of_ghash = product_of_blocks(expressions, &data, &key);
    let results = [product, named, square].map(|product| block(&product, true));
    for _ in 0..4 {
        let [key_value, data_value]: [[u8; 16]; 2] = from_fn(|_| from_fn(|_| random.next() as u8));
        let inputs: Vec<([Expr; 8], u8)> =
            key.into_iter().zip(key_value).chain(data.into_iter().zip(data_value)).collect();
        let values = values(expressions, &inputs);
        let bytes = |block: &Block| -> [u8; 16] {
            let bit = |byte: usize, bit: usize| value_of(expressions, &values, block[byte][bit]);
            from_fn(|byte| (0..8).fold(0, |sum, place| sum | u8::from(bit(byte, place)) << place))
        };
        let once = polyval::dot(data_value, key_value);
        let twice = polyval::dot(once, key_value);
        assert_eq!(results.each_ref().map(bytes), [once, once, twice]);
        assert_eq!(bytes(&of_ghash), ghash::mul(data_value, key_value));
    }
}

/// The sum of two products is the product of the sums, and a name is used wherever the product occurs.
#[test]
fn products_are_bilinear() {
    let expressions = &mut Expressions::new();
    let mut input = |is_own| -> Element { element(&from_fn(|_| expressions.input(is_own)), true) };
    let (x, y, key) = (input(true), input(true), input(false));
    let both = sum(expressions, &x, &y);
    let [of_x, of_y, of_both] = [&x, &y, &both].map(|factor| dot(expressions, factor, &key));
    assert_eq!(sum(expressions, &of_x, &of_y), of_both);
    assert_ne!(of_x, of_y);
    let name = defined_product(expressions, &x, &key);
    assert!(name.iter().zip(of_x).all(|(name, expr)| expressions.settle(expr, 1).expr == *name));
}
