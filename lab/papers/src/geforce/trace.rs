//! The lookups of the shader for the GeForce 6800: AES-128 in floating point. Every XOR of two bytes, every S-box and
//! every multiplication by x (xtime) is a read of a texture. The position of the texel is computed from results of
//! previous reads.

use lockstep_core::Block;

/// Lookups for a block with a 128-bit key: 176 for the round keys, 160 for the S-box, 144 for xtime and 576 for the XORs of
/// MixColumns.
pub const LOOKUPS: usize = 1056;

/// The purpose of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// AddRoundKey: a byte of the state, XOR a byte of the round key.
    Key,
    /// SubBytes: the S-box value of a byte of the state.
    Sbox,
    /// MixColumns: the product of a byte and x.
    Xtime,
    /// MixColumns: the XOR of two bytes.
    Mix,
}

/// A texture with a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Texture {
    /// The XOR of two bytes: 256 x 256 texels.
    Xor,
    /// The S-box: 256 x 1 texels.
    Sbox,
    /// xtime: 256 x 1 texels.
    Xtime,
}

/// A read of a texel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lookup {
    /// The purpose of the lookup.
    pub step: Step,
    /// The column of the texel.
    pub x: u8,
    /// The row of the texel; 0 in textures of one row.
    pub y: u8,
}

impl Step {
    /// All steps, in the order of their first lookups.
    pub const ALL: [Step; 4] = [Step::Key, Step::Sbox, Step::Xtime, Step::Mix];

    /// The texture of the step.
    pub fn texture(self) -> Texture {
        match self {
            Step::Key | Step::Mix => Texture::Xor,
            Step::Sbox => Texture::Sbox,
            Step::Xtime => Texture::Xtime,
        }
    }
}

impl Lookup {
    /// The byte that the texel contains.
    pub fn value(self) -> u8 {
        match self.step.texture() {
            Texture::Xor => self.x ^ self.y,
            Texture::Sbox => SBOX[usize::from(self.x)],
            Texture::Xtime => xtime(self.x),
        }
    }
}

/// Encrypts a block as the shader does, and passes each lookup to `seen`, in the shader's order.
///
/// The thesis prints the order of AddRoundKey and SubBytes (byte by byte, state in x and key in y) and, for MixColumns, the
/// operands of its sums. The order of MixColumns is an assumption: one column after the other, the four xtimes of a column
/// before its sums.
pub fn encrypt(block: Block, round_keys: &[Block], mut seen: impl FnMut(Lookup)) -> Block {
    let mut fetch = |step, x, y| {
        let lookup = Lookup { step, x, y };
        seen(lookup);
        lookup.value()
    };
    let last = round_keys.len() - 1;
    let mut state = add_key(block, &round_keys[0], &mut fetch);
    for (round, key) in round_keys.iter().enumerate().skip(1) {
        state = state.map(|byte| fetch(Step::Sbox, byte, 0));
        // ShiftRows costs no lookups, because the shader only reorders components of vectors.
        state = std::array::from_fn(|at| state[(at + 4 * (at % 4)) % 16]);
        if round < last {
            for column in state.as_chunks_mut().0 {
                *column = mix_column(*column, &mut fetch);
            }
        }
        state = add_key(state, key, &mut fetch);
    }
    state
}

/// The lookups of a block, and the ciphertext.
pub fn trace(block: Block, round_keys: &[Block]) -> (Vec<Lookup>, Block) {
    let mut lookups = Vec::with_capacity(LOOKUPS);
    let ciphertext = encrypt(block, round_keys, |lookup| lookups.push(lookup));
    (lookups, ciphertext)
}

fn add_key(state: Block, key: &Block, fetch: &mut impl FnMut(Step, u8, u8) -> u8) -> Block {
    std::array::from_fn(|at| fetch(Step::Key, state[at], key[at]))
}

/// MixColumns of one column, which takes four lookups of xtime and sixteen of XOR.
fn mix_column(a: [u8; 4], fetch: &mut impl FnMut(Step, u8, u8) -> u8) -> [u8; 4] {
    let b = a.map(|byte| fetch(Step::Xtime, byte, 0));
    std::array::from_fn(|row| {
        let at = |distance: usize| (row + distance) % 4;
        [a[at(3)], a[at(2)], b[at(1)], a[at(1)]]
            .into_iter()
            .fold(b[row], |sum, operand| fetch(Step::Mix, sum, operand))
    })
}

const fn xtime(byte: u8) -> u8 {
    (byte << 1) ^ ((byte >> 7) * 0x1b)
}

/// The S-box of FIPS 197, section 5.1.1.
const SBOX: [u8; 256] = {
    let mut sbox = [0; 256];
    // `power` and `inverse` are powers of the generator x + 1 and of its inverse.
    let (mut power, mut inverse) = (1u8, 1u8);
    loop {
        power ^= xtime(power);
        inverse ^= inverse << 1;
        inverse ^= inverse << 2;
        inverse ^= inverse << 4;
        inverse ^= (inverse >> 7) * 0x09;
        sbox[power as usize] = inverse
            ^ inverse.rotate_left(1)
            ^ inverse.rotate_left(2)
            ^ inverse.rotate_left(3)
            ^ inverse.rotate_left(4)
            ^ 0x63;
        if power == 1 {
            break;
        }
    }
    // Zero has no inverse.
    sbox[0] = 0x63;
    sbox
};

#[cfg(test)]
mod tests;
