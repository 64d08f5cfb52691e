//! AES calls on one piece of one message, on the calling thread: for callers that manage messages and threads
//! themselves, such as an OpenSSL provider.
//!
//! There is no planner, thread or lock. No call on data allocates, except [`InlineKernel::run`], and [`InlineGcm::shared_message`]
//! while another thread computes powers of H or after a fork during this computation. A call on 16 bytes therefore costs little more
//! than the cipher. Padding, verification and unique nonces are the caller's responsibility.
//!
//! On x86-64, every call ends by clearing all vector registers, and the general registers that a function need not preserve: no
//! round key, no power of H and no text is left in them. On 64-bit Arm, every call sets the mode of data-independent timing (DIT)
//! if the processor has it, and resets it.
//!
//! | type | content |
//! |---|---|
//! | [`InlineKernel`] | the choice of kernel |
//! | [`InlineKey`] | an expanded key, and all modes except GCM and OCB3 |
//! | [`InlineGcm`], [`InlineOcb`] | incremental GCM and OCB3 |
//! | [`Span`] | input and output |

mod context;
mod gcm;
mod key;
mod ocb;
#[doc(hidden)]
pub mod proof;

pub use gcm::InlineGcm;
pub use key::InlineKey;
pub use ocb::InlineOcb;
pub use proof::is_proven;

use lockstep_core::Result;
use lockstep_core::work::Task;

pub use crate::kernel::{Block, Span};

use crate::device;
use crate::kernel::tweak;
use crate::kernels::{self, AnyKernel, with_kernel};

/// The kernel of inline calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InlineKernel(AnyKernel);

impl InlineKernel {
    /// The fastest kernel of this processor.
    pub fn best() -> InlineKernel {
        InlineKernel::all().next().expect("the portable kernel runs everywhere")
    }

    /// True if functions that set and copy keys ([`InlineKey`], [`InlineGcm`], [`InlineOcb`]) leave no copy of a key on the stack.
    #[inline]
    pub fn expands_in_place(self) -> bool {
        with_kernel!(self.0, kernel => context::expands_in_place(kernel))
    }

    /// The kernel of this name, such as `cpu/vaes512`; `None` if this processor cannot run it.
    pub fn by_name(name: &str) -> Option<InlineKernel> {
        InlineKernel::all().find(|kernel| kernel.name() == name)
    }

    /// All kernels that this processor can run, the fastest first.
    pub fn all() -> impl Iterator<Item = InlineKernel> {
        kernels::all().filter_map(|(_, _, kernel)| kernel.map(InlineKernel))
    }

    /// The name by which users select the kernel.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Runs a task of the backend interface on the calling thread. It prepares the keys of the task, which allocates memory. No round
    /// key is left on the stack.
    ///
    /// # Errors
    /// Errors of lengths; [`lockstep_core::Error::OutOfReach`] if the data are not in host memory.
    pub fn run(self, mut task: Task<'_, '_>) -> Result<()> {
        device::run(self.0, &mut task, 1)
    }

    /// True if the kernel uses AES instructions.
    pub fn has_aes_instructions(self) -> bool {
        !matches!(self.0, AnyKernel::Soft(_))
    }
}

/// Advances an XTS tweak by `blocks` blocks (IEEE 1619, 5.2).
pub fn advance_tweak(tweak: &mut Block, blocks: u64) {
    tweak::advance(tweak, blocks);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has SSE2.
    unsafe {
        crate::kernel::registers::clear_xmm();
    }
}

#[cfg(all(test, target_arch = "aarch64"))]
mod tests;
