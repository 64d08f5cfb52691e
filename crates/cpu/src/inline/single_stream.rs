//! The part of a kernel that only inline calls use: serial modes of one message, and fallible key set-up.

use super::modes;
use crate::counter::GcmCounter;
use crate::kernel::{Block, Kernel, Span};

/// A kernel that processes single messages. Calls on data do not allocate.
///
/// Data are whole blocks unless stated otherwise. Chaining registers are updated, so that the next call continues the
/// message.
pub(crate) trait SingleStreamKernel: Kernel {
    /// The length of the data of [`SingleStreamKernel::gcm`] is a multiple of this number of bytes. The number is 0 if the
    /// kernel has no fused loop.
    const GCM_STEP: usize = 0;

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
        unreachable!("GCM_STEP is 0")
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
        unreachable!("GCM_STEP is 0")
    }

    /// Like [`Kernel::expand`], but `None` if memory cannot be allocated.
    fn try_expand(self, key: &[u8]) -> Option<Self::Schedule> {
        Some(self.expand(key))
    }

    /// A schedule for encryption only (CTR, GCM); `None` if memory cannot be allocated. It must not be used for decryption.
    fn try_expand_to_encrypt(self, key: &[u8]) -> Option<Self::Schedule> {
        self.try_expand(key)
    }

    /// Like [`Kernel::hash_key`], but `None` if memory cannot be allocated.
    fn try_hash_key(self, h: &Block) -> Option<Self::HashKey> {
        Some(self.hash_key(h))
    }

    /// A copy of a schedule; `None` if memory cannot be allocated.
    fn duplicate(key: &Self::Schedule) -> Option<Self::Schedule>;

    /// A copy of a hash key; `None` if memory cannot be allocated.
    fn duplicate_hash_key(key: &Self::HashKey) -> Option<Self::HashKey>;

    /// Replaces a schedule by the schedule of another key. Returns false and changes nothing if memory cannot be allocated.
    fn expand_into(self, key: &[u8], place: &mut Self::Schedule) -> bool {
        self.try_expand(key).map(|schedule| *place = schedule).is_some()
    }

    /// Replaces a schedule that [`SingleStreamKernel::try_expand_to_encrypt`] made. Returns false and changes nothing if
    /// memory cannot be allocated.
    fn expand_to_encrypt_into(self, key: &[u8], place: &mut Self::Schedule) -> bool {
        self.expand_into(key, place)
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

    /// Replaces hash keys, one for each place. Call [`SingleStreamKernel::ensure_powers`] before hashing.
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
