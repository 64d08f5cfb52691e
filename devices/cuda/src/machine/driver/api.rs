//! The driver's functions that this crate uses. They are looked up at run time.
//!
//! cudarc opens the library and defines the types. The functions of cudarc are not called. They return a Rust enum, so
//! an error number that only a newer driver defines would be undefined behaviour. They also panic if an older driver
//! lacks a symbol. In this module errors are numbers, and a missing symbol is an error.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUmodule, CUstream, culib, is_culib_present,
};
use lockstep_core::backend::Missing;

/// The result of every function; 0 means success.
pub(super) type Code = c_uint;

macro_rules! api {
    ($($name:ident: $symbol:literal ($($parameter:ty),*);)*) => {
        /// The functions, named by their purpose.
        #[derive(Clone, Copy)]
        pub(super) struct Api {
            $(pub(super) $name: unsafe extern "system" fn($($parameter),*) -> Code,)*
        }

        impl Api {
            /// Finds all functions, or returns the symbol that is missing.
            fn find() -> Result<Api, &'static str> {
                // SAFETY: the caller has checked that the library is present, so `culib` does not panic. The driver's
                // header cuda.h declares the symbols as functions of these types, unchanged since CUDA 11.
                unsafe {
                    let library = culib();
                    Ok(Api {
                        $($name: {
                            let symbol = library
                                .get::<unsafe extern "system" fn($($parameter),*) -> Code>($symbol.as_bytes());
                            *symbol.map_err(|_| $symbol)?
                        },)*
                    })
                }
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
        // SAFETY: loading runs the library's constructors, like every other use of the library.
        if !unsafe { is_culib_present() } {
            return Err(missing("no libcuda.so.1", "install the NVIDIA driver"));
        }
        let api = Api::find().map_err(|symbol| {
            missing(
                &format!("the NVIDIA driver is too old: it has no {symbol}"),
                "install driver 580 or newer",
            )
        })?;
        // SAFETY: the function has no preconditions.
        let code = unsafe { (api.init)(0) };
        if code != 0 {
            return Err(start_failed(&api, code));
        }
        Ok(api)
    }

    /// The name and the meaning of an error.
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

/// The error for a driver that does not start. If the driver lists no device, [`no_device`] makes the error.
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

/// The reason why the driver lists no device.
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
