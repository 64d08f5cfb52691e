//! Runs the shared suite for every kernel, on a software device or on the device that LOCKSTEP_TEST_DEVICE names.

use crate::software;

use std::sync::{Arc, OnceLock};

use lockstep_core::backend::Device;
use lockstep_opengl::SOFTWARE;
use lockstep_testkit::absent_device;

const KERNELS: [&str; 10] = [
    "opengl/fixslice",
    "opengl/gems-vertex",
    "opengl/gems-fragment",
    "opengl/gems-vertex-uniform",
    "opengl/gems-fragment-uniform",
    "opengl/gems-vertex-mode",
    "opengl/gems-fragment-mode",
    "opengl/6800",
    "opengl/6800-mix2",
    "opengl/6800-xor2",
];

/// All tests share one device, so shaders are compiled once.
fn device() -> Arc<dyn Device> {
    static DEVICE: OnceLock<Arc<dyn Device>> = OnceLock::new();
    Arc::clone(DEVICE.get_or_init(|| match software::device() {
        Some(device) => Arc::new(device),
        None => absent_device(SOFTWARE, &KERNELS),
    }))
}

lockstep_testkit::backend_suite!(fixslice, device(), "opengl/fixslice");
lockstep_testkit::backend_suite!(gems_vertex, device(), "opengl/gems-vertex");
lockstep_testkit::backend_suite!(gems_fragment, device(), "opengl/gems-fragment");
lockstep_testkit::backend_suite!(gems_vertex_uniform, device(), "opengl/gems-vertex-uniform");
lockstep_testkit::backend_suite!(gems_fragment_uniform, device(), "opengl/gems-fragment-uniform");
lockstep_testkit::backend_suite!(gems_vertex_mode, device(), "opengl/gems-vertex-mode");
lockstep_testkit::backend_suite!(gems_fragment_mode, device(), "opengl/gems-fragment-mode");
lockstep_testkit::backend_suite!(geforce_6800, device(), "opengl/6800");
lockstep_testkit::backend_suite!(geforce_6800_mix2, device(), "opengl/6800-mix2");
lockstep_testkit::backend_suite!(geforce_6800_xor2, device(), "opengl/6800-xor2");
