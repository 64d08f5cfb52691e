//! The hash of a message in pieces: GHASH of GCM, and POLYVAL of GCM-SIV.

use crate::kernel::partial;
use crate::kernel::wiped::Wiped;
use crate::kernel::{Block, Kernel, LANES, LARGEST_VECTOR, Powers, out_of_memory};

/// The round keys and the hash key of a message.
pub(crate) struct MessageKey<'k, K: Kernel> {
    pub(crate) kernel: K,
    pub(crate) schedule: &'k K::Schedule,
    pub(crate) powers: Powers<'k, K::HashKey>,
}

impl<K: Kernel> MessageKey<'_, K> {
    /// The hash key with the powers that a call on `blocks` blocks needs.
    #[inline]
    pub(crate) fn hash_key(&mut self, blocks: usize) -> &K::HashKey {
        self.powers.with(|key| self.kernel.ensure_powers(key, blocks))
    }
}

/// Number of messages whose keys are expanded together.
pub(super) const GROUP: usize = LANES / 2;

/// Memory for the expanded keys of a group of messages, which is reused; its content is wiped on drop.
pub(super) struct Places<K: Kernel> {
    pub(super) schedules: Vec<K::Schedule>,
    pub(super) hash_keys: Vec<K::HashKey>,
}

impl<K: Kernel> Places<K> {
    /// No places; see [`Places::reserve`].
    pub(super) fn new() -> Self {
        Places { schedules: Vec::new(), hash_keys: Vec::new() }
    }

    /// Makes room for a number of keys, at most [`GROUP`].
    pub(super) fn reserve(&mut self, kernel: K, keys: usize) {
        // The memory never moves, so that no copy of a key is left behind.
        self.schedules.reserve_exact(GROUP - self.schedules.len());
        self.hash_keys.reserve_exact(GROUP - self.hash_keys.len());
        while self.schedules.len() < keys {
            self.schedules.push(kernel.blank_schedule().unwrap_or_else(|| out_of_memory::<K::Schedule>()));
            self.hash_keys.push(kernel.blank_hash_key().unwrap_or_else(|| out_of_memory::<K::HashKey>()));
        }
    }
}

/// Maximum number of bytes that wait to be hashed. With the block of lengths, they are two vectors of the largest size.
pub(crate) const PENDING: usize = 7 * 16;

/// A hash, and the bytes that have not been hashed yet. A short message is hashed in one call at its end, which reduces once.
///
/// The hash is GHASH of additional data and ciphertext, or POLYVAL of additional data and plaintext.
pub(crate) struct Hash<const GHASH: bool> {
    pub(super) state: Wiped<1>,
    /// The last 16 bytes have room for padding and for the block of lengths. Only the first `len` bytes have a meaning; the others may
    /// be keystream (see [`Kernel::gcm_few`]).
    pending: Wiped<{ PENDING / 16 + 1 }>,
    /// Number of pending bytes. The last block may be incomplete.
    pub(super) len: usize,
}

impl<const GHASH: bool> Hash<GHASH> {
    /// The hash of no bytes. It is made by a function: see [`State::idle`](super::gcm::State::idle).
    #[inline]
    pub(super) fn new() -> Self {
        Hash { state: Wiped::zero(), pending: Wiped::zero(), len: 0 }
    }

    /// Replaces this hash by a copy of another. Secrets are copied to their final place only.
    #[inline]
    pub(super) fn copy_from(&mut self, other: &Self) {
        self.state.copy_from_slice(&other.state[..]);
        self.bytes()[..other.len].copy_from_slice(&other.pending.as_flattened()[..other.len]);
        self.len = other.len;
    }

    /// Removes all bytes.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.state[0] = [0; 16];
        self.len = 0;
    }

    #[inline(always)]
    fn bytes(&mut self) -> &mut [u8] {
        self.pending.as_flattened_mut()
    }

    /// Removes the pending bytes and returns them, with the state. The caller must hash them into the state.
    #[inline(always)]
    pub(super) fn take(&mut self) -> (&[u8], &mut Block) {
        let len = std::mem::take(&mut self.len);
        (&self.pending.as_flattened()[..len], &mut self.state[0])
    }

    /// Folds whole blocks into the state.
    #[inline]
    fn blocks<K: Kernel>(key: &mut MessageKey<'_, K>, state: &mut Block, blocks: &[u8]) {
        if !blocks.is_empty() {
            let kernel = key.kernel;
            let hash_key = key.hash_key(blocks.len() / 16);
            if GHASH {
                kernel.ghash(hash_key, state, blocks);
            } else {
                kernel.polyval(hash_key, state, blocks, None);
            }
        }
    }

    /// Ends a string: pads the incomplete block with zeros.
    #[inline]
    pub(super) fn pad(&mut self) {
        let len = self.len;
        if !len.is_multiple_of(16) {
            self.bytes()[len..][..16].fill(0);
            self.len = len.next_multiple_of(16);
        }
    }

    /// Hashes the pending blocks. The last one must be complete.
    #[inline]
    pub(super) fn flush<K: Kernel>(&mut self, key: &mut MessageKey<'_, K>) {
        debug_assert_eq!(self.len % 16, 0, "whole blocks");
        let (pending, state) = self.take();
        Self::blocks(key, state, pending);
    }

    /// Hashes the pending blocks and a last block, which holds the lengths, and returns the hash.
    #[inline]
    pub(super) fn finish<K: Kernel>(&mut self, key: &mut MessageKey<'_, K>, lengths: &Block) -> &Block {
        self.append(lengths);
        self.flush(key);
        &self.state[0]
    }

    /// Appends at most 16 bytes of an incomplete block as a number.
    ///
    /// # Safety
    /// `len` is at most 16, and at most [`PENDING`] bytes are pending.
    #[inline(always)]
    pub(super) unsafe fn append_number(&mut self, value: u128, len: usize) {
        let at = self.len;
        // SAFETY: the caller guarantees room for 16 bytes after the pending ones.
        unsafe { partial::store(value, self.bytes()[at..][..16].as_mut_ptr(), len) };
        self.len += len;
    }

    /// The memory after the pending bytes, where a kernel may write a vector.
    ///
    /// # Panics
    /// If more than [`PENDING`] + 16 - [`LARGEST_VECTOR`] bytes are pending.
    #[inline(always)]
    pub(super) fn room(&mut self) -> &mut [u8; LARGEST_VECTOR] {
        let at = self.len;
        self.bytes()[at..].first_chunk_mut().expect("enough room")
    }

    /// Appends bytes to the pending bytes, which must have room for them.
    #[inline(always)]
    fn append(&mut self, bytes: &[u8]) {
        let at = self.len;
        let place = &mut self.bytes()[at..][..bytes.len()];
        // SAFETY: both slices have this length, and they do not overlap, since one is borrowed exclusively.
        unsafe { partial::copy(bytes.as_ptr(), place.as_mut_ptr(), bytes.len()) };
        self.len += bytes.len();
    }

    /// Adds any number of bytes; whole blocks are hashed when they no longer fit into the pending bytes.
    #[inline]
    pub(super) fn absorb<K: Kernel>(&mut self, key: &mut MessageKey<'_, K>, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.len + bytes.len() <= PENDING {
            return self.append(bytes);
        }
        let (head, rest) = bytes.split_at(self.len.next_multiple_of(16) - self.len);
        self.append(head);
        self.flush(key);
        let (blocks, tail) = rest.split_at(rest.len() & !15);
        Self::blocks(key, &mut self.state[0], blocks);
        self.append(tail);
    }
}
