//! The format of round keys.

use std::mem::zeroed;

use zeroize::Zeroize;

#[cfg(target_arch = "x86_64")]
pub(super) use super::expansion::{expand_each, expand_into, expand_to_encrypt_into};
#[cfg(target_arch = "aarch64")]
pub(super) use super::neon::{expand_each, expand_into, expand_to_encrypt_into};
use super::vector::RawBlock;

/// Round keys of one key for both directions; wiped on drop. The alignment is that of a block, for which allocation takes less time than
/// for that of a cache line.
#[repr(C, align(16))]
pub struct Schedule {
    /// Round keys of the cipher, `rounds + 1` of them.
    pub(super) encrypt: [RawBlock; 15],
    /// 10, 12 or 14.
    pub(super) rounds: usize,
    /// Zeros in place of padding. Padding could hold parts of other keys that were left on the stack, and a move
    /// would copy them.
    _gap: u64,
    /// Round keys of the equivalent inverse cipher, in the order of use. InvMixColumns is applied to all but the first and
    /// the last.
    pub(super) decrypt: [RawBlock; 15],
}

impl Schedule {
    /// A schedule without a key, to be replaced by [`expand_each`].
    #[inline(always)]
    pub(super) fn blank() -> Self {
        // SAFETY: vectors and numbers may be zero.
        unsafe { zeroed() }
    }

    /// Replaces this schedule by a copy of another. The round keys are copied to their final place only.
    pub(super) fn copy_from(&mut self, other: &Schedule) {
        self.encrypt.copy_from_slice(&other.encrypt);
        self.rounds = other.rounds;
        self.decrypt.copy_from_slice(&other.decrypt);
    }
}

impl Drop for Schedule {
    fn drop(&mut self) {
        self.encrypt.zeroize();
        self.decrypt.zeroize();
    }
}
