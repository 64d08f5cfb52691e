//! Calls with data and an output of a known length: in buffers, or in arrays on the host or on a device.

use lockstep::hazmat::data::DeviceSlice;
use lockstep::hazmat::work::Stream;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::import::{Imported, Place, empty_like, is_tensor, result_like};
use crate::buffer::{Export, Memory, check_output};

/// A call that writes an output for its data.
pub(crate) trait Transform {
    /// The length of the output in bytes for data of this length.
    fn output_len(&self, len: usize) -> PyResult<usize>;

    /// Writes the output to memory of the host. The caller has checked the length of this memory.
    fn on_host(&self, py: Python<'_>, data: Memory, output: Memory) -> PyResult<()>;

    /// Writes the output to memory of the device that has the data. The caller has checked the length of this memory.
    fn on_device(
        &self,
        py: Python<'_>,
        data: &DeviceSlice,
        output: &DeviceSlice,
        stream: Stream,
    ) -> PyResult<()>;

    /// The output as a new array of the library of `data`, on the same device.
    fn to_array<'py>(&self, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let from = Imported::read(data, None)?;
        let output = empty_like(data, self.output_len(from.len())?)?;
        self.write_to_array(&from, &output)?;
        result_like(&output, data)
    }

    /// Writes the output to a buffer or an array, which may be the memory of the data; returns its length in bytes.
    fn write_to(&self, data: &Bound<'_, PyAny>, output: &Bound<'_, PyAny>) -> PyResult<usize> {
        if is_tensor(data)? || is_tensor(output)? {
            return self.write_to_array(&Imported::read(data, None)?, output);
        }
        let (mut from, mut to) = (Export::new(), Export::new());
        let (from, to) = (from.locate(data)?, to.write(output)?);
        check_output(self.output_len(from.len)?, to.len)?;
        self.on_host(data.py(), from, to)?;
        Ok(to.len)
    }

    /// Does the same as [`Transform::write_to`] for arrays.
    fn write_to_array(&self, data: &Imported, output: &Bound<'_, PyAny>) -> PyResult<usize> {
        let py = output.py();
        let output = Imported::write(output, data.stream_for_others(py, None)?.as_ref())?;
        check_output(self.output_len(data.len())?, output.len())?;
        match (&data.place, &output.place) {
            (&Place::Host(from), &Place::Host(to)) => self.on_host(py, from, to)?,
            (Place::Device(from), Place::Device(to)) => self.on_device(py, from, to, data.stream)?,
            _ => return Err(PyValueError::new_err("data and buf must be on the same device")),
        }
        Ok(output.len())
    }
}
