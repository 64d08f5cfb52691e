//! What inline work asks of a kernel beyond [`Kernel`]: the serial modes of one message, and keys without a panic.

use super::modes;
use crate::kernel::{Block, Kernel, Span};

/// A kernel that works on one message by itself, and allocates in no call on data.
///
/// Data are whole blocks unless stated otherwise; registers are left as the next call must find them.
pub(crate) trait Alone: Kernel {
    /// Bytes in whose multiples [`Alone::gcm`] takes data; 0 if the kernel has no loop for it.
    const GCM_STEP: usize = 0;

    /// GCM's CTR (32 bits of the counter count) and GHASH of the ciphertext in one loop, over whole steps. It needs no
    /// [`Alone::reach`].
    fn gcm(
        self,
        _key: &Self::Schedule,
        _hash_key: &mut Self::HashKey,
        _encrypts: bool,
        _counter: &mut Block,
        _state: &mut Block,
        _data: Span<'_>,
    ) {
        unreachable!("there are no steps")
    }

    /// [`Kernel::expand`], or nothing if there is no memory.
    fn try_expand(self, key: &[u8]) -> Option<Self::Schedule> {
        Some(self.expand(key))
    }

    /// A schedule for what only encrypts, CTR and GCM, or nothing if there is no memory. Decryption may not be asked of it.
    fn try_expand_to_encrypt(self, key: &[u8]) -> Option<Self::Schedule> {
        self.try_expand(key)
    }

    /// [`Kernel::hash_key`], or nothing if there is no memory.
    fn try_hash_key(self, h: &Block) -> Option<Self::HashKey> {
        Some(self.hash_key(h))
    }

    /// Another schedule of the same key.
    fn duplicate(key: &Self::Schedule) -> Option<Self::Schedule>;

    /// Another hash key of the same value.
    fn duplicate_hash_key(key: &Self::HashKey) -> Option<Self::HashKey>;

    /// Another key in the place of one; false, and the old one stays, if there is no memory.
    fn expand_into(self, key: &[u8], place: &mut Self::Schedule) -> bool {
        self.try_expand(key).map(|schedule| *place = schedule).is_some()
    }

    /// Another key in the place of one of [`Alone::try_expand_to_encrypt`]; false, and the old one stays, if there is no
    /// memory.
    fn expand_to_encrypt_into(self, key: &[u8], place: &mut Self::Schedule) -> bool {
        self.expand_into(key, place)
    }

    /// Another hash key in the place of one; false, and the old one stays, if there is no memory. It hashes nothing before
    /// [`Alone::reach`].
    fn hash_key_into(self, h: &Block, place: &mut Self::HashKey) -> bool {
        self.try_hash_key(h).map(|key| *place = key).is_some()
    }

    /// Makes a hash key ready to hash so many blocks in a call. What a short message does not need is never made.
    fn reach(self, _key: &mut Self::HashKey, _blocks: usize) {}

    /// XTS of the whole blocks of a data unit from its start: `number` is the unit's, and `after`, if it is asked
    /// for, becomes the tweak of the block after them. Both keys are of one size.
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
    fn cbc_encrypt_alone(self, key: &Self::Schedule, iv: &mut Block, data: Span<'_>) {
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

/// [`Alone::xts_unit`] by the passes of the kernel.
pub(crate) fn xts_unit<K: Alone>(
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

/// Encrypts a block that is a big-endian number.
fn encrypt_number<K: Alone>(kernel: K, key: &K::Schedule, block: u128) -> u128 {
    let mut block = block.to_be_bytes();
    kernel.encrypt_block(key, &mut block);
    u128::from_be_bytes(block)
}

/// The first byte of what comes of a block.
fn first_byte<K: Alone>(kernel: K, key: &K::Schedule, block: u128) -> u8 {
    (encrypt_number(kernel, key, block) >> 120) as u8
}
