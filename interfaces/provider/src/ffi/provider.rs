//! `OSSL_provider_init` and the functions of the provider itself (provider-base(7)).

use std::ffi::{CStr, c_int, c_void};
use std::ptr::null;

use super::cipher::{DISPATCHES, PROPERTIES};
use super::guard::guarded;
use super::skey;
use super::table::{self, END_OF_TABLE};
use crate::algorithm::{ALGORITHMS, c_str};
use crate::instance::Instance;
use crate::libcrypto::core::Core;
use crate::libcrypto::param::{Param, iter_get_params, list};
use crate::libcrypto::types::{Dispatch, Item, OP_CIPHER, OP_SKEYMGMT, OsslAlgorithm, OsslParam};
use crate::message::escaped;
use crate::reason::Reason;
use crate::system::process;
use crate::system::standard::{self, write_message};

const FUNCTIONS: &[Dispatch] = &[
    table::provider::teardown(teardown),
    table::provider::gettable_params(gettable_params),
    table::provider::get_params(get_params),
    table::provider::query_operation(query_operation),
    table::provider::reason_strings(reason_strings),
    END_OF_TABLE,
];

/// Returns an entry for a table of algorithms.
const fn listed(names: &CStr, implementation: &'static [Dispatch], description: &CStr) -> OsslAlgorithm {
    let (names, description, properties) = (names.as_ptr(), description.as_ptr(), PROPERTIES.as_ptr());
    OsslAlgorithm { names, properties, implementation: implementation.as_ptr(), description }
}

/// The entry that ends a table of algorithms.
const NONE: OsslAlgorithm =
    OsslAlgorithm { names: null(), properties: null(), implementation: null(), description: null() };

const CIPHER_TABLE: &[OsslAlgorithm] = &{
    let mut table = [NONE; ALGORITHMS.len() + 1];
    let mut i = 0;
    while i < ALGORITHMS.len() {
        table[i] = listed(ALGORITHMS[i].names, DISPATCHES[i], ALGORITHMS[i].description);
        i += 1;
    }
    table
};

const SKEY_TABLE: &[OsslAlgorithm] =
    &[listed(c"AES:2.16.840.1.101.3.4.1", &skey::DISPATCH, c"AES keys by Lockstep"), NONE];

const REASONS: &[Item] = &{
    let mut items = [const { Item { id: 0, text: null() } }; Reason::OWN.len() + 1];
    let mut i = 0;
    while i < Reason::OWN.len() {
        items[i] = Item { id: Reason::OWN[i].0 as u32, text: Reason::OWN[i].1.as_ptr() };
        i += 1;
    }
    items
};

/// The build information that OpenSSL shows: the version, or a note that this build has debug assertions. The loops of a build
/// with debug assertions may leave secrets on the stack.
const BUILD: &CStr = if cfg!(debug_assertions) { c"development build" } else { VERSION };

const VERSION: &CStr = c_str(concat!(env!("CARGO_PKG_VERSION"), "\0"));

/// Initialises the provider. A module for OpenSSL exports this function under the name `OSSL_provider_init`.
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
        let core = unsafe { Core::new(handle, functions.cast::<Dispatch>()) };
        let reporter = core.clone();
        // A privileged program must not write to files that its unprivileged user names. The environment of such a program is
        // therefore ignored.
        let secure = process::is_privileged();
        let environment = |name: &str| if secure { None } else { std::env::var_os(name) };
        process::count_forks();
        standard::report_panics();
        match Instance::new(core, environment) {
            Ok(instance) => {
                // SAFETY: libcrypto passes valid places for both results.
                unsafe {
                    *context = Box::into_raw(instance).cast();
                    *out = FUNCTIONS.as_ptr().cast();
                }
                1
            }
            Err(detail) => {
                let detail = escaped(&detail);
                reporter.raise(Reason::Setting, Some(&detail));
                // OpenSSL does not report an error in its configuration file. Without this message, a program would silently
                // continue without the provider.
                write_message(&format!("{detail}; the provider is not loaded"), true);
                0
            }
        }
    })
}

unsafe extern "C" fn teardown(context: *mut c_void) {
    // SAFETY: `OSSL_provider_init` has returned this context, and OpenSSL tears it down once.
    guarded((), || unsafe { Box::from_raw(context.cast::<Instance>()) }.shut_down());
}

unsafe extern "C" fn gettable_params(_context: *mut c_void) -> *const OsslParam {
    (const { list!(Name Version BuildInfo Status) }).as_ptr()
}

unsafe extern "C" fn get_params(_context: *mut c_void, params: *mut OsslParam) -> c_int {
    guarded(0, || {
        // SAFETY: libcrypto passes a valid array.
        let outcome = unsafe { iter_get_params(params) }.try_for_each(|mut param| match param.name() {
            Param::Name => param.text(c"Lockstep"),
            Param::Version => param.text(VERSION),
            Param::BuildInfo => param.text(BUILD),
            Param::Status => param.number(1),
            _ => Ok(()),
        });
        c_int::from(outcome.is_ok())
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
        OP_CIPHER => CIPHER_TABLE.as_ptr(),
        OP_SKEYMGMT => SKEY_TABLE.as_ptr(),
        _ => null(),
    }
}

unsafe extern "C" fn reason_strings(_context: *mut c_void) -> *const Item {
    REASONS.as_ptr()
}
