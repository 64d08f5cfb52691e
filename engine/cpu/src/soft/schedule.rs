//! Key expansion (FIPS 197, 5.2) in constant time, and round keys as bit planes.

use lockstep_core::key::expand;
use lockstep_core::sbox::{self, AFFINE};
use zeroize::Zeroize;

use super::planes::{Narrow, Plane, Wide, gather};
use super::vector::Vector;
use crate::kernel::Block;
use crate::kernel::boxed;

/// Maximum number of round keys (AES-256).
const ROUND_KEYS: usize = 15;

/// Number of blocks that may have different keys.
pub(crate) const FEW: usize = 8;

/// Round keys as bit planes, for both directions; zeroed on drop.
///
/// All round keys but the first include the affine constant of the S-box.
pub(crate) struct Keys<S: Copy + Zeroize> {
    planes: [[S; 8]; ROUND_KEYS],
    len: usize,
}

impl<S: Copy + Zeroize> Keys<S> {
    fn blank<P: Plane<Stored = S>>(len: usize) -> Self {
        Keys { planes: [P::repeat(Vector::zero()); ROUND_KEYS], len }
    }

    /// The first round key, the round keys between the first and the last, and the last round key.
    #[inline(always)]
    pub(crate) fn split(&self) -> (&[S; 8], &[[S; 8]], &[S; 8]) {
        (&self.planes[0], &self.planes[1..self.len - 1], &self.planes[self.len - 1])
    }

    /// Sets the same round keys for all blocks.
    fn repeat<P: Plane<Stored = S>>(&mut self, round_keys: &[Block]) {
        for (planes, round_key) in self.planes[..self.len].iter_mut().zip(round_keys) {
            *planes = P::repeat(Vector::from_block(*round_key));
        }
    }
}

impl Keys<Vector> {
    /// Combines the round keys of at most [`FEW`] schedules, one schedule for each block. All keys must have the same number of
    /// rounds.
    pub(crate) fn gather(schedules: &[&Schedule]) -> Self {
        let mut keys = Keys::blank::<Narrow<Vector>>(schedules[0].len());
        let mut blocks = [Vector::zero(); FEW];
        for (round, planes) in keys.planes[..keys.len].iter_mut().enumerate() {
            for (block, schedule) in blocks.iter_mut().zip(schedules) {
                *block = Vector::from_block(schedule.keys.bytes[round]);
            }
            *planes = gather(blocks);
        }
        blocks.zeroize();
        keys
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

impl Drop for Both {
    fn drop(&mut self) {
        self.bytes.as_flattened_mut().zeroize();
    }
}

impl Schedule {
    /// A schedule without a key; `None` if memory cannot be allocated.
    pub(crate) fn blank() -> Option<Self> {
        let narrow = || Keys::blank::<Narrow<Vector>>(ROUND_KEYS);
        let both = || Both { bytes: [[0; 16]; ROUND_KEYS], narrow: narrow() };
        Some(Schedule { keys: boxed::try_new(both)? })
    }

    /// Replaces the key, which has 16, 24 or 32 bytes.
    pub(crate) fn set(&mut self, key: &[u8]) {
        let Both { bytes, narrow } = &mut *self.keys;
        narrow.len = expand(key, bytes, sbox::sub_word);
        // The remaining round keys of a longer key are erased, because a drop wipes only those in use.
        narrow.planes[narrow.len..].iter_mut().zeroize();
        for byte in bytes[1..narrow.len].as_flattened_mut() {
            *byte ^= AFFINE;
        }
        narrow.repeat::<Narrow<Vector>>(bytes);
    }

    /// Replaces this schedule by a copy of another.
    pub(crate) fn copy_from(&mut self, other: &Schedule) {
        self.keys.bytes = other.keys.bytes;
        self.keys.narrow.planes = other.keys.narrow.planes;
        self.keys.narrow.len = other.keys.narrow.len;
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
