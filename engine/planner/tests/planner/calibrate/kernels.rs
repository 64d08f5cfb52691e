//! The choice between two kernels of one device.

use std::sync::Arc;

use lockstep_core::backend::{Completion, Cost, Device, DeviceId, KernelId, KernelInfo};
use lockstep_core::work::{Operation, Work};
use lockstep_core::{KeySize, Result};
use lockstep_planner::calibrate::Calibrator;
use lockstep_planner::verify::Verify;
use lockstep_planner::{Planner, Selection};
use lockstep_testkit::mock::offers;

use super::machine::*;

/// A CPU device with two kernels.
struct Two {
    timed: Timed,
    kernels: [KernelInfo; 2],
    /// The stated rates in GB/s.
    stated: [f64; 2],
    /// The time of the second kernel, divided by the time of the first kernel.
    second: f64,
}

impl Two {
    fn new(stated: [f64; 2], second: f64, clock: &Arc<Virtual>) -> Two {
        let timed = Timed::new("mock-cpu", "mock-cpu/first", CPU, clock);
        let kernels =
            ["mock-cpu/first", "mock-cpu/second"].map(|name| KernelInfo { name, ..timed.kernels[0].clone() });
        Two { timed, kernels, stated, second }
    }
}

impl Device for Two {
    fn id(&self) -> DeviceId {
        self.timed.id()
    }
    fn description(&self) -> String {
        self.timed.description()
    }
    fn is_trusted(&self) -> bool {
        true
    }
    fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }
    fn cost(&self, kernel: KernelId, operation: Operation, key: KeySize) -> Option<Cost> {
        offers(operation, key).then(|| Cost::new(1.0, self.stated[usize::from(kernel.0)]))
    }
    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
        let completion = self.timed.submit(KernelId(0), work)?;
        if kernel.0 == 1 {
            self.timed.clock.0.lock().unwrap().values_mut().for_each(|ns| *ns *= self.second);
        }
        Ok(completion)
    }
}

#[test]
fn a_later_kernel_of_a_device_must_be_clearly_faster() {
    let clock = Arc::new(Virtual::default());
    let make = |second: f64| {
        let two = Two::new([1.1, 1.0], second, &clock);
        let gpu = Timed::new("mock", "mock/kernel", GPU, &clock);
        let devices: Vec<Arc<dyn Device>> = vec![Arc::new(two), Arc::new(gpu)];
        let planner = Planner::new(devices, &Selection::default()).unwrap().with_verify(Verify::Off);
        let planner = planner.with_calibrator(Calibrator::new(VirtualClock(Arc::clone(&clock)), None));
        let planner = planner.calibrate_automatically(true);
        for _ in 0..500 {
            let _ = planner.plan(CTR, KEY, 1 << 18, None).unwrap();
        }
        planner.plan(CTR, KEY, 1 << 14, None).unwrap().kernel_name()
    };
    assert_eq!(make(0.95), "mock-cpu/first");
    assert_eq!(make(0.8), "mock-cpu/second");
    assert_eq!(make(1.3), "mock-cpu/first");
}

/// Of two kernels with equal stated costs only the first is measured.
#[test]
fn equal_kernels_of_a_device_are_measured_once() {
    let clock = Arc::new(Virtual::default());
    let two = Two::new([1.0, 0.99], 1.0, &clock);
    let planner = Planner::new(vec![Arc::new(two)], &Selection::default()).unwrap();
    let planner = planner.with_calibrator(Calibrator::new(VirtualClock(clock), None));
    let findings = planner.calibrate(&mut |_, _| ());
    assert!(findings.iter().all(|finding| finding.kernel == "mock-cpu/first"));
    let sizes = |operation: Operation| KeySize::ALL.into_iter().filter(move |&size| offers(operation, size));
    assert_eq!(findings.len(), Operation::all().flat_map(sizes).count());
}
