//! Runs the shared suite for every kernel, on a software device or on the device that LOCKSTEP_TEST_DEVICE names.

use crate::software;

use std::sync::{Arc, OnceLock};

use lockstep_core::backend::Device;
use lockstep_testkit::absent_device;
use lockstep_wgpu::SOFTWARE;

/// All tests share one device, so programs are compiled once.
fn device() -> Arc<dyn Device> {
    static DEVICE: OnceLock<Arc<dyn Device>> = OnceLock::new();
    Arc::clone(DEVICE.get_or_init(|| match software::device() {
        Some(device) => Arc::new(device),
        None => absent_device(SOFTWARE, &["wgpu/bitslice", "wgpu/table"]),
    }))
}

lockstep_testkit::backend_suite!(bitslice, device(), "wgpu/bitslice");
lockstep_testkit::backend_suite!(table, device(), "wgpu/table");
