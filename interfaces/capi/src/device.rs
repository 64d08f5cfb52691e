//! Memory of devices.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::Mutex;

use lockstep::hazmat::Error;
use lockstep::hazmat::backend::{DeviceBuffer as Owner, DeviceId, DeviceMemory};
use lockstep::hazmat::data::{BufferHandle, DeviceSlice};
use lockstep::hazmat::mode::Executor;
use lockstep::hazmat::work::Stream;

use crate::engine::{Engine, free_with_engine};
use crate::error::{Outcome, ensure};
use crate::ffi;

/// Memory of a device. All threads may use it at the same time; the caller must order calls that use the same bytes, if one
/// of them writes.
pub struct DeviceBuffer {
    pub(crate) slice: DeviceSlice,
    /// The allocation; `None` for memory of the caller. This member is declared before the engine, so that it is dropped first. The
    /// mutex is never locked: it only makes the type `Sync`.
    _owner: Option<Mutex<Box<dyn Owner>>>,
    engine: Engine,
}

/// A part of a device buffer.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DeviceRange {
    /// The buffer.
    pub buffer: *const DeviceBuffer,
    /// The offset of the part in the buffer, in bytes.
    pub offset: usize,
    /// Bytes of the part.
    pub len: usize,
}

/// Allocates memory of a device of the engine, and fills it with zeros. `device` is a name that lockstep_engine_device_name
/// writes, or NULL for the first device with memory of its own. The memory is wiped when it is freed.
///
/// Errors: LOCKSTEP_ERROR_UNKNOWN_DEVICE, LOCKSTEP_ERROR_OUT_OF_REACH if the device has no memory of its own,
/// LOCKSTEP_ERROR_DEVICE if there is not enough memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_device_allocate(
    engine: *const Engine,
    device: *const c_char,
    len: usize,
    buffer: *mut *mut DeviceBuffer,
) -> c_int {
    new_buffer(engine, device, buffer, |memory, _| {
        let owner = memory.allocate(len)?;
        Ok((owner.slice(), Some(owner)))
    })
}

/// Makes a buffer of `len` bytes of memory that the caller has allocated on a CUDA device of the engine, in the device's
/// primary context: by cudaMalloc, or by a library such as PyTorch. The engine does not free it.
///
/// The caller must guarantee two conditions that no library can check. The memory must stay allocated until all work on the
/// buffer has ended and the buffer is freed. Until then, other code may write to the memory, or read bytes that the work
/// writes, only on the stream of the work or after a synchronisation with this stream. A wrong pointer is undefined
/// behaviour.
///
/// Errors: LOCKSTEP_ERROR_UNKNOWN_DEVICE, LOCKSTEP_ERROR_OUT_OF_REACH if the memory of the device has no addresses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_device_wrap(
    engine: *const Engine,
    device: *const c_char,
    pointer: *mut c_void,
    len: usize,
    buffer: *mut *mut DeviceBuffer,
) -> c_int {
    new_buffer(engine, device, buffer, |memory, id| {
        ffi::check_memory(pointer.cast::<u8>(), len, "the device memory")?;
        if !memory.has_addresses() {
            let what = "memory at an address: allocate by lockstep_device_allocate".into();
            return Err(Error::OutOfReach { device: id, what }.into());
        }
        // SAFETY: the documentation of the function demands that the memory is allocated on this device.
        Ok((unsafe { DeviceSlice::from_raw(id, pointer as u64, len) }, None))
    })
}

unsafe fn new_buffer(
    engine: *const Engine,
    device: *const c_char,
    buffer: *mut *mut DeviceBuffer,
    make: impl FnOnce(&dyn DeviceMemory, DeviceId) -> Outcome<(DeviceSlice, Option<Box<dyn Owner>>)>,
) -> c_int {
    ffi::new_object(buffer, |_| {
        let name = ffi::text(device, "the device")?;
        let engine = ffi::object(engine, "the engine")?;
        let (slice, owner) = engine.run(|inner| {
            let id = Engine::device(inner, name)?.id();
            make(inner.planner().memory(id)?, id)
        })?;
        Ok(DeviceBuffer { slice, _owner: owner.map(Mutex::new), engine: engine.clone() })
    })
}

/// Frees a buffer. If lockstep_device_allocate has allocated its memory, the call waits for all work on the memory, wipes the
/// memory and frees it. Memory that was passed to lockstep_device_wrap is neither wiped nor freed. No call may be using the
/// buffer. NULL is permitted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_device_buffer_free(buffer: *mut DeviceBuffer) {
    free_with_engine(buffer, |buffer| &buffer.engine)
}

/// Returns the length of a buffer in bytes; 0 if it is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_device_buffer_len(buffer: *const DeviceBuffer) -> usize {
    buffer.as_ref().map_or(0, |buffer| buffer.slice.len())
}

/// Returns the address of a buffer on its device, for example for a kernel of CUDA; NULL if the memory of the device has no
/// addresses. The host cannot read this address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_device_buffer_pointer(buffer: *const DeviceBuffer) -> *mut c_void {
    let addressed = buffer.as_ref().filter(|buffer| buffer.slice.buffer() == BufferHandle::ADDRESS_SPACE);
    addressed.map_or(ptr::null_mut(), |buffer| buffer.slice.offset() as *mut c_void)
}

/// Copies `len` bytes from the host to a buffer, at `offset`. The copy starts after the earlier work on the stream, and the
/// call waits for the end of the copy. The stream is a stream of the device (CUDA: a cudaStream_t or CUstream), or NULL for
/// its default stream.
///
/// Errors: LOCKSTEP_ERROR_OUTPUT if the part is outside of the buffer, LOCKSTEP_ERROR_DEVICE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_device_upload(
    buffer: *const DeviceBuffer,
    offset: usize,
    from: *const u8,
    len: usize,
    stream: *mut c_void,
) -> c_int {
    ffi::call(|call| {
        let to = DeviceRange { buffer, offset, len }.slice("the buffer")?;
        let from = call.input(from, len, "the memory of the host")?;
        let engine = &ffi::object(buffer, "the buffer")?.engine;
        engine.run_mode(|executor| executor.memory(to.device())?.upload(from, &to, handle(stream)))
    })
}

/// Copies `len` bytes of a buffer, at `offset`, to the host. The copy starts after the earlier work on the stream, and the
/// call waits for the end of the copy.
///
/// Errors: those of lockstep_device_upload.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_device_download(
    buffer: *const DeviceBuffer,
    offset: usize,
    to: *mut u8,
    len: usize,
    stream: *mut c_void,
) -> c_int {
    ffi::call(|call| {
        let from = DeviceRange { buffer, offset, len }.slice("the buffer")?;
        let to = call.output(to, len, "the memory of the host")?;
        let engine = &ffi::object(buffer, "the buffer")?.engine;
        engine.run_mode(|executor| executor.memory(from.device())?.download(&from, to, handle(stream)))
    })
}

/// Converts the handle by which C code refers to a stream of the device.
pub(crate) fn handle(stream: *mut c_void) -> Stream {
    // SAFETY: the header requires the handle of a stream of the device, or a null pointer.
    unsafe { Stream::from_raw(stream as u64) }
}

impl DeviceRange {
    /// Returns the part of the buffer. Fails if the part is not completely inside of the buffer.
    pub(crate) unsafe fn slice(&self, name: &str) -> Outcome<DeviceSlice> {
        let buffer = ffi::object(self.buffer, name)?;
        let (needed, got) = (self.offset.saturating_add(self.len), buffer.slice.len());
        ensure(needed <= got, || Error::OutputLength { needed, got }.into())?;
        Ok(buffer.slice.slice(self.offset..needed))
    }
}
