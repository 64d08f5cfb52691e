//! The rounds of AES (FIPS 197, 5.1 and 5.3) on bit planes.

use lockstep_core::sbox;

use super::planes::Plane;
use super::schedule::Keys;

/// AddRoundKey.
#[inline(always)]
fn add_key<P: Plane>(state: &mut [P; 8], key: &[P; 8]) {
    for (plane, key) in state.iter_mut().zip(key) {
        *plane = plane.xor(*key);
    }
}

/// Multiplication of every byte by x.
#[inline(always)]
fn times_x<P: Plane>(a: [P; 8]) -> [P; 8] {
    // x^8 = x^4 + x^3 + x + 1.
    [a[7], a[0].xor(a[7]), a[1], a[2].xor(a[7]), a[3].xor(a[7]), a[4], a[5], a[6]]
}

/// MixColumns of a plane. `above` is added to the result: the carry from the next lower plane and the round key. Returns the
/// carry to the next higher plane: the sum of each row and the next row.
#[inline(always)]
fn mix_plane<P: Plane>(plane: &mut P, a: P, above: P) -> P {
    let next = a.up_one();
    let t = a.xor(next);
    *plane = next.xor(t.up_two()).xor(above);
    t
}

/// MixColumns and AddRoundKey, after `arrange` is applied to each plane.
///
/// With `t_r = a_r + a_(r+1)`, row `r` becomes `x t_r + a_(r+1) + t_(r+2)`. Planes are processed one by one, so that few
/// values are live at a time.
#[inline(always)]
fn mix_columns<P: Plane>(state: &mut [P; 8], key: &[P; 8], arrange: impl Fn(P) -> P) {
    let [a0, a1, a2, a3, a4, a5, a6, a7] = state;
    let top = arrange(*a7);
    let top = top.xor(top.up_one());
    // x^8 = x^4 + x^3 + x + 1: plane 7 is carried into planes 0, 1, 3 and 4.
    let t = mix_plane(a0, arrange(*a0), top.xor(key[0]));
    let t = mix_plane(a1, arrange(*a1), t.xor(top).xor(key[1]));
    let t = mix_plane(a2, arrange(*a2), t.xor(key[2]));
    let t = mix_plane(a3, arrange(*a3), t.xor(top).xor(key[3]));
    let t = mix_plane(a4, arrange(*a4), t.xor(top).xor(key[4]));
    let t = mix_plane(a5, arrange(*a5), t.xor(key[5]));
    let t = mix_plane(a6, arrange(*a6), t.xor(key[6]));
    mix_plane(a7, arrange(*a7), t.xor(key[7]));
}

/// InvMixColumns is this map followed by MixColumns: row `r` becomes `a_r + x^2 (a_r + a_(r+2))`.
#[inline(always)]
fn unmix_columns<P: Plane>(state: &mut [P; 8]) {
    let quadrupled = times_x(times_x(state.map(|a| a.xor(a.up_two()))));
    add_key(state, &quadrupled);
}

/// The cipher.
#[inline(never)]
pub(crate) fn encrypt<P: Plane>(keys: &Keys<P>, state: &mut [P; 8]) {
    let (first, middle, last) = keys.split();
    add_key(state, first);
    for key in middle {
        P::substitute(state, sbox::forward);
        mix_columns(state, key, P::shift_rows);
    }
    P::substitute(state, sbox::forward);
    *state = state.map(P::shift_rows);
    add_key(state, last);
}

/// The inverse cipher.
#[inline(never)]
pub(crate) fn decrypt<P: Plane>(keys: &Keys<P>, state: &mut [P; 8]) {
    let (first, middle, last) = keys.split();
    add_key(state, last);
    for key in middle.iter().rev() {
        *state = state.map(P::unshift_rows);
        P::substitute(state, sbox::inverse);
        add_key(state, key);
        unmix_columns(state);
        mix_columns(state, &[P::zero(); 8], |plane| plane);
    }
    *state = state.map(P::unshift_rows);
    P::substitute(state, sbox::inverse);
    add_key(state, first);
}
