//! The parts of GCM's state that kernels read and advance.

use super::wiped::Wiped;
use super::{Block, Kernel};

/// The powers of the hash key.
pub enum Powers<'k, H> {
    /// All powers have been computed; the hash key may be shared.
    All(&'k H),
    /// Missing powers are computed when a call needs them.
    Some(&'k mut H),
}

impl<'k, H> Powers<'k, H> {
    /// These powers, borrowed for a call.
    #[inline(always)]
    pub(crate) fn reborrow(&mut self) -> Powers<'_, H> {
        match self {
            Powers::All(key) => Powers::All(key),
            Powers::Some(key) => Powers::Some(key),
        }
    }

    /// The hash key with the powers that a call on `blocks` blocks needs.
    #[inline]
    pub(crate) fn for_blocks<K: Kernel<HashKey = H>>(self, kernel: K, blocks: usize) -> &'k H {
        match self {
            Powers::All(key) => key,
            Powers::Some(key) => {
                kernel.ensure_powers(key, blocks);
                key
            }
        }
    }
}

/// The counter of a GCM message.
pub struct GcmCounter {
    /// A counter that was derived with the hash key reveals the hash key.
    pub(crate) block: Wiped<1>,
    /// True if the counter was not derived with the hash key. Branches may depend on the counter only in this case.
    #[cfg_attr(
        not(any(target_arch = "x86_64", target_arch = "aarch64")),
        allow(dead_code, reason = "only the fused loops of `vectors` have such branches")
    )]
    pub(crate) is_public: bool,
}

/// The state of a message that [`Kernel::gcm_short`] uses.
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code, reason = "only the kernels of `vectors` have the function")
)]
pub struct Progress<'m> {
    /// If a mask is given, `counter` is J0, and J0 is encrypted into the mask first.
    pub(crate) mask: Option<&'m mut Block>,
    pub(crate) counter: &'m mut Block,
    pub(crate) hash: &'m mut Block,
    /// At most seven blocks that are hashed before the data.
    pub(crate) before: &'m [u8],
}
