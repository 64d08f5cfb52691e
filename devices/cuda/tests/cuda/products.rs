//! Checks that all ways to compute products in GHASH give the same hash. Each way can be selected for measurements.
#![cfg(feature = "emulator")]

use lockstep_core::backend::{Device, KernelId};
use lockstep_core::data::Data;
use lockstep_core::work::{Pass, Segment, Task};
use lockstep_core::{Block, Key};
use lockstep_cuda::{LaunchOptions, Products};

/// The hash of data that are long enough for tensor units, and the number of launches of each kernel that hashes
/// tiles.
fn hash(products: Products) -> (Block, [u64; 3]) {
    let device = lockstep_cuda::emulator_with_carry_less();
    let device = device.launched(LaunchOptions { products, ..LaunchOptions::default() });
    let key = Key::new(&[5; 16]).unwrap();
    let data: Vec<u8> = (0..=250).cycle().take(400_000).collect();
    let mut state = [3; 16];
    let mut segments = [Segment { key: &key, tweak: None, state: &mut state, data: Data::read_only(&data) }];
    device.submit(KernelId(0), Task::Pass(Pass::Ghash, &mut segments).into()).unwrap().wait().unwrap();
    let counters = device.counters();
    let launches = |name: &str| {
        counters.iter().find(|counter| counter.name == name).map_or(0, |counter| counter.launches)
    };
    // The tensor units hash only tiles of level 0. The one tile of level 1 is always hashed by `ghash_tiles` or
    // `ghash_carry_less_tiles`.
    (state, ["ghash_tiles", "ghash_tensor_tiles", "ghash_carry_less_tiles"].map(launches))
}

#[test]
fn each_can_be_chosen() {
    let (by_integers, launches) = hash(Products::Integers);
    assert_eq!(launches, [2, 0, 0]);
    let (by_tensor_units, launches) = hash(Products::TensorUnits);
    assert_eq!(launches, [1, 1, 0]);
    let (carry_less, launches) = hash(Products::CarryLess);
    assert_eq!(launches, [0, 0, 2]);
    assert_eq!(by_integers, by_tensor_units);
    assert_eq!(by_integers, carry_less);
}
