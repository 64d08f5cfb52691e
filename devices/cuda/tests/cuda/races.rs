//! Runs every kernel once with little work. tools/cuda_tsan.sh runs this test under ThreadSanitizer, with a thread of
//! the operating system for each CUDA thread.
#![cfg(feature = "emulator")]

use crate::{emulation, ocb};

use std::sync::Arc;

use emulation::passes::{Family, Piece, block, check, expanded, is_for_any_size, key};
use emulation::{kernels, launch, launches};
use lockstep_core::backend::KernelId;
use lockstep_core::data::Data;
use lockstep_core::work::{Operation, Pass, Segment, Stream, Task};
use lockstep_core::{Key, backend::Device};
use lockstep_planner::selftest;
use lockstep_testkit::suite::{self, Subject};

/// Runs a pass on two messages in place. One message fills whole tiles, and the other has a partial block if the pass supports partial
/// blocks.
fn run_pass(family: Family, pass: &str, bits: usize) {
    let tail = if matches!(pass, "ctr" | "ctr32" | "ctr_little32" | "cfb_decrypt") { 5 } else { 0 };
    let piece = |key, len, misaligned| Piece {
        key,
        len,
        misaligned,
        state: block(len as u64),
        position: 7,
        extra_tiles: 0,
    };
    let pieces = [piece(0, family.tile_bytes + 64, 0), piece(2, 3 * 16 + tail, tail)];
    check(family, pass, bits, &pieces, true, None);
}

/// Runs a kernel of a pass or of a key expansion. The name of such a kernel is `family_pass_bits`, or `family_pass` if the kernel
/// is for all key sizes.
fn run_by_name(name: &str) {
    let (rest, bits) = match name.rsplit_once('_').map(|(rest, bits)| (rest, bits.parse())) {
        Some((rest, Ok(bits))) => (rest, bits),
        _ if is_for_any_size(name) => (name, 256),
        _ => return,
    };
    if let Some(family) = rest.strip_suffix("_expand") {
        let keys: Vec<u8> = (0..40).flat_map(|index| key(bits, index)).collect();
        expanded(family, bits, &keys, 2);
        return;
    }
    let families = [
        Family::bitslice("bitslice_lane"),
        Family::bitslice("bitslice"),
        Family::table("table_small"),
        Family::table("table"),
        Family::of_the_paper("coarse_shared", 64),
        Family::of_the_paper("coarse_constant", 64),
        Family::of_the_paper("fine_shared", 64),
        Family::of_the_paper("fine_constant", 64),
        Family::of_the_thesis(32, 2),
        Family::of_the_chapter(64),
    ];
    let pass_of = |family: &Family| rest.strip_prefix(family.name)?.strip_prefix('_');
    if let Some((family, pass)) = families.iter().find_map(|family| Some((family, pass_of(family)?)))
        && !pass.starts_with("ocb")
    {
        run_pass(*family, pass, bits);
    }
}

#[test]
fn every_kernel_runs() {
    let only = std::env::var("LOCKSTEP_TEST_KERNEL").unwrap_or_default();
    // The kernels of emulator/selftest.cpp are excluded, because some of them contain errors on purpose.
    let mut names = kernels();
    names.retain(|name| !name.starts_with("emulator_") && name.contains(&only));
    for name in &names {
        run_by_name(name);
    }
    // The other kernels run through the backend, which runs all operations of the default kernel, also on tables.
    let device = Arc::new(lockstep_cuda::emulator());
    for operation in Operation::all() {
        selftest::run(&*device, KernelId(0), operation).unwrap();
    }
    let name = device.kernels()[0].name;
    suite::memory::tables(&Subject::new(Arc::clone(&device) as _, name).unwrap());
    ocb::every_kernel();
    let key = Key::new(&key(128, 0)).unwrap();
    for device in [&*device, &lockstep_cuda::emulator_with_carry_less()] {
        // These messages are so short that they are hashed by a kernel that the self-test does not run.
        let mut states = [[1; 16]; 3];
        let hash = |state| Segment { key: &key, tweak: None, state, data: Data::read_only(&[2; 32]) };
        let mut segments: Vec<_> = states.iter_mut().map(hash).collect();
        device.submit(KernelId(0), Task::Pass(Pass::Ghash, &mut segments).into()).unwrap().wait().unwrap();
        // The message is so long that the kernel that computes with matrices hashes it, unless carry-less instructions compute the
        // products.
        let (long, mut state) = (vec![3; 400 << 10], [1; 16]);
        let mut segments =
            [Segment { key: &key, tweak: None, state: &mut state, data: Data::read_only(&long) }];
        device.submit(KernelId(0), Task::Pass(Pass::Ghash, &mut segments).into()).unwrap().wait().unwrap();
    }
    let memory = device.memory().unwrap();
    let buffer = memory.allocate(100).unwrap();
    let parts = [buffer.slice().slice(3..99), buffer.slice().slice(0..1)];
    assert_eq!(memory.fetch(&parts, Stream::default()).unwrap().wait().unwrap()[..], [0; 97]);
    names.retain(|name| launches(name) == 0);
    assert!(names.is_empty(), "not run: {names:?}");
}

/// ThreadSanitizer must report the race in this kernel.
#[test]
#[ignore = "races on purpose: for tools/cuda_tsan.sh"]
fn a_race() {
    let mut out = [0u32; 64];
    launch("emulator_race", 1, 64, 0, &out.as_mut_ptr()).unwrap();
}
