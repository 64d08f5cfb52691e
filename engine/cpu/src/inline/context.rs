//! Incremental GCM on a kernel: the key and the state of a message behind an object-safe interface.
//!
//! A context and its copies use the same key, so that programs that copy a context for each message neither copy nor wipe keys.
//! While a context is the only user of its key, powers of H are computed when a message needs them, and the key can be replaced
//! in its place. The first copy computes all powers; after that the key does not change as long as it has several users.

use std::cell::UnsafeCell;
use std::slice::from_mut;
use std::sync::atomic::{AtomicU8, Ordering};

use lockstep_core::gcm::tags_match;
use lockstep_core::work::{Status, Tag};

use crate::kernel::boxed::{self, Aligned, Shared};
use crate::kernel::entry::Entry;
use crate::kernel::wiped::Wiped;
use crate::kernel::{Block, Kernel, Powers, Span};
use crate::message::MessageKey;
use crate::message::gcm::{Ctr32, State};

/// A key and the state of a message, for any kernel. The caller checks the order of calls and the limits on lengths.
pub(super) trait Context: Send + Sync {
    /// Replaces the key; keys of copies do not change. Returns false if memory cannot be allocated; no key is set then.
    fn set_key(&mut self, key: &[u8]) -> bool;
    /// Starts a message.
    fn start(&mut self, iv: &[u8]);
    /// Adds additional data. They precede the data of the message.
    fn aad(&mut self, aad: &[u8]);
    /// Encrypts or decrypts data. `first` is true for the first data of a message: the additional data end before them.
    fn update(&mut self, first: bool, encrypt: bool, data: Span<'_>, ctr32: Option<Ctr32<'_>>);
    /// The tag; `aad` and `data` are the lengths in bytes.
    fn tag(&mut self, aad: u64, data: u64) -> Block;
    /// True if `tag` equals the tag or its first bytes.
    fn verify(&mut self, aad: u64, data: u64, tag: &[u8]) -> bool;
    /// Processes a whole message: encrypts it and writes the tag, or decrypts it and compares the tag. False if it differs.
    fn message(&mut self, iv: &[u8], aad: &[u8], data: Span<'_>, tag: &mut Tag<'_>) -> bool;
    /// Like `message`, but several threads may call this function at the same time. `None` if memory cannot be allocated.
    fn shared_message(&self, iv: &[u8], aad: &[u8], data: Span<'_>, tag: &mut Tag<'_>) -> Option<bool>;
    /// A copy of the current state that shares the key; `None` if memory cannot be allocated. Several threads may call this
    /// function at the same time.
    fn duplicate(&self) -> Option<Box<dyn Context>>;
}

/// Some powers of H have been computed. If the key has only one user, this user may compute more.
const SOME_POWERS: u8 = 0;
/// A thread is computing all powers.
const IN_PROGRESS: u8 = 1;
/// All powers have been computed, and there may be several users.
const ALL_POWERS: u8 = 2;

/// An AES key, which several contexts use.
pub(crate) struct Keys<K: Kernel> {
    kernel: K,
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
        let (schedule, hash_key) = (kernel.blank_schedule()?, kernel.blank_hash_key()?);
        let hash_key = Aligned::try_new(|| hash_key)?.into();
        Shared::try_new(|| Keys { kernel, schedule, hash_key, powers: SOME_POWERS.into() })
    }

    /// Expands an AES key; `None` if memory cannot be allocated.
    fn new(kernel: K, key: &[u8]) -> Option<Shared<Keys<K>>> {
        let mut keys = Keys::blank(kernel)?;
        keys.get_mut()?.set(key);
        Some(keys)
    }

    /// Replaces the AES key.
    fn set(&mut self, key: &[u8]) {
        *self.powers.get_mut() = SOME_POWERS;
        self.kernel.gcm_key_into(key, &mut self.schedule, self.hash_key.get_mut());
    }

    /// True if all powers have been computed, so that the keys may have several users.
    fn is_complete(&self) -> bool {
        self.powers.load(Ordering::Acquire) == ALL_POWERS
    }

    /// Computes all powers of H. Returns false if another thread is doing so. (If the process is forked during the
    /// computation, waiting for that thread would block the child process for ever.)
    fn complete(&self) -> bool {
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
    fn complete_key(&self) -> Option<MessageKey<'_, K>> {
        // SAFETY: nobody writes to the powers any more while this reference exists: see the implementation of Sync.
        let powers = self.is_complete().then(|| Powers::All(unsafe { &**self.hash_key.get() }))?;
        Some(MessageKey { kernel: self.kernel, schedule: &self.schedule, powers })
    }

    /// A second set of the same keys with all powers of H. Does not access the powers of this set.
    #[cold]
    fn separate(&self) -> Option<Shared<Keys<K>>> {
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

/// A key and the state of a message.
struct Gcm<K: Kernel> {
    keys: Shared<Keys<K>>,
    state: State,
}

/// Allocates GCM on a kernel; `None` if memory cannot be allocated.
pub(super) fn new<K: Kernel>(kernel: K, key: &[u8]) -> Option<Box<dyn Context>> {
    let _entry = Entry::of(kernel);
    let keys = Keys::new(kernel, key)?;
    Some(boxed::try_new(|| Gcm { keys, state: State::idle() })?)
}

/// See [`InlineKernel::expands_in_place`](super::InlineKernel::expands_in_place).
pub(super) fn expands_in_place<K: Kernel>(_: K) -> bool {
    K::IN_PLACE
}

impl<K: Kernel> Gcm<K> {
    #[inline(always)]
    fn parts(&mut self) -> (MessageKey<'_, K>, &mut State) {
        let Gcm { keys, state } = self;
        if keys.is_complete() {
            return (keys.complete_key().expect("all powers have been computed"), state);
        }
        let Some(keys) = keys.get_mut() else { unreachable!("keys with several users are complete") };
        if *keys.powers.get_mut() == IN_PROGRESS {
            keys.restart();
        }
        let Keys { kernel, schedule, hash_key, .. } = keys;
        (MessageKey { kernel: *kernel, schedule, powers: Powers::Some(hash_key.get_mut()) }, state)
    }
}

impl<K: Kernel> Context for Gcm<K> {
    fn set_key(&mut self, key: &[u8]) -> bool {
        let kernel = self.keys.kernel;
        let _entry = Entry::of(kernel);
        match self.keys.get_mut() {
            Some(keys) => {
                keys.set(key);
                true
            }
            None => Keys::new(kernel, key).map(|keys| self.keys = keys).is_some(),
        }
    }

    fn start(&mut self, iv: &[u8]) {
        let _entry = Entry::of(self.keys.kernel);
        let (mut key, state) = self.parts();
        state.start(&mut key, iv);
    }

    fn aad(&mut self, aad: &[u8]) {
        let _entry = Entry::of(self.keys.kernel);
        let (mut key, state) = self.parts();
        state.aad(&mut key, aad);
    }

    fn update(&mut self, first: bool, encrypt: bool, data: Span<'_>, ctr32: Option<Ctr32<'_>>) {
        let _entry = Entry::of(self.keys.kernel);
        let (mut key, state) = self.parts();
        if first {
            state.end_aad();
        }
        state.update(&mut key, encrypt, data, ctr32);
    }

    fn tag(&mut self, aad: u64, data: u64) -> Block {
        let _entry = Entry::of(self.keys.kernel);
        let (mut key, state) = self.parts();
        let mut tag = [0; 16];
        state.tag(&mut key, (aad, data), &mut tag);
        tag
    }

    fn verify(&mut self, aad: u64, data: u64, tag: &[u8]) -> bool {
        let _entry = Entry::of(self.keys.kernel);
        // The right tag of a forged message is a secret.
        let mut computed = Wiped::<1>::zero();
        let (mut key, state) = self.parts();
        state.tag(&mut key, (aad, data), &mut computed[0]);
        tags_match(&computed[0], tag)
    }

    fn message(&mut self, iv: &[u8], aad: &[u8], data: Span<'_>, tag: &mut Tag<'_>) -> bool {
        let _entry = Entry::of(self.keys.kernel);
        let (mut key, state) = self.parts();
        state.start(&mut key, iv);
        state.whole(&mut key, None, aad, data, tag) == Status::Done
    }

    fn shared_message(&self, iv: &[u8], aad: &[u8], data: Span<'_>, tag: &mut Tag<'_>) -> Option<bool> {
        let _entry = Entry::of(self.keys.kernel);
        let separate = if self.keys.complete() { None } else { Some(self.keys.separate()?) };
        let (mut key, mut state) = (separate.as_ref().unwrap_or(&self.keys).complete_key()?, State::idle());
        state.start(&mut key, iv);
        Some(state.whole(&mut key, None, aad, data, tag) == Status::Done)
    }

    fn duplicate(&self) -> Option<Box<dyn Context>> {
        let _entry = Entry::of(self.keys.kernel);
        let keys = if self.keys.complete() { self.keys.clone() } else { self.keys.separate()? };
        // The state is copied from heap to heap, without a copy on the stack.
        let mut copy = boxed::try_new(|| Gcm { keys, state: State::idle() })?;
        copy.state.copy_from(&self.state);
        Some(copy)
    }
}

#[cfg(test)]
mod tests;
