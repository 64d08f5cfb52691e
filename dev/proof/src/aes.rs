//! AES on single bytes and columns, computed from the definitions of FIPS 197.

use std::sync::LazyLock;

/// Multiplication in GF(2^8) (FIPS 197, 4.2).
pub fn multiply(x: u8, y: u8) -> u8 {
    let (mut sum, mut x) = (0, x);
    for bit in 0..8 {
        if y >> bit & 1 == 1 {
            sum ^= x;
        }
        x = x << 1 ^ if x & 0x80 != 0 { 0x1b } else { 0 };
    }
    sum
}

/// The S-box and its inverse (FIPS 197, 5.1.1 and 5.3.2).
static SBOXES: LazyLock<[[u8; 256]; 2]> = LazyLock::new(|| {
    let mut boxes = [[0; 256]; 2];
    for x in 0..=255u8 {
        let inverse = (0..=255u8).find(|y| multiply(x, *y) == 1).unwrap_or(0);
        let rotated = |by| inverse.rotate_left(by);
        let y = inverse ^ rotated(1) ^ rotated(2) ^ rotated(3) ^ rotated(4) ^ 0x63;
        boxes[0][usize::from(x)] = y;
        boxes[1][usize::from(y)] = x;
    }
    boxes
});

/// The products in GF(2^8) of each byte and the factors 0 to 15.
static PRODUCTS: LazyLock<[[u8; 256]; 16]> = LazyLock::new(|| {
    std::array::from_fn(|factor| std::array::from_fn(|byte| multiply(byte as u8, factor as u8)))
});

/// The S-box, or its inverse.
pub fn sub_byte(byte: u8, inverse: bool) -> u8 {
    SBOXES[usize::from(inverse)][usize::from(byte)]
}

/// MixColumns of one column, or its inverse (FIPS 197, 5.1.3 and 5.3.3).
pub fn mix_column(column: [u8; 4], inverse: bool) -> [u8; 4] {
    let factors: [usize; 4] = if inverse { [14, 11, 13, 9] } else { [2, 3, 1, 1] };
    let products = &*PRODUCTS;
    std::array::from_fn(|row| {
        (0..4)
            .fold(0, |sum, place| sum ^ products[factors[(place + 4 - row) % 4]][usize::from(column[place])])
    })
}

#[cfg(test)]
mod tests;
