//! GCM on a kernel (SP 800-38D, 7.1 and 7.2): the state of a message, which arrives at once or in pieces, and batches of messages.
//! This is the only place of this crate that assembles GCM from CTR and GHASH.
//!
//! A key that several messages of a batch use is expanded once and cached with all its powers of H. Keys that only one message uses
//! are expanded in groups, in memory that is reused: the expansions of a group run interleaved, and so do the encryptions of its
//! single blocks.

use lockstep_core::gcm::{lengths_block, settle};
use lockstep_core::ocb::xor;
use lockstep_core::work::{AeadMessage, Status, Tag};

use super::hash::{GROUP, Hash, MessageKey, PENDING, Places};
use super::{nonce, set_status};
use crate::host::host;
use crate::kernel::partial;
use crate::kernel::prepared::{hash_key, is_prepared, schedule};
use crate::kernel::wiped::Wiped;
use crate::kernel::{Block, GcmCounter, Kernel, LARGEST_VECTOR, Powers, Progress, Span};

/// Number of bytes that one call of CTR and one call of GHASH process; they stay in the L1 cache.
pub(super) const CHUNK: usize = 16 << 10;

/// Number of steps of the shortest data for which the fused loop is used if all powers of H have been computed.
pub(crate) const SHORTEST_FUSED: usize = 2;

/// A CTR function that the caller supplies, for whole blocks. The flag is true for data, and false for a block of zeros that
/// becomes the keystream of an incomplete block. The function returns blocks that it has not processed; the counter is then that
/// of the first of them.
pub(crate) type Ctr32<'a> = &'a mut dyn for<'d> FnMut(&mut Block, Span<'d>, bool) -> Option<Span<'d>>;

/// Indices of [`State::encrypted`]. The mask comes first, because J0 precedes the first counter.
const MASK: usize = 0;
const KEYSTREAM: usize = 1;

/// The state of a message. The caller checks the order of calls and the limits on lengths.
pub(crate) struct State {
    /// GHASH of additional data and ciphertext.
    hash: Hash<true>,
    counter: GcmCounter,
    /// True if `counter` is J0 and the mask has not been computed.
    lacks_mask: bool,
    /// The encrypted J0, which is XORed with the hash to give the tag; and the keystream of the incomplete block, if it is a
    /// block of data.
    encrypted: Wiped<2>,
}

impl State {
    /// The state before the first message. The state is made by a function and not by a constant: with a constant, a single message of
    /// 256 bytes takes 5 to 10 ns longer on Sapphire Rapids.
    #[inline]
    pub(crate) fn idle() -> State {
        let counter = GcmCounter { block: Wiped::zero(), is_public: false };
        State { hash: Hash::new(), counter, lacks_mask: false, encrypted: Wiped::zero() }
    }

    /// Replaces this state by a copy of another. Secrets are copied to their final place only.
    #[inline]
    pub(crate) fn copy_from(&mut self, other: &State) {
        let State { hash, counter, lacks_mask, encrypted } = other;
        self.hash.copy_from(hash);
        self.encrypted.copy_from_slice(&encrypted[..]);
        (self.counter.block[0], self.counter.is_public) = (counter.block[0], counter.is_public);
        self.lacks_mask = *lacks_mask;
    }

    /// Starts a message. J0 is encrypted later, together with the first data.
    #[inline]
    pub(crate) fn start<K: Kernel>(&mut self, key: &mut MessageKey<'_, K>, iv: &[u8]) {
        if let Ok(nonce) = iv.try_into() {
            return self.start_nonce(nonce);
        }
        self.hash.clear();
        self.hash.absorb(key, iv);
        self.hash.pad();
        let lengths = (8 * iv.len() as u128).to_be_bytes();
        self.counter.block[0] = *self.hash.finish(key, &lengths);
        self.hash.clear();
        (self.counter.is_public, self.lacks_mask) = (false, true);
    }

    /// Starts a message with a nonce of 12 bytes. Reads no secret.
    #[inline]
    pub(crate) fn start_nonce(&mut self, nonce: &[u8; 12]) {
        self.hash.clear();
        (self.counter.block[0], self.counter.is_public) = (counter_block(nonce, 1), true);
        self.lacks_mask = true;
    }

    /// Computes the mask if it is missing.
    #[inline]
    fn ensure_mask<K: Kernel>(&mut self, key: &MessageKey<'_, K>) {
        if std::mem::take(&mut self.lacks_mask) {
            let mask = &mut self.encrypted[MASK];
            *mask = [0; 16];
            key.kernel.ctr32(key.schedule, &mut self.counter.block[0], Span::in_place(mask));
        }
    }

    /// Computes the keystream of a block, and the mask if it is missing.
    #[inline]
    fn next_keystream<K: Kernel>(&mut self, key: &MessageKey<'_, K>) {
        let first = if std::mem::take(&mut self.lacks_mask) { MASK } else { KEYSTREAM };
        // Stores of constant length: `memset` of the GNU C library uses a masked store for few bytes, which is not forwarded to a load.
        (self.encrypted[first], self.encrypted[KEYSTREAM]) = ([0; 16], [0; 16]);
        let blocks = &mut self.encrypted[first..];
        key.kernel.ctr32(key.schedule, &mut self.counter.block[0], Span::in_place(blocks.as_flattened_mut()));
    }

    /// Starts a message with a nonce of 12 bytes, whose mask (the encrypted J0) is known.
    #[inline]
    pub(crate) fn start_masked(&mut self, nonce: &[u8; 12], mask: &Block) {
        self.start_nonce(nonce);
        (self.counter.block[0], self.lacks_mask) = (counter_block(nonce, 2), false);
        self.encrypted[MASK] = *mask;
    }

    /// Adds additional data.
    #[inline]
    pub(crate) fn aad<K: Kernel>(&mut self, key: &mut MessageKey<'_, K>, aad: &[u8]) {
        self.hash.absorb(key, aad);
    }

    /// Ends the additional data.
    #[inline]
    pub(crate) fn end_aad(&mut self) {
        self.hash.pad();
    }

    /// Encrypts or decrypts bytes of the incomplete block. The bytes must fit in the rest of the block.
    #[inline(never)]
    fn partial_block(&mut self, encrypt: bool, data: Span<'_>) {
        match data.len() {
            // Constants, with which the compiler needs no shifts.
            16 => self.part(encrypt, &data, 0, 16),
            len => self.part(encrypt, &data, self.hash.len % 16, len),
        }
    }

    /// Encrypts or decrypts `len` bytes, which begin at byte `at` of the incomplete block.
    #[inline(always)]
    fn part(&mut self, encrypt: bool, data: &Span<'_>, at: usize, len: usize) {
        let keystream = u128::from_le_bytes(self.encrypted[KEYSTREAM]) >> (8 * at);
        // SAFETY: the span is valid for reads and writes of its length, which is at most 16. There is room for 16 bytes after
        // the pending ones.
        unsafe {
            let text = partial::load(data.src(), len);
            let result = text ^ keystream;
            partial::store(result, data.dst(), len);
            self.hash.append_number(if encrypt { result } else { text }, len);
        }
    }

    /// Encrypts or decrypts at most one block with the keystream of the next block.
    #[inline]
    fn last_block<K: Kernel>(&mut self, key: &mut MessageKey<'_, K>, encrypt: bool, data: Span<'_>) {
        if self.hash.len == PENDING {
            self.hash.flush(key);
        }
        self.partial_block(encrypt, data);
    }

    /// Encrypts or decrypts the first bytes of an update, which belong to the incomplete block. Returns the rest. A function of its own:
    /// otherwise the compiler would copy the span by a load that waits for the stores of its parts.
    #[inline(never)]
    fn complete_block<'d>(&mut self, encrypt: bool, data: Span<'d>) -> Span<'d> {
        let at = data.len().min(16 - self.hash.len % 16);
        let (head, rest) = data.split_at(at);
        self.partial_block(encrypt, head);
        rest
    }

    /// Encrypts or decrypts data with a CTR function of the caller.
    #[inline(always)]
    pub(crate) fn update_by<K: Kernel>(
        &mut self,
        key: &mut MessageKey<'_, K>,
        encrypt: bool,
        mut data: Span<'_>,
        ctr32: Ctr32<'_>,
    ) {
        if !self.hash.len.is_multiple_of(16) {
            data = self.complete_block(encrypt, data);
        }
        self.update_by_passes(key, encrypt, data, Some(ctr32));
    }

    /// Encrypts or decrypts data.
    #[inline(always)]
    pub(crate) fn update<K: Kernel>(
        &mut self,
        key: &mut MessageKey<'_, K>,
        encrypt: bool,
        mut data: Span<'_>,
    ) {
        if !self.hash.len.is_multiple_of(16) {
            data = self.complete_block(encrypt, data);
        }
        self.update_blocks(key, encrypt, data);
    }

    /// Encrypts or decrypts data that begin with a block.
    #[inline(always)]
    fn update_blocks<K: Kernel>(&mut self, key: &mut MessageKey<'_, K>, encrypt: bool, mut data: Span<'_>) {
        let blocks = data.len() & !15;
        if (1..=K::GCM_FEW).contains(&blocks) && self.hash.len <= PENDING - LARGEST_VECTOR {
            // One reduction suffices if these blocks wait to be hashed with the block of lengths.
            let (blocks, rest) = data.split_at(blocks);
            let mask = std::mem::take(&mut self.lacks_mask).then_some(&mut self.encrypted[MASK]);
            let (counter, len) = (&mut self.counter.block[0], blocks.len());
            key.kernel.gcm_few(key.schedule, mask, counter, encrypt, blocks, self.hash.room());
            self.hash.len += len;
            data = rest;
        } else if K::GCM_STEP > 0 {
            data = self.update_by_steps(key, encrypt, data);
        }
        if K::GCM_FEW == 0 {
            return self.update_by_passes(key, encrypt, data, None);
        }
        // A single block waits too, if there is no room for a vector.
        if data.len() > 16 {
            let at = data.len() & !15;
            let (blocks, rest) = data.split_at(at);
            let (before, hash) = self.hash.take();
            let progress = Progress {
                mask: std::mem::take(&mut self.lacks_mask).then_some(&mut self.encrypted[MASK]),
                counter: &mut self.counter.block[0],
                hash,
                before,
            };
            key.kernel.gcm_short(key.schedule, &mut key.powers, progress, encrypt, blocks);
            data = rest;
        }
        if !data.is_empty() {
            self.next_keystream(key);
            self.last_block(key, encrypt, data);
        }
    }

    /// Encrypts or decrypts data by the fused loop of the kernel, if they are long enough. Returns the rest.
    #[inline(always)]
    fn update_by_steps<'d, K: Kernel>(
        &mut self,
        key: &mut MessageKey<'_, K>,
        encrypt: bool,
        data: Span<'d>,
    ) -> Span<'d> {
        let from = match key.powers {
            Powers::All(_) => SHORTEST_FUSED * K::GCM_STEP,
            Powers::Some(_) => K::GCM_FROM,
        };
        if data.len() < from {
            return data;
        }
        self.ensure_mask(key);
        let at = data.len() / K::GCM_STEP * K::GCM_STEP;
        let (steps, rest) = data.split_at(at);
        self.hash.flush(key);
        let (kernel, schedule) = (key.kernel, key.schedule);
        let hash_key = key.hash_key(K::GCM_STEP / 16);
        kernel.gcm(schedule, hash_key, encrypt, &mut self.counter, &mut self.hash.state[0], steps);
        rest
    }

    /// Encrypts or decrypts data by CTR and GHASH, without a loop that does both. The last block is complete.
    fn update_by_passes<K: Kernel>(
        &mut self,
        key: &mut MessageKey<'_, K>,
        encrypt: bool,
        mut data: Span<'_>,
        mut of_caller: Option<Ctr32<'_>>,
    ) {
        self.ensure_mask(key);
        let (kernel, schedule) = (key.kernel, key.schedule);
        // A function of the caller gets all blocks at once, because a device needs large calls.
        let longest = if of_caller.is_some() { usize::MAX } else { CHUNK };
        let mut ctr32 = |counter: &mut Block, blocks: Span<'_>, is_data: bool| {
            let rest = match &mut of_caller {
                Some(ctr32) => ctr32(counter, blocks, is_data),
                None => Some(blocks),
            };
            if let Some(rest) = rest {
                kernel.ctr32(schedule, counter, rest);
            }
        };
        while data.len() >= 16 {
            let at = data.len().min(longest) & !15;
            let (blocks, rest) = data.split_at(at);
            let (src, dst) = (blocks.src(), blocks.dst());
            if !encrypt {
                // SAFETY: the span is valid for reads of its length, and nothing writes to it during the call.
                let ciphertext = unsafe { std::slice::from_raw_parts(src, at) };
                self.hash.absorb(key, ciphertext);
            }
            ctr32(&mut self.counter.block[0], blocks, true);
            if encrypt {
                // SAFETY: the span is valid for its length and was written by CTR; nothing else writes to it.
                let ciphertext = unsafe { std::slice::from_raw_parts(dst, at) };
                self.hash.absorb(key, ciphertext);
            }
            data = rest;
        }
        if !data.is_empty() {
            let keystream = &mut self.encrypted[KEYSTREAM];
            *keystream = [0; 16];
            ctr32(&mut self.counter.block[0], Span::in_place(keystream), false);
            self.last_block(key, encrypt, data);
        }
    }

    /// Processes the additional data and the data of a message that has been started: encrypts it and writes the tag, or decrypts it and
    /// compares the tag. `keystream` is the keystream of the first block, if it is known.
    #[inline]
    pub(crate) fn whole<K: Kernel>(
        &mut self,
        key: &mut MessageKey<'_, K>,
        keystream: Option<&Block>,
        aad: &[u8],
        data: Span<'_>,
        tag: &mut Tag<'_>,
    ) -> Status {
        let lengths = (aad.len() as u64, data.len() as u64);
        let encrypt = matches!(tag, Tag::Write(_));
        self.aad(key, aad);
        self.end_aad();
        match keystream {
            Some(keystream) if (1..=16).contains(&data.len()) => {
                self.encrypted[KEYSTREAM] = *keystream;
                self.last_block(key, encrypt, data);
            }
            _ => self.update_blocks(key, encrypt, data),
        }
        // The right tag of a forged message is a secret.
        let mut computed = Wiped::<1>::zero();
        self.tag(key, lengths, &mut computed[0]);
        settle(tag, &computed[0])
    }

    /// Writes the tag. `aad` and `data` are the lengths in bytes.
    #[inline(always)]
    pub(crate) fn tag<K: Kernel>(
        &mut self,
        key: &mut MessageKey<'_, K>,
        (aad, data): (u64, u64),
        tag: &mut Block,
    ) {
        self.ensure_mask(key);
        self.hash.pad();
        if K::GCM_FEW > 0 {
            *tag = self.encrypted[MASK];
            let (before, hash) = self.hash.take();
            let (kernel, hash_key) = (key.kernel, key.hash_key(before.len() / 16 + 1));
            kernel.gcm_tag(hash_key, hash, before, [8 * aad, 8 * data], tag);
        } else {
            *tag = *self.hash.finish(key, &lengths_block(aad, data));
            // The mask is loaded after the hash: a register that holds it would be saved on the stack by the hash.
            xor(tag, &self.encrypted[MASK]);
        }
    }
}

/// The counter block of a nonce. It is built in registers, because stores of parts of a block are not forwarded to a load of
/// the whole block. A caller that has just copied the nonce has stored it as 8 and 4 bytes. The loads have the same sizes, so that these
/// stores are forwarded to them.
#[inline(always)]
pub(crate) fn counter_block(nonce: &[u8; 12], number: u32) -> Block {
    let low = u64::from_le_bytes(*nonce.first_chunk().expect("12 bytes"));
    let high = u32::from_le_bytes(*nonce.last_chunk().expect("12 bytes"));
    (u128::from(low) | u128::from(high) << 64 | u128::from(number.swap_bytes()) << 96).to_le_bytes()
}

/// Processes messages one after another, or in groups if each has its own key.
pub(super) fn run<K: Kernel>(kernel: K, mut messages: &mut [AeadMessage<'_>]) {
    if let [message] = messages {
        return cached(kernel, &mut State::idle(), message);
    }
    let (mut places, mut state) = (Places::new(), State::idle());
    while !messages.is_empty() {
        let once = messages.iter().enumerate().take(GROUP).take_while(|(i, message)| {
            let is_next = messages.get(i + 1).is_some_and(|next| std::ptr::eq(next.key, message.key));
            !is_next && !is_prepared::<K>(message.key)
        });
        let group = once.count();
        if group > 0 {
            run_group(kernel, &mut places, &mut state, &mut messages[..group]);
            messages = &mut messages[group..];
            continue;
        }
        let key = messages[0].key;
        let same = messages.iter().take_while(|message| std::ptr::eq(message.key, key)).count();
        messages[..same].iter_mut().for_each(|message| cached(kernel, &mut state, message));
        messages = &mut messages[same..];
    }
}

/// Processes a message whose key is expanded already or will be used again.
fn cached<K: Kernel>(kernel: K, state: &mut State, message: &mut AeadMessage<'_>) {
    let powers = Powers::All(hash_key(kernel, message.key));
    let mut key = MessageKey { kernel, schedule: schedule(kernel, message.key), powers };
    state.start(&mut key, message.nonce);
    run_one(key, state, None, message);
}

/// Processes messages that each have their own key, at most [`GROUP`].
fn run_group<K: Kernel>(
    kernel: K,
    places: &mut Places<K>,
    state: &mut State,
    messages: &mut [AeadMessage<'_>],
) {
    let count = messages.len();
    places.reserve(kernel, count);
    let keys: [&[u8]; GROUP] = std::array::from_fn(|i| messages[i.min(count - 1)].key.bytes());
    kernel.expand_each(&keys[..count], &mut places.schedules[..count]);
    // For each message: H, the mask, and the keystream of the first block.
    let mut blocks = Wiped::<{ 3 * GROUP }>::zero();
    for (i, message) in messages.iter().enumerate() {
        blocks[count + i] = counter_block(nonce(message), 1);
        blocks[2 * count + i] = counter_block(nonce(message), 2);
    }
    let schedules: [&K::Schedule; 2 * GROUP] = std::array::from_fn(|i| &places.schedules[i % count]);
    kernel.each(&schedules[..2 * count], true, &mut blocks[..2 * count]);
    let has_short = messages.iter().any(|message| message.data.len() <= 16);
    if has_short {
        kernel.each(&schedules[..count], true, &mut blocks[2 * count..3 * count]);
    }
    kernel.hash_keys_into(&blocks[..count], &mut places.hash_keys[..count]);
    for (i, message) in messages.iter_mut().enumerate() {
        let (schedule, hash_key) = (&places.schedules[i], &mut places.hash_keys[i]);
        let key = MessageKey { kernel, schedule, powers: Powers::Some(hash_key) };
        let keystream = has_short.then_some(&blocks[2 * count + i]);
        state.start_masked(nonce(message), &blocks[count + i]);
        run_one(key, state, keystream, message);
    }
}

/// Processes a message that has been started. `keystream` is the keystream of the first block, if it is known.
fn run_one<K: Kernel>(
    mut key: MessageKey<'_, K>,
    state: &mut State,
    keystream: Option<&Block>,
    message: &mut AeadMessage<'_>,
) {
    let data = host(&mut message.data).into_span();
    let status = state.whole(&mut key, keystream, message.aad, data, &mut message.tag);
    set_status(message, status);
}
