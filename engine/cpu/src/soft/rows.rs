//! CTR in groups of 32 blocks, for SIMD128 of WebAssembly. Each row of a plane has a vector of its own.
//!
//! MixColumns combines vectors of different rows, so it permutes nothing, and ShiftRows rotates the lanes of three rows. With one
//! vector for each plane (`rounds`), a round takes 32 permutations for 8 blocks. Here it takes 6.
//!
//! A group has more planes than a processor has registers. Therefore each step of a round loads a few planes, and stores its result.

use std::array::from_fn;
use std::slice::from_raw_parts_mut;

use lockstep_core::sbox;

use super::lookup::Row;
use super::planes::transpose;
use super::register::Register;
use super::schedule::{Keys, ROUND_KEYS};
use super::simd128::Simd128;
use super::vector::Vector;
use crate::kernel::counter::Counting;
use crate::kernel::wiped::Wiped;
use crate::kernel::{Block, Span};

/// Number of blocks of a group.
const GROUP: usize = 32;

/// The smallest number of blocks that are processed in groups. To convert the round keys takes longer than one group saves.
const LEAST: usize = 2 * GROUP;

/// The rows of a state or of a round key: vector `b` of row `r` has bit `b` of its bytes. A lane of 32 bits belongs to a column, and has a
/// bit for each block. A row is contiguous, so that the S-box needs one address.
type Rows = [[Simd128; 8]; 4];

/// Bits 0 to 4 of the numbers 0 to 31.
const NUMBERS: [u32; 5] = [0xaaaa_aaaa, 0xcccc_cccc, 0xf0f0_f0f0, 0xff00_ff00, 0xffff_0000];

/// The rows in the memory of `N` blocks.
#[inline(always)]
fn rows<const N: usize>(blocks: &mut Wiped<N>) -> &mut [Rows] {
    // SAFETY: `Wiped` has the alignment of a vector, and any bytes are valid vectors.
    unsafe { from_raw_parts_mut(blocks.as_mut_ptr().cast(), N / GROUP) }
}

/// Exchanges the number of the vector and the position of the byte in its lane: byte `4 c + r` of vector `v` becomes byte `4 c + v`
/// of vector `r`.
fn arrange([a0, a1, a2, a3]: [Simd128; 4]) -> [Simd128; 4] {
    let ([b0, b2], [b1, b3]) = (a0.interleave(a2), a1.interleave(a3));
    // Lane `r` of vector `c` gets the bytes of all four vectors. Then the lanes are transposed.
    let ([c0, c1], [c2, c3]) = (b0.interleave(b1), b2.interleave(b3));
    let ([d0, d2], [d1, d3]) = (c0.interleave_lanes(c2), c1.interleave_lanes(c3));
    let ([e0, e1], [e2, e3]) = (d0.interleave_lanes(d1), d2.interleave_lanes(d3));
    [e0, e1, e2, e3]
}

/// Plane `b` of all rows.
fn plane(rows: &Rows, b: usize) -> [Simd128; 4] {
    from_fn(|r| rows[r][b])
}

fn set_plane(rows: &mut Rows, b: usize, plane: [Simd128; 4]) {
    rows.iter_mut().zip(plane).for_each(|(row, vector)| row[b] = vector);
}

/// A plane of a round key in all blocks of a group.
fn widened(plane: &Vector) -> [Simd128; 4] {
    // SAFETY: the engine that has compiled this module has SIMD128.
    let plane = unsafe { Simd128::repeat(*plane) };
    // Lane `r` has a byte for each column. Each byte is repeated four times.
    let [low, high] = plane.interleave(plane);
    let ([r0, r1], [r2, r3]) = (low.interleave(low), high.interleave(high));
    [r0, r1, r2, r3]
}

fn shift_rows([r0, r1, r2, r3]: [Simd128; 4]) -> [Simd128; 4] {
    [r0, r1.rotate::<1>(), r2.rotate::<2>(), r3.rotate::<3>()]
}

#[inline(never)]
fn sub_bytes(row: &mut [Simd128; 8]) {
    *row = sbox::forward(*row);
}

/// ShiftRows, MixColumns and AddRoundKey, with the formula of `rounds`.
#[inline(always)]
fn mix_columns(state: &mut Rows, key: &Rows) {
    let sums = |[r0, r1, r2, r3]: [Simd128; 4]| [r0 ^ r1, r1 ^ r2, r2 ^ r3, r3 ^ r0];
    let top = sums(shift_rows(plane(state, 7)));
    let mix = |b, carry: [Simd128; 4], state: &mut Rows| {
        let rows = shift_rows(plane(state, b));
        let t = sums(rows);
        for r in 0..4 {
            let sum = rows[(r + 1) % 4] ^ t[(r + 2) % 4] ^ carry[r] ^ key[r][b];
            // x^8 = x^4 + x^3 + x + 1. The carry of plane 0 is `top`.
            state[r][b] = if matches!(b, 1 | 3 | 4) { sum ^ top[r] } else { sum };
        }
        t
    };
    // The calls are written out, because LLVM does not unroll a loop here.
    let carry = mix(3, mix(2, mix(1, mix(0, top, state), state), state), state);
    mix(7, mix(6, mix(5, mix(4, carry, state), state), state), state);
}

/// The planes of 32 counter blocks, plus the first round key. The low five bits of each block are its number in the group. The other bits are
/// those of `next` for the numbers below `first`, and those of `counter` for the other numbers.
#[inline(always)]
fn counters(state: &mut Rows, key: &Rows, [counter, next]: [Block; 2], first: u32) {
    // SAFETY: the engine that has compiled this module has SIMD128; a block is 16 readable bytes.
    unsafe {
        let rows = |mut block: Block| {
            block[15] &= !31;
            arrange([Simd128::load(block.as_ptr()); 4])
        };
        let (counter, next, mask) = (rows(counter), rows(next), Simd128::splat(u32::MAX << first));
        for r in 0..4 {
            for b in 0..8 {
                let (counter, next) = (counter[r].bit(b), next[r].bit(b));
                state[r][b] = ((counter ^ next) & mask) ^ next ^ key[r][b];
            }
        }
        for (vector, numbers) in state[3].iter_mut().zip(NUMBERS) {
            // The number is in the last byte of a block: row 3 of the last column.
            *vector = *vector ^ Simd128::repeat(Vector([0, 0, 0, numbers]));
        }
    }
}

/// Encrypts a group to which the first round key was added. Afterwards row `j` has the transposed blocks with the numbers from `8 j` on.
#[inline(never)]
fn encrypt(keys: &[Rows], state: &mut Rows) {
    let (last, middle) = keys.split_last().expect("there are two round keys or more");
    for key in middle {
        state.iter_mut().for_each(sub_bytes);
        mix_columns(state, key);
    }
    state.iter_mut().for_each(sub_bytes);
    for b in 0..8 {
        let (rows, key) = (shift_rows(plane(state, b)), plane(last, b));
        set_plane(state, b, arrange(from_fn(|r| rows[r] ^ key[r])));
    }
}

/// Runs CTR on the groups at the start of the data. Returns the other data.
#[inline(always)]
pub(super) fn ctr<'a, C: Counting>(keys: &Keys, counter: &mut Block, data: Span<'a>) -> Span<'a> {
    run(keys, counter, data, C::advance)
}

/// A function without a type parameter, which is compiled once.
fn run<'a>(keys: &Keys, counter: &mut Block, data: Span<'a>, advance: fn(u128, u128) -> u128) -> Span<'a> {
    let blocks = data.len() / 16 / GROUP * GROUP;
    if blocks < LEAST {
        return data;
    }
    let (groups, rest) = data.split_at(16 * blocks);
    let (mut wide, mut state) = (Wiped::<{ GROUP * ROUND_KEYS }>::zero(), Wiped::<GROUP>::zero());
    let wide = &mut rows(&mut wide)[..keys.all().len()];
    for (wide, key) in wide.iter_mut().zip(keys.all()) {
        key.iter().enumerate().for_each(|(b, plane)| set_plane(wide, b, widened(plane)));
    }
    let state = &mut rows(&mut state)[0];
    for group in (0..blocks).step_by(GROUP) {
        let next = advance(u128::from_be_bytes(*counter), GROUP as u128).to_be_bytes();
        let first = usize::from(counter[15]) % GROUP;
        counters(state, &wide[0], [*counter, next], first as u32);
        encrypt(&wide[1..], state);
        *counter = next;
        for (j, blocks) in state.iter_mut().enumerate() {
            // SAFETY: the engine that has compiled this module has SIMD128; the data have the block `at`.
            unsafe {
                transpose(blocks);
                for (i, block) in blocks.iter().enumerate() {
                    let at = group + (8 * j + i).wrapping_sub(first) % GROUP;
                    (Simd128::load(groups.src().add(16 * at)) ^ *block).store(groups.dst().add(16 * at));
                }
            }
        }
    }
    rest
}
