//! GCM of one message on a kernel (SP 800-38D, 7.1 and 7.2), for messages in one call and in pieces. It uses the fused loop
//! of the kernel if there is one, otherwise the kernel's CTR and GHASH.

use zeroize::Zeroize;

use crate::counter::{Counting, Low32};
use crate::inline::SingleStreamKernel;
use crate::kernel::{Block, Span};

/// Number of bytes that one call of CTR and one call of GHASH process; they stay in the L1 cache.
const CHUNK: usize = 16 << 10;

/// A CTR function that the caller supplies, for whole blocks.
pub(crate) type Ctr32<'a> = &'a mut dyn FnMut(&mut Block, Span<'_>);

/// The powers of the hash key.
pub(crate) enum Powers<'k, H> {
    /// All powers have been computed; the hash key may be shared.
    All(&'k H),
    /// Missing powers are computed when a call needs them.
    Some(&'k mut H),
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
    fn hash_key(&mut self, blocks: usize) -> &K::HashKey {
        match &mut self.powers {
            Powers::All(key) => key,
            Powers::Some(key) => {
                self.kernel.ensure_powers(key, blocks);
                key
            }
        }
    }

    /// Folds whole blocks into a hash.
    #[inline]
    fn hash(&mut self, state: &mut Block, blocks: &[u8]) {
        if !blocks.is_empty() {
            let kernel = self.kernel;
            kernel.ghash(self.hash_key(blocks.len() / 16), state, blocks);
        }
    }

    #[inline]
    fn encrypt(&self, block: &mut Block) {
        self.kernel.encrypt_block(self.schedule, block);
    }
}

/// The state of a message. The caller checks the order of calls and the limits on lengths.
#[derive(Clone, Default)]
pub(crate) struct State {
    /// The hash, XORed with the bytes of a block that has not been multiplied yet.
    hash: Block,
    /// Number of bytes in that block, 0 to 16.
    partial: usize,
    counter: Block,
    /// The keystream of the incomplete block, if it is a block of data.
    keystream: Block,
    /// The encrypted J0, which is XORed with the hash to give the tag.
    mask: Block,
}

impl Drop for State {
    fn drop(&mut self) {
        self.hash.zeroize();
        self.keystream.zeroize();
        self.mask.zeroize();
    }
}

impl State {
    /// Starts a message.
    pub(crate) fn start<K: SingleStreamKernel>(&mut self, mut key: MessageKey<'_, K>, iv: &[u8]) {
        self.hash = [0; 16];
        self.partial = 0;
        if iv.len() == 12 {
            self.counter[..12].copy_from_slice(iv);
            self.counter[12..].copy_from_slice(&[0, 0, 0, 1]);
        } else {
            self.absorb(&mut key, iv);
            self.pad(&mut key);
            self.absorb(&mut key, &(8 * iv.len() as u128).to_be_bytes());
            self.pad(&mut key);
            self.counter = std::mem::take(&mut self.hash);
        }
        self.mask = self.counter;
        key.encrypt(&mut self.mask);
        self.next_counter();
    }

    /// A message with a nonce of 12 bytes, whose mask (the encrypted J0) is known.
    #[inline]
    pub(crate) fn with_mask(nonce: &[u8], mask: &Block) -> State {
        let counter = lockstep_core::gcm::counter_block(nonce, 2);
        State { hash: [0; 16], partial: 0, counter, keystream: [0; 16], mask: *mask }
    }

    fn next_counter(&mut self) {
        self.counter = Low32::advance(u128::from_be_bytes(self.counter), 1).to_be_bytes();
    }

    /// Adds bytes to the incomplete block. The bytes must fit in the rest of the block.
    #[inline]
    fn add(&mut self, bytes: &[u8]) {
        for (hash, byte) in self.hash[self.partial..].iter_mut().zip(bytes) {
            *hash ^= byte;
        }
        self.partial += bytes.len();
    }

    /// Ends the additional data or the data: pads the incomplete block with zeros and hashes it.
    #[inline]
    pub(crate) fn pad<K: SingleStreamKernel>(&mut self, key: &mut MessageKey<'_, K>) {
        if self.partial > 0 {
            self.partial = 0;
            key.hash(&mut self.hash, &[0; 16]);
        }
    }

    /// Hashes the block if it is complete.
    #[inline]
    fn settle<K: SingleStreamKernel>(&mut self, key: &mut MessageKey<'_, K>) {
        if self.partial == 16 {
            self.pad(key);
        }
    }

    /// Adds additional data.
    #[inline]
    pub(crate) fn absorb<K: SingleStreamKernel>(&mut self, key: &mut MessageKey<'_, K>, mut bytes: &[u8]) {
        if self.partial > 0 {
            let (head, rest) = bytes.split_at(bytes.len().min(16 - self.partial));
            self.add(head);
            bytes = rest;
            self.settle(key);
        }
        let (blocks, tail) = bytes.split_at(bytes.len() & !15);
        key.hash(&mut self.hash, blocks);
        self.add(tail);
    }

    /// Encrypts or decrypts bytes of the incomplete block. The bytes must fit in the rest of the block.
    #[inline]
    fn partial_block(&mut self, encrypt: bool, data: Span<'_>) {
        let mut ciphertext = [0; 16];
        for (i, ciphertext) in ciphertext[..data.len()].iter_mut().enumerate() {
            // SAFETY: the byte lies in the span, which is valid for reads and writes.
            unsafe {
                let text = data.src().add(i).read();
                let result = text ^ self.keystream[self.partial + i];
                *ciphertext = if encrypt { result } else { text };
                data.dst().add(i).write(result);
            }
        }
        self.add(&ciphertext[..data.len()]);
    }

    /// Encrypts or decrypts at most one block, which are all data of the message. `keystream` is the encrypted counter. The
    /// additional data have been padded.
    #[inline]
    pub(crate) fn only_block(&mut self, keystream: &Block, encrypt: bool, data: Span<'_>) {
        debug_assert_eq!(self.partial, 0, "the additional data have been padded");
        if data.len() < 16 {
            self.keystream = *keystream;
            return self.partial_block(encrypt, data);
        }
        // SAFETY: the span is valid for reads and writes of its 16 bytes; a Block has alignment 1.
        let text = u128::from_ne_bytes(unsafe { data.src().cast::<Block>().read() });
        let result = text ^ u128::from_ne_bytes(*keystream);
        // SAFETY: as above.
        unsafe { data.dst().cast::<Block>().write(result.to_ne_bytes()) };
        let ciphertext = if encrypt { result } else { text };
        self.hash = (u128::from_ne_bytes(self.hash) ^ ciphertext).to_ne_bytes();
        self.partial = 16;
    }

    /// Encrypts or decrypts data.
    pub(crate) fn update<K: SingleStreamKernel>(
        &mut self,
        key: &mut MessageKey<'_, K>,
        encrypt: bool,
        mut data: Span<'_>,
        mut ctr32: Option<Ctr32<'_>>,
    ) {
        if self.partial > 0 {
            let at = data.len().min(16 - self.partial);
            let (head, rest) = data.split_at(at);
            self.partial_block(encrypt, head);
            data = rest;
            self.settle(key);
        }
        if K::GCM_STEP > 0 && data.len() >= K::GCM_STEP && ctr32.is_none() {
            let at = data.len() / K::GCM_STEP * K::GCM_STEP;
            let (steps, rest) = data.split_at(at);
            let (kernel, schedule) = (key.kernel, key.schedule);
            let hash_key = key.hash_key(K::GCM_STEP / 16);
            kernel.gcm(schedule, hash_key, encrypt, &mut self.counter, &mut self.hash, steps);
            data = rest;
        }
        while data.len() >= 16 {
            let at = (data.len() & !15).min(CHUNK);
            let (blocks, rest) = data.split_at(at);
            let (src, dst) = (blocks.src(), blocks.dst());
            if !encrypt {
                // SAFETY: the span is valid for reads of its length, and nothing writes to it during the call.
                let ciphertext = unsafe { std::slice::from_raw_parts(src, at) };
                key.hash(&mut self.hash, ciphertext);
            }
            match &mut ctr32 {
                Some(ctr32) => ctr32(&mut self.counter, blocks),
                None => key.kernel.ctr32(key.schedule, &mut self.counter, blocks),
            }
            if encrypt {
                // SAFETY: the span is valid for its length and was written by CTR; nothing else writes to it.
                let ciphertext = unsafe { std::slice::from_raw_parts(dst, at) };
                key.hash(&mut self.hash, ciphertext);
            }
            data = rest;
        }
        if !data.is_empty() {
            match &mut ctr32 {
                Some(ctr32) => {
                    self.keystream = [0; 16];
                    ctr32(&mut self.counter, Span::in_place(&mut self.keystream));
                }
                None => {
                    self.keystream = self.counter;
                    key.encrypt(&mut self.keystream);
                    self.next_counter();
                }
            }
            self.partial_block(encrypt, data);
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
        // The incomplete block is in the hash already; a block of zeros stands for it.
        let mut end = [0; 32];
        end[16..].copy_from_slice(&lockstep_core::gcm::lengths_block(aad, data));
        let blocks = if self.partial > 0 { &end[..] } else { &end[16..] };
        self.partial = 0;
        key.hash(&mut self.hash, blocks);
        (u128::from_ne_bytes(self.hash) ^ u128::from_ne_bytes(self.mask)).to_ne_bytes()
    }
}
