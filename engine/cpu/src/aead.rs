//! Fused GCM tasks on a kernel: batches of whole messages.
//!
//! A key that several messages use is expanded once and cached with all its powers of H. Keys that only one message uses are
//! expanded in groups, in memory that is reused: the expansions of a group run interleaved, and so do the encryptions of its
//! single blocks.

use lockstep_core::data::{Data, HostData};
use lockstep_core::gcm::settle;
use lockstep_core::key::Block;
use lockstep_core::work::{AeadMessage, FusedAead, Status, Tag};
use lockstep_core::{Error, Result};

use crate::device::CPU;
use crate::gcm::{self, MessageKey, Powers, State};
use crate::inline::SingleStreamKernel;
use crate::kernel::LANES;
use crate::passes::{hash_key, is_prepared, schedule};
use crate::threads;
use crate::wiped::Wiped;

/// Number of keys of a group.
const GROUP: usize = LANES / 2;

/// Seals the messages that have a tag to write, and opens those that have a tag to compare with. The output of a message
/// with a wrong tag is zeroed before the call returns.
pub(crate) fn run<K: SingleStreamKernel>(
    kernel: K,
    messages: &mut [AeadMessage<'_>],
    threads: usize,
) -> Result<()> {
    messages.iter().try_for_each(check)?;
    if let [message] = messages {
        cached(kernel, &mut State::idle(), message);
        return Ok(());
    }
    // The key is expanded before threads are started, because the threads may leave no memory for it.
    for pair in messages.windows(2).filter(|pair| std::ptr::eq(pair[0].key, pair[1].key)) {
        hash_key(kernel, pair[0].key);
    }
    threads::spread_messages(messages, threads, &|messages| run_batch(kernel, messages));
    Ok(())
}

/// Checks that the data are in host memory and writable, and that nonce and tag have allowed lengths.
fn check(message: &AeadMessage<'_>) -> Result<()> {
    if let Data::Device { .. } | Data::Pinned { .. } | Data::Host(HostData::ReadOnly(_)) = message.data {
        return Err(Error::OutOfReach { device: CPU, what: "data that are not in host memory".into() });
    }
    FusedAead::GcmSeal.check_lengths(message)
}

/// The nonce of a message that [`check`] has accepted.
fn nonce<'d>(message: &AeadMessage<'d>) -> &'d [u8; 12] {
    message.nonce.try_into().expect("checked")
}

/// Processes messages one after another, or in groups if each has its own key.
fn run_batch<K: SingleStreamKernel>(kernel: K, mut messages: &mut [AeadMessage<'_>]) {
    let mut places = Places { schedules: Vec::new(), hash_keys: Vec::new(), state: State::idle() };
    while !messages.is_empty() {
        let once = messages.iter().enumerate().take(GROUP).take_while(|(i, message)| {
            let is_next = messages.get(i + 1).is_some_and(|next| std::ptr::eq(next.key, message.key));
            !is_next && !is_prepared::<K>(message.key)
        });
        let group = once.count();
        if group > 0 {
            run_group(kernel, &mut places, &mut messages[..group]);
            messages = &mut messages[group..];
            continue;
        }
        let key = messages[0].key;
        let same = messages.iter().take_while(|message| std::ptr::eq(message.key, key)).count();
        messages[..same].iter_mut().for_each(|message| cached(kernel, &mut places.state, message));
        messages = &mut messages[same..];
    }
}

/// Processes a message whose key is expanded already or will be used again.
fn cached<K: SingleStreamKernel>(kernel: K, state: &mut State, message: &mut AeadMessage<'_>) {
    let schedule = schedule(kernel, message.key);
    let key = MessageKey { kernel, schedule, powers: Powers::All(hash_key(kernel, message.key)) };
    let mut mask = Wiped::<1>::zero();
    mask[0] = gcm::counter_block(nonce(message), 1);
    kernel.encrypt_block(schedule, &mut mask[0]);
    run_one(key, state, &mask[0], None, message);
}

/// Memory for the expanded keys of a group; its content is wiped on drop.
struct Places<K: SingleStreamKernel> {
    schedules: Vec<K::Schedule>,
    hash_keys: Vec<K::HashKey>,
    /// The state of the current message.
    state: State,
}

impl<K: SingleStreamKernel> Places<K> {
    /// Makes room for a number of keys, at most [`GROUP`].
    fn reserve(&mut self, kernel: K, keys: usize) {
        // The memory never moves, so that no copy of a key is left behind.
        self.schedules.reserve_exact(GROUP - self.schedules.len());
        self.hash_keys.reserve_exact(GROUP - self.hash_keys.len());
        while self.schedules.len() < keys {
            let (schedule, hash_key) = kernel.blank();
            self.schedules.push(schedule);
            self.hash_keys.push(hash_key);
        }
    }
}

/// Processes messages that each have their own key, at most [`GROUP`].
fn run_group<K: SingleStreamKernel>(kernel: K, places: &mut Places<K>, messages: &mut [AeadMessage<'_>]) {
    let count = messages.len();
    places.reserve(kernel, count);
    let keys: [&[u8]; GROUP] = std::array::from_fn(|i| messages[i.min(count - 1)].key.bytes());
    kernel.expand_each(&keys[..count], &mut places.schedules[..count]);
    // For each message: H, the mask, and the keystream of the first block.
    let mut blocks = Wiped::<{ 3 * GROUP }>::zero();
    for (i, message) in messages.iter().enumerate() {
        blocks[count + i] = gcm::counter_block(nonce(message), 1);
        blocks[2 * count + i] = gcm::counter_block(nonce(message), 2);
    }
    let schedules: [&K::Schedule; 2 * GROUP] = std::array::from_fn(|i| &places.schedules[i % count]);
    kernel.encrypt_each(&schedules[..2 * count], &mut blocks[..2 * count]);
    let has_short = messages.iter().any(|message| message.data.len() <= 16);
    if has_short {
        kernel.encrypt_each(&schedules[..count], &mut blocks[2 * count..3 * count]);
    }
    kernel.hash_keys_into(&blocks[..count], &mut places.hash_keys[..count]);
    for (i, message) in messages.iter_mut().enumerate() {
        let (schedule, hash_key) = (&places.schedules[i], &mut places.hash_keys[i]);
        let key = MessageKey { kernel, schedule, powers: Powers::Some(hash_key) };
        run_one(
            key,
            &mut places.state,
            &blocks[count + i],
            has_short.then_some(&blocks[2 * count + i]),
            message,
        );
    }
}

/// Processes a message. `mask` is the encrypted J0; `keystream` is the keystream of the first block, if it is known.
fn run_one<K: SingleStreamKernel>(
    mut key: MessageKey<'_, K>,
    state: &mut State,
    mask: &Block,
    keystream: Option<&Block>,
    message: &mut AeadMessage<'_>,
) {
    state.start_masked(nonce(message), mask);
    let Data::Host(data) = &mut message.data else { unreachable!("rejected by check") };
    let len = data.len();
    let encrypt = matches!(message.tag, Tag::Write(_));
    state.absorb(&mut key, message.aad);
    state.pad();
    let span = data.reborrow().into_span();
    match keystream {
        Some(keystream) if (1..=16).contains(&len) => state.only_block(&mut key, keystream, encrypt, span),
        _ => state.update(&mut key, encrypt, span, None),
    }
    // The right tag of a forged message is a secret.
    let mut computed = Wiped::<1>::zero();
    computed[0] = state.tag(&mut key, message.aad.len() as u64, len as u64);
    message.status = settle(&mut message.tag, &computed[0]);
    if message.status != Status::Done {
        data.output().fill(0);
    }
}
