//! A trusted device for tests. The results of other devices are compared with its results.

use super::MockAsyncDevice;
use lockstep_core::backend::{Completion, Cost, Device, DeviceId, KernelId, KernelInfo, Unit};
use lockstep_core::error::Result;
use lockstep_core::key::KeySize;
use lockstep_core::work::{Operation, Work};

/// A trusted device that computes by the oracle. Its stated costs are so high that the planner prefers every other device.
pub struct MockCpu {
    device: MockAsyncDevice,
    kernels: [KernelInfo; 1],
}

impl Default for MockCpu {
    fn default() -> Self {
        let kernels = [KernelInfo {
            name: "mock-cpu/oracle",
            description: "the oracle, for tests",
            constant_time: true,
            missing: None,
        }];
        MockCpu { device: MockAsyncDevice::default(), kernels }
    }
}

impl Device for MockCpu {
    fn id(&self) -> DeviceId {
        DeviceId { backend: "mock-cpu", unit: Unit::Only }
    }

    fn description(&self) -> String {
        "the oracle".into()
    }

    fn is_trusted(&self) -> bool {
        true
    }

    fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }

    fn cost(&self, _: KernelId, operation: Operation, size: KeySize) -> Option<Cost> {
        operation.takes_key(size).then(|| Cost::new(1e9, 1e-3))
    }

    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
        self.device.submit(kernel, work)
    }
}
