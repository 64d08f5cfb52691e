//! Permutations of the bytes of a block, as control words of `shufb`. Byte `i` of the result is byte `p[i]` of the
//! source.

pub(crate) type Permutation = [u8; 16];

/// ShiftRows (FIPS 197, 5.1.2).
pub(crate) const SHIFT_ROWS: Permutation = [0, 5, 10, 15, 4, 9, 14, 3, 8, 13, 2, 7, 12, 1, 6, 11];

pub(crate) const IDENTITY: Permutation = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Rotates each column: row `r` is taken from row `r + by`.
pub(crate) fn rotated(by: usize) -> Permutation {
    std::array::from_fn(|i| (i / 4 * 4 + (i + by) % 4) as u8)
}

/// Returns the composition of two permutations: `first`, followed by `then`.
pub(crate) fn after(first: &Permutation, then: &Permutation) -> Permutation {
    then.map(|at| first[usize::from(at)])
}

pub(crate) fn inverse(p: &Permutation) -> Permutation {
    let mut back = [0; 16];
    for (i, &at) in p.iter().enumerate() {
        back[usize::from(at)] = i as u8;
    }
    back
}
