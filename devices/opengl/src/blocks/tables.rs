//! Tables of AES, computed from FIPS 197.

use std::sync::LazyLock;

/// A byte times x in GF(2^8) (FIPS 197, section 4.2.1).
pub(super) fn doubled(byte: u8) -> u8 {
    (byte << 1) ^ if byte & 0x80 == 0 { 0 } else { 0x1b }
}

/// The product in GF(2^8).
fn times(a: u8, b: u8) -> u8 {
    let mut power = a;
    let mut sum = 0;
    for bit in 0..8 {
        if b >> bit & 1 == 1 {
            sum ^= power;
        }
        power = doubled(power);
    }
    sum
}

/// The S-box (FIPS 197, section 5.1.1): the multiplicative inverse, and an affine map.
pub(crate) static SBOX: LazyLock<[u8; 256]> = LazyLock::new(|| {
    let mut table = [0; 256];
    for (byte, entry) in (0..=255u8).zip(&mut table) {
        let inverse = (0..=255u8).find(|&other| times(byte, other) == 1).unwrap_or(0);
        let turned = |bits| inverse.rotate_left(bits);
        *entry = inverse ^ turned(1) ^ turned(2) ^ turned(3) ^ turned(4) ^ 0x63;
    }
    table
});

/// The inverse S-box.
pub(crate) static INVERSE_SBOX: LazyLock<[u8; 256]> = LazyLock::new(|| {
    let mut table = [0; 256];
    for (byte, &entry) in (0..=255u8).zip(SBOX.iter()) {
        table[usize::from(entry)] = byte;
    }
    table
});

/// The contribution of a byte in row 0 to its column in MixColumns (FIPS 197, section 5.1.3). The word has the bytes of rows 0
/// to 3, with row 0 in the low bits. For a byte in row r, the word is rotated by r bytes.
pub(crate) static MIX_COLUMNS: LazyLock<[u32; 256]> = LazyLock::new(|| column([2, 1, 1, 3]));

/// The contribution of a byte in row 0 to its column in InvMixColumns (FIPS 197, section 5.3.3), in the form of
/// [`MIX_COLUMNS`].
pub(crate) static INVERSE_MIX_COLUMNS: LazyLock<[u32; 256]> = LazyLock::new(|| column([14, 9, 13, 11]));

fn column(factors: [u8; 4]) -> [u32; 256] {
    std::array::from_fn(|byte| u32::from_le_bytes(factors.map(|factor| times(byte as u8, factor))))
}

#[cfg(test)]
mod tests;
