use std::collections::HashMap;

use super::*;
use crate::symbols::Symbols;
use crate::taint::{Taint, Tainted};
use crate::value::{Domain, Flag, Shift};

/// The values of atoms.
pub(crate) type Values = HashMap<Atom, bool>;

/// Stores the value of an atom.
pub(crate) fn put(table: &Table, values: &mut Values, bit: Bit, value: bool) {
    if let [atom] = table.atoms(bit) {
        values.insert(*atom, value);
    }
}

/// The values of the inputs.
pub(crate) fn of_inputs(table: &Table, inputs: &[(Symbol, u8)]) -> Values {
    let mut values = HashMap::from([(0, true)]);
    for (symbol, value) in inputs {
        let bits = symbol.iter().enumerate();
        bits.for_each(|(place, bit)| put(table, &mut values, *bit, value >> place & 1 == 1));
    }
    values
}

/// Adds the values of all atoms that can be computed from the operation of each atom.
pub(crate) fn extend(table: &Table, values: &mut Values) {
    let put = |values: &mut Values, bit: Bit, value: bool| put(table, values, bit, value);
    for _ in 0..8 {
        for (inverse, boxes) in table.boxes.iter().enumerate() {
            for (x, y) in boxes {
                let Some(x) = byte_value(table, values, x) else { continue };
                let result = aes::sub_byte(x, inverse == 1);
                y.iter().enumerate().for_each(|(place, bit)| put(values, *bit, result >> place & 1 == 1));
            }
        }
        if let Some(circuits) = &table.circuits {
            circuits.put_elements(values, |values, byte| byte_value(table, values, byte));
        }
        for ((x, y), product) in &table.products {
            if let Some((x, y)) = value(table, values, *x).zip(value(table, values, *y)) {
                put(values, *product, x && y);
            }
        }
        for ((base, offset), bit) in &table.offsets {
            if let Some(base) = number(table, values, base) {
                let top = (base.1 - 1) as u32;
                put(values, *bit, base.0.wrapping_add(*offset) >> top & 1 == 1);
            }
        }
        let basis: HashMap<u32, u64> = table
            .lanes
            .rows
            .values()
            .filter_map(|(places, lane)| {
                let mut sum = 0u64;
                for place in places {
                    let value = values.get(&(*place as Atom))?;
                    sum ^= u64::from(*value) << (place >> 32);
                }
                Some((*lane, sum))
            })
            .collect();
        for ((a, b), coefficients) in &table.lanes.products {
            let Some((a, b)) = basis.get(a).zip(basis.get(b)) else { continue };
            let product =
                (0..64).filter(|bit| b >> bit & 1 == 1).fold(0, |sum, bit| sum ^ u128::from(*a) << bit);
            for (place, bit) in coefficients.iter().enumerate() {
                put(values, *bit, product >> place & 1 == 1);
            }
        }
        for (lane, names) in &table.lanes.names {
            let Some(lane) = basis.get(lane) else { continue };
            names.iter().enumerate().for_each(|(place, bit)| put(values, *bit, lane >> place & 1 == 1));
        }
    }
}

/// The value of an expression. `None` if an atom has no value.
pub(crate) fn value(table: &Table, values: &Values, bit: Bit) -> Option<bool> {
    table.atoms(bit).iter().try_fold(false, |sum, atom| Some(sum ^ values.get(atom)?))
}

fn number(table: &Table, values: &Values, bits: &[Bit]) -> Option<(u64, usize)> {
    let number = bits
        .iter()
        .rev()
        .try_fold(0, |number, bit| Some(number << 1 | u64::from(value(table, values, *bit)?)));
    number.map(|number| (number, bits.len()))
}

pub(crate) fn byte_value(table: &Table, values: &Values, byte: &Symbol) -> Option<u8> {
    number(table, values, byte).map(|(number, _)| number as u8)
}

/// An operation on 16 bytes in both domains. The expressions, with the values of the inputs inserted, must have the values of the other
/// domain. Bytes of the input whose bits are set in `public` are constants.
macro_rules! check {
    ($name:expr, $public:expr, |$domain:ident, $x:ident| $operation:expr) => {{
        for seed in 1..4u32 {
            let inputs: [u8; 16] =
                std::array::from_fn(|i| (0x9e37_79b9u32.wrapping_mul(seed + 7 * i as u32) >> 13) as u8);
            let is_public = |place: usize| $public >> place & 1 == 1;
            let expected = {
                let $domain = &mut Taint;
                let $x: [Tainted; 16] = inputs.map(Tainted::secret);
                $operation.map(|byte| Taint::value(byte)).to_vec()
            };
            let symbols = Symbols::default();
            let atoms = symbols.inputs(16);
            let result = {
                let $domain = &mut symbols.clone();
                let $x: [Symbol; 16] = std::array::from_fn(|place| match is_public(place) {
                    true => Symbols::constant(inputs[place]),
                    false => atoms[place],
                });
                $operation.to_vec()
            };
            let table = symbols.table();
            let pairs: Vec<(Symbol, u8)> = atoms.into_iter().zip(inputs).collect();
            let mut values = of_inputs(&table, &pairs);
            extend(&table, &mut values);
            let computed: Vec<Option<u8>> =
                result.iter().map(|byte| byte_value(&table, &values, byte)).collect();
            assert_eq!(computed, expected.into_iter().map(Some).collect::<Vec<_>>(), "{}", $name);
        }
    }};
}

#[test]
fn expressions_have_the_values_of_the_operations() {
    for public in [0u32, 0x00f0, 0xff0f] {
        check!("xor and and", public, |d, x| [
            d.xor(x[0], x[1]),
            d.and(x[2], x[3]),
            d.or(x[4], x[5]),
            d.not(x[6])
        ]);
        for table in 0..=255 {
            check!("ternary", public, |d, x| [d.ternary(table, x[0], x[7], x[9])]);
        }
        for shift in [Shift::Left, Shift::Right, Shift::Arithmetic] {
            for count in [0, 1, 9, 31, 32, 40] {
                check!("shift", public, |d, x| {
                    let mut lane = [x[0], x[5], x[6], x[9]];
                    d.shift(&mut lane, shift, count);
                    lane
                });
            }
        }
        check!("the S-box", public, |d, x| {
            let y = d.sub_byte(x[3], false);
            [y, d.sub_byte(y, true), d.sub_byte(x[1], true)]
        });
        check!("MixColumns", public, |d, x| d.mix_column([x[0], x[5], x[10], x[15]], false));
        check!("the inverse of MixColumns", public, |d, x| d.mix_column([x[0], x[5], x[10], x[15]], true));
        for halves in [[0, 0], [0, 8], [8, 0], [8, 8]] {
            check!("carry-less product", public, |d, x| {
                let mut y = x;
                y.reverse();
                let first = d.carryless(&x, &y, halves);
                d.carryless(&first, &x, halves)
            });
        }
    }
}

#[test]
fn sums_with_constants_have_the_values_of_sums() {
    let add = |constant: u64, len: usize, carry: bool, public: u32| {
        check!("add", public, |d, x| {
            let mut sum = [x[0]; 8];
            for _ in 0..2 {
                let before =
                    if sum == [x[0]; 8] { [x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]] } else { sum };
                // `D::constant` of both domains.
                let mut number = [x[0]; 8];
                for (place, value) in number.iter_mut().zip(constant.to_le_bytes()) {
                    *place = d.opaque(value, 0);
                }
                d.add(&before[..len], &number[..len], Flag::new(carry, false), &mut sum[..len]);
                sum[len..].fill(x[0]);
            }
            sum
        });
    };
    for constant in [0, 1, 2, 0x80, 0xff, 0x0001_0000, u64::MAX, 0x1234_5678_9abc_def0] {
        for len in [4, 8] {
            for public in [0, 0x0f, 0xf1] {
                add(constant, len, false, public);
                add(constant, len, true, public);
            }
        }
    }
}

#[test]
fn equal_sums_have_one_expression() {
    let symbols = Symbols::default();
    let mut domain = symbols.clone();
    let x = symbols.inputs(8);
    let mut plus = |x: &[Symbol], number: u64| {
        let mut sum = x.to_vec();
        let number = number.to_le_bytes().map(Symbols::constant);
        domain.add(x, &number[..x.len()], Flag::new(false, false), &mut sum);
        sum
    };
    let (two, one) = (plus(&x[..4], 2), plus(&x[..4], 1));
    assert_eq!(plus(&one, 1), two);
    assert_eq!(plus(&two, u64::from(u32::MAX) - 1), x[..4]);
    assert_eq!(plus(&x, 2)[..4], two);
    assert_ne!(one, two);
    // A mask of one bit: zero minus the bit.
    let bit = domain.and(x[0], Symbols::constant(1));
    let mut mask = [bit; 2];
    let inverted = [domain.not(bit), Symbols::constant(0xff)];
    domain.add(&[Symbols::constant(0); 2], &inverted, Flag::new(true, false), &mut mask);
    assert_eq!(mask.as_flattened(), [x[0][0]; 16]);
}

#[test]
fn three_products_of_sums_are_four_products() {
    let symbols = Symbols::default();
    let mut domain = symbols.clone();
    let block = |_: u8| -> [Symbol; 16] { *symbols.inputs(16).first_chunk().expect("16 bytes") };
    let (mut x, y) = (block(0), block(1));
    // A constant, as in a key of which some bits are inverted.
    x[3] = domain.xor(x[3], Symbols::constant(0x5a));
    let mut folded =
        |x: &[Symbol; 16]| -> [Symbol; 16] { std::array::from_fn(|i| domain.xor(x[i % 8], x[8 + i % 8])) };
    let middle = (folded(&x), folded(&y));
    let mut table = symbols.table();
    let middle = table.carryless(&middle.0, &middle.1, [0, 0]);
    let parts = [[0, 0], [0, 8], [8, 0], [8, 8]].map(|halves| table.carryless(&x, &y, halves));
    for place in 0..16 {
        for bit in 0..8 {
            let sum = table.sum(&parts.map(|part| part[place][bit]));
            assert_eq!(middle[place][bit], sum);
        }
    }
    assert_eq!(table.multiplied().len(), 1);
}

#[test]
fn an_empty_list_of_inputs_ends_the_watch() {
    let symbols = Symbols::default();
    let inputs = symbols.inputs(1);
    let mut table = symbols.table();
    table.watch(&inputs);
    assert!(table.is_watching());
    table.watch(&[]);
    assert!(!table.is_watching());
}
