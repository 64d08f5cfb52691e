//! Thin wrappers that own libcrypto's objects. Each object is freed once, in the right order. A function takes a slice
//! where C takes a pointer and a length. The results of the calls are returned unchanged, since the tests compare them.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex};

use crate::libcrypto::*;

fn c(text: &str) -> CString {
    CString::new(text).expect("no NUL in names")
}

/// The text at `text`; `None` if it is null.
///
/// # Safety
///
/// `text` is null or a C string that lives until this returns.
unsafe fn text(text: *const c_char) -> Option<String> {
    // SAFETY: guaranteed by the caller.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Clears this thread's error queue.
pub(crate) fn clear_errors() {
    // SAFETY: the call has no arguments.
    unsafe { ERR_clear_error() }
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct QueueEntry {
    /// `ERR_GET_LIB`: 57 for the providers of OpenSSL, 15 for libcrypto's own functions, from 128 on for other providers.
    pub(crate) lib: u64,
    /// `ERR_GET_REASON`
    pub(crate) reason: u64,
    text: String,
}

impl std::fmt::Debug for QueueEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}:{} {:?}", self.lib, self.reason, self.text)
    }
}

/// Removes all entries of this thread's error queue and returns them, oldest first. The text includes the data of the entry. An
/// entry without a text is returned as "no reason".
pub(crate) fn take_queue() -> Vec<QueueEntry> {
    let mut all = Vec::new();
    loop {
        let (mut data, mut flags) = (null(), 0);
        // SAFETY: null omits a result; the others are places for a pointer and an int.
        let code = unsafe { ERR_get_error_all(null_mut(), null_mut(), null_mut(), &mut data, &mut flags) };
        if code == 0 {
            return all;
        }
        // SAFETY: both are null or strings that live until the next call for this thread's queue.
        let (reason, data) = unsafe { (text(ERR_reason_error_string(code)), text(data)) };
        let data = data.filter(|data| !data.is_empty()).map(|data| format!(" ({data})")).unwrap_or_default();
        let text = format!("{}{data}", reason.as_deref().unwrap_or("no reason"));
        all.push(QueueEntry { lib: code >> 23 & 0xff, reason: code & 0x7f_ffff, text });
    }
}

/// The texts of [`take_queue`].
pub(crate) fn errors() -> Vec<String> {
    take_queue().into_iter().map(|entry| entry.text).collect()
}

/// A library context with the providers that are loaded into it. Freed with the last object that was created from it.
pub(crate) struct Library {
    context: *mut OSSL_LIB_CTX,
    providers: Mutex<Vec<*mut OSSL_PROVIDER>>,
}

// SAFETY: library contexts and providers may be used by many threads.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// A context in which nothing is loaded, with `modules` as the folder of providers.
    pub(crate) fn new(modules: &Path) -> Self {
        // SAFETY: the call has no arguments.
        let context = unsafe { OSSL_LIB_CTX_new() };
        assert!(!context.is_null());
        let path = c(modules.to_str().expect("a path in UTF-8"));
        // SAFETY: the context is live; the string is copied.
        assert_eq!(unsafe { OSSL_PROVIDER_set_default_search_path(context, path.as_ptr()) }, 1);
        Library { context, providers: Mutex::default() }
    }

    /// The default library context of the process, which libcrypto frees at the end of the process.
    pub(crate) fn of_the_process(modules: &Path) -> Self {
        let path = c(modules.to_str().expect("a path in UTF-8"));
        // SAFETY: null is the default context; the string is copied.
        assert_eq!(unsafe { OSSL_PROVIDER_set_default_search_path(null_mut(), path.as_ptr()) }, 1);
        Library { context: null_mut(), providers: Mutex::default() }
    }

    pub(crate) fn load(&self, name: &str) {
        assert!(self.try_load(name), "loading {name}: {:?}", errors());
    }

    /// Loads a provider; false if that fails.
    pub(crate) fn try_load(&self, name: &str) -> bool {
        let name = c(name);
        // SAFETY: the context is live; the string is copied.
        let provider = unsafe { OSSL_PROVIDER_load(self.context, name.as_ptr()) };
        let loaded = !provider.is_null();
        self.providers.lock().unwrap().extend(loaded.then_some(provider));
        loaded
    }

    /// Reads a configuration file, which may activate providers.
    pub(crate) fn configure(&self, file: &Path) -> bool {
        let file = c(file.to_str().expect("a path in UTF-8"));
        // SAFETY: the context is live; the string is read during the call.
        unsafe { OSSL_LIB_CTX_load_config(self.context, file.as_ptr()) == 1 }
    }

    /// Unloads the provider that was loaded last.
    pub(crate) fn unload_last(&self) -> bool {
        let last = self.providers.lock().unwrap().pop().expect("one is loaded");
        // SAFETY: the provider was returned by load, and is unloaded once.
        unsafe { OSSL_PROVIDER_unload(last) == 1 }
    }

    /// The provider loaded last, while it is loaded.
    pub(crate) fn last(&self) -> *const OSSL_PROVIDER {
        *self.providers.lock().unwrap().last().expect("one is loaded")
    }

    pub(crate) fn prefer(&self, query: &str) {
        let query = c(query);
        // SAFETY: the context is live; the string is copied.
        assert_eq!(unsafe { EVP_set_default_properties(self.context, query.as_ptr()) }, 1);
    }

    pub(crate) fn random(&self, n: usize) -> Vec<u8> {
        let mut out = vec![0; n];
        // SAFETY: `out` has room for n bytes.
        assert_eq!(unsafe { RAND_bytes_ex(self.context, out.as_mut_ptr(), n, 0) }, 1, "{:?}", errors());
        out
    }

    pub(crate) fn private_random(&self, n: usize) -> Vec<u8> {
        let mut out = vec![0; n];
        // SAFETY: `out` has room for n bytes.
        assert_eq!(unsafe { RAND_priv_bytes_ex(self.context, out.as_mut_ptr(), n, 0) }, 1, "{:?}", errors());
        out
    }

    pub(crate) fn cipher(self: &Arc<Self>, name: &str, query: &str) -> Option<Cipher> {
        let (name, query) = (c(name), c(query));
        // SAFETY: the context is live, the strings are read during the call.
        let cipher = unsafe { EVP_CIPHER_fetch(self.context, name.as_ptr(), query.as_ptr()) };
        (!cipher.is_null()).then(|| Cipher { cipher, origin: self.clone() })
    }

    pub(crate) fn mac(self: &Arc<Self>, name: &str, query: &str) -> Option<Mac> {
        let (name, query) = (c(name), c(query));
        // SAFETY: the context is live, the strings are read during the call.
        let mac = unsafe { EVP_MAC_fetch(self.context, name.as_ptr(), query.as_ptr()) };
        (!mac.is_null()).then(|| Mac { mac, _library: self.clone() })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        while !self.providers.get_mut().unwrap().is_empty() {
            self.unload_last();
        }
        // SAFETY: no object of the context is left, because each one holds a reference to the library.
        unsafe { OSSL_LIB_CTX_free(self.context) }
    }
}

/// A fetched algorithm.
pub(crate) struct Cipher {
    cipher: *mut EVP_CIPHER,
    origin: Arc<Library>,
}

// SAFETY: a fetched algorithm is reference-counted and immutable.
unsafe impl Send for Cipher {}
// SAFETY: as above.
unsafe impl Sync for Cipher {}

impl Cipher {
    pub(crate) fn raw(&self) -> *mut EVP_CIPHER {
        self.cipher
    }

    pub(crate) fn provider(&self) -> String {
        // SAFETY: the cipher is live and so is its provider, whose name is a string.
        unsafe { text(OSSL_PROVIDER_get0_name(EVP_CIPHER_get0_provider(self.cipher))) }.expect("a name")
    }

    pub(crate) fn description(&self) -> Option<String> {
        // SAFETY: the cipher is live, and the string lives as long as the cipher.
        unsafe { text(EVP_CIPHER_get0_description(self.cipher)) }
    }

    pub(crate) fn name(&self) -> String {
        // SAFETY: the cipher is live, and the string lives as long as the cipher.
        unsafe { text(EVP_CIPHER_get0_name(self.cipher)) }.expect("a name")
    }

    pub(crate) fn is_a(&self, name: &str) -> bool {
        // SAFETY: the cipher is live.
        unsafe { EVP_CIPHER_is_a(self.cipher, c(name).as_ptr()) == 1 }
    }

    pub(crate) fn key_length(&self) -> usize {
        // SAFETY: the cipher is live.
        unsafe { EVP_CIPHER_get_key_length(self.cipher) as usize }
    }

    pub(crate) fn iv_length(&self) -> usize {
        // SAFETY: the cipher is live.
        unsafe { EVP_CIPHER_get_iv_length(self.cipher) as usize }
    }

    pub(crate) fn context(&self) -> Context {
        Context::new(Arc::clone(&self.origin))
    }
}

impl Drop for Cipher {
    fn drop(&mut self) {
        // SAFETY: the object was returned by a fetch, and is freed once.
        unsafe { EVP_CIPHER_free(self.cipher) }
    }
}

/// A direction for `init`. The direction -1 keeps the previous one.
pub(crate) const ENCRYPT: c_int = 1;
pub(crate) const DECRYPT: c_int = 0;

pub(crate) struct Context {
    pub(crate) raw: *mut EVP_CIPHER_CTX,
    origin: Arc<Library>,
}

// SAFETY: a context may move between threads; `&mut` restricts it to one at a time.
unsafe impl Send for Context {}

impl Context {
    fn new(origin: Arc<Library>) -> Self {
        // SAFETY: the call has no arguments.
        let raw = unsafe { EVP_CIPHER_CTX_new() };
        assert!(!raw.is_null());
        Context { raw, origin }
    }

    /// `cipher` is `None` for a re-init. Key and IV must have the lengths that the context expects.
    pub(crate) fn init(
        &mut self,
        cipher: Option<&Cipher>,
        way: c_int,
        key: Option<&[u8]>,
        iv: Option<&[u8]>,
        params: &Params,
    ) -> c_int {
        let pointer = |bytes: Option<&[u8]>| bytes.map_or(null(), <[u8]>::as_ptr);
        let cipher = cipher.map_or(null_mut(), Cipher::raw);
        // SAFETY: key and IV have the required lengths; scripts ensure that.
        unsafe { EVP_CipherInit_ex2(self.raw, cipher, pointer(key), pointer(iv), way, params.raw()) }
    }

    pub(crate) fn update_raw(
        &mut self,
        out: *mut u8,
        written: &mut c_int,
        data: *const u8,
        n: usize,
    ) -> c_int {
        // SAFETY: the caller passes space for n bytes and one more block, or null where the call permits null.
        unsafe { EVP_CipherUpdate(self.raw, out, written, data, n as c_int) }
    }

    /// Encrypts or decrypts `data` into a new buffer.
    pub(crate) fn update(&mut self, data: &[u8]) -> Option<Vec<u8>> {
        let (mut out, mut n) = (vec![0; data.len() + 32], 0);
        (self.update_raw(out.as_mut_ptr(), &mut n, data.as_ptr(), data.len()) == 1).then(|| {
            out.truncate(n as usize);
            out
        })
    }

    pub(crate) fn finish(&mut self) -> Option<Vec<u8>> {
        let (mut out, mut n) = (vec![0; 32], 0);
        // SAFETY: the output has space for a block.
        (unsafe { EVP_CipherFinal_ex(self.raw, out.as_mut_ptr(), &mut n) } == 1).then(|| {
            out.truncate(n as usize);
            out
        })
    }

    pub(crate) fn control(&mut self, what: c_int, n: c_int, data: Option<&mut [u8]>) -> c_int {
        let data = data.map_or(null_mut(), |data| data.as_mut_ptr().cast::<c_void>());
        // SAFETY: scripts pass `n` bytes, or null.
        unsafe { EVP_CIPHER_CTX_ctrl(self.raw, what, n, data) }
    }

    pub(crate) fn set_padding(&mut self, on: bool) -> c_int {
        // SAFETY: the context is live.
        unsafe { EVP_CIPHER_CTX_set_padding(self.raw, on.into()) }
    }

    pub(crate) fn copy(&self) -> Option<Context> {
        let copy = Context::new(Arc::clone(&self.origin));
        // SAFETY: both are live.
        (unsafe { EVP_CIPHER_CTX_copy(copy.raw, self.raw) } == 1).then_some(copy)
    }

    pub(crate) fn set(&mut self, params: &Params) -> c_int {
        // SAFETY: the context is live, and the list has an end.
        unsafe { EVP_CIPHER_CTX_set_params(self.raw, params.raw()) }
    }

    /// Gets the parameter `key` as a number.
    pub(crate) fn get_number(&mut self, key: &str) -> Option<usize> {
        let mut params = Params::new().number(key, usize::MAX);
        // SAFETY: the context is live, and the list has an end.
        let ok = unsafe { EVP_CIPHER_CTX_get_params(self.raw, params.raw_mut()) } == 1;
        (ok && params.returned(0).is_some()).then(|| params.first_number())
    }

    /// Gets the parameter `key` as up to `room` bytes.
    pub(crate) fn get_bytes(&mut self, key: &str, room: usize) -> Option<Vec<u8>> {
        let mut params = Params::new().bytes(key, &vec![0; room]);
        // SAFETY: the context is live, and the list has an end.
        let ok = unsafe { EVP_CIPHER_CTX_get_params(self.raw, params.raw_mut()) } == 1;
        let n = params.returned(0).filter(|_| ok)?;
        Some(params.octets[0][..n.min(room)].to_vec())
    }

    /// Gets the parameter `key` as a text of up to `room` bytes.
    pub(crate) fn get_text(&mut self, key: &str, room: usize) -> Option<Vec<u8>> {
        let mut params = Params::new().string(key, &"?".repeat(room));
        // SAFETY: the context is live, and the list has an end.
        let ok = unsafe { EVP_CIPHER_CTX_get_params(self.raw, params.raw_mut()) } == 1;
        params.returned(0).filter(|_| ok)?;
        // All bytes are returned, so that tests can check whether a NUL was written.
        Some(params.octets[0][..room].to_vec())
    }

    /// Gets the parameter `key` by pointer, as libssl gets the MAC of a record.
    pub(crate) fn get_pointer(&mut self, key: &str) -> Option<Vec<u8>> {
        let (key, mut data) = (c(key), null_mut::<c_void>());
        let mut params = [
            OSSL_PARAM {
                key: key.as_ptr(),
                data_type: OSSL_PARAM_OCTET_PTR,
                data: (&raw mut data).cast(),
                data_size: 0,
                return_size: OSSL_PARAM_UNMODIFIED,
            },
            END,
        ];
        // SAFETY: the context is live, and the list has an end.
        let ok = unsafe { EVP_CIPHER_CTX_get_params(self.raw, params.as_mut_ptr()) } == 1;
        let n = params[0].return_size;
        if !ok || n == OSSL_PARAM_UNMODIFIED {
            return None;
        }
        if data.is_null() || n == 0 {
            return Some(Vec::new());
        }
        // SAFETY: the provider returns the number of valid bytes; they are copied before the context changes.
        Some(unsafe { std::slice::from_raw_parts(data.cast::<u8>(), n) }.to_vec())
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the object was returned by new, and is freed once.
        unsafe { EVP_CIPHER_CTX_free(self.raw) }
    }
}

const END: OSSL_PARAM =
    OSSL_PARAM { key: null(), data_type: 0, data: null_mut(), data_size: 0, return_size: 0 };

/// A list of parameters that owns its data.
pub(crate) struct Params {
    list: Vec<OSSL_PARAM>,
    keys: Vec<CString>,
    /// Each value is in a separate vector, so that its address does not change when another value is added.
    numbers: Vec<Vec<usize>>,
    octets: Vec<Vec<u8>>,
}

impl Params {
    pub(crate) fn new() -> Self {
        Params { list: vec![END], keys: Vec::new(), numbers: Vec::new(), octets: Vec::new() }
    }

    fn push(&mut self, key: &str, data_type: u32, data: *mut c_void, data_size: usize) {
        self.keys.push(c(key));
        let key = self.keys.last().expect("just pushed").as_ptr();
        let at = self.list.len() - 1;
        self.list
            .insert(at, OSSL_PARAM { key, data_type, data, data_size, return_size: OSSL_PARAM_UNMODIFIED });
    }

    /// An unsigned number of 8 bytes.
    pub(crate) fn number(mut self, key: &str, value: usize) -> Self {
        self.numbers.push(vec![value]);
        let at = self.numbers.last_mut().expect("just pushed");
        let data = at.as_mut_ptr().cast::<c_void>();
        self.push(key, OSSL_PARAM_UNSIGNED_INTEGER, data, size_of::<usize>());
        self
    }

    /// A signed number of 4 bytes.
    pub(crate) fn int(self, key: &str, value: c_int) -> Self {
        self.octet_like(key, &value.to_ne_bytes(), OSSL_PARAM_INTEGER)
    }

    pub(crate) fn bytes(self, key: &str, value: &[u8]) -> Self {
        self.octet_like(key, value, OSSL_PARAM_OCTET_STRING)
    }

    pub(crate) fn string(self, key: &str, value: &str) -> Self {
        self.octet_like(key, value.as_bytes(), OSSL_PARAM_UTF8_STRING)
    }

    fn octet_like(mut self, key: &str, value: &[u8], data_type: u32) -> Self {
        // The buffer has one more byte than the value. So there is space for a NUL after a string, and the pointer of an empty value is
        // not dangling.
        let mut owned = value.to_vec();
        owned.push(0);
        let data = owned.as_mut_ptr().cast::<c_void>();
        self.octets.push(owned);
        self.push(key, data_type, data, value.len());
        self
    }

    fn raw(&self) -> *const OSSL_PARAM {
        if self.list.len() == 1 { null() } else { self.list.as_ptr() }
    }

    pub(crate) fn raw_mut(&mut self) -> *mut OSSL_PARAM {
        self.list.as_mut_ptr()
    }

    /// The first number, as the call has set it.
    pub(crate) fn first_number(&self) -> usize {
        // SAFETY: the list points to the number, which it owns; read as volatile since C may have written it.
        unsafe { self.numbers[0].as_ptr().read_volatile() }
    }

    /// The returned size of the n-th parameter.
    pub(crate) fn returned(&self, n: usize) -> Option<usize> {
        Some(self.list[n].return_size).filter(|n| *n != OSSL_PARAM_UNMODIFIED)
    }
}

impl std::fmt::Debug for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let kinds = self
            .list
            .iter()
            .take(self.keys.len())
            .map(|p| format!("type {} of {} bytes", p.data_type, p.data_size));
        f.debug_map().entries(self.keys.iter().zip(kinds)).finish()
    }
}

/// The names and types in a list of parameters, which is a constant of the provider.
///
/// # Safety
///
/// `list` is null or a list with an end that stays valid.
pub(crate) unsafe fn names(mut list: *const OSSL_PARAM) -> Vec<(String, u32)> {
    let mut all = Vec::new();
    // SAFETY: guaranteed by the caller: every entry up to the end is valid, with a string as its key.
    while let Some(key) = unsafe { list.as_ref().and_then(|entry| text(entry.key)) } {
        // SAFETY: as above; an entry with a key is followed by another one.
        unsafe {
            all.push((key, (*list).data_type));
            list = list.add(1);
        }
    }
    all
}

/// A fetched MAC.
pub(crate) struct Mac {
    mac: *mut EVP_MAC,
    _library: Arc<Library>,
}

impl Mac {
    /// A context with the key `key`; `None` if init fails.
    pub(crate) fn start(&self, key: &[u8], params: &Params) -> Option<Running> {
        // SAFETY: the MAC is live.
        let running = Running(unsafe { EVP_MAC_CTX_new(self.mac) });
        assert!(!running.0.is_null());
        running.restart(Some(key), params).then_some(running)
    }
}

impl Drop for Mac {
    fn drop(&mut self) {
        // SAFETY: the object was returned by a fetch, and is freed once.
        unsafe { EVP_MAC_free(self.mac) }
    }
}

pub(crate) struct Running(*mut EVP_MAC_CTX);

impl Running {
    pub(crate) fn restart(&self, key: Option<&[u8]>, params: &Params) -> bool {
        let (key, n) = key.map_or((null(), 0), |key| (key.as_ptr(), key.len()));
        // SAFETY: the context is live, the key has this length, and the list has an end or is null.
        unsafe { EVP_MAC_init(self.0, key, n, params.raw()) == 1 }
    }

    pub(crate) fn update(&self, data: &[u8]) -> bool {
        // SAFETY: the context is live, and the bytes have this length.
        unsafe { EVP_MAC_update(self.0, data.as_ptr(), data.len()) == 1 }
    }

    pub(crate) fn finish(&self) -> Option<Vec<u8>> {
        let (mut out, mut n) = (vec![0; 64], 0);
        // SAFETY: the output has space of the given length.
        (unsafe { EVP_MAC_final(self.0, out.as_mut_ptr(), &mut n, 64) } == 1).then(|| {
            out.truncate(n);
            out
        })
    }

    pub(crate) fn copy(&self) -> Option<Running> {
        // SAFETY: the context is live.
        let copy = unsafe { EVP_MAC_CTX_dup(self.0) };
        (!copy.is_null()).then_some(Running(copy))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // SAFETY: the object was returned by new or dup, and is freed once.
        unsafe { EVP_MAC_CTX_free(self.0) }
    }
}
