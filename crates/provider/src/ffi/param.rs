//! `OSSL_PARAM`: arrays of named values that pass between the library and a provider, ended by one without name.

use std::ffi::{CStr, c_uint, c_void};
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::slice;

use super::types::{
    OsslParam, PARAM_INTEGER, PARAM_OCTET_PTR, PARAM_OCTET_STRING, PARAM_UNMODIFIED, PARAM_UNSIGNED_INTEGER,
    PARAM_UTF8_PTR, PARAM_UTF8_STRING,
};
use crate::reason::{Outcome, Reason};

/// The kind of value that a parameter has, for the lists of what can be asked and set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A number without sign (`unsigned int` or `size_t`).
    Unsigned,
    /// A number with sign (`int`).
    Integer,
    /// Bytes.
    Octets,
    /// A pointer to bytes.
    OctetPointer,
    /// A pointer to text.
    TextPointer,
}

/// An entry of a list of parameters that can be asked or set.
pub(crate) const fn entry(name: &'static CStr, kind: Kind, size: usize) -> OsslParam {
    let data_type = match kind {
        Kind::Unsigned => PARAM_UNSIGNED_INTEGER,
        Kind::Integer => PARAM_INTEGER,
        Kind::Octets => PARAM_OCTET_STRING,
        Kind::OctetPointer => PARAM_OCTET_PTR,
        Kind::TextPointer => PARAM_UTF8_PTR,
    };
    OsslParam {
        key: name.as_ptr(),
        data_type,
        data: null_mut(),
        data_size: size,
        return_size: PARAM_UNMODIFIED,
    }
}

/// A list of parameters that can be asked or set, with its end.
#[derive(Clone, Copy)]
pub(crate) struct Parameters(pub(super) &'static [OsslParam]);

impl Parameters {
    /// A list; made by `list!`, which adds the end.
    pub(crate) const fn new(entries: &'static [OsslParam]) -> Parameters {
        assert!(entries[entries.len() - 1].key.is_null(), "a list must have an end");
        Parameters(entries)
    }
}

/// A list of parameters.
macro_rules! list {
    ($($entry:expr),* $(,)?) => {
        $crate::ffi::param::Parameters::new(&[$($entry,)* $crate::ffi::param::END])
    };
}
pub(crate) use list;

/// The end of a list.
pub(crate) const END: OsslParam =
    OsslParam { key: std::ptr::null(), data_type: 0, data: null_mut(), data_size: 0, return_size: 0 };

/// A parameter that is set: the value can be read.
pub(crate) struct Given<'a>(&'a OsslParam);

/// A parameter that is asked for: the value can be answered.
pub(crate) struct Asked<'a>(&'a mut OsslParam);

/// The parameters of an array of which values are read.
///
/// # Safety
/// `array` is null or points to an array that ends with an entry without name, valid as its entries say, for `'a`.
pub(crate) unsafe fn given<'a>(array: *const OsslParam) -> impl Iterator<Item = Given<'a>> {
    let mut next = array;
    let mut array = PhantomData::<&'a OsslParam>;
    std::iter::from_fn(move || {
        let _ = &mut array;
        // SAFETY: null, or an entry of the array: the caller vouches that the last one has no name.
        let param = unsafe { next.as_ref::<'a>() }.filter(|param| !param.key.is_null())?;
        next = next.wrapping_add(1);
        Some(Given(param))
    })
}

/// The parameters of an array that ask for values.
///
/// # Safety
/// As [`given`]; the array is not read or written by others meanwhile.
pub(crate) unsafe fn asked<'a>(array: *mut OsslParam) -> impl Iterator<Item = Asked<'a>> {
    let mut next = array;
    std::iter::from_fn(move || {
        // SAFETY: as in `given`; each entry is lent out once.
        let param = unsafe { next.as_mut::<'a>() }.filter(|param| !param.key.is_null())?;
        next = next.wrapping_add(1);
        Some(Asked(param))
    })
}

fn name(param: &OsslParam) -> &[u8] {
    // SAFETY: names are C strings, and the iterators give out none without a name.
    unsafe { CStr::from_ptr(param.key) }.to_bytes()
}

impl Given<'_> {
    /// Its name.
    pub(crate) fn name(&self) -> &[u8] {
        name(self.0)
    }

    fn bytes_of(&self) -> Option<&[u8]> {
        if self.0.data.is_null() {
            return (self.0.data_size == 0).then_some(&[]);
        }
        if self.0.data_size > isize::MAX as usize {
            return None;
        }
        // SAFETY: a parameter that is set has data_size bytes of data.
        Some(unsafe { slice::from_raw_parts(self.0.data.cast(), self.0.data_size) })
    }

    /// A number of any width that is not negative.
    pub(crate) fn number(&self) -> Outcome<u64> {
        let error = Reason::ParameterType;
        let bytes = self.bytes_of().filter(|bytes| (1..=16).contains(&bytes.len())).ok_or(error)?;
        let number = Number::native(bytes);
        let signed = match self.0.data_type {
            PARAM_INTEGER => true,
            PARAM_UNSIGNED_INTEGER => false,
            _ => return Err(error),
        };
        if signed && number.negative() {
            return Err(error);
        }
        u64::try_from(number.value).map_err(|_| error)
    }

    /// A number that fits `unsigned int`.
    pub(crate) fn uint(&self) -> Outcome<u32> {
        u32::try_from(self.number()?).map_err(|_| Reason::ParameterType)
    }

    /// A number that fits `size_t`.
    pub(crate) fn size(&self) -> Outcome<usize> {
        usize::try_from(self.number()?).map_err(|_| Reason::ParameterType)
    }

    /// Bytes.
    pub(crate) fn octets(&self) -> Outcome<&[u8]> {
        match self.0.data_type {
            PARAM_OCTET_STRING => self.bytes_of().ok_or(Reason::NullBuffer),
            _ => Err(Reason::ParameterType),
        }
    }

    /// `len` bytes, if they were given with length -1: the receiver knows how many there are.
    pub(crate) fn octets_without_len(&self, len: usize) -> Outcome<Option<&[u8]>> {
        if self.0.data_type != PARAM_OCTET_STRING || self.0.data_size != usize::MAX {
            return Ok(None);
        }
        if self.0.data.is_null() {
            return Err(Reason::NullBuffer);
        }
        // SAFETY: by giving this length the caller vouches for as many bytes as the context has asked for.
        Ok(Some(unsafe { slice::from_raw_parts(self.0.data.cast(), len) }))
    }

    /// Length of bytes that need not be there: a tag's length is set so.
    pub(crate) fn octets_or_len(&self) -> Outcome<(Option<&[u8]>, usize)> {
        match self.0.data_type {
            PARAM_OCTET_STRING if self.0.data.is_null() => Ok((None, self.0.data_size)),
            PARAM_OCTET_STRING => Ok((self.bytes_of(), self.0.data_size)),
            _ => Err(Reason::ParameterType),
        }
    }
}

/// A number of up to 16 bytes.
struct Number {
    value: u128,
    len: usize,
}

impl Number {
    /// From bytes in the order of this machine.
    fn native(bytes: &[u8]) -> Number {
        let fold = |value: u128, byte: &u8| (value << 8) | u128::from(*byte);
        let value = if cfg!(target_endian = "little") {
            bytes.iter().rev().fold(0, fold)
        } else {
            bytes.iter().fold(0, fold)
        };
        Number { value, len: bytes.len() }
    }

    fn negative(&self) -> bool {
        (self.value >> (8 * self.len - 1)) & 1 == 1
    }
}

impl Asked<'_> {
    /// Its name.
    pub(crate) fn name(&self) -> &[u8] {
        name(self.0)
    }

    /// Bytes that the asker has room for.
    pub(crate) fn room(&self) -> usize {
        self.0.data_size
    }

    /// True if only the size is asked for.
    pub(crate) fn asks_size(&self) -> bool {
        self.0.data.is_null()
    }

    /// Answers with a number.
    pub(crate) fn number(&mut self, value: u64) -> Outcome<()> {
        let error = Reason::ParameterType;
        if !matches!(self.0.data_type, PARAM_INTEGER | PARAM_UNSIGNED_INTEGER) {
            return Err(error);
        }
        let room = self.0.data_size;
        if self.0.data.is_null() {
            self.0.return_size = 8;
            return Ok(());
        }
        let signed = usize::from(self.0.data_type == PARAM_INTEGER);
        if room == 0 || room > 16 || (room < 8 && value >> (8 * room - signed) != 0) {
            return Err(error);
        }
        let wide = u128::from(value);
        let bytes = wide.to_ne_bytes();
        let bytes = if cfg!(target_endian = "little") { &bytes[..room] } else { &bytes[16 - room..] };
        // SAFETY: data has room for data_size bytes.
        unsafe { slice::from_raw_parts_mut(self.0.data.cast::<u8>(), room) }.copy_from_slice(bytes);
        self.0.return_size = room;
        Ok(())
    }

    /// Answers with bytes: copied, or where they lie if a pointer is asked for. What is pointed to must live as long as
    /// the context it belongs to.
    pub(crate) fn octets(&mut self, value: &[u8]) -> Outcome<()> {
        match self.0.data_type {
            PARAM_OCTET_STRING => {
                self.0.return_size = value.len();
                if self.0.data.is_null() {
                    return Ok(());
                }
                if self.0.data_size < value.len() {
                    return Err(Reason::ParameterRoom);
                }
                // SAFETY: data has room for data_size bytes, which are enough.
                unsafe { slice::from_raw_parts_mut(self.0.data.cast::<u8>(), value.len()) }
                    .copy_from_slice(value);
                Ok(())
            }
            PARAM_OCTET_PTR if value.is_empty() => self.pointer(std::ptr::null(), 0),
            PARAM_OCTET_PTR => self.pointer(value.as_ptr().cast(), value.len()),
            _ => Err(Reason::ParameterType),
        }
    }

    /// Answers with bytes made on the spot: as many as are asked for, or `all`, for which the asker then has room, if it
    /// asks for 0.
    pub(crate) fn octets_into(
        &mut self,
        all: usize,
        fill: impl FnOnce(&mut [u8]) -> Outcome<()>,
    ) -> Outcome<()> {
        if self.0.data_type != PARAM_OCTET_STRING {
            return Err(Reason::ParameterType);
        }
        if self.0.data.is_null() {
            return Err(Reason::NullBuffer);
        }
        let len = if self.0.data_size == 0 { all } else { self.0.data_size };
        // SAFETY: data has room for data_size bytes, or for `all` by the meaning of 0. They are initialised in the sense
        // of C: the caller owns them.
        fill(unsafe { slice::from_raw_parts_mut(self.0.data.cast::<u8>(), len) })?;
        self.0.return_size = len;
        Ok(())
    }

    /// Answers with a text.
    pub(crate) fn text(&mut self, value: &'static CStr) -> Outcome<()> {
        match self.0.data_type {
            PARAM_UTF8_PTR => self.pointer(value.as_ptr().cast(), value.to_bytes().len()),
            PARAM_UTF8_STRING => {
                let bytes = value.to_bytes_with_nul();
                self.0.return_size = bytes.len() - 1;
                if self.0.data.is_null() {
                    return Ok(());
                }
                if self.0.data_size < bytes.len() {
                    return Err(Reason::ParameterRoom);
                }
                // SAFETY: data has room for data_size bytes, which are enough.
                unsafe { slice::from_raw_parts_mut(self.0.data.cast::<u8>(), bytes.len()) }
                    .copy_from_slice(bytes);
                Ok(())
            }
            _ => Err(Reason::ParameterType),
        }
    }

    fn pointer(&mut self, value: *const c_void, len: usize) -> Outcome<()> {
        self.0.return_size = len;
        if !self.0.data.is_null() {
            // SAFETY: parameters of pointer types have a pointer as data.
            unsafe { self.0.data.cast::<*const c_void>().write_unaligned(value) };
        }
        Ok(())
    }
}

/// Sizes in C of what parameters are made of.
pub(crate) const UINT: usize = size_of::<c_uint>();
/// As [`UINT`].
pub(crate) const SIZE: usize = size_of::<usize>();
