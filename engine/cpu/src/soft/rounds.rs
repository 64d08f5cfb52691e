//! The rounds of AES (FIPS 197, 5.1 and 5.3) on bit planes.

use lockstep_core::sbox;

use super::planes::convert;
use super::register::{Permutation, Register};
use super::schedule::Keys;
use super::vector::Vector;

/// AddRoundKey.
///
/// # Safety
///
/// The processor must have the instructions of the register.
#[inline(always)]
unsafe fn add_key<R: Register>(state: &mut [R; 8], key: &[Vector; 8]) {
    for (plane, key) in state.iter_mut().zip(key) {
        // SAFETY: the caller guarantees that the processor has the instructions.
        *plane = *plane ^ unsafe { R::repeat(*key) };
    }
}

/// Permutes the bytes of each plane.
#[inline(always)]
fn permute<R: Register>(state: &mut [R; 8], permutation: Permutation) {
    for plane in state {
        *plane = plane.permute(permutation);
    }
}

/// MixColumns of a plane. `above` is added to the result: the carry from the next lower plane and the round key. Returns the
/// carry to the next higher plane: the sum of each row and the next row.
#[inline(always)]
fn mix_plane<R: Register>(plane: &mut R, above: R) -> R {
    let next = plane.permute(Permutation::UpOne);
    let t = *plane ^ next;
    *plane = next ^ t.permute(Permutation::UpTwo) ^ above;
    t
}

/// MixColumns, and AddRoundKey if there is a key.
///
/// With `t_r = a_r + a_(r+1)`, row `r` becomes `x t_r + a_(r+1) + t_(r+2)`. Planes are processed one by one, so that few
/// values are live at a time.
///
/// # Safety
///
/// The processor must have the instructions of the register.
#[inline(always)]
unsafe fn mix_columns<R: Register>(state: &mut [R; 8], key: Option<&[Vector; 8]>) {
    macro_rules! add {
        ($b:literal, $plane:expr) => {
            match key {
                // SAFETY: the caller guarantees that the processor has the instructions.
                Some(key) => $plane ^ unsafe { R::repeat(key[$b]) },
                None => $plane,
            }
        };
    }
    let [a0, a1, a2, a3, a4, a5, a6, a7] = state;
    let top = *a7 ^ a7.permute(Permutation::UpOne);
    // x^8 = x^4 + x^3 + x + 1: plane 7 is carried into planes 0, 1, 3 and 4.
    let t = mix_plane(a0, add!(0, top));
    let t = mix_plane(a1, add!(1, t ^ top));
    let t = mix_plane(a2, add!(2, t));
    let t = mix_plane(a3, add!(3, t ^ top));
    let t = mix_plane(a4, add!(4, t ^ top));
    let t = mix_plane(a5, add!(5, t));
    let t = mix_plane(a6, add!(6, t));
    mix_plane(a7, add!(7, t));
}

/// InvMixColumns is this map followed by MixColumns: row `r` becomes `a_r + x^2 (a_r + a_(r+2))`.
#[inline(always)]
fn unmix_columns<R: Register>(state: &mut [R; 8]) {
    let [a0, a1, a2, a3, a4, a5, a6, a7] = *state;
    let mut sums = *state;
    for sum in &mut sums {
        *sum = *sum ^ sum.permute(Permutation::UpTwo);
    }
    let [s0, s1, s2, s3, s4, s5, s6, s7] = sums;
    // x^8 = x^4 + x^3 + x + 1 and x^9 = x^5 + x^4 + x^2 + x.
    let high = s6 ^ s7;
    *state = [a0 ^ s6, a1 ^ high, a2 ^ s0 ^ s7, a3 ^ s1 ^ s6, a4 ^ s2 ^ high, a5 ^ s3 ^ s7, a6 ^ s4, a7 ^ s5];
}

/// Encrypts or decrypts the blocks of eight registers.
///
/// # Safety
///
/// The processor must have the instructions of the register.
#[inline(always)]
pub(crate) unsafe fn crypt<R: Register>(keys: &Keys, encrypts: bool, blocks: &mut [R; 8]) {
    let (first, middle, last) = keys.split();
    let mut state = *blocks;
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe {
        convert(&mut state);
        if encrypts {
            add_key(&mut state, first);
            for key in middle {
                state = sbox::forward(state);
                permute(&mut state, Permutation::ShiftRows);
                mix_columns(&mut state, Some(key));
            }
            state = sbox::forward(state);
            permute(&mut state, Permutation::ShiftRows);
            add_key(&mut state, last);
        } else {
            add_key(&mut state, last);
            for key in middle.iter().rev() {
                permute(&mut state, Permutation::UnshiftRows);
                state = sbox::inverse(state);
                add_key(&mut state, key);
                unmix_columns(&mut state);
                mix_columns(&mut state, None);
            }
            permute(&mut state, Permutation::UnshiftRows);
            state = sbox::inverse(state);
            add_key(&mut state, first);
        }
        convert(&mut state);
    }
    *blocks = state;
}
