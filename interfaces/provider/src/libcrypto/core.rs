//! Functions that libcrypto provides to a provider: its error stack, and the configuration.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr::null;

use super::param::{END, entry};
use super::types::{
    CORE_GET_PARAMS, CORE_NEW_ERROR, CORE_SET_ERROR_DEBUG, CORE_VSET_ERROR, Dispatch, OsslParam,
    PARAM_UTF8_PTR,
};
use crate::reason::Reason;
use crate::report::Entries;

type GetParams = unsafe extern "C" fn(*const c_void, *mut OsslParam) -> c_int;
type NewError = unsafe extern "C" fn(*const c_void);
type SetErrorDebug = unsafe extern "C" fn(*const c_void, *const c_char, c_int, *const c_char);
type VsetError = unsafe extern "C" fn(*const c_void, u32, *const c_char, *mut c_void);

/// libcrypto's interface for this provider.
#[derive(Clone)]
pub(crate) struct Core {
    handle: *const c_void,
    get_params: Option<GetParams>,
    new_error: Option<NewError>,
    set_error_debug: Option<SetErrorDebug>,
    vset_error: Option<VsetError>,
}

// SAFETY: the handle belongs to libcrypto, and the functions that take it may be called from any thread.
unsafe impl Send for Core {}
// SAFETY: as above.
unsafe impl Sync for Core {}

impl Core {
    /// # Safety
    /// `handle` and `functions` are the arguments of `OSSL_provider_init`. `functions` is an array that ends with an entry with
    /// number 0.
    pub(crate) unsafe fn new(handle: *const c_void, functions: *const Dispatch) -> Core {
        // SAFETY: the caller guarantees that the entries up to the entry with number 0 are valid.
        let entries = || (0..).map_while(|i| unsafe { functions.wrapping_add(i).as_ref() });
        let find = |id: c_int| {
            let mut entries = entries().take_while(|entry| entry.id != 0);
            entries.find(|entry| entry.id == id).map_or(null(), |entry| entry.function)
        };
        // SAFETY: each function has the type that core_dispatch.h defines for its number. These definitions never change. A null
        // pointer becomes `None`.
        unsafe {
            Core {
                handle,
                get_params: transmute::<*const c_void, Option<GetParams>>(find(CORE_GET_PARAMS)),
                new_error: transmute::<*const c_void, Option<NewError>>(find(CORE_NEW_ERROR)),
                set_error_debug: transmute::<*const c_void, Option<SetErrorDebug>>(find(
                    CORE_SET_ERROR_DEBUG,
                )),
                vset_error: transmute::<*const c_void, Option<VsetError>>(find(CORE_VSET_ERROR)),
            }
        }
    }

    /// Puts an error on the error stack of this thread. The entry shows `detail` after the reason, or the advice of the reason
    /// if `detail` is `None`.
    #[cold]
    pub(crate) fn raise(&self, reason: Reason, detail: Option<&str>) {
        let number = reason.shared().map_or(reason as u32, shared_number);
        match detail {
            // The detail is used as a C format string, so percent signs are escaped.
            Some(detail) => self.put(number, &CString::new(detail.replace('%', "%%")).unwrap_or_default()),
            // The advice is a constant C string, so this case needs no allocation.
            None => self.put(number, reason.advice()),
        }
    }

    /// Puts the entries of a failed call of a cipher on the error stack of this thread.
    #[cold]
    pub(crate) fn raise_entries(&self, reason: Reason, entries: Entries) {
        match entries {
            Entries::None => {}
            Entries::Own => self.raise(reason, None),
            Entries::Number(number) => self.put(shared_number(number), reason.text()),
            Entries::OwnAndNumber(number) => {
                self.raise(reason, None);
                self.put(shared_number(number), c"");
            }
        }
    }

    /// Returns the values of `names` in the provider's section of the configuration file, and `None` for a name without a
    /// value. OpenSSL only looks up names; it cannot list the names of a section.
    pub(crate) fn settings(&self, names: &[&CStr]) -> Vec<Option<String>> {
        let mut values: Vec<*const c_char> = vec![null(); names.len()];
        let request = names.iter().zip(&mut values);
        let request = request.map(|(name, value)| OsslParam {
            data: std::ptr::from_mut(value).cast(),
            ..entry(name, PARAM_UTF8_PTR, 0)
        });
        let mut request: Vec<OsslParam> = request.chain([END]).collect();
        if let Some(get) = self.get_params {
            // SAFETY: the array ends with an entry without a name. The data of each parameter is a pointer, as its type
            // requires.
            unsafe { get(self.handle, request.as_mut_ptr()) };
        }
        let copy = |value: &*const c_char| {
            // SAFETY: libcrypto has set the value to a C string that libcrypto owns. The string is copied, because libcrypto may
            // move its memory.
            let value = (!value.is_null()).then(|| unsafe { CStr::from_ptr(*value) });
            value.map(|value| value.to_string_lossy().into_owned())
        };
        values.iter().map(copy).collect()
    }

    fn put(&self, number: u32, format: &CStr) {
        let (Some(new), Some(debug), Some(set)) = (self.new_error, self.set_error_debug, self.vset_error)
        else {
            return;
        };
        let format = if format.is_empty() { null() } else { format.as_ptr() };
        // The type `va_list` differs between processors. On all of them a pointer to zeros can be passed, because libcrypto
        // reads no arguments.
        let mut no_arguments = [0u64; 8];
        // SAFETY: the functions of libcrypto are called in the order that provider-base(7) requires. All strings end
        // with NUL, and the format has no arguments.
        unsafe {
            new(self.handle);
            debug(self.handle, c"lockstep".as_ptr(), 0, c"".as_ptr());
            set(self.handle, number, format, no_arguments.as_mut_ptr().cast());
        }
    }
}

/// Computes `ERR_PACK` of openssl/err.h with `ERR_LIB_PROV`. OpenSSL handles such a number as a reason of its own providers.
fn shared_number(reason: u32) -> u32 {
    57 << 23 | reason
}

#[cfg(test)]
mod tests;
