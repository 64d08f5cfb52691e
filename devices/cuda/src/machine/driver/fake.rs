//! A driver for tests: functions with the types of libcuda whose GPU is the emulator of thread blocks. It can behave as an old driver: it
//! can lack entry points, report any version, refuse modules, or have no memory left.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lockstep_core::backend::Missing;

use super::api::{Api, CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUmodule, CUstream, Code};
use super::{BLOCK_THREADS, MAJOR, MINOR, MULTIPROCESSORS, SHARED, SHARED_OPTIN};
use crate::machine::Shape;
use crate::machine::emulator::{run, words_of};

/// The behaviour of the driver, and counts of the calls that it received.
#[derive(Default)]
pub(super) struct Fake {
    /// The version that the driver reports.
    pub(super) version: c_int,
    /// The compute capability.
    pub(super) capability: (c_int, c_int),
    /// The largest number of threads of a thread block.
    pub(super) block_threads: c_int,
    /// A function that the library does not export.
    pub(super) lacks: &'static str,
    /// The number of the module whose load fails, counted from 0, and the error.
    pub(super) load: Option<(usize, Code)>,
    /// The error of the next attempt to open the context.
    pub(super) retain: Code,
    /// The number of attempts to load a module.
    pub(super) loads: usize,
    pub(super) memory: BTreeMap<u64, Layout>,
}

static FAKE: Mutex<Option<Fake>> = Mutex::new(None);

fn state<T>(call: impl FnOnce(&mut Fake) -> T) -> T {
    let mut fake = FAKE.lock().unwrap_or_else(PoisonError::into_inner);
    call(fake.get_or_insert_default())
}

/// Makes `fake` the driver of the process until the guard is dropped.
pub(super) fn install(fake: Fake) -> MutexGuard<'static, ()> {
    static USED: Mutex<()> = Mutex::new(());
    let guard = USED.lock().unwrap_or_else(PoisonError::into_inner);
    state(|state| *state = fake);
    guard
}

/// Calls a function with the installed driver, to change it or to read its state.
pub(super) fn driver<T>(call: impl FnOnce(&mut Fake) -> T) -> T {
    state(call)
}

pub(super) fn start() -> Result<Api, Missing> {
    // SAFETY: `find` returns functions of this module with the types of cuda.h.
    unsafe { Api::start(&find) }
}

fn find(symbol: &str) -> Option<*const c_void> {
    if state(|fake| fake.lacks == symbol) {
        return None;
    }
    Some(match symbol {
        "cuInit" => init as *const c_void,
        "cuDriverGetVersion" => version as *const c_void,
        "cuGetErrorName" => error_name as *const c_void,
        "cuGetErrorString" => error_name as *const c_void,
        "cuDeviceGetCount" => device_count as *const c_void,
        "cuDeviceGet" => device as *const c_void,
        "cuDeviceGetName" => device_name as *const c_void,
        "cuDeviceGetAttribute" => device_attribute as *const c_void,
        "cuDeviceTotalMem_v2" => device_memory as *const c_void,
        "cuDevicePrimaryCtxRetain" => retain as *const c_void,
        "cuDevicePrimaryCtxRelease_v2" => release as *const c_void,
        "cuCtxPushCurrent_v2" => push as *const c_void,
        "cuCtxPopCurrent_v2" => pop as *const c_void,
        "cuCtxSynchronize" => synchronise as *const c_void,
        "cuModuleLoadData" => load as *const c_void,
        "cuModuleGetFunction" => function as *const c_void,
        "cuFuncSetAttribute" => function_attribute as *const c_void,
        "cuMemAlloc_v2" => allocate as *const c_void,
        "cuMemFree_v2" => free as *const c_void,
        "cuMemHostAlloc" => allocate_pinned as *const c_void,
        "cuMemFreeHost" => free_pinned as *const c_void,
        "cuMemcpyHtoDAsync_v2" => copy_in as *const c_void,
        "cuMemcpyDtoHAsync_v2" => copy_out as *const c_void,
        "cuMemsetD8Async" => fill as *const c_void,
        "cuLaunchKernel" => launch as *const c_void,
        "cuStreamCreate" | "cuEventCreate" => create as *const c_void,
        "cuStreamWaitEvent" => order as *const c_void,
        "cuEventRecord" => record as *const c_void,
        // In this driver, all work is done when its call returns. So there is nothing to wait for.
        "cuStreamDestroy_v2"
        | "cuStreamSynchronize"
        | "cuEventDestroy_v2"
        | "cuEventQuery"
        | "cuEventSynchronize" => handle as *const c_void,
        _ => return None,
    })
}

/// Any address that is not null.
const HANDLE: *mut c_void = std::ptr::dangling_mut::<c_void>();

/// Writes a result of a function to its place.
fn put<T>(place: *mut T, value: T) -> Code {
    // SAFETY: the caller of the driver's function passes a place for the result.
    unsafe { place.write(value) };
    0
}

extern "system" fn init(_: c_uint) -> Code {
    0
}

extern "system" fn version(place: *mut c_int) -> Code {
    put(place, state(|fake| fake.version))
}

extern "system" fn error_name(code: Code, place: *mut *const c_char) -> Code {
    let name = match code {
        2 => c"OUT_OF_MEMORY (TEST)",
        209 => c"NO_BINARY_FOR_GPU (TEST)",
        _ => c"ERROR (TEST)",
    };
    put(place, name.as_ptr())
}

extern "system" fn device_count(place: *mut c_int) -> Code {
    put(place, 1)
}

extern "system" fn device(place: *mut CUdevice, number: c_int) -> Code {
    put(place, number)
}

extern "system" fn device_name(place: *mut c_char, _: c_int, _: CUdevice) -> Code {
    put(place.cast::<[u8; 4]>(), *b"Old\0")
}

extern "system" fn device_attribute(place: *mut c_int, which: c_int, _: CUdevice) -> Code {
    let ((major, minor), block_threads) = state(|fake| (fake.capability, fake.block_threads));
    put(
        place,
        match which {
            MAJOR => major,
            MINOR => minor,
            BLOCK_THREADS => block_threads,
            MULTIPROCESSORS => 2,
            SHARED => 48 << 10,
            SHARED_OPTIN => 99 << 10,
            _ => 0,
        },
    )
}

extern "system" fn device_memory(place: *mut usize, _: CUdevice) -> Code {
    put(place, 8 << 30)
}

extern "system" fn retain(place: *mut CUcontext, _: CUdevice) -> Code {
    put(place, HANDLE);
    state(|fake| std::mem::take(&mut fake.retain))
}

extern "system" fn release(_: CUdevice) -> Code {
    0
}

extern "system" fn push(_: CUcontext) -> Code {
    0
}

extern "system" fn pop(place: *mut CUcontext) -> Code {
    put(place, HANDLE)
}

extern "system" fn synchronise() -> Code {
    0
}

extern "system" fn load(place: *mut CUmodule, _: *const c_void) -> Code {
    put(place, HANDLE);
    state(|fake| {
        let number = fake.loads;
        fake.loads += 1;
        fake.load.filter(|&(failing, _)| failing == number).map_or(0, |(_, code)| code)
    })
}

/// The handle of a function is its name, which is never freed.
extern "system" fn function(place: *mut CUfunction, _: CUmodule, name: *const c_char) -> Code {
    // SAFETY: the name is a terminated string.
    let name: CString = unsafe { CStr::from_ptr(name) }.into();
    put(place, name.into_raw().cast())
}

extern "system" fn function_attribute(_: CUfunction, _: c_int, _: c_int) -> Code {
    0
}

fn allocate_at(len: usize) -> u64 {
    let layout = Layout::from_size_align(len, 256).unwrap();
    // SAFETY: no caller allocates zero bytes.
    let address = unsafe { alloc_zeroed(layout) } as u64;
    state(|fake| fake.memory.insert(address, layout));
    address
}

extern "system" fn allocate(place: *mut CUdeviceptr, len: usize) -> Code {
    put(place, allocate_at(len))
}

extern "system" fn allocate_pinned(place: *mut *mut c_void, len: usize, _: c_uint) -> Code {
    put(place, allocate_at(len) as *mut c_void)
}

extern "system" fn free(address: CUdeviceptr) -> Code {
    let layout = state(|fake| fake.memory.remove(&address)).unwrap();
    // SAFETY: the memory was allocated with this layout.
    unsafe { dealloc(address as *mut u8, layout) };
    0
}

extern "system" fn free_pinned(address: *mut c_void) -> Code {
    free(address as u64)
}

extern "system" fn copy_in(to: CUdeviceptr, from: *const c_void, len: usize, _: CUstream) -> Code {
    // SAFETY: the caller guarantees that both ranges are allocated.
    unsafe { std::ptr::copy(from.cast::<u8>(), to as *mut u8, len) };
    0
}

extern "system" fn copy_out(to: *mut c_void, from: CUdeviceptr, len: usize, _: CUstream) -> Code {
    copy_in(to as u64, from as *const c_void, len, null_mut())
}

extern "system" fn fill(to: CUdeviceptr, byte: u8, len: usize, _: CUstream) -> Code {
    // SAFETY: the caller guarantees that the range is allocated.
    unsafe { (to as *mut u8).write_bytes(byte, len) };
    0
}

#[allow(clippy::too_many_arguments, reason = "the parameters of cuLaunchKernel")]
extern "system" fn launch(
    function: CUfunction,
    grid: c_uint,
    _: c_uint,
    _: c_uint,
    threads: c_uint,
    _: c_uint,
    _: c_uint,
    shared: c_uint,
    _: CUstream,
    _: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Code {
    // SAFETY: the handle of the function is its name. `extra[1]` is the address of the parameters, and `extra[3]` is the address of their
    // length. The caller guarantees that the memory of the kernel is allocated.
    let outcome = unsafe {
        let name = CStr::from_ptr(function.cast());
        let parameters =
            std::slice::from_raw_parts((*extra.add(1)).cast::<u8>(), *(*extra.add(3)).cast::<usize>());
        let words = words_of(parameters);
        run(name.to_str().unwrap(), Shape { grid, threads, shared }, &words, parameters.len(), None)
    };
    if outcome.is_ok() { 0 } else { 719 }
}

extern "system" fn create(place: *mut *mut c_void, _: c_uint) -> Code {
    put(place, HANDLE)
}

extern "system" fn order(_: CUstream, _: CUevent, _: c_uint) -> Code {
    0
}

extern "system" fn record(_: CUevent, _: CUstream) -> Code {
    0
}

extern "system" fn handle(_: *mut c_void) -> Code {
    0
}
