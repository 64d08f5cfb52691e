//! Runs the kernels of kernels/table and kernels/papers on the emulator, and compares their results with the oracle.
#![cfg(feature = "emulator")]

use crate::emulation;

use emulation::constant;
use emulation::passes::{Family, check, expanded, key, pieces, wrapping};
use lockstep_core::Key;
use lockstep_core::backend::{Device, kernel_by_name};
use lockstep_core::data::Data;
use lockstep_core::work::{Pass, Segment, Task};
use lockstep_cuda::{AccessKind, LaunchOptions};
use lockstep_reference::Aes;

fn check_family(family: Family, passes: &[&str]) {
    for bits in [128, 192, 256] {
        for &pass in passes {
            let pieces = pieces(pass, family.tile_bytes);
            check(family, pass, bits, &pieces, false, None);
            check(family, pass, bits, &pieces, true, None);
            if pass.starts_with("ctr") {
                check(family, pass, bits, &wrapping(family.tile_bytes), true, None);
            }
        }
        // The kernels must work with a grid that is smaller or larger than the number of tiles.
        for grid in [1, 2, 1000] {
            check(family, passes[0], bits, &pieces(passes[0], family.tile_bytes), true, Some(grid));
        }
        check(family, passes[0], bits, &pieces(passes[0], family.tile_bytes)[..1], true, Some(1));
    }
}

const ALL_PASSES: [&str; 8] = [
    "ecb_encrypt",
    "ecb_decrypt",
    "ctr",
    "ctr32",
    "cbc_decrypt",
    "cfb_decrypt",
    "xts_encrypt",
    "xts_decrypt",
];

#[test]
fn table_runs_every_pass() {
    check_family(Family::table("table"), &ALL_PASSES);
}

#[test]
fn the_small_table_runs_every_pass() {
    check_family(Family::table("table_small"), &ALL_PASSES);
}

#[test]
fn the_four_kernels_of_the_cuda_paper() {
    for name in ["coarse_shared", "coarse_constant", "fine_shared", "fine_constant"] {
        for threads in [8, 32, 40, 256, 512] {
            check_family(Family::of_the_paper(name, threads), &["ctr", "ecb_encrypt", "ecb_decrypt"]);
        }
    }
}

#[test]
fn the_kernel_of_the_thesis() {
    for (threads, option) in [(8, 1), (64, 10), (256, 10), (512, 3)] {
        check_family(Family::of_the_thesis(threads, option), &["ctr", "ecb_encrypt"]);
    }
}

/// The first half of a schedule has the round keys for encryption, which equal the round keys of the oracle (FIPS
/// 197, section 5.2).
#[test]
fn expansion_equals_the_standard() {
    for bits in [128usize, 192, 256] {
        let size = constant(&format!("table_schedule_bytes_{bits}"));
        for count in [1usize, 33, 70] {
            let keys: Vec<u8> = (0..count).flat_map(|index| key(bits, index)).collect();
            let mut schedules = expanded("table", bits, &keys, 3);
            for (index, schedule) in schedules.bytes().chunks(size).enumerate() {
                let aes = Aes::new(&key(bits, index));
                assert_eq!(schedule[..size / 2], *aes.round_keys().as_flattened());
            }
        }
    }
}

/// The trace of a launch contains the accesses of each thread of the papers' kernels. The other kernels leave no trace.
#[test]
fn traces_of_the_papers_kernels() {
    let (device, trace) = lockstep_cuda::emulator_with_trace();
    let device = device.launched(LaunchOptions { threads: Some(8), ..LaunchOptions::default() });
    let key = Key::new(&[7; 16]).unwrap();
    let run = |kernel: &str| {
        let mut data = [0x5a; 20 * 16];
        let kernel = kernel_by_name(&device, kernel).unwrap();
        let data = Data::in_place(&mut data);
        let mut segments = [Segment { key: &key, tweak: None, state: &mut [0; 16], data }];
        let work = Task::Pass(Pass::EcbEncrypt, &mut segments).into();
        device.submit(kernel, work).unwrap().wait().unwrap();
        trace.take()
    };
    let accesses = run("cuda/coarse-shared");
    let count = |kind| accesses.iter().filter(|access| access.kind == kind).count();
    assert_eq!([AccessKind::Load, AccessKind::Lookup, AccessKind::Store].map(count), [20, 20 * 160, 20]);
    // 20 AES blocks are two and a half tiles of 8 threads. Thread 0 loads from each tile.
    let loads: Vec<u64> = accesses
        .iter()
        .filter(|access| access.kind == AccessKind::Load && access.thread == 0)
        .map(|access| access.address)
        .collect();
    assert_eq!(loads.iter().map(|address| address - loads[0]).collect::<Vec<u64>>(), [0, 128, 256]);
    assert!(
        accesses.iter().all(|access| access.thread < 8
            && access.bytes == if access.kind == AccessKind::Lookup { 4 } else { 16 })
    );
    assert!(run("cuda/bitslice").is_empty());
}
