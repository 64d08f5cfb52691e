//! Symmetric key objects (provider-skeymgmt(7), OpenSSL 3.5 and later).
//!
//! A cipher accepts key objects only from the provider that implements the cipher. This module lets a program that prefers this
//! provider create an `EVP_SKEY` of type AES and use it with the provider's ciphers. OpenSSL passes the bytes of the key to the
//! ordinary init function of the cipher.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use zeroize::Zeroizing;

use super::guard::guarded;
use super::table::key::{self, Callback};
use super::table::{END_OF_TABLE, instance};
use crate::libcrypto::param::{END, Param, iter_set_params, list};
use crate::libcrypto::types::{Dispatch, OsslParam, SKEYMGMT_SELECT_SECRET_KEY};
use crate::reason::Reason;
use crate::system::object;

/// An AES key of 16, 24 or 32 bytes; wiped when it is freed.
struct SecretKey {
    bytes: Zeroizing<[u8; 32]>,
    len: usize,
}

/// The functions of keys.
pub(super) const DISPATCH: [Dispatch; 5] =
    [key::free(free), key::import(import), key::export(export), key::import_settable(settable), END_OF_TABLE];

unsafe extern "C" fn import(
    provider: *mut c_void,
    selection: c_int,
    params: *const OsslParam,
) -> *mut c_void {
    guarded(null_mut(), || {
        // SAFETY: OpenSSL passes the context of the provider.
        let instance = unsafe { instance(provider) };
        if selection & SKEYMGMT_SELECT_SECRET_KEY == 0 {
            return null_mut();
        }
        // SAFETY: OpenSSL passes null or a valid array.
        let raw_bytes = unsafe { iter_set_params(params) }.find(|param| param.name() == Param::RawBytes);
        let bytes = raw_bytes.as_ref().map_or(Err(Reason::KeyLength), |param| param.octets());
        let key = bytes.and_then(|bytes| {
            if !matches!(bytes.len(), 16 | 24 | 32) {
                return Err(Reason::KeyLength);
            }
            let mut key = object::allocate(|| SecretKey { bytes: Zeroizing::default(), len: bytes.len() })?;
            key.0.bytes[..bytes.len()].copy_from_slice(bytes);
            Ok(Box::into_raw(key).cast())
        });
        key.inspect_err(|reason| instance.resources.core.raise(*reason, None)).unwrap_or(null_mut())
    })
}

unsafe extern "C" fn export(
    key: *mut c_void,
    selection: c_int,
    callback: Option<Callback>,
    argument: *mut c_void,
) -> c_int {
    guarded(0, || {
        // SAFETY: OpenSSL passes null or a key of this provider.
        let key = unsafe { key.cast::<SecretKey>().as_ref() };
        let (Some(key), Some(callback)) = (key, callback) else { return 0 };
        let mut params = [END, END];
        if selection & SKEYMGMT_SELECT_SECRET_KEY != 0 {
            params[0] = Param::RawBytes.entry();
            params[0].data_size = key.len;
            params[0].data = key.bytes.as_ptr().cast_mut().cast();
        }
        // SAFETY: `callback` is a function of OpenSSL, and `argument` is its argument. The array ends with an entry without a
        // name.
        unsafe { callback(params.as_ptr(), argument) }
    })
}

unsafe extern "C" fn free(key: *mut c_void) {
    // SAFETY: the key comes from `import` and is freed once.
    guarded((), || unsafe { object::free::<SecretKey>(key) });
}

unsafe extern "C" fn settable(_provider: *mut c_void) -> *const OsslParam {
    (const { list!(RawBytes) }).as_ptr()
}
