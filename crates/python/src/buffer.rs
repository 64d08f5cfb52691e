//! Python's buffers as slices, and `bytes` that are written in place.
//!
//! The slices of a mutable buffer are valid while the buffer is exported: its owner can neither move nor resize it. Another thread
//! can still change the bytes. The result of a call whose input changes meanwhile is unspecified, as with every function that
//! releases the interpreter lock.

use std::mem::MaybeUninit;
use std::ops::Range;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A place for an exported buffer. Its address does not change while the buffer is exported, because exporters may point into it.
pub(crate) struct Export {
    view: MaybeUninit<ffi::Py_buffer>,
    is_exported: bool,
}

/// The memory of a buffer.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) start: *mut u8,
    pub(crate) len: usize,
}

/// The shape of a buffer.
pub(crate) struct Shape {
    pub(crate) dimensions: Vec<usize>,
    /// The bytes of an element.
    pub(crate) item: usize,
    pub(crate) read_only: bool,
}

impl Memory {
    fn range(self) -> Range<usize> {
        self.start as usize..self.start as usize + self.len
    }

    /// True if the two share bytes.
    pub(crate) fn overlaps(self, other: Memory) -> bool {
        let (a, b) = (self.range(), other.range());
        a.start < b.end && b.start < a.end
    }

    /// The memory of a slice.
    pub(crate) fn of(slice: &[u8]) -> Memory {
        Memory { start: slice.as_ptr().cast_mut(), len: slice.len() }
    }
}

impl Export {
    /// An empty place.
    pub(crate) const fn new() -> Export {
        Export { view: MaybeUninit::uninit(), is_exported: false }
    }

    /// The bytes of an object: `bytes`, or anything that has a contiguous buffer.
    ///
    /// # Errors
    /// `TypeError` for an object without a buffer, `BufferError` for a buffer that is not contiguous.
    #[inline]
    pub(crate) fn read<'a>(&'a mut self, object: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
        if let Ok(bytes) = object.cast_exact::<PyBytes>() {
            return Ok(bytes.as_bytes());
        }
        let memory = self.export(object, ffi::PyBUF_SIMPLE)?;
        // SAFETY: the memory is valid while the buffer is exported, which is as long as `self` is borrowed.
        Ok(unsafe { slice(memory) })
    }

    /// The memory of an object with a writable contiguous buffer.
    ///
    /// # Errors
    /// `TypeError` for an object without a buffer or with a read-only one, `BufferError` for a buffer that is not contiguous.
    pub(crate) fn write(&mut self, object: &Bound<'_, PyAny>) -> PyResult<Memory> {
        let refused = match self.export(object, ffi::PyBUF_WRITABLE) {
            Ok(memory) => return Ok(memory),
            Err(refused) => refused,
        };
        match Export::new().export(object, ffi::PyBUF_SIMPLE) {
            Ok(_) => Err(PyTypeError::new_err("the buffer is read-only: give one that is writable")),
            Err(_) => Err(refused),
        }
    }

    /// The memory of an object with a contiguous buffer, and its shape.
    ///
    /// # Errors
    /// `TypeError` for an object without a buffer, `BufferError` for a buffer that is not contiguous.
    pub(crate) fn shaped(&mut self, object: &Bound<'_, PyAny>) -> PyResult<(Memory, Shape)> {
        let memory = self.export(object, ffi::PyBUF_ND)?;
        // SAFETY: `export` has initialised the view.
        let view = unsafe { self.view.assume_init_ref() };
        let dimensions = match view.shape.is_null() {
            true => vec![memory.len],
            // SAFETY: the exporter guarantees that the shape has this many numbers.
            false => unsafe { std::slice::from_raw_parts(view.shape, view.ndim as usize) }
                .iter()
                .map(|&size| size as usize)
                .collect(),
        };
        Ok((memory, Shape { dimensions, item: view.itemsize as usize, read_only: view.readonly != 0 }))
    }

    fn export(&mut self, object: &Bound<'_, PyAny>, flags: std::ffi::c_int) -> PyResult<Memory> {
        assert!(!self.is_exported, "a place holds one buffer");
        // SAFETY: the place is valid for a buffer; the thread is attached, since it holds a `Bound`.
        if unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), self.view.as_mut_ptr(), flags) } != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        self.is_exported = true;
        // SAFETY: the call above has initialised the view.
        let view = unsafe { self.view.assume_init_ref() };
        Ok(Memory { start: view.buf.cast(), len: view.len as usize })
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        if self.is_exported {
            // SAFETY: the buffer is exported. Values of this type are local variables of functions that Python calls. The thread is
            // attached to the interpreter when such a function returns.
            unsafe { ffi::PyBuffer_Release(self.view.as_mut_ptr()) };
        }
    }
}

/// True if input and output do not overlap, false if they are the same memory.
///
/// # Errors
/// `ValueError` if they overlap in part.
pub(crate) fn is_apart(from: Memory, to: Memory) -> PyResult<bool> {
    if !from.overlaps(to) {
        return Ok(true);
    }
    if from.start == to.start && from.len == to.len { Ok(false) } else { Err(overlap()) }
}

/// The exception for an output that overlaps an argument.
pub(crate) fn overlap() -> PyErr {
    PyValueError::new_err(
        "the buffer overlaps an argument: give separate memory, or for work in place the memory of the data itself",
    )
}

/// The bytes of memory; the pointer of an empty buffer may be null.
///
/// # Safety
/// The memory is valid for reads during `'a`.
pub(crate) unsafe fn slice<'a>(memory: Memory) -> &'a [u8] {
    if memory.len == 0 {
        return &[];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts(memory.start, memory.len) }
}

/// The bytes of memory, to write to.
///
/// # Safety
/// The memory is valid for reads and writes during `'a`, and nothing else refers to it.
pub(crate) unsafe fn slice_mut<'a>(memory: Memory) -> &'a mut [u8] {
    if memory.len == 0 {
        return &mut [];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts_mut(memory.start, memory.len) }
}

/// `bytes` of a length, which `fill` writes completely. They are dropped if it fails.
///
/// # Errors
/// `MemoryError`, and those of `fill`.
#[inline]
pub(crate) fn new_bytes<'py>(
    py: Python<'py>,
    len: usize,
    fill: impl FnOnce(&mut [u8]) -> PyResult<()>,
) -> PyResult<Bound<'py, PyBytes>> {
    let size = ffi::Py_ssize_t::try_from(len).map_err(|_| PyValueError::new_err("the data are too long"))?;
    // SAFETY: with a null pointer the function makes an object whose bytes are not set; the caller writes them before other code has access. The object is owned
    // here. An empty object is shared, but has no byte that could be written.
    unsafe {
        let object = ffi::PyBytes_FromStringAndSize(std::ptr::null(), size);
        let bytes = Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked::<PyBytes>();
        let start = ffi::PyBytes_AsString(object).cast::<u8>();
        fill(slice_mut(Memory { start, len }))?;
        Ok(bytes)
    }
}
