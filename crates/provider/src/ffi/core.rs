//! What the library offers to a provider: its error stack, and the configuration.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null;

use super::param::END;
use super::types::{
    CORE_GET_PARAMS, CORE_NEW_ERROR, CORE_SET_ERROR_DEBUG, CORE_VSET_ERROR, CoreHandle, Dispatch, Function,
    OsslParam, PARAM_UNMODIFIED, PARAM_UTF8_PTR,
};
use crate::reason::Reason;
use crate::settings::Section;

type GetParams = unsafe extern "C" fn(*const CoreHandle, *mut OsslParam) -> c_int;
type NewError = unsafe extern "C" fn(*const CoreHandle);
type SetErrorDebug = unsafe extern "C" fn(*const CoreHandle, *const c_char, c_int, *const c_char);
type VsetError = unsafe extern "C" fn(*const CoreHandle, u32, *const c_char, *mut c_void);

/// The library's side of this provider.
#[derive(Clone)]
pub(crate) struct Core {
    handle: *const CoreHandle,
    get_params: Option<GetParams>,
    new_error: Option<NewError>,
    set_error_debug: Option<SetErrorDebug>,
    vset_error: Option<VsetError>,
}

// SAFETY: the handle is the library's own, and the functions that take it may be called from any thread.
unsafe impl Send for Core {}
// SAFETY: as above.
unsafe impl Sync for Core {}

impl Core {
    /// # Safety
    /// What `OSSL_provider_init` was given: `functions` is an array that ends with number 0.
    pub(super) unsafe fn new(handle: *const CoreHandle, functions: *const Dispatch) -> Core {
        let mut core =
            Core { handle, get_params: None, new_error: None, set_error_debug: None, vset_error: None };
        let mut next = functions;
        // SAFETY: entries up to the one with number 0 are valid; each function has the type that belongs to its number in
        // core_dispatch.h, which never changes.
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

    /// Puts an error on the stack of this thread; `detail` is shown behind the reason.
    #[cold]
    pub(crate) fn raise(&self, reason: Reason, detail: Option<&str>) {
        let (Some(new), Some(debug), Some(set)) = (self.new_error, self.set_error_debug, self.vset_error)
        else {
            return;
        };
        let (number, advice) = match reason.shared() {
            // ERR_PACK of openssl/err.h: with ERR_LIB_PROV in it OpenSSL takes the reason for one of its own providers'.
            Some((number, advice)) => (57 << 23 | number, advice),
            None => (reason as u32, c""),
        };
        // Details become a format of C, in which percent signs would ask for arguments.
        let format = detail.and_then(|text| CString::new(text.replace('%', "%%")).ok());
        let format = match &format {
            Some(text) => text.as_ptr(),
            // What is known beforehand needs no memory.
            None if !advice.is_empty() => advice.as_ptr(),
            None => null(),
        };
        // What a va_list is differs between processors, but everywhere it can be passed as a pointer to zeros, as long as
        // no argument is taken from it.
        let mut no_arguments = [0u64; 8];
        // SAFETY: the functions are the library's, called in the order that provider-base(7) asks for; all strings end
        // with NUL, and the format takes no arguments.
        unsafe {
            new(self.handle);
            debug(self.handle, c"lockstep".as_ptr(), 0, c"".as_ptr());
            set(self.handle, number, format, no_arguments.as_mut_ptr().cast());
        }
    }
}

impl Section for Core {
    /// Copied: what the library hands out lies in memory that moves.
    fn value(&self, name: &CStr) -> Option<String> {
        let get = self.get_params?;
        let mut value: *const c_char = null();
        let mut asked = [text_of(name, &raw mut value), END];
        // SAFETY: an array of one parameter, whose data is a pointer as its type says.
        let found = unsafe { get(self.handle, asked.as_mut_ptr()) } == 1;
        if !found || value.is_null() {
            return None;
        }
        // SAFETY: the library has set it to a C string of its own.
        Some(unsafe { CStr::from_ptr(value) }.to_string_lossy().into_owned())
    }

    fn any_of(&self, names: &[&CStr]) -> Option<usize> {
        let get = self.get_params?;
        // What the values are does not matter: all are put into one place.
        let mut value: *const c_char = null();
        let mut asked: Vec<_> = names.iter().map(|name| text_of(name, &raw mut value)).chain([END]).collect();
        // SAFETY: an array of parameters whose data are pointers as their types say, with its end.
        unsafe { get(self.handle, asked.as_mut_ptr()) };
        asked[..names.len()].iter().position(|param| param.return_size != PARAM_UNMODIFIED)
    }
}

/// A parameter that asks for a text.
fn text_of(name: &CStr, place: *mut *const c_char) -> OsslParam {
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
