//! GCM of one message on a kernel (SP 800-38D, 7.1 and 7.2), for messages in one call and in pieces. It uses the fused loop
//! of the kernel if there is one, otherwise the kernel's CTR and GHASH.

use crate::counter::GcmCounter;
use crate::inline::SingleStreamKernel;
use crate::kernel::{Block, Span};
use crate::partial;
use crate::wiped::Wiped;

/// Number of bytes that one call of CTR and one call of GHASH process; they stay in the L1 cache.
pub(crate) const CHUNK: usize = 16 << 10;

/// Number of steps of the shortest data for which the fused loop is used if all powers of H have been computed.
pub(crate) const SHORTEST_FUSED: usize = 2;

/// A CTR function that the caller supplies, for whole blocks.
pub(crate) type Ctr32<'a> = &'a mut dyn FnMut(&mut Block, Span<'_>);

/// The powers of the hash key.
pub(crate) enum Powers<'k, H> {
    /// All powers have been computed; the hash key may be shared.
    All(&'k H),
    /// Missing powers are computed when a call needs them.
    Some(&'k mut H),
}

impl<'k, H> Powers<'k, H> {
    /// The same powers, borrowed for a call.
    #[inline(always)]
    fn reborrow(&mut self) -> Powers<'_, H> {
        match self {
            Powers::All(key) => Powers::All(key),
            Powers::Some(key) => Powers::Some(key),
        }
    }

    /// The hash key with the powers that a call on `blocks` blocks needs.
    #[inline]
    pub(crate) fn for_blocks<K: SingleStreamKernel<HashKey = H>>(self, kernel: K, blocks: usize) -> &'k H {
        match self {
            Powers::All(key) => key,
            Powers::Some(key) => {
                kernel.ensure_powers(key, blocks);
                key
            }
        }
    }
}

/// The round keys and the hash key of a message.
pub(crate) struct MessageKey<'k, K: SingleStreamKernel> {
    pub(crate) kernel: K,
    pub(crate) schedule: &'k K::Schedule,
    pub(crate) powers: Powers<'k, K::HashKey>,
}

impl<K: SingleStreamKernel> MessageKey<'_, K> {
    /// The hash key with the powers that a call on `blocks` blocks needs.
    #[inline]
    pub(crate) fn hash_key(&mut self, blocks: usize) -> &K::HashKey {
        self.powers.reborrow().for_blocks(self.kernel, blocks)
    }

    /// Folds whole blocks into a hash.
    #[inline]
    fn hash(&mut self, state: &mut Block, blocks: &[u8]) {
        if !blocks.is_empty() {
            let kernel = self.kernel;
            kernel.ghash(self.hash_key(blocks.len() / 16), state, blocks);
        }
    }
}

/// The state of a message that [`SingleStreamKernel::gcm_short`] uses.
pub(crate) struct Progress<'m> {
    /// If a mask is given, `counter` is J0, and J0 is encrypted into the mask first.
    pub(crate) mask: Option<&'m mut Block>,
    pub(crate) counter: &'m mut Block,
    pub(crate) hash: &'m mut Block,
    /// At most seven blocks that are hashed before the data.
    pub(crate) before: &'m [u8],
}

/// Maximum number of bytes that wait to be hashed. With the block of lengths, they are two vectors of the largest size.
pub(crate) const PENDING: usize = 7 * 16;

/// Indices of [`State::encrypted`]. The mask comes first, because J0 precedes the first counter.
const MASK: usize = 0;
const KEYSTREAM: usize = 1;

/// The state of a message. The caller checks the order of calls and the limits on lengths.
pub(crate) struct State {
    hash: Wiped<1>,
    /// Additional data and ciphertext that have not been hashed yet. A short message is hashed in one call at its end, which
    /// reduces once. The last 16 bytes have room for padding.
    pending: [u8; PENDING + 16],
    /// Number of pending bytes, at most [`PENDING`]. The last block may be incomplete.
    len: usize,
    counter: GcmCounter,
    /// True if `counter` is J0 and the mask has not been computed.
    lacks_mask: bool,
    /// The encrypted J0, which is XORed with the hash to give the tag; and the keystream of the incomplete block, if it is a
    /// block of data.
    encrypted: Wiped<2>,
}

impl State {
    /// The state before the first message.
    #[inline]
    pub(crate) fn idle() -> State {
        let counter = GcmCounter { block: [0; 16], is_public: false };
        let (hash, encrypted) = (Wiped::zero(), Wiped::zero());
        State { hash, pending: [0; PENDING + 16], len: 0, counter, lacks_mask: false, encrypted }
    }

    /// Replaces this state by a copy of another. Secrets are copied to their final place only.
    #[inline]
    pub(crate) fn copy_from(&mut self, other: &State) {
        let State { hash, pending, len, counter, lacks_mask, encrypted } = other;
        self.hash.copy_from_slice(&hash[..]);
        self.pending[..*len].copy_from_slice(&pending[..*len]);
        self.encrypted.copy_from_slice(&encrypted[..]);
        self.counter.set(counter.block, counter.is_public);
        (self.len, self.lacks_mask) = (*len, *lacks_mask);
    }

    /// Starts a message. J0 is encrypted later, together with the first data.
    #[inline]
    pub(crate) fn start<K: SingleStreamKernel>(&mut self, mut key: MessageKey<'_, K>, iv: &[u8]) {
        self.hash[0] = [0; 16];
        self.len = 0;
        if let Ok(nonce) = <&[u8; 12]>::try_from(iv) {
            self.counter.set(counter_block(nonce, 1), true);
        } else {
            self.absorb(&mut key, iv);
            self.pad();
            self.absorb(&mut key, &(8 * iv.len() as u128).to_be_bytes());
            self.flush(&mut key);
            self.counter.set(std::mem::take(&mut self.hash[0]), false);
        }
        self.lacks_mask = true;
    }

    /// Computes the mask if it is missing.
    #[inline]
    fn ensure_mask<K: SingleStreamKernel>(&mut self, key: &MessageKey<'_, K>) {
        if std::mem::take(&mut self.lacks_mask) {
            let mask = &mut self.encrypted[MASK];
            *mask = [0; 16];
            key.kernel.ctr32(key.schedule, &mut self.counter.block, Span::in_place(mask));
        }
    }

    /// Computes the keystream of a block, and the mask if it is missing.
    #[inline]
    fn next_keystream<K: SingleStreamKernel>(&mut self, key: &MessageKey<'_, K>) {
        let first = if std::mem::take(&mut self.lacks_mask) { MASK } else { KEYSTREAM };
        let blocks = &mut self.encrypted[first..];
        blocks.fill([0; 16]);
        key.kernel.ctr32(key.schedule, &mut self.counter.block, Span::in_place(blocks.as_flattened_mut()));
    }

    /// Starts a message with a nonce of 12 bytes, whose mask (the encrypted J0) is known.
    #[inline]
    pub(crate) fn start_masked(&mut self, nonce: &[u8; 12], mask: &Block) {
        self.hash[0] = [0; 16];
        self.len = 0;
        self.counter.set(counter_block(nonce, 2), true);
        self.encrypted[MASK] = *mask;
        self.lacks_mask = false;
    }

    /// Ends the additional data or the data: pads the incomplete block with zeros.
    #[inline]
    pub(crate) fn pad(&mut self) {
        self.pending[self.len..][..16].fill(0);
        self.len = self.len.next_multiple_of(16);
    }

    /// Hashes the pending blocks. The last one must be complete.
    #[inline]
    fn flush<K: SingleStreamKernel>(&mut self, key: &mut MessageKey<'_, K>) {
        debug_assert_eq!(self.len % 16, 0, "whole blocks");
        key.hash(&mut self.hash[0], &self.pending[..self.len]);
        self.len = 0;
    }

    /// Appends bytes to the pending ones.
    #[inline(always)]
    fn append(&mut self, bytes: &[u8]) {
        let place = &mut self.pending[self.len..][..bytes.len()];
        // SAFETY: both slices have this length, and they do not overlap, since one is borrowed exclusively.
        unsafe { partial::copy(bytes.as_ptr(), place.as_mut_ptr(), bytes.len()) };
        self.len += bytes.len();
    }

    /// Adds additional data or ciphertext.
    #[inline]
    pub(crate) fn absorb<K: SingleStreamKernel>(&mut self, key: &mut MessageKey<'_, K>, bytes: &[u8]) {
        if self.len + bytes.len() <= PENDING {
            return self.append(bytes);
        }
        let (head, rest) = bytes.split_at(self.len.next_multiple_of(16) - self.len);
        self.append(head);
        self.flush(key);
        let (blocks, tail) = rest.split_at(rest.len() & !15);
        key.hash(&mut self.hash[0], blocks);
        self.append(tail);
    }

    /// Encrypts or decrypts bytes of the incomplete block. The bytes must fit in the rest of the block.
    #[inline]
    fn partial_block(&mut self, encrypt: bool, data: Span<'_>) {
        let len = data.len();
        let keystream = u128::from_le_bytes(self.encrypted[KEYSTREAM]) >> (8 * (self.len % 16));
        // SAFETY: the span is valid for reads and writes of its length, which is at most 16. There is room for 16 bytes after
        // the pending ones.
        unsafe {
            let text = partial::load(data.src(), len);
            let result = text ^ keystream;
            partial::store(result, data.dst(), len);
            let ciphertext = if encrypt { result } else { text };
            partial::store(ciphertext, self.pending[self.len..][..16].as_mut_ptr(), len);
        }
        self.len += len;
    }

    /// Encrypts or decrypts at most one block, which are all data of the message. `keystream` is the encrypted counter. The
    /// additional data have been padded.
    #[inline]
    pub(crate) fn only_block<K: SingleStreamKernel>(
        &mut self,
        key: &mut MessageKey<'_, K>,
        keystream: &Block,
        encrypt: bool,
        data: Span<'_>,
    ) {
        if self.len == PENDING {
            self.flush(key);
        }
        self.encrypted[KEYSTREAM] = *keystream;
        self.partial_block(encrypt, data);
    }

    /// Encrypts or decrypts data.
    #[inline(always)]
    pub(crate) fn update<K: SingleStreamKernel>(
        &mut self,
        key: &mut MessageKey<'_, K>,
        encrypt: bool,
        mut data: Span<'_>,
        ctr32: Option<Ctr32<'_>>,
    ) {
        if !self.len.is_multiple_of(16) {
            let at = data.len().min(16 - self.len % 16);
            let (head, rest) = data.split_at(at);
            self.partial_block(encrypt, head);
            data = rest;
        }
        if K::GCM_STEP == 0 || ctr32.is_some() {
            return self.update_by_passes(key, encrypt, data, ctr32);
        }
        let from = match key.powers {
            Powers::All(_) => SHORTEST_FUSED * K::GCM_STEP,
            Powers::Some(_) => K::GCM_FROM,
        };
        if data.len() >= from {
            self.ensure_mask(key);
            let at = data.len() / K::GCM_STEP * K::GCM_STEP;
            let (steps, rest) = data.split_at(at);
            self.flush(key);
            let (kernel, schedule) = (key.kernel, key.schedule);
            let hash_key = key.hash_key(K::GCM_STEP / 16);
            let (counter, hash) = (&mut self.counter, &mut self.hash[0]);
            kernel.gcm(schedule, hash_key, encrypt, counter, hash, steps);
            data = rest;
        }
        // A single block waits to be hashed with the block of lengths.
        if data.len() > 16 {
            let at = data.len() & !15;
            let (blocks, rest) = data.split_at(at);
            let progress = Progress {
                mask: std::mem::take(&mut self.lacks_mask).then_some(&mut self.encrypted[MASK]),
                counter: &mut self.counter.block,
                hash: &mut self.hash[0],
                before: &self.pending[..std::mem::take(&mut self.len)],
            };
            key.kernel.gcm_short(key.schedule, key.powers.reborrow(), progress, encrypt, blocks);
            data = rest;
        }
        if !data.is_empty() {
            self.next_keystream(key);
            self.last_block(key, encrypt, data);
        }
    }

    /// Encrypts or decrypts at most one block with the keystream of the next block.
    #[inline]
    fn last_block<K: SingleStreamKernel>(
        &mut self,
        key: &mut MessageKey<'_, K>,
        encrypt: bool,
        data: Span<'_>,
    ) {
        if self.len == PENDING {
            self.flush(key);
        }
        self.partial_block(encrypt, data);
    }

    /// Encrypts or decrypts data by CTR and GHASH, without the loops that do both. The last block is complete.
    fn update_by_passes<K: SingleStreamKernel>(
        &mut self,
        key: &mut MessageKey<'_, K>,
        encrypt: bool,
        mut data: Span<'_>,
        mut ctr32: Option<Ctr32<'_>>,
    ) {
        self.ensure_mask(key);
        while data.len() >= 16 {
            let at = (data.len() & !15).min(CHUNK);
            let (blocks, rest) = data.split_at(at);
            let (src, dst) = (blocks.src(), blocks.dst());
            if !encrypt {
                // SAFETY: the span is valid for reads of its length, and nothing writes to it during the call.
                let ciphertext = unsafe { std::slice::from_raw_parts(src, at) };
                self.absorb(key, ciphertext);
            }
            match &mut ctr32 {
                Some(ctr32) => ctr32(&mut self.counter.block, blocks),
                None => key.kernel.ctr32(key.schedule, &mut self.counter.block, blocks),
            }
            if encrypt {
                // SAFETY: the span is valid for its length and was written by CTR; nothing else writes to it.
                let ciphertext = unsafe { std::slice::from_raw_parts(dst, at) };
                self.absorb(key, ciphertext);
            }
            data = rest;
        }
        if !data.is_empty() {
            match &mut ctr32 {
                Some(ctr32) => {
                    let keystream = &mut self.encrypted[KEYSTREAM];
                    *keystream = [0; 16];
                    ctr32(&mut self.counter.block, Span::in_place(keystream));
                }
                None => self.next_keystream(key),
            }
            self.last_block(key, encrypt, data);
        }
    }

    /// The tag; `aad` and `data` are the lengths in bytes.
    #[inline]
    pub(crate) fn tag<K: SingleStreamKernel>(
        &mut self,
        key: &mut MessageKey<'_, K>,
        aad: u64,
        data: u64,
    ) -> Block {
        self.ensure_mask(key);
        self.pad();
        let before = &self.pending[..std::mem::take(&mut self.len)];
        let mask = &self.encrypted[MASK];
        key.kernel.gcm_tag(key.powers.reborrow(), &self.hash[0], before, [8 * aad, 8 * data], mask)
    }
}

/// The counter block of a nonce. It is built in registers, because stores of parts of a block are not forwarded to a load of
/// the whole block.
#[inline(always)]
pub(crate) fn counter_block(nonce: &[u8; 12], number: u32) -> Block {
    // SAFETY: the nonce has 12 bytes.
    let nonce = unsafe { partial::load(nonce.as_ptr(), 12) };
    (nonce | u128::from(number.swap_bytes()) << 96).to_le_bytes()
}
