//! Kernels for processors with AES instructions: x86-64 with vectors of one, two and four blocks, and 64-bit Arm.
//!
//! # Shape
//!
//! Each pass is written once, generic over a `vector::Vector` and the direction, in functions that are all
//! `#[inline(always)]`. The entry functions (`entries`) have the `#[target_feature]`s of their kernel, and all other
//! functions are inlined into them. The intrinsics are compiled to instructions only there.
//!
//! Every entry function costs compile time. Therefore no two entry functions differ only in the key size (see
//! `cipher::extra_rounds`). Short data have entry functions of their own, which use vectors of one block only.
//!
//! | file | content |
//! |---|---|
//! | `entries` | the methods of the kernels, in groups |
//! | `vector`, `registers` | the trait for a register of blocks; its implementations for xmm, ymm and zmm |
//! | `schedule`, `expansion` | the format of round keys; key expansion for x86-64 |
//! | `neon` | the vector of one block and key expansion for 64-bit Arm |
//! | `cipher` | the rounds of N vectors; the loop of a pass over its data |
//! | `ecb`, `ctr`, `feedback`, `xts`, `ocb` | the parallel passes (`feedback`: decryption of CBC and CFB) |
//! | `ghash` | GHASH, many blocks for each reduction |
//! | `gcm` | CTR and GHASH in one loop |
//! | `short_gcm` | GCM of short messages |
//! | `chains`, `each` | many messages interleaved |
//! | `single_stream` | the serial modes of one message; CCM |
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

// Loops use the index for both `x[i]` and the address of vector i. `for_each` has code for eight indices; the code for those out of
// bounds is not reached.
#![allow(clippy::needless_range_loop, clippy::out_of_bounds_indexing)]

#[cfg(target_arch = "aarch64")]
use std::arch::aarch64::uint8x16_t;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::__m128i;

use lockstep_core::work::Pass;

use crate::kernel::{
    Block, GcmCounter, Kernel, LARGEST_VECTOR, Lane, OcbKey, OcbState, Powers, Progress, Span, serial,
    wipe_stack,
};

#[macro_use]
mod entries;

mod chains;
mod cipher;
mod ctr;
mod each;
mod ecb;
#[cfg(target_arch = "x86_64")]
mod expansion;
mod feedback;
mod gcm;
mod ghash;
#[cfg(target_arch = "aarch64")]
mod neon;
mod ocb;
#[cfg(target_arch = "x86_64")]
mod registers;
mod schedule;
mod short_gcm;
mod single_stream;
mod vector;
mod xts;

pub use ghash::HashKey;
pub use schedule::Schedule;
#[cfg(target_arch = "x86_64")]
pub use {aesni::AesNi, vaes256::Vaes256, vaes512::Vaes512};
#[cfg(target_arch = "aarch64")]
pub use {armv8::Armv8, armv8_sha3::Armv8Sha3};

/// Defines a kernel: its token and its methods, from the groups in `entries`. A kernel has its own module, so that rustc can
/// compile it in its own codegen unit if the profile allows more than one.
/// `chains` is the vector type of CBC encryption and the number of messages in flight. `gcm` is the number of vectors in a
/// step of fused GCM. The type beside the vector is `Vector::Powers` of this vector.
macro_rules! kernel {
    (
        $(#[$doc:meta])*
        $module:ident::$kernel:ident = $name:literal, $vector:ident($powers:ty),
        chains: $chains:ident, $places:literal places, gcm: $gcm_vectors:literal vectors from $gcm_from:literal bytes,
        $(clear: $clear:path,)? features: $features:literal, $detected:ident: $($feature:tt),*
    ) => {
        mod $module {
            use super::cipher::{SHORT, directed, for_each};
            use super::vector::{$chains as Chains, $vector as V, Vector, Single};
            use super::*;

            type Hash = HashKey<$powers>;
            const PLACES: usize = $places;
            const VECTORS: usize = $gcm_vectors;
            const FROM: usize = $gcm_from;

            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, Debug)]
            pub struct $kernel(());

            impl $kernel {
                variants!($features);
            }

            impl Kernel for $kernel {
                type Schedule = Schedule;
                type HashKey = Hash;

                const NAME: &'static str = $name;

                fn detect() -> Option<Self> {
                    #[cfg(target_arch = "x86_64")]
                    crate::kernel::registers::detect();
                    ($(std::arch::$detected!($feature))&&*).then_some($kernel(()))
                }

                $(entries! { $features, fn clear_registers() { $clear() } })?
                keys!($features);
                passes!($features);
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
kernel! {
    /// AES, carry-less multiplication and SSE 4.1: every x86-64 processor since about 2010.
    aesni::AesNi = "cpu/aesni", Single([__m128i; 8]), chains: Single, 8 places, gcm: 6 vectors from 96 bytes,
    clear: crate::kernel::registers::clear_xmm, features: "aes,pclmulqdq,sse2,ssse3,sse4.1",
    is_x86_feature_detected: "aes", "pclmulqdq", "sse2", "ssse3", "sse4.1"
}

#[cfg(target_arch = "x86_64")]
kernel! {
    /// VAES on 256 bits: Zen 3, Alder Lake and later.
    vaes256::Vaes256 = "cpu/vaes256", Ymm([__m128i; 16]), chains: Ymm, 16 places, gcm: 6 vectors from 192 bytes,
    clear: crate::kernel::registers::clear_ymm, features: "aes,pclmulqdq,avx2,vaes,vpclmulqdq",
    is_x86_feature_detected: "aes", "pclmulqdq", "avx2", "vaes", "vpclmulqdq"
}

#[cfg(target_arch = "x86_64")]
kernel! {
    /// VAES on 512 bits: Ice Lake, Zen 4 and later.
    vaes512::Vaes512 = "cpu/vaes512", Zmm([__m128i; 32]), chains: Ymm, 16 places, gcm: 8 vectors from 2048 bytes,
    clear: crate::kernel::registers::clear_zmm,
    features: "aes,pclmulqdq,avx512f,avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq", is_x86_feature_detected:
    "aes", "pclmulqdq", "avx2", "avx512f", "avx512bw", "avx512dq", "avx512vl", "vaes", "vpclmulqdq"
}

#[cfg(target_arch = "aarch64")]
kernel! {
    /// The AES instructions of Armv8 with PMULL.
    armv8::Armv8 = "cpu/armv8", Single([uint8x16_t; 8]), chains: Single, 8 places, gcm: 8 vectors from 128 bytes,
    features: "neon,aes", is_aarch64_feature_detected: "neon", "aes"
}

#[cfg(target_arch = "aarch64")]
kernel! {
    /// [`Armv8`], compiled with the exclusive or of three vectors (EOR3), which GHASH and the last round use: Apple M1, Neoverse V1
    /// and later.
    armv8_sha3::Armv8Sha3 = "cpu/armv8-sha3", Single([uint8x16_t; 8]), chains: Single, 8 places, gcm: 8 vectors from 128 bytes,
    features: "neon,aes,sha3", is_aarch64_feature_detected: "neon", "aes", "sha3"
}

#[cfg(test)]
mod tests;
