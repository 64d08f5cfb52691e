//! Fused GCM-SIV tasks (RFC 8452) on a kernel: batches of whole messages.
//!
//! Each message has its own keys, which are derived from its nonce. The keys of a group of messages are expanded interleaved,
//! in memory that is reused.
//!
//! A message can be encrypted only after it has been hashed, and the two use different execution units. If the kernel has a
//! fused loop, a message of a group is therefore encrypted while the next one is hashed.

use std::slice::from_mut;

use lockstep_core::data::Data;
use lockstep_core::key::{Block, Key};
use lockstep_core::work::{AeadMessage, Tag};

use super::gcm::CHUNK;
use super::hash::{GROUP, Hash, MessageKey, Places};
use super::{finish, nonce};
use crate::host::host;
use crate::kernel::partial;
use crate::kernel::prepared::schedule;
use crate::kernel::rfc8452::ghash_key_of_polyval_key;
use crate::kernel::wiped::Wiped;
use crate::kernel::{Kernel, Powers, Span, out_of_memory};

/// Processes messages in groups.
pub(super) fn run<K: Kernel>(kernel: K, messages: &mut [AeadMessage<'_>]) {
    if let [message] = messages {
        // The key is expanded once, because the next message may use it too.
        schedule(kernel, message.key);
        let mut hash_key = kernel.blank_hash_key().unwrap_or_else(|| out_of_memory::<K::HashKey>());
        let mut schedule = kernel.blank_schedule().unwrap_or_else(|| out_of_memory::<K::Schedule>());
        return run_group::<_, 1>(kernel, from_mut(&mut schedule), from_mut(&mut hash_key), messages);
    }
    let mut places = Places::new();
    places.reserve(kernel, messages.len().min(GROUP));
    let Places { schedules, hash_keys } = &mut places;
    for group in messages.chunks_mut(GROUP) {
        run_group::<_, GROUP>(kernel, schedules, hash_keys, group);
    }
}

/// The nonce as a little-endian number.
#[inline]
fn nonce_number(nonce: &[u8; 12]) -> u128 {
    // SAFETY: the nonce has 12 bytes.
    unsafe { partial::load(nonce.as_ptr(), 12) }
}

/// Processes messages, at most MOST. `schedules` and `hash_keys` are places for their keys.
fn run_group<K: Kernel, const MOST: usize>(
    kernel: K,
    schedules: &mut [K::Schedule],
    hash_keys: &mut [K::HashKey],
    messages: &mut [AeadMessage<'_>],
) {
    let count = messages.len();
    let (schedules, hash_keys) = (&mut schedules[..count], &mut hash_keys[..count]);
    let mut hash = Wiped::<MOST>::zero();
    let mut encryption: [Wiped<2>; MOST] = std::array::from_fn(|_| Wiped::zero());
    for (i, (message, place)) in messages.iter().zip(&mut *schedules).enumerate() {
        let key: &Key = message.key;
        let schedule = key.already_prepared().unwrap_or_else(|| {
            // Only one message of the batch uses this key.
            kernel.expand_each(&[key.bytes()], from_mut(place));
            place
        });
        // Derives the keys of the message (RFC 8452, section 4). Half of each block is used: two blocks make the POLYVAL key, and the
        // others the key of AES. For shorter keys, the last blocks are zeros.
        let count = 2 + key.size().bytes() / 8;
        let mut blocks = Wiped::<6>::zero();
        let mut counter = (nonce_number(nonce(message)) << 32).to_le_bytes();
        kernel.ctr_little32(schedule, &mut counter, Span::in_place(blocks[..count].as_flattened_mut()));
        let half = |i: usize| u128::from(u128::from_le_bytes(blocks[i]) as u64);
        let pair = |i: usize| (half(i) | half(i + 1) << 64).to_le_bytes();
        hash[i] = ghash_key_of_polyval_key(&pair(0));
        *encryption[i] = [pair(2), pair(4)];
    }
    let keys: [&[u8]; MOST] = std::array::from_fn(|i| {
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
fn run_one<K: Kernel>(
    polyval: &mut Polyval<'_, K>,
    message: &mut AeadMessage<'_>,
    beside: Option<(&mut Polyval<'_, K>, &AeadMessage<'_>)>,
) {
    let nonce = nonce(message);
    let mut data = host(&mut message.data);
    let lengths = (message.aad.len(), data.len());
    if polyval.hashed == 0 {
        polyval.absorb(message.aad);
        polyval.hash.pad();
    }
    // The right tag of a forged message is a secret.
    let mut computed = Wiped::<1>::zero();
    match &message.tag {
        Tag::Write(_) => {
            polyval.absorb(&data.input()[polyval.hashed..]);
            polyval.tag(lengths, nonce, &mut computed[0]);
            encrypt(&polyval.key, &computed[0], data.reborrow().into_span(), beside);
        }
        Tag::Expect(tag) => {
            let tag: &Block = (*tag).try_into().expect("checked");
            polyval.decrypt(tag, data.reborrow().into_span());
            polyval.tag(lengths, nonce, &mut computed[0]);
        }
    }
    finish(message, &computed[0]);
}

/// The first counter block of a message (RFC 8452, section 4). The counter of a forged message follows from a secret.
fn first_counter(tag: &Block) -> Wiped<1> {
    let mut counter = Wiped::zero();
    counter[0] = (u128::from_le_bytes(*tag) | 1 << 127).to_le_bytes();
    counter
}

/// CTR over the data of a message. As much of the next message as possible is hashed in the same loop, if it is sealed too.
fn encrypt<K: Kernel>(
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
        polyval.hash.pad();
        polyval.hash.flush(&mut polyval.key);
        let hash_key = polyval.key.hash_key(K::GCM_SIV_STEP / 16);
        let text = &text.input()[..at];
        let state = &mut polyval.hash.state[0];
        kernel.gcm_siv(schedule, &mut counter[0], steps, hash_key, state, Some(text));
        polyval.hashed = at;
        data = rest;
    }
    kernel.ctr_little32(schedule, &mut counter[0], data);
}

/// POLYVAL of a message, and its keys.
struct Polyval<'k, K: Kernel> {
    key: MessageKey<'k, K>,
    hash: Hash<false>,
    /// Number of bytes of the plaintext that were hashed while the message before was encrypted. If it is not 0, the
    /// additional data have been hashed too.
    hashed: usize,
}

impl<'k, K: Kernel> Polyval<'k, K> {
    fn new(key: MessageKey<'k, K>) -> Self {
        Polyval { key, hash: Hash::EMPTY, hashed: 0 }
    }

    /// Adds bytes to the hash.
    fn absorb(&mut self, bytes: &[u8]) {
        self.hash.absorb(&mut self.key, bytes);
    }

    /// Writes the tag, from the lengths of additional data and plaintext in bytes (RFC 8452, section 4).
    fn tag(&mut self, (aad, data): (usize, usize), nonce: &[u8; 12], tag: &mut Block) {
        self.hash.pad();
        let lengths = u128::from(8 * aad as u64) | u128::from(8 * data as u64) << 64;
        let hash = *self.hash.finish(&mut self.key, &lengths.to_le_bytes());
        let hash = u128::from_le_bytes(hash) ^ nonce_number(nonce);
        *tag = (hash & !(1 << 127)).to_le_bytes();
        self.key.kernel.encrypt_block(self.key.schedule, tag);
    }

    /// Decrypts the data of a message and adds the plaintext.
    fn decrypt(&mut self, tag: &Block, mut data: Span<'_>) {
        let mut counter = first_counter(tag);
        let (kernel, schedule) = (self.key.kernel, self.key.schedule);
        if K::GCM_SIV_STEP > 0 && data.len() >= K::GCM_SIV_STEP {
            let at = data.len() / K::GCM_SIV_STEP * K::GCM_SIV_STEP;
            let (steps, rest) = data.split_at(at);
            self.hash.flush(&mut self.key);
            let hash_key = self.key.hash_key(K::GCM_SIV_STEP / 16);
            kernel.gcm_siv(schedule, &mut counter[0], steps, hash_key, &mut self.hash.state[0], None);
            data = rest;
        }
        while !data.is_empty() {
            let at = data.len().min(CHUNK);
            let (piece, rest) = data.split_at(at);
            let dst = piece.dst();
            kernel.ctr_little32(schedule, &mut counter[0], piece);
            // SAFETY: the span is valid for its length and was written by CTR; nothing else writes to it.
            self.absorb(unsafe { std::slice::from_raw_parts(dst, at) });
            data = rest;
        }
    }
}
