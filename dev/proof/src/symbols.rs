//! The domain of symbols: each bit is an expression over the bits of keys and data.
//!
//! An expression is a sum (exclusive or) of atoms, and is therefore canonical for linear operations: two expressions over the same atoms
//! are equal for all values exactly if they are the same sum. An atom is a bit of the input, or the result of an operation that is not
//! linear. Operations with the same operands have the same atom:
//!
//! - the S-box of a byte has eight atoms, and the inverse S-box of these eight atoms is the byte again (in a table that recognises circuits,
//!   it has new atoms);
//! - a carry-less product is bilinear. Its atoms are the coefficients of products of lanes of a basis (`lanes`), so that the three products
//!   of Karatsuba's method and the four of the definition have the same sum;
//! - a bit of a product of integers is that of the carry-less product if no carry can reach it (`integers`);
//! - the product of two bits, and the sum of a lane and a constant modulo a power of two.
//!
//! The result of any other operation consists of new atoms, which differ from all earlier atoms. A proof that depends on such a result
//! fails. Two results that have the same expressions are equal for all values of the inputs.

mod circuits;
pub(crate) mod definition;
mod integers;
mod lanes;
pub(crate) mod table;
pub(crate) mod truth;

use std::cell::{RefCell, RefMut};
use std::rc::Rc;

pub use lanes::{Place, places, sum_of_sorted};
pub use table::{Bit, ONE, Symbol, Table, ZERO};

use crate::value::{Domain, Flag, Shift};

/// The domain of symbols. Copies share one table of expressions.
#[derive(Clone, Default)]
pub struct Symbols(Rc<RefCell<Table>>);

impl Symbols {
    /// The table of expressions.
    pub fn table(&self) -> RefMut<'_, Table> {
        self.0.borrow_mut()
    }

    /// A copy of the table, for a run whose expressions no other run needs. The expressions so far are the same in both tables.
    pub fn fork(&self) -> Symbols {
        Symbols(Rc::new(RefCell::new(self.table().clone())))
    }

    /// Bytes of new inputs.
    pub fn inputs(&self, len: usize) -> Vec<Symbol> {
        (0..len).map(|_| self.table().input()).collect()
    }
}

/// The bits of bytes in ascending order.
fn bits(bytes: &[Symbol]) -> Vec<Bit> {
    bytes.as_flattened().to_vec()
}

/// The number that a lane without symbols holds.
fn number(lane: &[Symbol]) -> Option<u64> {
    let is_public = lane.as_flattened().iter().all(|bit| *bit <= ONE);
    is_public
        .then(|| lane.iter().rev().fold(0, |number, byte| number << 8 | u64::from(Symbols::value(*byte))))
}

fn put(number: u64, lane: &mut [Symbol]) {
    for (byte, value) in lane.iter_mut().zip(number.to_le_bytes()) {
        *byte = Symbols::constant(value);
    }
}

/// The algebraic normal form of a function of three bits, whose value for x, y and z is bit 4x + 2y + z of `table`. Coefficient i of the
/// form belongs to the product of the inputs whose weights (4, 2 and 1) are set in i.
pub(crate) fn normal_form(table: u8) -> u8 {
    let steps = [(1, 0x55), (2, 0x33), (4, 0x0f)];
    steps.into_iter().fold(table, |form, (shift, mask)| form ^ (form & mask) << shift)
}

impl Domain for Symbols {
    type Byte = Symbol;

    const HAS_VALUES: bool = false;

    fn constant(value: u8) -> Symbol {
        std::array::from_fn(|bit| Bit::from(value >> bit & 1))
    }

    fn value(byte: Symbol) -> u8 {
        (0..8).fold(0, |value, bit| value | u8::from(byte[bit] == ONE) << bit)
    }

    fn secret(byte: Symbol) -> u8 {
        (0..8).fold(0, |secret, bit| secret | u8::from(byte[bit] > ONE) << bit)
    }

    fn xor(&mut self, x: Symbol, y: Symbol) -> Symbol {
        let mut table = self.table();
        let sum = std::array::from_fn(|bit| table.xor(x[bit], y[bit]));
        if table.is_watching() {
            sum.iter().for_each(|bit| table.note(*bit));
        }
        sum
    }

    fn and(&mut self, x: Symbol, y: Symbol) -> Symbol {
        let mut table = self.table();
        std::array::from_fn(|bit| table.and(x[bit], y[bit]))
    }

    fn ternary(&mut self, table: u8, x: Symbol, y: Symbol, z: Symbol) -> Symbol {
        let coefficients = normal_form(table);
        let mut sum = Self::constant(0);
        for term in (0..8).filter(|term| coefficients >> term & 1 == 1) {
            let factors = [(4, x), (2, y), (1, z)].into_iter().filter(|(bit, _)| term & bit != 0);
            let product = factors.fold(Self::constant(0xff), |product, (_, input)| self.and(product, input));
            sum = self.xor(sum, product);
        }
        sum
    }

    fn shift(&mut self, lane: &mut [Symbol], shift: Shift, count: u32) {
        let bits = bits(lane);
        let count = count as usize;
        let fill = match shift {
            Shift::Arithmetic => *bits.last().expect("a lane has bytes"),
            _ => ZERO,
        };
        for (place, bit) in lane.as_flattened_mut().iter_mut().enumerate() {
            let from = if shift == Shift::Left { place.checked_sub(count) } else { place.checked_add(count) };
            *bit = from.and_then(|from| bits.get(from)).copied().unwrap_or(fill);
        }
    }

    fn add(&mut self, x: &[Symbol], y: &[Symbol], carry: Flag, sum: &mut [Symbol]) {
        if !carry.secret {
            if let (Some(x), Some(y)) = (number(x), number(y)) {
                return put(x.wrapping_add(y).wrapping_add(carry.value.into()), sum);
            }
            if x == y && !carry.value {
                sum.copy_from_slice(x);
                return self.shift(sum, Shift::Left, 1);
            }
            let result = self.table().add(&bits(x), &bits(y), carry.value);
            if let Some(result) = result {
                sum.as_flattened_mut().copy_from_slice(&result);
                return;
            }
        }
        sum.fill_with(|| self.table().input());
    }

    fn carryless(&mut self, x: &[Symbol; 16], y: &[Symbol; 16], halves: [usize; 2]) -> [Symbol; 16] {
        self.table().carryless(x, y, halves)
    }

    fn multiply(&mut self, x: &[Symbol; 8], y: &[Symbol; 8]) -> Option<[Symbol; 16]> {
        let lane = |bytes: &[Symbol; 8]| *bytes.as_flattened().first_chunk().expect("64 bits");
        let product = self.table().integer_product(&lane(x), &lane(y));
        Some(std::array::from_fn(|byte| std::array::from_fn(|bit| product[8 * byte + bit])))
    }

    fn sub_byte(&mut self, byte: Symbol, inverse: bool) -> Symbol {
        self.table().sub_byte(byte, inverse)
    }

    fn mix_column(&mut self, column: [Symbol; 4], inverse: bool) -> [Symbol; 4] {
        self.table().mix_column(column, inverse)
    }

    fn look_up(&mut self, table: &[Symbol], index: Symbol) -> Symbol {
        match Self::secret(index) {
            0 => table[usize::from(Self::value(index)) & (table.len() - 1)],
            secret => self.opaque(0, secret),
        }
    }

    fn select(&mut self, flag: Flag, x: Symbol, y: Symbol) -> Symbol {
        match flag.secret {
            false if flag.value => x,
            false => y,
            true if x == y => x,
            true => self.table().input(),
        }
    }

    fn opaque(&mut self, value: u8, secret: u8) -> Symbol {
        if secret == 0 { Self::constant(value) } else { self.table().input() }
    }
}
