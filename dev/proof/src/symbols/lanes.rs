//! Carry-less products of lanes of 64 bits.
//!
//! A lane is the sum of a constant lane and lanes of a basis, which grows by each lane that is not such a sum. The product of two lanes is
//! the sum of the products of their parts. The product of two lanes of the basis has an atom for each coefficient, of at most 127, in which
//! bits other than zero are multiplied. The product of a constant lane and a lane of the basis is linear in the bits of the lane of the
//! basis. These bits get new atoms as names, because their expressions would be longer than the names. The expressions are used only in
//! products with the modulus of a field, by which code reduces the result of another product.

use rustc_hash::FxHashMap;

use super::table::{Bit, ONE, Table, ZERO};

/// An atom at a bit of a vector. The low 32 bits contain the atom, and the higher bits contain the index of the bit. A vector is a sum
/// of such places in ascending order.
pub type Place = u64;

/// The places of the bits of a vector.
pub fn places(table: &Table, bits: impl IntoIterator<Item = Bit>) -> Vec<Place> {
    let mut places = Vec::new();
    for (index, bit) in bits.into_iter().enumerate() {
        places.extend(table.atoms(bit).iter().map(|atom| (index as u64) << 32 | u64::from(*atom)));
    }
    places
}

/// The sum of two sorted lists modulo two.
pub fn sum_of_sorted<T: Ord + Copy>(x: &[T], y: &[T]) -> Vec<T> {
    let mut sum = Vec::with_capacity(x.len() + y.len());
    let (mut i, mut j) = (0, 0);
    while i < x.len() && j < y.len() {
        match x[i].cmp(&y[j]) {
            std::cmp::Ordering::Less => {
                sum.push(x[i]);
                i += 1;
            }
            std::cmp::Ordering::Greater => {
                sum.push(y[j]);
                j += 1;
            }
            std::cmp::Ordering::Equal => (i, j) = (i + 1, j + 1),
        }
    }
    sum.extend_from_slice(&x[i..]);
    sum.extend_from_slice(&y[j..]);
    sum
}

/// The basis, and the products of its lanes.
#[derive(Clone, Default)]
pub(super) struct Lanes {
    /// Each lane of the basis by its last place, in echelon form, with its number.
    pub(super) rows: FxHashMap<Place, (Vec<Place>, u32)>,
    /// For each lane of the basis: the bits that are not zero.
    supports: Vec<u64>,
    /// For each lane that has been looked up: the numbers of the lanes of the basis whose sum is this lane.
    pub(super) known: FxHashMap<[Bit; 64], Vec<u32>>,
    /// The coefficients of the product of two lanes of the basis.
    pub(super) products: FxHashMap<(u32, u32), [Bit; 127]>,
    /// The names of the bits of each lane of the basis that has been multiplied by a constant.
    pub(super) names: FxHashMap<u32, [Bit; 64]>,
}

/// The lanes by which code multiplies to reduce a product: parts of the modulus of POLYVAL's field (RFC 8452, section 3) and of the
/// modulus of the field of XTS (IEEE 1619, 5.2). The last entry is three copies of the part for XTS, by which the widest steps of XTS
/// multiply. All other constants are lengths in bits, which occur in data. They are multiples of 8 below 2^63, so they differ from these
/// entries.
const MODULI: [u64; 3] = [0xc2 << 56, 0x87, 0x87 | 0x87 << 8 | 0x87 << 56];

impl Table {
    /// The numbers of the lanes of the basis whose sum is `lane`, which has no constants.
    fn parts(&mut self, lane: &[Bit; 64]) -> Vec<u32> {
        if let Some(parts) = self.lanes.known.get(lane) {
            return parts.clone();
        }
        let mut rest = places(self, lane.iter().copied());
        let mut parts = Vec::new();
        while let Some(last) = rest.last().copied() {
            let count = self.lanes.rows.len() as u32;
            let Some((row, number)) = self.lanes.rows.get(&last) else {
                parts.push(count);
                self.lanes.supports.push(rest.iter().fold(0, |bits, place| bits | 1 << (place >> 32)));
                self.lanes.rows.insert(last, (rest, count));
                break;
            };
            parts.push(*number);
            rest = sum_of_sorted(&rest, row);
        }
        self.lanes.known.insert(*lane, parts.clone());
        parts
    }

    /// The carry-less product of two lanes. The highest coefficient of the product, of x^127, is zero.
    pub fn product(&mut self, x: &[Bit; 64], y: &[Bit; 64]) -> [Bit; 128] {
        let mut terms: [Vec<Bit>; 128] = std::array::from_fn(|_| Vec::new());
        let mut split = |lane: &[Bit; 64]| {
            let constant = lane.map(|bit| self.has_constant(bit));
            let rest: [Bit; 64] = std::array::from_fn(|place| self.xor(lane[place], constant[place]));
            (constant, rest)
        };
        let ((x_constant, x_rest), (y_constant, y_rest)) = (split(x), split(y));
        for (constant, rest, other) in [(&x_constant, &x_rest, y), (&y_constant, &y_rest, x)] {
            if is_modulus(constant) && rest.iter().all(|bit| *bit == ZERO) {
                multiply(&mut terms, constant, other);
                return self.sums(&terms);
            }
        }
        multiply(&mut terms, &x_constant, &y_constant);
        let (x_parts, y_parts) = (self.parts(&x_rest), self.parts(&y_rest));
        for (constant, parts) in [(&x_constant, &y_parts), (&y_constant, &x_parts)] {
            for part in parts {
                let names = self.names(*part);
                multiply(&mut terms, constant, &names);
            }
        }
        for a in &x_parts {
            for b in &y_parts {
                for (terms, coefficient) in terms.iter_mut().zip(self.coefficients(*a, *b)) {
                    terms.push(coefficient);
                }
            }
        }
        self.sums(&terms)
    }

    fn sums(&mut self, terms: &[Vec<Bit>; 128]) -> [Bit; 128] {
        std::array::from_fn(|place| match terms[place][..] {
            [] => ZERO,
            [bit] => bit,
            [x, y] => self.xor(x, y),
            _ => self.sum(&terms[place]),
        })
    }

    fn names(&mut self, part: u32) -> [Bit; 64] {
        if let Some(names) = self.lanes.names.get(&part) {
            return *names;
        }
        let set = self.lanes.supports[part as usize];
        let names = std::array::from_fn(|bit| if set >> bit & 1 == 1 { self.atom() } else { ZERO });
        self.lanes.names.insert(part, names);
        names
    }

    fn coefficients(&mut self, a: u32, b: u32) -> [Bit; 127] {
        let key = (a.min(b), a.max(b));
        if let Some(coefficients) = self.lanes.products.get(&key) {
            return *coefficients;
        }
        let [x, y] = [a, b].map(|part| self.lanes.supports[part as usize]);
        let set = (0..64).filter(|bit| x >> bit & 1 == 1).fold(0, |set, bit| set | u128::from(y) << bit);
        let coefficients =
            std::array::from_fn(|place| if set >> place & 1 == 1 { self.atom() } else { ZERO });
        self.lanes.products.insert(key, coefficients);
        coefficients
    }
}

/// True for a constant lane that is a part of a modulus.
pub(super) fn is_modulus(lane: &[Bit; 64]) -> bool {
    let number = lane.iter().rev().fold(0, |number, bit| number << 1 | u64::from(*bit));
    lane.iter().all(|bit| *bit <= ONE) && MODULI.contains(&number)
}

/// Adds the product of a constant lane and a lane.
fn multiply(terms: &mut [Vec<Bit>; 128], constant: &[Bit; 64], lane: &[Bit; 64]) {
    for place in (0..64).filter(|place| constant[*place] == ONE) {
        for (bit, other) in lane.iter().enumerate().filter(|(_, other)| **other != ZERO) {
            terms[place + bit].push(*other);
        }
    }
}
