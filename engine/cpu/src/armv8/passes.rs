//! The data-parallel passes.

use std::arch::aarch64::*;

use zeroize::Zeroizing;

use super::schedule::Schedule;
use super::vector::{add, block, crypt, load, store, vector};
use crate::kernel::counter::{self, Counting};
use crate::kernel::tweak;
use crate::kernel::{Block, Span};

/// Calls `$step` with the number of blocks as its last parameter for all blocks: eight at a time, then four, then one at a time.
macro_rules! in_groups {
    ($blocks:expr, $step:ident $(::<$parameter:ident>)? ($at:ident $(, $argument:expr)*)) => {{
        let blocks: usize = $blocks;
        let mut $at = 0;
        while blocks - $at >= 8 {
            $step::<$($parameter,)? 8>($at $(, $argument)*);
            $at += 8;
        }
        if blocks - $at >= 4 {
            $step::<$($parameter,)? 4>($at $(, $argument)*);
            $at += 4;
        }
        while $at < blocks {
            $step::<$($parameter,)? 1>($at $(, $argument)*);
            $at += 1;
        }
    }};
}

#[target_feature(enable = "neon,aes")]
pub(crate) fn ecb<const ENCRYPTS: bool>(key: &Schedule, mut data: Span<'_>) {
    #[inline]
    #[target_feature(enable = "neon,aes")]
    fn step<const ENCRYPTS: bool, const N: usize>(at: usize, key: &Schedule, data: &mut Span<'_>) {
        let mut blocks = load::<N>(data, at);
        crypt::<ENCRYPTS, N>(key, &mut blocks);
        store(data, at, blocks);
    }
    in_groups!(data.len() / 16, step::<ENCRYPTS>(at, key, &mut data));
}

#[inline]
#[target_feature(enable = "neon,aes")]
fn ctr_step<C: Counting, const N: usize>(
    at: usize,
    key: &Schedule,
    counter: &mut Block,
    data: &mut Span<'_>,
) {
    let mut counters = [[0; 16]; N];
    counter::take::<C>(counter, N, |i, counter| counters[i] = counter);
    let mut keystream = [vdupq_n_u8(0); N];
    for (block, counter) in keystream.iter_mut().zip(&counters) {
        *block = vector(counter);
    }
    crypt::<true, N>(key, &mut keystream);
    add(&mut keystream, &load(data, at));
    store(data, at, keystream);
}

#[target_feature(enable = "neon,aes")]
pub(crate) fn ctr<C: Counting>(key: &Schedule, counter: &mut Block, data: Span<'_>) {
    let whole = data.len() / 16 * 16;
    let (mut data, tail) = data.split_at(whole);
    in_groups!(whole / 16, ctr_step::<C>(at, key, counter, &mut data));
    if !tail.is_empty() {
        let mut keystream = Zeroizing::new([0; 16]);
        ctr_step::<C, 1>(0, key, counter, &mut Span::in_place(&mut *keystream));
        tail.into_host().xor_with(&*keystream);
    }
}

/// The preceding ciphertext block of each block in `blocks`; `register` precedes the first. Sets `register` to the last
/// block.
#[inline]
#[target_feature(enable = "neon")]
fn shifted<const N: usize>(register: &mut Block, blocks: &[uint8x16_t; N]) -> [uint8x16_t; N] {
    let mut before = *blocks;
    before.rotate_right(1);
    before[0] = vector(register);
    *register = block(blocks[N - 1]);
    before
}

/// Decryption of CBC, or of CFB128 if CFB is set.
#[target_feature(enable = "neon,aes")]
pub(crate) fn feedback<const CFB: bool>(key: &Schedule, iv: &mut Block, mut data: Span<'_>) {
    #[inline]
    #[target_feature(enable = "neon,aes")]
    fn step<const CFB: bool, const N: usize>(at: usize, key: &Schedule, iv: &mut Block, data: &mut Span<'_>) {
        let text = load::<N>(data, at);
        let before = shifted(iv, &text);
        let (mut blocks, other) = if CFB { (before, text) } else { (text, before) };
        crypt::<CFB, N>(key, &mut blocks);
        add(&mut blocks, &other);
        store(data, at, blocks);
    }
    in_groups!(data.len() / 16, step::<CFB>(at, key, iv, &mut data));
}

/// The next `N` tweaks.
#[inline]
#[target_feature(enable = "neon")]
fn tweaks<const N: usize>(tweak: &mut Block) -> [uint8x16_t; N] {
    let mut blocks = [[0; 16]; N];
    tweak::take(tweak, N, |i, tweak| blocks[i] = tweak);
    let mut tweaks = [vdupq_n_u8(0); N];
    for (vector_of, block) in tweaks.iter_mut().zip(&blocks) {
        *vector_of = vector(block);
    }
    tweaks
}

#[target_feature(enable = "neon,aes")]
pub(crate) fn xts<const ENCRYPTS: bool>(key: &Schedule, tweak: &mut Block, mut data: Span<'_>) {
    #[inline]
    #[target_feature(enable = "neon,aes")]
    fn step<const ENCRYPTS: bool, const N: usize>(
        at: usize,
        key: &Schedule,
        tweak: &mut Block,
        data: &mut Span<'_>,
    ) {
        let tweaks = tweaks::<N>(tweak);
        let mut blocks = load(data, at);
        add(&mut blocks, &tweaks);
        crypt::<ENCRYPTS, N>(key, &mut blocks);
        add(&mut blocks, &tweaks);
        store(data, at, blocks);
    }
    in_groups!(data.len() / 16, step::<ENCRYPTS>(at, key, tweak, &mut data));
}
