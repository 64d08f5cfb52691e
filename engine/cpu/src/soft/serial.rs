//! Serial modes of several messages: one block of each message at a time. Each message has its own key.

use zeroize::Zeroize;

use super::passes::SPARE_BYTE;
use super::planes::{MOST, Narrow, Plane, Wide};
use super::rounds::Direction;
use super::schedule::{Keys, Schedule};
use super::vector::Vector;
use super::width::{self, Width, on_width};
use crate::kernel::interleave::interleave;
use crate::kernel::{Block, Lane};

/// Numbers of round keys of AES-128, -192 and -256. Only messages with the same number of round keys are
/// processed together.
const LENGTHS: [usize; 3] = [11, 13, 15];

/// Smallest number of lanes for which wide planes are faster, if the width has no byte permutation.
const WIDE_FROM: usize = 25;

/// The narrow planes of the keys of eight messages.
type Few = Narrow<Vector>;

/// Blocks of several messages; zeroed on drop.
struct Blocks([Block; MOST]);

impl Blocks {
    fn new() -> Self {
        Blocks([[SPARE_BYTE; 16]; MOST])
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.0.as_flattened_mut().zeroize();
    }
}

/// Encrypts or decrypts the first eight blocks.
fn few(width: Width, keys: &Keys<Vector>, direction: Direction, blocks: &mut Blocks) {
    // SAFETY: the width of a kernel is available.
    unsafe { on_width!(width, few(keys, direction, &mut blocks.0)) }
}

pub(crate) fn cbc_encrypt(width: Width, lanes: &mut [Lane<'_, Schedule>]) {
    for length in LENGTHS {
        let wanted = |lane: &&Lane<'_, Schedule>| lane.schedule.len() == length && !lane.data.is_empty();
        match lanes.iter().filter(wanted).count() {
            0 => {}
            WIDE_FROM.. if width == Width::Portable => {
                cbc_lanes::<Wide>(lanes, length, &|keys, blocks| {
                    width::many(keys, Direction::Encrypt, &mut blocks.0);
                });
            }
            _ => {
                cbc_lanes::<Few>(lanes, length, &|keys, blocks| few(width, keys, Direction::Encrypt, blocks));
            }
        }
    }
}

fn cbc_lanes<P: Plane>(
    lanes: &mut [Lane<'_, Schedule>],
    length: usize,
    encrypt: &dyn Fn(&Keys<P::Stored>, &mut Blocks),
) {
    let mut buffer = Blocks::new();
    let wanted = |schedule: &Schedule| schedule.len() == length;
    interleave(lanes, P::BLOCKS, wanted, |lanes, slots, blocks| {
        let schedules: Vec<_> = slots.iter().map(|slot| lanes[slot.lane].schedule).collect();
        let keys = Keys::gather::<P>(&schedules);
        for _ in 0..blocks {
            for (block, slot) in buffer.0.iter_mut().zip(&*slots) {
                let lane = &lanes[slot.lane];
                // SAFETY: `interleave` gives blocks within the lane's data, which are valid for reads; a Block has alignment 1.
                let text = unsafe { lane.data.src().cast::<Block>().add(slot.next).read() };
                *block = (u128::from_ne_bytes(*lane.register) ^ u128::from_ne_bytes(text)).to_ne_bytes();
            }
            encrypt(&keys, &mut buffer);
            for (block, slot) in buffer.0.iter().zip(&mut *slots) {
                let lane = &mut lanes[slot.lane];
                // SAFETY: as above; the destination is valid for writes.
                unsafe { lane.data.dst().cast::<Block>().add(slot.next).write(*block) };
                *lane.register = *block;
                slot.next += 1;
            }
        }
    });
}

/// Encrypts or decrypts `blocks[i]` under `keys[i]`.
pub(crate) fn each(width: Width, keys: &[&Schedule], direction: Direction, blocks: &mut [Block]) {
    assert_eq!(keys.len(), blocks.len(), "one key for each block");
    let Some(first) = keys.first() else { return };
    if keys.iter().all(|key| std::ptr::eq(*key, *first)) {
        for chunk in blocks.chunks_mut(Few::BLOCKS) {
            run(width, first.narrow(), direction, chunk.iter_mut());
        }
        return;
    }
    for length in LENGTHS {
        let mut picked: Vec<_> =
            keys.iter().zip(blocks.iter_mut()).filter(|(key, _)| key.len() == length).collect();
        for chunk in picked.chunks_mut(Few::BLOCKS) {
            let schedules: Vec<&Schedule> = chunk.iter().map(|(key, _)| **key).collect();
            let keys = Keys::gather::<Few>(&schedules);
            run(width, &keys, direction, chunk.iter_mut().map(|(_, block)| &mut **block));
        }
    }
}

/// Encrypts one block.
pub(crate) fn one(width: Width, key: &Schedule, block: &mut Block) {
    let mut buffer = Blocks::new();
    buffer.0[0] = *block;
    few(width, key.narrow(), Direction::Encrypt, &mut buffer);
    *block = buffer.0[0];
}

fn run<'a>(
    width: Width,
    keys: &Keys<Vector>,
    direction: Direction,
    blocks: impl Iterator<Item = &'a mut Block>,
) {
    let mut buffer = Blocks::new();
    let mut places = Vec::with_capacity(Few::BLOCKS);
    for (copy, block) in buffer.0.iter_mut().zip(blocks) {
        *copy = *block;
        places.push(block);
    }
    few(width, keys, direction, &mut buffer);
    for (copy, place) in buffer.0.iter().zip(places) {
        *place = *copy;
    }
}
