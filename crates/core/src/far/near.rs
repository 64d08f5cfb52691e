//! `near`: the processor itself, as tests need it: others' results are compared with its own.

use super::Far;
use crate::backend::{Completion, Cost, Device, DeviceId, KernelId, KernelInfo, Unit};
use crate::error::Result;
use crate::key::KeySize;
use crate::work::{Operation, Work};

/// A trusted device that computes by the oracle. It states such costs that nobody chooses it where there is another.
pub struct Near {
    far: Far,
    kernels: [KernelInfo; 1],
}

impl Default for Near {
    fn default() -> Self {
        let kernels = [KernelInfo {
            name: "near/oracle",
            description: "the oracle, for tests",
            constant_time: true,
            missing: None,
        }];
        Near { far: Far::default(), kernels }
    }
}

impl Device for Near {
    fn id(&self) -> DeviceId {
        DeviceId { backend: "near", unit: Unit::Only }
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

    fn cost(&self, _: KernelId, _: Operation, _: KeySize) -> Option<Cost> {
        Some(Cost::new(1e9, 1e-3))
    }

    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
        self.far.submit(kernel, work)
    }
}
