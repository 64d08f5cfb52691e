//! What every CPU kernel implements: the cipher and the passes on one instruction set.
//!
//! A kernel is a zero-sized token that can only be constructed after the processor has shown the instructions it
//! needs (`detect`), so holding one is the proof that its code may run. Kernels are single-threaded and know
//! nothing of messages, padding or threads: [`crate::device`] splits the work and calls them.

/// One AES block: 16 bytes, in FIPS 197 byte order.
pub type Block = [u8; 16];

pub use lockstep_core::data::Span;

/// One message of a serial pass: its key, its chaining register and its next bytes.
pub struct Lane<'a, S> {
    /// The expanded key of this message.
    pub schedule: &'a S,
    /// The chaining register: the IV at first, afterwards what the next call continues from.
    pub register: &'a mut Block,
    /// Whole blocks.
    pub data: Span<'a>,
}

/// The block cipher and the passes on one instruction set.
///
/// Unless stated otherwise, data are whole blocks (a multiple of 16 bytes) of any alignment, in place or not.
/// Chaining registers and counters are left as the next call must find them.
pub trait Kernel: Copy + Send + Sync + 'static {
    /// Round keys in the form this kernel wants them (both directions); wipes itself on drop.
    type Schedule: Send + Sync + 'static;

    /// A GHASH key (powers of H in the form this kernel wants them); wipes itself on drop.
    type HashKey: Send + Sync + 'static;

    /// Name as users give it, such as `cpu/vaes512`.
    const NAME: &'static str;

    /// The kernel, if this processor can run it.
    fn detect() -> Option<Self>;

    /// Expands a key of 16, 24 or 32 bytes, in constant time.
    fn expand(self, key: &[u8]) -> Self::Schedule;

    /// ECB encryption (SP 800-38A, 6.1).
    fn ecb_encrypt(self, key: &Self::Schedule, data: Span<'_>);

    /// ECB decryption.
    fn ecb_decrypt(self, key: &Self::Schedule, data: Span<'_>);

    /// CTR with a 128-bit big-endian counter that wraps (SP 800-38A, 6.5). Any length; the counter moves on by the
    /// number of blocks begun.
    fn ctr(self, key: &Self::Schedule, counter: &mut Block, data: Span<'_>);

    /// CTR where only the last 32 bits count (GCM's inc32, SP 800-38D, 6.2). Any length.
    fn ctr32(self, key: &Self::Schedule, counter: &mut Block, data: Span<'_>);

    /// CBC decryption (SP 800-38A, 6.2).
    fn cbc_decrypt(self, key: &Self::Schedule, iv: &mut Block, data: Span<'_>);

    /// CFB128 decryption (SP 800-38A, 6.3).
    fn cfb128_decrypt(self, key: &Self::Schedule, iv: &mut Block, data: Span<'_>);

    /// XTS encryption of whole blocks (SP 800-38E; IEEE 1619, 5.3) under the data key. `tweak` is the tweak of the
    /// first block, already encrypted and multiplied; it moves on by alpha for each block.
    fn xts_encrypt(self, key: &Self::Schedule, tweak: &mut Block, data: Span<'_>);

    /// XTS decryption of whole blocks.
    fn xts_decrypt(self, key: &Self::Schedule, tweak: &mut Block, data: Span<'_>);

    /// Prepares the hash key H (SP 800-38D, 6.3).
    fn hash_key(self, h: &Block) -> Self::HashKey;

    /// Folds whole blocks into a GHASH state (SP 800-38D, 6.4).
    fn ghash(self, key: &Self::HashKey, state: &mut Block, data: &[u8]);

    /// CBC encryption (SP 800-38A, 6.2) of any number of independent messages, interleaved.
    fn cbc_encrypt(self, lanes: &mut [Lane<'_, Self::Schedule>]);

    /// Encrypts `blocks[i]` under `keys[i]`, all interleaved: one step of any other serial mode. The slices have the
    /// same length, at most [`LANES`].
    fn encrypt_each(self, keys: &[&Self::Schedule], blocks: &mut [Block]);

    /// Decrypts `blocks[i]` under `keys[i]`, all interleaved (PCBC decryption is serial).
    fn decrypt_each(self, keys: &[&Self::Schedule], blocks: &mut [Block]);
}

/// Most messages that one step of a serial pass takes together.
pub const LANES: usize = 16;
