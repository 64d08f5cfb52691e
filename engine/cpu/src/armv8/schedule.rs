//! Key expansion (FIPS 197, 5.2) with the S-box of the AES instructions.

use std::arch::aarch64::*;

use lockstep_core::key::expand;
use zeroize::Zeroize;

use super::vector::{block, vector};
use crate::kernel::Block;
use crate::kernel::boxed;

/// Round keys in the order of use: one more key than there are rounds.
pub(crate) type RoundKeys = [Block];

/// Maximum number of round keys (AES-256).
const MOST: usize = 15;

/// Round keys for both directions; zeroed on drop.
pub struct Schedule {
    /// On the heap, so that moving a schedule leaves no copy of the keys behind.
    keys: Box<Both>,
}

struct Both {
    encryption: [Block; MOST],
    decryption: [Block; MOST],
    /// Number of round keys.
    len: usize,
}

impl Drop for Both {
    fn drop(&mut self) {
        self.encryption.zeroize();
        self.decryption.zeroize();
    }
}

impl Schedule {
    /// A schedule without a key; `None` if memory cannot be allocated.
    pub(crate) fn blank() -> Option<Self> {
        let blank = || Both { encryption: [[0; 16]; MOST], decryption: [[0; 16]; MOST], len: MOST };
        Some(Schedule { keys: boxed::try_new(blank)? })
    }

    /// Replaces the key, which has 16, 24 or 32 bytes.
    #[target_feature(enable = "neon,aes")]
    pub(crate) fn set(&mut self, key: &[u8]) {
        let Both { encryption, decryption, len } = &mut *self.keys;
        *len = expand(key, encryption, |word| sub_word(word));
        decryption[0] = encryption[*len - 1];
        decryption[*len - 1] = encryption[0];
        for i in 1..*len - 1 {
            decryption[i] = block(vaesimcq_u8(vector(&encryption[*len - 1 - i])));
        }
        // The remaining round keys of a longer key.
        encryption[*len..].as_flattened_mut().zeroize();
        decryption[*len..].as_flattened_mut().zeroize();
    }

    /// Replaces this schedule by a copy of another.
    pub(crate) fn copy_from(&mut self, other: &Schedule) {
        self.keys.encryption = other.keys.encryption;
        self.keys.decryption = other.keys.decryption;
        self.keys.len = other.keys.len;
    }

    /// Round keys of the cipher, or of the equivalent inverse cipher.
    #[inline]
    pub(crate) fn keys<const ENCRYPTS: bool>(&self) -> &RoundKeys {
        let keys = if ENCRYPTS { &self.keys.encryption } else { &self.keys.decryption };
        &keys[..self.keys.len]
    }

    /// Number of round keys.
    pub(crate) fn len(&self) -> usize {
        self.keys.len
    }
}

/// SubWord. ShiftRows does not change a state of four equal columns, so AESE with a zero key computes SubBytes.
#[inline]
#[target_feature(enable = "neon,aes")]
fn sub_word(word: [u8; 4]) -> [u8; 4] {
    let state = vreinterpretq_u8_u32(vdupq_n_u32(u32::from_le_bytes(word)));
    vgetq_lane_u32::<0>(vreinterpretq_u32_u8(vaeseq_u8(state, vdupq_n_u8(0)))).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_key_leaves_nothing_of_a_longer_one() {
        if !std::arch::is_aarch64_feature_detected!("aes") {
            return;
        }
        let mut schedule = Schedule::blank().unwrap();
        // SAFETY: the processor has the instructions.
        unsafe {
            schedule.set(&[7; 32]);
            schedule.set(&[9; 16]);
        }
        for keys in [&schedule.keys.encryption, &schedule.keys.decryption] {
            assert!(keys[11..].as_flattened().iter().all(|byte| *byte == 0));
        }
    }
}
