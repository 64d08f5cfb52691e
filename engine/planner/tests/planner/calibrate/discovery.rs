//! Discovery of devices at their first use, and the choice of a device while other threads work, discover devices or measure.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use lockstep_core::backend::{Completion, Cost, Device, DeviceId, KernelId, KernelInfo};
use lockstep_core::data::Data;
use lockstep_core::work::{Operation, Pass, Segment, Task, Work};
use lockstep_core::{Key, KeySize, Result};
use lockstep_modes::Executor;
use lockstep_planner::calibrate::Calibrator;
use lockstep_planner::verify::Verify;
use lockstep_planner::{Planner, Selection};
use lockstep_testkit::mock::MockAsyncDevice;

use super::machine::*;

#[test]
fn other_devices_are_discovered_after_enough_work() {
    let clock = Arc::new(Virtual::default());
    let cpu: Model = |_, shape| line(shape.bytes, 1.0, 500.0);
    let gpu: Model = |_, shape| line(shape.bytes, 1.0, 5000.0);
    let discovered = Arc::new(AtomicUsize::new(0));
    let planner = || {
        let (cpu, gpu) = (
            Timed::new("mock-cpu", "mock-cpu/kernel", cpu, &clock),
            Timed::new("mock", "mock/kernel", gpu, &clock),
        );
        let discovered = Arc::clone(&discovered);
        let discover = Box::new(move || {
            discovered.fetch_add(1, Ordering::Relaxed);
            vec![Arc::new(gpu) as Arc<dyn Device>, Arc::new(MockAsyncDevice::default())]
        });
        let planner = Planner::with_lazy_discovery(vec![Arc::new(cpu)], discover).with_verify(Verify::Off);
        planner
            .with_calibrator(Calibrator::new(VirtualClock(Arc::clone(&clock)), None))
            .calibrate_automatically(true)
    };
    let chosen = |planner: &Planner, bytes: usize| {
        planner.plan(CTR, KEY, bytes, None).unwrap().device.id().to_string()
    };
    let first = planner();
    // Each call takes 2 ms by the stated cost. Together the calls take less than two seconds, so the planner does not discover yet.
    for _ in 0..900 {
        assert_eq!(chosen(&first, 1 << 20), "mock-cpu");
    }
    // Short calls do not count towards discovery, however many there are.
    for _ in 0..100_000 {
        chosen(&first, 1024);
    }
    assert_eq!((discovered.load(Ordering::Relaxed), first.devices_so_far().len()), (0, 1));
    for _ in 0..200 {
        chosen(&first, 1 << 20);
    }
    assert_eq!(chosen(&first, 1 << 20), "mock");
    assert_eq!(discovered.load(Ordering::Relaxed), 1);
    // Devices that are used by name only are not candidates.
    assert_eq!(
        first.devices().iter().map(|device| device.id()).collect::<Vec<_>>(),
        [id("mock-cpu"), id("mock")]
    );
    // A list of all devices requires their discovery.
    let second = planner();
    assert_eq!(second.devices().len(), 2);
    assert_eq!(discovered.load(Ordering::Relaxed), 2);
    // Work on data in the memory of a device that has not been discovered starts the discovery.
    let third = planner();
    assert_eq!(third.plan(CTR, KEY, 16, Some(id("mock"))).unwrap().device.id(), id("mock"));
    assert_eq!(third.device(id("mock")).unwrap().id(), id("mock"));
    // `discover_and_measure` discovers and measures before any work.
    let fourth = planner();
    fourth.discover_and_measure(CTR, KEY);
    let considered = fourth.consider(CTR, KEY, 1 << 20, None);
    assert!(considered.iter().filter(|one| one.is_measured).count() >= 2, "{considered:?}");
    assert_eq!(chosen(&fourth, 1 << 20), "mock");
    assert_eq!(discovered.load(Ordering::Relaxed), 4);
}

/// Work that is not planned, because only one kernel is known, counts towards discovery too. Work in the memory of a device does not,
/// because no other device could do it.
#[test]
fn work_that_is_not_planned_counts() {
    let clock = Arc::new(Virtual::default());
    let model: Model = |_, shape| line(shape.bytes, 1.0, 500.0);
    let cpu = Timed::new("mock-cpu", "mock-cpu/kernel", model, &clock);
    let discovered = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&discovered);
    let discover = Box::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
        Vec::new()
    });
    let planner = Planner::with_lazy_discovery(vec![Arc::new(cpu)], discover).with_verify(Verify::Off);
    let key = Key::new(&[0; 16]).unwrap();
    let mut bytes = vec![0; 1 << 20];
    let mut run = |count: usize| {
        for _ in 0..count {
            let (data, state) = (Data::in_place(&mut bytes), &mut [0; 16]);
            planner.run_pass(Pass::Ctr, &mut [Segment { key: &key, tweak: None, state, data }]).unwrap();
        }
    };
    // Each call takes 2 ms by the stated cost, and discovery starts after two seconds of work.
    run(1);
    for _ in 0..1100 {
        planner.plan(CTR, KEY, 1 << 20, Some(id("mock-cpu"))).unwrap();
    }
    run(900);
    assert_eq!(discovered.load(Ordering::Relaxed), 0);
    run(200);
    assert_eq!(discovered.load(Ordering::Relaxed), 1);
}

/// While work runs on a device, the planner adds the time of this work to the device's time for other work.
#[test]
fn a_busy_device_is_avoided() {
    let (begun, has_begun) = std::sync::mpsc::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    /// A device whose work waits until the test lets it continue.
    struct Busy(Timed, Mutex<std::sync::mpsc::Sender<()>>, Mutex<std::sync::mpsc::Receiver<()>>);
    impl Device for Busy {
        fn id(&self) -> DeviceId {
            self.0.id()
        }
        fn description(&self) -> String {
            self.0.description()
        }
        fn kernels(&self) -> &[KernelInfo] {
            self.0.kernels()
        }
        fn cost(&self, _: KernelId, _: Operation, _: KeySize) -> Option<Cost> {
            Some(Cost::new(1000.0, 1.0))
        }
        fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
            if matches!(&work.task, Task::Pass(_, segments) if segments[0].data.len() == 1 << 20) {
                self.1.lock().unwrap().send(()).unwrap();
                self.2.lock().unwrap().recv().unwrap();
            }
            self.0.submit(kernel, work)
        }
    }
    let clock = Arc::new(Virtual::default());
    let busy = Timed::new("mock", "mock/kernel", GPU, &clock);
    let cpu = Timed::new("mock-cpu", "mock-cpu/kernel", CPU, &clock);
    let devices: Vec<Arc<dyn Device>> =
        vec![Arc::new(cpu), Arc::new(Busy(busy, Mutex::new(begun), Mutex::new(may_go_on)))];
    let planner = Planner::new(devices, &Selection::default()).unwrap().with_verify(Verify::Off);
    let chosen = || planner.plan(CTR, KEY, 1 << 20, None).unwrap().device.id();
    // By the stated costs, the work takes 2 ms on the CPU and half of that on the GPU.
    assert_eq!(chosen(), id("mock"));
    std::thread::scope(|scope| {
        scope.spawn(|| ctr(&planner, &clock, 1 << 20));
        has_begun.recv().unwrap();
        let meanwhile = chosen();
        go_on.send(()).unwrap();
        assert_eq!(meanwhile, id("mock-cpu"));
    });
    assert_eq!(chosen(), id("mock"));
}

/// No thread waits for another thread that discovers or measures, and all threads see the result.
#[test]
fn many_threads_plan_at_once() {
    let same: Model = |_, shape| line(shape.bytes, 5.0, 500.0);
    let clock = Arc::new(Virtual::default());
    let (cpu, gpu) = (
        Timed::new("mock-cpu", "mock-cpu/kernel", same, &clock),
        Timed::new("mock", "mock/kernel", GPU, &clock),
    );
    let discover = Box::new(move || vec![Arc::new(gpu) as Arc<dyn Device>]);
    let planner = Planner::with_lazy_discovery(vec![Arc::new(cpu)], discover).with_verify(Verify::Off);
    let planner = planner
        .with_calibrator(Calibrator::new(VirtualClock(Arc::clone(&clock)), None))
        .calibrate_automatically(true);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let planner = &planner;
            scope.spawn(move || {
                let operation = if thread % 2 == 0 { CTR } else { Operation::Pass(Pass::XtsEncrypt) };
                // Other threads may discover or measure in the meantime, so the number of calls is unknown.
                for _ in 0..60_000 {
                    for _ in 0..100 {
                        let _ = planner.plan(operation, KEY, 1 << 20, None).unwrap();
                    }
                    let considered = planner.consider(operation, KEY, 1 << 20, None);
                    if considered.iter().filter(|choice| choice.is_measured).count() >= 2 {
                        return;
                    }
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                panic!("nothing was measured");
            });
        }
    });
}
