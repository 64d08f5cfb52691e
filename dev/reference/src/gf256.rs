//! The finite field GF(2^8) of FIPS 197, section 4: bytes are polynomials modulo m(x) = x^8 + x^4 + x^3 + x +
//! 1.

/// Multiplication by x: `xTimes` (FIPS 197, section 4.2).
pub(crate) const fn xtime(b: u8) -> u8 {
    if b & 0x80 == 0 { b << 1 } else { (b << 1) ^ 0x1b }
}

/// The product of two bytes: the sum of `a` times x^i over the bits i that are set in `b` (FIPS 197, section
/// 4.2).
pub(crate) const fn mul(a: u8, b: u8) -> u8 {
    let (mut a_times_xi, mut b, mut sum) = (a, b, 0);
    while b != 0 {
        if b & 1 == 1 {
            sum ^= a_times_xi;
        }
        a_times_xi = xtime(a_times_xi);
        b >>= 1;
    }
    sum
}

/// The multiplicative inverse, b^254, which maps 0 to 0 (FIPS 197, section 4.4).
pub(crate) const fn inverse(b: u8) -> u8 {
    let mut power = 1;
    let mut exponent = 0;
    while exponent < 254 {
        power = mul(power, b);
        exponent += 1;
    }
    power
}

#[cfg(test)]
mod tests;
