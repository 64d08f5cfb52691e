//! Round keys: expansion (FIPS 197, 5.2) and the form the kernels read.
//!
//! SubWord is done by `aesenclast` on a word repeated four times: ShiftRows then changes nothing, and the round
//! constant goes in as the round key. It is constant time like `aeskeygenassist`, and four times as fast where that
//! is microcoded. The recurrence of the words of one step is a prefix sum of exclusive ors.

use std::arch::x86_64::*;

use zeroize::Zeroize;

/// Round keys of one key for both directions; wiped on drop.
#[repr(C, align(64))]
pub struct Schedule {
    encrypt: [__m128i; 15],
    /// As the key length implies; kept between the keys, where alignment leaves room.
    rounds: usize,
    /// For the equivalent inverse cipher: in the order of use, all but the outer ones through InvMixColumns.
    decrypt: [__m128i; 15],
}

impl Schedule {
    /// 10, 12 or 14.
    #[inline(always)]
    pub(super) fn rounds(&self) -> usize {
        self.rounds
    }

    /// Round keys of encryption, `rounds + 1` of them.
    #[inline(always)]
    pub(super) fn encrypt(&self) -> *const __m128i {
        self.encrypt.as_ptr()
    }

    /// Round keys of decryption, `rounds + 1` of them.
    #[inline(always)]
    pub(super) fn decrypt(&self) -> *const __m128i {
        self.decrypt.as_ptr()
    }

    /// Another one of the same key.
    pub(crate) fn duplicate(&self) -> Self {
        Schedule { encrypt: self.encrypt, rounds: self.rounds, decrypt: self.decrypt }
    }
}

impl Drop for Schedule {
    fn drop(&mut self) {
        self.encrypt.zeroize();
        self.decrypt.zeroize();
    }
}

/// Expands a key of 16, 24 or 32 bytes.
///
/// By value and with constant bounds throughout: then the round keys go from registers to where the schedule belongs, and no
/// copy is left on the stack.
///
/// # Safety
///
/// The processor has the AES instructions and SSSE3.
#[inline(always)]
pub(super) unsafe fn expand(key: &[u8]) -> Schedule {
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        match key.len() {
            16 => both::<10>(expand_128(key)),
            24 => both::<12>(expand_192(key)),
            32 => both::<14>(expand_256(key)),
            other => panic!("an AES key has 16, 24 or 32 bytes, not {other}"),
        }
    }
}

/// Expands a key in the place of another one.
///
/// # Safety
///
/// As [`expand`].
#[inline(always)]
pub(super) unsafe fn expand_into(key: &[u8], place: &mut Schedule) {
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        match key.len() {
            16 => place.become_both::<10>(expand_128(key)),
            24 => place.become_both::<12>(expand_192(key)),
            32 => place.become_both::<14>(expand_256(key)),
            other => panic!("an AES key has 16, 24 or 32 bytes, not {other}"),
        }
    }
}

/// Expands a key for what only encrypts in the place of another one: the round keys of decryption stay as they are.
///
/// # Safety
///
/// As [`expand`].
#[inline(always)]
pub(super) unsafe fn expand_to_encrypt_into(key: &[u8], place: &mut Schedule) {
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        match key.len() {
            16 => place.become_encrypt::<10>(expand_128(key)),
            24 => place.become_encrypt::<12>(expand_192(key)),
            32 => place.become_encrypt::<14>(expand_256(key)),
            other => panic!("an AES key has 16, 24 or 32 bytes, not {other}"),
        }
    }
}

impl Schedule {
    /// Copies round by round, with constant bounds: from registers, not from a copy on the stack. What a longer key has had
    /// behind them is overwritten too, by the zeros there.
    #[inline(always)]
    #[allow(clippy::manual_memcpy)] // A call of memcpy reads from the stack.
    fn become_encrypt<const ROUNDS: usize>(&mut self, keys: [__m128i; 15]) {
        for i in 0..15 {
            self.encrypt[i] = keys[i];
        }
        self.rounds = ROUNDS;
    }

    /// # Safety
    ///
    /// The processor has the AES instructions.
    #[inline(always)]
    unsafe fn become_both<const ROUNDS: usize>(&mut self, keys: [__m128i; 15]) {
        self.become_encrypt::<ROUNDS>(keys);
        for i in 0..15 {
            // SAFETY: the caller vouches for the instruction.
            self.decrypt[i] = unsafe { inverse::<ROUNDS>(&keys, i) };
        }
    }
}

/// Expands a key for what only encrypts: there are no round keys of decryption.
///
/// # Safety
///
/// As [`expand`].
#[inline(always)]
pub(super) unsafe fn expand_to_encrypt(key: &[u8]) -> Schedule {
    // SAFETY: the caller vouches for the instructions, which include SSE2.
    let (encrypt, rounds) = unsafe {
        match key.len() {
            16 => (expand_128(key), 10),
            24 => (expand_192(key), 12),
            32 => (expand_256(key), 14),
            other => panic!("an AES key has 16, 24 or 32 bytes, not {other}"),
        }
    };
    // SAFETY: as above.
    Schedule { encrypt, rounds, decrypt: [unsafe { _mm_setzero_si128() }; 15] }
}

/// Round key `i` of decryption.
///
/// # Safety
///
/// The processor has the AES instructions.
#[inline(always)]
unsafe fn inverse<const ROUNDS: usize>(encrypt: &[__m128i; 15], i: usize) -> __m128i {
    match i {
        _ if i == 0 || i == ROUNDS => encrypt[ROUNDS - i],
        // SAFETY: the caller vouches for the instruction.
        _ if i < ROUNDS => unsafe { _mm_aesimc_si128(encrypt[ROUNDS - i]) },
        _ => encrypt[i],
    }
}

/// # Safety
///
/// The processor has the AES instructions.
#[inline(always)]
unsafe fn both<const ROUNDS: usize>(encrypt: [__m128i; 15]) -> Schedule {
    let mut decrypt = encrypt;
    for i in 0..15 {
        // SAFETY: the caller vouches for the instruction.
        decrypt[i] = unsafe { inverse::<ROUNDS>(&encrypt, i) };
    }
    Schedule { encrypt, rounds: ROUNDS, decrypt }
}

/// Shuffles the last word of a vector into every word: as it is, or rotated by a byte (RotWord).
const LAST: i32 = 0x0f0e_0d0c;
const LAST_ROTATED: i32 = 0x0c0f_0e0d;
/// The same for the second word.
const SECOND_ROTATED: i32 = 0x0407_0605;

/// SubWord of the word that `order` picks, in every word, after the exclusive or with the round constant.
///
/// # Safety
///
/// The processor has the AES instructions and SSSE3.
#[inline(always)]
unsafe fn sub_word(words: __m128i, order: i32, constant: i32) -> __m128i {
    // SAFETY: the caller vouches for the instructions.
    unsafe { _mm_aesenclast_si128(_mm_shuffle_epi8(words, _mm_set1_epi32(order)), _mm_set1_epi32(constant)) }
}

/// Each word with all words before it added.
///
/// # Safety
///
/// The processor has SSE2.
#[inline(always)]
unsafe fn prefix(words: __m128i) -> __m128i {
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        let words = _mm_xor_si128(words, _mm_bslli_si128::<4>(words));
        _mm_xor_si128(words, _mm_bslli_si128::<8>(words))
    }
}

/// # Safety
///
/// The processor has the AES instructions and SSSE3; the key has 16 bytes.
#[inline(always)]
unsafe fn expand_128(key: &[u8]) -> [__m128i; 15] {
    const CONSTANTS: [i32; 10] = [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36];
    // SAFETY: the caller vouches for the instructions and the length.
    unsafe {
        let mut keys = [_mm_setzero_si128(); 15];
        keys[0] = _mm_loadu_si128(key.as_ptr().cast());
        for i in 0..10 {
            keys[i + 1] = _mm_xor_si128(prefix(keys[i]), sub_word(keys[i], LAST_ROTATED, CONSTANTS[i]));
        }
        keys
    }
}

/// The next six words of a 192-bit key.
///
/// # Safety
///
/// The processor has the AES instructions and SSSE3.
#[inline(always)]
unsafe fn six_words(four: __m128i, two: __m128i, constant: i32) -> (__m128i, __m128i) {
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        let four = _mm_xor_si128(prefix(four), sub_word(two, SECOND_ROTATED, constant));
        let pair = _mm_xor_si128(two, _mm_bslli_si128::<4>(two));
        (four, _mm_xor_si128(pair, _mm_shuffle_epi32::<0xff>(four)))
    }
}

/// # Safety
///
/// The processor has the AES instructions and SSSE3; the key has 24 bytes.
#[inline(always)]
unsafe fn expand_192(key: &[u8]) -> [__m128i; 15] {
    // SAFETY: the caller vouches for the instructions and the length.
    unsafe {
        let mut keys = [_mm_setzero_si128(); 15];
        // Six words: four, and two in the lower half.
        let mut four = _mm_loadu_si128(key.as_ptr().cast());
        let mut two = _mm_loadl_epi64(key.as_ptr().add(16).cast());
        // Two times six words are three round keys.
        for i in 0..5 {
            keys[3 * i] = four;
            if i < 4 {
                let (next_four, next_two) = six_words(four, two, 1 << (2 * i));
                keys[3 * i + 1] = _mm_unpacklo_epi64(two, next_four);
                keys[3 * i + 2] = _mm_alignr_epi8::<8>(next_two, next_four);
                (four, two) = six_words(next_four, next_two, 2 << (2 * i));
            }
        }
        keys
    }
}

/// # Safety
///
/// The processor has the AES instructions and SSSE3; the key has 32 bytes.
#[inline(always)]
unsafe fn expand_256(key: &[u8]) -> [__m128i; 15] {
    // SAFETY: the caller vouches for the instructions and the length.
    unsafe {
        let mut keys = [_mm_setzero_si128(); 15];
        keys[0] = _mm_loadu_si128(key.as_ptr().cast());
        keys[1] = _mm_loadu_si128(key.as_ptr().add(16).cast());
        for i in 1..8 {
            let word = sub_word(keys[2 * i - 1], LAST_ROTATED, 1 << (i - 1));
            keys[2 * i] = _mm_xor_si128(prefix(keys[2 * i - 2]), word);
            if i < 7 {
                let word = sub_word(keys[2 * i], LAST, 0);
                keys[2 * i + 1] = _mm_xor_si128(prefix(keys[2 * i - 1]), word);
            }
        }
        keys
    }
}
