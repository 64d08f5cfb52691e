//! Incremental GCM on a kernel: the key and the state of a message behind an object-safe interface.
//!
//! A context that was made from a key contains its schedule and hash key. Its first copy computes a second set of them, with
//! all powers of H, that is shared with all copies. A copy therefore consists of the state of a message only: programs that
//! copy a context for each message neither copy nor wipe keys.

use super::SingleStreamKernel;
use crate::boxed::{self, Shared, SharedOnce};
use crate::gcm::{Ctr32, MessageKey, Powers, State};
use crate::kernel::{Block, Span};
use crate::wiped::Wiped;

/// A key and the state of a message, for any kernel. The caller checks the order of calls and the limits on lengths.
pub(super) trait Composed: Send + Sync {
    /// Replaces the key. Returns false if memory cannot be allocated; no key is set then. A copy always returns false, because
    /// other contexts use its key: [`Composed::with_key`] makes a context in its place.
    fn set_key(&mut self, key: &[u8]) -> bool;
    /// Starts a message.
    fn start(&mut self, iv: &[u8]);
    /// Adds additional data.
    fn aad(&mut self, aad: &[u8]);
    /// Encrypts or decrypts data. `first` is true for the first data of a message: the additional data end before them.
    fn update(&mut self, first: bool, encrypt: bool, data: Span<'_>, ctr32: Option<Ctr32<'_>>);
    /// The tag; `aad` and `data` are the lengths in bytes.
    fn tag(&mut self, aad: u64, data: u64) -> Block;
    /// A copy of the current state that shares the key; `None` if memory cannot be allocated. Its key cannot be replaced.
    fn duplicate(&self) -> Option<Box<dyn Composed>>;
    /// A context of the same kernel with another key; `None` if memory cannot be allocated.
    fn with_key(&self, key: &[u8]) -> Option<Box<dyn Composed>>;
    /// True if `duplicate` leaves no copy of a secret on the stack.
    fn copies_in_place(&self) -> bool;
    /// True if `set_key` and `with_key` leave no copy of the key on the stack.
    fn expands_in_place(&self) -> bool;
}

/// A key and the state of a message.
struct Gcm<K: SingleStreamKernel> {
    kernel: K,
    schedule: K::Schedule,
    hash_key: K::HashKey,
    state: State,
    /// The same key for copies, computed for the first one.
    shared: SharedOnce<Keys<K>>,
}

/// A key with all powers of H, which several contexts use.
pub(crate) struct Keys<K: SingleStreamKernel> {
    pub(crate) kernel: K,
    pub(crate) schedule: K::Schedule,
    pub(crate) hash_key: K::HashKey,
}

/// A shared key and the state of a message.
struct CopiedGcm<K: SingleStreamKernel> {
    keys: Shared<Keys<K>>,
    state: State,
}

/// The schedule and the hash key of an AES key.
fn keys<K: SingleStreamKernel>(kernel: K, key: &[u8]) -> Option<(K::Schedule, K::HashKey)> {
    let schedule = kernel.try_expand(key)?;
    let mut h = Wiped::<1>::zero();
    kernel.encrypt_block(&schedule, &mut h[0]);
    let hash_key = kernel.try_hash_key(&h[0])?;
    Some((schedule, hash_key))
}

/// Allocates GCM on a kernel; `None` if memory cannot be allocated.
pub(super) fn new<K: SingleStreamKernel>(kernel: K, key: &[u8]) -> Option<Box<dyn Composed>> {
    let (schedule, hash_key) = if K::KEYS_IN_PLACE { kernel.blank() } else { keys(kernel, key)? };
    let gcm = Gcm { kernel, schedule, hash_key, state: State::idle(), shared: SharedOnce::new() };
    let mut gcm: Box<dyn Composed> = boxed::try_new(gcm)?;
    if K::KEYS_IN_PLACE && !gcm.set_key(key) {
        return None;
    }
    Some(gcm)
}

/// True if [`new`] leaves no copy of the key on the stack.
pub(super) fn expands_in_place<K: SingleStreamKernel>(_: K) -> bool {
    K::KEYS_IN_PLACE
}

impl<K: SingleStreamKernel> Gcm<K> {
    /// The key for copies; `None` if memory cannot be allocated. Several threads may copy a context at the same time.
    fn shared(&self) -> Option<Shared<Keys<K>>> {
        if !self.shared.is_set() {
            // If another thread is faster, its key is used and this one is dropped.
            self.shared.set(self.kernel.share(&self.schedule, &self.hash_key)?);
        }
        self.shared.get()
    }

    /// The key of a message and its state.
    #[inline(always)]
    fn parts(&mut self) -> (MessageKey<'_, K>, &mut State) {
        let Gcm { kernel, schedule, hash_key, state, .. } = self;
        (MessageKey { kernel: *kernel, schedule, powers: Powers::Some(hash_key) }, state)
    }
}

impl<K: SingleStreamKernel> CopiedGcm<K> {
    /// Copies a state from heap to heap, and to no other place.
    fn allocate(keys: Shared<Keys<K>>, state: &State) -> Option<Box<dyn Composed>> {
        let mut copy = boxed::try_new(CopiedGcm { keys, state: State::idle() })?;
        copy.state.copy_from(state);
        Some(copy)
    }

    /// The key of a message and its state.
    #[inline(always)]
    fn parts(&mut self) -> (MessageKey<'_, K>, &mut State) {
        let Keys { kernel, schedule, hash_key } = &*self.keys;
        (MessageKey { kernel: *kernel, schedule, powers: Powers::All(hash_key) }, &mut self.state)
    }
}

/// The methods that are the same for both contexts.
macro_rules! message {
    () => {
        fn expands_in_place(&self) -> bool {
            K::KEYS_IN_PLACE
        }

        fn start(&mut self, iv: &[u8]) {
            let (key, state) = self.parts();
            state.start(key, iv);
        }

        fn aad(&mut self, aad: &[u8]) {
            let (mut key, state) = self.parts();
            state.absorb(&mut key, aad);
        }

        fn update(&mut self, first: bool, encrypt: bool, data: Span<'_>, ctr32: Option<Ctr32<'_>>) {
            let (mut key, state) = self.parts();
            if first {
                state.pad();
            }
            state.update(&mut key, encrypt, data, ctr32);
        }

        fn tag(&mut self, aad: u64, data: u64) -> Block {
            let (mut key, state) = self.parts();
            state.tag(&mut key, aad, data)
        }
    };
}

impl<K: SingleStreamKernel> Composed for Gcm<K> {
    fn set_key(&mut self, key: &[u8]) -> bool {
        self.shared.clear();
        self.kernel.gcm_key_into(key, &mut self.schedule, &mut self.hash_key)
    }

    fn duplicate(&self) -> Option<Box<dyn Composed>> {
        CopiedGcm::allocate(self.shared()?, &self.state)
    }

    fn with_key(&self, key: &[u8]) -> Option<Box<dyn Composed>> {
        new(self.kernel, key)
    }

    fn copies_in_place(&self) -> bool {
        K::KEYS_IN_PLACE || self.shared.is_set()
    }

    message!();
}

impl<K: SingleStreamKernel> Composed for CopiedGcm<K> {
    fn set_key(&mut self, _key: &[u8]) -> bool {
        false
    }

    fn duplicate(&self) -> Option<Box<dyn Composed>> {
        CopiedGcm::allocate(self.keys.clone(), &self.state)
    }

    fn with_key(&self, key: &[u8]) -> Option<Box<dyn Composed>> {
        new(self.keys.kernel, key)
    }

    fn copies_in_place(&self) -> bool {
        true
    }

    message!();
}
