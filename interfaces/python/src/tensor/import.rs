//! The memory of an array, and the stream of the caller.

use std::ffi::c_void;
use std::ops::Range;

use dlpark::DlpackFlags;
use dlpark::ffi::{DLDevice, DLDeviceType};
use dlpark::python::consumer::stream::{cuda, no_sync, none};
use dlpark::python::{DlpackStream, ImportRequest, ImportedDlpack, StreamArg};
use lockstep::hazmat::backend::{DeviceId, Unit};
use lockstep::hazmat::data::DeviceSlice;
use lockstep::hazmat::mode::Executor;
use lockstep::hazmat::work::Stream;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};
use pyo3::{ffi, intern};

use super::memory::device_named;
use crate::buffer::{Export, Memory};
use crate::engine;
use crate::error::{ensure, from_core};
use crate::forks::detached;

/// Where the data of an array are.
#[derive(Clone)]
pub(crate) enum Place {
    Host(Memory),
    Device(DeviceSlice),
}

impl Place {
    /// The data on a device; None for the host.
    pub(crate) fn on_device(&self) -> Option<&DeviceSlice> {
        match self {
            Place::Host(_) => None,
            Place::Device(slice) => Some(slice),
        }
    }

    /// The device; None for the host.
    pub(crate) fn device(&self) -> Option<DeviceId> {
        self.on_device().map(DeviceSlice::device)
    }
}

/// The memory of an array. The memory stays valid as long as this value exists.
pub(crate) struct Imported {
    pub(crate) place: Place,
    pub(crate) shape: Vec<usize>,
    /// The size of an element in bytes.
    pub(crate) item: usize,
    /// The stream of the caller, for memory of a device.
    pub(crate) stream: Stream,
    /// The owner that keeps the memory valid. Each operation on the memory holds it until the operation ends.
    pub(crate) keep: Keep,
}

/// The owner that keeps the memory of an array valid. It is dropped while the thread is attached to the interpreter.
#[allow(dead_code, reason = "held until it is dropped")]
pub(crate) enum Keep {
    Buffer(Box<Export>),
    Dlpack(ImportedDlpack),
    Object(Py<PyAny>),
}

/// The stream of the consumer, in the form of DLPack.
struct Consumer(Stream);

// SAFETY: the stream is a stream that the caller uses, or the default stream, which exists as long as the device.
unsafe impl DlpackStream for Consumer {
    fn as_python_arg(&self, _: Python<'_>, device: DLDevice) -> PyResult<StreamArg> {
        Ok(match device.device_type {
            DLDeviceType::CUDA | DLDeviceType::CUDAMANAGED => cuda(self.0.number() as *mut c_void),
            DLDeviceType::EXTDEV => no_sync(),
            _ => none(),
        })
    }

    unsafe fn wait_for_producer(&self, _: DLDevice, producer: *mut c_void) -> PyResult<bool> {
        // No wait is necessary if the producer uses the same stream, because work on one stream runs in order.
        Ok(producer as u64 == self.0.number())
    }
}

/// True if an object has no buffer, so that it must be read by DLPack or by `__cuda_array_interface__`.
///
/// # Errors
/// The exception of an attribute of the object, unless it is `AttributeError`.
pub(crate) fn is_tensor(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if object.is_exact_instance_of::<PyBytes>() || object.is_exact_instance_of::<PyByteArray>() {
        return Ok(false);
    }
    let has = |name| object.hasattr(name);
    let py = object.py();
    Ok(!has_buffer(object)
        && (has(intern!(py, "__dlpack__"))? || has(intern!(py, "__cuda_array_interface__"))?))
}

/// True if an object is read by the buffer protocol. Arrays of JAX have it for some types of elements on the host only.
fn has_buffer(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the object is valid, and the thread is attached.
    let has = unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } != 0;
    let is_jax_name = |name: Bound<'_, PyString>| name.to_str().is_ok_and(|name| name.starts_with("jax"));
    let is_jax = || object.get_type().module().is_ok_and(is_jax_name);
    has && !is_jax()
}

/// Converts the array with the result of a call to the type of `like`: to an array of JAX if `like` is an array of JAX. Otherwise
/// returns the array unchanged.
pub(crate) fn result_like<'py>(
    array: &Bound<'py, PyAny>,
    like: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    arrays(py)?.call_method1(intern!(py, "result_like"), (array, like))
}

/// A new array of `size` bytes, of the library and on the device of an array; an array of JAX is made of it by [`result_like`].
pub(crate) fn empty_like<'py>(array: &Bound<'py, PyAny>, size: usize) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    arrays(py)?.call_method1(intern!(py, "empty_like"), (array, size))
}

/// The module with the functions for the arrays of each library.
fn arrays(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import(intern!(py, "lockstep._arrays"))
}

/// The bytes of an array, and its shape.
#[pyfunction]
#[pyo3(signature = (array, stream=None))]
pub(crate) fn array_size(
    array: &Bound<'_, PyAny>,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<(usize, Vec<usize>)> {
    let array = Imported::read(array, stream)?;
    Ok((array.len(), array.shape))
}

impl Imported {
    /// Imports the memory of an array for reading. `stream` is the stream of the caller: None, a number or an object, as
    /// `lockstep.tensor` documents.
    ///
    /// # Errors
    /// `TypeError` for an object that is not an array, `BufferError` for an array that is not contiguous, `ValueError` for a device
    /// that is not supported.
    pub(crate) fn read(array: &Bound<'_, PyAny>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<Imported> {
        Imported::new(array, stream, false)
    }

    /// Imports an array as [`Imported::read`] does, for writing.
    ///
    /// # Errors
    /// Those of [`Imported::read`], and `TypeError` for a read-only array.
    pub(crate) fn write(array: &Bound<'_, PyAny>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<Imported> {
        Imported::new(array, stream, true)
    }

    /// The length of the data in bytes.
    pub(crate) fn len(&self) -> usize {
        match &self.place {
            Place::Host(memory) => memory.len,
            Place::Device(slice) => slice.len(),
        }
    }

    /// True if two arrays share bytes.
    pub(crate) fn overlaps(&self, other: &Imported) -> bool {
        let (a, b) = (self.addresses(), other.addresses());
        self.place.device() == other.place.device() && a.start.max(b.start) < a.end.min(b.end)
    }

    /// The addresses of the data, as numbers. For memory of a device they are addresses of the device, not of the host.
    pub(crate) fn addresses(&self) -> Range<u64> {
        let start = match &self.place {
            Place::Host(memory) => memory.start as u64,
            Place::Device(slice) => slice.offset(),
        };
        start..start + self.len() as u64
    }

    /// The argument `stream` for the other arrays of a call whose work runs on the stream of this array. The libraries of these
    /// arrays make this stream wait for their own work; otherwise the import fails. `given` is the argument of the call.
    pub(crate) fn stream_for_others<'py>(
        &self,
        py: Python<'py>,
        given: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match &self.place {
            Place::Host(_) => Ok(given.cloned()),
            Place::Device(_) => Ok(Some(self.stream.number().into_pyobject(py)?.into_any())),
        }
    }

    fn new(array: &Bound<'_, PyAny>, stream: Option<&Bound<'_, PyAny>>, writes: bool) -> PyResult<Imported> {
        let py = array.py();
        let (imported, is_read_only) = if has_buffer(array) {
            Imported::from_buffer(array)?
        } else if array.hasattr(intern!(py, "__dlpack__"))? {
            Imported::from_dlpack(array, stream, writes)?
        } else if array.hasattr(intern!(py, "__cuda_array_interface__"))? {
            Imported::from_cuda_array(array, stream)?
        } else {
            let kind = array.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "'{kind}' is no array: give an object with a buffer, with __dlpack__ or with __cuda_array_interface__"
            )));
        };
        if writes && is_read_only {
            return Err(PyTypeError::new_err("the array is read-only: give one that is writable"));
        }
        Ok(imported)
    }

    /// The memory of an array with a buffer, and whether it is read-only.
    fn from_buffer(array: &Bound<'_, PyAny>) -> PyResult<(Imported, bool)> {
        if has_objects(array)? {
            return Err(PyTypeError::new_err(
                "the elements are objects of Python: give an array of numbers or bytes",
            ));
        }
        let mut export = Box::new(Export::new());
        let described = export.describe(array).map_err(|error| {
            // numpy's exception is a ValueError.
            let py = array.py();
            let is_layout =
                error.is_instance_of::<PyValueError>(py) || error.is_instance_of::<PyBufferError>(py);
            if is_layout { not_contiguous() } else { error }
        });
        let (memory, view) = described?;
        let shape = match view.shape.is_null() {
            true => vec![memory.len],
            // SAFETY: the exporter guarantees that the shape has this many numbers, which are not negative.
            false => unsafe { std::slice::from_raw_parts(view.shape.cast(), view.ndim as usize) }.to_vec(),
        };
        let (item, is_read_only) = (view.itemsize as usize, view.readonly != 0);
        let (place, keep) = (Place::Host(memory), Keep::Buffer(export));
        Ok((Imported { place, shape, item, stream: Stream::default(), keep }, is_read_only))
    }

    /// The memory of an array with `__dlpack__`, and whether it is read-only.
    fn from_dlpack(
        array: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, PyAny>>,
        writes: bool,
    ) -> PyResult<(Imported, bool)> {
        let py = array.py();
        arrays(py)?.call_method1(intern!(py, "check"), (array, writes))?;
        let request = ImportRequest::new(array.as_borrowed())?;
        let device = request.device()?;
        let id = device_of(py, device)?;
        let stream = match id {
            Some(_) => stream_of(array, device.device_id, stream)?,
            None => Stream::default(),
        };
        let consumer = Consumer(stream);
        let consumer: Option<&dyn DlpackStream> = id.is_some().then_some(&consumer as _);
        let tensor = request.import(consumer, None)?;
        let bad = |error: dlpark::tensor::Error| PyValueError::new_err(error.to_string());
        let (place, shape, item) = {
            let view = tensor.validate().map_err(bad)?;
            if !view.is_compact().map_err(bad)? {
                return Err(not_contiguous());
            }
            let dtype = view.dtype();
            if !dtype.bits.is_multiple_of(8) {
                return Err(PyTypeError::new_err("the elements must be whole bytes"));
            }
            let shape = view.shape().iter().map(|&size| size as usize).collect();
            let item = usize::from(dtype.bits / 8) * usize::from(dtype.lanes);
            // SAFETY: the producer guarantees that the data are within its allocation.
            let start = unsafe { view.offset_bytes_ptr() }.map_err(bad)?.cast_mut();
            let len = view.num_bytes();
            let place = match id {
                None => Place::Host(Memory { start, len }),
                // SAFETY: the producer keeps the memory until the import is dropped, and the import is dropped after all work on
                // the memory. The user is responsible for the order of the accesses, as the documentation states.
                Some(id) => Place::Device(unsafe { DeviceSlice::from_raw(id, start as u64, len) }),
            };
            (place, shape, item)
        };
        let is_read_only = tensor.flags().contains(DlpackFlags::READ_ONLY);
        if writes && !is_read_only && tensor.flags().contains(DlpackFlags::IS_COPIED) {
            return Err(PyBufferError::new_err(
                "the library of the array exports a copy, so that the array cannot be written to: give another array",
            ));
        }
        let keep = Keep::Dlpack(tensor);
        Ok((Imported { place, shape, item, stream, keep }, is_read_only))
    }

    /// The memory of an array with `__cuda_array_interface__`, and whether it is read-only.
    fn from_cuda_array(
        array: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(Imported, bool)> {
        let py = array.py();
        let described = arrays(py)?.call_method1(intern!(py, "cuda_array"), (array, stream))?;
        let (shape, item, address, is_read_only, stream, device) = described.extract::<CudaArray>()?;
        let len = shape.iter().try_fold(item, |product, &size| product.checked_mul(size));
        let len = len.ok_or_else(|| PyValueError::new_err("the array is too large"))?;
        let (stream, id) = (checked_stream(stream)?, device_named(py, &engine::current(py)?, &device)?);
        // SAFETY: the object keeps the memory, and a reference to it is held until after all work on it. The user is responsible
        // for the order of the accesses, as the documentation states.
        let slice = unsafe { DeviceSlice::from_raw(id, address, len) };
        let keep = Keep::Object(array.clone().unbind());
        Ok((Imported { place: Place::Device(slice), shape, item, stream, keep }, is_read_only))
    }
}

/// The tuple that `lockstep._arrays.cuda_array` returns: shape, bytes of an element, address, whether the memory is read-only, stream
/// and device.
type CudaArray = (Vec<usize>, usize, u64, bool, u64, String);

/// True for an array of numpy whose memory has pointers to objects. The format of its buffer would show that as well, but numpy does not
/// export the formats of all types, such as bfloat16.
fn has_objects(array: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = array.py();
    let Some(dtype) = array.getattr_opt(intern!(py, "dtype"))? else { return Ok(false) };
    dtype.getattr_opt(intern!(py, "hasobject"))?.map_or(Ok(false), |value| value.is_truthy())
}

fn not_contiguous() -> PyErr {
    PyBufferError::new_err("the array is not contiguous: make a copy, for example by .contiguous()")
}

/// The device of Lockstep for a device of DLPack; None for the host.
fn device_of(py: Python<'_>, device: DLDevice) -> PyResult<Option<DeviceId>> {
    let unit = match device.device_type {
        DLDeviceType::CPU | DLDeviceType::CUDAHOST => return Ok(None),
        DLDeviceType::CUDA | DLDeviceType::CUDAMANAGED => Unit::Number(device.device_id as u16),
        // The emulator. Its memory has this type, so that no other library uses it as memory of a GPU.
        DLDeviceType::EXTDEV if lockstep::engine::is_registered("cuda") => Unit::Named("emu"),
        DLDeviceType::ROCM | DLDeviceType::ROCMHOST => {
            return Err(PyValueError::new_err(
                "arrays of ROCm are not supported: copy the array to the host or to a GPU of NVIDIA",
            ));
        }
        DLDeviceType(kind) => {
            return Err(PyValueError::new_err(format!(
                "arrays of the DLPack device type {kind} are not supported: copy the array to the host"
            )));
        }
    };
    let id = DeviceId { backend: "cuda", unit };
    let engine = engine::current(py)?;
    // This checks that the device exists. It may start its driver.
    detached(py, || engine.planner().memory(id).map(|_| ())).map_err(from_core)?;
    Ok(Some(id))
}

/// The stream of the caller for an array.
fn stream_of(array: &Bound<'_, PyAny>, ordinal: i32, stream: Option<&Bound<'_, PyAny>>) -> PyResult<Stream> {
    let py = array.py();
    let number = arrays(py)?.call_method1(intern!(py, "stream_of"), (array, ordinal, stream))?;
    checked_stream(number.extract()?)
}

fn checked_stream(number: u64) -> PyResult<Stream> {
    ensure(
        number != 2,
        || "the default stream of a thread is not supported, because work is started by another thread: use a stream of its own",
    )?;
    Ok(raw_stream(number))
}

/// The stream with a handle that a caller gave.
pub(super) fn raw_stream(number: u64) -> Stream {
    // SAFETY: the documentation of the Python functions requires the handle of a stream of the device, or 0.
    unsafe { Stream::from_raw(number) }
}
