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
    let mut t = u128::from_le_bytes(*tweak);
    if blocks < 16 {
        (0..blocks).for_each(|_| t = double(t));
    } else {
        t = times(t, power_of_x(blocks));
    }
    *tweak = t.to_le_bytes();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advance_matches_repeated_doubling() {
        let start = 0x1234_5678_9abc_def0_0fed_cba9_8765_4321u128.to_le_bytes();
        let mut slow = u128::from_le_bytes(start);
        for blocks in 0..2000 {
            let mut tweak = start;
            advance(&mut tweak, blocks);
            assert_eq!(u128::from_le_bytes(tweak), slow, "{blocks}");
            slow = double(slow);
        }
    }

    #[test]
    fn take_advances_the_tweak() {
        let mut tweak = (1u128 << 126).to_le_bytes();
        let mut seen = Vec::new();
        take(&mut tweak, 2, |_, t| seen.push(u128::from_le_bytes(t)));
        assert_eq!(seen, [1 << 126, 1 << 127]);
        assert_eq!(u128::from_le_bytes(tweak), 0x87);
    }
}
