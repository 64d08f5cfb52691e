//! The list of kernels, the fastest first. What exists once for each kernel is generated from this list; a type that is not in
//! it cannot implement [`Kernel`].

use std::sync::atomic::AtomicU8;

use crate::kernel::{Kernel, Listed};
use crate::soft::Soft;
#[cfg(target_arch = "x86_64")]
use crate::vectors::{AesNi, Vaes256, Vaes512};
#[cfg(target_arch = "aarch64")]
use crate::vectors::{Armv8, Armv8Sha3};

/// A row of the list.
pub(crate) struct Row {
    pub(crate) description: &'static str,
    /// The instructions that a processor lacks if it cannot run the kernel, for messages; empty if every processor can run it.
    pub(crate) lacks: &'static str,
    /// Bytes per nanosecond with AES-128 (docs/measured). Only their order matters, since all kernels run on the same processor.
    /// The parallel and the serial passes were measured on a Zen 4 core, GCM by the example `fused_gcm` on a Zen 5 core. The
    /// kernels for Arm have not been measured: `cpu/armv8-sha3` is assumed to be the faster one, because it needs fewer instructions.
    pub(crate) parallel: f64,
    pub(crate) serial: f64,
    pub(crate) gcm: f64,
}

/// A kernel of the list: its conversions to and from the types that hold any kernel.
pub(crate) trait Member: Kernel {
    /// The row of this kernel.
    const ROW: Row;
    /// The result of the self-test of this kernel.
    fn outcome(self) -> &'static AtomicU8;
    /// This kernel as any kernel.
    fn any(self) -> AnyKernel;
    /// A value in the format of this kernel.
    fn wrap<F: Format>(self, value: F::Of<Self>) -> Any<F>;
    /// The value, if it is in the format of this kernel.
    fn value_of<F: Format>(self, any: &Any<F>) -> Option<&F::Of<Self>>;
}

/// The types of a value in the formats of the kernels.
pub(crate) trait Format {
    /// The type for a kernel.
    type Of<K: Kernel>;
}

/// A kernel and round keys in its format.
pub(crate) struct Schedules;

impl Format for Schedules {
    type Of<K: Kernel> = (K, K::Schedule);
}

/// `$` is passed in, so that the generated macros can have parameters of their own.
macro_rules! kernels {
    ($d:tt $($(#[$cfg:meta])* $kernel:ident: $description:literal, lacks $lacks:literal, $parallel:literal, $serial:literal,
        $gcm:literal;)*) => {
        /// The token of a kernel that this processor can run.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum AnyKernel {
            $($(#[$cfg])* $kernel($kernel),)*
        }

        /// A value in the format of one of the kernels. This is an enum because a predicted branch costs less than a virtual call.
        pub(crate) enum Any<F: Format> {
            $($(#[$cfg])* $kernel(F::Of<$kernel>),)*
        }

        /// Evaluates an expression with the token of an [`AnyKernel`].
        macro_rules! with_kernel {
            ($d any:expr, $d kernel:ident => $d call:expr) => {
                match $d any {
                    $($(#[$cfg])* $crate::kernels::AnyKernel::$kernel($d kernel) => $d call,)*
                }
            };
        }

        /// Evaluates an expression with the value of an [`Any`].
        macro_rules! with_any {
            ($d any:expr, $d value:pat => $d call:expr) => {
                match $d any {
                    $($(#[$cfg])* $crate::kernels::Any::$kernel($d value) => $d call,)*
                }
            };
        }

        /// The names and rows of all kernels, with the tokens of those that this processor can run.
        pub(crate) fn all() -> impl Iterator<Item = (&'static str, Row, Option<AnyKernel>)> {
            [$($(#[$cfg])* ($kernel::NAME, $kernel::ROW, $kernel::detect().map(AnyKernel::$kernel)),)*].into_iter()
        }

        $($(#[$cfg])* impl Listed for $kernel {}

        $(#[$cfg])*
        impl Member for $kernel {
            const ROW: Row =
                Row { description: $description, lacks: $lacks, parallel: $parallel, serial: $serial, gcm: $gcm };

            fn outcome(self) -> &'static AtomicU8 {
                static OUTCOME: AtomicU8 = AtomicU8::new(0);
                &OUTCOME
            }

            #[inline(always)]
            fn any(self) -> AnyKernel {
                AnyKernel::$kernel(self)
            }

            #[inline(always)]
            fn wrap<F: Format>(self, value: F::Of<Self>) -> Any<F> {
                Any::$kernel(value)
            }

            #[inline(always)]
            fn value_of<F: Format>(self, any: &Any<F>) -> Option<&F::Of<Self>> {
                match any {
                    Any::$kernel(value) => Some(value),
                    #[allow(unreachable_patterns, reason = "there may be one kernel only")]
                    _ => None,
                }
            }
        })*
    };
}
kernels! { $
    #[cfg(target_arch = "x86_64")]
    Vaes512: "AES on 512-bit vectors (VAES, AVX-512)", lacks "VAES with AVX-512", 22.0, 1.5, 25.0;
    #[cfg(target_arch = "x86_64")]
    Vaes256: "AES on 256-bit vectors (VAES, AVX2)", lacks "VAES with AVX2", 18.0, 1.49, 12.4;
    #[cfg(target_arch = "x86_64")]
    AesNi: "AES instructions (AES-NI)", lacks "AES-NI", 10.0, 1.48, 6.3;
    #[cfg(target_arch = "aarch64")]
    Armv8Sha3: "AES instructions and EOR3 (Armv8 cryptography extension, SHA-3)", lacks "AES instructions with EOR3", 11.0, 1.48, 7.5;
    #[cfg(target_arch = "aarch64")]
    Armv8: "AES instructions (Armv8 cryptography extension)", lacks "AES instructions", 10.0, 1.48, 6.3;
    Soft: "bitsliced, for any processor", lacks "", 0.8, 0.05, 0.33;
}

#[allow(clippy::single_component_path_imports, reason = "the macros get paths")]
pub(crate) use {with_any, with_kernel};

impl AnyKernel {
    /// The name by which users select the kernel.
    pub(crate) fn name(self) -> &'static str {
        fn name<K: Kernel>(_: K) -> &'static str {
            K::NAME
        }
        with_kernel!(self, kernel => name(kernel))
    }

    /// The row of the kernel.
    pub(crate) fn row(self) -> Row {
        fn row<K: Member>(_: K) -> Row {
            K::ROW
        }
        with_kernel!(self, kernel => row(kernel))
    }
}
