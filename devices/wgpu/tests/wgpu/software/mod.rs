//! The software device that tests run on, or the device that LOCKSTEP_TEST_DEVICE names.

use std::io::Write;

use lockstep_core::backend::Device;
use lockstep_wgpu::{SOFTWARE, SOFTWARE_GL, WgpuBackend, WgpuDevice};

/// The device of this name. If this machine has none, prints NOT TESTED and returns None; if `CI` is set, the test fails.
pub(crate) fn by_name(name: &str) -> Option<WgpuDevice> {
    let by_opengl = name == SOFTWARE_GL.to_string();
    let found = if by_opengl { WgpuBackend.find_by_opengl() } else { WgpuBackend.find() };
    let device = found.devices.into_iter().find(|device| device.id().to_string() == name);
    if device.is_none() {
        assert!(
            std::env::var_os("CI").is_none(),
            "no {name}: install Mesa's software drivers: tools/setup.sh"
        );
        // `eprintln!` is not used, because the test harness captures its output.
        let _ =
            writeln!(std::io::stderr(), "NOT TESTED: there is no {name}: install Mesa's software drivers");
    }
    device
}

/// The device that is tested.
#[allow(dead_code, reason = "not every test file uses it")]
pub(crate) fn device() -> Option<WgpuDevice> {
    by_name(&std::env::var("LOCKSTEP_TEST_DEVICE").unwrap_or(SOFTWARE.to_string()))
}
