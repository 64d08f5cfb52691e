//! `OSSL_PARAM`: arrays of named values that libcrypto and a provider exchange. An entry without a name ends the array.

use std::ffi::{CStr, c_char, c_uint, c_void};
use std::ptr::null_mut;
use std::slice;

use super::types::{
    OsslParam, PARAM_INTEGER, PARAM_OCTET_PTR, PARAM_OCTET_STRING, PARAM_UNMODIFIED, PARAM_UNSIGNED_INTEGER,
    PARAM_UTF8_PTR, PARAM_UTF8_STRING,
};
use crate::reason::{Outcome, Reason};

/// Makes an entry for a list of gettable or settable parameters. `data_type` is one of the constants `PARAM_*`.
pub(crate) const fn entry(name: &CStr, data_type: c_uint, size: usize) -> OsslParam {
    OsslParam {
        key: name.as_ptr(),
        data_type,
        data: null_mut(),
        data_size: size,
        return_size: PARAM_UNMODIFIED,
    }
}

/// A list of gettable or settable parameters, including the entry that ends the list.
pub(crate) type Parameters = &'static [OsslParam];

/// Makes a list from the names of parameters.
macro_rules! list {
    ($($name:ident)*) => {
        &[$($crate::libcrypto::param::Param::$name.entry(),)* $crate::libcrypto::param::END]
    };
}
pub(crate) use list;

/// True if a C string is `text`. The strings are so short that a call of `strlen` takes longer than this comparison.
///
/// # Safety
/// `string` is a C string.
#[inline(always)]
unsafe fn is(string: *const c_char, text: &CStr) -> bool {
    let mut bytes = text.to_bytes_with_nul().iter().enumerate();
    // SAFETY: all bytes before this byte are equal to those of `text`, so the string has not ended before it.
    bytes.all(|(i, byte)| unsafe { *string.add(i) } as u8 == *byte)
}

/// Defines [`Param`] from the types, sizes and names of the parameters. The compiler makes one search tree of all comparisons in `of`.
macro_rules! params {
    ($($data_type:ident, $size:expr => $($name:ident $text:literal),*;)*) => {
        /// The parameters of this provider.
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Param {
            $($($name,)*)*
            Unknown,
        }

        impl Param {
            /// An entry of a list of parameters.
            pub(crate) const fn entry(self) -> OsslParam {
                match self {
                    $($(Param::$name => entry($text, $data_type, $size),)*)*
                    Param::Unknown => END,
                }
            }

            /// # Safety
            /// `name` is a C string.
            #[inline(never)]
            unsafe fn of(name: *const c_char) -> Param {
                match () {
                    // SAFETY: guaranteed by the caller.
                    $($(_ if unsafe { is(name, $text) } => Param::$name,)*)*
                    _ => Param::Unknown,
                }
            }
        }
    };
}

params! {
    PARAM_UNSIGNED_INTEGER, UINT => IvGenerated c"iv-generated", Mode c"mode", Num c"num", Padding c"padding", Speed c"speed",
        TlsVersion c"tls-version", UseBits c"use-bits";
    PARAM_UNSIGNED_INTEGER, SIZE => BlockSize c"blocksize", IvLen c"ivlen", KeyLen c"keylen", TagLen c"taglen",
        TlsAadPad c"tlsaadpad", TlsMacSize c"tls-mac-size";
    PARAM_INTEGER, UINT => Aead c"aead", Cts c"cts", CustomIv c"custom-iv", EncryptThenMac c"encrypt-then-mac",
        HasRandKey c"has-randkey", Status c"status", TlsMulti c"tls-multi";
    PARAM_OCTET_STRING, 0 => Iv c"iv", RawBytes c"raw-bytes", Tag c"tag", TlsAad c"tlsaad", TlsIvFixed c"tlsivfixed",
        TlsIvGen c"tlsivgen", TlsIvInv c"tlsivinv", UpdatedIv c"updated-iv";
    PARAM_OCTET_PTR, 0 => TlsMac c"tls-mac";
    PARAM_UTF8_STRING, 0 => CtsMode c"cts_mode";
    PARAM_UTF8_PTR, 0 => BuildInfo c"buildinfo", Name c"name", Version c"version";
}

/// The entry that ends a list of parameters.
pub(crate) const END: OsslParam =
    OsslParam { key: std::ptr::null(), data_type: 0, data: null_mut(), data_size: 0, return_size: 0 };

/// A parameter whose value the caller sets, and the name of the parameter.
pub(crate) struct SetParam<'a>(&'a OsslParam, Param);

/// A parameter whose value the caller requests, and the name of the parameter.
pub(crate) struct GetParam<'a>(&'a mut OsslParam, Param);

/// Iterates over the entries of an array up to the entry without a name, which ends the array. Also returns their names.
///
/// # Safety
/// `array` is null or points to an array that ends with an entry without a name. The array is valid as long as the iterator is
/// used.
unsafe fn iter(mut array: *mut OsslParam) -> impl Iterator<Item = (*mut OsslParam, Param)> {
    std::iter::from_fn(move || {
        // SAFETY: the pointer is null or points to an entry of the array: the iteration ends at the last entry, which has no
        // name. Names are C strings.
        unsafe {
            let name = array.as_ref()?.key;
            let param = array;
            (!name.is_null()).then(|| {
                array = param.add(1);
                (param, Param::of(name))
            })
        }
    })
}

/// Iterates over an array of parameters whose values the caller has set.
///
/// # Safety
/// `array` is null or points to an array that ends with an entry without a name. The array and the data that its
/// entries describe are valid for `'a`.
pub(crate) unsafe fn iter_set_params<'a>(array: *const OsslParam) -> impl Iterator<Item = SetParam<'a>> {
    // SAFETY: guaranteed by the caller. The entries are only read.
    unsafe { iter(array.cast_mut()) }.map(|(param, name)| unsafe { SetParam(&*param, name) })
}

/// Iterates over an array of parameters whose values the caller requests.
///
/// # Safety
/// The requirements of [`iter_set_params`]. In addition, nothing else reads or writes the array during the iteration.
pub(crate) unsafe fn iter_get_params<'a>(array: *mut OsslParam) -> impl Iterator<Item = GetParam<'a>> {
    // SAFETY: guaranteed by the caller. Each entry is borrowed once.
    unsafe { iter(array) }.map(|(param, name)| unsafe { GetParam(&mut *param, name) })
}

impl SetParam<'_> {
    #[inline(always)]
    pub(crate) fn name(&self) -> Param {
        self.1
    }

    fn bytes_of(&self) -> Option<&[u8]> {
        if self.0.data.is_null() {
            return (self.0.data_size == 0).then_some(&[]);
        }
        if self.0.data_size > isize::MAX as usize {
            return None;
        }
        // SAFETY: if the caller sets a parameter, `data` points to `data_size` bytes.
        Some(unsafe { slice::from_raw_parts(self.0.data.cast(), self.0.data_size) })
    }

    /// Returns the value as a non-negative number. The stored number may have any width, and its value must fit `T`.
    #[inline(always)]
    pub(crate) fn number<T: TryFrom<u128>>(&self) -> Outcome<T> {
        let error = Reason::ParameterType;
        let bytes = self.bytes_of().filter(|bytes| (1..=16).contains(&bytes.len())).ok_or(error)?;
        let value = match *bytes {
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
            [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]).into(),
            _ => {
                let at = if cfg!(target_endian = "little") { 0 } else { 16 - bytes.len() };
                let mut wide = [0; 16];
                wide[at..at + bytes.len()].copy_from_slice(bytes);
                u128::from_ne_bytes(wide)
            }
        };
        match self.0.data_type {
            PARAM_INTEGER if value >> (8 * bytes.len() - 1) == 1 => Err(error),
            PARAM_INTEGER | PARAM_UNSIGNED_INTEGER => T::try_from(value).map_err(|_| error),
            _ => Err(error),
        }
    }

    fn bytes_of_type(&self, data_type: c_uint) -> Outcome<&[u8]> {
        if self.0.data_type != data_type {
            return Err(Reason::ParameterType);
        }
        self.bytes_of().ok_or(Reason::NullBuffer)
    }

    /// The value as bytes.
    pub(crate) fn octets(&self) -> Outcome<&[u8]> {
        self.bytes_of_type(PARAM_OCTET_STRING)
    }

    /// The bytes of a text, without a terminating NUL.
    pub(crate) fn text(&self) -> Outcome<&[u8]> {
        let text = self.bytes_of_type(PARAM_UTF8_STRING)?;
        Ok(text.split(|byte| *byte == 0).next().unwrap_or_default())
    }

    /// Returns `len` bytes if the caller has passed bytes with length -1. With this length, the number of bytes is not passed,
    /// and depends on the context.
    pub(crate) fn octets_without_len(&self, len: usize) -> Outcome<Option<&[u8]>> {
        if self.0.data_type != PARAM_OCTET_STRING || self.0.data_size != usize::MAX {
            return Ok(None);
        }
        if self.0.data.is_null() {
            return Err(Reason::NullBuffer);
        }
        // SAFETY: by passing length -1, the caller guarantees that `data` points to the number of bytes that the context
        // expects.
        Ok(Some(unsafe { slice::from_raw_parts(self.0.data.cast(), len) }))
    }

    /// Returns the bytes of a parameter, or `None` if its pointer is null, and the length that the caller has passed. To set
    /// only the length of a tag, a caller passes a null pointer with this length.
    pub(crate) fn octets_or_len(&self) -> Outcome<(Option<&[u8]>, usize)> {
        let OsslParam { data_type, data, data_size, .. } = *self.0;
        match data_type {
            PARAM_OCTET_STRING => Ok((self.bytes_of().filter(|_| !data.is_null()), data_size)),
            _ => Err(Reason::ParameterType),
        }
    }
}

impl GetParam<'_> {
    #[inline(always)]
    pub(crate) fn name(&self) -> Param {
        self.1
    }

    /// The number of bytes of space for the value. `None` if the caller requests only the size of the value.
    pub(crate) fn room(&self) -> Option<usize> {
        (!self.0.data.is_null()).then_some(self.0.data_size)
    }

    /// Returns a number.
    pub(crate) fn number(&mut self, value: u64) -> Outcome<()> {
        let error = Reason::ParameterType;
        if !matches!(self.0.data_type, PARAM_INTEGER | PARAM_UNSIGNED_INTEGER) {
            return Err(error);
        }
        let room = self.0.data_size;
        if room == 8 || self.0.data.is_null() {
            self.0.return_size = 8;
            // libcrypto requests values of type `size_t` in the init of a new context. A store of a constant size takes less time than a
            // copy.
            // SAFETY: data is null, or has room for data_size bytes. It belongs to C code, so it counts as initialised.
            if let Some(data) = unsafe { self.0.data.cast::<[u8; 8]>().as_mut() } {
                *data = value.to_ne_bytes();
            }
            return Ok(());
        }
        let signed = usize::from(self.0.data_type == PARAM_INTEGER);
        if room == 0 || room > 16 || (room < 8 && value >> (8 * room - signed) != 0) {
            return Err(error);
        }
        let bytes = u128::from(value).to_ne_bytes();
        let bytes = if cfg!(target_endian = "little") { &bytes[..room] } else { &bytes[16 - room..] };
        self.copy(bytes, bytes)
    }

    /// Returns bytes: copies them, or returns a pointer to them if the caller requests a pointer. In the second case, the bytes
    /// must live as long as the context.
    pub(crate) fn octets(&mut self, value: &[u8]) -> Outcome<()> {
        match self.0.data_type {
            PARAM_OCTET_STRING => self.copy(value, value),
            PARAM_OCTET_PTR if value.is_empty() => self.pointer(std::ptr::null(), 0),
            PARAM_OCTET_PTR => self.pointer(value.as_ptr().cast(), value.len()),
            _ => Err(Reason::ParameterType),
        }
    }

    /// Returns the caller's space, in which bytes are to be written. Its length is the number of bytes that the caller
    /// requests. If the caller requests 0 bytes, the length is `all`, and the caller guarantees that there is space for them.
    pub(crate) fn space(&mut self, all: usize) -> Outcome<&mut [u8]> {
        match self.0.data_type {
            PARAM_OCTET_STRING if self.0.data.is_null() => return Err(Reason::NullBuffer),
            PARAM_OCTET_STRING => {}
            _ => return Err(Reason::ParameterType),
        }
        let len = if self.0.data_size == 0 { all } else { self.0.data_size };
        self.0.return_size = len;
        // SAFETY: data has room for data_size bytes, or for `all` bytes if data_size is 0. The memory belongs to C
        // code, so it counts as initialised.
        Ok(unsafe { slice::from_raw_parts_mut(self.0.data.cast::<u8>(), len) })
    }

    /// Returns a text.
    pub(crate) fn text(&mut self, value: &'static CStr) -> Outcome<()> {
        match self.0.data_type {
            PARAM_UTF8_PTR => self.pointer(value.as_ptr().cast(), value.to_bytes().len()),
            // As in OpenSSL, the terminating NUL is written only if there is space for it.
            PARAM_UTF8_STRING => self.copy(value.to_bytes(), value.to_bytes_with_nul()),
            _ => Err(Reason::ParameterType),
        }
    }

    /// Copies a value. `with_end` is the value followed by its terminating NUL, if it has one. The NUL is copied only if there
    /// is space for it.
    fn copy(&mut self, value: &[u8], with_end: &[u8]) -> Outcome<()> {
        self.0.return_size = value.len();
        if self.0.data.is_null() {
            return Ok(());
        }
        if self.0.data_size < value.len() {
            return Err(Reason::ParameterRoom);
        }
        let bytes = &with_end[..with_end.len().min(self.0.data_size)];
        // SAFETY: data has room for data_size bytes, which are enough.
        unsafe {
            match bytes.try_into() {
                // Tags have 16 bytes. A store of a constant size takes less time than a copy.
                Ok(block) => self.0.data.cast::<u128>().write_unaligned(u128::from_ne_bytes(block)),
                Err(_) => slice::from_raw_parts_mut(self.0.data.cast(), bytes.len()).copy_from_slice(bytes),
            }
        }
        Ok(())
    }

    fn pointer(&mut self, value: *const c_void, len: usize) -> Outcome<()> {
        self.0.return_size = len;
        if !self.0.data.is_null() {
            // SAFETY: the data of a parameter of a pointer type is a pointer.
            unsafe { self.0.data.cast::<*const c_void>().write_unaligned(value) };
        }
        Ok(())
    }
}

/// The size of C's `unsigned int` in bytes.
pub(crate) const UINT: usize = size_of::<c_uint>();
/// The size of C's `size_t` in bytes.
pub(crate) const SIZE: usize = size_of::<usize>();

#[cfg(test)]
mod tests;
