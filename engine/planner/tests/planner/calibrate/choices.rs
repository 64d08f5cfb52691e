//! The choice of the planner compared with the choice by brute force, and the choice after failures.

use std::sync::atomic::Ordering;

use lockstep_core::Key;
use lockstep_core::data::Data;
use lockstep_core::work::{FusedAead, Operation, Pass, Segment, Task};
use lockstep_planner::timing::Shape;

use super::machine::*;

/// Checks, for every length, that the chosen device takes at most 10 % longer than the fastest device. Returns the chosen devices,
/// each with the shortest length for which it was chosen.
fn chooses_well(cpu: Model, gpu: Model) -> Vec<(usize, String)> {
    let machine = Machine::new(cpu, gpu).warmed(CTR);
    let mut choices: Vec<(usize, String)> = Vec::new();
    for bytes in lengths(8 << 20) {
        let chosen = machine.choice(CTR, bytes);
        let one = |bytes| Shape::from(bytes);
        let (cpu, gpu) = (cpu(CTR, one(bytes)), gpu(CTR, one(bytes)));
        let taken = if chosen == "mock" { gpu } else { cpu };
        assert!(taken <= 1.1 * cpu.min(gpu), "{bytes} bytes by {chosen}: {cpu} and {gpu}, taken {taken}");
        if choices.last().is_none_or(|(_, last)| *last != chosen) {
            choices.push((bytes, chosen));
        }
    }
    choices
}

#[test]
fn the_crossover_is_where_brute_force_finds_it() {
    // The CPU has 0.4 GB/s without a delay, and the GPU 4 GB/s after a delay. Both take about the same time for 1 MiB.
    let cpu = |_, shape: Shape| line(shape.bytes, 1.0, 400.0);
    let gpu = |_, shape: Shape| line(shape.bytes, 2360.0, 4000.0);
    let choices = chooses_well(cpu, gpu);
    let [(16, before), (crossover, behind)] = &choices[..] else { panic!("{choices:?}") };
    assert_eq!((before.as_str(), behind.as_str()), ("mock-cpu", "mock"));
    let exact = lengths(8 << 20).find(|&bytes| gpu(CTR, bytes.into()) < cpu(CTR, bytes.into())).unwrap();
    let ratio = *crossover as f64 / exact as f64;
    assert!((0.9..=1.1).contains(&ratio), "{crossover} instead of {exact}");
}

#[test]
fn a_device_that_is_always_faster_is_always_chosen() {
    let slow = |_, shape: Shape| line(shape.bytes, 30.0, 50.0);
    let fast = |_, shape: Shape| line(shape.bytes, 1.0, 700.0);
    assert_eq!(chooses_well(fast, slow), [(16, "mock-cpu".to_owned())]);
    assert_eq!(chooses_well(slow, fast), [(16, "mock".to_owned())]);
}

#[test]
fn times_need_not_be_linear() {
    // Caches and threads change the rate of a processor: here it is lower from 64 KiB on, and higher again from 1 MiB on.
    let cpu: Model = |_, shape: Shape| match shape.bytes {
        bytes if bytes <= 65_536 => line(bytes, 0.5, 8000.0),
        bytes if bytes <= 1 << 20 => line(65_536, 0.5, 8000.0) + line(bytes - 65_536, 0.0, 3000.0),
        bytes => {
            line(65_536, 0.5, 8000.0)
                + line((1 << 20) - 65_536, 0.0, 3000.0)
                + line(bytes - (1 << 20), 0.0, 16_000.0)
        }
    };
    let gpu: Model = |_, shape: Shape| line(shape.bytes, 30.0, 9000.0);
    let choices = chooses_well(cpu, gpu);
    assert_eq!(
        choices.iter().map(|(_, device)| device.as_str()).collect::<Vec<_>>()[..2],
        ["mock-cpu", "mock"]
    );
}

#[test]
fn the_choice_between_equal_devices_is_stable() {
    let same: Model = |_, shape| line(shape.bytes, 5.0, 500.0);
    let machine = Machine::new(same, same).warmed(CTR);
    for bytes in [16, 1 << 12, 1 << 16] {
        let first = machine.choice(CTR, bytes);
        assert!((0..20).all(|_| machine.choice(CTR, bytes) == first));
    }
}

#[test]
fn many_messages_are_planned_apart_from_one() {
    // The GPU has thousands of slow lanes, so in serial passes it is faster for many messages only.
    let cpu: Model = |operation, shape| match operation {
        Operation::Pass(pass) if pass.is_serial() => line(shape.bytes, 1.0, 600.0),
        _ => line(shape.bytes, 1.0, 600.0),
    };
    let gpu: Model = |operation, shape| match operation {
        Operation::Pass(pass) if pass.is_serial() => {
            line(shape.longest, 20.0, 10.0).max(line(shape.bytes, 20.0, 6000.0))
        }
        _ => line(shape.bytes, 20.0, 6000.0),
    };
    let serial = Operation::Pass(Pass::CbcEncrypt);
    let machine = Machine::new(cpu, gpu).warmed(serial);
    let many = |messages: usize, len: usize| Shape { messages, bytes: messages * len, longest: len };
    assert_eq!(machine.choice(serial, many(1, 1 << 20)), "mock-cpu");
    assert_eq!(machine.choice(serial, many(10_000, 512)), "mock");
    assert_eq!(machine.choice(serial, many(100_000, 16)), "mock");
    assert_eq!(machine.choice(serial, many(2, 1 << 20)), "mock-cpu");
}

#[test]
fn the_cost_of_each_message_counts() {
    // The GPU has a cost for each call, and the CPU has a cost for each message.
    let cpu: Model = |_, shape| line(shape.bytes, 2.0 * shape.messages as f64, 1000.0);
    let gpu: Model = |_, shape| line(shape.bytes, 100.0, 1000.0);
    let machine = Machine::new(cpu, gpu).warmed(CTR);
    let many = |messages: usize, len: usize| Shape { messages, bytes: messages * len, longest: len };
    assert_eq!(machine.choice(CTR, many(1, 32_000)), "mock-cpu");
    assert_eq!(machine.choice(CTR, many(40, 800)), "mock-cpu");
    assert_eq!(machine.choice(CTR, many(70, 400)), "mock");
}

#[test]
fn fused_aeads_are_measured() {
    let cpu: Model = |_, shape| line(shape.bytes, 1.0 + 0.5 * shape.messages as f64, 500.0);
    let gpu: Model = |_, shape| line(shape.bytes, 200.0, 3000.0);
    for fused in [FusedAead::GcmSeal, FusedAead::GcmOpen] {
        let operation = Operation::Fused(fused);
        let machine = Machine::new(cpu, gpu).warmed(operation);
        let chunks = |messages: usize| Shape { messages, bytes: messages * 16_384, longest: 16_384 };
        assert_eq!(machine.choice(operation, chunks(1)), "mock-cpu");
        assert_eq!(machine.choice(operation, chunks(4)), "mock-cpu");
        assert_ne!(machine.choice(operation, chunks(64)), "mock-cpu");
    }
}

#[test]
fn little_work_starts_no_measurement() {
    let machine =
        Machine::new(|_, shape| line(shape.bytes, 1.0, 500.0), |_, shape| line(shape.bytes, 9.0, 50.0));
    for _ in 0..10_000 {
        machine.choice(CTR, 4096);
    }
    assert!(!machine.is_measured(CTR));
    // There are no measurements, so the planner chooses by the stated costs.
    assert_eq!(machine.choice(CTR, 4096), "mock");
}

#[test]
fn a_device_that_fails_is_given_up() {
    let cpu: Model = |_, shape| line(shape.bytes, 1.0, 100.0);
    let gpu: Model = |_, shape| line(shape.bytes, 1.0, 1000.0);
    let machine = Machine::computing(cpu, gpu);
    // The device passes its self-test. Its later calls fail.
    assert_eq!(machine.choice(CTR, 1 << 20), "mock");
    machine.fails.store(true, Ordering::Relaxed);
    let key = Key::new(&[1; 16]).unwrap();
    let expected =
        lockstep_reference::ctr::apply(&lockstep_reference::Aes::new(&[1; 16]), &[0; 16], &[9; 100_000]);
    for _ in 0..5 {
        let mut data = vec![9; 100_000];
        let mut state = [0; 16];
        let segment = Segment { key: &key, tweak: None, state: &mut state, data: Data::in_place(&mut data) };
        let plan = machine.planner.plan(CTR, KEY, 100_000, None).unwrap();
        plan.run(Task::Pass(Pass::Ctr, &mut [segment])).unwrap();
        assert!(data == expected);
    }
    // The planner stops using a device after three failures.
    assert_eq!(machine.planner.incidents().len(), 3);
    assert_eq!(machine.choice(CTR, 1 << 20), "mock-cpu");
    let considered = machine.planner.consider(CTR, KEY, 1 << 20, None);
    assert!(considered.iter().any(|choice| choice.passed_over.as_deref() == Some("it has failed too often")));
}

#[test]
fn a_device_that_fails_while_it_is_measured_is_not_chosen() {
    let cpu: Model = |_, shape| line(shape.bytes, 1.0, 100.0);
    let gpu: Model = |_, shape| line(shape.bytes, 1.0, 1000.0);
    let machine = Machine::computing(cpu, gpu);
    assert_eq!(machine.choice(CTR, 16), "mock");
    machine.fails.store(true, Ordering::Relaxed);
    for _ in 0..200 {
        machine.choice(CTR, 1 << 20);
    }
    let measured: Vec<_> = machine.planner.consider(CTR, KEY, 1 << 20, None);
    let kernels: Vec<_> =
        measured.iter().filter(|choice| choice.is_measured).map(|choice| choice.kernel).collect();
    assert_eq!(kernels, ["mock-cpu/kernel"]);
    // By its stated cost, `mock` would be the fastest device, but measured times take precedence.
    assert_eq!(machine.choice(CTR, 1 << 20), "mock-cpu");
}

/// If longer messages use more threads, the time is constant between two lengths, but not beyond them.
#[test]
fn a_flat_line_is_not_extrapolated() {
    // There are 64 threads, and each takes at least 1 MiB.
    let cpu: Model = |_, shape| line(shape.bytes / (shape.bytes >> 20).clamp(1, 64), 1.0, 8000.0);
    let gpu: Model = |_, shape| line(shape.bytes, 30.0, 50_000.0);
    let machine = Machine::new(cpu, gpu).warmed(CTR);
    let considered = machine.planner.consider(CTR, KEY, 256 << 20, None);
    let found = considered.iter().find(|choice| choice.kernel == "mock-cpu/kernel").unwrap().ns;
    let truth = cpu(CTR, (256 << 20).into());
    // The longest measured length is 16 MiB, so the estimate for this length is only right within a factor of about three.
    assert!(found > 0.3 * truth && found < 1.1 * truth, "{found} for {truth}");
}
