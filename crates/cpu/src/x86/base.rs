//! The work that is the same in all kernels of one instruction encoding: key expansion, data of less than [`FEW`] bytes, the
//! serial modes of one message, and single blocks under several keys.
//!
//! It uses xmm registers only, so that wider vectors need nothing but the encoding of AVX, which saves them the cost of a
//! transition between both.
//!
//! [`FEW`]: super::cipher::FEW

use super::cipher::{Decrypt, Encrypt};
use super::schedule::{self, Schedule};
use super::{alone, each, ecb, feedback, xts};
use crate::kernel::{Block, Span};

pub(super) use avx::Avx;
pub(super) use sse::Sse;

/// One encoding in a module of its own, and so in a codegen unit of its own.
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
                /// The processor has the features.
                #[inline]
                pub(in crate::x86) unsafe fn new() -> Self {
                    $base(())
                }

                entries! { $features,
                    pub(in crate::x86) fn expand(key: &[u8]) -> Schedule { schedule::expand(key) }
                    pub(in crate::x86) fn expand_into(key: &[u8], place: &mut Schedule) -> () {
                        schedule::expand_into(key, place)
                    }
                    pub(in crate::x86) fn expand_to_encrypt(key: &[u8]) -> Schedule {
                        schedule::expand_to_encrypt(key)
                    }
                    pub(in crate::x86) fn expand_to_encrypt_into(key: &[u8], place: &mut Schedule) -> () {
                        schedule::expand_to_encrypt_into(key, place)
                    }
                    pub(in crate::x86) fn ecb_encrypt(key: &Schedule, data: Span<'_>) -> () {
                        ecb::ecb_few::<Encrypt>(key, data)
                    }
                    pub(in crate::x86) fn ecb_decrypt(key: &Schedule, data: Span<'_>) -> () {
                        ecb::ecb_few::<Decrypt>(key, data)
                    }
                    pub(in crate::x86) fn ctr(key: &Schedule, counter: &mut Block, data: Span<'_>) -> () {
                        super::super::ctr::ctr_few(key, counter, data)
                    }
                    pub(in crate::x86) fn cbc_decrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                        feedback::cbc_decrypt_few(key, iv, data)
                    }
                    pub(in crate::x86) fn cfb128_decrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                        feedback::cfb128_decrypt_few(key, iv, data)
                    }
                    pub(in crate::x86) fn xts_encrypt(key: &Schedule, tweak: &mut Block, data: Span<'_>) -> () {
                        xts::xts_few::<Encrypt>(key, tweak, data)
                    }
                    pub(in crate::x86) fn xts_decrypt(key: &Schedule, tweak: &mut Block, data: Span<'_>) -> () {
                        xts::xts_few::<Decrypt>(key, tweak, data)
                    }
                    pub(in crate::x86) fn xts_unit_encrypt(
                        key: &Schedule,
                        tweak_key: &Schedule,
                        number: &Block,
                        after: Option<&mut Block>,
                        data: Span<'_>
                    ) -> () {
                        xts::unit_few::<Encrypt>(key, tweak_key, number, after, data)
                    }
                    pub(in crate::x86) fn xts_unit_decrypt(
                        key: &Schedule,
                        tweak_key: &Schedule,
                        number: &Block,
                        after: Option<&mut Block>,
                        data: Span<'_>
                    ) -> () {
                        xts::unit_few::<Decrypt>(key, tweak_key, number, after, data)
                    }
                    pub(in crate::x86) fn encrypt_each(keys: &[&Schedule], blocks: &mut [Block]) -> () {
                        each::each::<Encrypt>(keys, blocks)
                    }
                    pub(in crate::x86) fn decrypt_each(keys: &[&Schedule], blocks: &mut [Block]) -> () {
                        each::each::<Decrypt>(keys, blocks)
                    }
                    pub(in crate::x86) fn encrypt_block(key: &Schedule, block: &mut Block) -> () {
                        alone::encrypt_block(key, block)
                    }
                    pub(in crate::x86) fn cbc_encrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                        alone::cbc_encrypt(key, iv, data)
                    }
                    pub(in crate::x86) fn cfb128_encrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                        alone::cfb128_encrypt(key, iv, data)
                    }
                    pub(in crate::x86) fn cfb8_encrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                        alone::cfb8::<true>(key, iv, data)
                    }
                    pub(in crate::x86) fn cfb8_decrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                        alone::cfb8::<false>(key, iv, data)
                    }
                    pub(in crate::x86) fn cfb1_encrypt(
                        key: &Schedule,
                        register: &mut Block,
                        data: Span<'_>,
                        bits: usize
                    ) -> () {
                        alone::cfb1::<true>(key, register, data, bits)
                    }
                    pub(in crate::x86) fn cfb1_decrypt(
                        key: &Schedule,
                        register: &mut Block,
                        data: Span<'_>,
                        bits: usize
                    ) -> () {
                        alone::cfb1::<false>(key, register, data, bits)
                    }
                    pub(in crate::x86) fn ofb(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                        alone::ofb(key, iv, data)
                    }
                    pub(in crate::x86) fn cbc_mac(key: &Schedule, state: &mut Block, data: &[u8]) -> () {
                        alone::cbc_mac(key, state, data)
                    }
                }
            }
        }
    };
}

base! {
    /// AES and carry-less multiplication, encoded as SSE is.
    sse::Sse, features: "aes,pclmulqdq,sse2,ssse3,sse4.1"
}

base! {
    /// The same, encoded as AVX is.
    avx::Avx, features: "aes,pclmulqdq,avx2,vaes,vpclmulqdq"
}
