//! GCM for small calls. It runs on the calling thread, and uses neither the planner nor allocations.

use std::sync::{Mutex, PoisonError, TryLockError};

use lockstep::hazmat::data::{HostData, Span};
use lockstep::hazmat::inline::{InlineGcm, InlineKernel};
use lockstep::hazmat::stack;
use zeroize::Zeroize;

/// A key with its expanded form and the powers of its hash key, made at first use.
pub(super) struct SmallGcm(Mutex<Option<Box<InlineGcm>>>);

impl SmallGcm {
    pub(super) fn new() -> SmallGcm {
        SmallGcm(Mutex::new(None))
    }

    /// Runs a message with the context of the key. None if another thread uses the context, which happens only without an
    /// interpreter lock, or if memory cannot be allocated.
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
            *context = Some(new_in_own_frame(kernel, key)?);
            if !kernel.expands_in_place() {
                stack::wipe_below();
            }
        }
        message(context.as_mut()?)
    }
}

/// A separate function, so that its stack frame can be wiped.
#[inline(never)]
fn new_in_own_frame(kernel: InlineKernel, key: &[u8]) -> Option<Box<InlineGcm>> {
    InlineGcm::new(kernel, key).map(Box::new)
}

/// Seals a message. None if GCM refuses it.
#[inline]
pub(super) fn seal(
    gcm: &mut InlineGcm,
    nonce: &[u8],
    aad: &[u8],
    data: HostData<'_>,
    tag: &mut [u8],
) -> Option<()> {
    let good = gcm.start(true, nonce) && gcm.aad(aad) && gcm.update(data.into_span());
    let computed = good.then(|| gcm.finish_seal()).flatten()?;
    tag.copy_from_slice(&computed);
    Some(())
}

/// Opens a message: true if the tag is correct, false if it is wrong, in which case the output is zeroed. None if GCM refuses the
/// message.
#[inline]
pub(super) fn open(
    gcm: &mut InlineGcm,
    nonce: &[u8],
    aad: &[u8],
    mut data: HostData<'_>,
    tag: &[u8],
) -> Option<bool> {
    if !(gcm.start(false, nonce) && gcm.aad(aad)) {
        return None;
    }
    let span: Span<'_> = data.reborrow().into_span();
    if !gcm.update(span) {
        return None;
    }
    let is_authentic = gcm.finish_open(tag);
    if !is_authentic {
        data.output().zeroize();
    }
    Some(is_authentic)
}
