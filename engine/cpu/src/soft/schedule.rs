//! Key expansion (FIPS 197, 5.2) in constant time, and round keys as bit planes.

use lockstep_core::key::expand;
use lockstep_core::sbox::{self, AFFINE};
use zeroize::Zeroize;

use super::planes::convert;
use super::vector::Vector;
use crate::kernel::Block;
use crate::kernel::boxed;

/// Maximum number of round keys (AES-256).
pub(crate) const ROUND_KEYS: usize = 15;

/// Number of blocks that may have different keys.
pub(crate) const FEW: usize = 8;

/// Round keys as bit planes, for both directions; zeroed on drop.
///
/// All round keys but the first include the affine constant of the S-box.
pub(crate) struct Keys {
    planes: [[Vector; 8]; ROUND_KEYS],
    len: usize,
}

impl Keys {
    /// Round keys of zeros.
    pub(crate) fn blank() -> Self {
        Keys { planes: [[Vector::splat(0); 8]; ROUND_KEYS], len: ROUND_KEYS }
    }

    /// All round keys.
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    #[inline(always)]
    pub(crate) fn all(&self) -> &[[Vector; 8]] {
        &self.planes[..self.len]
    }

    /// The first round key, the round keys between the first and the last, and the last round key.
    #[inline(always)]
    pub(crate) fn split(&self) -> (&[Vector; 8], &[[Vector; 8]], &[Vector; 8]) {
        (&self.planes[0], &self.planes[1..self.len - 1], &self.planes[self.len - 1])
    }

    /// Replaces these round keys by those of at most [`FEW`] schedules, one schedule for each block. All keys must have the same number
    /// of rounds.
    pub(crate) fn gather(&mut self, schedules: &[&Schedule]) {
        self.len = schedules[0].len();
        for (round, planes) in self.planes[..self.len].iter_mut().enumerate() {
            for (block, schedule) in planes.iter_mut().zip(schedules) {
                *block = Vector::from_block(schedule.keys.bytes[round]);
            }
            // SAFETY: every processor of the target has the instructions of `Vector`.
            unsafe { convert(planes) };
        }
    }
}

impl Drop for Keys {
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
    planes: Keys,
}

impl Drop for Both {
    fn drop(&mut self) {
        self.bytes.as_flattened_mut().zeroize();
    }
}

impl Schedule {
    /// A schedule without a key; `None` if memory cannot be allocated.
    pub(crate) fn blank() -> Option<Self> {
        let both = || Both { bytes: [[0; 16]; ROUND_KEYS], planes: Keys::blank() };
        Some(Schedule { keys: boxed::try_new(|| Some(both()))? })
    }

    /// Replaces the key, which has 16, 24 or 32 bytes. A function of its own, so that its frame can be wiped.
    #[inline(never)]
    pub(crate) fn set(&mut self, key: &[u8]) {
        let Both { bytes, planes: Keys { planes, len } } = &mut *self.keys;
        *len = expand(key, bytes, sbox::sub_word);
        for byte in bytes[1..*len].as_flattened_mut() {
            *byte ^= AFFINE;
        }
        for (planes, round_key) in planes.iter_mut().zip(&bytes[..*len]) {
            *planes = [Vector::from_block(*round_key); 8];
            // SAFETY: every processor of the target has the instructions of `Vector`.
            unsafe { convert(planes) };
        }
        // The remaining round keys of a longer key.
        planes[*len..].iter_mut().zeroize();
        bytes[*len..].as_flattened_mut().zeroize();
    }

    /// Replaces this schedule by a copy of another.
    pub(crate) fn copy_from(&mut self, other: &Schedule) {
        self.keys.bytes = other.keys.bytes;
        self.keys.planes.planes = other.keys.planes.planes;
        self.keys.planes.len = other.len();
    }

    /// The round keys, the same for all blocks.
    pub(crate) fn keys(&self) -> &Keys {
        &self.keys.planes
    }

    /// Number of round keys: the number of rounds plus one.
    pub(crate) fn len(&self) -> usize {
        self.keys.planes.len
    }
}

#[cfg(test)]
mod tests;
