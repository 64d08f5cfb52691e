//! Functions of eight bits as truth tables.

use crate::aes;

/// A truth table: bit `x` is the value for the input `x`.
pub(crate) type Truth = [u64; 4];

/// The truth table of a function.
pub(crate) fn truth(function: impl Fn(u8) -> bool) -> Truth {
    let mut truth = [0; 4];
    for x in (0..=255).filter(|x| function(*x)) {
        truth[usize::from(x) / 64] |= 1 << (x % 64);
    }
    truth
}

/// The truth table of an output bit of the S-box, or of its inverse, whose input is added to a constant.
pub(crate) fn of_sbox(bit: usize, constant: u8, inverse: bool) -> Truth {
    truth(|x| aes::sub_byte(x ^ constant, inverse) >> bit & 1 == 1)
}

/// The sum of two functions.
pub(crate) fn sum(x: Truth, y: Truth) -> Truth {
    std::array::from_fn(|word| x[word] ^ y[word])
}
