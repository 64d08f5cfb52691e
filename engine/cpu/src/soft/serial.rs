//! Serial modes of several messages: one block of each message at a time. Each message has its own key.

use super::passes::{Ecb, SPARE_BYTE};
use super::schedule::{FEW, Keys, Schedule};
use super::width::{Width, on_width};
use crate::kernel::interleave::interleave;
use crate::kernel::wiped::Wiped;
use crate::kernel::{Block, Lane, Span};

/// Numbers of round keys of AES-128, -192 and -256. Only messages with the same number of round keys are
/// processed together.
const LENGTHS: [usize; 3] = [11, 13, 15];

/// Blocks of several messages.
fn spare_blocks() -> Wiped<FEW> {
    let mut blocks = Wiped::zero();
    blocks.fill([SPARE_BYTE; 16]);
    blocks
}

/// Encrypts or decrypts blocks.
fn run(width: Width, keys: &Keys, encrypts: bool, blocks: &mut [Block; FEW]) {
    let data = Span::in_place(blocks.as_flattened_mut());
    // SAFETY: the width of a kernel is available.
    unsafe { on_width!(width.of_one_block(), run(keys, data, Ecb { encrypts })) }
}

/// CBC encryption of any number of messages.
pub(crate) fn cbc_encrypt(width: Width, lanes: &mut [Lane<'_, Schedule>]) {
    let mut buffer = spare_blocks();
    for length in LENGTHS {
        let blocks = |lane: &Lane<'_, Schedule>| match lane.schedule.len() {
            len if len == length => lane.data.len() / 16,
            _ => 0,
        };
        interleave(lanes, FEW, blocks, |lanes, slots, blocks| {
            let schedules: Vec<_> = slots.iter().map(|slot| lanes[slot.message].schedule).collect();
            let mut keys = Keys::blank();
            keys.gather(&schedules);
            for _ in 0..blocks {
                for (block, slot) in buffer.iter_mut().zip(&*slots) {
                    let lane = &lanes[slot.message];
                    // SAFETY: `interleave` gives blocks within the lane's data, which are valid for reads; a Block has alignment
                    // 1.
                    let text = unsafe { lane.data.src().cast::<Block>().add(slot.next).read() };
                    *block = (u128::from_ne_bytes(*lane.register) ^ u128::from_ne_bytes(text)).to_ne_bytes();
                }
                run(width, &keys, true, &mut buffer);
                for (block, slot) in buffer.iter().zip(&mut *slots) {
                    let lane = &mut lanes[slot.message];
                    // SAFETY: as above; the destination is valid for writes.
                    unsafe { lane.data.dst().cast::<Block>().add(slot.next).write(*block) };
                    *lane.register = *block;
                    slot.next += 1;
                }
            }
        });
    }
}

/// Encrypts or decrypts `blocks[i]` under `keys[i]`.
pub(crate) fn each(width: Width, keys: &[&Schedule], encrypts: bool, blocks: &mut [Block]) {
    assert_eq!(keys.len(), blocks.len(), "one key for each block");
    let mut pairs: Vec<(&Schedule, &mut Block)> = keys.iter().copied().zip(blocks).collect();
    // A stable order, so that keys of the same length are neighbours.
    pairs.sort_by_key(|(key, _)| key.len());
    for chunk in pairs.chunk_by_mut(|(one, _), (other, _)| one.len() == other.len()) {
        for chunk in chunk.chunks_mut(FEW) {
            let schedules: Vec<_> = chunk.iter().map(|(key, _)| *key).collect();
            let mut buffer = spare_blocks();
            for (copy, (_, block)) in buffer.iter_mut().zip(&*chunk) {
                *copy = **block;
            }
            if schedules.iter().all(|key| std::ptr::eq(*key, schedules[0])) {
                run(width, schedules[0].keys(), encrypts, &mut buffer);
            } else {
                let mut keys = Keys::blank();
                keys.gather(&schedules);
                run(width, &keys, encrypts, &mut buffer);
            }
            for (copy, (_, block)) in buffer.iter().zip(chunk) {
                **block = *copy;
            }
        }
    }
}

/// Encrypts one block.
pub(crate) fn one(width: Width, key: &Schedule, block: &mut Block) {
    let mut buffer = spare_blocks();
    buffer[0] = *block;
    run(width, key.keys(), true, &mut buffer);
    *block = buffer[0];
}
