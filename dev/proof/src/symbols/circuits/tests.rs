use std::cell::RefCell;
use std::ops::{BitAnd, BitXor};

use lockstep_core::sbox;

use super::Circuits;
use crate::random::Random;
use crate::symbols::table::tests::{Values, extend, of_inputs, value};
use crate::symbols::{Bit, ONE, Symbol, Table};

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

/// The circuit of the S-box with one product left out is not the S-box.
#[test]
fn a_wrong_circuit_is_not_recognised() {
    /// A plane whose products are sums from the given number of products on.
    #[derive(Clone, Copy)]
    struct Wrong<'a>(Plane<'a>, &'a std::cell::Cell<u32>);
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
    // The circuit has 32 products. With number 32, none is wrong.
    for wrong in 0..=32 {
        let table = RefCell::new(Table::default());
        table.borrow_mut().recognise_circuits();
        let byte = table.borrow_mut().input();
        let expected = table.borrow_mut().sub_byte(byte, false);
        let count = std::cell::Cell::new(wrong);
        let result = sbox::forward(byte.map(|bit| Wrong(Plane(&table, bit), &count)));
        let result: [Bit; 8] = std::array::from_fn(|bit| {
            let constant = Bit::from(sbox::AFFINE >> bit & 1);
            table.borrow_mut().xor(result[bit].0.1, constant)
        });
        assert_eq!(result == expected, wrong == 32, "product {wrong}");
    }
}

/// Expressions of random circuits over registered bytes, sums of their bits and another byte have the values of the circuits.
#[test]
fn expressions_of_circuits_have_the_values_of_the_operations() {
    let mut random = Random(7);
    for _ in 0..40 {
        let mut table = Table::default();
        table.recognise_circuits();
        let inputs: [Symbol; 4] = std::array::from_fn(|_| table.input());
        let bytes: [u8; 4] = std::array::from_fn(|_| random.next() as u8);
        let sum: Symbol = std::array::from_fn(|bit| table.xor(inputs[0][bit], inputs[1][(bit + 3) % 8]));
        let added = sum.map(|bit| table.xor(bit, ONE));
        table.sub_byte(inputs[2], true);
        for byte in [sum, added] {
            table.sub_byte(byte, false);
        }
        let atoms: Vec<(Symbol, u8)> = inputs.into_iter().zip(bytes).collect();
        let mut bits: Vec<(Bit, bool)> = vec![(ONE, true)];
        for (symbol, byte) in &atoms {
            bits.extend((0..8).map(|bit| (symbol[bit], byte >> bit & 1 == 1)));
        }
        for _ in 0..300 {
            let mut pick = || bits[random.next() as usize % bits.len()];
            let ((x, a), (y, b)) = (pick(), pick());
            let and = random.next().is_multiple_of(2);
            bits.push(if and { (table.and(x, y), a & b) } else { (table.xor(x, y), a ^ b) });
        }
        let mut values = of_inputs(&table, &atoms);
        extend(&table, &mut values);
        for (number, (bit, expected)) in bits.into_iter().enumerate() {
            assert_eq!(value(&table, &values, bit), Some(expected), "operation {number}");
        }
    }
}
