//! The kernels: programs that encrypt or decrypt blocks.

pub mod bitslice;
pub mod naive;
pub mod packed;
pub mod packed_tuned;

/// The S-box (FIPS 197, section 5.1.1), computed from its definition.
pub static SBOX: [u8; 256] = sbox();

/// The inverse S-box.
pub static INVERSE_SBOX: [u8; 256] = {
    let mut inverse = [0; 256];
    let mut value = 0;
    while value < 256 {
        inverse[SBOX[value] as usize] = value as u8;
        value += 1;
    }
    inverse
};

const fn double(byte: u8) -> u8 {
    byte << 1 ^ if byte & 0x80 != 0 { 0x1b } else { 0 }
}

const fn sbox() -> [u8; 256] {
    let mut table = [0x63; 256];
    // 3 generates the multiplicative group of the field, and 0xf6 is its inverse. So p takes the values of all
    // elements except 0, and q is the inverse of p.
    let (mut p, mut q) = (1u8, 1u8);
    loop {
        p ^= double(p);
        q ^= q << 1;
        q ^= q << 2;
        q ^= q << 4;
        if q & 0x80 != 0 {
            q ^= 0x09;
        }
        let affine = q ^ q.rotate_left(1) ^ q.rotate_left(2) ^ q.rotate_left(3) ^ q.rotate_left(4);
        table[p as usize] = affine ^ 0x63;
        if p == 1 {
            return table;
        }
    }
}
