//! The tables that OpenSSL reads, and the provider's context that it passes back.

use std::ffi::c_void;
use std::ptr::null;
use std::sync::Arc;

use crate::instance::Instance;
use crate::libcrypto::types::Dispatch;

/// The end of a table of functions.
pub(super) const END_OF_TABLE: Dispatch = Dispatch { id: 0, function: null() };

/// An entry of a table of functions. The function has the type that core_dispatch.h defines for its number.
macro_rules! function {
    ($id:expr, $function:expr) => {
        $crate::libcrypto::types::Dispatch { id: $id, function: $function as *const std::ffi::c_void }
    };
}
pub(super) use function;

/// Returns a reference to the instance behind a provider's context. The context is an `Arc` that `teardown` releases.
///
/// # Safety
/// `context` was returned by [`init`](super::provider::init) and is not torn down.
pub(super) unsafe fn instance(context: *const c_void) -> Arc<Instance> {
    let instance: *const Instance = context.cast();
    // SAFETY: the pointer comes from `Arc::into_raw`. The incremented count belongs to the reference that is created
    // here.
    unsafe {
        Arc::increment_strong_count(instance);
        Arc::from_raw(instance)
    }
}
