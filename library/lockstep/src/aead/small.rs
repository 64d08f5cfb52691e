//! GCM without planner and executor: contexts with an expanded key and the powers of the hash key.

use std::sync::{Mutex, PoisonError, TryLockError};

use lockstep_core::data::HostData;
use lockstep_core::stack;
use lockstep_core::work::{Status, Tag};
use lockstep_cpu::inline::{InlineGcm, InlineKernel};
use lockstep_modes::aead::Aead;
use zeroize::Zeroize;

/// The context of a key, made at first use.
pub(super) struct Context(Mutex<Option<(InlineKernel, Box<InlineGcm>)>>);

impl Context {
    pub(super) const fn new() -> Context {
        Context(Mutex::new(None))
    }

    /// Calls `message` with the context of the key, and returns its result. Returns `None` without a call if another thread is
    /// using the context, if the context belongs to another kernel, or if memory cannot be allocated.
    #[inline]
    pub(super) fn run<T>(
        &self,
        kernel: InlineKernel,
        key: &[u8],
        message: impl FnOnce(&mut InlineGcm) -> Option<T>,
    ) -> Option<T> {
        let mut context = match self.0.try_lock() {
            Ok(context) => context,
            Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            Err(TryLockError::WouldBlock) => return None,
        };
        if context.is_none() {
            *context = Some((kernel, new_in_own_frame(kernel, key)?));
            if !kernel.expands_in_place() {
                stack::wipe_below();
            }
        }
        let (kernel_of_context, gcm) = context.as_mut()?;
        if *kernel_of_context == kernel { message(gcm) } else { None }
    }
}

/// A separate function, so that its stack frame can be wiped.
#[inline(never)]
pub(super) fn new_in_own_frame(kernel: InlineKernel, key: &[u8]) -> Option<Box<InlineGcm>> {
    InlineGcm::new(kernel, key).map(Box::new)
}

/// Seals or opens a message. If GCM does not allow its lengths, the result is `None`, and the message is unchanged. The output of a
/// message whose tag is wrong is zeroed.
#[inline]
pub(super) fn run(
    gcm: &mut InlineGcm,
    nonce: &[u8],
    aad: &[u8],
    mut data: HostData<'_>,
    tag: &mut Tag<'_>,
) -> Option<Status> {
    if !(tag.len() == 16 || Aead::Gcm.row().tags.contains(tag.len())) {
        return None;
    }
    if gcm.message(nonce, aad, data.reborrow().into_span(), tag)? {
        return Some(Status::Done);
    }
    data.output().zeroize();
    Some(Status::AuthenticationFailed)
}
