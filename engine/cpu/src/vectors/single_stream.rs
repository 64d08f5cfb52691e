//! The serial modes of one message, in one vector of one block, and CCM, whose CBC-MAC is serial.
//!
//! The time of a serial mode is the latency of the dependency chain from one block to the next. To keep everything except
//! the rounds out of this chain, the first round key (and the text, if the mode adds it) is XORed into the last round key of
//! the previous block. The output is corrected outside of the chain.

use super::cipher::Keys;
use super::schedule::Schedule;
use super::vector::{Single, Vector};
use crate::kernel::{Block, Span, partial};

/// The middle rounds of one block.
///
/// # Safety
///
/// The same as for [`Keys::get`].
#[inline(always)]
unsafe fn rounds(keys: Keys, x: Single) -> Single {
    let mut x = [x];
    // SAFETY: the caller guarantees the conditions of this function.
    unsafe { keys.opaque().middle::<true, _, 1>(&mut x) };
    x[0]
}

/// The round keys of encryption, the first of them, and the last.
///
/// # Safety
///
/// The same as for [`Vector`].
#[inline(always)]
unsafe fn keys(schedule: &Schedule) -> (Keys, Single, Single) {
    let keys = Keys::of::<true>(schedule);
    // SAFETY: the caller guarantees that the processor has the instructions; the schedule exists.
    let (first, last) = unsafe { keys.opaque().ends() };
    (keys, first, last)
}

/// Encrypts one block in a register.
///
/// # Safety
///
/// The same as for [`Vector`].
#[inline(always)]
pub(super) unsafe fn encrypted(schedule: &Schedule, block: Single) -> Single {
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe {
        let (keys, first, last) = keys(schedule);
        rounds(keys, first.xor(block)).aesenclast(last)
    }
}

/// Loads a block as words, because most callers have just stored it as words.
///
/// # Safety
///
/// The same as for [`Vector`].
#[inline(always)]
pub(super) unsafe fn load_words(block: &Block) -> Single {
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe {
        let [low, high] = block.as_ptr().cast::<[u64; 2]>().read_unaligned();
        Single::words(low, high)
    }
}

/// Encrypts one block.
///
/// # Safety
///
/// The same as for [`Vector`].
#[inline(always)]
pub(super) unsafe fn encrypt_block(schedule: &Schedule, block: &mut Block) {
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe { encrypted(schedule, load_words(block)).store(block.as_mut_ptr()) };
}

/// CBC encryption of whole blocks, or CBC-MAC if MAC is set: the blocks are not written then.
///
/// # Safety
///
/// The same as for [`Vector`]. In addition, `src` is valid for reads of the blocks and, unless MAC is set, `dst` for writes.
#[inline(always)]
pub(super) unsafe fn cbc<const MAC: bool>(
    schedule: &Schedule,
    iv: &mut Block,
    src: *const u8,
    dst: *mut u8,
    blocks: usize,
) {
    let iv = iv.as_mut_ptr();
    if blocks == 0 {
        return;
    }
    // SAFETY: the caller guarantees the conditions of this function.
    unsafe {
        let (keys, first, last) = keys(schedule);
        let between = last.xor(first);
        let mut x = Single::load(iv).xor(first.xor(Single::load(src)));
        for block in 1..blocks {
            let text = Single::load(src.add(16 * block));
            if MAC {
                x = rounds(keys, x).aesenclast(between.xor(text));
            } else {
                let text = first.xor(text);
                x = rounds(keys, x).aesenclast(last.xor(text));
                x.xor(text).store(dst.add(16 * (block - 1)));
            }
        }
        x = rounds(keys, x).aesenclast(last);
        if !MAC {
            x.store(dst.add(16 * (blocks - 1)));
        }
        x.store(iv);
    }
}

/// CTR and CBC-MAC in one loop: see [`Kernel::ccm`](crate::kernel::Kernel::ccm).
///
/// The AES units are idle most of the time of the CBC-MAC, so they encrypt the counter of the next block beside each block of the MAC. The
/// keystream is then known before the MAC needs the plaintext, in both directions.
///
/// # Safety
///
/// The same as for [`Vector`].
#[inline(always)]
pub(super) unsafe fn ccm<const ENCRYPTS: bool>(
    schedule: &Schedule,
    mac: &mut Block,
    first: &Block,
    data: Span<'_>,
) {
    let mut counter = u128::from_be_bytes(*first);
    // SAFETY: the caller guarantees that the processor has the instructions. The schedule exists, and blocks and bytes lie in the span.
    unsafe {
        let (keys, first_key, last_key) = keys(schedule);
        let mut next = || {
            let block = Single::number(counter.swap_bytes());
            counter = counter.wrapping_add(1);
            first_key.xor(block)
        };
        let mut chains = [load_words(mac).xor(first_key), next(), next()];
        keys.opaque().middle::<true, _, 3>(&mut chains);
        let [mut x, mask, mut keystream] = chains;
        for at in (0..data.len()).step_by(16) {
            let (src, dst, bytes) = (data.src().add(at), data.dst().add(at), data.len() - at);
            keystream = keystream.aesenclast(last_key);
            let text = if bytes >= 16 {
                let input = Single::load(src);
                let output = input.xor(keystream);
                output.store(dst);
                if ENCRYPTS { input } else { output }
            } else {
                // The MAC is computed over the plaintext, padded with zeros.
                let input = partial::load(src, bytes);
                let output = (input ^ keystream.to_number()) & ((1 << (8 * bytes)) - 1);
                partial::store(output, dst, bytes);
                Single::number(if ENCRYPTS { input } else { output })
            };
            let mut chains = [x.aesenclast(last_key.xor(first_key).xor(text)), next()];
            keys.opaque().middle::<true, _, 2>(&mut chains);
            [x, keystream] = chains;
        }
        x.aesenclast(last_key).xor(mask.aesenclast(last_key)).store(mac.as_mut_ptr());
    }
}

/// CFB128 encryption of whole blocks, or OFB if CFB is not set.
///
/// # Safety
///
/// The same as for [`Vector`].
#[inline(always)]
pub(super) unsafe fn feedback<const CFB: bool>(schedule: &Schedule, iv: &mut Block, data: Span<'_>) {
    let (src, dst) = (data.src(), data.dst());
    let iv = iv.as_mut_ptr();
    // SAFETY: the caller guarantees that the processor has the instructions; the blocks lie in the span.
    unsafe {
        let (keys, first, last) = keys(schedule);
        let last = last.xor(first);
        let mut x = Single::load(iv).xor(first);
        for block in 0..data.len() / 16 {
            let text = Single::load(src.add(16 * block));
            x = rounds(keys, x).aesenclast(if CFB { last.xor(text) } else { last });
            let output = if CFB { x.xor(first) } else { x.xor(first.xor(text)) };
            output.store(dst.add(16 * block));
        }
        x.xor(first).store(iv);
    }
}

/// CFB8 of any length.
///
/// # Safety
///
/// The same as for [`Vector`].
#[inline(always)]
pub(super) unsafe fn cfb8<const ENCRYPTS: bool>(schedule: &Schedule, iv: &mut Block, data: Span<'_>) {
    let (src, dst) = (data.src(), data.dst());
    let iv = iv.as_mut_ptr();
    // SAFETY: the caller guarantees that the processor has the instructions; the bytes lie in the span.
    unsafe {
        let (keys, first, last) = keys(schedule);
        let mut register = Single::load(iv);
        for at in 0..data.len() {
            let text = Single::byte(src.add(at).read());
            let x = rounds(keys, register.xor(first)).aesenclast(last.xor(text));
            register = register.shifted_in(if ENCRYPTS { x } else { text });
            dst.add(at).write(x.first_byte());
        }
        register.store(iv);
    }
}

/// CFB1 of `bits` bits. Later bits of the output are not changed.
///
/// # Safety
///
/// The same as for [`Vector`].
#[inline(always)]
pub(super) unsafe fn cfb1<const ENCRYPTS: bool>(
    schedule: &Schedule,
    register: &mut Block,
    data: Span<'_>,
    bits: usize,
) {
    assert!(bits.div_ceil(8) <= data.len(), "fewer bytes than bits");
    let (src, dst) = (data.src(), data.dst());
    let register = register.as_mut_ptr();
    // SAFETY: the caller guarantees that the processor has the instructions. The bytes lie in the span. An output byte is
    // read only if some of its bits must not change.
    unsafe {
        let (keys, first, last) = keys(schedule);
        let mut number = Single::load(register).reversed();
        for at in (0..bits).step_by(8) {
            let count = (bits - at).min(8);
            let mut text = src.add(at / 8).read();
            let mut result = 0;
            for _ in 0..count {
                let top = Single::byte(text & 0x80);
                let x = rounds(keys, number.reversed().xor(first)).aesenclast(last.xor(top));
                number = number.doubled().xor(if ENCRYPTS { x } else { top }.top_of_first_byte());
                result = result << 1 | x.first_byte() >> 7;
                text <<= 1;
            }
            let place = dst.add(at / 8);
            if count < 8 {
                result = result << (8 - count) | (place.read() & (0xff >> count));
            }
            place.write(result);
        }
        number.reversed().store(register);
    }
}
