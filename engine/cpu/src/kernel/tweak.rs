//! XTS tweaks, which are multiplied by alpha in constant time (IEEE 1619, 5.2).

pub(crate) use lockstep_core::xts::double;
use lockstep_core::xts::{power_of_x, times};

use super::Block;

/// Passes the tweaks of the next `blocks` blocks to `each` and advances `tweak` past them.
#[inline(always)]
pub(crate) fn take(tweak: &mut Block, blocks: usize, mut each: impl FnMut(usize, Block)) {
    let mut t = u128::from_le_bytes(*tweak);
    for i in 0..blocks {
        each(i, t.to_le_bytes());
        t = double(t);
    }
    *tweak = t.to_le_bytes();
}

/// Advances a tweak by `blocks` blocks, whose number is public. For many blocks, the time is logarithmic in the number.
pub(crate) fn advance(tweak: &mut Block, blocks: u64) {
    if blocks == 0 {
        // The tweak is not stored again: a load by a vector would have to wait for two stores of words.
        return;
    }
    let mut t = u128::from_le_bytes(*tweak);
    if blocks < 16 {
        (0..blocks).for_each(|_| t = double(t));
    } else {
        t = times(t, power_of_x(blocks));
    }
    *tweak = t.to_le_bytes();
}

#[cfg(test)]
mod tests;
