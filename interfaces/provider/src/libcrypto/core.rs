//! Functions that libcrypto provides to a provider: its error stack, and the configuration.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null;

use super::param::END;
use super::types::{
    CORE_GET_PARAMS, CORE_NEW_ERROR, CORE_SET_ERROR_DEBUG, CORE_VSET_ERROR, CoreHandle, Dispatch, Function,
    OsslParam, PARAM_UNMODIFIED, PARAM_UTF8_PTR,
};
use crate::reason::Reason;
use crate::report::Entries;
use crate::settings::Section;

type GetParams = unsafe extern "C" fn(*const CoreHandle, *mut OsslParam) -> c_int;
type NewError = unsafe extern "C" fn(*const CoreHandle);
type SetErrorDebug = unsafe extern "C" fn(*const CoreHandle, *const c_char, c_int, *const c_char);
type VsetError = unsafe extern "C" fn(*const CoreHandle, u32, *const c_char, *mut c_void);

/// libcrypto's interface for this provider.
#[derive(Clone)]
pub(crate) struct Core {
    handle: *const CoreHandle,
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
    /// The arguments of `OSSL_provider_init`: `functions` is an array that ends with number 0.
    pub(crate) unsafe fn new(handle: *const CoreHandle, functions: *const Dispatch) -> Core {
        let mut core =
            Core { handle, get_params: None, new_error: None, set_error_debug: None, vset_error: None };
        let mut next = functions;
        // SAFETY: the entries before the entry with number 0 are valid. Each function has the type that core_dispatch.h
        // defines for its number. These definitions never change.
        unsafe {
            while let Some(&Dispatch { id, function: Some(function) }) = next.as_ref()
                && id != 0
            {
                match id {
                    CORE_GET_PARAMS => {
                        core.get_params = Some(std::mem::transmute::<Function, GetParams>(function))
                    }
                    CORE_NEW_ERROR => {
                        core.new_error = Some(std::mem::transmute::<Function, NewError>(function))
                    }
                    CORE_SET_ERROR_DEBUG => {
                        core.set_error_debug = Some(std::mem::transmute::<Function, SetErrorDebug>(function))
                    }
                    CORE_VSET_ERROR => {
                        core.vset_error = Some(std::mem::transmute::<Function, VsetError>(function))
                    }
                    _ => {}
                }
                next = next.add(1);
            }
        }
        core
    }

    /// Puts an error on the stack of this thread; `detail`, or the reason's advice, is shown after the reason.
    #[cold]
    pub(crate) fn raise(&self, reason: Reason, detail: Option<&str>) {
        let number = reason.shared().map_or(reason as u32, shared_number);
        match detail {
            // The detail is used as a C format string, so percent signs are escaped.
            Some(detail) => self.put(number, &CString::new(detail.replace('%', "%%")).unwrap_or_default()),
            // Constant texts need no allocation.
            None => self.put(number, reason.advice()),
        }
    }

    /// Puts the entries on the stack of this thread that a failed call of a cipher leaves there.
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

    fn put(&self, number: u32, format: &CStr) {
        let (Some(new), Some(debug), Some(set)) = (self.new_error, self.set_error_debug, self.vset_error)
        else {
            return;
        };
        let format = if format.is_empty() { null() } else { format.as_ptr() };
        // The type va_list differs between processors, but on all of them a pointer to zeros can be passed, as long as
        // no argument is read.
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

/// `ERR_PACK` of openssl/err.h. With `ERR_LIB_PROV`, OpenSSL takes the reason for a reason of its own providers.
fn shared_number(reason: u32) -> u32 {
    57 << 23 | reason
}

impl Section for Core {
    /// Returns a copy: libcrypto may move the memory of the value.
    fn value(&self, name: &CStr) -> Option<String> {
        let get = self.get_params?;
        let mut value: *const c_char = null();
        let mut request = [utf8_ptr_request(name, &raw mut value), END];
        // SAFETY: the array has one parameter and an end. The data of the parameter is a pointer, as its type requires.
        let found = unsafe { get(self.handle, request.as_mut_ptr()) } == 1;
        if !found || value.is_null() {
            return None;
        }
        // SAFETY: libcrypto has set `value` to a C string that libcrypto owns.
        Some(unsafe { CStr::from_ptr(value) }.to_string_lossy().into_owned())
    }

    fn first_with_value(&self, names: &[&CStr]) -> Option<usize> {
        let get = self.get_params?;
        // The values do not matter: all are written to the same place.
        let mut value: *const c_char = null();
        let mut request: Vec<_> =
            names.iter().map(|name| utf8_ptr_request(name, &raw mut value)).chain([END]).collect();
        // SAFETY: the array has an end. The data of each parameter is a pointer, as its type requires.
        unsafe { get(self.handle, request.as_mut_ptr()) };
        request[..names.len()].iter().position(|param| param.return_size != PARAM_UNMODIFIED)
    }
}

/// A parameter that requests a UTF-8 pointer.
fn utf8_ptr_request(name: &CStr, place: *mut *const c_char) -> OsslParam {
    OsslParam {
        key: name.as_ptr(),
        data_type: PARAM_UTF8_PTR,
        data: place.cast(),
        data_size: 0,
        return_size: PARAM_UNMODIFIED,
    }
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Core")
    }
}

#[cfg(test)]
impl Core {
    /// A core without any function.
    pub(crate) fn none() -> Core {
        Core { handle: null(), get_params: None, new_error: None, set_error_debug: None, vset_error: None }
    }
}
