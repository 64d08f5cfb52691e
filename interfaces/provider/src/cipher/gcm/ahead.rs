//! Keystream of GCM computed ahead.

use lockstep::hazmat::inline::{InlineGcm, Span};
use lockstep::hazmat::work::Pass;

use crate::ahead::{KeystreamAhead, KeystreamPool};
use crate::key::ContextKey;
use crate::reason::Outcome;
use crate::resources::Resources;
use crate::system::heap;

/// Keystream computed ahead, if it is in use. On the heap, so that contexts without it are small and fast to copy.
pub(super) struct Ahead(Vec<InUse>);

/// The key and the state of keystream computed ahead.
pub(super) struct InUse {
    key: ContextKey,
    keystream: KeystreamAhead,
}

impl Ahead {
    /// Creates a value without keystream computed ahead.
    pub(super) fn none() -> Ahead {
        Ahead(Vec::new())
    }

    /// Creates a value that uses keystream computed ahead. If the key or the memory is missing, GCM works without it. (A
    /// vector of one element, because a `Box` cannot be allocated without an abort on failure.)
    pub(super) fn allocate(key: Outcome<ContextKey>) -> Ahead {
        let mut place = Vec::new();
        if let (Ok(key), Ok(())) = (key, place.try_reserve_exact(1)) {
            place.push(InUse { key, keystream: KeystreamAhead::new(Pass::Ctr32) });
        }
        Ahead(place)
    }

    /// The value for a copy of the context. The copy computes its own keystream when needed.
    pub(super) fn duplicate(&self) -> Ahead {
        self.0.first().map_or_else(Ahead::none, |used| Ahead::allocate(used.key.duplicate()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn get_mut(&mut self) -> Option<&mut InUse> {
        self.0.first_mut()
    }

    /// Ends the message: the keystream computed for it is dropped.
    pub(super) fn stop(&mut self) {
        if let Some(used) = self.0.first_mut() {
            used.keystream.stop();
        }
    }

    /// Wipes the key. After this call no keystream is computed ahead.
    pub(super) fn clear(&mut self) {
        self.0.clear();
        heap::wipe_spare_capacity(&mut self.0);
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.clear();
    }
}

impl InUse {
    /// Encrypts or decrypts data of a message. Returns false if the message is too long. A separate function, so that its
    /// stack frame can be wiped.
    #[inline(never)]
    pub(super) fn update(
        &mut self,
        gcm: &mut InlineGcm,
        keystream_pool: &KeystreamPool,
        resources: &Resources,
        data: Span<'_>,
    ) -> bool {
        let InUse { key, keystream } = self;
        gcm.update_by(data, &mut |counter, blocks| {
            keystream.apply(keystream_pool, resources, key, counter, blocks);
        })
    }
}
