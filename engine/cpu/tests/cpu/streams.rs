//! Random splits, batches and positions on every kernel: the properties of `lockstep-testkit`.

use std::sync::Arc;

use lockstep_cpu::{Cpu, CpuOptions};
use lockstep_planner::{Planner, Selection};

/// A planner for one kernel, or for all. If this processor cannot run the kernel, prints a notice and returns `None`.
fn planner(kernel: Option<&str>) -> Option<Arc<Planner>> {
    let device = Arc::new(Cpu::new(&CpuOptions { threads: Some(2) }));
    let selection = Selection { device: Some("cpu".into()), kernel: kernel.map(Into::into) };
    match Planner::new(vec![device], &selection) {
        Ok(planner) => Some(Arc::new(planner)),
        Err(error) => {
            assert!(std::env::var_os("LOCKSTEP_TEST_ALL_KERNELS").is_none(), "{error}");
            eprintln!("NOT TESTED: {error}");
            None
        }
    }
}

lockstep_testkit::properties!(auto, planner(None), 400);
lockstep_testkit::properties!(soft, planner(Some("cpu/soft")), 150);

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::*;

    lockstep_testkit::properties!(aesni, planner(Some("cpu/aesni")), 200);
    lockstep_testkit::properties!(vaes256, planner(Some("cpu/vaes256")), 200);
    lockstep_testkit::properties!(vaes512, planner(Some("cpu/vaes512")), 200);
}

#[cfg(target_arch = "aarch64")]
lockstep_testkit::properties!(armv8, planner(Some("cpu/armv8")), 150);
