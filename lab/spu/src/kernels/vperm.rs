//! The S-box by inversion in GF(2^4), the vector-permute method (Hamburg, CHES 2009), adapted to `shufb`.
//!
//! A byte represents k + i t over GF(2^4) (see [`Tower`]). With j = i + k, the inverse of the byte is computed by five
//! lookups of sixteen entries:
//!
//! ```text
//! P = 1 / (1 / (1/i + a/k) + j)      R = 1 / (1 / (1/j + a/k) + i)
//! ```
//!
//! The inverse is linear in P and R. So its image under any linear map (the linear part of the affine map times 1, 2 or
//! 3, in any basis) is the sum of two lookups. The index of each lookup is the denominator of P or of R. Infinity is
//! encoded as 80 hex, for which `shufb` returns 00, as required. Blocks and round keys stay in the tower's basis
//! between the rounds.
//!
//! ShiftRows needs no instruction, because bytes keep their positions. Instead, the rotations of MixColumns change from
//! round to round, with a period of four rounds. The last permutation restores the order.

use lockstep_core::key::inverse_mix_columns;
use zeroize::Zeroizing;

use super::aes::{AesRounds, Block};
use super::field::{Linear, Tower, affine_linear, inverse4, mul, mul4};
use super::permutation::{IDENTITY, Permutation, SHIFT_ROWS, after, inverse, rotated};
use crate::schedule::{Flow, Value};

/// AES by vector permutation, in one direction.
pub(crate) struct Vperm {
    /// The constant a of the tower.
    a: u8,
    decrypts: bool,
    /// Converts a byte of AES to the internal form, which has the tower basis. For decryption, the inverse of the
    /// linear part of the S-box's affine map is applied first.
    form: Linear,
    /// The map after the inversion: the conversion from the tower basis and, for encryption, the linear part of the
    /// affine map.
    substituted: Linear,
}

/// The indices for the last two lookups. The sum of the two looked-up values is the result.
#[derive(Clone, Copy)]
struct Inverted {
    p: Value,
    r: Value,
}

impl Vperm {
    pub(crate) fn encryption() -> Vperm {
        Vperm::new(false)
    }

    pub(crate) fn decryption() -> Vperm {
        Vperm::new(true)
    }

    fn new(decrypts: bool) -> Vperm {
        let tower = Tower::new();
        let affine = Linear::of(affine_linear);
        let (undo_affine, to_aes) = (affine.inverse(), tower.from_aes.inverse());
        let form = match decrypts {
            false => tower.from_aes,
            true => Linear::of(|byte| tower.from_aes.apply(undo_affine.apply(byte))),
        };
        let substituted = match decrypts {
            false => Linear::of(|inverse| affine.apply(to_aes.apply(inverse))),
            true => to_aes,
        };
        Vperm { a: tower.a, decrypts, form, substituted }
    }

    fn form(&self, byte: u8) -> u8 {
        self.form.apply(byte)
    }

    fn shift_rows(&self) -> Permutation {
        if self.decrypts { inverse(&SHIFT_ROWS) } else { SHIFT_ROWS }
    }

    /// Returns for each position the index (in the order of FIPS 197) of the byte that is at this position after `rounds` rounds.
    fn places(&self, rounds: usize) -> Permutation {
        // One ShiftRows is omitted in each round.
        let back = inverse(&self.shift_rows());
        (0..rounds % 4).fold(IDENTITY, |places, _| after(&back, &places))
    }

    /// Computes the first half of SubBytes.
    fn invert(&self, f: &mut Flow, x: Value) -> Inverted {
        let k = f.and_bytes(x, 0x0f);
        let i = f.and_bytes(x, 0xf0);
        let i = f.either(|f| f.shift_right(i, 4), |f| f.shift_words_right(i, 4));
        let infinite = |n: usize, value: u8| if n == 0 { 0x80 } else { value };
        let reciprocal = f.constant(std::array::from_fn(|n| infinite(n, inverse4(n as u8))));
        let a = self.a;
        let a_over = f.constant(std::array::from_fn(|n| infinite(n, mul4(a, inverse4(n as u8)))));
        let j = f.xor(i, k);
        let ak = f.shuffle(a_over, a_over, k);
        let half = |f: &mut Flow, own: Value, other: Value| {
            let sum = f.shuffle(reciprocal, reciprocal, own);
            let sum = f.xor(sum, ak);
            let sum = f.shuffle(reciprocal, reciprocal, sum);
            f.xor(sum, other)
        };
        let p = half(f, i, j);
        let r = half(f, j, i);
        Inverted { p, r }
    }

    /// Computes the second half of SubBytes, combined with a linear map.
    fn finish(&self, f: &mut Flow, inverted: Inverted, map: impl Fn(u8) -> u8) -> Value {
        let over = inverse4(self.a);
        // P = (k + a i) / N and R = (k + a j) / N, where N is the norm; the inverse is ((k + a i) + i t) / N.
        let byte = |p: u8, r: u8| {
            let k = mul4(p ^ r, over);
            let i = mul4(p ^ k, over);
            map(self.substituted.apply(i << 4 | p))
        };
        let by_p = f.constant(std::array::from_fn(|n| byte(inverse4(n as u8), 0)));
        let by_r = f.constant(std::array::from_fn(|n| byte(0, inverse4(n as u8))));
        let p = f.shuffle(by_p, by_p, inverted.p);
        let r = f.shuffle(by_r, by_r, inverted.r);
        f.xor(p, r)
    }

    /// Rotates columns whose bytes have been permuted by the previous rounds.
    fn rotate(&self, f: &mut Flow, x: Value, by: usize, rounds: usize) -> Value {
        let places = self.places(rounds);
        let control = after(&inverse(&places), &after(&rotated(by), &places));
        f.permute(x, control)
    }

    /// Computes MixColumns of a substituted block, in the internal form and order of the next round.
    fn mix(&self, f: &mut Flow, s: Inverted, key: Value, round: usize) -> Value {
        let times = |f: &mut Flow, by: u8| self.finish(f, s, |byte| self.form(mul(byte, by)));
        if self.decrypts {
            let mut sum = times(f, 9);
            for by in [13, 11, 14] {
                let turned = self.rotate(f, sum, 1, round);
                let mut next = times(f, by);
                if by == 14 {
                    next = f.xor(next, key);
                }
                sum = f.xor(turned, next);
            }
            return sum;
        }
        let once = times(f, 1);
        let twice = times(f, 2);
        let above = self.rotate(f, once, 1, round);
        let below = self.rotate(f, once, 3, round);
        // `pair` is 2 r0 + r1, and its rotation `next_pair` is 2 r1 + r2.
        let pair = f.xor(above, twice);
        let next_pair = self.rotate(f, pair, 1, round);
        let rest = f.xor(below, key);
        let rest = f.xor(rest, pair);
        f.xor(rest, next_pair)
    }
}

impl AesRounds for Vperm {
    fn key_form(&self, keys: &[Block]) -> Zeroizing<Vec<Block>> {
        let rounds = keys.len() - 1;
        let mut forms = Zeroizing::new(vec![[0; 16]; keys.len()]);
        for (round, form) in forms.iter_mut().enumerate() {
            let middle = round != 0 && round != rounds;
            let key = if self.decrypts { &keys[rounds - round] } else { &keys[round] };
            let key = Zeroizing::new(if self.decrypts && middle { inverse_mix_columns(key) } else { *key });
            // The round keys include the constant of the affine map: for decryption before each S-box, for encryption
            // after it.
            let adds = if self.decrypts { round != rounds } else { round != 0 };
            let affine = if adds { 0x63 } else { 0 };
            let places = if round == rounds { IDENTITY } else { self.places(round) };
            for (byte, place) in form.iter_mut().zip(places) {
                let own = key[usize::from(place)] ^ affine;
                *byte = if round == rounds { own } else { self.form(own) };
            }
        }
        forms
    }

    fn enter(&self, f: &mut Flow, block: Value) -> Value {
        let low = f.and_bytes(block, 0x0f);
        let high = f.and_bytes(block, 0xf0);
        let high = f.either(|f| f.shift_right(high, 4), |f| f.shift_words_right(high, 4));
        let of_low = f.constant(std::array::from_fn(|n| self.form(n as u8)));
        let of_high = f.constant(std::array::from_fn(|n| self.form((n << 4) as u8)));
        let low = f.shuffle(of_low, of_low, low);
        let high = f.shuffle(of_high, of_high, high);
        f.xor(low, high)
    }

    fn enter_block(&self, block: Block) -> Block {
        block.map(|byte| self.form(byte))
    }

    fn round(&self, f: &mut Flow, number: usize, x: Value, key: Value) -> Value {
        let s = self.invert(f, x);
        self.mix(f, s, key, number)
    }

    fn last_round(
        &self,
        f: &mut Flow,
        number: usize,
        x: Value,
        key: Value,
        chained: bool,
    ) -> (Value, Option<Value>) {
        let s = self.invert(f, x);
        // The permutation that restores the order, combined with the last ShiftRows.
        let home = after(&inverse(&self.places(number - 1)), &self.shift_rows());
        let leave = |f: &mut Flow, map: &dyn Fn(u8) -> u8| {
            let out = self.finish(f, s, map);
            if home == IDENTITY { out } else { f.permute(out, home) }
        };
        let chain = chained.then(|| leave(f, &|byte| self.form(byte)));
        let out = leave(f, &|byte| byte);
        (f.xor(out, key), chain)
    }
}
