//! The parts of GCM's state that kernels read and advance.
#![cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code, reason = "only the kernels of `vectors` use some of the fields")
)]

use super::Block;
use super::wiped::Wiped;

/// The powers of the hash key.
pub enum Powers<'k, H> {
    /// All powers have been computed; the hash key may be shared.
    All(&'k H),
    /// Missing powers are computed when a call needs them.
    Some(&'k mut H),
}

impl<H> Powers<'_, H> {
    /// The hash key. If powers may be missing, `ensure` computes those that the caller needs.
    #[inline(always)]
    pub(crate) fn with(&mut self, ensure: impl FnOnce(&mut H)) -> &H {
        match self {
            Powers::All(key) => key,
            Powers::Some(key) => {
                ensure(key);
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
    pub(crate) is_public: bool,
}

/// Number of bytes that [`Kernel::gcm_few`](super::Kernel::gcm_few) may write for the hash: the largest vector.
pub const LARGEST_VECTOR: usize = 64;

/// The state of a message that [`Kernel::gcm_short`](super::Kernel::gcm_short) uses.
pub struct Progress<'m> {
    /// If a mask is given, `counter` is J0, and J0 is encrypted into the mask first.
    pub(crate) mask: Option<&'m mut Block>,
    pub(crate) counter: &'m mut Block,
    pub(crate) hash: &'m mut Block,
    /// At most seven blocks that are hashed before the data.
    pub(crate) before: &'m [u8],
}
