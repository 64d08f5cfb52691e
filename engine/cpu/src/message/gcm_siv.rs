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

use super::hash::{GROUP, Hash, MessageKey, PENDING, Places};
use super::{finish, nonce};
use crate::host::host;
use crate::kernel::partial;
use crate::kernel::prepared::schedule;
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
    let mut derived: [Wiped<2>; MOST] = std::array::from_fn(|_| Wiped::zero());
    for (i, (message, place)) in messages.iter().zip(&mut *schedules).enumerate() {
        let key: &Key = message.key;
        let schedule = key.already_prepared().unwrap_or_else(|| {
            // Only one message of the batch uses this key.
            kernel.expand_each(&[key.bytes()], from_mut(place));
            place
        });
        kernel.gcm_siv_keys(schedule, nonce_number(nonce(message)), &mut hash_keys[i], &mut derived[i]);
    }
    let size = |i: usize| messages[i.min(count - 1)].key.size();
    let keys: [&[u8]; MOST] = std::array::from_fn(|i| &derived[i].as_flattened()[..size(i).bytes()]);
    kernel.expand_each(&keys[..count], schedules);
    let mut hashes = schedules.iter().zip(hash_keys).map(|(schedule, hash_key)| {
        let key = MessageKey { kernel, schedule, powers: Powers::Some(hash_key) };
        Polyval { key, hash: Hash::new(), hashed: 0 }
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
        polyval.add_aad(message.aad);
    }
    // The right tag of a forged message is a secret.
    let mut computed = Wiped::<1>::zero();
    match &message.tag {
        Tag::Write(_) => {
            polyval.tag(&data.input()[polyval.hashed..], lengths, nonce, &mut computed[0]);
            encrypt(&polyval.key, &computed[0], data.reborrow().into_span(), beside);
        }
        Tag::Expect(tag) => {
            let tag: &Block = (*tag).try_into().expect("checked");
            polyval.decrypt(tag, data.reborrow().into_span());
            polyval.tag(&[], lengths, nonce, &mut computed[0]);
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
        polyval.add_aad(next.aad);
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

impl<K: Kernel> Polyval<'_, K> {
    /// Adds the additional data.
    fn add_aad(&mut self, aad: &[u8]) {
        self.hash.absorb(&mut self.key, aad);
        self.hash.pad();
    }

    /// Computes the powers of H that the rest of a message needs, `text` bytes. After the text has been read, a register may hold its last
    /// bytes, and a function that computes powers may push this register.
    fn prepare_powers(&mut self, text: usize) {
        let blocks = (self.hash.len + text).div_ceil(16);
        // The block of lengths is hashed together with all others if they fit in the pending bytes, and otherwise with at most one.
        self.key.hash_key(blocks + usize::from(16 * blocks <= PENDING));
    }

    /// Adds the rest of the plaintext, and writes the tag, from the lengths of additional data and plaintext in bytes (RFC 8452,
    /// section 4).
    fn tag(&mut self, text: &[u8], (aad, data): (usize, usize), nonce: &[u8; 12], tag: &mut Block) {
        let lengths = (u128::from(8 * aad as u64) | u128::from(8 * data as u64) << 64).to_le_bytes();
        let (blocks, state) =
            if text.len() >= K::GCM_SIV_STEP.max(PENDING + 1) && text.len().is_multiple_of(16) {
                // A text of this length needs all powers of H, with or without the lengths.
                self.hash.flush(&mut self.key);
                (text, &mut self.hash.state[0])
            } else {
                self.prepare_powers(text.len());
                self.hash.absorb(&mut self.key, text);
                self.hash.pad();
                self.hash.take()
            };
        let MessageKey { kernel, schedule, .. } = self.key;
        // The call that hashes the last blocks also hashes the lengths, so that there is one reduction at the end.
        let hash_key = self.key.hash_key(blocks.len() / 16 + 1);
        kernel.polyval(hash_key, state, blocks, Some(&lengths));
        *tag = ((u128::from_le_bytes(*state) ^ nonce_number(nonce)) & !(1 << 127)).to_le_bytes();
        kernel.encrypt_block(schedule, tag);
    }

    /// Decrypts the data of a message and adds the plaintext.
    fn decrypt(&mut self, tag: &Block, mut data: Span<'_>) {
        let (kernel, schedule, mut counter) = (self.key.kernel, self.key.schedule, first_counter(tag));
        if K::GCM_SIV_STEP > 0 && data.len() >= K::GCM_SIV_STEP {
            let at = data.len() / K::GCM_SIV_STEP * K::GCM_SIV_STEP;
            let (steps, rest) = data.split_at(at);
            self.hash.flush(&mut self.key);
            let hash_key = self.key.hash_key(K::GCM_SIV_STEP / 16);
            kernel.gcm_siv(schedule, &mut counter[0], steps, hash_key, &mut self.hash.state[0], None);
            data = rest;
        }
        let (dst, len) = (data.dst(), data.len());
        self.prepare_powers(len);
        kernel.ctr_little32(schedule, &mut counter[0], data);
        // SAFETY: the span is valid for its length and was written by CTR; nothing else writes to it.
        self.hash.absorb(&mut self.key, unsafe { std::slice::from_raw_parts(dst, len) });
    }
}
