//! Who is chosen, beside brute force; and without those who fail.

use std::sync::atomic::Ordering;

use lockstep_core::Key;
use lockstep_core::data::Data;
use lockstep_core::work::{FusedAead, Operation, Pass, Segment, Task};
use lockstep_planner::timing::Shape;

use crate::machine::*;

/// Chooses as brute force would, within a tenth, at every length.
fn chooses_well(near: Model, far: Model) -> Vec<(usize, String)> {
    let machine = Machine::new(near, far).warmed(CTR);
    let mut choices: Vec<(usize, String)> = Vec::new();
    for bytes in lengths(8 << 20) {
        let chosen = machine.choice(CTR, bytes);
        let one = |bytes| Shape::from(bytes);
        let (near, far) = (near(CTR, one(bytes)), far(CTR, one(bytes)));
        let taken = if chosen == "mock" { far } else { near };
        assert!(taken <= 1.1 * near.min(far), "{bytes} bytes by {chosen}: {near} and {far}, taken {taken}");
        if choices.last().is_none_or(|(_, last)| *last != chosen) {
            choices.push((bytes, chosen));
        }
    }
    choices
}

#[test]
fn the_crossover_is_where_brute_force_finds_it() {
    // 0.4 GB/s at once against 4 GB/s after a while: about as fast at 1 MiB.
    let near = |_, shape: Shape| line(shape.bytes, 1.0, 400.0);
    let far = |_, shape: Shape| line(shape.bytes, 2360.0, 4000.0);
    let choices = chooses_well(near, far);
    let [(16, before), (crossover, behind)] = &choices[..] else { panic!("{choices:?}") };
    assert_eq!((before.as_str(), behind.as_str()), ("mock-cpu", "mock"));
    let exact = lengths(8 << 20).find(|&bytes| far(CTR, bytes.into()) < near(CTR, bytes.into())).unwrap();
    let ratio = *crossover as f64 / exact as f64;
    assert!((0.9..=1.1).contains(&ratio), "{crossover} instead of {exact}");
}

#[test]
fn one_that_is_always_better_is_always_taken() {
    let slow = |_, shape: Shape| line(shape.bytes, 30.0, 50.0);
    let fast = |_, shape: Shape| line(shape.bytes, 1.0, 700.0);
    assert_eq!(chooses_well(fast, slow), [(16, "mock-cpu".to_owned())]);
    assert_eq!(chooses_well(slow, fast), [(16, "mock".to_owned())]);
}

#[test]
fn times_need_not_be_lines() {
    // As caches and threads make them: slower beyond 64 KiB, then twice as fast from 1 MiB on.
    let near: Model = |_, shape: Shape| match shape.bytes {
        bytes if bytes <= 65_536 => line(bytes, 0.5, 8000.0),
        bytes if bytes <= 1 << 20 => line(65_536, 0.5, 8000.0) + line(bytes - 65_536, 0.0, 3000.0),
        bytes => {
            line(65_536, 0.5, 8000.0)
                + line((1 << 20) - 65_536, 0.0, 3000.0)
                + line(bytes - (1 << 20), 0.0, 16_000.0)
        }
    };
    let far: Model = |_, shape: Shape| line(shape.bytes, 30.0, 9000.0);
    let choices = chooses_well(near, far);
    assert_eq!(
        choices.iter().map(|(_, device)| device.as_str()).collect::<Vec<_>>()[..2],
        ["mock-cpu", "mock"]
    );
}

#[test]
fn equals_are_as_good_and_the_choice_stays() {
    let same: Model = |_, shape| line(shape.bytes, 5.0, 500.0);
    let machine = Machine::new(same, same).warmed(CTR);
    for bytes in [16, 1 << 12, 1 << 16] {
        let first = machine.choice(CTR, bytes);
        assert!((0..20).all(|_| machine.choice(CTR, bytes) == first));
    }
}

#[test]
fn many_messages_are_another_matter_than_one() {
    // The device has thousands of slow lanes.
    let near: Model = |operation, shape| match operation {
        Operation::Pass(pass) if pass.is_serial() => line(shape.bytes, 1.0, 600.0),
        _ => line(shape.bytes, 1.0, 600.0),
    };
    let far: Model = |operation, shape| match operation {
        Operation::Pass(pass) if pass.is_serial() => {
            line(shape.longest, 20.0, 10.0).max(line(shape.bytes, 20.0, 6000.0))
        }
        _ => line(shape.bytes, 20.0, 6000.0),
    };
    let serial = Operation::Pass(Pass::CbcEncrypt);
    let machine = Machine::new(near, far).warmed(serial);
    let many = |messages: usize, len: usize| Shape { messages, bytes: messages * len, longest: len };
    assert_eq!(machine.choice(serial, many(1, 1 << 20)), "mock-cpu");
    assert_eq!(machine.choice(serial, many(10_000, 512)), "mock");
    assert_eq!(machine.choice(serial, many(100_000, 16)), "mock");
    assert_eq!(machine.choice(serial, many(2, 1 << 20)), "mock-cpu");
}

#[test]
fn each_message_may_cost_something() {
    // A call of the device takes long, a message of the processor's as well.
    let near: Model = |_, shape| line(shape.bytes, 2.0 * shape.messages as f64, 1000.0);
    let far: Model = |_, shape| line(shape.bytes, 100.0, 1000.0);
    let machine = Machine::new(near, far).warmed(CTR);
    let many = |messages: usize, len: usize| Shape { messages, bytes: messages * len, longest: len };
    assert_eq!(machine.choice(CTR, many(1, 32_000)), "mock-cpu");
    assert_eq!(machine.choice(CTR, many(40, 800)), "mock-cpu");
    assert_eq!(machine.choice(CTR, many(70, 400)), "mock");
}

#[test]
fn recipes_are_measured_as_they_are() {
    let near: Model = |_, shape| line(shape.bytes, 1.0 + 0.5 * shape.messages as f64, 500.0);
    let far: Model = |_, shape| line(shape.bytes, 200.0, 3000.0);
    for fused in FusedAead::ALL {
        let operation = Operation::Fused(fused);
        let machine = Machine::new(near, far).warmed(operation);
        let chunks = |messages: usize| Shape { messages, bytes: messages * 16_384, longest: 16_384 };
        assert_eq!(machine.choice(operation, chunks(1)), "mock-cpu");
        assert_eq!(machine.choice(operation, chunks(4)), "mock-cpu");
        assert_ne!(machine.choice(operation, chunks(64)), "mock-cpu");
    }
}

#[test]
fn little_work_is_not_worth_measuring_for() {
    let machine =
        Machine::new(|_, shape| line(shape.bytes, 1.0, 500.0), |_, shape| line(shape.bytes, 9.0, 50.0));
    for _ in 0..10_000 {
        machine.choice(CTR, 4096);
    }
    assert!(!machine.is_measured(CTR));
    // The device states less: it is believed so far.
    assert_eq!(machine.choice(CTR, 4096), "mock");
}

#[test]
fn who_fails_is_not_measured_and_its_work_is_done_elsewhere() {
    let near: Model = |_, shape| line(shape.bytes, 1.0, 100.0);
    let far: Model = |_, shape| line(shape.bytes, 1.0, 1000.0);
    let machine = Machine::computing(near, far);
    // It proves itself, and fails from then on.
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
    // Three times it was asked, and then no more.
    assert_eq!(machine.planner.incidents().len(), 3);
    assert_eq!(machine.choice(CTR, 1 << 20), "mock-cpu");
    let considered = machine.planner.consider(CTR, KEY, 1 << 20, None);
    assert!(considered.iter().any(|choice| choice.passed_over.as_deref() == Some("it has failed too often")));
}

#[test]
fn who_fails_while_it_is_measured_is_done_without() {
    let near: Model = |_, shape| line(shape.bytes, 1.0, 100.0);
    let far: Model = |_, shape| line(shape.bytes, 1.0, 1000.0);
    let machine = Machine::computing(near, far);
    assert_eq!(machine.choice(CTR, 16), "mock");
    machine.fails.store(true, Ordering::Relaxed);
    for _ in 0..200 {
        machine.choice(CTR, 1 << 20);
    }
    let measured: Vec<_> = machine.planner.consider(CTR, KEY, 1 << 20, None);
    let kernels: Vec<_> =
        measured.iter().filter(|choice| choice.is_measured).map(|choice| choice.kernel).collect();
    assert_eq!(kernels, ["mock-cpu/kernel"]);
    // By what it states it would be the fastest; what was measured comes first.
    assert_eq!(machine.choice(CTR, 1 << 20), "mock-cpu");
}

/// With more threads come in as messages grow, the line between two lengths is flat; beyond it is not.
#[test]
fn a_flat_line_does_not_go_on_for_ever() {
    // 64 threads, of which each takes 1 MiB at least.
    let near: Model = |_, shape| line(shape.bytes / (shape.bytes >> 20).clamp(1, 64), 1.0, 8000.0);
    let far: Model = |_, shape| line(shape.bytes, 30.0, 50_000.0);
    let machine = Machine::new(near, far).warmed(CTR);
    let considered = machine.planner.consider(CTR, KEY, 256 << 20, None);
    let found = considered.iter().find(|choice| choice.kernel == "mock-cpu/kernel").unwrap().ns;
    let truth = near(CTR, (256 << 20).into());
    // Measured up to 16 MiB, it is right within a factor of three.
    assert!(found > 0.3 * truth && found < 1.1 * truth, "{found} for {truth}");
}
