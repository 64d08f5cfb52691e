//! Measurements that are kept for the next process.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lockstep_core::KeySize;
use lockstep_core::work::{Operation, Pass};
use lockstep_planner::calibrate::Calibrator;
use lockstep_testkit::mock::offers;

use super::machine::*;

#[test]
fn measurements_are_kept_for_the_next_process() {
    let folder = Folder::new("kept");
    let first = Machine::with(CPU, GPU, "driver 1", folder.cache(), None).warmed(CTR);
    assert_eq!(folder.files().len(), 2, "one for each device");
    let next = Machine::with(CPU, GPU, "driver 1", folder.cache(), None);
    assert!(next.is_measured(CTR) && !next.is_measured(Operation::Pass(Pass::EcbEncrypt)));
    for bytes in lengths(8 << 20) {
        assert_eq!(first.choice(CTR, bytes), next.choice(CTR, bytes));
    }
    // The new process ran self-tests only, and measured nothing.
    let after_self_tests = next.submitted.load(Ordering::Relaxed);
    for _ in 0..200 {
        next.choice(CTR, 1 << 20);
    }
    assert_eq!(next.submitted.load(Ordering::Relaxed), after_self_tests);
    // The files keep the measurements of other operations when more operations are measured.
    let both = next.warmed(Operation::Pass(Pass::EcbEncrypt));
    assert!(both.is_measured(CTR));
    let third = Machine::with(CPU, GPU, "driver 1", folder.cache(), None);
    assert!(third.is_measured(CTR) && third.is_measured(Operation::Pass(Pass::EcbEncrypt)));
}

#[test]
fn stale_foreign_and_damaged_files_are_replaced() {
    let folder = Folder::new("stale");
    Machine::with(CPU, GPU, "driver 1", folder.cache(), None).warmed(CTR);
    // With its new driver, the device is much faster.
    let fast: Model = |_, shape| line(shape.bytes, 0.1, 50_000.0);
    let newer = Machine::with(CPU, fast, "driver 2", folder.cache(), None);
    assert!(!newer.is_measured(CTR));
    assert_eq!(newer.warmed(CTR).choice(CTR, 1024), "mock");
    let older = Machine::with(CPU, GPU, "driver 1", folder.cache(), None);
    assert_eq!(older.choice(CTR, 1024), "mock-cpu", "each driver has its own file");

    let intact: Vec<_> = folder.files().iter().map(|file| std::fs::read(file).unwrap()).collect();
    type Damage = fn(&[u8]) -> Vec<u8>;
    let damages: [Damage; 6] = [
        |_| Vec::new(),
        |file| file[..file.len() / 2].to_vec(),
        |file| [&file[..60], b"7", &file[60..]].concat(),
        |_| vec![0xff; 10_000],
        |file| file.repeat(2),
        |_| vec![b'x'; 2 << 20],
    ];
    for damage in damages {
        for (file, content) in folder.files().iter().zip(&intact) {
            std::fs::write(file, damage(content)).unwrap();
        }
        let machine = Machine::with(CPU, GPU, "driver 1", folder.cache(), None);
        assert!(!machine.is_measured(CTR));
        assert_eq!(machine.warmed(CTR).choice(CTR, 1024), "mock-cpu");
        let repaired = Machine::with(CPU, GPU, "driver 1", folder.cache(), None);
        assert!(repaired.is_measured(CTR), "the file was replaced");
    }
    // The file of one device gets the name of the file of another device.
    let (processor, devices): (Vec<_>, Vec<_>) =
        folder.files().into_iter().partition(|file| file.to_string_lossy().contains("processor-"));
    for file in &devices {
        std::fs::copy(&processor[0], file).unwrap();
    }
    assert!(!Machine::with(CPU, GPU, "driver 1", folder.cache(), None).is_measured(CTR));
}

#[test]
fn a_cache_that_cannot_be_written_is_no_error() {
    let folder = Folder::new("file");
    std::fs::write(&folder.0, b"a file where the folder should be").unwrap();
    let machine = Machine::with(CPU, GPU, "driver 1", folder.cache(), None).warmed(CTR);
    assert_eq!(machine.choice(CTR, 1024), "mock-cpu");
    assert_eq!(std::fs::read(&folder.0).unwrap(), b"a file where the folder should be");
    std::fs::remove_file(&folder.0).unwrap();
}

#[test]
fn everything_is_measured_on_demand() {
    let folder = Folder::new("all");
    let slow: Model = |_, shape| line(shape.bytes, 3.0, 20.0);
    let machine =
        Machine::with(slow, |_, shape| line(shape.bytes, 9.0, 10.0), "driver 1", folder.cache(), None);
    let mut steps = Vec::new();
    // A call of `calibrate` needs no permission for automatic calibration.
    let planner = machine.planner.calibrate_automatically(false);
    let findings = planner.calibrate(&mut |done, of| steps.push((done, of)));
    assert_eq!(steps.first(), Some(&(0, Operation::COUNT)));
    assert_eq!(steps.last(), Some(&(Operation::COUNT, Operation::COUNT)));
    for device in ["mock-cpu", "mock"] {
        for operation in Operation::all() {
            for key in KeySize::ALL.into_iter().filter(|&key| offers(operation, key)) {
                let one = findings.iter().find(|finding| {
                    (finding.device, finding.operation, finding.key) == (id(device), operation, key)
                });
                let timing = &one.unwrap_or_else(|| panic!("no {operation} of {key:?} on {device}")).timing;
                let truth = if device == "mock-cpu" { 20e6 } else { 10e6 };
                assert!((timing.bytes_per_second() / truth - 1.0).abs() < 0.01, "{operation}: {timing:?}");
            }
        }
    }
    let next = Machine::with(slow, slow, "driver 1", folder.cache(), None);
    let offered = |operation: &Operation| offers(*operation, KEY);
    assert!(Operation::all().filter(offered).all(|operation| next.is_measured(operation)));
    let calibrator = Calibrator::new(VirtualClock(Arc::default()), folder.cache());
    calibrator.forget().unwrap();
    assert!(folder.files().is_empty());
}

/// A planner that may not calibrate automatically measures and writes nothing, but uses the stored measurements of another
/// planner.
#[test]
fn without_permission_nothing_is_measured_and_nothing_written() {
    let folder = Folder::new("permission");
    let silent = || {
        let machine = Machine::with(CPU, GPU, "driver 1", folder.cache(), None);
        Machine { planner: machine.planner.calibrate_automatically(false), ..machine }
    };
    let machine = silent();
    for _ in 0..1000 {
        machine.choice(CTR, 1 << 20);
    }
    machine.planner.discover_and_measure(CTR, KEY);
    assert!(!machine.is_measured(CTR) && !folder.0.exists());
    // There are no measurements, so the planner chooses by the stated costs.
    assert_eq!(machine.choice(CTR, 1024), "mock");
    Machine::with(CPU, GPU, "driver 1", folder.cache(), None).warmed(CTR);
    assert!(silent().is_measured(CTR));
    assert_eq!(silent().choice(CTR, 1024), "mock-cpu");
}
