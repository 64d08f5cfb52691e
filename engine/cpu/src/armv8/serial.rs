//! Serial modes of several messages: one block of each message at a time. Each message has its own key.

use std::arch::aarch64::*;

use super::schedule::{RoundKeys, Schedule};
use super::vector::{add, block, decrypt_with, encrypt, encrypt_with, load, store, vector};
use crate::kernel::interleave::{Slot, interleave};
use crate::kernel::{Block, Lane};

/// Numbers of round keys of AES-128, -192 and -256. Only messages with the same number of round keys are
/// processed together.
const LENGTHS: [usize; 3] = [11, 13, 15];

/// Maximum number of messages at a time.
const WIDTH: usize = 8;

#[target_feature(enable = "neon,aes")]
pub(crate) fn cbc_encrypt(lanes: &mut [Lane<'_, Schedule>]) {
    for length in LENGTHS {
        interleave(
            lanes,
            WIDTH,
            |key| key.len() == length,
            |lanes, slots, blocks| match slots.len() {
                1 => chain::<1>(lanes, slots, blocks),
                2 => chain::<2>(lanes, slots, blocks),
                3 | 4 => chain::<4>(lanes, slots, blocks),
                _ => chain::<WIDTH>(lanes, slots, blocks),
            },
        );
    }
}

/// Processes `blocks` blocks of at most `N` messages.
#[inline]
#[target_feature(enable = "neon,aes")]
fn chain<const N: usize>(lanes: &mut [Lane<'_, Schedule>], slots: &mut [Slot], blocks: usize) {
    let mut keys = [lanes[slots[0].lane].schedule.encryption(); N];
    let mut registers = [vdupq_n_u8(0); N];
    for (i, slot) in slots.iter().enumerate() {
        keys[i] = lanes[slot.lane].schedule.encryption();
        registers[i] = vector(lanes[slot.lane].register);
    }
    for _ in 0..blocks {
        let mut data = [vdupq_n_u8(0); N];
        for (data, slot) in data.iter_mut().zip(&*slots) {
            [*data] = load(&lanes[slot.lane].data, slot.next);
        }
        add(&mut registers, &data);
        encrypt_with(keys, &mut registers);
        for (register, slot) in registers.iter().zip(&mut *slots) {
            store(&mut lanes[slot.lane].data, slot.next, [*register]);
            slot.next += 1;
        }
    }
    for (register, slot) in registers.iter().zip(slots) {
        *lanes[slot.lane].register = block(*register);
    }
}

/// Calls `$cipher` on groups of blocks whose keys have the same number of rounds; `$keys_of` selects the direction.
macro_rules! each {
    ($keys:ident, $blocks:ident, $keys_of:path, $cipher:ident) => {{
        assert_eq!($keys.len(), $blocks.len(), "one key for each block");
        for length in LENGTHS {
            let mut picked: Vec<(&RoundKeys, &mut Block)> = $keys
                .iter()
                .zip(&mut *$blocks)
                .filter(|(key, _)| key.len() == length)
                .map(|(key, block)| ($keys_of(*key), block))
                .collect();
            for group in picked.chunks_mut(WIDTH) {
                let mut keys = [group[0].0; WIDTH];
                let mut vectors = [vdupq_n_u8(0); WIDTH];
                for (i, (key, block)) in group.iter().enumerate() {
                    keys[i] = *key;
                    vectors[i] = vector(block);
                }
                $cipher(keys, &mut vectors);
                for ((_, place), vector) in group.iter_mut().zip(vectors) {
                    **place = block(vector);
                }
            }
        }
    }};
}

#[target_feature(enable = "neon,aes")]
pub(crate) fn encrypt_each(keys: &[&Schedule], blocks: &mut [Block]) {
    each!(keys, blocks, Schedule::encryption, encrypt_with);
}

#[target_feature(enable = "neon,aes")]
pub(crate) fn decrypt_each(keys: &[&Schedule], blocks: &mut [Block]) {
    each!(keys, blocks, Schedule::decryption, decrypt_with);
}

/// Encrypts one block.
#[target_feature(enable = "neon,aes")]
pub(crate) fn encrypt_block(key: &Schedule, place: &mut Block) {
    let mut state = [vector(place)];
    encrypt(key, &mut state);
    *place = block(state[0]);
}
