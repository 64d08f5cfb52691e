//! Key expansion (FIPS 197, 5.2) with the S-box of the AES instructions.

use std::arch::aarch64::*;

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
    len: usize,
}

struct Both {
    encryption: [Block; MOST],
    decryption: [Block; MOST],
}

impl Drop for Both {
    fn drop(&mut self) {
        self.encryption.zeroize();
        self.decryption.zeroize();
    }
}

impl Schedule {
    /// Round keys of the cipher.
    #[inline]
    pub(crate) fn encryption(&self) -> &RoundKeys {
        &self.keys.encryption[..self.len]
    }

    /// Round keys of the equivalent inverse cipher.
    #[inline]
    pub(crate) fn decryption(&self) -> &RoundKeys {
        &self.keys.decryption[..self.len]
    }

    /// A copy of this value; `None` if memory cannot be allocated.
    pub(crate) fn duplicate(&self) -> Option<Self> {
        let (encryption, decryption) = (self.keys.encryption, self.keys.decryption);
        Some(Schedule { keys: boxed::try_new(Both { encryption, decryption })?, len: self.len })
    }

    /// Number of round keys.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// SubWord. ShiftRows does not change a state of four equal columns, so AESE with a zero key computes SubBytes.
#[inline]
#[target_feature(enable = "neon,aes")]
fn sub_word(word: u32) -> u32 {
    let state = vreinterpretq_u8_u32(vdupq_n_u32(word));
    vgetq_lane_u32::<0>(vreinterpretq_u32_u8(vaeseq_u8(state, vdupq_n_u8(0))))
}

/// Expands a key of 16, 24 or 32 bytes.
#[target_feature(enable = "neon,aes")]
pub(crate) fn expand(key: &[u8]) -> Schedule {
    assert!(matches!(key.len(), 16 | 24 | 32), "an AES key has 16, 24 or 32 bytes");
    let nk = key.len() / 4;
    let len = nk + 7;
    let mut keys = Box::new(Both { encryption: [[0; 16]; MOST], decryption: [[0; 16]; MOST] });
    let Both { encryption, decryption } = &mut *keys;

    let bytes = encryption.as_flattened_mut();
    bytes[..key.len()].copy_from_slice(key);
    let mut rcon = 1u32;
    for i in nk..4 * len {
        let word_at = |bytes: &[u8], i: usize| {
            u32::from_le_bytes([bytes[4 * i], bytes[4 * i + 1], bytes[4 * i + 2], bytes[4 * i + 3]])
        };
        let mut word = word_at(bytes, i - 1);
        if i % nk == 0 {
            word = sub_word(word.rotate_right(8)) ^ rcon;
            rcon = (rcon << 1) ^ (0x11b & 0u32.wrapping_sub(rcon >> 7));
        } else if nk == 8 && i % nk == 4 {
            word = sub_word(word);
        }
        word ^= word_at(bytes, i - nk);
        bytes[4 * i..4 * i + 4].copy_from_slice(&word.to_le_bytes());
    }

    decryption[0] = encryption[len - 1];
    decryption[len - 1] = encryption[0];
    for i in 1..len - 1 {
        decryption[i] = block(vaesimcq_u8(vector(&encryption[len - 1 - i])));
    }
    Schedule { keys, len }
}
