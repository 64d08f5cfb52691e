//! The shared suite, for every kernel, on a software device; or on the device that LOCKSTEP_TEST_DEVICE names.

use std::sync::{Arc, OnceLock};

use lockstep_core::backend::{Backend, Device};
use lockstep_vulkan::VulkanBackend;

/// One device for all tests: programs are compiled once.
fn device() -> Arc<dyn Device> {
    static DEVICE: OnceLock<Arc<dyn Device>> = OnceLock::new();
    Arc::clone(DEVICE.get_or_init(|| {
        let name = std::env::var("LOCKSTEP_TEST_DEVICE").unwrap_or("vulkan:software".into());
        let found = VulkanBackend.discover();
        found.devices.into_iter().find(|device| device.id().to_string() == name).unwrap()
    }))
}

lockstep_core::backend_suite!(bitslice, device(), "vulkan/bitslice");
lockstep_core::backend_suite!(table, device(), "vulkan/table");
