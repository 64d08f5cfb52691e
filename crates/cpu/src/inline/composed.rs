//! Incremental GCM on a kernel: the key and the state of a message behind an object-safe interface.

use super::SingleStreamKernel;
use crate::boxed;
use crate::gcm::{Ctr32, MessageKey, Powers, State};
use crate::kernel::{Block, Span};
use crate::wiped::Wiped;

/// A key and the state of a message, for any kernel. The caller checks the order of calls and the limits on lengths.
pub(super) trait Composed: Send + Sync {
    /// Replaces the key. Returns false if memory cannot be allocated; no key is set then.
    fn set_key(&mut self, key: &[u8]) -> bool;
    /// Starts a message.
    fn start(&mut self, iv: &[u8]);
    /// Adds additional data.
    fn aad(&mut self, aad: &[u8]);
    /// Encrypts or decrypts data. `first` is true for the first data of a message: the additional data end before them.
    fn update(&mut self, first: bool, encrypt: bool, data: Span<'_>, ctr32: Option<Ctr32<'_>>);
    /// The tag; `aad` and `data` are the lengths in bytes.
    fn tag(&mut self, aad: u64, data: u64) -> Block;
    /// An independent copy of the current state.
    fn duplicate(&self) -> Option<Box<dyn Composed>>;
    /// True if `duplicate` leaves no copy of a secret on the stack.
    fn copies_in_place(&self) -> bool;
}

/// A key and the state of a message.
struct Gcm<K: SingleStreamKernel> {
    kernel: K,
    schedule: K::Schedule,
    hash_key: K::HashKey,
    state: State,
}

/// The schedule and the hash key of an AES key.
fn keys<K: SingleStreamKernel>(kernel: K, key: &[u8]) -> Option<(K::Schedule, K::HashKey)> {
    let schedule = kernel.try_expand_to_encrypt(key)?;
    let mut h = Wiped::<1>::zero();
    kernel.encrypt_block(&schedule, &mut h[0]);
    let hash_key = kernel.try_hash_key(&h[0])?;
    Some((schedule, hash_key))
}

/// Allocates GCM on a kernel; `None` if memory cannot be allocated.
pub(super) fn new<K: SingleStreamKernel>(kernel: K, key: &[u8]) -> Option<Box<dyn Composed>> {
    let (schedule, hash_key) = keys(kernel, key)?;
    Some(boxed::try_new(Gcm { kernel, schedule, hash_key, state: State::idle() })?)
}

/// The key of a message and its state, as separate borrows.
macro_rules! parts {
    ($gcm:ident) => {{
        let Gcm { kernel, schedule, hash_key, state } = $gcm;
        (MessageKey { kernel: *kernel, schedule, powers: Powers::Some(hash_key) }, state)
    }};
}

impl<K: SingleStreamKernel> Composed for Gcm<K> {
    fn set_key(&mut self, key: &[u8]) -> bool {
        self.kernel.gcm_key_into(key, &mut self.schedule, &mut self.hash_key)
    }

    fn start(&mut self, iv: &[u8]) {
        let (key, state) = parts!(self);
        state.start(key, iv);
    }

    fn aad(&mut self, aad: &[u8]) {
        let (mut key, state) = parts!(self);
        state.absorb(&mut key, aad);
    }

    fn update(&mut self, first: bool, encrypt: bool, data: Span<'_>, ctr32: Option<Ctr32<'_>>) {
        let (mut key, state) = parts!(self);
        if first {
            state.pad();
        }
        state.update(&mut key, encrypt, data, ctr32);
    }

    fn tag(&mut self, aad: u64, data: u64) -> Block {
        let (mut key, state) = parts!(self);
        state.tag(&mut key, aad, data)
    }

    fn copies_in_place(&self) -> bool {
        K::COPIED_BY_BYTES
    }

    fn duplicate(&self) -> Option<Box<dyn Composed>> {
        if K::COPIED_BY_BYTES {
            // SAFETY: schedule and hash key own no memory, as the kernel states; the kernel and the state own none either.
            let copy: Box<Gcm<K>> = unsafe { boxed::try_copy(self) }?;
            return Some(copy);
        }
        Some(boxed::try_new(Gcm {
            kernel: self.kernel,
            schedule: K::duplicate(&self.schedule)?,
            hash_key: K::duplicate_hash_key(&self.hash_key)?,
            state: self.state.clone(),
        })?)
    }
}
