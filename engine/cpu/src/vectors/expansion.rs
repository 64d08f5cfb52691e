//! Key expansion for x86-64 (FIPS 197, 5.2).
//!
//! SubWord is computed by `aesenclast` on a word repeated four times. ShiftRows does not change such a block, and the round
//! constant is passed as the round key. `aesenclast` takes constant time like `aeskeygenassist`, and is four times as fast
//! on processors where `aeskeygenassist` is microcoded. The words of one step are computed as a prefix sum of exclusive ors.

use std::arch::x86_64::*;

use super::cipher::in_memory;
use super::schedule::Schedule;
use super::single_stream;

/// Replaces a schedule by the schedule of another key of 16, 24 or 32 bytes, for both directions.
///
/// # Safety
///
/// The processor has the AES instructions and SSSE3.
#[inline(always)]
pub(super) unsafe fn expand_into(key: &[u8], place: &mut Schedule) {
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe {
        expand_to_encrypt_into(key, place);
        // The round keys are read again: there are not enough registers for all of them.
        let Schedule { encrypt, rounds, decrypt, .. } = in_memory(place);
        decrypt[0] = encrypt[*rounds];
        decrypt[*rounds] = encrypt[0];
        for i in 1..*rounds {
            decrypt[i] = _mm_aesimc_si128(encrypt[*rounds - i]);
        }
        // The remaining round keys of a longer key are erased.
        decrypt[*rounds + 1..].copy_from_slice(&encrypt[*rounds + 1..]);
    }
}

/// Replaces a schedule by the schedule of another key, for encryption only: the round keys of decryption are not changed.
///
/// # Safety
///
/// The same as for [`expand_into`].
#[inline(always)]
pub(super) unsafe fn expand_to_encrypt_into(key: &[u8], place: &mut Schedule) {
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe { expand_alike::<1, false>([key], std::array::from_mut(place)) };
}

/// Replaces schedules by the schedules of other keys, one for each place, for encryption only. Keys of the same length are
/// expanded interleaved, because a step of an expansion depends on the step before it. Four keys of 16 bytes, or two longer
/// keys, are expanded at once. With more keys, the compiler would copy round keys to the stack. A key may have been stored as words of
/// 8 bytes just before, as derived keys are.
///
/// # Safety
///
/// The same as for [`expand_into`].
#[inline(always)]
pub(super) unsafe fn expand_each(keys: &[&[u8]], places: &mut [Schedule]) {
    assert_eq!(keys.len(), places.len(), "as many keys as places");
    let (mut keys, mut places) = (keys, places);
    while let Some(first) = keys.first() {
        let alike = keys.iter().take(4).take_while(|key| key.len() == first.len()).count();
        let done = if first.len() == 16 && alike == 4 { 4 } else { alike.min(2) };
        macro_rules! expand {
            ($n:literal) => {{
                let keys = keys.first_chunk::<$n>().expect("counted above");
                // SAFETY: the caller guarantees that the processor has the instructions.
                unsafe {
                    expand_alike::<$n, true>(*keys, places.first_chunk_mut().expect("as many places as keys"))
                };
            }};
        }
        match done {
            4 => expand!(4),
            2 => expand!(2),
            _ => expand!(1),
        }
        (keys, places) = (&keys[done..], &mut places[done..]);
    }
}

/// Replaces schedules by the schedules of keys of the same length, for encryption only, interleaved. If `WORDS` is true, keys are loaded as
/// words of 8 bytes.
///
/// # Safety
///
/// The same as for [`expand_into`].
#[inline(always)]
unsafe fn expand_alike<const N: usize, const WORDS: bool>(keys: [&[u8]; N], places: &mut [Schedule; N]) {
    let mut put = |i: usize, round_keys: [__m128i; N]| {
        for n in 0..N {
            places[n].encrypt[i] = round_keys[n];
        }
    };
    // SAFETY: the caller guarantees that the processor has the instructions, which include SSE2.
    unsafe {
        // The remaining round keys of a longer key are erased, with constant bounds: the compiler would otherwise call memset.
        let zero = [_mm_setzero_si128(); N];
        let rounds = match keys[0].len() {
            16 => {
                each_of_128::<N, WORDS>(keys, &mut put);
                (11..15).for_each(|i| put(i, zero));
                10
            }
            24 => {
                each_of_192::<N, WORDS>(keys, &mut put);
                (13..15).for_each(|i| put(i, zero));
                12
            }
            32 => {
                each_of_256::<N, WORDS>(keys, &mut put);
                14
            }
            other => panic!("an AES key has 16, 24 or 32 bytes, not {other}"),
        };
        places.iter_mut().for_each(|place| place.rounds = rounds);
    }
}

/// Shuffles that copy the last word of a vector to every word: unchanged, or rotated by a byte (RotWord).
const LAST: i32 = 0x0f0e_0d0c;
const LAST_ROTATED: i32 = 0x0c0f_0e0d;
/// A shuffle that copies the second word to every word, rotated by a byte.
const SECOND_ROTATED: i32 = 0x0407_0605;

/// Computes SubWord of the word that `order` selects, XORed with the round constant. Every word of the result has this
/// value.
///
/// # Safety
///
/// The processor has the AES instructions and SSSE3.
#[inline(always)]
unsafe fn sub_word(words: __m128i, order: i32, constant: i32) -> __m128i {
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe { _mm_aesenclast_si128(_mm_shuffle_epi8(words, _mm_set1_epi32(order)), _mm_set1_epi32(constant)) }
}

/// The XOR of each word with all words before it.
///
/// # Safety
///
/// The processor has SSE2.
#[inline(always)]
unsafe fn prefix(words: __m128i) -> __m128i {
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe {
        let words = _mm_xor_si128(words, _mm_bslli_si128::<4>(words));
        _mm_xor_si128(words, _mm_bslli_si128::<8>(words))
    }
}

/// Loads 16 bytes. If `WORDS` is true, loads them as two words, because a load waits for smaller stores to the same place.
///
/// # Safety
///
/// The same as for [`single_stream::load_words`]. `ptr` is valid for reads of 16 bytes.
#[inline(always)]
unsafe fn load<const WORDS: bool>(ptr: *const u8) -> __m128i {
    // SAFETY: the caller guarantees the conditions. A block has no alignment.
    unsafe { if WORDS { single_stream::load_words(&*ptr.cast()).0 } else { _mm_loadu_si128(ptr.cast()) } }
}

/// Passes the round keys of N keys to `put` one after another, so that they are never all in memory.
///
/// # Safety
///
/// The processor has the AES instructions and SSSE3; each key has 16 bytes.
#[inline(always)]
unsafe fn each_of_128<const N: usize, const WORDS: bool>(
    keys: [&[u8]; N],
    mut put: impl FnMut(usize, [__m128i; N]),
) {
    const CONSTANTS: [i32; 10] = [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36];
    // SAFETY: the caller guarantees that the processor has the instructions and that the keys have this length.
    unsafe {
        let mut words = keys.map(|key| load::<WORDS>(key.as_ptr()));
        put(0, words);
        for i in 0..10 {
            for n in 0..N {
                words[n] = _mm_xor_si128(prefix(words[n]), sub_word(words[n], LAST_ROTATED, CONSTANTS[i]));
            }
            put(i + 1, words);
        }
    }
}

/// The next six words of a 192-bit key.
///
/// # Safety
///
/// The processor has the AES instructions and SSSE3.
#[inline(always)]
unsafe fn six_words(four: __m128i, two: __m128i, constant: i32) -> (__m128i, __m128i) {
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe {
        let four = _mm_xor_si128(prefix(four), sub_word(two, SECOND_ROTATED, constant));
        let pair = _mm_xor_si128(two, _mm_bslli_si128::<4>(two));
        (four, _mm_xor_si128(pair, _mm_shuffle_epi32::<0xff>(four)))
    }
}

/// Like [`each_of_128`].
///
/// # Safety
///
/// The processor has the AES instructions and SSSE3; each key has 24 bytes.
#[inline(always)]
unsafe fn each_of_192<const N: usize, const WORDS: bool>(
    keys: [&[u8]; N],
    mut put: impl FnMut(usize, [__m128i; N]),
) {
    // SAFETY: the caller guarantees that the processor has the instructions and that the keys have this length.
    unsafe {
        // The six words of a key: four in one vector, and two in the lower half of another.
        let mut four = keys.map(|key| load::<WORDS>(key.as_ptr()));
        let mut two = keys.map(|key| _mm_loadl_epi64(key.as_ptr().add(16).cast()));
        // Twelve words are three round keys.
        for i in 0..5 {
            put(3 * i, four);
            if i < 4 {
                let (mut second, mut third) = (four, two);
                for n in 0..N {
                    let (next_four, next_two) = six_words(four[n], two[n], 1 << (2 * i));
                    second[n] = _mm_unpacklo_epi64(two[n], next_four);
                    third[n] = _mm_alignr_epi8::<8>(next_two, next_four);
                    (four[n], two[n]) = six_words(next_four, next_two, 2 << (2 * i));
                }
                put(3 * i + 1, second);
                put(3 * i + 2, third);
            }
        }
    }
}

/// Like [`each_of_128`].
///
/// # Safety
///
/// The processor has the AES instructions and SSSE3; each key has 32 bytes.
#[inline(always)]
unsafe fn each_of_256<const N: usize, const WORDS: bool>(
    keys: [&[u8]; N],
    mut put: impl FnMut(usize, [__m128i; N]),
) {
    // SAFETY: the caller guarantees that the processor has the instructions and that the keys have this length.
    unsafe {
        let mut even = keys.map(|key| load::<WORDS>(key.as_ptr()));
        let mut odd = keys.map(|key| load::<WORDS>(key.as_ptr().add(16)));
        put(0, even);
        put(1, odd);
        for i in 1..8 {
            for n in 0..N {
                even[n] = _mm_xor_si128(prefix(even[n]), sub_word(odd[n], LAST_ROTATED, 1 << (i - 1)));
            }
            put(2 * i, even);
            if i < 7 {
                for n in 0..N {
                    odd[n] = _mm_xor_si128(prefix(odd[n]), sub_word(even[n], LAST, 0));
                }
                put(2 * i + 1, odd);
            }
        }
    }
}
