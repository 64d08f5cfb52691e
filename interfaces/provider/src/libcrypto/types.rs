//! Structures and numbers of OpenSSL's headers `openssl/core.h`, `core_dispatch.h` and `params.h` (3.0 to 4.x). They are
//! written by hand, because only a few of them are needed and the module does not link to libcrypto.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// `OSSL_DISPATCH`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Dispatch {
    pub(crate) id: c_int,
    /// A function. The type of the function depends on `id`.
    pub(crate) function: *const c_void,
}

/// `OSSL_ALGORITHM`
#[repr(C)]
pub(crate) struct OsslAlgorithm {
    pub(crate) names: *const c_char,
    pub(crate) properties: *const c_char,
    pub(crate) implementation: *const Dispatch,
    pub(crate) description: *const c_char,
}

/// `OSSL_ITEM`
#[repr(C)]
pub(crate) struct Item {
    pub(crate) id: c_uint,
    pub(crate) text: *const c_char,
}

/// `OSSL_PARAM`
#[repr(C)]
pub(crate) struct OsslParam {
    pub(crate) key: *const c_char,
    pub(crate) data_type: c_uint,
    pub(crate) data: *mut c_void,
    pub(crate) data_size: usize,
    pub(crate) return_size: usize,
}

// OSSL_PARAM data types.
pub(crate) const PARAM_INTEGER: c_uint = 1;
pub(crate) const PARAM_UNSIGNED_INTEGER: c_uint = 2;
pub(crate) const PARAM_UTF8_STRING: c_uint = 4;
pub(crate) const PARAM_OCTET_STRING: c_uint = 5;
pub(crate) const PARAM_UTF8_PTR: c_uint = 6;
pub(crate) const PARAM_OCTET_PTR: c_uint = 7;
/// `OSSL_PARAM_UNMODIFIED`: the size that means that no value has been returned.
pub(crate) const PARAM_UNMODIFIED: usize = usize::MAX;

// Functions of the core.
pub(crate) const CORE_GET_PARAMS: c_int = 2;
pub(crate) const CORE_NEW_ERROR: c_int = 5;
pub(crate) const CORE_SET_ERROR_DEBUG: c_int = 6;
pub(crate) const CORE_VSET_ERROR: c_int = 7;

/// `OSSL_OP_CIPHER`
pub(crate) const OP_CIPHER: c_int = 2;

/// `OSSL_OP_SKEYMGMT`
pub(crate) const OP_SKEYMGMT: c_int = 15;

/// `OSSL_SKEYMGMT_SELECT_SECRET_KEY`
pub(crate) const SKEYMGMT_SELECT_SECRET_KEY: c_int = 2;
