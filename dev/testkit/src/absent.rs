//! A device that this machine does not have.

use std::sync::Arc;

use lockstep_core::backend::{Completion, Cost, Device, DeviceId, KernelId, KernelInfo};
use lockstep_core::work::{Operation, Work};
use lockstep_core::{KeySize, Result};

/// A device whose kernels cannot run: the suite prints NOT TESTED for each of them.
pub fn absent_device(id: DeviceId, kernels: &[&'static str]) -> Arc<dyn Device> {
    let info = |name: &&'static str| KernelInfo {
        name,
        description: "",
        constant_time: true,
        missing: Some(format!("this machine has no {id}")),
    };
    Arc::new(Absent { id, kernels: kernels.iter().map(info).collect() })
}

struct Absent {
    id: DeviceId,
    kernels: Vec<KernelInfo>,
}

impl Device for Absent {
    fn id(&self) -> DeviceId {
        self.id
    }

    fn description(&self) -> String {
        "absent".into()
    }

    fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }

    fn cost(&self, _: KernelId, _: Operation, _: KeySize) -> Option<Cost> {
        None
    }

    fn submit<'w, 'd: 'w>(&self, _: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
        Err(work.task.operation().unsupported_by("none"))
    }
}
