//! The tables that OpenSSL reads, and the provider's context that it passes back.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use crate::instance::Instance;
use crate::libcrypto::types::{Dispatch, Function};

/// C tables, in which all pointers refer to constants.
pub(super) struct Table<T: 'static>(pub(super) T);

// SAFETY: these tables are never written.
unsafe impl<T> Sync for Table<T> {}

/// The end of a table of functions.
pub(super) const END_OF_TABLE: Dispatch = Dispatch { id: 0, function: None };

/// An entry of a table of functions.
pub(super) const fn numbered(id: c_int, function: Function) -> Dispatch {
    Dispatch { id, function: Some(function) }
}

/// An entry of a table of functions: the number, the function, and the function's type.
macro_rules! function {
    ($id:expr, $function:expr, $type:ty) => {
        // SAFETY: all function pointers have the same size. OpenSSL converts the pointer back to the type of the
        // function, which it determines by the number of the entry.
        $crate::ffi::table::numbered($id, unsafe {
            std::mem::transmute::<$type, $crate::libcrypto::types::Function>($function as $type)
        })
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
