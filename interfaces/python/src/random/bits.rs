//! The C interface of numpy's `BitGenerator`.
//!
//! numpy.random (random/bitgen.h) calls four functions with a pointer to the state, holding the lock of the `BitGenerator`, with or
//! without the interpreter lock. They take whole words of a buffer of keystream and call nothing of Python.

use std::cell::UnsafeCell;
use std::ffi::c_void;

use pyo3::ffi::PyCapsule_GetPointer;
use pyo3::prelude::*;
use zeroize::Zeroizing;

use super::words::unit;
use super::{BLOCK, StreamKey, blocks};
use crate::buffer::Input;
use crate::error::ensure;

/// The number of bytes of keystream that are computed at once.
const BUFFER: usize = 4096;

/// `bitgen_t` of numpy/random/bitgen.h. It is a part of numpy's stable C interface.
#[repr(C)]
struct Interface {
    state: *mut c_void,
    next_uint64: unsafe extern "C" fn(*mut c_void) -> u64,
    next_uint32: unsafe extern "C" fn(*mut c_void) -> u32,
    next_double: unsafe extern "C" fn(*mut c_void) -> f64,
    next_raw: unsafe extern "C" fn(*mut c_void) -> u64,
}

/// The keystream from which numpy takes words.
struct State {
    key: StreamKey,
    /// The number of the first block of the keystream after those in the buffer.
    next: u128,
    buffer: Zeroizing<[u8; BUFFER]>,
    /// The number of bytes at the start of the buffer that have been used.
    used: usize,
}

impl State {
    /// The next word of `N` bytes, at a multiple of `N` bytes of the keystream.
    #[inline]
    fn word<const N: usize>(&mut self) -> [u8; N] {
        let at = self.used.next_multiple_of(N);
        let word = self.buffer.get(at..).and_then(|rest| rest.first_chunk::<N>());
        if let Some(word) = word {
            self.used = at + N;
            return *word;
        }
        self.refill()
    }

    #[cold]
    fn refill<const N: usize>(&mut self) -> [u8; N] {
        self.key.write_inline(self.next, &mut self.buffer[..]);
        self.next = self.next.wrapping_add(blocks(BUFFER));
        self.used = N;
        self.buffer.first_chunk::<N>().copied().unwrap_or([0; N])
    }

    fn position(&self) -> (u128, usize) {
        let left = blocks(BUFFER - self.used / BLOCK * BLOCK);
        (self.next.wrapping_sub(left), self.used % BLOCK)
    }

    fn set_position(&mut self, block: u128, used: usize) -> PyResult<()> {
        ensure(used < BLOCK, || "the used bytes of a block are fewer than 16")?;
        self.key.write_inline(block, &mut self.buffer[..]);
        self.next = block.wrapping_add(blocks(BUFFER));
        self.used = used;
        Ok(())
    }
}

/// # Safety
/// `state` is the state of [`NumpyBits`], and the caller holds the lock of its `BitGenerator`.
unsafe extern "C" fn next_uint64(state: *mut c_void) -> u64 {
    // SAFETY: guaranteed by the caller.
    u64::from_le_bytes(unsafe { &mut *state.cast::<State>() }.word())
}

/// # Safety
/// The conditions of [`next_uint64`].
unsafe extern "C" fn next_uint32(state: *mut c_void) -> u32 {
    // SAFETY: guaranteed by the caller.
    u32::from_le_bytes(unsafe { &mut *state.cast::<State>() }.word())
}

/// # Safety
/// The conditions of [`next_uint64`].
unsafe extern "C" fn next_double(state: *mut c_void) -> f64 {
    // SAFETY: guaranteed by the caller.
    unit(u64::from_le_bytes(unsafe { &mut *state.cast::<State>() }.word()))
}

/// The state behind a `numpy.random.BitGenerator`. All of its methods are called with the lock of the `BitGenerator` held.
#[pyclass(frozen, module = "lockstep.random")]
pub(crate) struct NumpyBits {
    /// The state is in a box, because its address must not change: numpy stores the address.
    state: Box<UnsafeCell<State>>,
}

// SAFETY: numpy and `lockstep.random.BitGenerator` access the state with the lock of the `BitGenerator` held.
unsafe impl Sync for NumpyBits {}

#[pymethods]
impl NumpyBits {
    #[new]
    fn new(key: Input<'_>, position: u128) -> PyResult<NumpyBits> {
        NumpyBits::start(StreamKey::new(&key)?, position, 0)
    }

    /// A state with the same key at another position.
    fn at(&self, block: u128, used: usize) -> PyResult<NumpyBits> {
        // SAFETY: the caller holds the lock.
        let key = unsafe { &*self.state.get() }.key.clone();
        NumpyBits::start(key, block, used)
    }

    /// Writes the functions of this state to a capsule of numpy.
    fn install(&self, capsule: &Bound<'_, PyAny>) -> PyResult<()> {
        // SAFETY: the call checks that the object is a capsule of this name.
        let interface = unsafe { PyCapsule_GetPointer(capsule.as_ptr(), c"BitGenerator".as_ptr()) };
        if interface.is_null() {
            return Err(PyErr::fetch(capsule.py()));
        }
        let state = self.state.get().cast();
        let filled = Interface { state, next_uint64, next_uint32, next_double, next_raw: next_uint64 };
        // SAFETY: a capsule of this name has a `bitgen_t`, which numpy has not yet copied, because the capsule belongs to a new
        // object.
        unsafe { interface.cast::<Interface>().write(filled) };
        Ok(())
    }

    /// The number of the block that contains the next word, and the number of bytes of this block that have been used.
    #[getter]
    fn position(&self) -> (u128, usize) {
        // SAFETY: the caller holds the lock.
        unsafe { &*self.state.get() }.position()
    }

    fn set_position(&self, block: u128, used: usize) -> PyResult<()> {
        // SAFETY: the caller holds the lock.
        unsafe { &mut *self.state.get() }.set_position(block, used)
    }
}

impl NumpyBits {
    fn start(key: StreamKey, block: u128, used: usize) -> PyResult<NumpyBits> {
        let state = State { key, next: 0, buffer: Zeroizing::new([0; BUFFER]), used: 0 };
        // The state is moved to its box before the keystream is written, so that the move leaves no copy of the keystream.
        let mut state = Box::new(UnsafeCell::new(state));
        state.get_mut().set_position(block, used)?;
        Ok(NumpyBits { state })
    }
}
