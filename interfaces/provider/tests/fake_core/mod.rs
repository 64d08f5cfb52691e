//! A minimal substitute for libcrypto, which loads the provider and calls its functions directly.
//!
//! EVP refuses many calls before a provider gets them, hides the provider's use of the error stack, and allocates
//! memory. Here each call reaches the provider unchanged, and is checked against the rules for every call: it returns 0
//! or 1, and puts a reason of its list on the error stack only if it fails. (Some failures put no reason there, as in OpenSSL's
//! default provider. The tests in `openssl` compare this.)
//!
//! Used by the test `memory` and by the fuzz target `provider`. This module allocates nothing during a call of the
//! provider.

// Each of the two users needs only a part of this module.
#![allow(dead_code)]

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::mem::transmute;
use std::ptr::{null, null_mut};

// The only public item of the library is the entry point.
use lockstep_provider as _;

unsafe extern "C" {
    fn OSSL_provider_init(
        handle: *const c_void,
        functions: *const c_void,
        out: *mut *const c_void,
        context: *mut *mut c_void,
    ) -> c_int;
}

type Function = unsafe extern "C" fn();
type NewContext = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
type Init = unsafe extern "C" fn(*mut c_void, *const u8, usize, *const u8, usize, *const Param) -> c_int;
type Update = unsafe extern "C" fn(*mut c_void, *mut u8, *mut usize, usize, *const u8, usize) -> c_int;
type Final = unsafe extern "C" fn(*mut c_void, *mut u8, *mut usize, usize) -> c_int;
type Free = unsafe extern "C" fn(*mut c_void);
type GetParams = unsafe extern "C" fn(*mut Param) -> c_int;
type GetContextParams = unsafe extern "C" fn(*mut c_void, *mut Param) -> c_int;
type SetContextParams = unsafe extern "C" fn(*mut c_void, *const Param) -> c_int;
type Query = unsafe extern "C" fn(*mut c_void, c_int, *mut c_int) -> *const AlgorithmEntry;
type ReasonStrings = unsafe extern "C" fn(*mut c_void) -> *const ReasonEntry;

/// `OSSL_DISPATCH`
#[repr(C)]
struct Dispatch {
    id: c_int,
    function: Option<Function>,
}

/// `OSSL_ALGORITHM`
#[repr(C)]
struct AlgorithmEntry {
    names: *const c_char,
    properties: *const c_char,
    implementation: *const Dispatch,
    description: *const c_char,
}

/// `OSSL_ITEM`
#[repr(C)]
struct ReasonEntry {
    id: c_uint,
    text: *const c_char,
}

/// `OSSL_PARAM`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Param {
    pub(crate) key: *const c_char,
    pub(crate) data_type: c_uint,
    pub(crate) data: *mut c_void,
    pub(crate) data_size: usize,
    pub(crate) return_size: usize,
}

impl Param {
    /// The end of an array.
    pub(crate) const END: Param =
        Param { key: null(), data_type: 0, data: null_mut(), data_size: 0, return_size: 0 };

    /// A parameter whose `return_size` is not set.
    pub(crate) fn new(key: &CStr, data_type: c_uint, data: *mut c_void, data_size: usize) -> Param {
        Param { key: key.as_ptr(), data_type, data, data_size, return_size: UNMODIFIED }
    }

    /// A parameter of bytes: a value that is set, or space for a value that is read.
    pub(crate) fn octets(key: &CStr, bytes: &mut [u8]) -> Param {
        Param::new(key, OCTET_STRING, bytes.as_mut_ptr().cast(), bytes.len())
    }
}

/// `OSSL_PARAM_OCTET_STRING`
pub(crate) const OCTET_STRING: c_uint = 5;
/// `OSSL_PARAM_UTF8_PTR`
pub(crate) const UTF8_PTR: c_uint = 6;
/// `OSSL_PARAM_OCTET_PTR`
pub(crate) const OCTET_PTR: c_uint = 7;
/// `OSSL_PARAM_UNMODIFIED`
pub(crate) const UNMODIFIED: usize = usize::MAX;

/// The errors that the provider has put on the error stack of a thread since it was cleared.
#[derive(Clone, Copy, Default)]
struct Errors {
    begun: u32,
    set: u32,
    last: u32,
}

thread_local! {
    static ERRORS: Cell<Errors> = const { Cell::new(Errors { begun: 0, set: 0, last: 0 }) };
}

fn errors(change: impl FnOnce(&mut Errors)) {
    let mut errors = ERRORS.get();
    change(&mut errors);
    ERRORS.set(errors);
}

unsafe extern "C" fn new_error(_handle: *const c_void) {
    errors(|errors| errors.begun += 1);
}

unsafe extern "C" fn set_error_debug(
    _handle: *const c_void,
    file: *const c_char,
    _line: c_int,
    function: *const c_char,
) {
    // SAFETY: the provider passes C strings; the test checks that.
    unsafe { assert!(CStr::from_ptr(file).count_bytes() > 0 && CStr::from_ptr(function).count_bytes() < 100) }
}

unsafe extern "C" fn vset_error(
    _handle: *const c_void,
    reason: u32,
    format: *const c_char,
    _arguments: *mut c_void,
) {
    if !format.is_null() {
        // SAFETY: the provider passes a C string; the test checks that.
        assert!(unsafe { CStr::from_ptr(format) }.count_bytes() < 1 << 16);
    }
    errors(|errors| {
        errors.set += 1;
        errors.last = reason;
    });
}

unsafe extern "C" fn core_get_params(handle: *const c_void, params: *mut Param) -> c_int {
    // SAFETY: the handle is the one that was passed to the provider; the array ends with an entry without a name.
    unsafe {
        let core = &*handle.cast::<Core>();
        let mut param = params;
        while !(*param).key.is_null() {
            let name = CStr::from_ptr((*param).key);
            if let Some((_, value)) = core.settings.iter().find(|(known, _)| known.as_c_str() == name) {
                assert_eq!((*param).data_type, UTF8_PTR);
                (*param).data.cast::<*const c_char>().write(value.as_ptr());
                (*param).return_size = value.count_bytes();
            }
            param = param.add(1);
        }
    }
    1
}

/// The reason of a failed call: its number, or 0 if the call has left none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Refused(pub(crate) u32);

/// Clears the error stack, makes a call and checks the rules for every call. `ok` returns true if the call has
/// succeeded.
fn checked<T>(call: impl FnOnce() -> T, ok: impl FnOnce(&T) -> bool) -> Result<T, Refused> {
    ERRORS.set(Errors::default());
    let result = call();
    let Errors { begun, set, last } = ERRORS.get();
    assert_eq!(begun, set, "calls of new_error and vset_error do not match");
    if ok(&result) {
        assert_eq!(set, 0, "the call succeeded with an error on the stack, the last one {last}");
        return Ok(result);
    }
    assert_eq!(set > 0, last > 0, "OpenSSL has no reason 0");
    Err(Refused(last))
}

fn expect_status(call: impl FnOnce() -> c_int) -> Result<(), Refused> {
    checked(call, |result| {
        assert!((0..=1).contains(result), "return value {result}");
        *result == 1
    })
    .map(drop)
}

/// The core that the provider gets from libcrypto: it has the settings of the configuration file.
pub(crate) struct Core {
    settings: Vec<(CString, CString)>,
}

impl Core {
    /// Creates a core whose configuration file has these settings.
    pub(crate) fn new(settings: &[(&str, &str)]) -> Core {
        let text = |text: &str| CString::new(text).expect("no NUL");
        Core { settings: settings.iter().map(|(name, value)| (text(name), text(value))).collect() }
    }
}

/// The loaded provider; unloaded on drop.
pub(crate) struct Provider<'c> {
    context: *mut c_void,
    teardown: Free,
    query: Query,
    reasons: ReasonStrings,
    core: PhantomData<&'c Core>,
}

// SAFETY: a provider's functions may be called from any thread.
unsafe impl Send for Provider<'_> {}
// SAFETY: as above.
unsafe impl Sync for Provider<'_> {}

/// The function with the number `id` in a dispatch array.
///
/// # Safety
/// The array ends with number 0.
unsafe fn find(mut table: *const Dispatch, id: c_int) -> Function {
    // SAFETY: entries up to the one with number 0 are valid.
    unsafe {
        while (*table).id != 0 {
            if (*table).id == id {
                return (*table).function.expect("an entry has a function");
            }
            table = table.add(1);
        }
    }
    panic!("the provider has no function {id}")
}

impl<'c> Provider<'c> {
    /// Loads the provider.
    pub(crate) fn load(core: &'c Core) -> Result<Self, Refused> {
        let erased = |id, function| Dispatch { id, function: Some(function) };
        // SAFETY: function pointers have the same size, and the provider converts each one back to its own type by its
        // number.
        let functions = unsafe {
            [
                erased(2, transmute::<GetCoreParams, Function>(core_get_params)),
                erased(5, transmute::<NewError, Function>(new_error)),
                erased(6, transmute::<SetErrorDebug, Function>(set_error_debug)),
                erased(7, transmute::<VsetError, Function>(vset_error)),
                Dispatch { id: 0, function: None },
            ]
        };
        let (mut out, mut context) = (null(), null_mut());
        // SAFETY: the arguments are those that provider(7) requires, and the core outlives the provider. The provider
        // reads the array now and does not keep it.
        expect_status(|| unsafe {
            OSSL_provider_init(
                std::ptr::from_ref(core).cast(),
                functions.as_ptr().cast(),
                &mut out,
                &mut context,
            )
        })?;
        let table: *const Dispatch = out.cast();
        // SAFETY: the table is that of the provider, and the numbers determine the types.
        Ok(unsafe {
            Provider {
                context,
                teardown: transmute::<Function, Free>(find(table, 1024)),
                query: transmute::<Function, Query>(find(table, 1027)),
                reasons: transmute::<Function, ReasonStrings>(find(table, 1029)),
                core: PhantomData,
            }
        })
    }

    /// Algorithm number `index`, if it exists.
    pub(crate) fn cipher(&self, index: usize) -> Option<Cipher> {
        let mut no_cache = -1;
        // SAFETY: the table ends with an entry without a name; `OSSL_OP_CIPHER` is 2.
        unsafe {
            let mut entry = (self.query)(self.context, 2, &mut no_cache);
            assert_eq!(no_cache, 0);
            for _ in 0..index {
                if (*entry).names.is_null() {
                    return None;
                }
                entry = entry.add(1);
            }
            if (*entry).names.is_null() {
                return None;
            }
            let table = (*entry).implementation;
            Some(Cipher {
                names: CStr::from_ptr((*entry).names),
                new: transmute::<Function, NewContext>(find(table, 1)),
                init: [
                    transmute::<Function, Init>(find(table, 3)),
                    transmute::<Function, Init>(find(table, 2)),
                ],
                update: transmute::<Function, Update>(find(table, 4)),
                finish: transmute::<Function, Final>(find(table, 5)),
                one_shot: transmute::<Function, Update>(find(table, 6)),
                free: transmute::<Function, Free>(find(table, 7)),
                duplicate: transmute::<Function, NewContext>(find(table, 8)),
                get_params: transmute::<Function, GetParams>(find(table, 9)),
                get: transmute::<Function, GetContextParams>(find(table, 10)),
                set: transmute::<Function, SetContextParams>(find(table, 11)),
            })
        }
    }

    /// Creates a context.
    pub(crate) fn context(&self, cipher: Cipher) -> Result<Context<'_>, Refused> {
        // SAFETY: the context belongs to this provider.
        let pointer = checked(|| unsafe { (cipher.new)(self.context) }, |pointer| !pointer.is_null())?;
        Ok(Context { cipher, pointer, provider: PhantomData })
    }

    /// The text of a reason of this provider. For a reason of OpenSSL and for a failure without a reason, a placeholder.
    pub(crate) fn reason(&self, reason: Refused) -> Option<&'static CStr> {
        if reason.0 == 0 {
            return Some(c"no reason");
        }
        // Numbers that contain `ERR_LIB_PROV` are from openssl/proverr.h, where they start at 100, or common to all
        // libraries (`ERR_RFLAG_COMMON` of openssl/err.h).
        const COMMON: u32 = 2 << 18;
        let number = reason.0 & 0x7F_FFFF;
        if reason.0 >> 23 == 57 && ((100..400).contains(&number) || number & COMMON != 0) {
            return Some(c"a reason of OpenSSL");
        }
        // SAFETY: the list ends with an entry without a text.
        unsafe {
            let mut entry = (self.reasons)(self.context);
            while !(*entry).text.is_null() {
                if (*entry).id == reason.0 {
                    return Some(CStr::from_ptr((*entry).text));
                }
                entry = entry.add(1);
            }
        }
        None
    }
}

impl Drop for Provider<'_> {
    fn drop(&mut self) {
        // SAFETY: the provider is loaded, and is unloaded only once. No context is left, because contexts borrow the
        // provider.
        unsafe { (self.teardown)(self.context) }
    }
}

type GetCoreParams = unsafe extern "C" fn(*const c_void, *mut Param) -> c_int;
type NewError = unsafe extern "C" fn(*const c_void);
type SetErrorDebug = unsafe extern "C" fn(*const c_void, *const c_char, c_int, *const c_char);
type VsetError = unsafe extern "C" fn(*const c_void, u32, *const c_char, *mut c_void);

/// The functions of a cipher.
#[derive(Clone, Copy)]
pub(crate) struct Cipher {
    names: &'static CStr,
    new: NewContext,
    /// For decryption and for encryption.
    init: [Init; 2],
    update: Update,
    finish: Final,
    one_shot: Update,
    free: Free,
    duplicate: NewContext,
    get_params: GetParams,
    get: GetContextParams,
    set: SetContextParams,
}

impl Cipher {
    /// The first name: `AES-128-ECB`.
    pub(crate) fn name(&self) -> &'static str {
        self.names.to_str().expect("UTF-8").split(':').next().expect("a name")
    }

    /// The mode: the last part of the name.
    pub(crate) fn mode(&self) -> &'static str {
        self.name().rsplit('-').next().expect("a mode")
    }

    /// Bytes of the key; for XTS of both keys.
    pub(crate) fn key_len(&self) -> usize {
        let bits: usize = self.name().split('-').nth(1).and_then(|bits| bits.parse().ok()).expect("a size");
        bits / if self.mode() == "XTS" { 4 } else { 8 }
    }

    /// Default length of the IV in bytes.
    pub(crate) fn iv_len(&self) -> usize {
        match self.mode() {
            "ECB" => 0,
            "GCM" | "CCM" => 12,
            _ => 16,
        }
    }

    /// Gets parameters of the cipher itself. Without a context no error is put on the stack.
    ///
    /// # Safety
    /// The array ends with [`Param::END`], and its entries are valid.
    pub(crate) unsafe fn get_params(&self, params: &mut [Param]) -> bool {
        // SAFETY: guaranteed by the caller.
        let result = unsafe { (self.get_params)(params.as_mut_ptr()) };
        assert!((0..=1).contains(&result), "return value {result}");
        result == 1
    }
}

/// A context, freed on drop.
pub(crate) struct Context<'p> {
    cipher: Cipher,
    pointer: *mut c_void,
    provider: PhantomData<&'p ()>,
}

impl<'p> Context<'p> {
    /// The cipher of the context.
    pub(crate) fn cipher(&self) -> &Cipher {
        &self.cipher
    }

    /// Starts a message.
    pub(crate) fn init(
        &mut self,
        encrypts: bool,
        key: Option<&[u8]>,
        iv: Option<&[u8]>,
    ) -> Result<(), Refused> {
        // SAFETY: there are no parameters.
        unsafe { self.init_with(encrypts, key, iv, null()) }
    }

    /// Starts a message, with parameters.
    ///
    /// # Safety
    /// `params` is null or a valid array.
    pub(crate) unsafe fn init_with(
        &mut self,
        encrypts: bool,
        key: Option<&[u8]>,
        iv: Option<&[u8]>,
        params: *const Param,
    ) -> Result<(), Refused> {
        let split = |bytes: Option<&[u8]>| bytes.map_or((null(), 0), |bytes| (bytes.as_ptr(), bytes.len()));
        let ((key, key_len), (iv, iv_len)) = (split(key), split(iv));
        let init = self.cipher.init[usize::from(encrypts)];
        // SAFETY: the context belongs to this provider; the caller guarantees the rest.
        expect_status(|| unsafe { init(self.pointer, key, key_len, iv, iv_len, params) })
    }

    /// Processes the next bytes; returns the number of bytes of output.
    pub(crate) fn update(&mut self, output: &mut [u8], input: &[u8]) -> Result<usize, Refused> {
        // SAFETY: both arguments are slices, so their pointers are valid for their lengths.
        unsafe { self.update_raw(output.as_mut_ptr(), output.len(), input.as_ptr(), input.len()) }
    }

    /// Processes the next bytes, with arguments as EVP may pass them.
    ///
    /// # Safety
    /// Input and output are null or valid for their lengths.
    pub(crate) unsafe fn update_raw(
        &mut self,
        output: *mut u8,
        room: usize,
        input: *const u8,
        len: usize,
    ) -> Result<usize, Refused> {
        let mut written = UNSET;
        // SAFETY: the context belongs to this provider; the caller guarantees the rest.
        let outcome = expect_status(|| unsafe {
            (self.cipher.update)(self.pointer, output, &mut written, room, input, len)
        });
        output_len(outcome, written)
    }

    /// Does the same as [`Self::update_raw`], by the function for `EVP_Cipher`.
    ///
    /// # Safety
    /// Input and output are null or valid for their lengths.
    pub(crate) unsafe fn one_shot_raw(
        &mut self,
        output: *mut u8,
        room: usize,
        input: *const u8,
        len: usize,
    ) -> Result<usize, Refused> {
        let mut written = UNSET;
        // SAFETY: the context belongs to this provider; the caller guarantees the rest.
        let outcome = expect_status(|| unsafe {
            (self.cipher.one_shot)(self.pointer, output, &mut written, room, input, len)
        });
        output_len(outcome, written)
    }

    /// Ends the message.
    pub(crate) fn finish(&mut self, output: &mut [u8]) -> Result<usize, Refused> {
        // SAFETY: the output is a slice, so its pointer is valid for its length.
        unsafe { self.finish_raw(output.as_mut_ptr(), output.len()) }
    }

    /// Ends the message.
    ///
    /// # Safety
    /// The output is null or valid for its length.
    pub(crate) unsafe fn finish_raw(&mut self, output: *mut u8, room: usize) -> Result<usize, Refused> {
        let mut written = UNSET;
        // SAFETY: the context belongs to this provider; the caller guarantees the rest.
        let outcome =
            expect_status(|| unsafe { (self.cipher.finish)(self.pointer, output, &mut written, room) });
        output_len(outcome, written)
    }

    /// Returns a copy with the same state.
    pub(crate) fn duplicate(&self) -> Result<Context<'p>, Refused> {
        // SAFETY: the context belongs to this provider.
        let pointer =
            checked(|| unsafe { (self.cipher.duplicate)(self.pointer) }, |pointer| !pointer.is_null())?;
        Ok(Context { cipher: self.cipher, pointer, provider: PhantomData })
    }

    /// Gets parameters.
    ///
    /// # Safety
    /// The array ends with [`Param::END`], and its entries are valid.
    pub(crate) unsafe fn get(&mut self, params: &mut [Param]) -> Result<(), Refused> {
        // SAFETY: the context belongs to this provider; the caller guarantees the rest.
        expect_status(|| unsafe { (self.cipher.get)(self.pointer, params.as_mut_ptr()) })
    }

    /// Sets parameters.
    ///
    /// # Safety
    /// The array ends with [`Param::END`], and its entries are valid.
    pub(crate) unsafe fn set(&mut self, params: &[Param]) -> Result<(), Refused> {
        // SAFETY: the context belongs to this provider; the caller guarantees the rest.
        expect_status(|| unsafe { (self.cipher.set)(self.pointer, params.as_ptr()) })
    }

    /// Sets an octet string.
    pub(crate) fn set_octets(&mut self, name: &CStr, value: &mut [u8]) -> Result<(), Refused> {
        // SAFETY: the entry refers to a slice.
        unsafe { self.set(&[Param::octets(name, value), Param::END]) }
    }

    /// Gets an octet string.
    pub(crate) fn get_octets(&mut self, name: &CStr, value: &mut [u8]) -> Result<(), Refused> {
        // SAFETY: the entry refers to a slice.
        unsafe { self.get(&mut [Param::octets(name, value), Param::END]) }
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        // SAFETY: the context belongs to this provider, and is freed once.
        unsafe { (self.cipher.free)(self.pointer) }
    }
}

/// A value that no call returns as a length.
const UNSET: usize = 0x5AA5_5AA5;

/// Checks the length that a call has returned: a failed call must return the length 0.
fn output_len(outcome: Result<(), Refused>, written: usize) -> Result<usize, Refused> {
    assert_ne!(written, UNSET, "the length was not set");
    if outcome.is_err() {
        assert_eq!(written, 0, "a failed call reports output");
    }
    outcome.map(|()| written)
}
