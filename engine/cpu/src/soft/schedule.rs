//! Key expansion (FIPS 197, 5.2) in constant time, and round keys as bit planes.

use lockstep_core::sbox::{self, AFFINE};
use zeroize::Zeroize;

use super::planes::{MOST, Narrow, Plane, Wide};
use super::vector::Vector;
use crate::kernel::Block;
use crate::kernel::boxed;

/// Maximum number of round keys (AES-256).
const ROUND_KEYS: usize = 15;

/// Round keys as bit planes, for both directions; zeroed on drop.
///
/// All round keys but the first include the affine constant of the S-box.
pub(crate) struct Keys<S: Copy + Zeroize> {
    planes: [[S; 8]; ROUND_KEYS],
    len: usize,
}

impl<S: Copy + Zeroize> Keys<S> {
    fn blank<P: Plane<Stored = S>>(len: usize) -> Self {
        Keys { planes: [[P::blank(); 8]; ROUND_KEYS], len }
    }

    /// The first round key, the round keys between the first and the last, and the last round key.
    #[inline(always)]
    pub(crate) fn split(&self) -> (&[S; 8], &[[S; 8]], &[S; 8]) {
        (&self.planes[0], &self.planes[1..self.len - 1], &self.planes[self.len - 1])
    }

    /// Combines the round keys of `schedules`, one schedule for each block. All keys must have the same number of rounds.
    pub(crate) fn gather<P: Plane<Stored = S>>(schedules: &[&Schedule]) -> Self {
        let mut keys = Keys::blank::<P>(schedules[0].len());
        let mut blocks = [Vector::zero(); MOST];
        for (round, planes) in keys.planes[..keys.len].iter_mut().enumerate() {
            for (block, schedule) in blocks.iter_mut().zip(schedules) {
                *block = Vector::from_block(schedule.keys.bytes[round]);
            }
            *planes = P::gather(&blocks);
        }
        blocks.zeroize();
        keys
    }

    /// Sets the same round keys for all blocks.
    fn repeat<P: Plane<Stored = S>>(&mut self, round_keys: &[Block]) {
        for (planes, round_key) in self.planes[..self.len].iter_mut().zip(round_keys) {
            *planes = P::repeat(Vector::from_block(*round_key));
        }
    }
}

impl<S: Copy + Zeroize> Drop for Keys<S> {
    fn drop(&mut self) {
        self.planes[..self.len].iter_mut().zeroize();
    }
}

/// Round keys of the bitsliced kernel; zeroed on drop.
pub struct Schedule {
    /// On the heap, so that moving a schedule leaves no copy of the keys behind.
    keys: Box<Both>,
}

/// The round keys in two formats. All round keys but the first include the affine constant.
struct Both {
    bytes: [Block; ROUND_KEYS],
    narrow: Keys<Vector>,
}

impl Both {
    fn blank(len: usize) -> Self {
        Both { bytes: [[0; 16]; ROUND_KEYS], narrow: Keys::blank::<Narrow<Vector>>(len) }
    }
}

impl Drop for Both {
    fn drop(&mut self) {
        self.bytes.as_flattened_mut().zeroize();
    }
}

impl Schedule {
    /// Expands a key of 16, 24 or 32 bytes.
    pub(crate) fn new(key: &[u8]) -> Self {
        let len = key.len() / 4 + 7;
        Schedule::fill(Box::new(Both::blank(len)), key)
    }

    /// Like [`Schedule::new`], but `None` if memory cannot be allocated.
    pub(crate) fn try_new(key: &[u8]) -> Option<Self> {
        let len = key.len() / 4 + 7;
        Some(Schedule::fill(boxed::try_new(Both::blank(len))?, key))
    }

    /// A copy of this value.
    pub(crate) fn duplicate(&self) -> Option<Self> {
        let mut keys = boxed::try_new(Both::blank(self.len()))?;
        keys.bytes = self.keys.bytes;
        keys.narrow.planes = self.keys.narrow.planes;
        Some(Schedule { keys })
    }

    fn fill(mut keys: Box<Both>, key: &[u8]) -> Self {
        assert!(matches!(key.len(), 16 | 24 | 32), "an AES key has 16, 24 or 32 bytes");
        let nk = key.len() / 4;
        let len = nk + 7;

        let (words, _) = keys.bytes.as_flattened_mut().as_chunks_mut::<4>();
        words[..nk].as_flattened_mut().copy_from_slice(key);
        let mut rcon = 1u32;
        for i in nk..4 * len {
            let mut word = words[i - 1];
            if i % nk == 0 {
                word.rotate_left(1);
                word = sbox::sub_word(word);
                word[0] ^= rcon as u8;
                rcon = (rcon << 1) ^ (0x11b & 0u32.wrapping_sub(rcon >> 7));
            } else if nk == 8 && i % nk == 4 {
                word = sbox::sub_word(word);
            }
            words[i] = std::array::from_fn(|j| words[i - nk][j] ^ word[j]);
        }

        for byte in keys.bytes[1..len].as_flattened_mut() {
            *byte ^= AFFINE;
        }
        let Both { bytes, narrow } = &mut *keys;
        narrow.repeat::<Narrow<Vector>>(bytes);
        Schedule { keys }
    }

    /// Round keys for [`Narrow`] planes.
    pub(crate) fn narrow(&self) -> &Keys<Vector> {
        &self.keys.narrow
    }

    /// Round keys for [`Wide`] planes.
    pub(crate) fn wide(&self) -> Keys<Wide> {
        let mut keys = Keys::blank::<Wide>(self.len());
        keys.repeat::<Wide>(&self.keys.bytes);
        keys
    }

    /// Number of round keys: the number of rounds plus one.
    pub(crate) fn len(&self) -> usize {
        self.keys.narrow.len
    }
}
