//! Computes the T-tables of `wgpu/table`. An entry is the result of SubBytes and MixColumns for one byte: a column.

/// Number of bytes of a table: 256 entries of four bytes.
pub(crate) const BYTES: usize = 1024;

/// The table for row 0 of one direction; the tables for the other rows are rotations of this table.
pub(crate) fn bytes(decrypts: bool) -> Vec<u8> {
    let (sbox, inverse) = substitutions();
    let (substituted, factors) = if decrypts { (inverse, [14, 9, 13, 11]) } else { (sbox, [2, 1, 1, 3]) };
    substituted.iter().flat_map(|&byte| factors.map(|factor| times(byte, factor))).collect()
}

/// The product of two bytes in GF(2^8) (FIPS 197, section 4.2).
fn times(mut a: u8, mut b: u8) -> u8 {
    let mut sum = 0;
    while b != 0 {
        sum ^= if b & 1 == 1 { a } else { 0 };
        a = a << 1 ^ if a & 0x80 != 0 { 0x1b } else { 0 };
        b >>= 1;
    }
    sum
}

/// The S-box (FIPS 197, 5.1.1) and its inverse. They are computed from the powers of 3, which are all bytes but 0, and the
/// powers of the reciprocal of 3.
fn substitutions() -> ([u8; 256], [u8; 256]) {
    let (mut sbox, mut inverse) = ([0; 256], [0; 256]);
    sbox[0] = 0x63;
    inverse[0x63] = 0;
    let (mut power, mut reciprocal) = (1u8, 1u8);
    for _ in 0..255 {
        power = times(power, 3);
        reciprocal = times(reciprocal, 0xf6);
        let turned = (1..5).fold(reciprocal, |sum, by| sum ^ reciprocal.rotate_left(by));
        sbox[usize::from(power)] = turned ^ 0x63;
        inverse[usize::from(turned ^ 0x63)] = power;
    }
    (sbox, inverse)
}

#[cfg(test)]
mod tests;
