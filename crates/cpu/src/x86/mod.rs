//! Kernels for x86-64: AES instructions on vectors of one, two and four blocks.
//!
//! # Shape
//!
//! Each pass is written once, generic over a `vector::Vector`, the direction and the number of rounds, in functions
//! that are all `#[inline(always)]`. The entry functions below have the `#[target_feature]`s of their kernel, and
//! everything is inlined into them: there alone the intrinsics become instructions.
//!
//! | file | what |
//! |---|---|
//! | `vector`, `registers` | one register of blocks: the trait; xmm, ymm and zmm |
//! | `schedule` | key expansion |
//! | `cipher` | the rounds of N vectors; how a pass walks over its data |
//! | `ecb`, `ctr`, `feedback`, `xts` | the parallel passes (`feedback`: decryption of CBC and CFB) |
//! | `ghash` | GHASH, many blocks to a reduction |
//! | `gcm` | CTR and GHASH in one loop |
//! | `chains`, `each` | many messages side by side |
//! | `alone` | the serial modes of one message by itself |
//!
//! # How many vectors side by side
//!
//! A round depends on the one before. To keep the AES units busy there must be latency x throughput vectors in flight:
//!
//! | processor | latency | xmm, ymm per cycle | zmm per cycle | needed |
//! |---|---|---|---|---|
//! | Zen 3, Zen 4 | 4 | 2 | 1 | 8, 8, 4 |
//! | Ice Lake and later | 3 | 2 | 1 | 6, 6, 3 |
//! | Skylake, Zen 2 | 4 | 1, 2 (xmm only) | | 4, 8 |
//!
//! So 8 is the widest step everywhere (6 for XTS in 16 registers, whose tweaks take room), with 4, 2, 1 and a part
//! of a vector for what is left. At 8 zmm the surplus of 4 covers what comes between the rounds of two steps. Round keys
//! are broadcast from memory in each round: one load serves 8 vectors, and keys held in registers would be spilled where
//! there are 16.

// `x[i]` and the address of vector i go together in every loop.
#![allow(clippy::needless_range_loop)]

use std::arch::x86_64::{__m128i, __m256i, __m512i};

use crate::inline::Alone;
use crate::kernel::{Block, Kernel, Lane, Span};

mod alone;
mod chains;
mod cipher;
mod ctr;
mod each;
mod ecb;
mod feedback;
mod gcm;
mod ghash;
mod registers;
mod schedule;
mod vector;
mod xts;

pub use ghash::HashKey;
pub use schedule::Schedule;

/// One kernel: its token and the entry functions. `chains` is the vector of CBC encryption
/// and how many messages are then in flight.
macro_rules! kernel {
    (
        $(#[$doc:meta])*
        $kernel:ident = $name:literal, $vector:ident($raw:ty),
        chains: $chains:ident, $places:literal places,
        features: $features:literal, $($feature:tt),*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $kernel {
            _detected: (),
        }

        impl Kernel for $kernel {
            type Schedule = Schedule;
            type HashKey = HashKey<$raw>;

            const NAME: &'static str = $name;

            fn detect() -> Option<Self> {
                let found = $(std::arch::is_x86_feature_detected!($feature))&&*;
                found.then_some($kernel { _detected: () })
            }

            kernel! { @entries $features,
                fn expand(key: &[u8]) -> Schedule { schedule::expand(key) }
                fn ecb_encrypt(key: &Schedule, data: Span<'_>) -> () {
                    ecb::ecb::<cipher::Encrypt, vector::$vector>(key, data)
                }
                fn ecb_decrypt(key: &Schedule, data: Span<'_>) -> () {
                    ecb::ecb::<cipher::Decrypt, vector::$vector>(key, data)
                }
                fn ctr(key: &Schedule, counter: &mut Block, data: Span<'_>) -> () {
                    ctr::ctr::<vector::$vector>(key, counter, data)
                }
                fn ctr32(key: &Schedule, counter: &mut Block, data: Span<'_>) -> () {
                    ctr::ctr32::<vector::$vector>(key, counter, data)
                }
                fn cbc_decrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                    feedback::cbc_decrypt::<vector::$vector>(key, iv, data)
                }
                fn cfb128_decrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                    feedback::cfb128_decrypt::<vector::$vector>(key, iv, data)
                }
                fn xts_encrypt(key: &Schedule, tweak: &mut Block, data: Span<'_>) -> () {
                    xts::xts::<cipher::Encrypt, vector::$vector>(key, tweak, data)
                }
                fn xts_decrypt(key: &Schedule, tweak: &mut Block, data: Span<'_>) -> () {
                    xts::xts::<cipher::Decrypt, vector::$vector>(key, tweak, data)
                }
                fn hash_key(h: &Block) -> HashKey<$raw> {
                    ghash::hash_key::<vector::$vector>(h)
                }
                fn ghash(key: &HashKey<$raw>, state: &mut Block, data: &[u8]) -> () {
                    ghash::ghash::<vector::$vector>(key, state, data)
                }
                fn cbc_encrypt(lanes: &mut [Lane<'_, Schedule>]) -> () {
                    chains::cbc_encrypt::<vector::$chains, $places>(lanes)
                }
                fn encrypt_each(keys: &[&Schedule], blocks: &mut [Block]) -> () {
                    each::each::<cipher::Encrypt>(keys, blocks)
                }
                fn decrypt_each(keys: &[&Schedule], blocks: &mut [Block]) -> () {
                    each::each::<cipher::Decrypt>(keys, blocks)
                }
            }
        }

        impl Alone for $kernel {
            fn duplicate(key: &Schedule) -> Option<Schedule> {
                Some(key.duplicate())
            }

            const GCM_STEP: usize = if <vector::$vector as vector::Vector>::BLOCKS == 4 { gcm::STEP } else { 0 };

            fn duplicate_hash_key(key: &HashKey<$raw>) -> Option<HashKey<$raw>> {
                Some(key.duplicate())
            }

            kernel! { @entries $features,
                fn expand_into(key: &[u8], place: &mut Schedule) -> bool {
                    schedule::expand_into(key, place);
                    true
                }
                fn try_expand_to_encrypt(key: &[u8]) -> Option<Schedule> {
                    Some(schedule::expand_to_encrypt(key))
                }
                fn expand_to_encrypt_into(key: &[u8], place: &mut Schedule) -> bool {
                    schedule::expand_to_encrypt_into(key, place);
                    true
                }
                fn hash_key_into(h: &Block, place: &mut HashKey<$raw>) -> bool {
                    ghash::hash_key_into::<vector::$vector>(h, place);
                    true
                }
                fn reach(key: &mut HashKey<$raw>, blocks: usize) -> () {
                    ghash::reach::<vector::$vector>(key, blocks)
                }
                fn encrypt_block(key: &Schedule, block: &mut Block) -> () {
                    alone::encrypt_block(key, block)
                }
                fn xts_unit(
                    key: &Schedule,
                    tweak_key: &Schedule,
                    encrypts: bool,
                    number: &Block,
                    after: Option<&mut Block>,
                    data: Span<'_>
                ) -> () {
                    if encrypts {
                        xts::unit::<cipher::Encrypt, vector::$vector>(key, tweak_key, number, after, data)
                    } else {
                        xts::unit::<cipher::Decrypt, vector::$vector>(key, tweak_key, number, after, data)
                    }
                }
                fn gcm(
                    key: &Schedule,
                    hash_key: &mut HashKey<$raw>,
                    encrypts: bool,
                    counter: &mut Block,
                    state: &mut Block,
                    data: Span<'_>
                ) -> () {
                    if encrypts {
                        gcm::crypt::<vector::$vector, true>(key, hash_key, counter, state, data)
                    } else {
                        gcm::crypt::<vector::$vector, false>(key, hash_key, counter, state, data)
                    }
                }
                fn cbc_encrypt_alone(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                    alone::cbc_encrypt(key, iv, data)
                }
                fn cfb128_encrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                    alone::cfb128_encrypt(key, iv, data)
                }
                fn cfb8_encrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                    alone::cfb8::<true>(key, iv, data)
                }
                fn cfb8_decrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                    alone::cfb8::<false>(key, iv, data)
                }
                fn cfb1_encrypt(key: &Schedule, register: &mut Block, data: Span<'_>, bits: usize) -> () {
                    alone::cfb1::<true>(key, register, data, bits)
                }
                fn cfb1_decrypt(key: &Schedule, register: &mut Block, data: Span<'_>, bits: usize) -> () {
                    alone::cfb1::<false>(key, register, data, bits)
                }
                fn ofb(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                    alone::ofb(key, iv, data)
                }
                fn cbc_mac(key: &Schedule, state: &mut Block, data: &[u8]) -> () {
                    alone::cbc_mac(key, state, data)
                }
            }
        }
    };

    (@entries $features:literal,
        $(fn $entry:ident($($arg:ident: $type:ty),*) -> $result:ty { $($body:tt)* })*
    ) => {
        $(fn $entry(self, $($arg: $type),*) -> $result {
            #[target_feature(enable = $features)]
            fn entry($($arg: $type),*) -> $result {
                // SAFETY: this function has the target features of its vectors.
                unsafe { $($body)* }
            }
            // SAFETY: `detect`, the only way to a token, has found the features.
            unsafe { entry($($arg),*) }
        })*
    };
}

kernel! {
    /// AES, carry-less multiplication and SSE 4.1: every x86-64 processor since about 2010.
    AesNi = "cpu/aesni", Xmm(__m128i),
    chains: Xmm, 8 places,
    features: "aes,pclmulqdq,sse2,ssse3,sse4.1", "aes", "pclmulqdq", "sse2", "ssse3", "sse4.1"
}

kernel! {
    /// VAES on 256 bits: Zen 3, Alder Lake and later.
    Vaes256 = "cpu/vaes256", Ymm(__m256i),
    chains: Ymm, 16 places,
    features: "aes,pclmulqdq,avx2,vaes,vpclmulqdq", "aes", "pclmulqdq", "avx2", "vaes", "vpclmulqdq"
}

kernel! {
    /// VAES on 512 bits: Ice Lake, Zen 4 and later.
    Vaes512 = "cpu/vaes512", Zmm(__m512i),
    chains: Ymm, 16 places,
    features: "aes,pclmulqdq,avx512f,avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq",
    "aes", "pclmulqdq", "avx2", "avx512f", "avx512bw", "avx512dq", "avx512vl", "vaes", "vpclmulqdq"
}
