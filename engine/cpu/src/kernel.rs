//! The trait that every CPU kernel implements: the block cipher and the passes on one instruction set.
//!
//! A kernel is a zero-sized token. The only constructor is `detect`, which checks that the processor has the
//! instructions of the kernel, so a token proves that the code may run. Kernels are single-threaded and handle
//! neither messages nor padding: [`crate::device`] splits the work and calls them.

/// One AES block: 16 bytes, in FIPS 197 byte order.
pub type Block = [u8; 16];

pub use lockstep_core::data::Span;

use crate::ocb;
pub use crate::ocb::{OcbKey, OcbState};
use crate::rfc8452;

/// One message of a serial pass: key, chaining register and data.
pub struct Lane<'a, S> {
    /// The expanded key of this message.
    pub schedule: &'a S,
    /// The chaining register. It holds the IV before the first call and, after a call, the value from which the next call
    /// continues.
    pub register: &'a mut Block,
    /// Whole blocks.
    pub data: Span<'a>,
}

/// The block cipher and the passes on one instruction set.
///
/// Unless stated otherwise, data are whole blocks (a multiple of 16 bytes) of any alignment, in place or not.
/// Chaining registers and counters are updated, so that the next call continues the message.
pub trait Kernel: Copy + Send + Sync + 'static {
    /// Round keys for both directions in the format of this kernel; zeroed on drop.
    type Schedule: Send + Sync + 'static;

    /// A GHASH key (powers of H in the format of this kernel); zeroed on drop.
    type HashKey: Send + Sync + 'static;

    /// The name by which users select the kernel, such as `cpu/vaes512`.
    const NAME: &'static str;

    /// The kernel, or `None` if this processor lacks its instructions.
    fn detect() -> Option<Self>;

    /// Expands a key of 16, 24 or 32 bytes, in constant time.
    fn expand(self, key: &[u8]) -> Self::Schedule;

    /// ECB encryption (SP 800-38A, 6.1).
    fn ecb_encrypt(self, key: &Self::Schedule, data: Span<'_>);

    /// ECB decryption.
    fn ecb_decrypt(self, key: &Self::Schedule, data: Span<'_>);

    /// CTR with a 128-bit big-endian counter that wraps (SP 800-38A, 6.5). The data have any length; the counter is
    /// increased by the number of blocks, including a partial one.
    fn ctr(self, key: &Self::Schedule, counter: &mut Block, data: Span<'_>);

    /// CTR that increments only the last 32 bits (GCM's inc32, SP 800-38D, 6.2). Any length.
    fn ctr32(self, key: &Self::Schedule, counter: &mut Block, data: Span<'_>);

    /// CTR that increments the first 32 bits, as a little-endian number (GCM-SIV, RFC 8452, section 4). Any length.
    fn ctr_little32(self, key: &Self::Schedule, counter: &mut Block, data: Span<'_>) {
        rfc8452::ctr_by_ecb(self, key, counter, data);
    }

    /// CBC decryption (SP 800-38A, 6.2).
    fn cbc_decrypt(self, key: &Self::Schedule, iv: &mut Block, data: Span<'_>);

    /// CFB128 decryption (SP 800-38A, 6.3).
    fn cfb128_decrypt(self, key: &Self::Schedule, iv: &mut Block, data: Span<'_>);

    /// XTS encryption of whole blocks (SP 800-38E; IEEE 1619, 5.3) under the data key. `tweak` is the encrypted tweak
    /// of the first block; it is multiplied by alpha for each block.
    fn xts_encrypt(self, key: &Self::Schedule, tweak: &mut Block, data: Span<'_>);

    /// XTS decryption of whole blocks.
    fn xts_decrypt(self, key: &Self::Schedule, tweak: &mut Block, data: Span<'_>);

    /// Prepares the hash key H (SP 800-38D, 6.3).
    fn hash_key(self, h: &Block) -> Self::HashKey;

    /// Folds whole blocks into a GHASH state (SP 800-38D, 6.4).
    fn ghash(self, key: &Self::HashKey, state: &mut Block, data: &[u8]);

    /// Prepares a POLYVAL key (RFC 8452, section 3), for [`polyval`](Kernel::polyval) only.
    fn polyval_key(self, h: &Block) -> Self::HashKey {
        self.hash_key(&rfc8452::ghash_key_of_polyval_key(h))
    }

    /// Adds whole blocks to a POLYVAL state (RFC 8452, section 3).
    fn polyval(self, key: &Self::HashKey, state: &mut Block, data: &[u8]) {
        rfc8452::polyval_by_ghash(self, key, state, data);
    }

    /// OCB3 of whole blocks (RFC 7253, sections 4.2 and 4.3), from the state before them.
    fn ocb(
        self,
        schedule: &Self::Schedule,
        key: &OcbKey,
        state: &mut OcbState,
        encrypts: bool,
        data: Span<'_>,
    ) {
        ocb::ocb_by_ecb(self, schedule, key, state, encrypts, data);
    }

    /// CBC encryption (SP 800-38A, 6.2) of any number of independent messages, interleaved.
    fn cbc_encrypt(self, lanes: &mut [Lane<'_, Self::Schedule>]);

    /// Encrypts `blocks[i]` under `keys[i]`, interleaved. This is one step of the serial modes other than CBC. The slices
    /// have the same length, at most [`LANES`].
    fn encrypt_each(self, keys: &[&Self::Schedule], blocks: &mut [Block]);

    /// Decrypts `blocks[i]` under `keys[i]`, interleaved (PCBC decryption is serial).
    fn decrypt_each(self, keys: &[&Self::Schedule], blocks: &mut [Block]);
}

/// The largest number of messages in one step of a serial pass.
pub const LANES: usize = 16;
