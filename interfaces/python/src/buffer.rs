//! Python's buffers, and `bytes` that are written in place.
//!
//! # Memory that the program can change
//!
//! Rust requires that nothing changes the bytes behind a `&[u8]`, and that nothing else uses the bytes behind a `&mut [u8]`. The
//! slices of this crate are sound for these reasons:
//!
//! - `bytes` do not change. A new `bytes` object is filled before other code has access to it, and its memory is initialised before
//!   there is a slice of it ([`unfilled_bytes`]).
//! - Other objects, such as `bytearray` and arrays, can be changed by other threads at any time. Inputs of at most [`COPIED`] bytes
//!   (keys, nonces, tags, most associated data) are therefore copied by atomic reads ([`Input`]), and so are the data that are written
//!   to an encrypted file ([`read_shared`]). The copies are wiped.
//! - Longer inputs, and outputs in a buffer of the caller, are used where they are, since a copy would take as long as the encryption.
//!   The memory stays valid, because its owner can neither move nor resize an exported buffer. The program must not change it during
//!   the call, as docs/python.md states. This applies to other threads, and to Python code that the call runs on its own thread: methods
//!   of file objects, signal handlers and progress callbacks. Rust cannot express a weaker duty for code that takes slices, and the
//!   modes take slices. If a program fails in this duty, the result is a wrong output or `InvalidTag`: the code of the library is the
//!   same as for other data, its lengths come from the exported buffer and not from the bytes, and no address and no branch of the default
//!   kernels depends on the bytes (docs/security.md). The tests change every kind of argument during calls.

use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use lockstep::aead::HostData;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zeroize::Zeroizing;

use crate::error::from_core;

/// The longest input that is copied if the program can change it, in bytes.
const COPIED: usize = 1 << 10;
/// New `bytes` of at most this length are zeroed. Zeroing longer objects would take up to half of the time of the encryption.
const ZEROED: usize = 1 << 10;

/// A place for an exported buffer; `obj` is null if none is exported. The address of the place does not change while a buffer is exported,
/// because exporters may point into it.
pub(crate) struct Export(ffi::Py_buffer);

/// The memory of a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) start: *mut u8,
    pub(crate) len: usize,
}

impl Memory {
    /// True if the two ranges of memory share bytes.
    #[inline]
    pub(crate) fn overlaps(self, other: Memory) -> bool {
        let (a, b) = (self.start as usize, other.start as usize);
        a.max(b) < (a + self.len).min(b + other.len)
    }

    /// No memory.
    pub(crate) const EMPTY: Memory = Memory { start: std::ptr::null_mut(), len: 0 };

    pub(crate) fn of(slice: &[u8]) -> Memory {
        Memory { start: slice.as_ptr().cast_mut(), len: slice.len() }
    }

    /// A part of the memory, which must be within it.
    pub(crate) fn part(self, range: Range<usize>) -> Memory {
        assert!(range.start <= range.end && range.end <= self.len, "a part outside of the memory");
        Memory { start: self.start.wrapping_add(range.start), len: range.len() }
    }
}

/// The bytes of an argument: `bytes`, or anything that has a contiguous buffer. If the object can change and has at most [`COPIED`]
/// bytes, the bytes are a copy, which is wiped on drop.
///
/// The conversion of an object to this type raises `TypeError` for an object without a buffer, and `BufferError` for a buffer that
/// is not contiguous.
pub(crate) struct Input<'a> {
    /// The memory of the object.
    memory: Memory,
    /// The bytes: in this memory or in the copy.
    start: *const u8,
    _keep: Keep<'a>,
}

/// The owner that keeps the bytes of an input valid.
#[allow(dead_code, reason = "held until it is dropped")]
enum Keep<'a> {
    /// The input owns nothing: the caller keeps the object for the lifetime `'a`.
    Nothing,
    Object(Bound<'a, PyAny>),
    Export(Box<Export>),
    /// A copy of the bytes. It consists of words, since words are wiped faster than bytes.
    Copy(Zeroizing<Vec<u64>>),
}

// SAFETY: a shared reference gives access to the bytes only.
unsafe impl Sync for Input<'_> {}

impl<'a> Input<'a> {
    /// No bytes.
    pub(crate) const EMPTY: Input<'a> =
        Input { memory: Memory::EMPTY, start: std::ptr::null(), _keep: Keep::Nothing };

    /// The bytes of an object.
    ///
    /// # Errors
    /// See [`Input`].
    #[inline(always)]
    pub(crate) fn new(object: &'a Bound<'_, PyAny>) -> PyResult<Input<'a>> {
        match object.cast_exact::<PyBytes>() {
            Ok(bytes) => Ok(Input::at(Memory::of(bytes.as_bytes()), Keep::Nothing)),
            Err(_) => Input::of_buffer(object),
        }
    }

    /// Returns the bytes of an object. The result keeps the object.
    ///
    /// # Errors
    /// See [`Input`].
    #[inline]
    pub(crate) fn owned(object: Bound<'a, PyAny>) -> PyResult<Input<'a>> {
        match object.cast_exact::<PyBytes>() {
            Ok(bytes) => Ok(Input::at(Memory::of(bytes.as_bytes()), Keep::Object(object))),
            Err(_) => Input::of_buffer(&object),
        }
    }

    /// A separate function, so that the code for `bytes` stays short.
    #[inline(never)]
    fn of_buffer(object: &Bound<'_, PyAny>) -> PyResult<Input<'a>> {
        let mut place = Export::new();
        let memory = place.export(object, ffi::PyBUF_SIMPLE)?;
        if memory.len <= COPIED {
            // SAFETY: the memory is valid while the buffer is exported. The result is a copy.
            return Ok(unsafe { Input::of(memory) });
        }
        // The first export ends before the second one begins, because the object may allow only one export at a time. The second
        // export may be at another address.
        drop(place);
        let mut export = Box::new(Export::new());
        let memory = export.export(object, ffi::PyBUF_SIMPLE)?;
        if memory.len <= COPIED {
            // SAFETY: as above.
            return Ok(unsafe { Input::of(memory) });
        }
        Ok(Input::at(memory, Keep::Export(export)))
    }

    /// The bytes of memory that the program can change.
    ///
    /// # Safety
    /// The memory is valid for reads as long as the value exists. If the memory has at most [`COPIED`] bytes, it only has to be
    /// valid during this call.
    #[inline]
    pub(crate) unsafe fn of(memory: Memory) -> Input<'a> {
        if memory.len > COPIED {
            return Input::at(memory, Keep::Nothing);
        }
        let (words, copy) = words(memory.len);
        // SAFETY: the copy is not shared; the caller guarantees that the memory is valid.
        unsafe { read_shared(memory, slice_mut(copy)) };
        Input { memory, ..Input::at(copy, Keep::Copy(words)) }
    }

    /// Returns an input with bytes that `fill` writes, and that are wiped on drop.
    ///
    /// # Errors
    /// Those of `fill`.
    pub(crate) fn filled(len: usize, fill: impl FnOnce(&mut [u8]) -> PyResult<()>) -> PyResult<Input<'a>> {
        let (words, memory) = words(len);
        // SAFETY: the memory is not shared.
        fill(unsafe { slice_mut(memory) })?;
        Ok(Input::at(memory, Keep::Copy(words)))
    }

    #[inline]
    fn at(memory: Memory, keep: Keep<'a>) -> Input<'a> {
        Input { memory, start: memory.start, _keep: keep }
    }

    /// The memory of the object.
    #[inline]
    pub(crate) fn memory(&self) -> Memory {
        self.memory
    }
}

/// Returns new words, which are wiped on drop, and the memory of their first `len` bytes.
fn words(len: usize) -> (Zeroizing<Vec<u64>>, Memory) {
    let mut words = Zeroizing::new(vec![0u64; len.div_ceil(8)]);
    let start = words.as_mut_ptr().cast();
    (words, Memory { start, len })
}

impl Deref for Input<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the member `_keep`, or the caller of `of`, keeps the bytes valid as long as the value exists.
        unsafe { slice(Memory { start: self.start.cast_mut(), len: self.memory.len }) }
    }
}

impl<'py> FromPyObject<'_, 'py> for Input<'py> {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Input<'py>> {
        Input::owned(object.to_owned())
    }
}

/// Copies memory that other threads can change at the same time: each byte of the copy is a value that the byte had during the
/// copy. The lengths must be equal.
///
/// # Safety
/// The memory is valid for reads.
pub(crate) unsafe fn read_shared(memory: Memory, to: &mut [u8]) {
    assert_eq!(memory.len, to.len(), "the lengths differ");
    let before = memory.start.align_offset(8).min(to.len());
    let (head, rest) = to.split_at_mut(before);
    let (body, tail) = rest.as_chunks_mut::<8>();
    let bytes = |at: usize, to: &mut [u8]| {
        for (index, byte) in to.iter_mut().enumerate() {
            // SAFETY: the address is within the memory.
            *byte = unsafe { AtomicU8::from_ptr(memory.start.add(at + index)) }.load(Ordering::Relaxed);
        }
    };
    bytes(0, head);
    for (index, word) in body.iter_mut().enumerate() {
        // SAFETY: the address is within the memory, and a multiple of 8.
        let atomic = unsafe { AtomicU64::from_ptr(memory.start.add(before + 8 * index).cast()) };
        *word = atomic.load(Ordering::Relaxed).to_ne_bytes();
    }
    bytes(memory.len - tail.len(), tail);
}

impl Export {
    /// An empty place.
    pub(crate) const fn new() -> Export {
        Export(ffi::Py_buffer::new())
    }

    /// The memory of an object, as for [`Input`]. The memory is valid as long as both this place and the object exist.
    ///
    /// # Errors
    /// See [`Input`].
    pub(crate) fn locate(&mut self, object: &Bound<'_, PyAny>) -> PyResult<Memory> {
        match object.cast_exact::<PyBytes>() {
            Ok(bytes) => Ok(Memory::of(bytes.as_bytes())),
            Err(_) => self.export(object, ffi::PyBUF_SIMPLE),
        }
    }

    /// The memory of an object with a writable contiguous buffer.
    ///
    /// # Errors
    /// `TypeError` for an object without a buffer or with a read-only buffer, `BufferError` for a buffer that is not contiguous.
    pub(crate) fn write(&mut self, object: &Bound<'_, PyAny>) -> PyResult<Memory> {
        self.export(object, ffi::PyBUF_WRITABLE).map_err(|refused| {
            match Export::new().export(object, ffi::PyBUF_SIMPLE) {
                Ok(_) => PyTypeError::new_err("the buffer is read-only: give one that is writable"),
                Err(_) => refused,
            }
        })
    }

    /// The memory of an object with a contiguous buffer, and its description without format and strides.
    ///
    /// # Errors
    /// `TypeError` for an object without a buffer, `BufferError` for a buffer that is not contiguous.
    pub(crate) fn describe(&mut self, object: &Bound<'_, PyAny>) -> PyResult<(Memory, &ffi::Py_buffer)> {
        Ok((self.export(object, ffi::PyBUF_ND)?, &self.0))
    }

    fn export(&mut self, object: &Bound<'_, PyAny>, flags: std::ffi::c_int) -> PyResult<Memory> {
        assert!(self.0.obj.is_null(), "a place holds one buffer");
        // SAFETY: the place is valid for a buffer; the thread is attached, since it holds a `Bound`.
        if unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &mut self.0, flags) } != 0 {
            // The exporter should have set this pointer to null.
            self.0.obj = std::ptr::null_mut();
            return Err(PyErr::fetch(object.py()));
        }
        Ok(Memory { start: self.0.buf.cast(), len: self.0.len as usize })
    }
}

// SAFETY: every thread that is attached to the interpreter can release a buffer.
unsafe impl Send for Export {}

impl Drop for Export {
    fn drop(&mut self) {
        if !self.0.obj.is_null() {
            // SAFETY: the buffer is exported. Values of this type are dropped only by threads that are attached to the interpreter: by
            // functions that Python calls, and together with the arrays of background work.
            unsafe { ffi::PyBuffer_Release(&mut self.0) };
        }
    }
}

/// Input and output in memory of the host, which have the same length.
///
/// # Errors
/// `ValueError` if they overlap in part.
///
/// # Safety
/// During `'a`, the input is valid for reads, and the output is initialised and valid for reads and writes. Apart from the input, nothing
/// else in this crate refers to the output. The documentation of this module states what holds for other threads.
#[inline]
pub(crate) unsafe fn host_data<'a>(from: Memory, to: Memory) -> PyResult<HostData<'a>> {
    let is_apart = !from.overlaps(to);
    if !is_apart && from != to {
        return Err(overlap());
    }
    // SAFETY: the caller guarantees the conditions. If input and output are the same memory, no slice of the input is made.
    unsafe {
        let to = slice_mut(to);
        if is_apart { HostData::copy(slice(from), to).map_err(from_core) } else { Ok(HostData::InPlace(to)) }
    }
}

/// Checks the length of an output.
#[inline]
pub(crate) fn check_output(len: usize, got: usize) -> PyResult<()> {
    if got == len { Ok(()) } else { Err(PyValueError::new_err(format!("buffer must be {len} bytes"))) }
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
/// The memory is valid for reads during `'a`. The documentation of this module states what holds for other threads.
pub(crate) unsafe fn slice<'a>(memory: Memory) -> &'a [u8] {
    if memory.len == 0 {
        return &[];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts(memory.start, memory.len) }
}

/// Returns the bytes of memory as a slice for writing.
///
/// # Safety
/// The memory is initialised, and valid for reads and writes during `'a`, and nothing else in this crate refers to it. The documentation
/// of this module states what holds for other threads.
pub(crate) unsafe fn slice_mut<'a>(memory: Memory) -> &'a mut [u8] {
    if memory.len == 0 {
        return &mut [];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts_mut(memory.start, memory.len) }
}

/// Returns a new `bytes` object, which the caller must fill, and its memory. The memory is initialised, but its content is
/// unspecified. The caller may write to the memory until it passes the object on.
///
/// # Errors
/// `MemoryError`, and `ValueError` for a length that no object can have.
#[inline]
pub(crate) fn unfilled_bytes(py: Python<'_>, len: usize) -> PyResult<(Bound<'_, PyBytes>, Memory)> {
    let size = ffi::Py_ssize_t::try_from(len).map_err(|_| PyValueError::new_err("the data are too long"))?;
    // SAFETY: with a null pointer the function makes an object of this length whose bytes are not set. An empty object is shared, but
    // has no byte. The calls below set all bytes; the object is owned here, and nothing else has access to it.
    unsafe {
        let object = ffi::PyBytes_FromStringAndSize(std::ptr::null(), size);
        let bytes = Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked::<PyBytes>();
        let start = ffi::PyBytes_AsString(object).cast::<u8>();
        match len <= ZEROED {
            true => start.write_bytes(0, len),
            false => set_unspecified(start, len),
        }
        Ok((bytes, Memory { start, len }))
    }
}

/// Sets memory to unspecified bytes, without a machine instruction.
///
/// Memory that was allocated and not written is uninitialised, and a read of it is undefined behaviour. The compiler must assume that
/// the empty assembly code below writes to the memory at the address that it gets. So the memory is initialised afterwards. Its values
/// are unspecified; they are the values that the memory had before. (Pages that an allocator has given up by `MADV_FREE` could still be
/// replaced by zeros before they are written to. The library writes each byte of an output before it reads it.)
///
/// # Safety
/// The memory is valid for writes of `len` bytes.
#[inline]
unsafe fn set_unspecified(start: *mut u8, #[allow(unused, reason = "for other processors")] len: usize) {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        // SAFETY: there is no instruction. Without the option `nomem`, the code may write to the memory, which the caller permits.
        unsafe { std::arch::asm!("/* {0} */", in(reg) start, options(nostack, preserves_flags)) };
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    // SAFETY: guaranteed by the caller.
    unsafe {
        start.write_bytes(0, len)
    };
}

/// Returns a new `bytes` object of this length, which `fill` writes completely. If `fill` fails, the object is dropped.
///
/// # Errors
/// Those of [`unfilled_bytes`] and of `fill`.
#[inline]
pub(crate) fn new_bytes<'py>(
    py: Python<'py>,
    len: usize,
    fill: impl FnOnce(&mut [u8]) -> PyResult<()>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (bytes, memory) = unfilled_bytes(py, len)?;
    // SAFETY: the memory is initialised, and belongs to the new object, to which nothing else has access yet.
    fill(unsafe { slice_mut(memory) })?;
    Ok(bytes)
}
