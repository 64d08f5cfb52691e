//! Fused GCM-SIV tasks (RFC 8452) on a kernel: batches of whole messages.
//!
//! Each message has its own keys, which are derived from its nonce. The keys of a group of messages are expanded interleaved,
//! in memory that is reused.
//!
//! A message can be encrypted only after it has been hashed, and the two use different execution units. If the kernel has a
//! fused loop, a message of a group is therefore encrypted while the next one is hashed.

use std::slice::from_mut;

use lockstep_core::Result;
use lockstep_core::data::Data;
use lockstep_core::gcm::settle;
use lockstep_core::key::{Block, Key, KeySize};
use lockstep_core::work::{AeadMessage, FusedAead, Status, Tag};

use crate::gcm::{CHUNK, MessageKey, Powers};
use crate::inline::SingleStreamKernel;
use crate::kernel::Span;
use crate::passes::{check_host, host, schedule};
use crate::rfc8452::ghash_key_of_polyval_key;
use crate::threads;
use crate::wiped::Wiped;

/// Number of messages of a group.
const GROUP: usize = 8;

/// Seals the messages that have a tag to write, and opens those that have a tag to compare with. The output of a message with
/// a wrong tag is zeroed before the call returns.
pub(crate) fn run<K: SingleStreamKernel>(
    kernel: K,
    messages: &mut [AeadMessage<'_>],
    threads: usize,
) -> Result<()> {
    messages.iter().try_for_each(check)?;
    if let [message] = messages {
        // The key is expanded once, because the next message may use it too.
        schedule(kernel, message.key);
        let mut places = kernel.blank();
        let (schedules, hash_keys) = (from_mut(&mut places.0), from_mut(&mut places.1));
        run_group(kernel, schedules, hash_keys, messages);
        return Ok(());
    }
    // The key is expanded before threads are started, because the threads may leave no memory for it.
    for pair in messages.windows(2).filter(|pair| std::ptr::eq(pair[0].key, pair[1].key)) {
        schedule(kernel, pair[0].key);
    }
    threads::spread_messages(messages, threads, &|messages| {
        // The memory never moves, so that no copy of a key is left behind.
        let (mut schedules, mut hash_keys) = (Vec::with_capacity(GROUP), Vec::with_capacity(GROUP));
        for _ in 0..messages.len().min(GROUP) {
            let (schedule, hash_key) = kernel.blank();
            schedules.push(schedule);
            hash_keys.push(hash_key);
        }
        messages.chunks_mut(GROUP).for_each(|group| run_group(kernel, &mut schedules, &mut hash_keys, group));
    });
    Ok(())
}

/// Checks that the data are in host memory and writable, and that nonce and tag have allowed lengths.
fn check(message: &AeadMessage<'_>) -> Result<()> {
    check_host(&message.data, false)?;
    FusedAead::GcmSivSeal.check_lengths(message)
}

/// The keys of a message: the POLYVAL key in the form of a GHASH key, and the key of AES.
struct Derived {
    hash: Wiped<1>,
    encryption: Wiped<2>,
}

impl Derived {
    /// Derives the keys of a message (RFC 8452, section 4).
    #[inline]
    fn new<K: SingleStreamKernel>(
        kernel: K,
        schedule: &K::Schedule,
        nonce: &[u8; 12],
        size: KeySize,
    ) -> Derived {
        // Half of each block is used: two blocks make the hash key, and the others the key of AES.
        let count = 2 + size.bytes() / 8;
        let mut blocks = Wiped::<6>::zero();
        for (number, block) in blocks[..count].iter_mut().enumerate() {
            *block = (nonce_number(nonce) << 32 | number as u128).to_le_bytes();
        }
        kernel.ecb_encrypt(schedule, Span::in_place(blocks[..count].as_flattened_mut()));
        let half = |i: usize| u128::from(u128::from_le_bytes(blocks[i]) as u64);
        let pair = |i: usize| (half(i) | half(i + 1) << 64).to_le_bytes();
        let (mut hash, mut encryption) = (Wiped::zero(), Wiped::zero());
        hash[0] = ghash_key_of_polyval_key(&pair(0));
        encryption[0] = pair(2);
        // For shorter keys, the last blocks are zeros.
        encryption[1] = pair(4);
        Derived { hash, encryption }
    }
}

/// The nonce as a little-endian number.
#[inline]
fn nonce_number(nonce: &[u8; 12]) -> u128 {
    let (low, high) = nonce.split_at(8);
    let low = u64::from_le_bytes(low.try_into().expect("8 bytes"));
    let high = u32::from_le_bytes(high.try_into().expect("4 bytes"));
    u128::from(low) | u128::from(high) << 64
}

/// The nonce of a message that [`check`] has accepted.
fn nonce<'d>(message: &AeadMessage<'d>) -> &'d [u8; 12] {
    message.nonce.try_into().expect("checked")
}

/// Processes messages, at most [`GROUP`]. `schedules` and `hash_keys` are places for their keys.
fn run_group<K: SingleStreamKernel>(
    kernel: K,
    schedules: &mut [K::Schedule],
    hash_keys: &mut [K::HashKey],
    messages: &mut [AeadMessage<'_>],
) {
    let derive = |message: &AeadMessage<'_>, place: &mut K::Schedule| {
        let (key, nonce): (&Key, _) = (message.key, nonce(message));
        match key.already_prepared() {
            Some(schedule) => Derived::new(kernel, schedule, nonce, key.size()),
            None => {
                // Only one message of the batch uses this key.
                kernel.expand_each(&[key.bytes()], from_mut(place));
                Derived::new(kernel, place, nonce, key.size())
            }
        }
    };
    let count = messages.len();
    let (schedules, hash_keys) = (&mut schedules[..count], &mut hash_keys[..count]);
    if let ([message], [schedule], [hash_key]) = (&mut *messages, &mut *schedules, &mut *hash_keys) {
        let derived = derive(message, schedule);
        let key = &derived.encryption.as_flattened()[..message.key.size().bytes()];
        kernel.expand_each(&[key], from_mut(schedule));
        kernel.hash_keys_into(&*derived.hash, from_mut(hash_key));
        let powers = Powers::Some(hash_key);
        return run_one(&mut Polyval::new(MessageKey { kernel, schedule, powers }), message, None);
    }
    let mut hash = Wiped::<GROUP>::zero();
    let mut encryption: [Wiped<2>; GROUP] = std::array::from_fn(|_| Wiped::zero());
    for (i, (message, schedule)) in messages.iter().zip(&mut *schedules).enumerate() {
        let derived = derive(message, schedule);
        hash[i] = derived.hash[0];
        *encryption[i] = *derived.encryption;
    }
    let keys: [&[u8]; GROUP] = std::array::from_fn(|i| {
        let size = messages[i.min(count - 1)].key.size();
        &encryption[i].as_flattened()[..size.bytes()]
    });
    kernel.expand_each(&keys[..count], schedules);
    kernel.hash_keys_into(&hash[..count], hash_keys);
    let mut hashes = schedules.iter().zip(hash_keys).map(|(schedule, hash_key)| {
        Polyval::new(MessageKey { kernel, schedule, powers: Powers::Some(hash_key) })
    });
    let (mut messages, mut next) = (messages, hashes.next());
    while let (Some((message, later)), Some(mut polyval)) = (messages.split_first_mut(), next) {
        next = hashes.next();
        run_one(&mut polyval, message, next.as_mut().zip(later.first()));
        messages = later;
    }
}

/// Processes a message. `beside` is the next message and its hash.
fn run_one<K: SingleStreamKernel>(
    polyval: &mut Polyval<'_, K>,
    message: &mut AeadMessage<'_>,
    beside: Option<(&mut Polyval<'_, K>, &AeadMessage<'_>)>,
) {
    let nonce = nonce(message);
    let mut data = host(&mut message.data);
    let lengths = (message.aad.len(), data.len());
    if polyval.hashed == 0 {
        polyval.absorb(message.aad);
        polyval.pad();
    }
    // The right tag of a forged message is a secret.
    let mut computed = Wiped::<1>::zero();
    match &message.tag {
        Tag::Write(_) => {
            polyval.absorb(&data.input()[polyval.hashed..]);
            computed[0] = polyval.tag(lengths, nonce);
            encrypt(&polyval.key, &computed[0], data.reborrow().into_span(), beside);
        }
        Tag::Expect(tag) => {
            let tag: &Block = (*tag).try_into().expect("checked");
            polyval.decrypt(tag, data.reborrow().into_span());
            computed[0] = polyval.tag(lengths, nonce);
        }
    }
    message.status = settle(&mut message.tag, &computed[0]);
    if message.status != Status::Done {
        data.output().fill(0);
    }
}

/// The first counter block of a message (RFC 8452, section 4).
fn first_counter(tag: &Block) -> Block {
    (u128::from_le_bytes(*tag) | 1 << 127).to_le_bytes()
}

/// CTR over the data of a message. As much of the next message as possible is hashed in the same loop, if it is sealed too.
fn encrypt<K: SingleStreamKernel>(
    key: &MessageKey<'_, K>,
    tag: &Block,
    mut data: Span<'_>,
    beside: Option<(&mut Polyval<'_, K>, &AeadMessage<'_>)>,
) {
    let (kernel, schedule, mut counter) = (key.kernel, key.schedule, first_counter(tag));
    if let Some((polyval, next)) = beside
        && let (Data::Host(text), Tag::Write(_)) = (&next.data, &next.tag)
        && K::GCM_SIV_STEP > 0
        && data.len().min(text.len()) >= K::GCM_SIV_STEP
    {
        let at = data.len().min(text.len()) / K::GCM_SIV_STEP * K::GCM_SIV_STEP;
        let (steps, rest) = data.split_at(at);
        polyval.absorb(next.aad);
        polyval.pad();
        polyval.flush();
        let hash_key = polyval.key.hash_key(K::GCM_SIV_STEP / 16);
        let text = &text.input()[..at];
        kernel.gcm_siv_seal(schedule, &mut counter, steps, hash_key, &mut polyval.hash[0], text);
        polyval.hashed = at;
        data = rest;
    }
    kernel.ctr_little32(schedule, &mut counter, data);
}

/// Maximum number of bytes that wait to be hashed. With the block of lengths, they are two vectors of the largest size.
const PENDING: usize = 7 * 16;

/// POLYVAL of a message, and its keys.
struct Polyval<'k, K: SingleStreamKernel> {
    key: MessageKey<'k, K>,
    hash: Wiped<1>,
    /// Additional data and plaintext that have not been hashed yet. A short message is hashed in one call at its end, which
    /// reduces once. The last block is for the lengths.
    pending: Wiped<{ PENDING / 16 + 1 }>,
    /// Number of pending bytes, at most [`PENDING`]. The last block may be incomplete.
    len: usize,
    /// Number of bytes of the plaintext that were hashed while the message before was encrypted. If it is not 0, the
    /// additional data have been hashed too.
    hashed: usize,
}

impl<'k, K: SingleStreamKernel> Polyval<'k, K> {
    fn new(key: MessageKey<'k, K>) -> Self {
        Polyval { key, hash: Wiped::zero(), pending: Wiped::zero(), len: 0, hashed: 0 }
    }

    /// Adds whole blocks to the hash.
    fn hash(&mut self, blocks: &[u8]) {
        if !blocks.is_empty() {
            let kernel = self.key.kernel;
            kernel.polyval(self.key.hash_key(blocks.len() / 16), &mut self.hash[0], blocks);
        }
    }

    /// Adds the pending blocks to the hash.
    fn flush(&mut self) {
        let len = std::mem::take(&mut self.len);
        if len > 0 {
            let kernel = self.key.kernel;
            let hash_key = self.key.hash_key(len / 16);
            kernel.polyval(hash_key, &mut self.hash[0], &self.pending.as_flattened()[..len]);
        }
    }

    /// Adds bytes. The pending blocks are complete; afterwards the last one may be incomplete.
    fn absorb(&mut self, bytes: &[u8]) {
        debug_assert!(self.len.is_multiple_of(16), "whole blocks");
        let (blocks, tail) = if self.len + bytes.len() <= PENDING {
            (&[][..], bytes)
        } else {
            self.flush();
            bytes.split_at(bytes.len() & !15)
        };
        self.hash(blocks);
        self.pending.as_flattened_mut()[self.len..][..tail.len()].copy_from_slice(tail);
        self.len += tail.len();
    }

    /// Ends the additional data or the plaintext: pads the incomplete block with zeros.
    fn pad(&mut self) {
        let end = self.len.next_multiple_of(16);
        self.pending.as_flattened_mut()[self.len..end].fill(0);
        self.len = end;
    }

    /// The tag, from the lengths of additional data and plaintext in bytes (RFC 8452, section 4).
    fn tag(&mut self, (aad, data): (usize, usize), nonce: &[u8; 12]) -> Block {
        self.pad();
        let lengths = u128::from(8 * aad as u64) | u128::from(8 * data as u64) << 64;
        self.pending[self.len / 16] = lengths.to_le_bytes();
        self.len += 16;
        self.flush();
        let hash = u128::from_le_bytes(self.hash[0]) ^ nonce_number(nonce);
        let mut tag = Wiped::<1>::zero();
        tag[0] = (hash & !(1 << 127)).to_le_bytes();
        self.key.kernel.encrypt_block(self.key.schedule, &mut tag[0]);
        tag[0]
    }

    /// Decrypts the data of a message and adds the plaintext.
    fn decrypt(&mut self, tag: &Block, mut data: Span<'_>) {
        let mut counter = first_counter(tag);
        let (kernel, schedule) = (self.key.kernel, self.key.schedule);
        if K::GCM_SIV_STEP > 0 && data.len() >= K::GCM_SIV_STEP {
            let at = data.len() / K::GCM_SIV_STEP * K::GCM_SIV_STEP;
            let (steps, rest) = data.split_at(at);
            self.flush();
            let hash_key = self.key.hash_key(K::GCM_SIV_STEP / 16);
            kernel.gcm_siv_open(schedule, hash_key, &mut counter, &mut self.hash[0], steps);
            data = rest;
        }
        while !data.is_empty() {
            let at = data.len().min(CHUNK);
            let (piece, rest) = data.split_at(at);
            let dst = piece.dst();
            kernel.ctr_little32(schedule, &mut counter, piece);
            // SAFETY: the span is valid for its length and was written by CTR; nothing else writes to it.
            self.absorb(unsafe { std::slice::from_raw_parts(dst, at) });
            data = rest;
        }
    }
}
