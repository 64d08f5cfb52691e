//! The widths of the kernel: one copy of the passes for each register, and the choice among them.
//!
//! The functions of a width have the `#[target_feature]`s of its register, and all functions that use the register are inlined
//! into them. The cipher itself is one such function for each width, since every inlined copy costs compile time.

use super::ghash::{self, HashKey};
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
use super::neon::Neon;
use super::passes::{self, Ciphers, Pass};
use super::planes::{MOST, Narrow, Plane, Wide};
use super::register::Register;
use super::rounds;
use super::schedule::{FEW, Keys, Schedule};
use super::vector::Vector;
#[cfg(target_arch = "x86_64")]
use super::x86::{Half, Xmm, Ymm, Zmm};
use crate::kernel::{Block, Span};

/// The registers that the kernel uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// 128 bits; only the instructions that every processor of the architecture has (SSE2 on x86-64).
    Portable,
    /// 128 bits with the byte permutation of SSSE3.
    #[cfg(target_arch = "x86_64")]
    Ssse3,
    /// 256 bits: AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512 bits: AVX-512, which also has logic instructions with three inputs.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 128 bits with the byte permutation of NEON.
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    Neon,
}

impl Width {
    /// All widths of this architecture, the narrowest first.
    pub const ALL: &[Width] = &[
        Width::Portable,
        #[cfg(target_arch = "x86_64")]
        Width::Ssse3,
        #[cfg(target_arch = "x86_64")]
        Width::Avx2,
        #[cfg(target_arch = "x86_64")]
        Width::Avx512,
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        Width::Neon,
    ];

    /// True if the processor has the instructions of this width.
    pub(super) fn is_available(self) -> bool {
        match self {
            Width::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Width::Ssse3 => std::arch::is_x86_feature_detected!("ssse3"),
            #[cfg(target_arch = "x86_64")]
            Width::Avx2 => std::arch::is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Width::Avx512 => {
                std::arch::is_x86_feature_detected!("avx2")
                    && std::arch::is_x86_feature_detected!("avx512f")
                    && std::arch::is_x86_feature_detected!("avx512bw")
                    && std::arch::is_x86_feature_detected!("avx512vl")
            }
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Width::Neon => true,
        }
    }
}

/// Calls a function of the module of a width. The width must be available on this processor, so the call is unsafe.
macro_rules! on_width {
    ($width:expr, $function:ident($($argument:expr),*)) => {
        match $width {
            $crate::soft::width::Width::Portable => $crate::soft::width::portable::$function($($argument),*),
            #[cfg(target_arch = "x86_64")]
            $crate::soft::width::Width::Ssse3 => $crate::soft::width::ssse3::$function($($argument),*),
            #[cfg(target_arch = "x86_64")]
            $crate::soft::width::Width::Avx2 => $crate::soft::width::avx2::$function($($argument),*),
            #[cfg(target_arch = "x86_64")]
            $crate::soft::width::Width::Avx512 => $crate::soft::width::avx512::$function($($argument),*),
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            $crate::soft::width::Width::Neon => $crate::soft::width::neon::$function($($argument),*),
        }
    };
}
pub(super) use on_width;

/// Defines the function that runs the cipher on a layout.
macro_rules! crypt {
    (#[$attribute:meta] $name:ident: $plane:ty) => {
        #[$attribute]
        #[inline(never)]
        pub(super) unsafe fn $name(
            keys: &Keys<<$plane as Plane>::Stored>,
            encrypts: bool,
            blocks: &mut [<$plane as Plane>::Register; MOST],
        ) {
            // SAFETY: the caller guarantees that the processor has the instructions.
            unsafe { rounds::crypt::<$plane>(keys, encrypts, blocks) }
        }
    };
}

/// Defines the module of a width. `large` is the function that runs the cipher on
/// [`Register::Large`]; `few` is the function for eight blocks, and `ghash` adds blocks to a GHASH state.
macro_rules! width {
    ($module:ident: $register:ty, [$attribute:meta], large: $large:path, few: $few:path, ghash: $ghash:expr) => {
        pub(super) mod $module {
            use super::*;

            type Own = $register;

            const CIPHERS: Ciphers<Own> = Ciphers { large: $large, small };

            crypt! { #[$attribute] small: Narrow<Own> }

            pub(in crate::soft) use $few as few;

            /// Runs a data-parallel pass.
            #[$attribute]
            pub(in crate::soft) unsafe fn run(key: &Schedule, data: Span<'_>, pass: impl Pass) {
                // SAFETY: the caller guarantees that the processor has the instructions.
                unsafe { passes::drive(key, CIPHERS, data, pass) }
            }

            /// Adds whole blocks to a GHASH state.
            #[allow(unused_unsafe, reason = "the portable function is safe")]
            #[$attribute]
            pub(in crate::soft) unsafe fn ghash(key: &HashKey, state: &mut Block, data: &[u8]) {
                // SAFETY: the caller guarantees that the processor has the instructions.
                unsafe { $ghash(key, state, data) }
            }
        }
    };
}

/// Defines a function that encrypts or decrypts eight blocks, each under a key of its own, with registers of one block.
macro_rules! few {
    ($name:ident, $crypt:path, $register:ty, [$attribute:meta]) => {
        #[$attribute]
        pub(in crate::soft) unsafe fn $name(
            keys: &Keys<Vector>,
            encrypts: bool,
            blocks: &mut [Block; FEW],
        ) {
            // SAFETY: the caller guarantees that the processor has the instructions; a register is one block.
            unsafe {
                let mut buffer = passes::Buffer::<Narrow<$register>>::new();
                for i in 0..FEW {
                    buffer.0[i] = <$register as Register>::load(blocks[i].as_ptr());
                }
                $crypt(keys, encrypts, &mut buffer.0);
                for i in 0..FEW {
                    buffer.0[i].store(blocks[i].as_mut_ptr());
                }
            }
        }
    };
}

crypt! { #[allow(clippy::missing_safety_doc)] wide: Wide }
few!(few_portable, portable::small, Vector, [allow(clippy::missing_safety_doc)]);
width! {
    portable: Vector, [allow(clippy::missing_safety_doc)],
    large: super::wide, few: super::few_portable,
    ghash: ghash::update
}

#[cfg(target_arch = "x86_64")]
few!(few_ssse3, ssse3::small, Xmm, [target_feature(enable = "ssse3")]);
#[cfg(target_arch = "x86_64")]
width! {
    ssse3: Xmm, [target_feature(enable = "ssse3")],
    large: super::wide, few: super::few_ssse3,
    ghash: ghash::update_by_lookups::<Xmm>
}
#[cfg(target_arch = "x86_64")]
width! {
    avx2: Ymm, [target_feature(enable = "avx2")],
    large: small, few: super::few_ssse3,
    ghash: ghash::update_by_lookups::<Half>
}
#[cfg(target_arch = "x86_64")]
width! {
    avx512: Zmm, [target_feature(enable = "avx2,avx512f,avx512bw,avx512vl")],
    large: small, few: super::few_ssse3,
    ghash: ghash::update_by_lookups::<Half>
}

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
few!(few_neon, neon::small, Neon, [target_feature(enable = "neon")]);
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
width! {
    neon: Neon, [target_feature(enable = "neon")],
    large: super::wide, few: super::few_neon,
    ghash: ghash::update_by_lookups::<Neon>
}
