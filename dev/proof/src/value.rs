//! Values: the state of a byte of a register or of memory during an analysis.
//!
//! The machine is generic over a [`Domain`]. [`Taint`](crate::taint::Taint) is the domain of bytes with a value and a mask of secret bits.
//! [`Symbols`](crate::symbols::Symbols) is the domain of expressions, whose secret bytes have no values.

use std::fmt::Debug;

/// The kind of a shift.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shift {
    /// To the left; zeros enter.
    Left,
    /// To the right; zeros enter.
    Right,
    /// To the right; copies of the sign bit enter.
    Arithmetic,
}

/// A bit of the processor's flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flag {
    /// The value. It has no meaning if the bit is secret and the domain has no values for secrets.
    pub value: bool,
    /// True if the bit depends on a secret.
    pub secret: bool,
    /// False if the manual leaves the bit undefined.
    pub defined: bool,
}

impl Flag {
    /// A flag that has not been set.
    pub const UNDEFINED: Flag = Flag { value: false, secret: false, defined: false };

    /// A defined flag.
    pub fn new(value: bool, secret: bool) -> Flag {
        Flag { value, secret, defined: true }
    }
}

/// A set of values, with the operations of instructions on them.
///
/// Bytes are in little-endian order. An operation on a lane takes at most eight bytes.
pub trait Domain: Clone + Default {
    /// The value of a byte.
    type Byte: Copy + PartialEq + Debug;

    /// True if secret bytes also have a concrete value, so that the machine can follow a branch on a secret after it has
    /// reported the branch.
    const HAS_VALUES: bool;

    /// A public constant.
    fn constant(value: u8) -> Self::Byte;

    /// The concrete value of a byte; 0 for a symbol of a domain without values.
    fn value(byte: Self::Byte) -> u8;

    /// The bits of a byte that depend on secrets.
    fn secret(byte: Self::Byte) -> u8;

    /// The bits of `x` XOR those of `y`.
    fn xor(&mut self, x: Self::Byte, y: Self::Byte) -> Self::Byte;

    /// The bits of `x` AND those of `y`.
    fn and(&mut self, x: Self::Byte, y: Self::Byte) -> Self::Byte;

    /// Each bit of the result is bit 4x + 2y + z of `table` (as for VPTERNLOG).
    fn ternary(&mut self, table: u8, x: Self::Byte, y: Self::Byte, z: Self::Byte) -> Self::Byte;

    /// Shifts a lane by `count` bits, where `count` may exceed the number of bits.
    fn shift(&mut self, lane: &mut [Self::Byte], shift: Shift, count: u32);

    /// The sum of two lanes of the same length and a carry.
    fn add(&mut self, x: &[Self::Byte], y: &[Self::Byte], carry: Flag, sum: &mut [Self::Byte]);

    /// The carry-less product of a half of `x` and a half of `y`, which start at the bytes `halves`: 0 or 8.
    fn carryless(
        &mut self,
        x: &[Self::Byte; 16],
        y: &[Self::Byte; 16],
        halves: [usize; 2],
    ) -> [Self::Byte; 16];

    /// The product of two numbers of 64 bits. `None` if the domain has no expressions for it.
    fn multiply(&mut self, _x: &[Self::Byte; 8], _y: &[Self::Byte; 8]) -> Option<[Self::Byte; 16]> {
        None
    }

    /// The S-box of AES, or its inverse.
    fn sub_byte(&mut self, byte: Self::Byte, inverse: bool) -> Self::Byte;

    /// MixColumns of one column, or its inverse.
    fn mix_column(&mut self, column: [Self::Byte; 4], inverse: bool) -> [Self::Byte; 4];

    /// The byte of `table` at an index below its length (the length is a power of two).
    fn look_up(&mut self, table: &[Self::Byte], index: Self::Byte) -> Self::Byte;

    /// `x` if the flag is set, otherwise `y`.
    fn select(&mut self, flag: Flag, x: Self::Byte, y: Self::Byte) -> Self::Byte;

    /// The result of an operation for which the domain has no method. `value` is the result for the concrete values of the operands.
    /// `secret` is the mask of the bits that may depend on secrets.
    fn opaque(&mut self, value: u8, secret: u8) -> Self::Byte;

    /// `x`, with all bits marked as secret that differ in `y`.
    fn marked(&mut self, x: Self::Byte, y: Self::Byte) -> Self::Byte {
        if x == y { x } else { self.opaque(Self::value(x), 0xff) }
    }

    /// The bits of `x` OR those of `y`.
    fn or(&mut self, x: Self::Byte, y: Self::Byte) -> Self::Byte {
        let both = self.and(x, y);
        let either = self.xor(x, y);
        self.xor(both, either)
    }

    /// The bits of `x` inverted.
    fn not(&mut self, x: Self::Byte) -> Self::Byte {
        self.xor(x, Self::constant(0xff))
    }
}

/// A number of at most 64 bits, with the bits that depend on secrets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Number {
    /// The concrete value.
    pub value: u64,
    /// The mask of secret bits.
    pub secret: u64,
}

impl Number {
    /// The number of at most eight bytes.
    pub fn of<D: Domain>(bytes: &[D::Byte]) -> Number {
        let join = |part: fn(D::Byte) -> u8| {
            bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(part(*byte)))
        };
        Number { value: join(D::value), secret: join(D::secret) }
    }

    /// True if a bit depends on a secret.
    pub fn is_secret(self) -> bool {
        self.secret != 0
    }
}

/// The mask of the low bits of a lane of `size` bytes.
pub fn low_bits(size: usize) -> u64 {
    u64::MAX >> (64 - 8 * size.min(8))
}
