//! Round keys in the format of `opengl/fixslice`.

use lockstep_core::{Block, Key};
use zeroize::Zeroizing;

/// Words of one round key: eight bit planes of two blocks.
pub(crate) const PLANES: usize = 8;

/// The round keys of a key in the order of use, as bit planes. Bit 8 * row + 2 * column + block of a plane belongs to the
/// byte in this row and column of this block (0 or 1).
///
/// The shader omits ShiftRows, so in round r its state lacks r ShiftRows (for decryption, r InvShiftRows). The bytes of the
/// round keys are moved in the same way, except for the key before the first round and the key after the last round.
pub(crate) fn planes(key: &Key, decrypts: bool) -> Zeroizing<Vec<u32>> {
    let keys = key.round_keys().as_blocks();
    let rounds = keys.len() - 1;
    let mut words = Zeroizing::new(Vec::with_capacity(PLANES * keys.len()));
    for round in 0..=rounds {
        let key = if decrypts { &keys[rounds - round] } else { &keys[round] };
        let turns = match round {
            _ if round == rounds => 0,
            _ if decrypts => round,
            _ => 4 - round % 4,
        };
        let moved = Zeroizing::new(shift_rows(key, turns % 4));
        let planes = Zeroizing::new(transposed(&moved));
        words.extend_from_slice(&planes[..]);
    }
    words
}

/// ShiftRows (FIPS 197, section 5.1.2), `turns` times.
fn shift_rows(block: &Block, turns: usize) -> Block {
    std::array::from_fn(|at| {
        let (column, row) = (at / 4, at % 4);
        block[4 * ((column + turns * row) % 4) + row]
    })
}

/// Two copies of a block as bit planes.
fn transposed(block: &Block) -> [u32; PLANES] {
    std::array::from_fn(|plane| {
        block.iter().enumerate().fold(0, |word, (at, byte)| {
            let (column, row) = (at / 4, at % 4);
            word | ((u32::from(byte >> plane & 1) * 3) << (8 * row + 2 * column))
        })
    })
}

#[cfg(test)]
mod tests;
