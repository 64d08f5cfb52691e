//! CBC encryption of many interleaved messages. Within a message, CBC encryption is serial.
//!
//! A round has a latency of 4 cycles, and two rounds on vectors of one or two blocks can start in each cycle. Eight registers (16
//! messages in ymm registers) therefore keep the AES units busy. Each place of a vector holds one message. When a message
//! ends, the next message takes its place. The kernel for zmm registers uses ymm registers here. With zmm, 16 messages would
//! suffice too (one round starts per cycle), but assembling and splitting vectors of four blocks costs more than it saves
//! (Zen 4: 17 GB/s with ymm, 14 GB/s with zmm).
//!
//! Round keys are broadcast if all messages have the same key. Otherwise they are read from a table with the keys of each
//! place. The table is on the stack and is zeroed on drop.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{Ordering, compiler_fence};

use super::cipher::{extra_rounds, opaque};
use super::schedule::Schedule;
use super::vector::{RawBlock, Vector};
use crate::kernel::{Block, Lane};

/// Maximum number of groups (vectors) in flight.
const GROUPS: usize = 8;

/// Round keys for the groups of messages: the same keys for all messages if SHARED is set, otherwise a table with the keys of each
/// of PLACES messages, stored as `[round][place]`.
#[derive(Clone, Copy)]
struct KeysOfPlaces<const SHARED: bool, const PLACES: usize>(*const RawBlock);

impl<const SHARED: bool, const PLACES: usize> KeysOfPlaces<SHARED, PLACES> {
    /// # Safety
    ///
    /// The same as for [`Vector`]. In addition, the round exists, and the `V::BLOCKS` places that start at `place` are set.
    #[inline(always)]
    unsafe fn get<V: Vector>(self, round: usize, place: usize) -> V {
        // SAFETY: the caller guarantees the conditions of this function.
        unsafe {
            if SHARED {
                V::broadcast(self.0.add(round))
            } else {
                V::load(self.0.add(round * PLACES + place).cast())
            }
        }
    }
}

/// A table of keys. The memory of a place is not initialised until the place holds a key.
#[repr(C, align(64))]
struct KeyTable<const PLACES: usize> {
    keys: [[MaybeUninit<RawBlock>; PLACES]; 15],
    /// Places that hold keys.
    used: usize,
}

impl<const PLACES: usize> KeyTable<PLACES> {
    /// # Safety
    ///
    /// The schedule has `rounds` rounds.
    unsafe fn set(&mut self, place: usize, schedule: &Schedule, rounds: usize) {
        // The first range covers the 11 keys that every schedule has, so the compiler can unroll its loop. The second range
        // covers the other keys.
        for rounds in [0..11, 11..rounds + 1] {
            for round in rounds {
                // SAFETY: the schedule contains `rounds` + 1 keys.
                self.keys[round][place].write(unsafe { *schedule.encrypt.as_ptr().add(round) });
            }
        }
        self.used = self.used.max(place + 1);
    }
}

impl<const PLACES: usize> Drop for KeyTable<PLACES> {
    fn drop(&mut self) {
        for keys in &mut self.keys {
            for key in &mut keys[..self.used] {
                // SAFETY: `key` is a valid reference. The write is volatile, so that the compiler does not remove it.
                unsafe { ptr::write_volatile(key, MaybeUninit::zeroed()) };
            }
        }
        compiler_fence(Ordering::SeqCst);
    }
}

/// The messages in flight. The first `count` places hold messages; further places repeat the first message.
#[repr(C, align(64))]
struct Places<const PLACES: usize> {
    registers: [Block; PLACES],
    src: [*const u8; PLACES],
    dst: [*mut u8; PLACES],
    /// Number of blocks left.
    left: [usize; PLACES],
    /// Index of the message.
    lane: [usize; PLACES],
    count: usize,
}

impl<const PLACES: usize> Places<PLACES> {
    #[inline(always)]
    fn put(&mut self, place: usize, lane: usize, message: &Lane<'_, Schedule>) {
        self.registers[place] = *message.register;
        self.src[place] = message.data.src();
        self.dst[place] = message.data.dst();
        self.left[place] = message.data.len() / 16;
        self.lane[place] = lane;
    }

    /// True if all places hold long messages and most of these messages map to the same set of the L1 cache (8 lines with
    /// addresses that differ by multiples of a page). Such messages would be fetched again in each step.
    #[inline(always)]
    fn collide(&self) -> bool {
        let like_the_first = |src: &&*const u8| (src.addr() ^ self.src[0].addr()) & 0xfc0 == 0;
        self.count == PLACES
            && self.left.iter().all(|&blocks| blocks >= 128)
            && 2 * self.src.iter().filter(like_the_first).count() > PLACES
    }

    #[inline(always)]
    fn repeat(&mut self, from: usize, to: usize) {
        self.registers[to] = self.registers[from];
        self.src[to] = self.src[from];
        self.dst[to] = self.dst[from];
        self.left[to] = self.left[from];
        self.lane[to] = self.lane[from];
    }
}

/// Processes `steps` blocks of each message of G groups, starting at place `first`. Several places may hold the same
/// message: they then compute and write the same values. This is harmless, since all loads of a step come before its stores.
///
/// # Safety
///
/// The same as for [`Vector`]. In addition, the places of the groups are set, have keys, and have at least `steps` blocks
/// left.
#[inline(always)]
unsafe fn run<V: Vector, const SHARED: bool, const G: usize, const PLACES: usize>(
    rounds: usize,
    keys: *const RawBlock,
    places: &mut Places<PLACES>,
    first: usize,
    steps: usize,
) {
    let range = first..first + G * V::BLOCKS;
    let (src, dst) = (places.src[range.clone()].as_ptr(), places.dst[range.clone()].as_ptr());
    let registers: *mut u8 = places.registers[range.clone()].as_mut_ptr().cast();
    // SAFETY: the caller guarantees that the processor has the instructions and that the places are set. Their range was
    // checked.
    unsafe {
        let mut x = [V::load(registers); G];
        for g in 0..G {
            x[g] = V::load(registers.add(g * V::BYTES));
        }
        for step in 0..steps {
            let keys = KeysOfPlaces::<SHARED, PLACES>(opaque(keys));
            for g in 0..G {
                let text = V::gather(src.add(g * V::BLOCKS), 16 * step);
                x[g] = x[g].xor(text.xor(keys.get(0, first + g * V::BLOCKS)));
                // Two rounds are done here, so that the loads of one group are not adjacent to the loads of the next group.
                for round in 1..3 {
                    x[g] = x[g].aesenc(keys.get(round, first + g * V::BLOCKS));
                }
            }
            for round in 3..10 {
                for g in 0..G {
                    x[g] = x[g].aesenc(keys.get(round, first + g * V::BLOCKS));
                }
            }
            extra_rounds!(rounds, 10, round => {
                for g in 0..G {
                    x[g] = x[g].aesenc(keys.get(round, first + g * V::BLOCKS));
                }
            });
            for g in 0..G {
                x[g] = x[g].aesenclast(keys.get(rounds, first + g * V::BLOCKS));
                x[g].scatter(dst.add(g * V::BLOCKS), 16 * step);
            }
        }
        for g in 0..G {
            x[g].store(registers.add(g * V::BYTES));
        }
    }
    for place in range {
        // SAFETY: each message had at least `steps` blocks left.
        unsafe {
            places.src[place] = places.src[place].add(16 * steps);
            places.dst[place] = places.dst[place].add(16 * steps);
        }
        places.left[place] -= steps;
    }
}

/// Calls [`run`] for `groups` groups, with the shared key if there is one and with the keys of the table otherwise.
///
/// # Safety
///
/// The same as for [`run`].
#[inline(always)]
unsafe fn run_groups<V: Vector, const PLACES: usize>(
    rounds: usize,
    groups: usize,
    shared: Option<*const RawBlock>,
    table: *const RawBlock,
    places: &mut Places<PLACES>,
    first: usize,
    steps: usize,
) {
    macro_rules! run {
        ($shared:literal, $keys:expr) => {
            match groups {
                1 => run::<V, $shared, 1, PLACES>(rounds, $keys, places, first, steps),
                2 => run::<V, $shared, 2, PLACES>(rounds, $keys, places, first, steps),
                4 => run::<V, $shared, 4, PLACES>(rounds, $keys, places, first, steps),
                _ => run::<V, $shared, 8, PLACES>(rounds, $keys, places, first, steps),
            }
        };
    }
    // SAFETY: the caller guarantees the conditions of this function.
    unsafe {
        match shared {
            Some(keys) => run!(true, keys),
            None => run!(false, table),
        }
    }
}

/// The groups (number of groups, index of the first group) that are advanced at the start if messages collide in the cache.
/// Each group is advanced by a different number of cache lines.
const AHEAD: [(usize, usize); 7] = [(4, 4), (2, 2), (2, 6), (1, 1), (1, 3), (1, 5), (1, 7)];

/// Encrypts all messages whose keys have `rounds` rounds. `shared` is the key if all messages have the same key.
///
/// # Safety
///
/// The same as for [`Vector`].
#[inline(always)]
unsafe fn chains<V: Vector, const PLACES: usize>(
    rounds: usize,
    lanes: &mut [Lane<'_, Schedule>],
    shared: Option<*const RawBlock>,
) {
    const { assert!(PLACES == GROUPS * V::BLOCKS) };
    let mut table =
        KeyTable::<PLACES> { keys: [const { [const { MaybeUninit::uninit() }; PLACES] }; 15], used: 0 };
    let mut places = Places::<PLACES> {
        registers: [[0; 16]; PLACES],
        src: [ptr::null(); PLACES],
        dst: [ptr::null_mut(); PLACES],
        left: [0; PLACES],
        lane: [0; PLACES],
        count: 0,
    };
    let mut next = 0;
    let mut take = |lanes: &[Lane<'_, Schedule>]| {
        let wanted = |lane: &Lane<'_, Schedule>| lane.schedule.rounds == rounds && !lane.data.is_empty();
        let found = next + lanes[next..].iter().position(wanted)?;
        next = found + 1;
        Some(found)
    };
    // Fills a place, and sets its key in the table unless all messages have the same key.
    macro_rules! fill {
        ($place:expr, $lane:expr, $fill:expr) => {{
            $fill;
            if shared.is_none() {
                // SAFETY: `take` returns schedules of `rounds` rounds.
                unsafe { table.set($place, lanes[$lane].schedule, rounds) };
            }
        }};
    }
    macro_rules! put {
        ($place:expr, $lane:expr) => {
            fill!($place, $lane, places.put($place, $lane, &lanes[$lane]))
        };
    }
    macro_rules! repeat {
        ($from:expr, $to:expr) => {
            fill!($to, places.lane[$from], places.repeat($from, $to))
        };
    }
    while places.count < PLACES
        && let Some(lane) = take(lanes)
    {
        put!(places.count, lane);
        places.count += 1;
    }
    let mut ahead = if places.collide() { &AHEAD[..] } else { &[] };
    while places.count > 0 {
        let (groups, first, steps) = if let [(groups, first), rest @ ..] = ahead {
            ahead = rest;
            (*groups, first * V::BLOCKS, 4 * groups)
        } else {
            let groups = places.count.div_ceil(V::BLOCKS).next_power_of_two();
            for place in places.count..groups * V::BLOCKS {
                repeat!(0, place);
            }
            (groups, 0, places.left[..places.count].iter().copied().min().unwrap_or(0))
        };
        // SAFETY: the places of all groups were set, and each has at least `steps` blocks left. The caller guarantees that
        // the processor has the instructions.
        unsafe {
            let table = table.keys.as_ptr().cast();
            run_groups::<V, PLACES>(rounds, groups, shared, table, &mut places, first, steps);
        }
        // A message that has ended is replaced by the next message or, if there is none, by the last message in flight.
        let mut place = 0;
        while place < places.count {
            if places.left[place] > 0 {
                place += 1;
                continue;
            }
            *lanes[places.lane[place]].register = places.registers[place];
            if let Some(lane) = take(lanes) {
                put!(place, lane);
            } else {
                places.count -= 1;
                if place < places.count {
                    repeat!(places.count, place);
                }
            }
        }
    }
}

/// CBC encryption of independent messages of whole blocks.
///
/// # Safety
///
/// The same as for [`Vector`].
#[inline(always)]
pub(super) unsafe fn cbc_encrypt<V: Vector, const PLACES: usize>(lanes: &mut [Lane<'_, Schedule>]) {
    debug_assert!(lanes.iter().all(|lane| lane.data.len() % 16 == 0), "whole blocks");
    let Some(first) = lanes.first().map(|lane| lane.schedule) else { return };
    if lanes.iter().all(|lane| ptr::eq(lane.schedule, first)) {
        // SAFETY: the caller guarantees that the processor has the instructions.
        return unsafe { chains::<V, PLACES>(first.rounds, lanes, Some(first.encrypt.as_ptr())) };
    }
    for rounds in [10, 12, 14] {
        if lanes.iter().any(|lane| lane.schedule.rounds == rounds) {
            // SAFETY: the caller guarantees that the processor has the instructions.
            unsafe { chains::<V, PLACES>(rounds, lanes, None) };
        }
    }
}
