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
mod tests {
    use super::*;

    #[test]
    fn bytes_have_their_places() {
        let block: Block = std::array::from_fn(|at| at as u8);
        // FIPS 197, figure 8: row r moves r columns to the left.
        assert_eq!(shift_rows(&block, 1), [0, 5, 10, 15, 4, 9, 14, 3, 8, 13, 2, 7, 12, 1, 6, 11]);
        assert_eq!(shift_rows(&shift_rows(&block, 3), 1), block);
        let mut one = [0; 16];
        one[4 * 2 + 3] = 0x21;
        let planes = transposed(&one);
        assert_eq!((planes[0], planes[5]), (3 << (8 * 3 + 2 * 2), 3 << (8 * 3 + 2 * 2)));
        assert_eq!(planes.iter().filter(|&&plane| plane == 0).count(), 6);
    }

    #[test]
    fn the_first_and_the_last_round_key_are_not_moved() {
        let key = Key::new(&[5; 24]).unwrap();
        for decrypts in [false, true] {
            let planes = planes(&key, decrypts);
            assert_eq!(planes.len(), PLANES * 13);
            let blocks = key.round_keys().as_blocks();
            let (first, last) = if decrypts { (12, 0) } else { (0, 12) };
            assert_eq!(planes[..PLANES], transposed(&blocks[first]));
            assert_eq!(planes[PLANES * 12..], transposed(&blocks[last]));
        }
    }
}
