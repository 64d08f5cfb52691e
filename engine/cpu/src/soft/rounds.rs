//! The rounds of AES (FIPS 197, 5.1 and 5.3) on bit planes.

use super::planes::{MOST, Plane};
use super::schedule::Keys;

/// AddRoundKey.
///
/// # Safety
///
/// The processor must have the instructions of the planes' registers.
#[inline(always)]
unsafe fn add_key<P: Plane>(state: &mut [P; 8], key: &[P::Stored; 8]) {
    for (plane, key) in state.iter_mut().zip(key) {
        // SAFETY: the caller guarantees that the processor has the instructions.
        *plane = plane.xor(unsafe { P::of(key) });
    }
}

/// Applies a step to each plane.
macro_rules! on_planes {
    ($state:ident, $step:ident) => {
        for plane in $state.iter_mut() {
            *plane = plane.$step();
        }
    };
}

/// MixColumns of a plane. `above` is added to the result: the carry from the next lower plane and the round key. Returns the
/// carry to the next higher plane: the sum of each row and the next row.
#[inline(always)]
fn mix_plane<P: Plane>(plane: &mut P, above: P) -> P {
    let next = plane.up_one();
    let t = plane.xor(next);
    *plane = next.xor(t.up_two()).xor(above);
    t
}

/// MixColumns, and AddRoundKey if there is a key.
///
/// With `t_r = a_r + a_(r+1)`, row `r` becomes `x t_r + a_(r+1) + t_(r+2)`. Planes are processed one by one, so that few
/// values are live at a time.
///
/// # Safety
///
/// The processor must have the instructions of the planes' registers.
#[inline(always)]
unsafe fn mix_columns<P: Plane>(state: &mut [P; 8], key: Option<&[P::Stored; 8]>) {
    macro_rules! add {
        ($b:literal, $plane:expr) => {
            match key {
                // SAFETY: the caller guarantees that the processor has the instructions.
                Some(key) => $plane.xor(unsafe { P::of(&key[$b]) }),
                None => $plane,
            }
        };
    }
    let [a0, a1, a2, a3, a4, a5, a6, a7] = state;
    let top = a7.xor(a7.up_one());
    // x^8 = x^4 + x^3 + x + 1: plane 7 is carried into planes 0, 1, 3 and 4.
    let t = mix_plane(a0, add!(0, top));
    let t = mix_plane(a1, add!(1, t.xor(top)));
    let t = mix_plane(a2, add!(2, t));
    let t = mix_plane(a3, add!(3, t.xor(top)));
    let t = mix_plane(a4, add!(4, t.xor(top)));
    let t = mix_plane(a5, add!(5, t));
    let t = mix_plane(a6, add!(6, t));
    mix_plane(a7, add!(7, t));
}

/// InvMixColumns is this map followed by MixColumns: row `r` becomes `a_r + x^2 (a_r + a_(r+2))`.
#[inline(always)]
fn unmix_columns<P: Plane>(state: &mut [P; 8]) {
    let [a0, a1, a2, a3, a4, a5, a6, a7] = *state;
    macro_rules! sums {
        ($($s:ident $a:ident),*) => { $(let $s = $a.xor($a.up_two());)* };
    }
    sums!(s0 a0, s1 a1, s2 a2, s3 a3, s4 a4, s5 a5, s6 a6, s7 a7);
    // x^8 = x^4 + x^3 + x + 1 and x^9 = x^5 + x^4 + x^2 + x.
    let high = s6.xor(s7);
    *state = [
        a0.xor(s6),
        a1.xor(high),
        a2.xor(s0).xor(s7),
        a3.xor(s1).xor(s6),
        a4.xor(s2).xor(high),
        a5.xor(s3).xor(s7),
        a6.xor(s4),
        a7.xor(s5),
    ];
}

/// The cipher.
///
/// # Safety
///
/// The processor must have the instructions of the planes' registers.
#[inline(always)]
unsafe fn encrypt<P: Plane>(keys: &Keys<P::Stored>, state: &mut [P; 8]) {
    let (first, middle, last) = keys.split();
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe {
        add_key(state, first);
        for key in middle {
            P::substitute::<false>(state);
            on_planes!(state, shift_rows);
            mix_columns(state, Some(key));
        }
        P::substitute::<false>(state);
        on_planes!(state, shift_rows);
        add_key(state, last);
    }
}

/// The inverse cipher.
///
/// # Safety
///
/// The processor must have the instructions of the planes' registers.
#[inline(always)]
unsafe fn decrypt<P: Plane>(keys: &Keys<P::Stored>, state: &mut [P; 8]) {
    let (first, middle, last) = keys.split();
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe {
        add_key(state, last);
        for key in middle.iter().rev() {
            on_planes!(state, unshift_rows);
            P::substitute::<true>(state);
            add_key(state, key);
            unmix_columns(state);
            mix_columns(state, None);
        }
        on_planes!(state, unshift_rows);
        P::substitute::<true>(state);
        add_key(state, first);
    }
}

/// Encrypts or decrypts blocks, which are transposed to planes and back.
///
/// # Safety
///
/// The processor must have the instructions of the planes' registers.
#[inline(always)]
pub(crate) unsafe fn crypt<P: Plane>(
    keys: &Keys<P::Stored>,
    encrypts: bool,
    blocks: &mut [P::Register; MOST],
) {
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe {
        let mut planes = P::pack(blocks);
        if encrypts {
            encrypt(keys, &mut planes);
        } else {
            decrypt(keys, &mut planes);
        }
        P::unpack(&planes, blocks);
    }
}
