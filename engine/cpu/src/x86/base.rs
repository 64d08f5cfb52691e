//! The code that kernels share: key expansion, data of less than [`SHORT`] bytes, serial modes of one message, and single
//! blocks under several keys.
//!
//! This code uses xmm registers only. It is compiled in two instruction encodings, since mixing SSE code with AVX code is
//! slow.
//!
//! [`SHORT`]: super::cipher::SHORT

use super::cipher::{Decrypt, Encrypt};
use super::schedule::{self, Schedule};
use super::{each, ecb, feedback, single_stream, xts};
use crate::kernel::{Block, Span};

pub(super) use avx::Avx;
pub(super) use sse::Sse;

/// Defines the shared code in one encoding. The code has its own module, so that rustc can compile it in its own
/// codegen unit if the profile allows more than one.
macro_rules! base {
    (
        $(#[$doc:meta])*
        $module:ident::$base:ident, features: $features:literal
    ) => {
        mod $module {
            use super::*;

            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, Debug)]
            pub(in crate::x86) struct $base(());

            impl $base {
                /// # Safety
                ///
                /// The processor has the target features of this encoding.
                #[inline]
                pub(in crate::x86) unsafe fn new() -> Self {
                    $base(())
                }

                entries! { $features,
                    pub(in crate::x86) fn expand(key: &[u8]) -> Schedule { schedule::expand(key) }
                    pub(in crate::x86) fn expand_into(key: &[u8], place: &mut Schedule) -> () {
                        schedule::expand_into(key, place)
                    }
                    pub(in crate::x86) fn expand_each(keys: &[&[u8]], places: &mut [Schedule]) -> () {
                        schedule::expand_each(keys, places)
                    }
                    pub(in crate::x86) fn ecb_encrypt(key: &Schedule, data: Span<'_>) -> () {
                        ecb::ecb_short::<Encrypt>(key, data)
                    }
                    pub(in crate::x86) fn ecb_decrypt(key: &Schedule, data: Span<'_>) -> () {
                        ecb::ecb_short::<Decrypt>(key, data)
                    }
                    pub(in crate::x86) fn ctr(key: &Schedule, counter: &mut Block, data: Span<'_>) -> () {
                        super::super::ctr::ctr_short(key, counter, data)
                    }
                    pub(in crate::x86) fn cbc_decrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                        feedback::cbc_decrypt_short(key, iv, data)
                    }
                    pub(in crate::x86) fn cfb128_decrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                        feedback::cfb128_decrypt_short(key, iv, data)
                    }
                    pub(in crate::x86) fn xts_encrypt(key: &Schedule, tweak: &mut Block, data: Span<'_>) -> () {
                        xts::xts_short::<Encrypt>(key, tweak, data)
                    }
                    pub(in crate::x86) fn xts_decrypt(key: &Schedule, tweak: &mut Block, data: Span<'_>) -> () {
                        xts::xts_short::<Decrypt>(key, tweak, data)
                    }
                    pub(in crate::x86) fn xts_unit_encrypt(
                        key: &Schedule,
                        tweak_key: &Schedule,
                        number: &Block,
                        after: Option<&mut Block>,
                        data: Span<'_>
                    ) -> () {
                        xts::unit_short::<Encrypt>(key, tweak_key, number, after, data)
                    }
                    pub(in crate::x86) fn xts_unit_decrypt(
                        key: &Schedule,
                        tweak_key: &Schedule,
                        number: &Block,
                        after: Option<&mut Block>,
                        data: Span<'_>
                    ) -> () {
                        xts::unit_short::<Decrypt>(key, tweak_key, number, after, data)
                    }
                    pub(in crate::x86) fn encrypt_each(keys: &[&Schedule], blocks: &mut [Block]) -> () {
                        each::each::<Encrypt>(keys, blocks)
                    }
                    pub(in crate::x86) fn decrypt_each(keys: &[&Schedule], blocks: &mut [Block]) -> () {
                        each::each::<Decrypt>(keys, blocks)
                    }
                    pub(in crate::x86) fn encrypt_block(key: &Schedule, block: &mut Block) -> () {
                        single_stream::encrypt_block(key, block)
                    }
                    pub(in crate::x86) fn cbc_encrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                        single_stream::cbc_encrypt(key, iv, data)
                    }
                    pub(in crate::x86) fn cfb128_encrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                        single_stream::cfb128_encrypt(key, iv, data)
                    }
                    pub(in crate::x86) fn cfb8_encrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                        single_stream::cfb8::<true>(key, iv, data)
                    }
                    pub(in crate::x86) fn cfb8_decrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                        single_stream::cfb8::<false>(key, iv, data)
                    }
                    pub(in crate::x86) fn cfb1_encrypt(
                        key: &Schedule,
                        register: &mut Block,
                        data: Span<'_>,
                        bits: usize
                    ) -> () {
                        single_stream::cfb1::<true>(key, register, data, bits)
                    }
                    pub(in crate::x86) fn cfb1_decrypt(
                        key: &Schedule,
                        register: &mut Block,
                        data: Span<'_>,
                        bits: usize
                    ) -> () {
                        single_stream::cfb1::<false>(key, register, data, bits)
                    }
                    pub(in crate::x86) fn ofb(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                        single_stream::ofb(key, iv, data)
                    }
                    pub(in crate::x86) fn cbc_mac(key: &Schedule, state: &mut Block, data: &[u8]) -> () {
                        single_stream::cbc_mac(key, state, data)
                    }
                }
            }
        }
    };
}

base! {
    /// SSE encoding.
    sse::Sse, features: "aes,pclmulqdq,sse2,ssse3,sse4.1"
}

base! {
    /// AVX encoding.
    avx::Avx, features: "aes,pclmulqdq,avx2,vaes,vpclmulqdq"
}
