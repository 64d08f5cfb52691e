//! AES calls on one piece of one message, on the calling thread: for callers that manage messages and threads
//! themselves, such as an OpenSSL provider.
//!
//! There is no planner, thread or lock. No call on data allocates, except [`InlineKernel::run`]. A call on 16 bytes
//! therefore costs little more than the cipher. Padding, verification and unique nonces are the caller's responsibility.
//!
//! | type | what |
//! |---|---|
//! | [`InlineKernel`] | the choice of kernel |
//! | [`InlineKey`] | an expanded key, and all modes except GCM and OCB3 |
//! | [`InlineGcm`], [`InlineOcb`] | incremental GCM and OCB3 |
//! | [`Span`] | input and output |

mod composed;
mod gcm;
mod key;
mod modes;
mod ocb;
mod proof;
mod single_stream;

pub(crate) use composed::Keys;
pub use gcm::InlineGcm;
pub use key::InlineKey;
pub use ocb::InlineOcb;
pub use proof::is_proven;
pub(crate) use single_stream::SingleStreamKernel;
#[cfg(target_arch = "x86_64")]
pub(crate) use single_stream::xts_unit;

use lockstep_core::Result;
use lockstep_core::work::Task;

pub use crate::kernel::{Block, Span};

#[cfg(target_arch = "aarch64")]
use crate::armv8::Armv8;
use crate::aws_lc::AwsLc;
use crate::device::AnyKernel;
use crate::kernel::Kernel;
use crate::passes::Passes;
use crate::soft::Soft;
#[cfg(target_arch = "x86_64")]
use crate::x86::{AesNi, Vaes256, Vaes512};

/// The kernel of inline calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InlineKernel(Choice);

/// The token of a kernel that this processor can run.
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

/// Evaluates an expression with the token of a [`Choice`].
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
    /// The fastest kernel of this processor.
    pub fn best() -> InlineKernel {
        InlineKernel::all().next().expect("the portable kernel runs everywhere")
    }

    /// True if a new [`InlineGcm`] leaves no copy of its key on the stack.
    pub fn expands_in_place(self) -> bool {
        with_kernel!(self.0, kernel => composed::expands_in_place(kernel))
    }

    /// The kernel of this name, such as `cpu/vaes512`; `None` if this processor cannot run it. AWS-LC supplies only GCM of whole
    /// messages, so the name `cpu/aws-lc` selects the best kernel.
    pub fn by_name(name: &str) -> Option<InlineKernel> {
        if name == AwsLc::NAME {
            return Some(InlineKernel::best());
        }
        InlineKernel::all().find(|kernel| kernel.name() == name)
    }

    /// All kernels that this processor can run, the fastest first.
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

    /// The name by which users select the kernel.
    pub fn name(self) -> &'static str {
        fn name<K: Kernel>(_: K) -> &'static str {
            K::NAME
        }
        with_kernel!(self.0, kernel => name(kernel))
    }

    /// Runs a task of the backend interface on the calling thread. It prepares the keys of the task, which allocates memory.
    ///
    /// # Errors
    /// [`lockstep_core::Error::Unsupported`] for tables; errors of lengths; [`lockstep_core::Error::OutOfReach`] if the data are
    /// not in host memory.
    pub fn run(self, mut task: Task<'_, '_>) -> Result<()> {
        with_kernel!(self.0, kernel => Passes::new(kernel).run(&mut task, 1))
    }

    /// True if the kernel uses AES instructions.
    pub fn has_aes_instructions(self) -> bool {
        !matches!(self.0, Choice::Soft(_))
    }
}

/// Advances an XTS tweak by `blocks` blocks (IEEE 1619, 5.2).
pub fn advance_tweak(tweak: &mut Block, blocks: u64) {
    crate::tweak::advance(tweak, blocks);
}

#[cfg(test)]
mod tests;
