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
}

impl Drop for Schedule {
    fn drop(&mut self) {
        self.encrypt.zeroize();
        self.decrypt.zeroize();
    }
}

/// Expands a key of 16, 24 or 32 bytes.
///
/// # Safety
///
/// The processor has the AES instructions and SSSE3.
#[inline(always)]
pub(super) unsafe fn expand(key: &[u8]) -> Schedule {
    // SAFETY: all bits zero are a vector.
    let zero = unsafe { _mm_setzero_si128() };
    let mut schedule = Schedule { encrypt: [zero; 15], rounds: key.len() / 4 + 6, decrypt: [zero; 15] };
    let keys = &mut schedule.encrypt;
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        match key.len() {
            16 => expand_128(key, keys),
            24 => expand_192(key, keys),
            32 => expand_256(key, keys),
            other => panic!("an AES key has 16, 24 or 32 bytes, not {other}"),
        }
        invert(&schedule.encrypt, schedule.rounds, &mut schedule.decrypt);
    }
    schedule
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
unsafe fn expand_128(key: &[u8], keys: &mut [__m128i; 15]) {
    const CONSTANTS: [i32; 10] = [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36];
    // SAFETY: the caller vouches for the instructions and the length.
    unsafe {
        let mut words = _mm_loadu_si128(key.as_ptr().cast());
        keys[0] = words;
        for (key, constant) in keys[1..].iter_mut().zip(CONSTANTS) {
            words = _mm_xor_si128(prefix(words), sub_word(words, LAST_ROTATED, constant));
            *key = words;
        }
    }
}

/// # Safety
///
/// The processor has the AES instructions and SSSE3; the key has 24 bytes.
#[inline(always)]
unsafe fn expand_192(key: &[u8], keys: &mut [__m128i; 15]) {
    let out: *mut u8 = keys.as_mut_ptr().cast();
    // SAFETY: the caller vouches for the instructions and the length; the last step writes words 48 to 53 of 60.
    unsafe {
        let mut four = _mm_loadu_si128(key.as_ptr().cast());
        let mut two = _mm_loadl_epi64(key.as_ptr().add(16).cast());
        for step in 0..9 {
            if step > 0 {
                let word = sub_word(two, SECOND_ROTATED, 1 << (step - 1));
                four = _mm_xor_si128(prefix(four), word);
                let pair = _mm_xor_si128(two, _mm_bslli_si128::<4>(two));
                two = _mm_xor_si128(pair, _mm_shuffle_epi32::<0xff>(four));
            }
            _mm_storeu_si128(out.add(24 * step).cast(), four);
            _mm_storel_epi64(out.add(24 * step + 16).cast(), two);
        }
    }
}

/// # Safety
///
/// The processor has the AES instructions and SSSE3; the key has 32 bytes.
#[inline(always)]
unsafe fn expand_256(key: &[u8], keys: &mut [__m128i; 15]) {
    // SAFETY: the caller vouches for the instructions and the length.
    unsafe {
        let mut even = _mm_loadu_si128(key.as_ptr().cast());
        let mut odd = _mm_loadu_si128(key.as_ptr().add(16).cast());
        keys[0] = even;
        keys[1] = odd;
        for step in 1..8 {
            even = _mm_xor_si128(prefix(even), sub_word(odd, LAST_ROTATED, 1 << (step - 1)));
            keys[2 * step] = even;
            if step < 7 {
                odd = _mm_xor_si128(prefix(odd), sub_word(even, LAST, 0));
                keys[2 * step + 1] = odd;
            }
        }
    }
}

/// # Safety
///
/// The processor has the AES instructions.
#[inline(always)]
unsafe fn invert(encrypt: &[__m128i; 15], rounds: usize, decrypt: &mut [__m128i; 15]) {
    decrypt[0] = encrypt[rounds];
    decrypt[rounds] = encrypt[0];
    for i in 1..rounds {
        // SAFETY: the caller vouches for the instruction.
        decrypt[i] = unsafe { _mm_aesimc_si128(encrypt[rounds - i]) };
    }
}
