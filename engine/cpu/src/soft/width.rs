//! The widths of the kernel: one copy of the passes for each register, and the choice among them.
//!
//! The functions of a width have the `#[target_feature]`s of its register, and all functions that use the register are inlined
//! into them. The cipher itself is one such function for each width, since every inlined copy costs compile time.

use super::ghash::{self, HashKey};
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
use super::neon::Neon;
use super::passes::{self, Pass};
use super::rounds;
use super::schedule::Keys;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use super::simd128::Simd128;
#[cfg(target_arch = "x86_64")]
use super::x86::{Both, Xmm, Ymm, Zmm};
use crate::kernel::{Block, Span};

/// Defines the widths, the narrowest first, each with a module of its functions. The features are those of the register, and
/// `ghash` adds blocks to a GHASH state. `$` is passed in, so that the generated macro can have parameters of its own.
macro_rules! widths {
    ($d:tt $(
        $(#[doc = $doc:literal])* $(#[cfg($($cfg:tt)*)])?
        $width:ident($module:ident, $register:ty), [$($feature:tt)*], [$attribute:meta], ghash: $ghash:expr;
    )*) => {
        /// The registers that the kernel uses.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Width {
            $($(#[doc = $doc])* $(#[cfg($($cfg)*)])? $width,)*
        }

        impl Width {
            /// All widths of this architecture, the narrowest first.
            pub const ALL: &[Width] = &[$($(#[cfg($($cfg)*)])? Width::$width,)*];

            /// True if the processor has the instructions of this width.
            pub(super) fn is_available(self) -> bool {
                match self {
                    $($(#[cfg($($cfg)*)])? Width::$width => true $(&& std::arch::is_x86_feature_detected!($feature))*,)*
                }
            }
        }

        /// Calls a function of the module of a width. The width must be available on this processor, so the call is unsafe.
        macro_rules! on_width {
            ($d width:expr, $d function:ident($d($d argument:expr),*)) => {
                match $d width {
                    $($(#[cfg($($cfg)*)])? $crate::soft::width::Width::$width => {
                        $crate::soft::width::$module::$d function($d($d argument),*)
                    })*
                }
            };
        }

        $($(#[cfg($($cfg)*)])?
        pub(super) mod $module {
            use super::*;

            #[$attribute]
            #[inline(never)]
            unsafe fn crypt(keys: &Keys, encrypts: bool, blocks: &mut [$register; 8]) {
                // SAFETY: the caller guarantees that the processor has the instructions.
                unsafe { rounds::crypt(keys, encrypts, blocks) }
            }

            /// Runs a data-parallel pass. If a register has one block, each of eight blocks may have a key of its own.
            #[$attribute]
            pub(in crate::soft) unsafe fn run(keys: &Keys, data: Span<'_>, pass: impl Pass) {
                // SAFETY: the caller guarantees that the processor has the instructions.
                unsafe { passes::run(keys, crypt, data, pass) }
            }

            /// Adds whole blocks to a GHASH state.
            #[allow(unused_unsafe, reason = "the portable function is safe")]
            #[$attribute]
            pub(in crate::soft) unsafe fn ghash(key: &HashKey, state: &mut Block, data: &[u8]) {
                // SAFETY: the caller guarantees that the processor has the instructions.
                unsafe { $ghash(key, state, data) }
            }
        })*
    };
}
widths! { $
    /// 128 bits; only the instructions that every processor of the architecture has (SSE2 on x86-64).
    #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
    Portable(portable, crate::soft::vector::Vector), [], [allow(clippy::missing_safety_doc)], ghash: ghash::update;
    /// 128 bits with the byte permutation of SSSE3.
    #[cfg(target_arch = "x86_64")]
    Ssse3(ssse3, Xmm), ["ssse3"], [target_feature(enable = "ssse3")], ghash: ghash::update_by_lookups::<Xmm>;
    /// 256 bits: AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2, Ymm), ["avx2"], [target_feature(enable = "avx2")], ghash: ghash::update_by_lookups::<Both>;
    /// 512 bits: AVX-512, which also has logic instructions with three inputs.
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512, Zmm), ["avx2" "avx512f" "avx512bw" "avx512vl"],
        [target_feature(enable = "avx2,avx512f,avx512bw,avx512vl")], ghash: ghash::update_by_lookups::<Both>;
    /// 128 bits with the byte permutation of NEON.
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    Neon(neon, Neon), [], [target_feature(enable = "neon")], ghash: ghash::update_by_lookups::<Neon>;
    /// 128 bits: SIMD128 of WebAssembly.
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    Simd128(simd128, Simd128), [], [target_feature(enable = "simd128")], ghash: ghash::update_by_lookups::<Simd128>;
}
pub(super) use on_width;

impl Width {
    /// True if GHASH of this width looks nibbles up in registers.
    pub(super) fn has_lookups(self) -> bool {
        match self {
            #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
            Width::Portable => false,
            #[allow(unreachable_patterns, reason = "there may be one width only")]
            _ => true,
        }
    }

    /// The widest registers of one block that the processor has.
    pub(super) fn of_one_block(self) -> Width {
        match self {
            #[cfg(target_arch = "x86_64")]
            Width::Avx2 | Width::Avx512 => Width::Ssse3,
            narrow => narrow,
        }
    }
}
