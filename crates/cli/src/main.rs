//! The program `lockstep`.
#![deny(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    disable_device_selection();
    ExitCode::from(lockstep_cli::run(std::env::args_os().collect(), std::env::current_exe().ok()))
}

/// Disables Mesa's device selection layer for Vulkan if there is no display server, unless the user has configured the
/// layer. The layer would query the display server and print an error.
#[allow(unsafe_code, reason = "one variable, before there are threads")]
fn disable_device_selection() {
    let is_set = |name| std::env::var_os(name).is_some();
    if !["XDG_RUNTIME_DIR", "MESA_VK_DEVICE_SELECT", "NODEVICE_SELECT"].into_iter().any(is_set) {
        // SAFETY: no other thread runs yet.
        unsafe { std::env::set_var("NODEVICE_SELECT", "1") };
    }
}
