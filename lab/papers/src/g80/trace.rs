//! The accesses of each half-warp of the papers' kernels, from a trace of the emulator.

use std::collections::BTreeMap;

use lockstep_core::backend::{Device, kernel_by_name};
use lockstep_core::data::Data;
use lockstep_core::work::{Pass, Segment, Task};
use lockstep_core::{Error, Key};
use lockstep_cuda::{Access, AccessKind, LaunchOptions, emulator_with_trace};

use super::rules::HALF_WARP;
use crate::data::random_bytes;

/// The counter block before the message. Neighbouring counters differ in their last byte only, except at a carry.
const COUNTER: [u8; 16] = [0x24; 16];

/// An instruction with an access to memory, as executed by a half-warp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// The purpose of the access.
    pub kind: AccessKind,
    /// Bytes per thread.
    pub bytes: u32,
    /// The address of each thread.
    pub addresses: Vec<u64>,
}

/// The accesses of the threads of a half-warp to one tile, instruction by instruction.
pub type HalfWarp = Vec<Instruction>;

/// Encrypts a message of this length with AES-128 by a kernel with this number of threads per block. Returns the half-warps in the order of
/// the data. The length must be a multiple of a tile, which is the data of a block of threads. A block of fewer than 16 threads has one
/// half-warp.
///
/// # Errors
/// The device's error.
///
/// # Panics
/// If the threads of a half-warp execute different instructions. The papers' kernels never do this with whole tiles.
pub fn trace(kernel: &str, threads: u32, pass: Pass, bytes: usize) -> Result<Vec<HalfWarp>, Error> {
    let (device, trace) = emulator_with_trace();
    let device = device.launched(LaunchOptions {
        threads: Some(threads),
        blocks_per_thread: Some(BLOCKS_PER_THREAD),
        ..LaunchOptions::default()
    });
    let id = kernel_by_name(&device, kernel)?;
    let (key, input) = (Key::new(&random_bytes(16))?, random_bytes(bytes));
    let (mut output, mut register) = (vec![0; bytes], COUNTER);
    let data = Data::copy(&input, &mut output)?;
    let mut segments = [Segment { key: &key, tweak: None, state: &mut register, data }];
    device.submit(id, Task::Pass(pass, &mut segments).into())?.wait()?;
    Ok(half_warps(&trace.take()))
}

/// AES blocks that a thread of the thesis's kernel encrypts one after the other.
pub const BLOCKS_PER_THREAD: u32 = 10;

/// Combines the accesses of the threads of each half-warp.
fn half_warps(accesses: &[Access]) -> Vec<HalfWarp> {
    let mut of_thread: BTreeMap<(u32, u32), Vec<Access>> = BTreeMap::new();
    for access in accesses {
        of_thread.entry((access.block, access.thread)).or_default().push(*access);
    }
    let mut threads: BTreeMap<(u32, u32), Vec<Vec<Access>>> = BTreeMap::new();
    for ((block, thread), accesses) in of_thread {
        threads.entry((block, thread / HALF_WARP as u32)).or_default().push(accesses);
    }
    let mut all: Vec<HalfWarp> = threads.into_values().flat_map(|threads| tiles(&threads)).collect();
    // In the trace, all tiles of a block of threads come before the next block. The half-warps are sorted by the address of their input,
    // which gives the order of the data.
    all.sort_by_key(|half_warp| half_warp[0].addresses[0]);
    all
}

/// Divides the accesses of a half-warp into tiles. The accesses to a tile start with a load and end with a store.
fn tiles(threads: &[Vec<Access>]) -> Vec<HalfWarp> {
    assert!(threads.iter().all(|accesses| accesses.len() == threads[0].len()), "a half-warp diverges");
    let instruction = |at: usize| {
        let Access { kind, bytes, .. } = threads[0][at];
        let addresses = threads.iter().map(|accesses| {
            assert_eq!((accesses[at].kind, accesses[at].bytes), (kind, bytes), "a half-warp diverges");
            accesses[at].address
        });
        Instruction { kind, bytes, addresses: addresses.collect() }
    };
    let instructions: Vec<Instruction> = (0..threads[0].len()).map(instruction).collect();
    instructions.split_inclusive(|one| one.kind == AccessKind::Store).map(<[_]>::to_vec).collect()
}

#[cfg(test)]
mod tests;
