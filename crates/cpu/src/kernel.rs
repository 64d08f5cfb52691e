//! What every CPU kernel implements: the cipher and the passes on one instruction set.
//!
//! A kernel is a zero-sized token that can only be constructed after the processor has shown the instructions it
//! needs (`detect`), so holding one is the proof that its code may run. Kernels are single-threaded and know
//! nothing of messages, padding or threads: [`crate::device`] splits the work and calls them.

use std::marker::PhantomData;

use lockstep_core::data::HostData;

/// One AES block: 16 bytes, in FIPS 197 byte order.
pub type Block = [u8; 16];

/// Data of one segment: read from one place, written to the same place or to a disjoint one of equal length.
///
/// It is the pointer form of a `&mut [u8]` (in place) or of a `(&[u8], &mut [u8])` pair, so that kernels have one
/// loop for both. The constructors are the only way to make one and uphold: `src` is valid for reads of `len`
/// bytes, `dst` for writes, and they are equal or do not overlap.
pub struct Span<'a> {
    src: *const u8,
    dst: *mut u8,
    len: usize,
    owner: PhantomData<&'a mut [u8]>,
}

// SAFETY: a Span stands for the exclusive (dst) and shared (src) borrows it was made from, which are Send.
unsafe impl Send for Span<'_> {}

impl<'a> Span<'a> {
    /// In place.
    pub fn in_place(data: &'a mut [u8]) -> Self {
        let dst = data.as_mut_ptr();
        Span { src: dst, dst, len: data.len(), owner: PhantomData }
    }

    /// Out of place; `src` and `dst` must have the same length.
    pub fn copy(src: &'a [u8], dst: &'a mut [u8]) -> Self {
        assert_eq!(src.len(), dst.len(), "source and destination differ in length");
        Span { src: src.as_ptr(), dst: dst.as_mut_ptr(), len: src.len(), owner: PhantomData }
    }

    /// From pointers of another language's caller.
    ///
    /// # Safety
    ///
    /// For as long as the span lives, `src` is valid for reads of `len` bytes and `dst` for writes, they are equal or do
    /// not overlap, and nothing else writes to either or reads `dst`. Pointers to nothing may be anything.
    pub unsafe fn from_raw(src: *const u8, dst: *mut u8, len: usize) -> Self {
        Span { src, dst, len, owner: PhantomData }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where to read; valid for `len` bytes.
    pub fn src(&self) -> *const u8 {
        self.src
    }

    /// Where to write; valid for `len` bytes.
    pub fn dst(&self) -> *mut u8 {
        self.dst
    }

    /// As the data of a segment.
    pub fn into_host(self) -> HostData<'a> {
        if self.len == 0 {
            return HostData::InPlace(&mut []);
        }
        // SAFETY: what the span stands for: `dst` is borrowed exclusively for 'a, and `src` either is `dst` or is apart
        // from it and borrowed for as long. It cannot be used otherwise any more.
        unsafe {
            let to = std::slice::from_raw_parts_mut(self.dst, self.len);
            if std::ptr::eq(self.src, self.dst) {
                return HostData::InPlace(to);
            }
            let from = std::slice::from_raw_parts(self.src, self.len);
            HostData::copy(from, to).expect("they have one length")
        }
    }

    /// Copies the input; `into` has the same length.
    pub fn read(&self, into: &mut [u8]) {
        assert_eq!(into.len(), self.len, "another length");
        if self.len > 0 {
            // SAFETY: both are valid for `len` bytes, and `into` is borrowed, so it is other memory.
            unsafe { std::ptr::copy_nonoverlapping(self.src, into.as_mut_ptr(), self.len) }
        }
    }

    /// Writes the output; `from` has the same length.
    pub fn write(&mut self, from: &[u8]) {
        assert_eq!(from.len(), self.len, "another length");
        if self.len > 0 {
            // SAFETY: both are valid for `len` bytes, and `from` is borrowed, so it is other memory.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), self.dst, self.len) }
        }
    }

    /// XORs a mask of the same length.
    pub fn xor(&mut self, mask: &[u8]) {
        assert_eq!(mask.len(), self.len, "another length");
        for (i, mask) in mask.iter().enumerate() {
            // SAFETY: i is below `len`, for which both are valid. They are equal or apart, so the compiler may have to ask
            // which, but the order of bytes does not matter.
            unsafe { *self.dst.add(i) = *self.src.add(i) ^ mask }
        }
    }

    /// The parts before and from `at`, which must not exceed the length.
    pub fn split_at(self, at: usize) -> (Span<'a>, Span<'a>) {
        assert!(at <= self.len, "split beyond the end");
        // SAFETY: at <= len, so both parts stay inside the borrowed ranges, and they do not overlap.
        let (src, dst) = unsafe { (self.src.add(at), self.dst.add(at)) };
        (
            Span { src: self.src, dst: self.dst, len: at, owner: PhantomData },
            Span { src, dst, len: self.len - at, owner: PhantomData },
        )
    }

    /// A shorter-lived copy of this span.
    pub fn reborrow(&mut self) -> Span<'_> {
        Span { src: self.src, dst: self.dst, len: self.len, owner: PhantomData }
    }
}

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
