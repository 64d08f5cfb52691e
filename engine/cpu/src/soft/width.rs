//! The widths of the kernel: one copy of the passes for each register, and the choice among them.
//!
//! The functions of a width have the `#[target_feature]`s of its register, and all functions that use the register are inlined
//! into them. The cipher itself is one such function for each width, since every inlined copy costs compile time.

use super::ghash::{self, HashKey};
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
use super::neon::Neon;
use super::passes::{self, Ciphers};
use super::planes::{MOST, Narrow, Plane, Wide};
use super::register::Register;
use super::rounds::{self, Direction};
use super::schedule::{Keys, Schedule};
use super::vector::Vector;
#[cfg(target_arch = "x86_64")]
use super::x86::{Half, Xmm, Ymm, Zmm};
use crate::kernel::counter::{Low32, Whole};
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

/// Defines functions with the target features of a width. They may be called on processors that have these features.
macro_rules! entries {
    ([$attribute:meta] $(fn $entry:ident($($arg:ident: $type:ty),*) { $($body:tt)* })*) => {
        $(
            #[$attribute]
            pub(in crate::soft) unsafe fn $entry($($arg: $type),*) {
                // SAFETY: the caller guarantees that the processor has the instructions.
                unsafe { $($body)* }
            }
        )*
    };
}

/// Defines the function that runs the cipher on a layout.
macro_rules! crypt {
    (#[$attribute:meta] $name:ident: $plane:ty) => {
        #[$attribute]
        #[inline(never)]
        pub(super) unsafe fn $name(
            keys: &Keys<<$plane as Plane>::Stored>,
            direction: Direction,
            blocks: &mut [<$plane as Plane>::Register; MOST],
        ) {
            // SAFETY: the caller guarantees that the processor has the instructions.
            unsafe { rounds::crypt::<$plane>(keys, direction, blocks) }
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

            entries! { [$attribute]
                fn ecb(key: &Schedule, direction: Direction, data: Span<'_>) {
                    passes::ecb(CIPHERS, key, direction, data)
                }
                fn ctr(key: &Schedule, counter: &mut Block, data: Span<'_>) {
                    passes::ctr::<Own, Whole>(CIPHERS, key, counter, data)
                }
                fn ctr32(key: &Schedule, counter: &mut Block, data: Span<'_>) {
                    passes::ctr::<Own, Low32>(CIPHERS, key, counter, data)
                }
                fn cbc_decrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) {
                    passes::cbc_decrypt(CIPHERS, key, iv, data)
                }
                fn cfb128_decrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) {
                    passes::cfb128_decrypt(CIPHERS, key, iv, data)
                }
                fn ghash(key: &HashKey, state: &mut Block, data: &[u8]) {
                    $ghash(key, state, data)
                }
                fn xts(key: &Schedule, direction: Direction, tweak: &mut Block, data: Span<'_>) {
                    passes::xts(CIPHERS, key, direction, tweak, data)
                }
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
            direction: Direction,
            blocks: &mut [Block; MOST],
        ) {
            // SAFETY: the caller guarantees that the processor has the instructions; a register is one block.
            unsafe {
                let mut buffer = passes::Buffer::<Narrow<$register>>::new();
                for i in 0..8 {
                    buffer.0[i] = <$register as Register>::load(blocks[i].as_ptr());
                }
                $crypt(keys, direction, &mut buffer.0);
                for i in 0..8 {
                    buffer.0[i].store(blocks[i].as_mut_ptr());
                }
            }
        }
    };
}

/// Encrypts or decrypts 32 blocks, each under a key of its own.
#[inline(never)]
pub(super) fn many(keys: &Keys<Wide>, direction: Direction, blocks: &mut [Block; MOST]) {
    // SAFETY: every processor has the instructions of wide planes; a register is one block.
    unsafe {
        let mut buffer = passes::Buffer::<Wide>::new();
        for (register, block) in buffer.0.iter_mut().zip(&*blocks) {
            *register = Vector::from_block(*block);
        }
        wide(keys, direction, &mut buffer.0);
        for (register, block) in buffer.0.iter().zip(blocks) {
            *block = register.to_block();
        }
    }
}

crypt! { #[allow(clippy::missing_safety_doc)] wide: Wide }
few!(few_portable, portable::small, Vector, [allow(clippy::missing_safety_doc)]);
width! {
    portable: Vector, [allow(clippy::missing_safety_doc)],
    large: super::wide, few: super::few_portable,
    ghash: ghash::update_portable
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
