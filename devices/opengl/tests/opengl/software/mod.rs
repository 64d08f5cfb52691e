//! The software device that tests run on, or the device that LOCKSTEP_TEST_DEVICE names.

use std::io::Write;

use lockstep_core::backend::Device;
use lockstep_opengl::{OpenGlBackend, OpenGlDevice, SOFTWARE};

/// The device that is tested. If this machine does not have it, prints NOT TESTED and returns None; if `CI` is set, the test
/// fails.
pub(crate) fn device() -> Option<OpenGlDevice> {
    let name = std::env::var("LOCKSTEP_TEST_DEVICE").unwrap_or(SOFTWARE.to_string());
    let device = OpenGlBackend.find().0.into_iter().find(|device| device.id().to_string() == name);
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
