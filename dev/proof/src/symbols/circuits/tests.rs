use std::cell::{Cell, RefCell};
use std::ops::{BitAnd, BitXor};

use lockstep_core::sbox;

use super::Circuits;
use crate::random::Random;
use crate::symbols::table::tests::{Values, extend, of_inputs, value};
use crate::symbols::{Bit, ONE, Symbol, Table, ZERO};

impl Circuits {
    /// Adds the values of the elements of each byte whose value is known.
    pub(in crate::symbols) fn put_elements(
        &self,
        values: &mut Values,
        value: impl Fn(&Values, &Symbol) -> Option<u8>,
    ) {
        for (byte, number) in &self.numbers {
            let Some(x) = value(values, byte).map(usize::from) else { continue };
            for (atom, (_, truth)) in self.elements.iter().filter(|(_, (owner, _))| owner == number) {
                values.insert(*atom, truth[x / 64] >> (x % 64) & 1 == 1);
            }
        }
    }
}

/// A bit plane of one bit.
#[derive(Clone, Copy)]
struct Plane<'a>(&'a RefCell<Table>, Bit);

impl BitXor for Plane<'_> {
    type Output = Self;
    fn bitxor(self, other: Self) -> Self {
        Plane(self.0, self.0.borrow_mut().xor(self.1, other.1))
    }
}

impl BitAnd for Plane<'_> {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Plane(self.0, self.0.borrow_mut().and(self.1, other.1))
    }
}

/// The result of a circuit is the S-box of the definition, if the definition has registered the byte, with and without constants.
#[test]
fn circuits_of_the_s_box_are_recognised() {
    for (constant, inverse) in [(0x00, false), (0x5a, false), (0x00, true), (0xc3, true)] {
        let table = RefCell::new(Table::default());
        table.borrow_mut().recognise_circuits();
        let byte = table.borrow_mut().input();
        let added = |byte: [Bit; 8], constant: u8| -> [Bit; 8] {
            std::array::from_fn(|bit| table.borrow_mut().xor(byte[bit], Bit::from(constant >> bit & 1)))
        };
        let input = added(byte, constant);
        let expected = table.borrow_mut().sub_byte(input, inverse);
        // The circuits omit the affine constant.
        let result = if inverse {
            sbox::inverse(added(byte, constant ^ sbox::AFFINE).map(|bit| Plane(&table, bit)))
                .map(|plane| plane.1)
        } else {
            let result = sbox::forward(added(byte, constant).map(|bit| Plane(&table, bit)));
            added(result.map(|plane| plane.1), sbox::AFFINE)
        };
        assert_eq!(result, expected, "constant {constant:#x}, inverse: {inverse}");
        assert!(expected.iter().all(|bit| *bit > ONE));
    }
}

/// A plane in which the product with one number is replaced by its first factor.
#[derive(Clone, Copy)]
struct Wrong<'a>(Plane<'a>, &'a Cell<u32>);

impl BitXor for Wrong<'_> {
    type Output = Self;
    fn bitxor(self, other: Self) -> Self {
        Wrong(self.0 ^ other.0, self.1)
    }
}

impl BitAnd for Wrong<'_> {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        let left = self.1.get();
        self.1.set(left.wrapping_sub(1));
        Wrong(if left == 0 { self.0 } else { self.0 & other.0 }, self.1)
    }
}

/// The circuits of the S-box and its inverse are not recognised if one product is wrong.
#[test]
fn a_wrong_circuit_is_not_recognised() {
    for inverse in [false, true] {
        let mut products = 0;
        for wrong in 0.. {
            let table = RefCell::new(Table::default());
            table.borrow_mut().recognise_circuits();
            let byte = table.borrow_mut().input();
            let expected = table.borrow_mut().sub_byte(byte, inverse);
            let count = Cell::new(wrong);
            let planes = |byte: [Bit; 8]| byte.map(|bit| Wrong(Plane(&table, bit), &count));
            let added = |byte: [Bit; 8]| -> [Bit; 8] {
                std::array::from_fn(|bit| {
                    table.borrow_mut().xor(byte[bit], Bit::from(sbox::AFFINE >> bit & 1))
                })
            };
            let result = match inverse {
                true => sbox::inverse(planes(added(byte))).map(|plane| plane.0.1),
                false => added(sbox::forward(planes(byte)).map(|plane| plane.0.1)),
            };
            if count.get() < wrong {
                // No product had this number.
                assert_eq!(result, expected);
                break;
            }
            assert_ne!(result, expected, "product {wrong}, inverse: {inverse}");
            products += 1;
        }
        assert!(products >= 32, "{products} products");
    }
}

/// Expressions of random circuits over a registered byte and other bits have the values of the circuits. The bits of the byte are sums of
/// several inputs, with and without constants, or depend on each other, or are outputs of another S-box.
#[test]
fn expressions_of_circuits_have_the_values_of_the_operations() {
    let mut random = Random(7);
    let mut recognised = [0; 4];
    for round in 0..80 {
        let mut table = Table::default();
        table.recognise_circuits();
        let inputs: [Symbol; 3] = std::array::from_fn(|_| table.input());
        let bytes: [u8; 3] = std::array::from_fn(|_| random.next() as u8);
        let kind = round % 4;
        let sum: Symbol = std::array::from_fn(|bit| table.xor(inputs[0][bit], inputs[1][(bit + 3) % 8]));
        let byte: Symbol = match kind {
            0 => sum,
            1 => std::array::from_fn(|bit| table.xor(sum[bit], Bit::from(0x65u8 >> bit & 1))),
            2 => {
                let mut byte = sum;
                (byte[2], byte[5]) = (table.xor(sum[0], sum[1]), ZERO);
                byte
            }
            _ => table.sub_byte(sum, false),
        };
        let atoms: Vec<(Symbol, u8)> = inputs.into_iter().zip(bytes).collect();
        let mut values = of_inputs(&table, &atoms);
        let outputs = [table.sub_byte(byte, false), table.sub_byte(byte, true)];
        extend(&table, &mut values);
        let known = |table: &Table, bit: Bit| value(table, &values, bit).expect("the inputs have values");
        let mut bits: Vec<(Bit, bool)> = vec![(ONE, true)];
        let own = byte.into_iter().chain(outputs.into_iter().flatten());
        bits.extend(own.map(|bit| (bit, known(&table, bit))));
        let others: Vec<(Bit, bool)> = inputs[2].into_iter().map(|bit| (bit, known(&table, bit))).collect();
        for _ in 0..150 {
            let mut pick = || match random.below(20) {
                0 => others[random.below(8)],
                _ => bits[random.below(bits.len())],
            };
            let ((x, a), (y, b)) = (pick(), pick());
            if random.next().is_multiple_of(2) {
                recognised[kind] += usize::from(table.product_of_functions(x, y).is_some());
                bits.push((table.and(x, y), a & b));
            } else {
                bits.push((table.xor(x, y), a ^ b));
            }
        }
        let mut values = of_inputs(&table, &atoms);
        extend(&table, &mut values);
        for (number, (bit, expected)) in bits.into_iter().enumerate() {
            assert_eq!(value(&table, &values, bit), Some(expected), "kind {kind}, operation {number}");
        }
    }
    assert!(recognised.iter().all(|count| *count > 100), "recognised products: {recognised:?}");
}
