//! The keys of incremental GCM, which several contexts share.
//!
//! A context and its copies use the same key, so that programs that copy a context for each message neither copy nor wipe keys.
//! While a context is the only user of its key, powers of H are computed when a message needs them, and the key can be replaced
//! in its place. The first copy computes all powers; after that the key does not change as long as it has several users.

use std::cell::UnsafeCell;
use std::slice::from_mut;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::kernel::boxed::{Aligned, Shared};
use crate::kernel::wiped::Wiped;
use crate::kernel::{Kernel, Powers};
use crate::kernels::Format;
use crate::message::MessageKey;

/// [`Keys`] in the format of a kernel.
pub(super) struct GcmKeys;

impl Format for GcmKeys {
    type Of<K: Kernel> = Shared<Keys<K>>;
}

/// Some powers of H have been computed. If the key has only one user, this user may compute more.
const SOME_POWERS: u8 = 0;
/// A thread is computing all powers.
const IN_PROGRESS: u8 = 1;
/// All powers have been computed, and there may be several users.
const ALL_POWERS: u8 = 2;

/// An AES key, which several contexts use.
pub(crate) struct Keys<K: Kernel> {
    pub(super) kernel: K,
    schedule: K::Schedule,
    /// In memory of its own: two small blocks are allocated and freed faster than one of more than 1032 bytes, the maximum of the
    /// caches of threads in the allocator of the GNU C library.
    hash_key: UnsafeCell<Aligned<K::HashKey>>,
    /// Which powers of H `hash_key` has.
    powers: AtomicU8,
}

// SAFETY: `hash_key` is written by a thread that borrows the keys exclusively, or that has changed `powers` from SOME_POWERS to
// IN_PROGRESS, which only one thread can do. It is read through a shared reference only if `powers` is ALL_POWERS, which is set
// after the write.
unsafe impl<K: Kernel> Sync for Keys<K>
where
    K::Schedule: Sync,
    K::HashKey: Sync,
{
}

impl<K: Kernel> Keys<K> {
    /// Keys without an AES key; `None` if memory cannot be allocated.
    fn blank(kernel: K) -> Option<Shared<Keys<K>>> {
        let hash_key = Aligned::try_new(|| kernel.blank_hash_key())?.into();
        Shared::try_new(|| {
            Some(Keys { kernel, schedule: kernel.blank_schedule()?, hash_key, powers: SOME_POWERS.into() })
        })
    }

    /// Expands an AES key; `None` if memory cannot be allocated.
    pub(super) fn new(kernel: K, key: &[u8]) -> Option<Shared<Keys<K>>> {
        let mut keys = Keys::blank(kernel)?;
        keys.get_mut()?.set(key);
        Some(keys)
    }

    /// Sets the AES key.
    fn set(&mut self, key: &[u8]) {
        *self.powers.get_mut() = SOME_POWERS;
        self.kernel.gcm_key_into(key, &mut self.schedule, self.hash_key.get_mut());
    }

    /// Replaces the AES key; keys of copies do not change. Returns false if memory cannot be allocated; the key is not changed then.
    pub(super) fn replace(keys: &mut Shared<Keys<K>>, key: &[u8]) -> bool {
        match keys.get_mut() {
            Some(keys) => {
                keys.set(key);
                true
            }
            None => Keys::new(keys.kernel, key).map(|new| *keys = new).is_some(),
        }
    }

    /// A reference to the keys for a copy of their context; `None` if memory cannot be allocated. Several threads may call this function at
    /// the same time.
    pub(super) fn share(keys: &Shared<Keys<K>>) -> Option<Shared<Keys<K>>> {
        if keys.complete() { Some(keys.clone()) } else { keys.separate() }
    }

    /// True if all powers have been computed, so that the keys may have several users.
    fn is_complete(&self) -> bool {
        self.powers.load(Ordering::Acquire) == ALL_POWERS
    }

    /// Computes all powers of H. Returns false if another thread is doing so. (If the process is forked during the
    /// computation, waiting for that thread would block the child process for ever.)
    pub(super) fn complete(&self) -> bool {
        // Only the first copy needs the atomic exchange.
        if self.is_complete() {
            return true;
        }
        let outcome =
            self.powers.compare_exchange(SOME_POWERS, IN_PROGRESS, Ordering::Acquire, Ordering::Acquire);
        if outcome.is_err() {
            return outcome == Err(ALL_POWERS);
        }
        // SAFETY: this thread may write, and no thread reads: see the implementation of Sync.
        self.kernel.ensure_powers(unsafe { &mut *self.hash_key.get() }, usize::MAX);
        self.powers.store(ALL_POWERS, Ordering::Release);
        true
    }

    /// The key of a message, if all powers of H have been computed.
    #[inline(always)]
    pub(super) fn complete_key(&self) -> Option<MessageKey<'_, K>> {
        // SAFETY: just checked.
        self.is_complete().then(|| unsafe { self.key_with_all_powers() })
    }

    /// The key of a message, with all powers of H.
    ///
    /// # Safety
    /// [`Keys::is_complete`] has returned true for these keys.
    #[inline(always)]
    unsafe fn key_with_all_powers(&self) -> MessageKey<'_, K> {
        // SAFETY: nobody writes to the powers any more while this reference exists: see the implementation of Sync.
        let powers = Powers::All(unsafe { &**self.hash_key.get() });
        MessageKey { kernel: self.kernel, schedule: &self.schedule, powers }
    }

    /// A second set of the same keys with all powers of H. Does not access the powers of this set.
    #[cold]
    pub(super) fn separate(&self) -> Option<Shared<Keys<K>>> {
        let mut copy = Keys::blank(self.kernel)?;
        let keys = copy.get_mut()?;
        self.kernel.copy_schedule(&self.schedule, &mut keys.schedule);
        keys.restart();
        copy.complete().then_some(copy)
    }

    /// Computes the lowest powers of H again, after a fork has left the computation of all powers incomplete.
    #[cold]
    fn restart(&mut self) {
        let mut h = Wiped::<1>::zero();
        self.kernel.encrypt_block(&self.schedule, &mut h[0]);
        self.kernel.hash_keys_into(&*h, from_mut(self.hash_key.get_mut()));
        *self.powers.get_mut() = SOME_POWERS;
    }
}

/// See [`InlineKernel::expands_in_place`](super::InlineKernel::expands_in_place).
pub(super) fn expands_in_place<K: Kernel>(_: K) -> bool {
    K::IN_PLACE
}

/// The parts of the keys for a call.
#[inline(always)]
pub(super) fn message_key<K: Kernel>(keys: &mut Shared<Keys<K>>) -> MessageKey<'_, K> {
    if keys.is_complete() {
        // SAFETY: just checked. A second check would be a second load.
        return unsafe { keys.key_with_all_powers() };
    }
    let Some(keys) = keys.get_mut() else { unreachable!("keys with several users are complete") };
    if *keys.powers.get_mut() == IN_PROGRESS {
        keys.restart();
    }
    let Keys { kernel, schedule, hash_key, .. } = keys;
    MessageKey { kernel: *kernel, schedule, powers: Powers::Some(hash_key.get_mut()) }
}

#[cfg(test)]
mod tests;
