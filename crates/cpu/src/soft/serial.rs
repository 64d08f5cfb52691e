//! Serial modes of several messages: one block of each message at a time. Each message has its own key.

use super::passes::{Buffer, Direction, load, store};
use super::planes::{Narrow, Plane, Wide};
use super::schedule::{Keys, Schedule};
use super::vector::Vector;
use crate::interleave::interleave;
use crate::kernel::{Block, Lane};

/// Numbers of round keys of AES-128, -192 and -256. Only messages with the same number of round keys are
/// processed together.
const LENGTHS: [usize; 3] = [11, 13, 15];

/// Smallest number of lanes for which wide planes are faster.
const WIDE_FROM: usize = 25;

pub(crate) fn cbc_encrypt(lanes: &mut [Lane<'_, Schedule>]) {
    for length in LENGTHS {
        let wanted = |lane: &&Lane<'_, Schedule>| lane.schedule.len() == length && !lane.data.is_empty();
        match lanes.iter().filter(wanted).count() {
            0 => {}
            1..WIDE_FROM => cbc_lanes::<Narrow>(lanes, length),
            _ => cbc_lanes::<Wide>(lanes, length),
        }
    }
}

fn cbc_lanes<P: Plane>(lanes: &mut [Lane<'_, Schedule>], length: usize) {
    let mut buffer = Buffer::new();
    let wanted = |schedule: &Schedule| schedule.len() == length;
    interleave(lanes, P::BLOCKS, wanted, |lanes, slots, blocks| {
        let schedules: Vec<_> = slots.iter().map(|slot| lanes[slot.lane].schedule).collect();
        let keys = Keys::<P>::gather(&schedules);
        for _ in 0..blocks {
            for (block, slot) in buffer.0.iter_mut().zip(&*slots) {
                let lane = &lanes[slot.lane];
                *block = Vector::from_block(*lane.register) ^ load(&lane.data, slot.next);
            }
            buffer.run(&keys, Direction::Encrypt);
            for (block, slot) in buffer.0.iter().zip(&mut *slots) {
                let lane = &mut lanes[slot.lane];
                store(&mut lane.data, slot.next, *block);
                *lane.register = block.to_block();
                slot.next += 1;
            }
        }
    });
}

/// Encrypts or decrypts `blocks[i]` under `keys[i]`.
pub(crate) fn each(keys: &[&Schedule], direction: Direction, blocks: &mut [Block]) {
    assert_eq!(keys.len(), blocks.len(), "one key for each block");
    let Some(first) = keys.first() else { return };
    if keys.iter().all(|key| std::ptr::eq(*key, *first)) {
        for chunk in blocks.chunks_mut(Narrow::BLOCKS) {
            run(first.narrow(), direction, chunk.iter_mut());
        }
        return;
    }
    for length in LENGTHS {
        let mut picked: Vec<_> =
            keys.iter().zip(blocks.iter_mut()).filter(|(key, _)| key.len() == length).collect();
        for chunk in picked.chunks_mut(Narrow::BLOCKS) {
            let schedules: Vec<&Schedule> = chunk.iter().map(|(key, _)| **key).collect();
            let keys = Keys::<Narrow>::gather(&schedules);
            run(&keys, direction, chunk.iter_mut().map(|(_, block)| &mut **block));
        }
    }
}

/// Encrypts one block.
pub(crate) fn one(key: &Schedule, block: &mut Block) {
    let mut buffer = Buffer::new();
    buffer.0[0] = Vector::from_block(*block);
    buffer.run(key.narrow(), Direction::Encrypt);
    *block = buffer.0[0].to_block();
}

fn run<'a>(keys: &Keys<Narrow>, direction: Direction, blocks: impl Iterator<Item = &'a mut Block>) {
    let mut buffer = Buffer::new();
    let mut places = Vec::with_capacity(Narrow::BLOCKS);
    for (vector, block) in buffer.0.iter_mut().zip(blocks) {
        *vector = Vector::from_block(*block);
        places.push(block);
    }
    buffer.run(keys, direction);
    for (vector, place) in buffer.0.iter().zip(places) {
        *place = vector.to_block();
    }
}
