//! Single blocks under several keys: one step of a serial mode.
//!
//! With a key for each block, wider vectors would have to be assembled from 16-byte loads in each round. All kernels
//! therefore use vectors of one block: two rounds start in each cycle, and 8 blocks fill the 4 cycles of latency.

use super::cipher::{Keys, middle_rounds};
use super::schedule::Schedule;
use super::vector::{Single, Vector};
use crate::kernel::{Block, LANES};

/// Processes N blocks under N keys of `rounds` rounds.
///
/// # Safety
///
/// The same as for [`Vector`], with [`Single`] as the vector. In addition, there are N keys of `rounds` rounds, and N blocks.
#[inline(always)]
unsafe fn interleaved<const ENCRYPTS: bool, const N: usize>(
    rounds: usize,
    keys: &[&Schedule],
    blocks: &mut [Block],
) {
    // SAFETY: the caller guarantees the conditions of this function.
    unsafe {
        let key = |i: usize, round: usize| Keys::of::<ENCRYPTS>(keys.get_unchecked(i)).get::<Single>(round);
        let blocks: *mut u8 = blocks.as_mut_ptr().cast();
        let mut x = [Single::load(blocks); N];
        for i in 0..N {
            x[i] = Single::load(blocks.add(16 * i)).xor(key(i, 0));
        }
        middle_rounds!(rounds, round => {
            for i in 0..N {
                x[i] = x[i].round::<ENCRYPTS>(key(i, round));
            }
        });
        for i in 0..N {
            x[i].last::<ENCRYPTS>(key(i, rounds)).store(blocks.add(16 * i));
        }
    }
}

/// Encrypts or decrypts `blocks[i]` under `keys[i]`.
///
/// # Safety
///
/// The same as for [`Vector`], with [`Single`] as the vector.
#[inline(always)]
pub(super) unsafe fn each<const ENCRYPTS: bool>(keys: &[&Schedule], blocks: &mut [Block]) {
    assert_eq!(keys.len(), blocks.len(), "as many keys as blocks");
    assert!(keys.len() <= LANES, "at most {LANES} at a time");
    let mut start = 0;
    while start < keys.len() {
        let (keys, blocks) = (&keys[start..], &mut blocks[start..]);
        // Processes the next blocks whose keys have the same length: 8, 4, 2 or 1 of them.
        let rounds = keys[0].rounds;
        let alike = keys.iter().take(8).take_while(|key| key.rounds == rounds).count();
        macro_rules! interleaved {
            ($n:literal) => {{
                // SAFETY: the caller guarantees that the processor has the instructions. The next N keys have the same
                // length.
                unsafe { interleaved::<ENCRYPTS, $n>(rounds, keys, blocks) };
                start += $n;
            }};
        }
        match alike {
            8.. => interleaved!(8),
            4.. => interleaved!(4),
            2.. => interleaved!(2),
            _ => interleaved!(1),
        }
    }
}
