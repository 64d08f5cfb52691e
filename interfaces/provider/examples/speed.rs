//! Compares the provider with OpenSSL's default provider in one process.
//!
//! ```text
//! cargo run --release -p lockstep-provider --example speed -- FOLDER [rounds=15] [milliseconds=10] [use=TEXT] [cipher=TEXT] [bytes=N,N...]
//! ```
//!
//! FOLDER contains lockstep.so. The example measures the OpenSSL library that it was linked with: that of the distribution,
//! unless OPENSSL_DIR has selected another one for the build. `use` and `cipher` restrict the table to names that contain TEXT.
//! A use is a sequence of calls on one message:
//!
//! | use | calls for each message, in place |
//! |---|---|
//! | `stream` | those of `openssl speed -evp`: an update, and for GCM an init with key and IV, an update and a final call |
//! | `iv` | an init of the same context with an IV, the additional data, an update, a final call and the query of the tag |
//! | `key` | as `iv`, but the init has a key and an IV |
//! | `context` | as `key`, in a new context |
//! | `copy` | as `iv`, in a copy of a context that has a key |
//! | `record` | those of libssl for a received TLS 1.2 record with a MAC of 20 bytes (MAC-then-encrypt): an update, the query of the MAC |
//!
//! All calls process the same buffer. Each call depends on the data of the call before; for `record`, the encrypted record is
//! copied to the buffer before each call instead. Before the measurements, the outputs of the two providers are compared. In
//! each round, both providers are measured, each for `milliseconds` after a warm-up of a tenth of that time. The provider that
//! is measured first alternates from round to round. The measured time is the processor time of the thread. The table shows the
//! medians of the times, and the 95 % confidence interval of the median of the ratio, computed by order statistics.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

use foreign_types_shared::ForeignTypeRef;
use openssl::cipher::Cipher;
use openssl::lib_ctx::LibCtx;
use openssl::provider::Provider;
use openssl_sys as sys;

const STREAM: &str = "stream";
const USES: [&str; 4] = ["iv", "key", "context", "copy"];

/// The ciphers of the use `stream`.
const STREAMS: [&str; 11] = [
    "AES-128-CTR",
    "AES-256-CTR",
    "AES-128-GCM",
    "AES-256-GCM",
    "AES-128-ECB",
    "AES-256-ECB",
    "AES-128-XTS",
    "AES-256-XTS",
    "AES-128-CBC",
    "AES-256-CBC",
    "AES-128-CBC decrypt",
];
const STREAM_SIZES: [usize; 11] = [16, 64, 128, 256, 512, 1024, 4096, 8192, 16384, 65536, 1 << 20];

/// The ciphers of all uses except `stream` and `record`.
const MESSAGES: [&str; 9] = [
    "AES-256-GCM",
    "AES-256-GCM with AAD",
    "AES-256-CCM",
    "AES-256-CCM with AAD",
    "AES-256-CTR",
    "AES-256-XTS",
    "AES-256-CBC",
    "AES-256-ECB",
    "AES-256-WRAP",
];
const MESSAGE_SIZES: [usize; 4] = [16, 64, 256, 1024];

/// The ciphers of the use `record`, and the lengths of the records.
const RECORDS: [&str; 2] = ["AES-128-CBC decrypt", "AES-256-CBC decrypt"];
const RECORD_SIZES: [usize; 6] = [64, 256, 528, 1024, 4096, 16384];
const RECORD: &str = "record";
const RECORD_MAC: usize = 20;

/// `OSSL_PARAM` of `openssl/core.h`.
#[repr(C)]
struct Param {
    key: *const c_char,
    data_type: c_uint,
    data: *mut c_void,
    data_size: usize,
    return_size: usize,
}

const UNSIGNED_INTEGER: c_uint = 2;
const OCTET_PTR: c_uint = 7;
const TLS_1_2: u32 = 0x0303;

impl Param {
    const END: Param = Param { key: null(), data_type: 0, data: null_mut(), data_size: 0, return_size: 0 };

    fn new<T>(key: &CStr, data_type: c_uint, value: &mut T) -> Param {
        let data = std::ptr::from_mut(value).cast();
        Param { key: key.as_ptr(), data_type, data, data_size: size_of::<T>(), return_size: 0 }
    }
}

unsafe extern "C" {
    fn EVP_CIPHER_CTX_set_params(context: *mut sys::EVP_CIPHER_CTX, params: *const Param) -> c_int;
    fn EVP_CIPHER_CTX_get_params(context: *mut sys::EVP_CIPHER_CTX, params: *mut Param) -> c_int;
}

/// A key of 64 bytes, the key length of AES-256-XTS. Ciphers with shorter keys use the first bytes.
const KEY: [u8; 64] = {
    let mut key = [0; 64];
    let mut i = 0;
    while i < 64 {
        key[i] = (i as u8).wrapping_mul(29) ^ 0x5C;
        i += 1;
    }
    key
};
const IV: [u8; 16] = [0x24; 16];
const AAD: [u8; 13] = [0x11; 13];

/// The size of a page in bytes. The data begin 16 bytes after the start of a page, because malloc places the large buffer of
/// `openssl speed` there. Vectors of 64 bytes therefore cross cache lines, as they do in `openssl speed`.
const PAGE: usize = 4096;

/// A cipher of one provider with the calls that are measured, and a context that has a key.
struct Subject {
    cipher: Cipher,
    usage: &'static str,
    has_tag: bool,
    is_ccm: bool,
    is_wrap: bool,
    with_aad: bool,
    decrypts: bool,
    context: *mut sys::EVP_CIPHER_CTX,
    memory: Vec<u8>,
    /// Offset of the data in `memory`.
    at: usize,
    tag: [u8; 16],
    /// The encrypted record, for the use `record`.
    record: Vec<u8>,
}

impl Subject {
    fn new(library: &LibCtx, text: &str, query: &str, usage: &'static str, size: usize) -> Subject {
        let name = text.trim_end_matches(" decrypt").trim_end_matches(" with AAD");
        let cipher = Cipher::fetch(Some(library), name, Some(query)).expect("the algorithm is there");
        let mut memory = vec![0; size + PAGE + 64];
        let at = (16 + PAGE - memory.as_ptr() as usize % PAGE) % PAGE;
        memory[at..].iter_mut().enumerate().for_each(|(i, byte)| *byte = (i * 31 % 251) as u8);
        let mut subject = Subject {
            cipher,
            usage,
            has_tag: name.ends_with("GCM") || name.ends_with("CCM"),
            is_ccm: name.ends_with("CCM"),
            is_wrap: name.ends_with("WRAP"),
            with_aad: text.ends_with("AAD"),
            decrypts: text.ends_with("decrypt"),
            context: null_mut(),
            memory,
            at,
            tag: [0; 16],
            record: Vec::new(),
        };
        if usage == RECORD {
            subject.record = subject.new_record(size);
        }
        subject.context = subject.new_context();
        // SAFETY: the context is new, and key and IV are at least as long as those of any cipher.
        unsafe { subject.init(subject.context, KEY.as_ptr(), IV.as_ptr()) };
        subject
    }

    /// Returns an encrypted record of `size` bytes: IV, text, MAC, and a block of padding.
    fn new_record(&self, size: usize) -> Vec<u8> {
        let mut record: Vec<u8> = (0..size).map(|i| (i * 7) as u8).collect();
        record[size - 16..].fill(15);
        // SAFETY: the context is new, and output and input are the whole record.
        unsafe {
            let (context, mut len) = (sys::EVP_CIPHER_CTX_new(), 0);
            let cipher = self.cipher.as_ptr();
            assert_eq!(sys::EVP_CipherInit_ex(context, cipher, null_mut(), KEY.as_ptr(), IV.as_ptr(), 1), 1);
            sys::EVP_CIPHER_CTX_set_padding(context, 0);
            sys::EVP_CipherUpdate(context, record.as_mut_ptr(), &mut len, record.as_ptr(), size as i32);
            sys::EVP_CIPHER_CTX_free(context);
        }
        record
    }

    /// A context without a key.
    fn new_context(&self) -> *mut sys::EVP_CIPHER_CTX {
        // SAFETY: the context is new, and takes a reference to the cipher.
        unsafe {
            let context = sys::EVP_CIPHER_CTX_new();
            if self.is_wrap {
                sys::EVP_CIPHER_CTX_set_flags(context, sys::EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
            }
            let encrypts = i32::from(!self.decrypts);
            let ok =
                sys::EVP_CipherInit_ex(context, self.cipher.as_ptr(), null_mut(), null(), null(), encrypts);
            assert_eq!(ok, 1);
            if self.usage == RECORD {
                let (mut version, mut mac) = (TLS_1_2, RECORD_MAC);
                let version = Param::new(c"tls-version", UNSIGNED_INTEGER, &mut version);
                let mac = Param::new(c"tls-mac-size", UNSIGNED_INTEGER, &mut mac);
                assert_eq!(EVP_CIPHER_CTX_set_params(context, [version, mac, Param::END].as_ptr()), 1);
                return context;
            }
            sys::EVP_CIPHER_CTX_set_padding(context, 0);
            if self.is_ccm {
                sys::EVP_CIPHER_CTX_ctrl(context, sys::EVP_CTRL_GCM_SET_IVLEN, 12, null_mut());
                sys::EVP_CIPHER_CTX_ctrl(context, sys::EVP_CTRL_GCM_SET_TAG, 16, null_mut());
            }
            context
        }
    }

    /// # Safety
    /// `key` and `iv` are null or have the lengths that the cipher requires.
    unsafe fn init(&self, context: *mut sys::EVP_CIPHER_CTX, key: *const u8, iv: *const u8) {
        // SAFETY: guaranteed by the caller.
        let ok = unsafe { sys::EVP_CipherInit_ex(context, null(), null_mut(), key, iv, -1) };
        assert_eq!(ok, 1);
    }

    fn output(&self, size: usize) -> (&[u8], [u8; 16]) {
        (&self.memory[self.at..][..size], self.tag)
    }

    fn call(&mut self, size: usize) {
        let (mut len, context) = (0, self.context);
        if self.usage == RECORD {
            self.memory[self.at..][..size].copy_from_slice(&self.record);
        }
        let buffer = self.memory[self.at..].as_mut_ptr();
        // SAFETY: the buffer has `size` bytes and room for one block more. Key and IV are long enough for any cipher.
        unsafe {
            match self.usage {
                STREAM => {
                    if self.has_tag {
                        sys::EVP_CIPHER_CTX_ctrl(context, sys::EVP_CTRL_GCM_SET_IVLEN, 12, null_mut());
                        self.init(context, KEY.as_ptr(), IV.as_ptr());
                    }
                    sys::EVP_CipherUpdate(context, buffer, &mut len, buffer, size as i32);
                    if self.has_tag {
                        sys::EVP_CipherFinal(context, buffer, &mut len);
                    }
                }
                RECORD => {
                    assert_eq!(sys::EVP_CipherUpdate(context, buffer, &mut len, buffer, size as i32), 1);
                    let mut mac = null::<u8>();
                    let mut params = [Param::new(c"tls-mac", OCTET_PTR, &mut mac), Param::END];
                    assert_eq!(EVP_CIPHER_CTX_get_params(context, params.as_mut_ptr()), 1);
                    self.tag.copy_from_slice(std::slice::from_raw_parts(mac, 16));
                }
                "iv" | "key" => {
                    let key = if self.usage == "key" { KEY.as_ptr() } else { null() };
                    self.init(context, key, IV.as_ptr());
                    self.message(context, size);
                }
                "context" => {
                    let context = self.new_context();
                    self.init(context, KEY.as_ptr(), IV.as_ptr());
                    self.message(context, size);
                    sys::EVP_CIPHER_CTX_free(context);
                }
                _ => {
                    let copy = sys::EVP_CIPHER_CTX_new();
                    assert_eq!(sys::EVP_CIPHER_CTX_copy(copy, context), 1);
                    self.init(copy, null(), IV.as_ptr());
                    self.message(copy, size);
                    sys::EVP_CIPHER_CTX_free(copy);
                }
            }
        }
    }

    /// Makes all calls that follow the init of a message.
    ///
    /// # Safety
    /// The context has a key and an IV, and the buffer has `size` bytes.
    unsafe fn message(&mut self, context: *mut sys::EVP_CIPHER_CTX, size: usize) {
        let mut len = 0;
        let buffer = self.memory[self.at..].as_mut_ptr();
        // SAFETY: the buffer has `size` bytes and room for the growth of key wrap.
        unsafe {
            if self.with_aad {
                if self.is_ccm {
                    sys::EVP_CipherUpdate(context, null_mut(), &mut len, null(), size as i32);
                }
                sys::EVP_CipherUpdate(context, null_mut(), &mut len, AAD.as_ptr(), AAD.len() as i32);
            }
            assert_eq!(sys::EVP_CipherUpdate(context, buffer, &mut len, buffer, size as i32), 1);
            sys::EVP_CipherFinal(context, buffer.add(size), &mut len);
            if self.has_tag {
                let tag = self.tag.as_mut_ptr().cast();
                assert_eq!(sys::EVP_CIPHER_CTX_ctrl(context, sys::EVP_CTRL_GCM_GET_TAG, 16, tag), 1);
            }
        }
    }

    /// Nanoseconds of a call.
    fn time(&mut self, size: usize, calls: u64) -> f64 {
        (0..calls.div_ceil(10)).for_each(|_| self.call(size));
        let start = thread_nanoseconds();
        (0..calls).for_each(|_| self.call(size));
        (thread_nanoseconds() - start) as f64 / calls as f64
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // SAFETY: the context is not used after this call.
        unsafe { sys::EVP_CIPHER_CTX_free(self.context) };
    }
}

/// The processor time of this thread.
fn thread_nanoseconds() -> i64 {
    // SAFETY: the time is valid for writes.
    unsafe {
        let mut time = std::mem::zeroed::<libc::timespec>();
        assert_eq!(libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time), 0);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The position, in `count` sorted values, of the lower end of the 95 % confidence interval of the median. The number of values
/// below the median has a binomial distribution. It is smaller than this position with a probability of at most 2.5 %.
fn lower_end(count: usize) -> usize {
    let mut chance = 0.5f64.powi(count as i32);
    let mut sum = chance;
    let mut number = 0;
    while sum <= 0.025 {
        number += 1;
        chance *= (count + 1 - number) as f64 / number as f64;
        sum += chance;
    }
    number.saturating_sub(1)
}

/// Measures and prints a row of the table.
fn row(library: &LibCtx, name: &str, usage: &'static str, size: usize, (rounds, milliseconds): (usize, u64)) {
    let mut subjects = ["provider=default", "provider=lockstep"]
        .map(|query| Subject::new(library, name, query, usage, size));
    subjects.iter_mut().for_each(|subject| (0..3).for_each(|_| subject.call(size)));
    assert!(subjects[0].output(size) == subjects[1].output(size), "{name}: outputs differ");

    let guess = subjects[0].time(size, 20).max(1.0);
    let calls = ((milliseconds as f64 * 1e6 / guess) as u64).max(3);
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        for turn in 0..2 {
            let which = (round + turn) % 2;
            times[which].push(subjects[which].time(size, calls));
        }
    }
    let mut ratios: Vec<f64> = times[0].iter().zip(&times[1]).map(|(a, b)| a / b).collect();
    let [default, ours] = times.each_mut().map(|times| median(times));
    let ratio = median(&mut ratios);
    let end = lower_end(rounds);
    let (least, most) = (ratios[end], ratios[rounds - 1 - end]);
    println!(
        "| {name} | {usage} | {size} | {default:.1} | {ours:.1} | {ratio:.2} | {least:.2} to {most:.2} |"
    );
}

fn main() {
    let mut args = std::env::args().skip(1);
    let folder = args.next().expect("the folder of lockstep.so");
    let (mut limits, mut usage, mut cipher, mut bytes) = ((15, 10), String::new(), String::new(), Vec::new());
    for arg in args {
        match arg.split_once('=').expect("an option with a value") {
            ("rounds", text) => limits.0 = text.parse().expect("a number of rounds"),
            ("milliseconds", text) => limits.1 = text.parse().expect("a number of milliseconds"),
            ("use", text) => usage = text.into(),
            ("cipher", text) => cipher = text.into(),
            ("bytes", text) => {
                bytes =
                    text.split(',').map(|size| size.parse::<usize>().expect("a number of bytes")).collect();
                let is_whole = |size: &usize| *size > 0 && size.is_multiple_of(16);
                assert!(
                    bytes.iter().all(is_whole),
                    "bytes={text}: each number must be a positive multiple of 16"
                );
            }
            _ => panic!("no option {arg}"),
        }
    }

    let library = LibCtx::new().expect("a library context");
    let folder = CString::new(folder).expect("a path");
    Provider::set_default_search_path(Some(&library), folder.to_str().expect("UTF-8")).expect("a path");
    let _default = Provider::load(Some(&library), "default").expect("the default provider");
    let _ours = Provider::load(Some(&library), "lockstep").expect("lockstep.so");

    println!("{}, {} rounds of {} ms\n", openssl::version::version(), limits.0, limits.1);
    println!("| cipher | use | bytes | default, ns | lockstep, ns | ratio | 95 % interval |");
    println!("|---|---|--:|--:|--:|--:|---|");
    let streams = STREAMS.iter().map(|name| (*name, STREAM, &STREAM_SIZES[..]));
    let messages = USES.iter().flat_map(|usage| MESSAGES.map(|name| (name, *usage, &MESSAGE_SIZES[..])));
    let records = RECORDS.iter().map(|name| (*name, RECORD, &RECORD_SIZES[..]));
    for (name, of, sizes) in streams.chain(messages).chain(records) {
        if name.contains(&cipher) && of.contains(&usage) {
            let sizes = if bytes.is_empty() { sizes } else { &bytes };
            // A record contains IV, MAC and padding, so it has a minimum size.
            let possible = sizes.iter().filter(|size| of != RECORD || **size >= RECORD_SIZES[0]);
            possible.for_each(|size| row(&library, name, of, *size, limits));
        }
    }
}
