//! Products of integers.

use super::{Bit, Table, ZERO};

impl Table {
    /// The product of two numbers. A bit has an expression if no carry can reach it: it is then the sum of products of bits, which is the
    /// coefficient of the carry-less product. Every other bit is a new atom.
    pub(super) fn integer_product(&mut self, x: &[Bit; 64], y: &[Bit; 64]) -> [Bit; 128] {
        let carryless = self.product(x, y);
        // The greatest carry into the current bit.
        let mut carry = 0;
        std::array::from_fn(|place| {
            let first = place.saturating_sub(63);
            let products = (first..=place.min(63)).filter(|i| x[*i] != ZERO && y[place - i] != ZERO).count();
            let bit = if carry == 0 { carryless[place] } else { self.atom() };
            carry = (carry + products) / 2;
            bit
        })
    }

    /// Makes the product of two bits bilinear, as the products of lanes are. Code that multiplies integers uses masks for some bits.
    pub fn expand_products_of_bits(&mut self) {
        self.has_bilinear_bits = true;
    }

    /// The product of two bits, as the product of two lanes whose other bits are zeros.
    pub(super) fn bilinear_product(&mut self, x: Bit, y: Bit) -> Bit {
        let lane = |bit| std::array::from_fn(|place| if place == 0 { bit } else { ZERO });
        self.product(&lane(x), &lane(y))[0]
    }
}

#[cfg(test)]
mod tests;
