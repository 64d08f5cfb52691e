//! Memory of a device that Lockstep has allocated.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use dlpark::ffi::{DLDataType, DLDevice, DLDeviceType};
use dlpark::metadata::Dynamic;
use dlpark::python::producer::ExportRequest;
use dlpark::{DlpackFlags, Managed, ManagedTensorBase};
use lockstep::Engine;
use lockstep::hazmat::backend::{DeviceBuffer, DeviceId, DeviceMemory, Unit};
use lockstep::hazmat::data::{BufferHandle, DeviceSlice};
use lockstep::hazmat::mode::Executor;
use lockstep::hazmat::{Result as CoreResult, shown};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use super::import::raw_stream;
use crate::buffer::{Input, new_bytes};
use crate::engine;
use crate::error::{ensure, from_core};
use crate::forks::detached;
use crate::text::Text;

/// Bytes in the memory of a device, as an array for other libraries: by DLPack and by __cuda_array_interface__.
///
/// The memory is zeroed at first, and wiped when the last reference to it is dropped.
#[pyclass(frozen, module = "lockstep.tensor")]
pub(crate) struct DeviceArray {
    memory: Arc<Allocation>,
    shape: Vec<usize>,
}

/// Memory of a device.
pub(crate) struct Allocation {
    engine: Engine,
    slice: DeviceSlice,
    /// The process that has allocated the memory. The child of a fork cannot use the driver, so it frees
    /// neither the memory nor the engine.
    process: u32,
    /// `Some` until the value is dropped.
    owner: Mutex<Option<Box<dyn DeviceBuffer>>>,
}

impl Allocation {
    /// Allocates zeroed memory.
    pub(crate) fn new(engine: Engine, device: DeviceId, size: usize) -> CoreResult<Allocation> {
        let owner = engine.planner().memory(device)?.allocate(size)?;
        let (slice, process) = (owner.slice(), std::process::id());
        Ok(Allocation { engine, slice, process, owner: Mutex::new(Some(owner)) })
    }

    /// The whole memory.
    pub(crate) fn slice(&self) -> &DeviceSlice {
        &self.slice
    }

    /// True if the memory was allocated on this device by this engine.
    pub(crate) fn is_of(&self, engine: &Engine, device: DeviceId) -> bool {
        self.slice.device() == device && std::ptr::eq(self.engine.planner(), engine.planner())
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let owner = self.owner.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if std::process::id() != self.process {
            std::mem::forget((owner, self.engine.clone()));
        }
    }
}

impl DeviceArray {
    /// Calls a function with the interface to the memory of the device, and with the memory of this array.
    fn with_memory(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&dyn DeviceMemory, &DeviceSlice) -> CoreResult<()> + Send,
    ) -> PyResult<()> {
        let Allocation { engine, slice, .. } = &*self.memory;
        detached(py, || work(engine.planner().memory(slice.device())?, slice)).map_err(from_core)
    }

    fn export<M: ManagedTensorBase>(&self) -> PyResult<Managed<M>> {
        let shape: Vec<i64> = self.shape.iter().map(|&size| size as i64).collect();
        let tensor = Dynamic::compact(shape).initialize_as::<M>(Arc::clone(&self.memory));
        let mut tensor = tensor.map_err(|error| PyBufferError::new_err(error.to_string()))?;
        tensor
            .set_data(self.memory.slice.offset() as *mut c_void)
            .set_device(device_of(self.memory.slice.device()))
            .set_dtype(DLDataType::U8);
        // SAFETY: all fields are set, and the context keeps the memory.
        Ok(unsafe { tensor.finish() })
    }
}

#[pymethods]
impl DeviceArray {
    /// An array of bytes with a shape, a number or a tuple, on the device of this name, such as "cuda:0".
    ///
    /// Raises ValueError for a device that does not exist or whose memory has no addresses, RuntimeError if the device has not
    /// enough memory.
    #[new]
    fn new(py: Python<'_>, shape: &Bound<'_, PyAny>, device: Text) -> PyResult<DeviceArray> {
        let shape: Vec<usize> = match shape.extract() {
            Ok(size) => vec![size],
            Err(error) if error.is_instance_of::<PyTypeError>(py) => shape.extract()?,
            Err(error) => return Err(error),
        };
        let size = shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
        let size = size.ok_or_else(|| PyValueError::new_err("the array is too large"))?;
        let engine = engine::current(py)?;
        let id = device_named(py, &engine, &device)?;
        let memory = detached(py, || Allocation::new(engine, id, size)).map_err(from_core)?;
        let has_addresses = memory.slice.buffer() == BufferHandle::ADDRESS_SPACE;
        ensure(has_addresses, || format!("the memory of {id} has no addresses: use a device with CUDA"))?;
        Ok(DeviceArray { memory: Arc::new(memory), shape })
    }

    /// The name of the device.
    #[getter]
    fn device(&self) -> String {
        self.memory.slice.device().to_string()
    }

    /// The shape.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    /// The number of bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.memory.slice.len()
    }

    /// The bytes, after all earlier work on the stream (a number; 0 is the default stream).
    #[pyo3(signature = (stream=0))]
    fn tobytes<'py>(&self, py: Python<'py>, stream: u64) -> PyResult<Bound<'py, PyBytes>> {
        new_bytes(py, self.memory.slice.len(), |bytes| {
            self.with_memory(py, |memory, slice| memory.download(slice, bytes, raw_stream(stream)))
        })
    }

    /// Copies a buffer of the same length to the device, after all earlier work on the stream.
    #[pyo3(signature = (data, stream=0))]
    fn copy_from(&self, py: Python<'_>, data: Input<'_>, stream: u64) -> PyResult<()> {
        self.with_memory(py, |memory, slice| memory.upload(&data, slice, raw_stream(stream)))
    }

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__(
        &self,
        py: Python<'_>,
        stream: Option<&Bound<'_, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(u32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        // The memory is ready on every stream: all calls that write to it and return early run on the stream that they were given.
        let request = ExportRequest::parse(stream, max_version, dl_device, copy)?;
        let (device, flags) = (device_of(self.memory.slice.device()), DlpackFlags::empty());
        request.export_zero_copy(py, device, flags, || self.export(), || self.export())
    }

    fn __dlpack_device__(&self) -> (u32, i32) {
        let device = device_of(self.memory.slice.device());
        (device.device_type.0, device.device_id)
    }

    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("shape", self.shape(py)?)?;
        interface.set_item("typestr", "|u1")?;
        interface.set_item("data", (self.memory.slice.offset(), false))?;
        interface.set_item("strides", py.None())?;
        interface.set_item("version", 3)?;
        Ok(interface)
    }

    fn __repr__(&self) -> String {
        let (size, device) = (self.nbytes(), self.device());
        format!("<lockstep.tensor.DeviceArray of {size} bytes on {device}>")
    }
}

/// The device with a name.
pub(super) fn device_named(py: Python<'_>, engine: &Engine, name: &str) -> PyResult<DeviceId> {
    let found =
        detached(py, || engine.devices().iter().map(|device| device.id()).find(|id| id.to_string() == name));
    found.ok_or_else(|| {
        let name = shown::name(name);
        PyValueError::new_err(format!(
            "there is no device '{name}': see lockstep.devices() and lockstep.use()"
        ))
    })
}

/// The device in DLPack. The emulator has the type of extensions, so that no other library uses its memory as memory of a GPU.
fn device_of(id: DeviceId) -> DLDevice {
    match id.unit {
        Unit::Number(number) => DLDevice { device_type: DLDeviceType::CUDA, device_id: number.into() },
        Unit::Only | Unit::Named(_) => DLDevice { device_type: DLDeviceType::EXTDEV, device_id: 0 },
    }
}
