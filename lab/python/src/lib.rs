//! The extension `lockstep._native` of the Python package, and in the same file the module `lockstep._lab`, whose import adds
//! the backends of the laboratory. `tools/python_package.sh` makes a package that imports both.

use pyo3::prelude::*;
// Exports the initialisation function of `lockstep._native`.
use lockstep_native as _;

/// Registers the backends of the laboratory for all engines of the process.
#[pymodule]
fn _lab(_: &Bound<'_, PyModule>) -> PyResult<()> {
    lockstep_lab_backends::register();
    Ok(())
}
