//! `OSSL_provider_init` and the functions of the provider itself (provider-base(7)).

use std::ffi::{CStr, c_int, c_void};
use std::ptr::null;
use std::sync::Arc;

use super::cipher::{DISPATCHES, PROPERTIES};
use super::core::Core;
use super::guard::guarded;
use super::param::{END, Kind, entry, iter_get_params};
use super::process;
use super::skey;
use super::standard::{self, write_message};
use super::types::{
    CoreHandle, Dispatch, Function, Item, OP_CIPHER, OP_SKEYMGMT, OsslAlgorithm, OsslParam,
    PROVIDER_GET_PARAMS, PROVIDER_GET_REASON_STRINGS, PROVIDER_GETTABLE_PARAMS, PROVIDER_QUERY_OPERATION,
    PROVIDER_TEARDOWN,
};
use crate::algorithm::ALGORITHMS;
use crate::instance::Instance;
use crate::message::escaped;
use crate::reason::Reason;

/// Returns a reference to the instance behind a provider's context. The context is an `Arc` that `teardown` releases.
///
/// # Safety
/// `context` was returned by [`init`] and is not torn down.
pub(super) unsafe fn instance(context: *const c_void) -> Arc<Instance> {
    let instance: *const Instance = context.cast();
    // SAFETY: the pointer comes from `Arc::into_raw`. The incremented count belongs to the reference that is created
    // here.
    unsafe {
        Arc::increment_strong_count(instance);
        Arc::from_raw(instance)
    }
}

/// C tables, in which all pointers refer to constants.
struct Table<T: 'static>(T);

// SAFETY: these tables are never written.
unsafe impl<T> Sync for Table<T> {}

const fn function(id: c_int, function: Function) -> Dispatch {
    Dispatch { id, function: Some(function) }
}

/// Converts a function to the type in the tables.
macro_rules! erased {
    ($function:expr, $type:ty) => {
        // SAFETY: all function pointers have the same size. OpenSSL converts the pointer back to the type of the
        // function, which it determines by the number of the entry.
        unsafe { std::mem::transmute::<$type, Function>($function as $type) }
    };
}
pub(super) use erased;

static FUNCTIONS: Table<[Dispatch; 6]> = Table([
    function(PROVIDER_TEARDOWN, erased!(teardown, unsafe extern "C" fn(*mut c_void))),
    function(
        PROVIDER_GETTABLE_PARAMS,
        erased!(gettable_params, unsafe extern "C" fn(*mut c_void) -> *const OsslParam),
    ),
    function(
        PROVIDER_GET_PARAMS,
        erased!(get_params, unsafe extern "C" fn(*mut c_void, *mut OsslParam) -> c_int),
    ),
    function(
        PROVIDER_QUERY_OPERATION,
        erased!(
            query_operation,
            unsafe extern "C" fn(*mut c_void, c_int, *mut c_int) -> *const OsslAlgorithm
        ),
    ),
    function(
        PROVIDER_GET_REASON_STRINGS,
        erased!(reason_strings, unsafe extern "C" fn(*mut c_void) -> *const Item),
    ),
    Dispatch { id: 0, function: None },
]);

const CIPHERS: usize = ALGORITHMS.len();

static CIPHER_TABLE: Table<[OsslAlgorithm; CIPHERS + 1]> = Table({
    const NONE: OsslAlgorithm =
        OsslAlgorithm { names: null(), properties: null(), implementation: null(), description: null() };
    let mut table = [NONE; CIPHERS + 1];
    let mut i = 0;
    while i < CIPHERS {
        table[i] = OsslAlgorithm {
            names: ALGORITHMS[i].names.as_ptr(),
            properties: PROPERTIES.as_ptr(),
            implementation: DISPATCHES[i].as_ptr(),
            description: ALGORITHMS[i].description.as_ptr(),
        };
        i += 1;
    }
    table
});

static SKEY_TABLE: Table<[OsslAlgorithm; 2]> = Table([
    OsslAlgorithm {
        names: c"AES:2.16.840.1.101.3.4.1".as_ptr(),
        properties: PROPERTIES.as_ptr(),
        implementation: skey::DISPATCH.as_ptr(),
        description: c"AES keys by Lockstep".as_ptr(),
    },
    OsslAlgorithm { names: null(), properties: null(), implementation: null(), description: null() },
]);

static REASONS: Table<[Item; Reason::OWN.len() + 1]> = Table({
    const NONE: Item = Item { id: 0, text: null() };
    let mut items = [NONE; Reason::OWN.len() + 1];
    let mut i = 0;
    while i < Reason::OWN.len() {
        items[i] = Item { id: Reason::OWN[i].0 as u32, text: Reason::OWN[i].1.as_ptr() };
        i += 1;
    }
    items
});

const NAME: &CStr = c"Lockstep";
/// The version, or a note that this is a build with debug assertions. The loops of such a build may leave secrets on the stack.
const BUILD: &CStr = if cfg!(debug_assertions) { c"development build" } else { VERSION };

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => unreachable!(),
};

static GETTABLE: Table<[OsslParam; 5]> = Table([
    entry(c"name", Kind::TextPointer, 0),
    entry(c"version", Kind::TextPointer, 0),
    entry(c"buildinfo", Kind::TextPointer, 0),
    entry(c"status", Kind::Integer, size_of::<c_int>()),
    END,
]);

/// Initialises the provider: modules export this function as `OSSL_provider_init`.
///
/// # Safety
/// Only OpenSSL may call this function, as described in provider(7).
pub unsafe fn init(
    handle: *const c_void,
    functions: *const c_void,
    out: *mut *const c_void,
    context: *mut *mut c_void,
) -> c_int {
    guarded(0, || {
        standard::record();
        // SAFETY: libcrypto's arguments are valid for as long as the provider is loaded.
        let core = unsafe { Core::new(handle.cast::<CoreHandle>(), functions.cast::<Dispatch>()) };
        let reporter = core.clone();
        // A program with more rights than its user must not write to files that this user names, so its environment is
        // ignored.
        let secure = process::is_privileged();
        let environment = |name: &str| match secure {
            true => None,
            false => std::env::var_os(name),
        };
        process::count_forks();
        standard::report_panics();
        match Instance::new(core, environment) {
            Ok(instance) => {
                // SAFETY: libcrypto passes valid places for both results.
                unsafe {
                    *context = Arc::into_raw(instance).cast_mut().cast();
                    *out = (&raw const FUNCTIONS.0).cast();
                }
                1
            }
            Err(detail) => {
                let detail = escaped(&detail);
                reporter.raise(Reason::Setting, Some(&detail));
                // OpenSSL does not report errors of its configuration file. Without this message, a program would
                // silently continue without the provider.
                write_message(&format!("{detail}; the provider is not loaded"));
                0
            }
        }
    })
}

unsafe extern "C" fn teardown(context: *mut c_void) {
    guarded((), || {
        // SAFETY: the context is the one that `OSSL_provider_init` has returned, and it is torn down once.
        let instance = unsafe { Arc::from_raw(context.cast::<Instance>().cast_const()) };
        instance.shut_down();
    });
}

unsafe extern "C" fn gettable_params(_context: *mut c_void) -> *const OsslParam {
    GETTABLE.0.as_ptr()
}

unsafe extern "C" fn get_params(_context: *mut c_void, params: *mut OsslParam) -> c_int {
    guarded(0, || {
        // SAFETY: libcrypto passes a valid array.
        let answered = unsafe { iter_get_params(params) }.all(|mut param| {
            let result = match param.name() {
                b"name" => param.text(NAME),
                b"version" => param.text(VERSION),
                b"buildinfo" => param.text(BUILD),
                b"status" => param.number(1),
                _ => Ok(()),
            };
            result.is_ok()
        });
        c_int::from(answered)
    })
}

unsafe extern "C" fn query_operation(
    _context: *mut c_void,
    operation: c_int,
    no_cache: *mut c_int,
) -> *const OsslAlgorithm {
    // SAFETY: `no_cache` is null or a valid place for the result.
    if let Some(no_cache) = unsafe { no_cache.as_mut() } {
        *no_cache = 0;
    }
    match operation {
        OP_CIPHER => CIPHER_TABLE.0.as_ptr(),
        OP_SKEYMGMT => SKEY_TABLE.0.as_ptr(),
        _ => null(),
    }
}

unsafe extern "C" fn reason_strings(_context: *mut c_void) -> *const Item {
    REASONS.0.as_ptr()
}
