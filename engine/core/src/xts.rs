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
pub fn times_power_of_x(mut element: u128, mut count: u32) -> u128 {
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
mod tests;
