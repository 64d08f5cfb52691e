//! Incremental GCM on a kernel (SP 800-38D, 7.1 and 7.2). It uses the fused loop of the kernel if there is one, otherwise
//! the kernel's CTR and GHASH.

use zeroize::{Zeroize, Zeroizing};

use super::SingleStreamKernel;
use crate::boxed;
use crate::counter::{Counting, Low32};
use crate::kernel::{Block, Span};

/// Number of bytes that one call of CTR and one call of GHASH process; they stay in the L1 cache.
const CHUNK: usize = 16 << 10;

/// A CTR function that the caller supplies, for whole blocks.
pub(super) type Ctr32<'a> = &'a mut dyn FnMut(&mut Block, Span<'_>);

/// A key and the state of a message, for any kernel. The caller checks the order of calls and the limits on lengths.
pub(super) trait Composed: Send + Sync {
    /// Replaces the key. Returns false if memory cannot be allocated; no key is set then.
    fn set_key(&mut self, key: &[u8]) -> bool;
    /// Starts a message.
    fn start(&mut self, iv: &[u8]);
    /// Adds additional data.
    fn aad(&mut self, aad: &[u8]);
    /// Ends the additional data: pads them to a whole block.
    fn pad(&mut self);
    /// Encrypts or decrypts data.
    fn update(&mut self, encrypt: bool, data: Span<'_>, ctr32: Option<Ctr32<'_>>);
    /// The tag; `aad` and `data` are the lengths in bytes.
    fn tag(&mut self, aad: u64, data: u64) -> Block;
    /// An independent copy of the current state.
    fn duplicate(&self) -> Option<Box<dyn Composed>>;
}

/// A key and the state of a message.
struct Gcm<K: SingleStreamKernel> {
    kernel: K,
    schedule: K::Schedule,
    hash_key: K::HashKey,
    /// The hash, XORed with the bytes of a block that is not yet complete.
    hash: Block,
    /// Number of bytes in the incomplete block.
    partial: usize,
    counter: Block,
    /// The keystream of the incomplete block, if it is a block of data.
    keystream: Block,
    /// The encrypted J0, which is XORed with the hash to give the tag.
    mask: Block,
}

impl<K: SingleStreamKernel> Drop for Gcm<K> {
    fn drop(&mut self) {
        self.hash.zeroize();
        self.keystream.zeroize();
        self.mask.zeroize();
    }
}

/// The schedule and the hash key of an AES key.
fn keys<K: SingleStreamKernel>(kernel: K, key: &[u8]) -> Option<(K::Schedule, K::HashKey)> {
    let schedule = kernel.try_expand_to_encrypt(key)?;
    let mut h = Zeroizing::new([0; 16]);
    kernel.encrypt_block(&schedule, &mut h);
    let hash_key = kernel.try_hash_key(&h)?;
    Some((schedule, hash_key))
}

/// Allocates GCM on a kernel; `None` if memory cannot be allocated.
pub(super) fn new<K: SingleStreamKernel>(kernel: K, key: &[u8]) -> Option<Box<dyn Composed>> {
    let (schedule, hash_key) = keys(kernel, key)?;
    let [hash, counter, keystream, mask] = [[0; 16]; 4];
    let gcm = Gcm { kernel, schedule, hash_key, hash, partial: 0, counter, keystream, mask };
    Some(boxed::try_new(gcm)?)
}

impl<K: SingleStreamKernel> Gcm<K> {
    fn next_counter(&mut self) {
        self.counter = Low32::advance(u128::from_be_bytes(self.counter), 1).to_be_bytes();
    }

    /// Adds bytes to the incomplete block. The bytes must fit in the rest of the block.
    fn add(&mut self, bytes: &[u8]) {
        for (hash, byte) in self.hash[self.partial..].iter_mut().zip(bytes) {
            *hash ^= byte;
        }
        self.partial += bytes.len();
        if self.partial == 16 {
            self.complete();
        }
    }

    /// Hashes the incomplete block, padded with zeros.
    fn complete(&mut self) {
        self.partial = 0;
        self.hash(&[0; 16]);
    }

    /// Folds whole blocks into the hash.
    fn hash(&mut self, blocks: &[u8]) {
        self.kernel.ensure_powers(&mut self.hash_key, blocks.len() / 16);
        self.kernel.ghash(&self.hash_key, &mut self.hash, blocks);
    }

    /// Hashes bytes of any length.
    fn absorb(&mut self, mut bytes: &[u8]) {
        if self.partial > 0 {
            let (head, rest) = bytes.split_at(bytes.len().min(16 - self.partial));
            self.add(head);
            bytes = rest;
        }
        let (blocks, tail) = bytes.split_at(bytes.len() & !15);
        self.hash(blocks);
        self.add(tail);
    }

    /// Encrypts or decrypts bytes of the incomplete block. The bytes must fit in the rest of the block.
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
}

impl<K: SingleStreamKernel> Composed for Gcm<K> {
    fn set_key(&mut self, key: &[u8]) -> bool {
        let mut h = Zeroizing::new([0; 16]);
        if !self.kernel.expand_to_encrypt_into(key, &mut self.schedule) {
            return false;
        }
        self.kernel.encrypt_block(&self.schedule, &mut h);
        self.kernel.hash_key_into(&h, &mut self.hash_key)
    }

    fn start(&mut self, iv: &[u8]) {
        self.hash = [0; 16];
        self.partial = 0;
        if iv.len() == 12 {
            self.counter[..12].copy_from_slice(iv);
            self.counter[12..].copy_from_slice(&[0, 0, 0, 1]);
        } else {
            self.absorb(iv);
            self.pad();
            self.absorb(&(8 * iv.len() as u128).to_be_bytes());
            self.counter = std::mem::take(&mut self.hash);
        }
        self.mask = self.counter;
        self.kernel.encrypt_block(&self.schedule, &mut self.mask);
        self.next_counter();
    }

    fn aad(&mut self, aad: &[u8]) {
        self.absorb(aad);
    }

    fn pad(&mut self) {
        if self.partial > 0 {
            self.complete();
        }
    }

    fn update(&mut self, encrypt: bool, mut data: Span<'_>, mut ctr32: Option<Ctr32<'_>>) {
        if self.partial > 0 {
            let at = data.len().min(16 - self.partial);
            let (head, rest) = data.split_at(at);
            self.partial_block(encrypt, head);
            data = rest;
        }
        if K::GCM_STEP > 0 && data.len() >= K::GCM_STEP && ctr32.is_none() {
            let at = data.len() / K::GCM_STEP * K::GCM_STEP;
            let (steps, rest) = data.split_at(at);
            let (counter, hash) = (&mut self.counter, &mut self.hash);
            self.kernel.gcm(&self.schedule, &mut self.hash_key, encrypt, counter, hash, steps);
            data = rest;
        }
        while data.len() >= 16 {
            let at = (data.len() & !15).min(CHUNK);
            let (blocks, rest) = data.split_at(at);
            let (src, dst) = (blocks.src(), blocks.dst());
            if !encrypt {
                // SAFETY: the span is valid for reads of its length, and nothing writes to it during the call.
                let ciphertext = unsafe { std::slice::from_raw_parts(src, at) };
                self.hash(ciphertext);
            }
            match &mut ctr32 {
                Some(ctr32) => ctr32(&mut self.counter, blocks),
                None => self.kernel.ctr32(&self.schedule, &mut self.counter, blocks),
            }
            if encrypt {
                // SAFETY: the span is valid for its length and was written by CTR; nothing else writes to it.
                let ciphertext = unsafe { std::slice::from_raw_parts(dst, at) };
                self.hash(ciphertext);
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
                    self.kernel.encrypt_block(&self.schedule, &mut self.keystream);
                    self.next_counter();
                }
            }
            self.partial_block(encrypt, data);
        }
    }

    fn tag(&mut self, aad: u64, data: u64) -> Block {
        self.pad();
        let lengths = u128::from(8 * aad) << 64 | u128::from(8 * data);
        self.hash(&lengths.to_be_bytes());
        std::array::from_fn(|i| self.hash[i] ^ self.mask[i])
    }

    fn duplicate(&self) -> Option<Box<dyn Composed>> {
        Some(boxed::try_new(Gcm {
            kernel: self.kernel,
            schedule: K::duplicate(&self.schedule)?,
            hash_key: K::duplicate_hash_key(&self.hash_key)?,
            hash: self.hash,
            partial: self.partial,
            counter: self.counter,
            keystream: self.keystream,
            mask: self.mask,
        })?)
    }
}
