//! The conversion of random words to numbers.
//!
//! All numbers are functions of words of 32 or 64 bits, little-endian, in the order of the keystream. Floating-point numbers are made by
//! operations that IEEE 754 rounds exactly, in a fixed order, so they are the same on every device.

use std::hint::select_unpredictable;

/// Replaces 32-bit words by numbers that are uniform in [0, 1): the upper 24 bits of a word, times 2^-24.
pub(super) fn uniform32(bytes: &mut [u8]) {
    let number = |word| (u32::from_le_bytes(word) >> 8) as f32 * (1.0 / (1u32 << 24) as f32);
    replace(bytes, |word| number(word).to_le_bytes());
}

/// Replaces 64-bit words by numbers that are uniform in [0, 1): the upper 53 bits of a word, times 2^-53.
pub(super) fn uniform64(bytes: &mut [u8]) {
    replace(bytes, |word| unit(u64::from_le_bytes(word)).to_le_bytes());
}

/// Replaces 32-bit words by normal numbers of 32 bits. Each word is extended to 64 bits by a one and 31 zeros. The result is the middle
/// of all 64-bit words that begin with the bits of the word.
pub(super) fn normal32(bytes: &mut [u8]) {
    let widened = |word| (u64::from(u32::from_le_bytes(word)) << 32) | (1 << 31);
    replace(bytes, |word| (normal(widened(word)) as f32).to_le_bytes());
}

/// Replaces 64-bit words by normal numbers of 64 bits.
pub(super) fn normal64(bytes: &mut [u8]) {
    replace(bytes, |word| normal(u64::from_le_bytes(word)).to_le_bytes());
}

/// Replaces each word of `N` bytes.
#[inline]
fn replace<const N: usize>(bytes: &mut [u8], number: impl Fn([u8; N]) -> [u8; N]) {
    bytes.as_chunks_mut().0.iter_mut().for_each(|word| *word = number(*word));
}

/// The upper 53 bits of a word, times 2^-53: uniform in [0, 1).
#[inline]
pub(super) fn unit(word: u64) -> f64 {
    (word >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

const PARTS: usize = 16;
const TERMS: usize = 9;
const OCTAVES: usize = 63;

/// The coefficients that `tools/normal_table.py` has computed.
pub(super) static NORMAL: [[f64; TERMS]; OCTAVES * PARTS] = {
    let bytes: &[u8; 8 * TERMS * OCTAVES * PARTS] = include_bytes!("normal.bin");
    let (values, _) = bytes.as_chunks::<8>();
    let mut table = [[0.0; TERMS]; OCTAVES * PARTS];
    let mut index = 0;
    while index < values.len() {
        table[index / TERMS][index % TERMS] = f64::from_le_bytes(values[index]);
        index += 1;
    }
    table
};

/// A normal number: the quantile of the probability that the word stands for.
///
/// The highest bit of the word is the sign, and the lowest is not used. The 62 bits between them are v, and the probability in the
/// tail is u = (2 v + 1) 2^-64. The octave of u and the next 4 bits choose a polynomial of `tools/normal_table.py`; the next 53
/// bits are its argument, which is exact. The polynomial is evaluated by Horner's rule, with a rounding after each multiplication
/// and each addition.
#[inline]
fn normal(word: u64) -> f64 {
    let odd = (word & (u64::MAX >> 1)) | 1;
    // The number of leading zeros after the sign, computed from the exponent of a float. Rounding to the float cannot reach the
    // next power of two. `leading_zeros` is not used, because on the oldest x86-64 processors its instruction waits for the
    // previous result.
    let octave = 1085 - (((odd & !(odd >> 1)) as i64 as f64).to_bits() >> 52) as usize;
    let scaled = odd << octave;
    let part = (scaled >> 58) as usize & (PARTS - 1);
    let argument = ((scaled >> 5) & ((1 << 53) - 1)) as i64 as f64 * (1.0 / (1u64 << 52) as f64) - 1.0;
    let terms = &NORMAL[octave * PARTS + part];
    let mut value = terms[TERMS - 1];
    for &term in terms[..TERMS - 1].iter().rev() {
        value = value * argument + term;
    }
    f64::from_bits(value.to_bits() ^ (word & (1 << 63)))
}

/// Integers below a bound, from words in their order: the lowest bits of a word, as many as the bound needs, are the next integer if
/// they are below the bound; otherwise the word is skipped. Every integer is therefore equally likely.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounded {
    /// The largest integer.
    pub(super) last: u64,
    pub(super) low: i64,
    /// The number of bytes of a result: 1, 2, 4 or 8.
    pub(super) result: usize,
}

impl Bounded {
    /// Writes integers plus `low` to `to` until `to` is full or the words end. Returns the numbers of bytes that were read and
    /// written.
    pub(super) fn convert(self, words: &[u8], to: &mut [u8]) -> (usize, usize) {
        // A word has 4 bytes if all integers are below 2^32.
        match (self.last >> 32, self.result) {
            (0, 1) => self.convert_as::<4, 1>(words, to),
            (0, 2) => self.convert_as::<4, 2>(words, to),
            (0, 4) => self.convert_as::<4, 4>(words, to),
            (0, _) => self.convert_as::<4, 8>(words, to),
            _ => self.convert_as::<8, 8>(words, to),
        }
    }

    fn convert_as<const WORD: usize, const RESULT: usize>(
        self,
        words: &[u8],
        to: &mut [u8],
    ) -> (usize, usize) {
        let mask = u64::MAX.checked_shr(self.last.leading_zeros()).unwrap_or(0);
        let to = to.as_chunks_mut::<RESULT>().0;
        let (mut read, mut written) = (0, 0);
        for word in words.as_chunks::<WORD>().0 {
            let Some(place) = to.get_mut(written) else { break };
            read += WORD;
            let mut bytes = [0; 8];
            bytes[..WORD].copy_from_slice(word);
            let candidate = u64::from_le_bytes(bytes) & mask;
            let result = (self.low as u64).wrapping_add(candidate).to_le_bytes();
            // For a skipped word, `written` does not change, so that the next result overwrites this result. A branch in place of
            // the selection would often be predicted wrongly.
            place.copy_from_slice(&result[..RESULT]);
            written = select_unpredictable(candidate <= self.last, written + 1, written);
        }
        (read, written * RESULT)
    }
}
