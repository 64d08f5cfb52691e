//! The simulated Cell as a device: how work is split and what is counted.

use lockstep_core::backend::{Backend, Device, kernel_by_name};
use lockstep_core::data::Data;
use lockstep_core::work::{Pass, Segment, Task};
use lockstep_core::{Key, KeySize};
use lockstep_spu::device::{Simulated, Spu, SpuBackend};
use lockstep_spu::kernels::KERNELS;

/// CTR over so many bytes; the output and what it took.
fn run(spes: u16, kernel: &str, len: usize) -> (Vec<u8>, Simulated) {
    let device = Spu::with_spes(spes).unwrap();
    let id = kernel_by_name(&device, kernel).unwrap();
    let key = Key::new(&[3; 16]).unwrap();
    let mut data = vec![0; len];
    let mut register = [0xff; 16];
    let data_of = Data::in_place(&mut data);
    let mut segments = [Segment { key: &key, tweak: None, register: &mut register, data: data_of }];
    device.submit(id, Task::Pass(Pass::Ctr, &mut segments).into()).unwrap().wait().unwrap();
    (data, device.simulated())
}

#[test]
fn eight_do_the_work_of_one_in_an_eighth_of_the_time() {
    let len = 128 * 16 * 1024;
    let (one, alone) = run(1, "spu/ctr-vperm", len);
    let (eight, shared) = run(8, "spu/ctr-vperm", len);
    assert_eq!(one, eight);
    assert_eq!((alone.bytes, shared.bytes), (len as u64, len as u64));
    let gain = alone.clocks as f64 / shared.clocks as f64;
    assert!(gain > 7.5 && gain <= 8.0, "{gain}");
}

#[test]
fn a_large_message_takes_the_clocks_of_the_loop() {
    let len = 64 * 16 * 1024;
    let (_, done) = run(1, "spu/ctr0", len);
    let block = done.clocks as f64 / (len as f64 / 16.0);
    assert!(block > 824.0 && block < 830.0, "{block}");
}

#[test]
fn discovery_says_that_it_is_simulated() {
    let found = SpuBackend.discover();
    let [device] = found.devices.as_slice() else { panic!("one device") };
    assert_eq!(device.id().to_string(), "spu");
    assert!(device.is_simulated());
    assert_eq!(device.description(), "Cell with 8 SPEs; spu:1 to spu:16 have as many");
    assert_eq!(device.kernels().len(), KERNELS.len());
}

#[test]
fn cells_are_made_by_name() {
    for (name, description) in [("spu:1", "Cell with 1 SPE"), ("spu:16", "Cell with 16 SPEs")] {
        let device = SpuBackend.named(name).unwrap().unwrap();
        assert_eq!((device.id().to_string().as_str(), device.description().as_str()), (name, description));
        assert!(device.is_simulated());
    }
    for name in ["spu:0", "spu:17", "spu:08", "spu:+8", "spu:", "spu:x", "spu:99999999"] {
        let missing = SpuBackend.named(name).unwrap().err().unwrap().to_string();
        assert!(missing.ends_with("say spu for 8, or spu:1 to spu:16"), "{missing}");
    }
    assert!(SpuBackend.named("spume:3").is_none() && SpuBackend.named("cuda:0").is_none());
}

#[test]
fn two_chips_have_two_memories() {
    let len = 256 * 16 * 1024;
    let (_, eight) = run(8, "spu/ctr-vperm", len);
    let (_, sixteen) = run(16, "spu/ctr-vperm", len);
    let gain = eight.clocks as f64 / sixteen.clocks as f64;
    assert!(gain > 1.9 && gain <= 2.0, "{gain}");
}

#[test]
fn what_is_brought_in_and_computed_before_counts() {
    // One block: the program and the keys come in first, and the block behind them; it is computed and goes out.
    let (_, done) = run(1, "spu/ctr0", 16);
    let (_, tables) = run(1, "spu/tab1", 16);
    assert!(done.clocks > 290 + 500 / 8 + 824 + 290, "{done:?}");
    // 64 KiB at 8 bytes a clock.
    assert!(tables.clocks > 290 + 65536 / 8 + 389 + 290, "{tables:?}");
}

#[test]
fn counters_tell_who_did_it() {
    let device = Spu::default();
    let id = kernel_by_name(&device, "spu/cbc2").unwrap();
    let key = Key::new(&[3; 32]).unwrap();
    assert_eq!(key.size(), KeySize::Aes256);
    let (mut data, mut register) = ([0; 48], [0; 16]);
    let data = Data::in_place(&mut data);
    let mut segments = [Segment { key: &key, tweak: None, register: &mut register, data }];
    device.submit(id, Task::Pass(Pass::CbcEncrypt, &mut segments).into()).unwrap().wait().unwrap();
    let counted: Vec<_> = device.counters().into_iter().filter(|counter| counter.launches > 0).collect();
    assert_eq!(counted.len(), 1);
    assert_eq!((counted[0].name, counted[0].launches, counted[0].bytes), ("spu/cbc2", 1, 48));
    // What it does not do it says.
    let (mut data, mut register) = ([0; 48], [0; 16]);
    let data = Data::in_place(&mut data);
    let mut segments = [Segment { key: &key, tweak: None, register: &mut register, data }];
    assert!(device.submit(id, Task::Pass(Pass::Ofb, &mut segments).into()).is_err());
}
