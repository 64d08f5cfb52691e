//! The domain of taint: each byte has a concrete value and a mask of the bits that depend on secrets.
//!
//! The mask is a superset of the dependent bits. It is exact for single operations of logic and for shifts.

use crate::aes;
use crate::value::{Domain, Flag, Number, Shift, low_bits};

/// A byte with its secret bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tainted {
    value: u8,
    secret: u8,
}

impl Tainted {
    /// A byte all of whose bits are secret.
    pub fn secret(value: u8) -> Tainted {
        Tainted { value, secret: 0xff }
    }
}

/// The domain of taint.
#[derive(Clone, Copy, Default)]
pub struct Taint;

/// The lowest bit of `mask` and all bits above it, because a carry can spread to all of them.
fn upwards(mask: u64) -> u64 {
    if mask == 0 { 0 } else { u64::MAX << mask.trailing_zeros() }
}

/// Writes a number to the bytes of a lane.
fn put(number: Number, lane: &mut [Tainted]) {
    let parts = number.value.to_le_bytes().into_iter().zip(number.secret.to_le_bytes());
    for (byte, (value, secret)) in lane.iter_mut().zip(parts) {
        *byte = Tainted { value, secret };
    }
}

/// The bits of a function of three bits, for eight bits at once. The value for x, y and z is bit 4x + 2y + z of `table`.
#[inline]
fn function_of_three(table: u8, x: u8, y: u8, z: u8) -> u8 {
    let of_z = |bits: u8| match bits & 3 {
        0 => 0,
        1 => !z,
        2 => z,
        _ => 0xff,
    };
    let of_y = |bits: u8| y & of_z(bits >> 2) | !y & of_z(bits);
    x & of_y(table >> 4) | !x & of_y(table)
}

impl Domain for Taint {
    type Byte = Tainted;

    const HAS_VALUES: bool = true;

    fn constant(value: u8) -> Tainted {
        Tainted { value, secret: 0 }
    }

    fn value(byte: Tainted) -> u8 {
        byte.value
    }

    fn secret(byte: Tainted) -> u8 {
        byte.secret
    }

    fn xor(&mut self, x: Tainted, y: Tainted) -> Tainted {
        Tainted { value: x.value ^ y.value, secret: x.secret | y.secret }
    }

    fn and(&mut self, x: Tainted, y: Tainted) -> Tainted {
        // A public zero determines the result.
        let secret = x.secret & (y.secret | y.value) | y.secret & x.value;
        Tainted { value: x.value & y.value, secret }
    }

    fn ternary(&mut self, table: u8, x: Tainted, y: Tainted, z: Tainted) -> Tainted {
        let value = function_of_three(table, x.value, y.value, z.value);
        if x.secret | y.secret | z.secret == 0 {
            return Self::constant(value);
        }
        // If all bits of the inputs are secret, all bits of the result are, unless the function is constant.
        if x.secret & y.secret & z.secret == 0xff {
            return self.opaque(value, if matches!(table, 0 | 0xff) { 0 } else { 0xff });
        }
        // A bit is secret if it is 1 for some values of the secret inputs and 0 for others.
        let (mut ones, mut zeros) = (0, 0);
        for values in 0..8u8 {
            let input = |bit: u8, input: Tainted| {
                if values >> bit & 1 == 1 { input.value | input.secret } else { input.value & !input.secret }
            };
            let result = function_of_three(table, input(2, x), input(1, y), input(0, z));
            ones |= result;
            zeros |= !result;
        }
        Tainted { value, secret: ones & zeros }
    }

    fn shift(&mut self, lane: &mut [Tainted], shift: Shift, count: u32) {
        let number = Number::of::<Self>(lane);
        let unused = 64 - 8 * lane.len() as u32;
        let moved = |bits: u64| match shift {
            Shift::Left => bits.checked_shl(count).unwrap_or(0),
            Shift::Right => bits.checked_shr(count).unwrap_or(0),
            Shift::Arithmetic => ((bits << unused) as i64 >> unused >> count.min(63)) as u64,
        };
        put(Number { value: moved(number.value), secret: moved(number.secret) }, lane);
    }

    fn add(&mut self, x: &[Tainted], y: &[Tainted], carry: Flag, sum: &mut [Tainted]) {
        let (x, y) = (Number::of::<Self>(x), Number::of::<Self>(y));
        let value = x.value.wrapping_add(y.value).wrapping_add(carry.value.into());
        let secret = upwards(x.secret | y.secret | u64::from(carry.secret));
        put(Number { value, secret: secret & low_bits(sum.len()) }, sum);
    }

    fn carryless(&mut self, x: &[Tainted; 16], y: &[Tainted; 16], halves: [usize; 2]) -> [Tainted; 16] {
        let half = |block: &[Tainted; 16], start: usize| Number::of::<Self>(&block[start..start + 8]);
        let (x, y) = (half(x, halves[0]), half(y, halves[1]));
        let product = |x: u64, y: u64| {
            (0..64).filter(|bit| y >> bit & 1 == 1).fold(0u128, |sum, bit| sum ^ u128::from(x) << bit)
        };
        let value = product(x.value, y.value);
        let is_zero = |number: Number| number.value | number.secret == 0;
        let is_secret = (x.is_secret() || y.is_secret()) && !is_zero(x) && !is_zero(y);
        value.to_le_bytes().map(|value| Tainted { value, secret: if is_secret { 0xff } else { 0 } })
    }

    fn sub_byte(&mut self, byte: Tainted, inverse: bool) -> Tainted {
        self.opaque(aes::sub_byte(byte.value, inverse), byte.secret)
    }

    fn mix_column(&mut self, column: [Tainted; 4], inverse: bool) -> [Tainted; 4] {
        let secret = column.iter().fold(0, |secret, byte| secret | byte.secret);
        let values = aes::mix_column(column.map(|byte| byte.value), inverse);
        values.map(|value| self.opaque(value, secret))
    }

    fn look_up(&mut self, table: &[Tainted], index: Tainted) -> Tainted {
        let found = table[usize::from(index.value) & (table.len() - 1)];
        if index.secret == 0 { found } else { Tainted::secret(found.value) }
    }

    fn select(&mut self, flag: Flag, x: Tainted, y: Tainted) -> Tainted {
        let chosen = if flag.value { x } else { y };
        let differing = if flag.secret { x.value ^ y.value | x.secret | y.secret } else { 0 };
        Tainted { value: chosen.value, secret: chosen.secret | differing }
    }

    fn opaque(&mut self, value: u8, secret: u8) -> Tainted {
        Tainted { value, secret: if secret == 0 { 0 } else { 0xff } }
    }

    fn marked(&mut self, x: Tainted, y: Tainted) -> Tainted {
        Tainted { value: x.value, secret: x.secret | y.secret | x.value ^ y.value }
    }

    fn or(&mut self, x: Tainted, y: Tainted) -> Tainted {
        // A public one determines the result.
        let secret = x.secret & (y.secret | !y.value) | y.secret & !x.value;
        Tainted { value: x.value | y.value, secret }
    }
}

#[cfg(test)]
mod tests;
