//! The C interface, and a function that adds the backends of the laboratory.

// Exports the functions of the C interface.
use lockstep_c as _;

/// Adds the backends of the laboratory for all engines that are made afterwards:
/// `void lockstep_lab_register(void)`.
#[unsafe(no_mangle)]
pub extern "C" fn lockstep_lab_register() {
    lockstep_lab_backends::register();
}
