//! The tables that OpenSSL reads, and access to the provider's context, which OpenSSL passes to the functions in these tables.

use std::ffi::{c_int, c_void};
use std::ptr::null;

use crate::instance::Instance;
use crate::libcrypto::types::{Dispatch, Item, OsslAlgorithm, OsslParam};

pub(super) const END_OF_TABLE: Dispatch = Dispatch { id: 0, function: null() };

/// For each function that this module provides, generates a function that makes the table entry. The parameter type of the
/// generated function lets the compiler check the type of the entry.
macro_rules! entries {
    ($($name:ident = $id:literal: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {$(
        pub(in crate::ffi) const fn $name(function: unsafe extern "C" fn($($argument),*) $(-> $result)?) -> Dispatch {
            Dispatch { id: $id, function: function as *const c_void }
        }
    )*};
}

/// `OSSL_FUNC_PROVIDER_...` of core_dispatch.h (provider-base(7)).
pub(super) mod provider {
    use super::*;
    entries! {
        teardown = 1024: fn(*mut c_void);
        gettable_params = 1025: fn(*mut c_void) -> *const OsslParam;
        get_params = 1026: fn(*mut c_void, *mut OsslParam) -> c_int;
        query_operation = 1027: fn(*mut c_void, c_int, *mut c_int) -> *const OsslAlgorithm;
        reason_strings = 1029: fn(*mut c_void) -> *const Item;
    }
}

/// `OSSL_FUNC_CIPHER_...` of core_dispatch.h (provider-cipher(7)).
pub(super) mod cipher {
    use super::*;
    entries! {
        new_context = 1: fn(*mut c_void) -> *mut c_void;
        encrypt_init = 2: fn(*mut c_void, *const u8, usize, *const u8, usize, *const OsslParam) -> c_int;
        decrypt_init = 3: fn(*mut c_void, *const u8, usize, *const u8, usize, *const OsslParam) -> c_int;
        update = 4: fn(*mut c_void, *mut u8, *mut usize, usize, *const u8, usize) -> c_int;
        finish = 5: fn(*mut c_void, *mut u8, *mut usize, usize) -> c_int;
        one_shot = 6: fn(*mut c_void, *mut u8, *mut usize, usize, *const u8, usize) -> c_int;
        free_context = 7: fn(*mut c_void);
        duplicate_context = 8: fn(*mut c_void) -> *mut c_void;
        get_params = 9: fn(*mut OsslParam) -> c_int;
        get_context_params = 10: fn(*mut c_void, *mut OsslParam) -> c_int;
        set_context_params = 11: fn(*mut c_void, *const OsslParam) -> c_int;
        gettable_params = 12: fn(*mut c_void) -> *const OsslParam;
        gettable_context_params = 13: fn(*mut c_void, *mut c_void) -> *const OsslParam;
        settable_context_params = 14: fn(*mut c_void, *mut c_void) -> *const OsslParam;
    }
}

/// `OSSL_FUNC_SKEYMGMT_...` of core_dispatch.h (provider-skeymgmt(7)).
pub(super) mod key {
    use super::*;
    /// `OSSL_CALLBACK`: receives the exported parameters, and the caller's argument.
    pub(in crate::ffi) type Callback = unsafe extern "C" fn(*const OsslParam, *mut c_void) -> c_int;
    entries! {
        free = 1: fn(*mut c_void);
        import = 2: fn(*mut c_void, c_int, *const OsslParam) -> *mut c_void;
        export = 3: fn(*mut c_void, c_int, Option<Callback>, *mut c_void) -> c_int;
        import_settable = 6: fn(*mut c_void) -> *const OsslParam;
    }
}

/// Returns the instance to which a provider's context points. The context is a `Box` that `teardown` frees.
///
/// # Safety
/// `context` was returned by [`init`](super::provider::init). It is torn down after the last use of the returned reference.
pub(super) unsafe fn instance(context: *const c_void) -> &'static Instance {
    // SAFETY: guaranteed by the caller.
    unsafe { &*context.cast() }
}
