//! The trait that every CPU kernel implements, and what all kernels share.
//!
//! A kernel is a small token. The only constructor is `detect`, which checks that the processor has the instructions of the
//! kernel, so a token proves that the code may run. Kernels are single-threaded and handle neither messages nor padding.
//!
//! | file | content |
//! |---|---|
//! | `prepared` | the round keys and hash keys that a [`Key`](lockstep_core::Key) caches for a kernel |
//! | `gcm`, `ocb` | the state of a GCM or OCB3 message that a kernel's loops read and advance |
//! | `rfc8452` | POLYVAL and the counter mode of GCM-SIV by GHASH and ECB |
//! | `serial`, `interleave` | serial modes as steps; scheduling of several messages |
//! | `counter`, `tweak` | sequences of counter blocks and of XTS tweaks |
//! | `entry`, `registers` | entry into public functions; clearing of registers |
//! | `partial` | blocks of less than 16 bytes |
//! | `wiped`, `boxed` | secret blocks that are wiped on drop; fallible allocation |

pub(crate) mod boxed;
pub(crate) mod counter;
pub(crate) mod entry;
pub(crate) mod gcm;
pub(crate) mod interleave;
pub(crate) mod ocb;
pub(crate) mod partial;
pub(crate) mod prepared;
#[cfg(target_arch = "x86_64")]
pub(crate) mod registers;
pub(crate) mod rfc8452;
pub(crate) mod serial;
pub(crate) mod tweak;
pub(crate) mod wiped;

use std::alloc::{Layout, handle_alloc_error};
use std::slice::{from_mut, from_ref};

use lockstep_core::data::HostData;
pub use lockstep_core::data::Span;
pub use lockstep_core::key::Block;
use lockstep_core::work::Pass;

pub use gcm::{GcmCounter, LARGEST_VECTOR, Powers, Progress};
pub use ocb::{OcbKey, OcbState};
use wiped::Wiped;

/// Overwrites the stack below the caller where the compiler is known to leave secrets. The stack of processors other than x86-64 is
/// not searched.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn wipe_stack<const BYTES: usize>() {}
#[cfg(target_arch = "x86_64")]
pub(crate) use registers::wipe_stack;

/// The largest number of messages in one step of a serial pass.
pub const LANES: usize = 16;

/// One message of a serial pass: key, chaining register and data.
pub struct Lane<'a, S, D = Span<'a>> {
    /// The expanded key of this message.
    pub schedule: &'a S,
    /// The chaining register. It holds the IV before the first call and, after a call, the value from which the next call
    /// continues.
    pub register: &'a mut Block,
    /// Whole blocks, for CBC encryption.
    pub data: D,
}

mod listed {
    /// A kernel in the list of `kernels`. Only the macro of that list implements this trait, so a kernel that is not listed
    /// does not compile.
    pub trait Listed {}
}
pub(crate) use listed::Listed;

/// Reports that a value of type T cannot be allocated, and ends the process.
#[cold]
pub(crate) fn out_of_memory<T>() -> ! {
    handle_alloc_error(Layout::new::<T>())
}

/// The block cipher and the passes on one instruction set.
///
/// Unless stated otherwise, data are whole blocks (a multiple of 16 bytes) of any alignment, in place or not. Chaining registers
/// and counters are updated, so that the next call continues the message. Calls on data of one message do not allocate memory.
pub trait Kernel: Listed + Copy + Send + Sync + 'static {
    /// Round keys for both directions in the format of this kernel; zeroed on drop.
    type Schedule: Send + Sync + 'static;

    /// A GHASH key (powers of H in the format of this kernel); zeroed on drop.
    type HashKey: Send + Sync + 'static;

    /// The name by which users select the kernel, such as `cpu/vaes512`.
    const NAME: &'static str;

    /// The kernel, or `None` if this processor lacks its instructions.
    fn detect() -> Option<Self>;

    /// Clears all vector registers, and general registers, on x86-64. Public functions call it before they
    /// return: see `entry`.
    fn clear_registers(self) {}

    // Keys.

    /// A schedule without a key, to be replaced by another function; `None` if memory cannot be allocated.
    fn blank_schedule(self) -> Option<Self::Schedule>;

    /// A hash key without powers, to be replaced by another function; `None` if memory cannot be allocated.
    fn blank_hash_key(self) -> Option<Self::HashKey>;

    /// Replaces schedules by the schedules of other keys, one for each place, in constant time. Keys have 16, 24 or 32 bytes. The
    /// schedules are for encryption only, unless [`Kernel::expand_into`] has its default implementation.
    fn expand_each(self, keys: &[&[u8]], places: &mut [Self::Schedule]);

    /// Replaces a schedule by the schedule of another key of 16, 24 or 32 bytes, for both directions, in constant time.
    fn expand_into(self, key: &[u8], place: &mut Self::Schedule) {
        self.expand_each(&[key], from_mut(place));
    }

    /// Does the same as [`Kernel::expand_into`], but the schedule may be for encryption only: round keys of decryption are not
    /// changed.
    fn expand_to_encrypt_into(self, key: &[u8], place: &mut Self::Schedule) {
        self.expand_each(&[key], from_mut(place));
    }

    /// Computes the hash key of each H in `h` (SP 800-38D, 6.3), and stores it at the same index of `places`. Call
    /// [`Kernel::ensure_powers`] before hashing.
    fn hash_keys_into(self, h: &[Block], places: &mut [Self::HashKey]);

    /// Copies a schedule to a place.
    fn copy_schedule(self, schedule: &Self::Schedule, place: &mut Self::Schedule);

    /// Computes the powers of H that a call on `blocks` blocks needs. Short messages need few of them.
    fn ensure_powers(self, _key: &mut Self::HashKey, _blocks: usize) {}

    /// True if the functions that write keys to their place leave no copy of a key on the stack: [`Kernel::expand_into`],
    /// [`Kernel::expand_to_encrypt_into`], [`Kernel::gcm_key_into`], [`Kernel::hash_keys_into`], [`Kernel::copy_schedule`] and
    /// [`Kernel::ensure_powers`].
    const IN_PLACE: bool = false;

    /// Expands a key of 16, 24 or 32 bytes, in constant time.
    fn expand(self, key: &[u8]) -> Self::Schedule {
        let mut schedule = self.blank_schedule().unwrap_or_else(|| out_of_memory::<Self::Schedule>());
        self.expand_into(key, &mut schedule);
        schedule
    }

    /// The hash key of H with all powers.
    fn hash_key(self, h: &Block) -> Self::HashKey {
        let mut key = self.blank_hash_key().unwrap_or_else(|| out_of_memory::<Self::HashKey>());
        self.hash_keys_into(from_ref(h), from_mut(&mut key));
        self.ensure_powers(&mut key, usize::MAX);
        key
    }

    /// Replaces a schedule, for encryption only, and the hash key by those of another AES key.
    fn gcm_key_into(self, key: &[u8], schedule: &mut Self::Schedule, hash_key: &mut Self::HashKey) {
        let mut h = Wiped::<1>::zero();
        self.expand_each(&[key], from_mut(schedule));
        self.encrypt_block(schedule, &mut h[0]);
        self.hash_keys_into(&*h, from_mut(hash_key));
    }

    // Parallel passes.

    /// ECB (SP 800-38A, 6.1).
    fn ecb(self, key: &Self::Schedule, encrypts: bool, data: Span<'_>);

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

    /// XTS of whole blocks (SP 800-38E; IEEE 1619, 5.3) under the data key. `tweak` is the encrypted tweak of the first block;
    /// it is multiplied by alpha for each block.
    fn xts(self, key: &Self::Schedule, encrypts: bool, tweak: &mut Block, data: Span<'_>);

    /// XTS of the whole blocks of a data unit, from the start of the unit. `number` is the number of the unit; `after` is
    /// set to the tweak of the block that follows the data.
    fn xts_unit(
        self,
        key: &Self::Schedule,
        tweak_key: &Self::Schedule,
        encrypts: bool,
        number: &Block,
        after: Option<&mut Block>,
        data: Span<'_>,
    ) {
        let mut tweak = Wiped::<1>::zero();
        tweak[0] = *number;
        self.encrypt_block(tweak_key, &mut tweak[0]);
        self.xts(key, encrypts, &mut tweak[0], data);
        if let Some(after) = after {
            *after = tweak[0];
        }
    }

    /// Folds whole blocks into a GHASH state (SP 800-38D, 6.4).
    fn ghash(self, key: &Self::HashKey, state: &mut Block, data: &[u8]);

    /// Adds whole blocks, and a last block if it is given, to a POLYVAL state (RFC 8452, section 3).
    fn polyval(self, key: &Self::HashKey, state: &mut Block, data: &[u8], last: Option<&Block>) {
        rfc8452::polyval_by_ghash(self, key, state, data);
        rfc8452::polyval_by_ghash(self, key, state, last.map_or(&[], |last| &last[..]));
    }

    /// Derives the keys of a message of GCM-SIV from its nonce, which is a little-endian number (RFC 8452, section 4). Replaces
    /// `hash_key` by the key of POLYVAL, and writes the key of AES to `derived`. A key of 16 bytes is the first block, and the second
    /// block is unspecified then.
    fn gcm_siv_keys(
        self,
        key: &Self::Schedule,
        nonce: u128,
        hash_key: &mut Self::HashKey,
        derived: &mut [Block; 2],
    ) {
        let mut blocks = Wiped::<6>::zero();
        self.ctr_little32(key, &mut (nonce << 32).to_le_bytes(), Span::in_place(blocks.as_flattened_mut()));
        // Half of each block is used.
        let half = |i: usize| u128::from(u128::from_le_bytes(blocks[i]) as u64);
        let [h, low, high] = [0, 2, 4].map(|i| (half(i) | half(i + 1) << 64).to_le_bytes());
        *derived = [low, high];
        blocks[0] = rfc8452::ghash_key_of_polyval_key(&h);
        self.hash_keys_into(&blocks[..1], from_mut(hash_key));
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
        ocb::by_ecb(self, schedule, key, state, encrypts, data);
    }

    /// CTR and CBC-MAC of all data of a message of CCM (SP 800-38C, 6.1 and 6.2), which have any length. Let B be the last block of the
    /// MAC's input before the data. `mac` is the CBC-MAC of the blocks before B, XORed with B; it is replaced by the tag of 16 bytes.
    /// `first` is the counter block that masks the tag; the data begin with the next one.
    fn ccm(self, key: &Self::Schedule, encrypts: bool, mac: &mut Block, first: &Block, data: Span<'_>) {
        let (mut data, mut counter) =
            (data.into_host(), u128::from_be_bytes(*first).wrapping_add(1).to_be_bytes());
        self.encrypt_block(key, mac);
        for is_mac in [encrypts, !encrypts] {
            if !is_mac {
                self.ctr(key, &mut counter, data.reborrow().into_span());
                continue;
            }
            let plaintext: &[u8] = if encrypts { data.input() } else { data.output() };
            let (blocks, tail) = plaintext.split_at(plaintext.len() & !15);
            self.cbc_mac(key, mac, blocks);
            if !tail.is_empty() {
                mac.iter_mut().zip(tail).for_each(|(mac, byte)| *mac ^= byte);
                self.encrypt_block(key, mac);
            }
        }
        self.ctr(key, &mut { *first }, Span::in_place(mac));
    }

    // CTR and GHASH in one loop.

    /// The length of the data of [`Kernel::gcm`] is a multiple of this number of bytes. The number is 0 if the kernel has no fused
    /// loop.
    const GCM_STEP: usize = 0;

    /// Number of bytes from which [`Kernel::gcm`] is faster than [`Kernel::gcm_short`] if the powers of H have not been computed;
    /// at least [`Kernel::GCM_STEP`].
    const GCM_FROM: usize = Self::GCM_STEP;

    /// GCM's CTR (with a 32-bit counter) and GHASH of the ciphertext in one loop. The data are whole steps of
    /// [`Kernel::GCM_STEP`] bytes. [`Kernel::ensure_powers`] has been called for the blocks of a step.
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

    /// The largest number of bytes of [`Kernel::gcm_few`], at most [`LARGEST_VECTOR`]. The number is 0 if the kernel does not have this function,
    /// [`Kernel::gcm_short`] and [`Kernel::gcm_tag`].
    const GCM_FEW: usize = 0;

    /// CTR (with a 32-bit counter) of 1 to [`Kernel::GCM_FEW`] / 16 whole blocks. If a mask is given, `counter` is J0, and J0 is
    /// encrypted into the mask first. The ciphertext is also written to `waiting`, to be hashed later. The bytes after it in `waiting`
    /// become unspecified and secret: they may be keystream of later blocks.
    fn gcm_few(
        self,
        _key: &Self::Schedule,
        _mask: Option<&mut Block>,
        _counter: &mut Block,
        _encrypts: bool,
        _data: Span<'_>,
        _waiting: &mut [u8; LARGEST_VECTOR],
    ) {
        unreachable!("GCM_FEW is 0")
    }

    /// CTR (with a 32-bit counter) of at least one whole block, and GHASH of the waiting blocks and of the ciphertext, for short data.
    fn gcm_short(
        self,
        _key: &Self::Schedule,
        _powers: &mut Powers<'_, Self::HashKey>,
        _progress: Progress<'_>,
        _encrypts: bool,
        _data: Span<'_>,
    ) {
        unreachable!("GCM_FEW is 0")
    }

    /// Sets `tag`, which is the encrypted J0, to the tag of a message: adds GHASH of `before`, which are at most seven blocks, and of
    /// the lengths of additional data and data in bits. [`Kernel::ensure_powers`] has been called for the number of these blocks
    /// and the block of lengths.
    fn gcm_tag(
        self,
        _hash_key: &Self::HashKey,
        _state: &Block,
        _before: &[u8],
        _lengths: [u64; 2],
        _tag: &mut Block,
    ) {
        unreachable!("GCM_FEW is 0")
    }

    /// The length of the data of [`Kernel::gcm_siv`] is a multiple of this number of bytes. The number is 0 if the kernel has no fused
    /// loop for GCM-SIV.
    const GCM_SIV_STEP: usize = 0;

    /// CTR with a little-endian counter over the data of a message, and POLYVAL of a text, in one loop. If no text is given, the output
    /// is hashed: opening of GCM-SIV. A text has the length of the data and belongs to another message: sealing of GCM-SIV. The
    /// conditions are those of [`Kernel::gcm`].
    fn gcm_siv(
        self,
        _key: &Self::Schedule,
        _counter: &mut Block,
        _data: Span<'_>,
        _hash_key: &Self::HashKey,
        _state: &mut Block,
        _text: Option<&[u8]>,
    ) {
        unreachable!("GCM_SIV_STEP is 0")
    }

    // Several messages.

    /// CBC encryption (SP 800-38A, 6.2) of any number of independent messages, interleaved.
    fn cbc_encrypt(self, lanes: &mut [Lane<'_, Self::Schedule>]);

    /// Encrypts or decrypts `blocks[i]` under `keys[i]`, interleaved. This is one step of the serial modes other than CBC. The
    /// slices have the same length, at most [`LANES`].
    fn each(self, keys: &[&Self::Schedule], encrypts: bool, blocks: &mut [Block]);

    // Serial modes of one message.

    /// Encrypts one block.
    fn encrypt_block(self, key: &Self::Schedule, block: &mut Block);

    /// A serial pass over one message, except CBC-MAC: any length in CFB8 and CFB1, whole blocks in other modes. Of CFB1, only the
    /// first `bits` bits are processed: the most significant bit of each byte is the first, and later bits of the output are not
    /// changed. In other modes, `bits` is the length of the data.
    fn serial(self, key: &Self::Schedule, pass: Pass, register: &mut Block, bits: u64, data: Span<'_>) {
        serial::single(self, key, pass, register, bits, data.into_host());
    }

    /// CBC-MAC, without padding.
    fn cbc_mac(self, key: &Self::Schedule, state: &mut Block, data: &[u8]) {
        serial::single(self, key, Pass::CbcMac, state, 8 * data.len() as u64, HostData::ReadOnly(data));
    }
}
