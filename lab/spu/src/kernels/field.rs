//! The arithmetic of the tables: GF(2^8) of FIPS 197, and GF(2^4) for the vector-permute kernels. Products and linear maps in GF(2^8) use
//! no branch and no address that depends on their operands.

/// Returns 0xff if the bit is set, and 0 otherwise. The function has no branch, because it is applied to key bytes.
fn ones_if(a: u8, bit: usize) -> u8 {
    0u8.wrapping_sub(a >> bit & 1)
}

/// Product in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1.
pub(crate) fn mul(mut a: u8, b: u8) -> u8 {
    let mut product = 0;
    for bit in 0..8 {
        product ^= a & ones_if(b, bit);
        a = a << 1 ^ 0x1b & ones_if(a, 7);
    }
    product
}

/// Returns the inverse in GF(2^8), computed as the 254th power. The result for 0 is 0.
pub(crate) fn inverse(a: u8) -> u8 {
    let mut power = 1;
    for _ in 0..254 {
        power = mul(power, a);
    }
    power
}

/// The linear part of the S-box's affine map (FIPS 197, 5.1.1).
pub(crate) fn affine_linear(a: u8) -> u8 {
    (0..5).fold(0, |sum, turn| sum ^ a.rotate_left(turn))
}

/// The S-box.
pub(crate) fn sbox(a: u8) -> u8 {
    affine_linear(inverse(a)) ^ 0x63
}

/// The inverse of the S-box.
pub(crate) fn inverse_sbox(a: u8) -> u8 {
    let inverse_affine = |a: u8| a.rotate_left(1) ^ a.rotate_left(3) ^ a.rotate_left(6);
    inverse(inverse_affine(a ^ 0x63))
}

/// A linear map of bytes, stored as the images of the eight bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linear(pub [u8; 8]);

impl Linear {
    pub(crate) fn of(map: impl Fn(u8) -> u8) -> Linear {
        Linear(std::array::from_fn(|bit| map(1 << bit)))
    }

    pub(crate) fn apply(&self, a: u8) -> u8 {
        (0..8).fold(0, |sum, bit| sum ^ self.0[bit] & ones_if(a, bit))
    }

    /// Returns the inverse map.
    ///
    /// # Panics
    /// If the map is not invertible.
    pub(crate) fn inverse(&self) -> Linear {
        let mut back = [None; 256];
        for a in 0..=255u8 {
            back[usize::from(self.apply(a))] = Some(a);
        }
        Linear::of(|a| back[usize::from(a)].expect("the map can be inverted"))
    }
}

/// Product in GF(2^4) modulo x^4 + x + 1.
pub(crate) fn mul4(a: u8, b: u8) -> u8 {
    let mut product = 0;
    for bit in 0..4 {
        if b >> bit & 1 != 0 {
            product ^= a << bit;
        }
    }
    for bit in (4..7).rev() {
        if product >> bit & 1 != 0 {
            product ^= 0b10011 << (bit - 4);
        }
    }
    product
}

/// The inverse in GF(2^4). The result for 0 is 0.
pub(crate) fn inverse4(a: u8) -> u8 {
    let square = mul4(a, a);
    let fourth = mul4(square, square);
    let eighth = mul4(fourth, fourth);
    mul4(eighth, mul4(fourth, square))
}

/// GF(2^8) as pairs over GF(2^4): a byte (i high, k low) represents k + i t with t^2 + a t + a = 0.
pub(crate) struct Tower {
    /// The constant a, chosen such that the polynomial has no root.
    pub a: u8,
    /// Converts a byte of AES to its pair.
    pub from_aes: Linear,
}

impl Tower {
    pub(crate) fn new() -> Tower {
        let a = (1..16)
            .find(|&a| (0..16).all(|t| mul4(t, t) ^ mul4(a, t) ^ a != 0))
            .expect("some quadratic polynomial has no root");
        // The image of x must be a root of AES's polynomial.
        let root = (2..=255u8)
            .find(|&root| {
                let power = |n: u32| (0..n).fold(1, |power, _| Self::product(a, power, root));
                power(8) ^ power(4) ^ power(3) ^ power(1) ^ 1 == 0
            })
            .expect("all fields of 256 elements are alike");
        let mut power = 1;
        let mut columns = [0; 8];
        for column in &mut columns {
            *column = power;
            power = Self::product(a, power, root);
        }
        Tower { a, from_aes: Linear(columns) }
    }

    /// Product of two pairs.
    fn product(a: u8, x: u8, y: u8) -> u8 {
        let (i, k, j, l) = (x >> 4, x & 15, y >> 4, y & 15);
        // This computes (k + i t)(l + j t), with t^2 = a t + a.
        let square = mul4(i, j);
        let high = mul4(k, j) ^ mul4(i, l) ^ mul4(a, square);
        let low = mul4(k, l) ^ mul4(a, square);
        high << 4 | low
    }
}
