//! `python -m lockstep`: the command.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command `lockstep` with these arguments, without the name of the program, and returns its exit code. It is for the
/// main thread of a process that does nothing else: a signal ends the process.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    let arguments = std::iter::once(OsString::from("lockstep")).chain(arguments).collect();
    py.detach(|| lockstep_cli::run(arguments, None))
}
