//! Tests of the simulated Cell as a device: distribution of work, and counters.

use std::panic::{AssertUnwindSafe, catch_unwind};

use lockstep_core::backend::{Backend, Device, kernel_by_name};
use lockstep_core::data::Data;
use lockstep_core::work::{Pass, Segment, Task};
use lockstep_core::{Key, KeySize};
use lockstep_spu::device::{ExclusiveUse, Simulated, Spu, SpuBackend};
use lockstep_spu::isa::Reg;
use lockstep_spu::kernels::{KERNELS, Loop, Mode, Way};
use lockstep_spu::schedule::Effort;
use lockstep_spu::sim::{LOCAL_STORE, Machine};

/// Runs CTR over `len` bytes. Returns the output and the totals.
fn run(spes: u16, kernel: &str, len: usize) -> (Vec<u8>, Simulated) {
    let device = Spu::with_spes(spes).unwrap();
    let id = kernel_by_name(&device, kernel).unwrap();
    let key = Key::new(&[3; 16]).unwrap();
    let mut data = vec![0; len];
    let mut register = [0xff; 16];
    let data_of = Data::in_place(&mut data);
    let mut segments = [Segment { key: &key, tweak: None, state: &mut register, data: data_of }];
    device.submit(id, Task::Pass(Pass::Ctr, &mut segments).into()).unwrap().wait().unwrap();
    (data, device.simulated())
}

#[test]
fn eight_spes_take_an_eighth_of_the_time() {
    let len = 128 * 16 * 1024;
    let (one, exclusive) = run(1, "spu/ctr-vperm", len);
    let (eight, shared) = run(8, "spu/ctr-vperm", len);
    assert_eq!(one, eight);
    assert_eq!((exclusive.bytes, shared.bytes), (len as u64, len as u64));
    let gain = exclusive.clocks as f64 / shared.clocks as f64;
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
fn discovery_reports_a_simulated_device() {
    let found = SpuBackend.discover();
    let [device] = found.devices.as_slice() else { panic!("one device") };
    assert_eq!(device.id().to_string(), "spu");
    assert!(device.properties().simulated);
    assert_eq!(device.description(), "Cell with 8 SPEs; spu:1 to spu:16 have 1 to 16");
    assert_eq!(device.kernels().len(), KERNELS.len());
}

#[test]
fn cells_are_made_by_name() {
    for (name, description) in [("spu:1", "Cell with 1 SPE"), ("spu:16", "Cell with 16 SPEs")] {
        let device = SpuBackend.named(&name.into()).unwrap().unwrap();
        assert_eq!((device.id().to_string().as_str(), device.description().as_str()), (name, description));
        assert!(device.properties().simulated);
    }
    for name in ["spu:0", "spu:17", "spu:08", "spu:+8", "spu:", "spu:x", "spu:99999999"] {
        let missing = SpuBackend.named(&name.into()).unwrap().err().unwrap().to_string();
        assert!(missing.ends_with("use spu for 8, or spu:1 to spu:16"), "{missing}");
    }
    assert_eq!(SpuBackend.named(&"spu".into()).unwrap().unwrap().id().to_string(), "spu");
    assert!(SpuBackend.named(&"spume:3".into()).is_none() && SpuBackend.named(&"cuda:0".into()).is_none());
}

#[test]
fn two_chips_have_two_memories() {
    let len = 256 * 16 * 1024;
    let (_, eight) = run(8, "spu/ctr-vperm", len);
    let (_, sixteen) = run(16, "spu/ctr-vperm", len);
    let gain = eight.clocks as f64 / sixteen.clocks as f64;
    assert!(gain > 1.9 && gain <= 2.0, "{gain}");
}

/// The clocks of a call for this number of blocks, and the number of bytes that are loaded before the call.
fn exclusive(of: Loop, blocks: usize) -> (u64, u64) {
    let compiled = of.compiled(10, Effort::Full).unwrap();
    let keys = [[0; 16]; 11];
    let mut machine = Machine::new();
    match of.way.is_hash() {
        true => compiled.load_hash_key(&mut machine, &[1; 16]),
        false => compiled.load(&mut machine, &keys).unwrap(),
    }
    let run = compiled.run(&mut machine, &keys, &[0; 16], &mut vec![0; 16 * blocks]).unwrap();
    (run.cycles, compiled.loaded_bytes().iter().sum::<usize>() as u64)
}

/// Returns the clocks of a transfer without concurrent transfers: 290 clocks of latency, and one clock for each 8 bytes.
fn moved(bytes: u64) -> f64 {
    290.0 + bytes as f64 / 8.0
}

fn the_loop(kernel: &str, pass: Pass) -> Loop {
    KERNELS.iter().find(|one| one.name == kernel).unwrap().loop_for(pass).unwrap()
}

#[test]
fn loading_is_part_of_the_clocks() {
    // For one block, program and keys are loaded first. Then the block is read, computed and written.
    for kernel in ["spu/ctr0", "spu/tab1"] {
        let (_, done) = run(1, kernel, 16);
        let (cycles, loaded) = exclusive(the_loop(kernel, Pass::Ctr), 1);
        let clocks = moved(loaded) + moved(16) + cycles as f64 + moved(16);
        assert_eq!(done.clocks, clocks.ceil() as u64, "{kernel}");
    }
}

#[test]
fn another_key_waits_for_the_work_with_the_previous_one() {
    let device = Spu::with_spes(1).unwrap();
    let id = kernel_by_name(&device, "spu/ctr0").unwrap();
    let keys = [Key::new(&[3; 16]).unwrap(), Key::new(&[4; 16]).unwrap()];
    let (mut data, mut registers) = ([[0; 16]; 2], [[0; 16]; 2]);
    let mut segments: Vec<_> = keys
        .iter()
        .zip(&mut registers)
        .zip(&mut data)
        .map(|((key, register), data)| Segment {
            key,
            tweak: None,
            state: register,
            data: Data::in_place(data),
        })
        .collect();
    device.submit(id, Task::Pass(Pass::Ctr, &mut segments).into()).unwrap().wait().unwrap();
    let (cycles, loaded) = exclusive(the_loop("spu/ctr0", Pass::Ctr), 1);
    let clocks = 2.0 * (moved(loaded) + moved(16) + cycles as f64 + moved(16));
    assert_eq!(device.simulated().clocks, clocks.ceil() as u64);
}

#[test]
fn ghash_first_encrypts_zero_and_waits_for_its_tables() {
    let encrypt = Loop { way: Way::Vperm, mode: Mode::Ecb, blocks: 4, overlaps: true };
    let (hash_key, program) = exclusive(encrypt, 1);
    for kernel in ["spu/vperm", "spu/gcm"] {
        let device = Spu::with_spes(1).unwrap();
        let id = kernel_by_name(&device, kernel).unwrap();
        let key = Key::new(&[3; 16]).unwrap();
        let (mut data, mut register) = ([5; 48], [0; 16]);
        let data = Data::in_place(&mut data);
        let mut segments = [Segment { key: &key, tweak: None, state: &mut register, data }];
        device.submit(id, Task::Pass(Pass::Ghash, &mut segments).into()).unwrap().wait().unwrap();
        let (cycles, loaded) = exclusive(the_loop(kernel, Pass::Ghash), 3);
        // The SPE loads the program and a zero block, and encrypts and writes the zero block. It then loads the loop
        // with the tables of the hash key, and three blocks, for which nothing is written.
        let clocks =
            moved(program + 16) + hash_key as f64 + moved(16) + moved(loaded) + moved(48) + cycles as f64;
        assert_eq!(device.simulated().clocks, clocks.ceil() as u64, "{kernel}");
    }
}

#[test]
fn counters_name_the_kernels() {
    let device = Spu::default();
    let id = kernel_by_name(&device, "spu/cbc2").unwrap();
    let key = Key::new(&[3; 32]).unwrap();
    assert_eq!(key.size(), KeySize::Aes256);
    let (mut data, mut register) = ([0; 48], [0; 16]);
    let data = Data::in_place(&mut data);
    let mut segments = [Segment { key: &key, tweak: None, state: &mut register, data }];
    device.submit(id, Task::Pass(Pass::CbcEncrypt, &mut segments).into()).unwrap().wait().unwrap();
    let counted: Vec<_> = device.counters().into_iter().filter(|counter| counter.launches > 0).collect();
    assert_eq!(counted.len(), 1);
    assert_eq!((counted[0].name, counted[0].launches, counted[0].bytes), ("spu/cbc2", 1, 48));
    // A pass that the kernel does not support is an error.
    let (mut data, mut register) = ([0; 48], [0; 16]);
    let data = Data::in_place(&mut data);
    let mut segments = [Segment { key: &key, tweak: None, state: &mut register, data }];
    assert!(device.submit(id, Task::Pass(Pass::Ofb, &mut segments).into()).is_err());
}

#[test]
fn an_spe_is_cleared_after_use_and_after_a_panic() {
    let mut machine = Machine::new();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let lent = ExclusiveUse(&mut machine);
        lent.0.memory_mut(4096..4112).fill(7);
        lent.0.set_register(Reg::new(3), 7);
        panic!("while it holds a key");
    }));
    assert!(panicked.is_err());
    assert_eq!(machine.memory(0..LOCAL_STORE), [0; LOCAL_STORE]);
    assert_eq!(machine.register(Reg::new(3)), 0);
}
