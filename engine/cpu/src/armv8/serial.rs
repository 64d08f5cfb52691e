//! Serial modes of several messages: one block of each message at a time. Each message has its own key.

use std::arch::aarch64::*;

use super::schedule::{RoundKeys, Schedule};
use super::vector::{add, block, crypt, crypt_with, load, store, vector};
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
        let blocks = |lane: &Lane<'_, Schedule>| match lane.schedule.len() {
            len if len == length => lane.data.len() / 16,
            _ => 0,
        };
        interleave(lanes, WIDTH, blocks, |lanes, slots, blocks| match slots.len() {
            1 => chain::<1>(lanes, slots, blocks),
            2 => chain::<2>(lanes, slots, blocks),
            3 | 4 => chain::<4>(lanes, slots, blocks),
            _ => chain::<WIDTH>(lanes, slots, blocks),
        });
    }
}

/// Processes `blocks` blocks of at most `N` messages.
#[inline]
#[target_feature(enable = "neon,aes")]
fn chain<const N: usize>(lanes: &mut [Lane<'_, Schedule>], slots: &mut [Slot], blocks: usize) {
    let mut keys = [lanes[slots[0].message].schedule.keys::<true>(); N];
    let mut registers = [vdupq_n_u8(0); N];
    for (i, slot) in slots.iter().enumerate() {
        keys[i] = lanes[slot.message].schedule.keys::<true>();
        registers[i] = vector(lanes[slot.message].register);
    }
    for _ in 0..blocks {
        let mut data = [vdupq_n_u8(0); N];
        for (data, slot) in data.iter_mut().zip(&*slots) {
            [*data] = load(&lanes[slot.message].data, slot.next);
        }
        add(&mut registers, &data);
        crypt_with::<true, N>(keys, &mut registers);
        for (register, slot) in registers.iter().zip(&mut *slots) {
            store(&mut lanes[slot.message].data, slot.next, [*register]);
            slot.next += 1;
        }
    }
    for (register, slot) in registers.iter().zip(slots) {
        *lanes[slot.message].register = block(*register);
    }
}

/// Encrypts or decrypts `blocks[i]` under `keys[i]`.
#[target_feature(enable = "neon,aes")]
pub(crate) fn each<const ENCRYPTS: bool>(keys: &[&Schedule], blocks: &mut [Block]) {
    assert_eq!(keys.len(), blocks.len(), "one key for each block");
    for length in LENGTHS {
        let mut picked: Vec<(&RoundKeys, &mut Block)> = keys
            .iter()
            .zip(&mut *blocks)
            .filter(|(key, _)| key.len() == length)
            .map(|(key, block)| (key.keys::<ENCRYPTS>(), block))
            .collect();
        for group in picked.chunks_mut(WIDTH) {
            let mut keys = [group[0].0; WIDTH];
            let mut vectors = [vdupq_n_u8(0); WIDTH];
            for (i, (key, block)) in group.iter().enumerate() {
                keys[i] = *key;
                vectors[i] = vector(block);
            }
            crypt_with::<ENCRYPTS, WIDTH>(keys, &mut vectors);
            for ((_, place), vector) in group.iter_mut().zip(vectors) {
                **place = block(vector);
            }
        }
    }
}

/// Encrypts one block.
#[target_feature(enable = "neon,aes")]
pub(crate) fn encrypt_block(key: &Schedule, place: &mut Block) {
    let mut state = [vector(place)];
    crypt::<true, 1>(key, &mut state);
    *place = block(state[0]);
}
