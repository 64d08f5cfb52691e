//! Kernels for x86-64: AES instructions on vectors of one, two and four blocks.
//!
//! # Shape
//!
//! Each pass is written once, generic over a `vector::Vector` and the direction, in functions that are all
//! `#[inline(always)]`. The entry functions (`entries!`) have the `#[target_feature]`s of their kernel, and all other
//! functions are inlined into them. The intrinsics are compiled to instructions only there.
//!
//! Every entry function costs compile time. Therefore no two entry functions differ only in the key size (see
//! `cipher::extra_rounds`). The code for xmm registers is in `base` and is compiled only twice, in the encodings of SSE and
//! AVX, not once for each kernel.
//!
//! | file | content |
//! |---|---|
//! | `base` | the work that kernels share: key expansion, short data, serial modes |
//! | `vector`, `registers` | the trait for a register of blocks; its implementations for xmm, ymm and zmm |
//! | `schedule` | key expansion |
//! | `cipher` | the rounds of N vectors; the loop of a pass over its data |
//! | `ecb`, `ctr`, `feedback`, `xts`, `ocb` | the parallel passes (`feedback`: decryption of CBC and CFB) |
//! | `ghash` | GHASH, many blocks for each reduction |
//! | `gcm` | CTR and GHASH in one loop |
//! | `short_gcm` | GCM of short messages |
//! | `chains`, `each` | many messages interleaved |
//! | `single_stream` | the serial modes of one message |
//!
//! # Number of interleaved vectors
//!
//! A round depends on the previous round. To keep the AES units busy, the number of vectors in flight must be at least
//! latency x throughput:
//!
//! | processor | latency | xmm, ymm per cycle | zmm per cycle | needed |
//! |---|---|---|---|---|
//! | Zen 3, Zen 4 | 4 | 2 | 1 | 8, 8, 4 |
//! | Ice Lake and later | 3 | 2 | 1 | 6, 6, 3 |
//! | Skylake, Zen 2 | 4 | 1, 2 (xmm only) | | 4, 8 |
//!
//! The widest step therefore has 8 vectors on every processor (6 for XTS with 16 registers, since tweaks need registers
//! too). Steps of 4, 2 and 1 vectors and a partial vector process the rest. With zmm, 4 of the 8 vectors are not needed for
//! the AES units; they cover the work between the rounds of two steps. Round keys are broadcast from memory in each round:
//! one load serves 8 vectors, and 16 registers would not hold the keys.

// Loops use the index for both `x[i]` and the address of vector i.
#![allow(clippy::needless_range_loop)]

use std::arch::x86_64::{__m128i, __m256i, __m512i};

use crate::boxed::Shared;
use crate::counter::GcmCounter;
use crate::gcm::{Powers, Progress};
use crate::inline::{Keys, SingleStreamKernel, xts_unit};
use crate::kernel::{Block, Kernel, Lane, OcbKey, OcbState, Span};

/// Defines safe methods on a token type. Each method calls a function with the target features that the token proves.
macro_rules! entries {
    ($features:literal,
        $($vis:vis fn $entry:ident($($arg:ident: $type:ty),*) -> $result:ty { $($body:tt)* })*
    ) => {
        $(#[inline]
        $vis fn $entry(self, $($arg: $type),*) -> $result {
            #[target_feature(enable = $features)]
            fn entry($($arg: $type),*) -> $result {
                // SAFETY: this function has the target features of its vectors.
                unsafe { $($body)* }
            }
            // SAFETY: the token exists, so the processor has the features.
            unsafe { entry($($arg),*) }
        })*
    };
}

mod base;
mod chains;
mod cipher;
mod ctr;
mod each;
mod ecb;
mod feedback;
mod gcm;
mod ghash;
mod ocb;
mod registers;
mod schedule;
mod short_gcm;
mod single_stream;
mod vector;
mod xts;

pub use aesni::AesNi;
pub use ghash::HashKey;
pub use schedule::Schedule;
pub use vaes256::Vaes256;
pub use vaes512::Vaes512;

/// Defines a kernel: its token and its entry functions. A kernel has its own module, so that rustc can compile it
/// in its own codegen unit if the profile allows more than one.
/// `chains` is the vector type of CBC encryption and the number of messages in flight. `gcm` is the number of vectors in a
/// step of fused GCM.
macro_rules! kernel {
    (
        $(#[$doc:meta])*
        $module:ident::$kernel:ident = $name:literal, $vector:ident($raw:ty), base: $base:ident,
        chains: $chains:ident, $places:literal places, gcm: $gcm_vectors:literal vectors from $gcm_from:literal bytes,
        features: $features:literal, $($feature:tt),*
    ) => {
        mod $module {
            use super::base::$base;
            use super::cipher::{Decrypt, Encrypt, SHORT};
            use super::vector;
            use super::*;
            use super::vector::$vector as V;

            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, Debug)]
            pub struct $kernel {
                base: $base,
            }

            /// The entry functions for data of at least `SHORT` bytes.
            impl $kernel {
                entries! { $features,
                    fn ecb_encrypt_long(key: &Schedule, data: Span<'_>) -> () {
                        ecb::ecb::<Encrypt, vector::$vector>(key, data)
                    }
                    fn ecb_decrypt_long(key: &Schedule, data: Span<'_>) -> () {
                        ecb::ecb::<Decrypt, vector::$vector>(key, data)
                    }
                    fn ctr_long(key: &Schedule, counter: &mut Block, data: Span<'_>) -> () {
                        ctr::ctr::<vector::$vector, 128>(key, counter, data)
                    }
                    fn ctr32_long(key: &Schedule, counter: &mut Block, data: Span<'_>) -> () {
                        ctr::ctr::<vector::$vector, 32>(key, counter, data)
                    }
                    fn cbc_decrypt_long(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                        feedback::cbc_decrypt::<vector::$vector>(key, iv, data)
                    }
                    fn cfb128_decrypt_long(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                        feedback::cfb128_decrypt::<vector::$vector>(key, iv, data)
                    }
                    fn xts_encrypt_long(key: &Schedule, tweak: &mut Block, data: Span<'_>) -> () {
                        xts::xts::<Encrypt, vector::$vector>(key, tweak, data)
                    }
                    fn xts_decrypt_long(key: &Schedule, tweak: &mut Block, data: Span<'_>) -> () {
                        xts::xts::<Decrypt, vector::$vector>(key, tweak, data)
                    }
                }
            }

            impl Kernel for $kernel {
                type Schedule = Schedule;
                type HashKey = HashKey<$raw>;

                const NAME: &'static str = $name;

                fn detect() -> Option<Self> {
                    let found = $(std::arch::is_x86_feature_detected!($feature))&&*;
                    // SAFETY: the features of the kernel include those of the base.
                    found.then(|| $kernel { base: unsafe { $base::new() } })
                }

                #[inline]
                fn expand(self, key: &[u8]) -> Schedule {
                    self.base.expand(key)
                }

                kernel! { @by_length
                    ecb_encrypt, ecb_encrypt_long;
                    ecb_decrypt, ecb_decrypt_long;
                    cbc_decrypt, cbc_decrypt_long, iv: &mut Block;
                    cfb128_decrypt, cfb128_decrypt_long, iv: &mut Block;
                    xts_encrypt, xts_encrypt_long, tweak: &mut Block;
                    xts_decrypt, xts_decrypt_long, tweak: &mut Block;
                }

                #[inline]
                fn ctr(self, key: &Schedule, counter: &mut Block, data: Span<'_>) {
                    if ctr::is_short::<vector::$vector, 128>(counter, data.len()) {
                        self.base.ctr(key, counter, data);
                    } else {
                        self.ctr_long(key, counter, data);
                    }
                }

                #[inline]
                fn ctr32(self, key: &Schedule, counter: &mut Block, data: Span<'_>) {
                    if ctr::is_short::<vector::$vector, 32>(counter, data.len()) {
                        self.base.ctr(key, counter, data);
                    } else {
                        self.ctr32_long(key, counter, data);
                    }
                }

                #[inline]
                fn encrypt_each(self, keys: &[&Schedule], blocks: &mut [Block]) {
                    self.base.encrypt_each(keys, blocks);
                }

                #[inline]
                fn decrypt_each(self, keys: &[&Schedule], blocks: &mut [Block]) {
                    self.base.decrypt_each(keys, blocks);
                }

                entries! { $features,
                    fn cbc_encrypt(lanes: &mut [Lane<'_, Schedule>]) -> () {
                        chains::cbc_encrypt::<vector::$chains, $places>(lanes)
                    }
                    fn ocb(
                        schedule: &Schedule,
                        key: &OcbKey,
                        state: &mut OcbState,
                        encrypts: bool,
                        data: Span<'_>
                    ) -> () {
                        if encrypts {
                            ocb::ocb::<vector::$vector, Encrypt>(schedule, key, state, data)
                        } else {
                            ocb::ocb::<vector::$vector, Decrypt>(schedule, key, state, data)
                        }
                    }
                    fn hash_key(h: &Block) -> HashKey<$raw> { ghash::hash_key::<vector::$vector>(h) }
                    fn ghash(key: &HashKey<$raw>, state: &mut Block, data: &[u8]) -> () {
                        ghash::hash::<vector::$vector, true>(key, state, data)
                    }
                    fn polyval(key: &HashKey<$raw>, state: &mut Block, data: &[u8]) -> () {
                        ghash::hash::<vector::$vector, false>(key, state, data)
                    }
                    fn ctr_little32(key: &Schedule, counter: &mut Block, data: Span<'_>) -> () {
                        ctr::ctr_little32::<vector::$vector>(key, counter, data)
                    }
                }
            }

            impl $kernel {
                entries! { $features,
                    fn blank_hash_key() -> HashKey<$raw> { ghash::blank::<vector::$vector>() }
                    fn gcm_encrypt(
                        key: &Schedule,
                        hash_key: &HashKey<$raw>,
                        counter: &mut GcmCounter,
                        state: &mut Block,
                        data: Span<'_>
                    ) -> () {
                        let text = data.src();
                        if gcm::is_aligned::<V, $gcm_vectors>(counter) {
                            gcm::crypt::<V, $gcm_vectors, true, true, true>(key, hash_key, &mut counter.block, state, data, text)
                        } else {
                            gcm::crypt::<V, $gcm_vectors, true, false, true>(key, hash_key, &mut counter.block, state, data, text)
                        }
                    }
                    fn gcm_decrypt(
                        key: &Schedule,
                        hash_key: &HashKey<$raw>,
                        counter: &mut GcmCounter,
                        state: &mut Block,
                        data: Span<'_>
                    ) -> () {
                        let text = data.src();
                        if gcm::is_aligned::<V, $gcm_vectors>(counter) {
                            gcm::crypt::<V, $gcm_vectors, false, true, true>(key, hash_key, &mut counter.block, state, data, text)
                        } else {
                            gcm::crypt::<V, $gcm_vectors, false, false, true>(key, hash_key, &mut counter.block, state, data, text)
                        }
                    }
                    fn siv_decrypt(
                        key: &Schedule,
                        hash_key: &HashKey<$raw>,
                        counter: &mut Block,
                        state: &mut Block,
                        data: Span<'_>
                    ) -> () {
                        let text = data.src();
                        gcm::crypt::<V, $gcm_vectors, true, false, false>(key, hash_key, counter, state, data, text)
                    }
                    fn siv_encrypt(
                        key: &Schedule,
                        hash_key: &HashKey<$raw>,
                        counter: &mut Block,
                        state: &mut Block,
                        data: Span<'_>,
                        text: &[u8]
                    ) -> () {
                        assert_eq!(text.len(), data.len(), "as many steps");
                        let text = text.as_ptr();
                        gcm::crypt::<V, $gcm_vectors, false, false, false>(key, hash_key, counter, state, data, text)
                    }
                }
            }

            impl SingleStreamKernel for $kernel {
                const KEYS_IN_PLACE: bool = true;

                fn blank_keys(self) -> Option<Shared<Keys<Self>>> {
                    const { assert!(size_of::<Self>() == 0) };
                    // SAFETY: zeros are a schedule and a hash key without round keys and without powers, and SOME_POWERS; the
                    // token of the kernel has no data, and `self` is one.
                    unsafe { Shared::try_zeroed() }
                }

                fn copy_schedule(schedule: &Schedule, place: &mut Schedule) {
                    place.copy_from(schedule);
                }

                fn duplicate(key: &Schedule) -> Option<Schedule> {
                    Some(key.duplicate())
                }

                fn expand_into(self, key: &[u8], place: &mut Schedule) -> bool {
                    self.base.expand_into(key, place);
                    true
                }

                fn blank(self) -> (Schedule, HashKey<$raw>) {
                    (Schedule::blank(), self.blank_hash_key())
                }

                fn expand_each(self, keys: &[&[u8]], places: &mut [Schedule]) {
                    self.base.expand_each(keys, places);
                }

                #[inline]
                fn xts_unit(
                    self,
                    key: &Schedule,
                    tweak_key: &Schedule,
                    encrypts: bool,
                    number: &Block,
                    after: Option<&mut Block>,
                    data: Span<'_>,
                ) {
                    if data.len() >= SHORT {
                        xts_unit(self, key, tweak_key, encrypts, number, after, data);
                    } else if encrypts {
                        self.base.xts_unit_encrypt(key, tweak_key, number, after, data);
                    } else {
                        self.base.xts_unit_decrypt(key, tweak_key, number, after, data);
                    }
                }

                kernel! { @base
                    encrypt_block => encrypt_block(block: &mut Block);
                    cbc_encrypt_single => cbc_encrypt(iv: &mut Block, data: Span<'_>);
                    cfb128_encrypt => cfb128_encrypt(iv: &mut Block, data: Span<'_>);
                    cfb8_encrypt => cfb8_encrypt(iv: &mut Block, data: Span<'_>);
                    cfb8_decrypt => cfb8_decrypt(iv: &mut Block, data: Span<'_>);
                    cfb1_encrypt => cfb1_encrypt(register: &mut Block, data: Span<'_>, bits: usize);
                    cfb1_decrypt => cfb1_decrypt(register: &mut Block, data: Span<'_>, bits: usize);
                    ofb => ofb(iv: &mut Block, data: Span<'_>);
                    cbc_mac => cbc_mac(state: &mut Block, data: &[u8]);
                }

                const GCM_STEP: usize = $gcm_vectors * <vector::$vector as vector::Vector>::BYTES;
                const GCM_FROM: usize = $gcm_from;
                const GCM_SIV_STEP: usize = Self::GCM_STEP;

                fn gcm(
                    self,
                    key: &Schedule,
                    hash_key: &HashKey<$raw>,
                    encrypts: bool,
                    counter: &mut GcmCounter,
                    state: &mut Block,
                    data: Span<'_>,
                ) {
                    if encrypts {
                        self.gcm_encrypt(key, hash_key, counter, state, data);
                    } else {
                        self.gcm_decrypt(key, hash_key, counter, state, data);
                    }
                }

                fn gcm_siv_open(
                    self,
                    key: &Schedule,
                    hash_key: &HashKey<$raw>,
                    counter: &mut Block,
                    state: &mut Block,
                    data: Span<'_>,
                ) {
                    self.siv_decrypt(key, hash_key, counter, state, data);
                }

                fn gcm_siv_seal(
                    self,
                    key: &Schedule,
                    counter: &mut Block,
                    data: Span<'_>,
                    hash_key: &HashKey<$raw>,
                    state: &mut Block,
                    text: &[u8],
                ) {
                    self.siv_encrypt(key, hash_key, counter, state, data, text);
                }

                entries! { $features,
                    fn hash_keys_into(h: &[Block], places: &mut [HashKey<$raw>]) -> () {
                        for (h, place) in h.iter().zip(places) {
                            ghash::hash_key_into::<vector::$vector>(h, place);
                        }
                    }
                    fn ensure_powers(key: &mut HashKey<$raw>, blocks: usize) -> () {
                        ghash::ensure_powers::<vector::$vector>(key, blocks)
                    }
                    fn gcm_key_into(key: &[u8], schedule: &mut Schedule, hash_key: &mut HashKey<$raw>) -> bool {
                        short_gcm::key_into::<V>(key, schedule, hash_key);
                        true
                    }
                    fn gcm_short(
                        key: &Schedule,
                        powers: Powers<'_, HashKey<$raw>>,
                        progress: Progress<'_>,
                        encrypts: bool,
                        data: Span<'_>
                    ) -> () {
                        short_gcm::crypt::<V>(key, powers, progress, encrypts, data)
                    }
                    fn gcm_tag(
                        powers: Powers<'_, HashKey<$raw>>,
                        state: &Block,
                        before: &[u8],
                        lengths: [u64; 2],
                        mask: &Block
                    ) -> Block {
                        short_gcm::tag::<V>(powers, state, before, lengths, mask)
                    }
                }
            }
        }
    };

    (@by_length $($entry:ident, $many:ident $(, $register:ident: $type:ty)?;)*) => {
        $(#[inline]
        fn $entry(self, key: &Schedule, $($register: $type,)? data: Span<'_>) {
            if data.len() < SHORT {
                self.base.$entry(key, $($register,)? data);
            } else {
                self.$many(key, $($register,)? data);
            }
        })*
    };

    (@base $($entry:ident => $base:ident($($arg:ident: $type:ty),*);)*) => {
        $(#[inline]
        fn $entry(self, key: &Schedule, $($arg: $type),*) {
            self.base.$base(key, $($arg),*);
        })*
    };
}

kernel! {
    /// AES, carry-less multiplication and SSE 4.1: every x86-64 processor since about 2010.
    aesni::AesNi = "cpu/aesni", Xmm(__m128i), base: Sse, chains: Xmm, 8 places, gcm: 6 vectors from 96 bytes,
    features: "aes,pclmulqdq,sse2,ssse3,sse4.1", "aes", "pclmulqdq", "sse2", "ssse3", "sse4.1"
}

kernel! {
    /// VAES on 256 bits: Zen 3, Alder Lake and later.
    vaes256::Vaes256 = "cpu/vaes256", Ymm(__m256i), base: Avx, chains: Ymm, 16 places, gcm: 6 vectors from 192 bytes,
    features: "aes,pclmulqdq,avx2,vaes,vpclmulqdq", "aes", "pclmulqdq", "avx2", "vaes", "vpclmulqdq"
}

kernel! {
    /// VAES on 512 bits: Ice Lake, Zen 4 and later.
    vaes512::Vaes512 = "cpu/vaes512", Zmm(__m512i), base: Avx, chains: Ymm, 16 places, gcm: 8 vectors from 2048 bytes,
    features: "aes,pclmulqdq,avx512f,avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq",
    "aes", "pclmulqdq", "avx2", "avx512f", "avx512bw", "avx512dq", "avx512vl", "vaes", "vpclmulqdq"
}
