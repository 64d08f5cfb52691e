//! Numbers that are linear in the number of iterations.

use std::ops::{Add, Mul, Neg, Sub};

/// How much a number grows with each iteration that has been executed, and with each iteration that is left.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Slope {
    pub(super) done: i64,
    pub(super) left: i64,
}

impl Slope {
    pub(super) fn is_zero(self) -> bool {
        self == Slope::default()
    }

    /// The number of low bits that are the same in every iteration.
    pub(super) fn fixed_bits(self) -> u32 {
        (self.done | self.left).trailing_zeros()
    }

    /// The mask of the bits that are not the same in every iteration.
    pub(super) fn changing(self) -> [u8; 8] {
        u64::MAX.checked_shl(self.fixed_bits()).unwrap_or(0).to_le_bytes()
    }

    /// The quotient by a power of two that divides both numbers.
    pub(super) fn shifted_right(self, count: u32) -> Slope {
        Slope { done: self.done >> count, left: self.left >> count }
    }
}

impl Add for Slope {
    type Output = Slope;

    fn add(self, other: Slope) -> Slope {
        Slope { done: self.done.wrapping_add(other.done), left: self.left.wrapping_add(other.left) }
    }
}

impl Mul<i64> for Slope {
    type Output = Slope;

    fn mul(self, factor: i64) -> Slope {
        Slope { done: self.done.wrapping_mul(factor), left: self.left.wrapping_mul(factor) }
    }
}

/// A signed number `least + done * m + left * r`. The counts m and r are at least zero, and their sum is at most a bound `most`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Linear {
    pub(super) least: i128,
    pub(super) slope: Slope,
}

/// Words that have a slope, and the results of operations on them, are between the negative and this number, so they never wrap around.
const LIMIT: i128 = 1 << 62;

impl Linear {
    /// The number that a word holds as a signed number.
    pub(super) fn of(word: u64, slope: Slope) -> Linear {
        Linear { least: (word as i64).into(), slope }
    }

    /// The least and the greatest value. A linear function on a triangle has both at corners.
    fn range(self, most: i64) -> [i128; 2] {
        let corners = [0, self.slope.done, self.slope.left]
            .map(|slope| self.least.saturating_add(i128::from(slope) * i128::from(most)));
        [corners.into_iter().min(), corners.into_iter().max()].map(Option::unwrap_or_default)
    }

    /// True if the number cannot wrap around.
    pub(super) fn is_small(self, most: i64) -> bool {
        let [min, max] = self.range(most);
        -LIMIT < min && max < LIMIT
    }

    /// Whether the number is negative, if this is the same for all counts.
    pub(super) fn is_negative(self, most: i64) -> Option<bool> {
        match self.range(most) {
            [min, _] if min >= 0 => Some(false),
            [_, max] if max < 0 => Some(true),
            _ => None,
        }
    }

    /// Whether the number is zero, if this is the same for all counts.
    pub(super) fn is_zero(self, most: i64) -> Option<bool> {
        match self.range(most) {
            [0, 0] => Some(true),
            [min, max] if min > 0 || max < 0 => Some(false),
            // A residue that no iteration changes is not zero.
            _ => (self.least as u64).trailing_zeros().lt(&self.slope.fixed_bits()).then_some(false),
        }
    }
}

impl Add for Linear {
    type Output = Linear;

    fn add(self, other: Linear) -> Linear {
        Linear { least: self.least + other.least, slope: self.slope + other.slope }
    }
}

impl Sub for Linear {
    type Output = Linear;

    fn sub(self, other: Linear) -> Linear {
        self + -other
    }
}

impl Neg for Linear {
    type Output = Linear;

    fn neg(self) -> Linear {
        self * -1
    }
}

impl Mul<i64> for Linear {
    type Output = Linear;

    fn mul(self, factor: i64) -> Linear {
        Linear { least: self.least.saturating_mul(factor.into()), slope: self.slope * factor }
    }
}
