//! The command `lockstep`, for `python -m lockstep`.

use std::ffi::OsString;
use std::io::Write;

use pyo3::prelude::*;

/// Runs the command `lockstep` with these arguments, without the name of the program, and returns its exit code. It is for the
/// main thread of a process that does nothing else: a signal ends the process. `closed` has the numbers of the standard streams that
/// were closed when the process started. They refer to `/dev/null` now.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, arguments: Vec<OsString>, closed: Vec<u8>) -> u8 {
    closed.into_iter().for_each(lockstep_cli::standard::set_closed);
    let arguments = std::iter::once(OsString::from("lockstep")).chain(arguments).collect();
    py.detach(|| {
        let code = lockstep_cli::run(arguments, None);
        // A Rust program flushes standard output when it ends, and also ignores an error of this flush.
        let _ = std::io::stdout().flush();
        code
    })
}
