//! The part of a kernel that only inline calls use: serial modes of one message, and fallible key set-up.

use super::{Keys, modes};
use crate::boxed::Shared;
use crate::counter::GcmCounter;
use crate::gcm::{PENDING, Powers, Progress};
use crate::kernel::{Block, Kernel, Span};
use crate::wiped::Wiped;

/// A kernel that processes single messages. Calls on data do not allocate.
///
/// Data are whole blocks unless stated otherwise. Chaining registers are updated, so that the next call continues the
/// message.
pub(crate) trait SingleStreamKernel: Kernel {
    /// The length of the data of [`SingleStreamKernel::gcm`] is a multiple of this number of bytes. The number is 0 if the
    /// kernel has no fused loop.
    const GCM_STEP: usize = 0;

    /// Number of bytes from which [`SingleStreamKernel::gcm`] is faster than [`SingleStreamKernel::gcm_short`] if the powers of H
    /// have not been computed; at least [`SingleStreamKernel::GCM_STEP`].
    const GCM_FROM: usize = Self::GCM_STEP;

    /// GCM's CTR (with a 32-bit counter) and GHASH of the ciphertext in one loop. The data are whole steps of
    /// [`SingleStreamKernel::GCM_STEP`] bytes. [`SingleStreamKernel::ensure_powers`] has been called for the blocks of a step.
    fn gcm(
        self,
        _key: &Self::Schedule,
        _hash_key: &Self::HashKey,
        _encrypts: bool,
        _counter: &mut GcmCounter,
        _state: &mut Block,
        _data: Span<'_>,
    ) {
        unreachable!("GCM_STEP is 0")
    }

    /// The length of the data of [`SingleStreamKernel::gcm_siv_open`] and [`SingleStreamKernel::gcm_siv_seal`] is a multiple of
    /// this number of bytes. The number is 0 if the kernel has no fused loops for GCM-SIV.
    const GCM_SIV_STEP: usize = 0;

    /// Replaces a schedule, for encryption only, and the hash key by those of another AES key. Returns false if memory cannot be
    /// allocated; the schedule and the hash key must not be used then.
    fn gcm_key_into(self, key: &[u8], schedule: &mut Self::Schedule, hash_key: &mut Self::HashKey) -> bool {
        let mut h = Wiped::<1>::zero();
        if !self.expand_into(key, schedule) {
            return false;
        }
        self.encrypt_block(schedule, &mut h[0]);
        self.hash_key_into(&h[0], hash_key)
    }

    /// CTR (with a 32-bit counter) of whole blocks, and GHASH of the waiting blocks and of the ciphertext, for short data.
    fn gcm_short(
        self,
        key: &Self::Schedule,
        powers: Powers<'_, Self::HashKey>,
        progress: Progress<'_>,
        encrypts: bool,
        data: Span<'_>,
    ) {
        let Progress { mask, counter, hash: state, before } = progress;
        if let Some(mask) = mask {
            *mask = [0; 16];
            self.ctr32(key, counter, Span::in_place(mask));
        }
        let (src, dst, len) = (data.src(), data.dst(), data.len());
        let hash_key = powers.for_blocks(self, (before.len() / 16).max(len / 16));
        self.ghash(hash_key, state, before);
        if !encrypts {
            // SAFETY: the span is valid for reads of its length, and nothing writes to it during the call.
            self.ghash(hash_key, state, unsafe { std::slice::from_raw_parts(src, len) });
        }
        self.ctr32(key, counter, data);
        if encrypts {
            // SAFETY: the span is valid for its length and was written by CTR; nothing else writes to it.
            self.ghash(hash_key, state, unsafe { std::slice::from_raw_parts(dst, len) });
        }
    }

    /// The tag of a message: GHASH of `before`, which are at most seven blocks, and of the lengths of additional data and data
    /// in bits, XORed with `mask`.
    fn gcm_tag(
        self,
        powers: Powers<'_, Self::HashKey>,
        state: &Block,
        before: &[u8],
        lengths: [u64; 2],
        mask: &Block,
    ) -> Block {
        // All blocks are hashed in one call, which reduces only once.
        let mut blocks = [0; PENDING + 16];
        let (pending, rest) = blocks.split_at_mut(before.len());
        pending.copy_from_slice(before);
        rest[..8].copy_from_slice(&lengths[0].to_be_bytes());
        rest[8..16].copy_from_slice(&lengths[1].to_be_bytes());
        let mut hash = Wiped::<1>::zero();
        hash[0] = *state;
        let len = before.len() + 16;
        self.ghash(powers.for_blocks(self, len / 16), &mut hash[0], &blocks[..len]);
        (u128::from_ne_bytes(hash[0]) ^ u128::from_ne_bytes(*mask)).to_ne_bytes()
    }

    /// CTR with a little-endian counter and POLYVAL of the output, in one loop: opening of GCM-SIV. The conditions are those of
    /// [`SingleStreamKernel::gcm`].
    fn gcm_siv_open(
        self,
        _key: &Self::Schedule,
        _hash_key: &Self::HashKey,
        _counter: &mut Block,
        _state: &mut Block,
        _data: Span<'_>,
    ) {
        unreachable!("GCM_SIV_STEP is 0")
    }

    /// CTR with a little-endian counter over the data of one message, and POLYVAL of the text of another message, which has the
    /// same length, in one loop: sealing of GCM-SIV. The conditions are those of [`SingleStreamKernel::gcm`].
    fn gcm_siv_seal(
        self,
        _key: &Self::Schedule,
        _counter: &mut Block,
        _data: Span<'_>,
        _hash_key: &Self::HashKey,
        _state: &mut Block,
        _text: &[u8],
    ) {
        unreachable!("GCM_SIV_STEP is 0")
    }

    /// Like [`Kernel::expand`], but `None` if memory cannot be allocated.
    fn try_expand(self, key: &[u8]) -> Option<Self::Schedule> {
        Some(self.expand(key))
    }

    /// Like [`Kernel::hash_key`], but `None` if memory cannot be allocated.
    fn try_hash_key(self, h: &Block) -> Option<Self::HashKey> {
        Some(self.hash_key(h))
    }

    /// True if schedules and hash keys own no memory, and [`SingleStreamKernel::gcm_key_into`],
    /// [`SingleStreamKernel::hash_key_into`], [`SingleStreamKernel::copy_schedule`] and
    /// [`SingleStreamKernel::ensure_powers`] write keys to their place and leave no copy on the stack.
    const KEYS_IN_PLACE: bool = false;

    /// Keys without an AES key, if [`SingleStreamKernel::KEYS_IN_PLACE`] is true; `None` if memory cannot be allocated.
    fn blank_keys(self) -> Option<Shared<Keys<Self>>> {
        unreachable!("KEYS_IN_PLACE is false")
    }

    /// Copies a schedule to a place, if [`SingleStreamKernel::KEYS_IN_PLACE`] is true.
    fn copy_schedule(_schedule: &Self::Schedule, _place: &mut Self::Schedule) {
        unreachable!("KEYS_IN_PLACE is false")
    }

    /// A copy of a schedule; `None` if memory cannot be allocated.
    fn duplicate(key: &Self::Schedule) -> Option<Self::Schedule>;

    /// Replaces a schedule by the schedule of another key. Returns false and changes nothing if memory cannot be allocated.
    fn expand_into(self, key: &[u8], place: &mut Self::Schedule) -> bool {
        self.try_expand(key).map(|schedule| *place = schedule).is_some()
    }

    /// Replaces a hash key. Returns false and changes nothing if memory cannot be allocated. Call
    /// [`SingleStreamKernel::ensure_powers`] before hashing.
    fn hash_key_into(self, h: &Block, place: &mut Self::HashKey) -> bool {
        self.try_hash_key(h).map(|key| *place = key).is_some()
    }

    /// A schedule and a hash key to be replaced by [`SingleStreamKernel::expand_each`] and
    /// [`SingleStreamKernel::hash_keys_into`].
    fn blank(self) -> (Self::Schedule, Self::HashKey) {
        (self.expand(&[0; 16]), self.hash_key(&[0; 16]))
    }

    /// Replaces schedules by the schedules of other keys, one for each place, for encryption only.
    fn expand_each(self, keys: &[&[u8]], places: &mut [Self::Schedule]) {
        keys.iter().zip(places).for_each(|(key, place)| *place = self.expand(key));
    }

    /// Computes the hash key of each H in `h`, and stores it at the same index of `places`. Call [`SingleStreamKernel::ensure_powers`] before hashing.
    fn hash_keys_into(self, h: &[Block], places: &mut [Self::HashKey]) {
        h.iter().zip(places).for_each(|(h, place)| *place = self.hash_key(h));
    }

    /// Computes the powers of H that a call on `blocks` blocks needs. Short messages need few of them.
    fn ensure_powers(self, _key: &mut Self::HashKey, _blocks: usize) {}

    /// XTS of the whole blocks of a data unit, from the start of the unit. `number` is the number of the unit; `after` is
    /// set to the tweak of the block that follows the data. Both keys have the same size.
    fn xts_unit(
        self,
        key: &Self::Schedule,
        tweak_key: &Self::Schedule,
        encrypts: bool,
        number: &Block,
        after: Option<&mut Block>,
        data: Span<'_>,
    ) {
        xts_unit(self, key, tweak_key, encrypts, number, after, data);
    }

    /// Encrypts one block.
    fn encrypt_block(self, key: &Self::Schedule, block: &mut Block);

    /// CBC encryption (SP 800-38A, 6.2).
    fn cbc_encrypt_single(self, key: &Self::Schedule, iv: &mut Block, data: Span<'_>) {
        modes::cbc_encrypt(iv, data, |block| encrypt_number(self, key, block));
    }

    /// CFB128 encryption (SP 800-38A, 6.3).
    fn cfb128_encrypt(self, key: &Self::Schedule, iv: &mut Block, data: Span<'_>) {
        modes::cfb128_encrypt(iv, data, |block| encrypt_number(self, key, block));
    }

    /// CFB8 encryption of any length.
    fn cfb8_encrypt(self, key: &Self::Schedule, iv: &mut Block, data: Span<'_>) {
        modes::cfb8::<true>(iv, data, |block| first_byte(self, key, block));
    }

    /// CFB8 decryption of any length.
    fn cfb8_decrypt(self, key: &Self::Schedule, iv: &mut Block, data: Span<'_>) {
        modes::cfb8::<false>(iv, data, |block| first_byte(self, key, block));
    }

    /// CFB1 encryption of `bits` bits.
    fn cfb1_encrypt(self, key: &Self::Schedule, register: &mut Block, data: Span<'_>, bits: usize) {
        modes::cfb1::<true>(register, data, bits, |block| first_byte(self, key, block));
    }

    /// CFB1 decryption of `bits` bits.
    fn cfb1_decrypt(self, key: &Self::Schedule, register: &mut Block, data: Span<'_>, bits: usize) {
        modes::cfb1::<false>(register, data, bits, |block| first_byte(self, key, block));
    }

    /// OFB (SP 800-38A, 6.4).
    fn ofb(self, key: &Self::Schedule, iv: &mut Block, data: Span<'_>) {
        modes::ofb(iv, data, |block| encrypt_number(self, key, block));
    }

    /// CBC-MAC, without padding.
    fn cbc_mac(self, key: &Self::Schedule, state: &mut Block, data: &[u8]) {
        modes::cbc_mac(state, data, |block| encrypt_number(self, key, block));
    }
}

/// Implements [`SingleStreamKernel::xts_unit`] with the XTS passes of the kernel.
pub(crate) fn xts_unit<K: SingleStreamKernel>(
    kernel: K,
    key: &K::Schedule,
    tweak_key: &K::Schedule,
    encrypts: bool,
    number: &Block,
    after: Option<&mut Block>,
    data: Span<'_>,
) {
    let mut tweak = *number;
    kernel.encrypt_block(tweak_key, &mut tweak);
    if encrypts {
        kernel.xts_encrypt(key, &mut tweak, data);
    } else {
        kernel.xts_decrypt(key, &mut tweak, data);
    }
    if let Some(after) = after {
        *after = tweak;
    }
}

/// Encrypts a block given as a big-endian number.
fn encrypt_number<K: SingleStreamKernel>(kernel: K, key: &K::Schedule, block: u128) -> u128 {
    let mut block = block.to_be_bytes();
    kernel.encrypt_block(key, &mut block);
    u128::from_be_bytes(block)
}

/// The first byte of an encrypted block.
fn first_byte<K: SingleStreamKernel>(kernel: K, key: &K::Schedule, block: u128) -> u8 {
    (encrypt_number(kernel, key, block) >> 120) as u8
}
