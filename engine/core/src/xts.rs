//! Multiplication in GF(2^128) as in XTS (IEEE 1619, 5.2): bit i is the coefficient of x^i.

/// An element times x, in constant time.
#[inline(always)]
pub fn double(element: u128) -> u128 {
    (element << 1) ^ (0x87 & 0u128.wrapping_sub(element >> 127))
}

/// The product of two elements, in constant time.
pub fn times(mut a: u128, b: u128) -> u128 {
    let mut product = 0;
    for bit in 0..128 {
        product ^= a & 0u128.wrapping_sub((b >> bit) & 1);
        a = double(a);
    }
    product
}

/// x to a power. The exponent is public: it is a position in a data unit.
pub fn power_of_x(exponent: u64) -> u128 {
    (0..u64::BITS - exponent.leading_zeros()).rev().fold(1, |power, bit| {
        let square = times(power, power);
        if exponent >> bit & 1 == 1 { double(square) } else { square }
    })
}

/// An element times x^count.
pub fn times_power_of_x(mut element: u128, count: u32) -> u128 {
    let mut count = count;
    while count > 0 {
        // In a step of 64, the bits above x^127 reduce to at most 71 bits.
        let step = count.min(64);
        let top = element >> (128 - step);
        element = element << step ^ top ^ top << 1 ^ top << 2 ^ top << 7;
        count -= step;
    }
    element
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubling_reduces() {
        assert_eq!(double(1), 2);
        assert_eq!(double(1 << 127), 0x87);
        assert_eq!(double((1 << 127) | 1), 0x85);
    }

    #[test]
    fn powers_are_repeated_products() {
        let mut power = 1u128;
        for exponent in 0..2000u64 {
            assert_eq!(power_of_x(exponent), power);
            assert_eq!(times_power_of_x(1, exponent as u32), power);
            power = double(power);
        }
        // x^(2^128) = x, so x^(2^64) squared 64 times is x again.
        let mut power = times_power_of_x(power_of_x(u64::MAX), 1);
        (0..64).for_each(|_| power = times(power, power));
        assert_eq!(power, 2);
    }
}
