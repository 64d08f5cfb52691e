//! AES of one piece of one message at once, on the calling thread: for callers that bring their own messages, splits
//! and threads, such as an OpenSSL provider.
//!
//! No planner, no threads and no locks, and no call on data allocates: a call on 16 bytes costs little more than the
//! cipher. Nothing is padded, verified or kept unique here: all that is the caller's.
//!
//! | type | what |
//! |---|---|
//! | [`InlineKernel`] | which kernel does the work |
//! | [`InlineKey`] | an expanded key and the modes but GCM |
//! | [`InlineGcm`] | GCM in pieces of any split |
//! | [`Span`] | where data are read and written |

mod alone;
mod composed;
mod fused;
mod gcm;
mod key;
mod modes;
mod proof;

pub(crate) use alone::{Alone, xts_unit};
pub use gcm::InlineGcm;
pub use key::InlineKey;
pub use proof::is_proven;

pub use crate::kernel::{Block, Span};

#[cfg(target_arch = "aarch64")]
use crate::armv8::Armv8;
use crate::aws_lc::AwsLc;
use crate::kernel::Kernel;
use crate::soft::Soft;
#[cfg(target_arch = "x86_64")]
use crate::x86::{AesNi, Vaes256, Vaes512};

/// Which kernel does inline work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InlineKernel(Choice);

/// A kernel that this processor has, as its token proves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Choice {
    #[cfg(target_arch = "x86_64")]
    Vaes512(Vaes512),
    #[cfg(target_arch = "x86_64")]
    Vaes256(Vaes256),
    #[cfg(target_arch = "x86_64")]
    AesNi(AesNi),
    #[cfg(target_arch = "aarch64")]
    Armv8(Armv8),
    Soft(Soft),
}

/// Calls something with the token of a [`Choice`].
macro_rules! with_kernel {
    ($choice:expr, $kernel:ident => $call:expr) => {
        match $choice {
            #[cfg(target_arch = "x86_64")]
            $crate::inline::Choice::Vaes512($kernel) => $call,
            #[cfg(target_arch = "x86_64")]
            $crate::inline::Choice::Vaes256($kernel) => $call,
            #[cfg(target_arch = "x86_64")]
            $crate::inline::Choice::AesNi($kernel) => $call,
            #[cfg(target_arch = "aarch64")]
            $crate::inline::Choice::Armv8($kernel) => $call,
            $crate::inline::Choice::Soft($kernel) => $call,
        }
    };
}
use with_kernel;

impl InlineKernel {
    /// The fastest of this processor.
    pub fn best() -> InlineKernel {
        InlineKernel::all().next().expect("the portable kernel runs everywhere")
    }

    /// The kernel of this name, such as `cpu/vaes512`, if this processor has it. `cpu/aws-lc` has GCM alone, which
    /// [`InlineGcm`] takes where it can: it stands for the best kernel.
    pub fn by_name(name: &str) -> Option<InlineKernel> {
        if name == AwsLc::NAME {
            return Some(InlineKernel::best());
        }
        InlineKernel::all().find(|kernel| kernel.name() == name)
    }

    /// All that this processor has, the fastest first.
    pub fn all() -> impl Iterator<Item = InlineKernel> {
        [
            #[cfg(target_arch = "x86_64")]
            Vaes512::detect().map(Choice::Vaes512),
            #[cfg(target_arch = "x86_64")]
            Vaes256::detect().map(Choice::Vaes256),
            #[cfg(target_arch = "x86_64")]
            AesNi::detect().map(Choice::AesNi),
            #[cfg(target_arch = "aarch64")]
            Armv8::detect().map(Choice::Armv8),
            Soft::detect().map(Choice::Soft),
        ]
        .into_iter()
        .flatten()
        .map(InlineKernel)
    }

    /// The name, as users give it.
    pub fn name(self) -> &'static str {
        fn name<K: Kernel>(_: K) -> &'static str {
            K::NAME
        }
        with_kernel!(self.0, kernel => name(kernel))
    }

    /// True if AWS-LC's GCM is faster than the kernel's own. On 512-bit vectors it is not: ours has a loop for both parts.
    fn prefers_fused_gcm(self) -> bool {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Choice::Vaes512(_) => false,
            Choice::Soft(_) => false,
            _ => true,
        }
    }

    /// True if the processor has instructions for AES, and the kernel uses them.
    pub fn has_aes_instructions(self) -> bool {
        !matches!(self.0, Choice::Soft(_))
    }
}

/// Moves the tweak of an XTS block on by so many blocks (IEEE 1619, 5.2).
pub fn advance_tweak(tweak: &mut Block, blocks: u64) {
    crate::tweak::advance(tweak, blocks);
}

#[cfg(test)]
mod tests;
