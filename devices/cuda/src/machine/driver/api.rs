//! The driver's functions that this crate uses. They are looked up at run time.
//!
//! The oldest entry point that does the job is used, so the driver may be old. The functions that the library exports, and the machine code
//! that the driver loads, determine which operations are possible; the version of the driver does not. Errors are numbers, because newer
//! drivers define more of them.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use libloading::Library;
use lockstep_core::backend::Missing;

use crate::compile::NEWER_DRIVER;

/// The result of every function; 0 means success.
pub(super) type Code = c_uint;

pub(super) type CUcontext = *mut c_void;
pub(super) type CUdevice = c_int;
pub(super) type CUdeviceptr = u64;
pub(super) type CUevent = *mut c_void;
pub(super) type CUfunction = *mut c_void;
pub(super) type CUmodule = *mut c_void;
pub(super) type CUstream = *mut c_void;

/// File names of the library.
const NAMES: [&str; 3] = ["libcuda.so.1", "libcuda.so", "nvcuda.dll"];

macro_rules! api {
    ($($name:ident: $symbol:literal ($($parameter:ty),*);)*) => {
        /// The functions, named by their purpose.
        #[derive(Clone, Copy)]
        pub(super) struct Api {
            $(pub(super) $name: unsafe extern "system" fn($($parameter),*) -> Code,)*
        }

        impl Api {
            /// The names of all functions in the library.
            #[cfg(test)]
            pub(super) const SYMBOLS: &[&str] = &[$($symbol),*];

            /// Finds all functions, or returns the symbol that is missing.
            ///
            /// # Safety
            /// The addresses that `find` returns are addresses of functions with the types that the driver's header cuda.h declares.
            /// These functions can be called until the program ends.
            pub(super) unsafe fn with(find: &dyn Fn(&str) -> Option<*const c_void>) -> Result<Api, &'static str> {
                Ok(Api {
                    $($name: {
                        let address = find($symbol).ok_or($symbol)?;
                        // SAFETY: the caller meets the conditions of this function. The types have not changed since CUDA 11.
                        unsafe {
                            std::mem::transmute::<*const c_void, unsafe extern "system" fn($($parameter),*) -> Code>(address)
                        }
                    },)*
                })
            }
        }
    };
}

api! {
    init: "cuInit" (c_uint);
    version: "cuDriverGetVersion" (*mut c_int);
    error_name: "cuGetErrorName" (Code, *mut *const c_char);
    error_text: "cuGetErrorString" (Code, *mut *const c_char);
    device_count: "cuDeviceGetCount" (*mut c_int);
    device: "cuDeviceGet" (*mut CUdevice, c_int);
    device_name: "cuDeviceGetName" (*mut c_char, c_int, CUdevice);
    device_attribute: "cuDeviceGetAttribute" (*mut c_int, c_int, CUdevice);
    device_memory: "cuDeviceTotalMem_v2" (*mut usize, CUdevice);
    retain: "cuDevicePrimaryCtxRetain" (*mut CUcontext, CUdevice);
    release: "cuDevicePrimaryCtxRelease_v2" (CUdevice);
    push: "cuCtxPushCurrent_v2" (CUcontext);
    pop: "cuCtxPopCurrent_v2" (*mut CUcontext);
    synchronise: "cuCtxSynchronize" ();
    load: "cuModuleLoadData" (*mut CUmodule, *const c_void);
    function: "cuModuleGetFunction" (*mut CUfunction, CUmodule, *const c_char);
    function_attribute: "cuFuncSetAttribute" (CUfunction, c_int, c_int);
    allocate: "cuMemAlloc_v2" (*mut CUdeviceptr, usize);
    free: "cuMemFree_v2" (CUdeviceptr);
    allocate_pinned: "cuMemHostAlloc" (*mut *mut c_void, usize, c_uint);
    free_pinned: "cuMemFreeHost" (*mut c_void);
    copy_in: "cuMemcpyHtoDAsync_v2" (CUdeviceptr, *const c_void, usize, CUstream);
    copy_out: "cuMemcpyDtoHAsync_v2" (*mut c_void, CUdeviceptr, usize, CUstream);
    fill: "cuMemsetD8Async" (CUdeviceptr, u8, usize, CUstream);
    launch: "cuLaunchKernel" (
        CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, *mut *mut c_void, *mut *mut c_void
    );
    new_stream: "cuStreamCreate" (*mut CUstream, c_uint);
    free_stream: "cuStreamDestroy_v2" (CUstream);
    synchronise_stream: "cuStreamSynchronize" (CUstream);
    order: "cuStreamWaitEvent" (CUstream, CUevent, c_uint);
    new_event: "cuEventCreate" (*mut CUevent, c_uint);
    free_event: "cuEventDestroy_v2" (CUevent);
    record: "cuEventRecord" (CUevent, CUstream);
    query: "cuEventQuery" (CUevent);
    wait: "cuEventSynchronize" (CUevent);
}

impl Api {
    /// Finds and starts the driver, and returns its functions.
    pub(super) fn open() -> Result<Api, Missing> {
        let library = library().ok_or_else(no_library)?;
        // SAFETY: the library is the driver's, and it is never closed.
        unsafe {
            Api::start(&|symbol| {
                let found = library.get::<unsafe extern "system" fn()>(symbol.as_bytes());
                found.ok().map(|function| *function as *const c_void)
            })
        }
    }

    /// Starts the driver with these functions.
    ///
    /// # Safety
    /// As [`Api::with`].
    pub(super) unsafe fn start(find: &dyn Fn(&str) -> Option<*const c_void>) -> Result<Api, Missing> {
        // SAFETY: the caller meets the conditions of this function.
        let api = unsafe { Api::with(find) }.map_err(|symbol| {
            // SAFETY: the caller meets the conditions of this function.
            let version = unsafe { version_by(find) };
            missing(&format!("the NVIDIA driver{version} is too old: it has no {symbol}"), NEWER_DRIVER)
        })?;
        // SAFETY: the function has no preconditions.
        let code = unsafe { (api.init)(0) };
        if code != 0 {
            return Err(start_failed(&api, code));
        }
        Ok(api)
    }

    /// Returns the version of CUDA for which the driver was made, such as 12.4, for messages.
    pub(super) fn version(&self) -> String {
        let mut version = 0;
        // SAFETY: the function writes one integer to its argument.
        match unsafe { (self.version)(&mut version) } {
            0 => words_of(version),
            _ => "unknown".into(),
        }
    }

    /// Returns the name and the description of an error.
    pub(super) fn describe(&self, code: Code) -> String {
        let text = |function: unsafe extern "system" fn(Code, *mut *const c_char) -> Code| {
            let mut text = std::ptr::null();
            // SAFETY: the function sets `text` to a constant of the library, or to null.
            unsafe {
                let known = function(code, &mut text) == 0 && !text.is_null();
                known.then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
            }
        };
        match (text(self.error_name), text(self.error_text)) {
            (Some(name), Some(text)) => format!("{text} ({name})"),
            _ => format!("CUDA error {code}"),
        }
    }
}

/// Returns the version as a part of a message. This function is for a driver that does not export all functions that this crate
/// requires.
///
/// # Safety
/// As [`Api::with`].
unsafe fn version_by(find: &dyn Fn(&str) -> Option<*const c_void>) -> String {
    let Some(address) = find("cuDriverGetVersion") else { return String::new() };
    let mut version = 0;
    // SAFETY: the caller meets the conditions of this function, and the called function writes one integer to its argument.
    let code = unsafe {
        std::mem::transmute::<*const c_void, unsafe extern "system" fn(*mut c_int) -> Code>(address)(
            &mut version,
        )
    };
    if code == 0 { format!(" (CUDA {})", words_of(version)) } else { String::new() }
}

/// Writes a version of CUDA as NVIDIA does: 12.4 for 12040.
fn words_of(version: c_int) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

fn no_library() -> Missing {
    missing("no libcuda.so.1", "install the NVIDIA driver")
}

/// Returns an error if there is certainly no device, because the driver's library is missing. This function does not start the driver.
pub(crate) fn certainly_missing() -> Option<Missing> {
    library().is_none().then(no_library)
}

/// Returns the driver's library. It is opened once and never closed.
fn library() -> Option<&'static Library> {
    static OPENED: OnceLock<Option<Library>> = OnceLock::new();
    // SAFETY: loading runs the library's constructors, as it does in every program that uses the library.
    let open = |name: &&str| unsafe { Library::new(*name) }.ok();
    OPENED.get_or_init(|| NAMES.iter().find_map(open)).as_ref()
}

/// Returns the error for a driver that does not start. If the driver lists no device, [`no_device`] makes the error.
fn start_failed(api: &Api, code: Code) -> Missing {
    const NO_DEVICE: Code = 100;
    match code {
        NO_DEVICE => no_device(),
        34 => missing(
            "libcuda.so.1 is the stub for linking",
            "take it off the library path; install the NVIDIA driver",
        ),
        803 => missing("the NVIDIA driver and its kernel module differ in version", "restart the machine"),
        _ => missing(
            &format!("the NVIDIA driver does not start: {}", api.describe(code)),
            "see whether nvidia-smi works",
        ),
    }
}

/// Returns the error for a driver that lists no device.
pub(super) fn no_device() -> Missing {
    match std::env::var("CUDA_VISIBLE_DEVICES") {
        Ok(value) => missing(
            &format!("CUDA_VISIBLE_DEVICES={value} hides all devices"),
            "unset it, or name a device in it",
        ),
        Err(_) => missing("the NVIDIA driver sees no device", "see whether nvidia-smi lists one"),
    }
}

pub(super) fn missing(reason: &str, remedy: &str) -> Missing {
    Missing { reason: reason.into(), remedy: remedy.into() }
}
