//! Measures the limit of the processor: a loop on registers computes only the AES rounds and the carry-less products that a mode
//! needs at least.
//!
//! Dependencies do not delay the loop, because it uses a register again only after all other registers. The loop does not read or
//! write the data of the call, and computes no counters, byte swaps, tags or tweaks. docs/benchmarks.md states how the operations
//! are counted.
#![allow(unsafe_code, reason = "calls of functions for processors that have their instructions")]

use std::hint::black_box;
use std::time::Instant;

use lockstep::aead::Aead;
use lockstep::hazmat::mode::{Cipher, Direction};

use crate::workload::{Mode, Run, Shape, Workload};

/// The name in reports.
pub const NAME: &str = "limit";

/// What a loop computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The AES rounds.
    Cipher,
    /// The carry-less products.
    Hash,
    /// The AES rounds and the carry-less products, interleaved.
    Both,
}

/// A loop with one form of the instructions: AES-NI, or VAES with 256 or 512 bits.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "other processors have no loops"))]
struct Loop {
    /// Bytes of a register.
    width: usize,
    /// Registers of a step.
    lanes: usize,
    /// Computes the given number of steps. Returns the sum of the first blocks of all registers.
    steps: Box<dyn Fn(usize) -> u128>,
}

/// Returns calls that measure the limit of a workload. They do not change the data, and return 0. `None` if the mode is serial, if a
/// call has several messages, or if the processor lacks the instructions.
pub fn limit(work: &Workload, shape: Shape) -> Option<Run> {
    let parts: &[Part] = match (work.mode, work.direction) {
        _ if shape.messages > 1 => return None,
        (Mode::Cipher(Cipher::Ecb | Cipher::Ctr | Cipher::Xts), _)
        | (Mode::Cipher(Cipher::Cbc | Cipher::Cfb128), Direction::Decrypt)
        | (Mode::Aead(Aead::Ocb), _) => &[Part::Cipher],
        // The first counter block of GCM-SIV is the tag, which depends on all products. The rounds therefore follow the products.
        (Mode::Aead(Aead::GcmSiv), Direction::Encrypt) => &[Part::Hash, Part::Cipher],
        (Mode::Aead(Aead::Gcm | Aead::GcmSiv), _) => &[Part::Both],
        _ => return None,
    };
    let rounds = work.key_len / 4 + 6;
    let loops: Option<Vec<Loop>> = parts.iter().map(|&part| fastest(part, rounds)).collect();
    let mut loops: Vec<_> = loops?.into_iter().map(|one| (one, 0)).collect();
    Some(Box::new(move |data, _| {
        for (Loop { width, lanes, steps }, left) in &mut loops {
            // The bytes that do not fill a step are added to those of the next call.
            *left += data.len();
            black_box(steps(*left / (*width * *lanes)));
            *left %= *width * *lanes;
        }
        Ok(0)
    }))
}

/// The loops of all forms of the instructions that the processor has.
fn loops(part: Part, rounds: usize) -> impl Iterator<Item = Loop> {
    #[cfg(target_arch = "x86_64")]
    let forms: [fn(Part, usize) -> Vec<Loop>; 3] = [aes_ni::loops, vaes_256::loops, vaes_512::loops];
    #[cfg(not(target_arch = "x86_64"))]
    let forms: [fn(Part, usize) -> Vec<Loop>; 0] = [];
    forms.into_iter().flat_map(move |form| form(part, rounds))
}

/// Returns the loop with the shortest time per byte. The time of a loop is the shortest of several measurements, because other programs
/// can only lengthen a measurement.
fn fastest(part: Part, rounds: usize) -> Option<Loop> {
    let seconds = |one: &Loop| {
        let bytes = one.width * one.lanes;
        let steps = (32 << 10) / bytes;
        let times = (0..20).map(|_| {
            let start = Instant::now();
            black_box((one.steps)(steps));
            start.elapsed().as_secs_f64()
        });
        times.fold(f64::MAX, f64::min) / (steps * bytes) as f64
    };
    let timed = loops(part, rounds).map(|one| (seconds(&one), one));
    timed.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, one)| one)
}

/// Maximum number of registers of a step.
#[cfg(any(test, target_arch = "x86_64"))]
const MOST: usize = 12;
/// Maximum number of AES rounds, which AES-256 has.
#[cfg(target_arch = "x86_64")]
const ROUNDS: usize = 14;

/// The first value of a register. Its low half is odd and its high half is even, so that the sum of both halves is odd too. The low
/// halves and these sums are the factors of products, so no product is zero.
#[cfg(any(test, target_arch = "x86_64"))]
fn value(index: usize) -> u128 {
    ((index as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835) | 1) & !(1 << 64)
}

/// Defines a module with the loops for one form of the instructions.
#[cfg(target_arch = "x86_64")]
macro_rules! form {
    (
        $name:ident($register:ty), features: $features:literal: $($feature:tt),*;
        round: $round:ident, product: $product:ident, add: $add:ident, shuffle: $shuffle:ident,
        splat: |$block:ident| $splat:expr, lowest: |$vector:ident| $lowest:expr
    ) => {
        mod $name {
            use std::arch::x86_64::*;

            use super::*;

            /// The values in the registers before the first step.
            struct Start {
                blocks: [$register; MOST],
                sums: [$register; 4],
                factors: [$register; MOST],
                keys: [$register; ROUNDS],
            }

            #[target_feature(enable = $features)]
            fn start() -> Start {
                let mut index = 0;
                let mut next = || {
                    let [low, high] = [value(index), value(index) >> 64].map(|half| half as i64);
                    index += 1;
                    let $block = _mm_set_epi64x(high, low);
                    $splat
                };
                Start {
                    blocks: std::array::from_fn(|_| next()),
                    sums: std::array::from_fn(|_| next()),
                    factors: std::array::from_fn(|_| next()),
                    keys: std::array::from_fn(|_| next()),
                }
            }

            #[target_feature(enable = $features)]
            fn run<const LANES: usize, const AES: bool, const PRODUCTS: usize>(
                start: &Start,
                rounds: usize,
                steps: usize,
            ) -> u128 {
                let mut blocks: [$register; LANES] = std::array::from_fn(|lane| start.blocks[lane]);
                let mut sums = start.sums;
                for _ in 0..steps {
                    // `black_box` hides from the compiler that the values are the same in each step. Otherwise the compiler could
                    // compute parts of a step before the loop.
                    let Start { factors, keys, .. } = black_box(start);
                    let round = |blocks: &mut [$register; LANES], key| {
                        if AES {
                            for block in blocks {
                                *block = $round(*block, key);
                            }
                        }
                    };
                    if PRODUCTS > 0 {
                        for (&factor, &key) in factors[..LANES].iter().zip(keys) {
                            sums[0] = $product::<0>(sums[0], factor);
                            sums[1] = $product::<0>(sums[1], factor);
                            if PRODUCTS == 3 {
                                let folded = $add(factor, $shuffle::<0x4e>(factor));
                                sums[2] = $product::<0>(sums[2], folded);
                            } else {
                                sums[2] = $product::<0>(sums[2], factor);
                                sums[3] = $product::<0>(sums[3], factor);
                            }
                            round(&mut blocks, key);
                        }
                        // The reduction.
                        sums[0] = $product::<0>(sums[0], factors[0]);
                        sums[1] = $product::<0>(sums[1], factors[0]);
                    }
                    let done = if PRODUCTS > 0 { LANES } else { 0 };
                    for &key in &keys[done..rounds] {
                        round(&mut blocks, key);
                    }
                }
                let mut $vector = $add($add(sums[0], sums[1]), $add(sums[2], sums[3]));
                for &block in &blocks {
                    $vector = $add($vector, block);
                }
                let lowest = $lowest;
                let halves = [_mm_cvtsi128_si64(lowest), _mm_extract_epi64::<1>(lowest)];
                let [low, high] = halves.map(|half| u128::from(half as u64));
                low | high << 64
            }

            pub(super) fn loops(part: Part, rounds: usize) -> Vec<Loop> {
                type Steps = unsafe fn(&Start, usize, usize) -> u128;
                let variants: &[(usize, Steps)] = match part {
                    _ if !($(is_x86_feature_detected!($feature))&&*) => &[],
                    Part::Cipher => &[(12, run::<12, true, 0>)],
                    Part::Hash => &[(10, run::<10, false, 3>), (10, run::<10, false, 4>)],
                    // A step with six registers leaves room for the sums, the factors and a key in sixteen registers. A step needs more
                    // registers, at least eight, if the processor begins two rounds in each cycle and each round takes four cycles. Ten
                    // registers are enough for such a processor.
                    Part::Both => &[
                        (6, run::<6, true, 3>),
                        (6, run::<6, true, 4>),
                        (10, run::<10, true, 3>),
                        (10, run::<10, true, 4>),
                    ],
                };
                let make = |&(lanes, run): &(usize, Steps)| {
                    // SAFETY: the processor has the features that `start` requires: otherwise `variants` is empty.
                    let start = unsafe { start() };
                    // SAFETY: `run` requires the same features as `start`.
                    let steps = Box::new(move |steps| unsafe { run(&start, rounds, steps) });
                    Loop { width: size_of::<$register>(), lanes, steps }
                };
                variants.iter().map(make).collect()
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
form!(
    aes_ni(__m128i), features: "aes,pclmulqdq,avx": "aes", "pclmulqdq", "avx";
    round: _mm_aesenc_si128, product: _mm_clmulepi64_si128, add: _mm_xor_si128, shuffle: _mm_shuffle_epi32,
    splat: |block| block, lowest: |vector| vector
);
#[cfg(target_arch = "x86_64")]
form!(
    vaes_256(__m256i), features: "vaes,vpclmulqdq,avx2": "vaes", "vpclmulqdq", "avx2";
    round: _mm256_aesenc_epi128, product: _mm256_clmulepi64_epi128, add: _mm256_xor_si256, shuffle: _mm256_shuffle_epi32,
    splat: |block| _mm256_broadcastsi128_si256(block), lowest: |vector| _mm256_castsi256_si128(vector)
);
#[cfg(target_arch = "x86_64")]
form!(
    vaes_512(__m512i), features: "vaes,vpclmulqdq,avx512f": "vaes", "vpclmulqdq", "avx512f";
    round: _mm512_aesenc_epi128, product: _mm512_clmulepi64_epi128, add: _mm512_xor_si512, shuffle: _mm512_shuffle_epi32,
    splat: |block| _mm512_broadcast_i32x4(block), lowest: |vector| _mm512_castsi512_si128(vector)
);

#[cfg(test)]
mod tests;
