//! OCB3 on a kernel (RFC 7253): the state of a message, which arrives at once or in pieces, and batches of messages.

use lockstep_core::key::Key;
use lockstep_core::ocb::{first_offset, nonce_block_of_number, xor};
use lockstep_core::work::{AeadMessage, Tag};
use zeroize::Zeroizing;

use super::finish;
use crate::host::host;
use crate::kernel::ocb::{CHUNK, by_masked_blocks};
use crate::kernel::partial;
use crate::kernel::prepared::schedule;
use crate::kernel::wiped::Wiped;
use crate::kernel::{Block, Kernel, OcbKey, OcbState, Span};

/// Maximum number of blocks for one call of [`Ecb`]: 4 MiB, which suffice to make the cost of a call to a GPU small.
const AT_ONCE: usize = 256 << 10;

/// A function for ECB that the caller supplies. It returns the blocks if it has not processed them.
pub(crate) type Ecb<'a> = &'a mut dyn for<'d> FnMut(Span<'d>) -> Option<Span<'d>>;

/// The keys of a message.
pub(crate) struct OcbKeys<'k, K: Kernel> {
    pub(crate) kernel: K,
    pub(crate) schedule: &'k K::Schedule,
    pub(crate) masks: &'k OcbKey,
}

/// The state of a message. The caller checks the lengths of nonce and tag.
#[derive(Default)]
pub(crate) struct State {
    data: OcbState,
    aad: AadHash,
}

impl State {
    /// Replaces this state by a copy of another, which is written to its final place only.
    pub(crate) fn copy_from(&mut self, other: &State) {
        let State { data, aad } = self;
        data.offset.copy_from_slice(&other.data.offset[..]);
        data.checksum.copy_from_slice(&other.data.checksum[..]);
        data.blocks = other.data.blocks;
        aad.offset.copy_from_slice(&other.aad.offset[..]);
        aad.sum.copy_from_slice(&other.aad.sum[..]);
        aad.partial.copy_from_slice(&other.aad.partial[..]);
        (aad.blocks, aad.partial_len) = (other.aad.blocks, other.aad.partial_len);
    }

    /// Starts a message.
    pub(crate) fn start<K: Kernel>(&mut self, key: &OcbKeys<'_, K>, nonce: &[u8], tag_len: usize) {
        // SAFETY: the nonce is valid for reads of its length. If it is longer than 16 bytes, only 16 bytes are read, and the
        // next call refuses it.
        let number = unsafe { partial::load(nonce.as_ptr(), nonce.len().min(16)) };
        let (block, bottom) = nonce_block_of_number(number, nonce.len(), tag_len);
        let mut ktop = Wiped::<1>::zero();
        ktop[0] = block;
        key.kernel.encrypt_block(key.schedule, &mut ktop[0]);
        *self = State::default();
        self.data.offset[0] = first_offset(&ktop[0], bottom);
    }

    /// Adds associated data of any length.
    pub(crate) fn aad<K: Kernel>(&mut self, key: &OcbKeys<'_, K>, aad: &[u8]) {
        self.aad.update(key, aad);
    }

    /// Encrypts or decrypts whole blocks.
    pub(crate) fn blocks<K: Kernel>(&mut self, key: &OcbKeys<'_, K>, encrypts: bool, data: Span<'_>) {
        key.kernel.ocb(key.schedule, key.masks, &mut self.data, encrypts, data);
    }

    /// Encrypts or decrypts whole blocks by a function of the caller, which gets up to [`AT_ONCE`] masked blocks at once. The kernel
    /// processes blocks that the function returns, and all blocks if there is no memory for the masks.
    pub(crate) fn blocks_by<K: Kernel>(
        &mut self,
        key: &OcbKeys<'_, K>,
        encrypts: bool,
        data: Span<'_>,
        ecb: Ecb<'_>,
    ) {
        let (mut offsets, len) = (Zeroizing::new(Vec::new()), AT_ONCE.min(data.len() / 16));
        if offsets.try_reserve_exact(len).is_err() {
            return self.blocks(key, encrypts, data);
        }
        offsets.resize(len, [0; 16]);
        by_masked_blocks(key.masks, &mut self.data, encrypts, data, &mut offsets, |blocks| {
            if let Some(blocks) = ecb(blocks) {
                key.kernel.ecb(key.schedule, encrypts, blocks);
            }
        });
    }

    /// Encrypts or decrypts the last, partial block of 1 to 15 bytes.
    pub(crate) fn last<K: Kernel>(&mut self, key: &OcbKeys<'_, K>, encrypts: bool, data: Span<'_>) {
        let len = data.len();
        debug_assert!((1..=15).contains(&len), "a partial block");
        xor(&mut self.data.offset[0], &key.masks.masks.star);
        let mut pad = self.data.offset.clone();
        key.kernel.encrypt_block(key.schedule, &mut pad[0]);
        // SAFETY: the span is valid for reads and writes of its length, which is less than 16.
        let (text, result) = unsafe {
            let text = partial::load(data.src(), len);
            let result = text ^ u128::from_le_bytes(pad[0]);
            partial::store(result, data.dst(), len);
            (text, result)
        };
        let plaintext = if encrypts { text } else { result & ((1 << (8 * len)) - 1) };
        xor(&mut self.data.checksum[0], &(plaintext | 0x80 << (8 * len)).to_le_bytes());
    }

    /// Writes the tag of 16 bytes.
    pub(crate) fn tag<K: Kernel>(&self, key: &OcbKeys<'_, K>, tag: &mut Block) {
        // The hash of the associated data comes first: it does not wait for the data.
        let mut hash = Wiped::<1>::zero();
        self.aad.finish(key, &mut hash[0]);
        *tag = self.data.checksum[0];
        xor(tag, &self.data.offset[0]);
        xor(tag, &key.masks.masks.dollar);
        key.kernel.encrypt_block(key.schedule, tag);
        xor(tag, &hash[0]);
    }
}

/// HASH of associated data (RFC 7253, section 4.1), in pieces.
#[derive(Default)]
struct AadHash {
    offset: Wiped<1>,
    sum: Wiped<1>,
    blocks: u64,
    /// The incomplete block at the end of the associated data so far, and its number of bytes.
    partial: Wiped<1>,
    partial_len: usize,
}

impl AadHash {
    /// Adds associated data.
    fn update<K: Kernel>(&mut self, key: &OcbKeys<'_, K>, mut bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.partial_len > 0 {
            let (head, rest) = bytes.split_at(bytes.len().min(16 - self.partial_len));
            self.partial[0][self.partial_len..][..head.len()].copy_from_slice(head);
            self.partial_len += head.len();
            bytes = rest;
            if self.partial_len < 16 {
                return;
            }
            self.partial_len = 0;
            let block = self.partial.clone();
            self.whole(key, &block[0]);
        }
        let (blocks, tail) = bytes.split_at(bytes.len() & !15);
        self.whole(key, blocks);
        self.partial[0][..tail.len()].copy_from_slice(tail);
        self.partial_len = tail.len();
    }

    fn whole<K: Kernel>(&mut self, key: &OcbKeys<'_, K>, blocks: &[u8]) {
        if blocks.is_empty() {
            return;
        }
        let mut masked = Wiped::<CHUNK>::zero();
        for chunk in blocks.as_chunks().0.chunks(CHUNK) {
            for (masked, block) in masked.iter_mut().zip(chunk) {
                self.blocks += 1;
                key.masks.masks.advance(&mut self.offset[0], self.blocks);
                *masked = *block;
                xor(masked, &self.offset[0]);
            }
            let masked = &mut masked[..chunk.len()];
            key.kernel.ecb(key.schedule, true, Span::in_place(masked.as_flattened_mut()));
            masked.iter().for_each(|block| xor(&mut self.sum[0], block));
        }
    }

    /// Writes the hash of all bytes so far.
    fn finish<K: Kernel>(&self, key: &OcbKeys<'_, K>, sum: &mut Block) {
        *sum = [0; 16];
        if self.partial_len > 0 {
            sum[..self.partial_len].copy_from_slice(&self.partial[0][..self.partial_len]);
            sum[self.partial_len] = 0x80;
            xor(sum, &self.offset[0]);
            xor(sum, &key.masks.masks.star);
            key.kernel.encrypt_block(key.schedule, sum);
        }
        xor(sum, &self.sum[0]);
    }
}

/// The masks of an AES key. They are the same for all kernels.
pub(super) fn masks<K: Kernel>(kernel: K, key: &Key) -> &OcbKey {
    key.prepared::<Box<OcbKey>>(|key| {
        let mut star = Wiped::<1>::zero();
        kernel.encrypt_block(schedule(kernel, key), &mut star[0]);
        OcbKey::new(&star[0])
    })
}

/// Processes messages one after another.
pub(super) fn run<K: Kernel>(kernel: K, messages: &mut [AeadMessage<'_>]) {
    let mut state = State::default();
    for message in messages {
        let schedule = schedule(kernel, message.key);
        let key = OcbKeys { kernel, schedule, masks: masks(kernel, message.key) };
        let encrypts = matches!(message.tag, Tag::Write(_));
        state.start(&key, message.nonce, message.tag.len());
        state.aad(&key, message.aad);
        let data = host(&mut message.data).into_span();
        let whole = data.len() & !15;
        let (blocks, tail) = data.split_at(whole);
        state.blocks(&key, encrypts, blocks);
        if !tail.is_empty() {
            state.last(&key, encrypts, tail);
        }
        // The right tag of a forged message is a secret.
        let mut computed = Wiped::<1>::zero();
        state.tag(&key, &mut computed[0]);
        finish(message, &computed[0]);
    }
}
