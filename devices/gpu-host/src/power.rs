//! Powers of x in GF(2^128) as in XTS (IEEE 1619, 5.2): bit i is the coefficient of x^i. The exponent is public: it is a
//! position in a data unit.

/// x^128 modulo the polynomial of the field.
const FOLD: u128 = 0x87;

/// x to a power.
pub fn power_of_x(exponent: u64) -> u128 {
    let mut power = 1u128;
    for bit in (0..64).rev() {
        power = times(power, power);
        if exponent >> bit & 1 == 1 {
            power = times_power_of_x(power, 1);
        }
    }
    power
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

/// The product of two elements. The time depends on `b`, which must be public, and not on `a`.
pub fn times(a: u128, b: u128) -> u128 {
    (0..128).rev().fold(0, |product: u128, bit| {
        let doubled = (product << 1) ^ ((product >> 127) * FOLD);
        doubled ^ if b >> bit & 1 == 1 { a } else { 0 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_repeated_products() {
        let mut power = 1u128;
        for exponent in 0..2000u64 {
            assert_eq!(power_of_x(exponent), power);
            assert_eq!(times_power_of_x(1, exponent as u32), power);
            power = (power << 1) ^ ((power >> 127) * FOLD);
        }
        // x^(2^128) = x, so x^(2^64) squared 64 times is x again.
        let mut power = times_power_of_x(power_of_x(u64::MAX), 1);
        (0..64).for_each(|_| power = times(power, power));
        assert_eq!(power, 2);
    }
}
