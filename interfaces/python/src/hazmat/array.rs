//! Raw modes of arrays without a buffer, on the host or on a device: see `crate::tensor`.

use lockstep::hazmat::data::Data;
use lockstep::hazmat::planner::OnStream;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::{Call, host_data};
use crate::engine;
use crate::error::from_core;
use crate::forks::detached;
use crate::tensor::{Imported, Place, empty_like, result_like};

/// Encrypts or decrypts an array into a new one of bytes, of the same library and on the same device.
///
/// # Errors
/// Those of `Imported::read`, of the mode, and of devices.
pub(super) fn raw_array<'py>(
    py: Python<'py>,
    call: Call<'_>,
    data: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let from = Imported::read(data, None)?;
    let output = empty_like(data, from.len())?;
    run(py, call, &from, &output)?;
    result_like(&output, data)
}

/// Encrypts or decrypts an array into another array of the same length, which may be the same memory. Returns the length in
/// bytes.
///
/// # Errors
/// Those of [`raw_array`], and `ValueError` for different lengths and for arrays that overlap in part.
pub(super) fn raw_array_into(
    py: Python<'_>,
    call: Call<'_>,
    data: &Bound<'_, PyAny>,
    output: &Bound<'_, PyAny>,
) -> PyResult<usize> {
    let from = Imported::read(data, None)?;
    run(py, call, &from, output)?;
    Ok(from.len())
}

fn run(py: Python<'_>, call: Call<'_>, data: &Imported, output: &Bound<'_, PyAny>) -> PyResult<()> {
    let to = Imported::write(output, data.stream_for_others(py, None)?.as_ref())?;
    if to.len() != data.len() {
        return Err(PyValueError::new_err(format!("buffer must be {} bytes", data.len())));
    }
    match (&data.place, &to.place) {
        (&Place::Host(from), &Place::Host(to)) => {
            call.check_output(to)?;
            // SAFETY: the arrays are imported until the end of this function, and the output is writable. No slice of the output
            // exists, since the key is apart from it and the initialization vector was copied.
            let data_and_output = unsafe { host_data(from, to) };
            call.run(py, data_and_output?)
        }
        (Place::Device(from), Place::Device(to_slice)) => {
            let engine = engine::current(py)?;
            let stream = data.stream;
            let data = Data::on_device(from.clone(), to_slice.clone()).map_err(from_core)?;
            let (cipher, direction, key, mut iv) = call.on_device()?;
            let work = || {
                let executor = OnStream::new(engine.planner(), to_slice.device(), stream)?;
                cipher.one(&executor, direction, &key, &mut iv, data)
            };
            detached(py, work).map_err(from_core)
        }
        _ => Err(PyValueError::new_err("data and buf must be on the same device")),
    }
}
