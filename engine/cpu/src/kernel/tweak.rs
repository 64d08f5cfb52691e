//! XTS tweaks: multiplication by alpha in GF(2^128), in constant time (IEEE 1619, 5.2).

use super::Block;

/// The tweak of the next block. Both tweaks are little-endian numbers.
#[inline(always)]
pub(crate) fn double(tweak: u128) -> u128 {
    (tweak << 1) ^ (0x87 & 0u128.wrapping_sub(tweak >> 127))
}

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

/// Advances a tweak by `blocks` blocks. It uses repeated squaring, so the time is logarithmic in `blocks`.
pub(crate) fn advance(tweak: &mut Block, blocks: u64) {
    let mut t = u128::from_le_bytes(*tweak);
    // Multiplies `t` by alpha^(2^i) for each bit i of `blocks` that is set.
    let mut power: u128 = 2;
    let mut left = blocks;
    if left < 16 {
        (0..left).for_each(|_| t = double(t));
        left = 0;
    }
    while left > 0 {
        if left & 1 == 1 {
            t = multiply(t, power);
        }
        power = multiply(power, power);
        left >>= 1;
    }
    *tweak = t.to_le_bytes();
}

/// The product in GF(2^128), in constant time.
fn multiply(mut x: u128, y: u128) -> u128 {
    let mut product = 0;
    for bit in 0..128 {
        product ^= x & 0u128.wrapping_sub((y >> bit) & 1);
        x = double(x);
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubling_reduces() {
        assert_eq!(double(1), 2);
        assert_eq!(double(1 << 127), 0x87);
        assert_eq!(double((1 << 127) | 1), 0x85);
    }

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
