//! Exports the OpenSSL 3 provider `lockstep` as a loadable module. The code of the provider is in the crate
//! `lockstep-provider-library`.

use std::ffi::{c_int, c_void};

/// The entry point of the module.
///
/// # Safety
/// Only OpenSSL may call this function, as described in provider(7).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn OSSL_provider_init(
    handle: *const c_void,
    functions: *const c_void,
    out: *mut *const c_void,
    context: *mut *mut c_void,
) -> c_int {
    // SAFETY: the arguments are those of OpenSSL.
    unsafe { lockstep_provider_library::init(handle, functions, out, context) }
}
