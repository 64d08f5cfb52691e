//! Compares the provider with OpenSSL's default provider in one process, by the loops of `openssl speed -evp`: the same
//! calls on the same buffer, in place, so that each call depends on the result of the call before.
//!
//! ```text
//! cargo run --release -p lockstep-provider --example speed -- FOLDER [ROUNDS [MILLISECONDS [CIPHER]]]
//! ```
//!
//! FOLDER contains lockstep.so. CIPHER restricts the table to ciphers whose names contain this text. The example measures the OpenSSL
//! library that it was linked with. This is the library of the distribution, unless OPENSSL_DIR selected another one for the build.
//! First, the outputs of both providers are compared. Then each provider is measured in ROUNDS rounds (default: 9), in each round for
//! MILLISECONDS (default: 50) after a warm-up of a tenth of this time. The provider that is measured first changes from round to round.
//! The table shows medians, and the range of the ratio.

use std::ffi::CString;
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

use openssl::cipher::Cipher;
use openssl::lib_ctx::LibCtx;
use openssl::provider::Provider;
use openssl_sys as sys;

const CIPHERS: [&str; 11] = [
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

const SIZES: [usize; 11] = [16, 64, 128, 256, 512, 1024, 4096, 8192, 16384, 65536, 1 << 20];

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

/// The size of a page in bytes. The data begin 16 bytes after the start of a page, because malloc places the large buffer of
/// `openssl speed` there. Vectors of 64 bytes therefore cross cache lines, as they do in `openssl speed`.
const PAGE: usize = 4096;

/// A context, used in the same way as by `openssl speed`.
struct Subject {
    context: *mut sys::EVP_CIPHER_CTX,
    aead: bool,
    decrypts: bool,
    memory: Vec<u8>,
    /// Offset of the data in the memory.
    at: usize,
}

impl Subject {
    fn new(library: &LibCtx, name: &str, query: &str, size: usize) -> Subject {
        let (name, decrypts) = match name.strip_suffix(" decrypt") {
            Some(name) => (name, true),
            None => (name, false),
        };
        let cipher = Cipher::fetch(Some(library), name, Some(query)).expect("the algorithm is there");
        let mut memory = vec![0; size + PAGE + 64];
        let at = (16 + PAGE - memory.as_ptr() as usize % PAGE) % PAGE;
        memory[at..].iter_mut().enumerate().for_each(|(i, byte)| *byte = (i * 31 % 251) as u8);
        // SAFETY: the context is new, and takes a reference to the cipher. The key and the IV are at least as long as any cipher
        // requires.
        let context = unsafe {
            let context = sys::EVP_CIPHER_CTX_new();
            let cipher = foreign_types_shared::ForeignTypeRef::as_ptr(&*cipher);
            let ok = sys::EVP_CipherInit_ex(
                context,
                cipher,
                null_mut(),
                KEY.as_ptr(),
                IV.as_ptr(),
                i32::from(!decrypts),
            );
            assert_eq!(ok, 1, "{name}");
            sys::EVP_CIPHER_CTX_set_padding(context, 0);
            context
        };
        Subject { context, aead: name.ends_with("GCM"), decrypts, memory, at }
    }

    fn output(&self, size: usize) -> &[u8] {
        &self.memory[self.at..][..size]
    }

    fn call(&mut self, size: usize) {
        let mut len = 0;
        let buffer = self.memory[self.at..].as_mut_ptr();
        // SAFETY: the buffer has `size` bytes and room for one block more.
        unsafe {
            if self.aead {
                sys::EVP_CIPHER_CTX_ctrl(self.context, sys::EVP_CTRL_GCM_SET_IVLEN, 12, null_mut());
                sys::EVP_CipherInit_ex(self.context, null(), null_mut(), KEY.as_ptr(), IV.as_ptr(), -1);
                sys::EVP_EncryptUpdate(self.context, buffer, &mut len, buffer, size as i32);
                sys::EVP_EncryptFinal_ex(self.context, buffer, &mut len);
            } else if self.decrypts {
                sys::EVP_DecryptUpdate(self.context, buffer, &mut len, buffer, size as i32);
            } else {
                sys::EVP_EncryptUpdate(self.context, buffer, &mut len, buffer, size as i32);
            }
        }
    }

    /// Nanoseconds of a call.
    fn time(&mut self, size: usize, calls: u64) -> f64 {
        for _ in 0..calls.div_ceil(10) {
            self.call(size);
        }
        let start = Instant::now();
        for _ in 0..calls {
            self.call(size);
        }
        start.elapsed().as_nanos() as f64 / calls as f64
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // SAFETY: the context is not used after this.
        unsafe { sys::EVP_CIPHER_CTX_free(self.context) };
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let mut args = std::env::args().skip(1);
    let folder = args.next().expect("the folder of lockstep.so");
    let rounds: usize = args.next().map_or(9, |text| text.parse().expect("a number of rounds"));
    let millis: u64 = args.next().map_or(50, |text| text.parse().expect("a number of milliseconds"));
    let slice = Duration::from_millis(millis);
    let wanted = args.next().unwrap_or_default();

    let library = LibCtx::new().expect("a library context");
    let folder = CString::new(folder).expect("a path");
    Provider::set_default_search_path(Some(&library), folder.to_str().expect("UTF-8")).expect("a path");
    let _default = Provider::load(Some(&library), "default").expect("the default provider");
    let _ours = Provider::load(Some(&library), "lockstep").expect("lockstep.so");

    println!("{}, {rounds} rounds of {millis} ms\n", openssl::version::version());
    println!("| cipher | bytes | default GB/s | lockstep GB/s | ratio | spread of the ratio |");
    println!("|---|---|---|---|---|---|");
    for name in CIPHERS.into_iter().filter(|name| name.contains(&wanted)) {
        for size in SIZES {
            let mut subjects = ["provider=default", "provider=lockstep"]
                .map(|query| Subject::new(&library, name, query, size));
            subjects.iter_mut().for_each(|subject| (0..3).for_each(|_| subject.call(size)));
            assert!(subjects[0].output(size) == subjects[1].output(size), "{name}: outputs differ");

            let guess = subjects[0].time(size, 20).max(1.0);
            let calls = ((slice.as_nanos() as f64 / guess) as u64).max(3);
            let mut times = [Vec::new(), Vec::new()];
            for round in 0..rounds {
                for turn in 0..2 {
                    let which = (round + turn) % 2;
                    times[which].push(subjects[which].time(size, calls));
                }
            }
            let mut ratios: Vec<f64> = times[0].iter().zip(&times[1]).map(|(a, b)| a / b).collect();
            let [default, ours] = times.each_mut().map(|times| size as f64 / median(times));
            let ratio = default.recip() * ours;
            median(&mut ratios);
            let (least, most) = (ratios[0], ratios[ratios.len() - 1]);
            println!("| {name} | {size} | {default:.3} | {ours:.3} | {ratio:.2} | {least:.2} to {most:.2} |");
        }
    }
}
