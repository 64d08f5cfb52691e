use super::super::table::tests::{extend, of_inputs, value};
use super::super::{Symbol, Symbols};
use super::*;

/// The bits of eight bytes that are set in a mask. Other bits are zeros.
fn masked(bytes: &[Symbol], mask: u64) -> [Bit; 64] {
    std::array::from_fn(|bit| if mask >> bit & 1 == 1 { bytes[bit / 8][bit % 8] } else { ZERO })
}

/// Two masks, and the bits of the product of factors with these bits that no carry can reach.
const CASES: [(u64, u64, u128); 5] = [
    // At most 15 products are added in each column, so that no carry reaches the next column in use.
    (0x1111_1111_1111_1111, 0x0222_2222_2222_2222, 0xfffb_b333_2222_2222_2222_2222_3333_3bbf),
    // The sum of 16 products at bit 60 carries into bit 64.
    (0x1111_1111_1111_1111, 0x1111_1111_1111_1111, 0xffdd_9999_1111_1100_1111_1111_1999_9ddf),
    (u64::MAX, 1 << 63, u128::MAX),
    (0xff, 0xff, u128::MAX << 16 | 3),
    (u64::MAX, u64::MAX, 3),
];

#[test]
fn a_bit_has_an_expression_only_if_no_carry_can_reach_it() {
    for (x_mask, y_mask, known) in CASES {
        let symbols = Symbols::default();
        let inputs = symbols.inputs(16);
        let (x, y) = (masked(&inputs[..8], x_mask), masked(&inputs[8..], y_mask));
        let product = symbols.table().integer_product(&x, &y);
        for seed in [0, 1, 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835, u128::MAX] {
            let numbers = [seed as u64, (seed >> 64) as u64].map(u64::to_le_bytes);
            let pairs: Vec<(Symbol, u8)> =
                inputs.iter().copied().zip(numbers.as_flattened().iter().copied()).collect();
            let mut values = of_inputs(&symbols.table(), &pairs);
            extend(&symbols.table(), &mut values);
            let right = u128::from(seed as u64 & x_mask) * u128::from((seed >> 64) as u64 & y_mask);
            for (place, bit) in product.into_iter().enumerate() {
                let computed = value(&symbols.table(), &values, bit);
                assert_eq!(computed.is_some(), known >> place & 1 == 1, "{x_mask:x} {place}");
                let expected = right >> place & 1 == 1;
                assert_eq!(computed.unwrap_or(expected), expected, "{x_mask:x} {place}");
            }
        }
    }
}

#[test]
fn bilinear_products_of_bits_are_sums() {
    let symbols = Symbols::default();
    let [x, y] = symbols.inputs(2).try_into().expect("two bytes");
    let table = &mut *symbols.table();
    table.expand_products_of_bits();
    let sum = table.sum(&[x[0], x[1], 1]);
    let other = table.xor(y[0], y[1]);
    let terms = [(x[0], y[0]), (x[1], y[0]), (x[0], y[1]), (x[1], y[1])].map(|(x, y)| table.and(x, y));
    let expected = table.sum(&[&terms[..], &[y[0], y[1]]].concat());
    assert_eq!(table.and(sum, other), expected);
    assert_eq!(table.and(other, sum), expected);
    let mut values = of_inputs(table, &[(x, 0b01), (y, 0b01)]);
    extend(table, &mut values);
    assert_eq!(terms.map(|bit| value(table, &values, bit)), [true, false, false, false].map(Some));
}
