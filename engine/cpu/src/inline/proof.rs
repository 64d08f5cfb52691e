//! The self-test of inline kernels on this processor. It checks the block cipher with the examples of FIPS 197, and all
//! modes against that block cipher.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use lockstep_core::data::Data;
use lockstep_core::key::Key;
use lockstep_core::work::{AeadMessage, FusedAead, Status, Tag, Task};

use super::{Block, InlineGcm, InlineKernel, InlineKey, InlineOcb, Span, advance_tweak};

const UNKNOWN: u8 = 0;
const PASSED: u8 = 1;
const FAILED: u8 = 2;

/// The result of each kernel's self-test. There is no lock, because a fork during a self-test could leave a lock held.
/// Running a self-test twice is harmless.
static OUTCOMES: [(&str, AtomicU8); 5] = [
    ("cpu/vaes512", AtomicU8::new(UNKNOWN)),
    ("cpu/vaes256", AtomicU8::new(UNKNOWN)),
    ("cpu/aesni", AtomicU8::new(UNKNOWN)),
    ("cpu/armv8", AtomicU8::new(UNKNOWN)),
    ("cpu/soft", AtomicU8::new(UNKNOWN)),
];

/// True if the kernel has passed its self-test. The first call runs the self-test, which takes 0.4 ms, or 1.5 ms for the
/// portable kernel.
#[inline]
pub fn is_proven(kernel: InlineKernel) -> bool {
    let name = kernel.name();
    let Some((_, outcome)) = OUTCOMES.iter().find(|(other, _)| *other == name) else { return false };
    match outcome.load(Relaxed) {
        UNKNOWN => {
            let passed = prove(kernel).is_some();
            outcome.store(if passed { PASSED } else { FAILED }, Relaxed);
            passed
        }
        known => known == PASSED,
    }
}

/// Length of the data: several of the widest steps of any kernel (512 bytes), one step of each smaller width down to one
/// block, and a partial block.
const LEN: usize = 1024 + 512 + 256 + 128 + 64 + 32 + 16 + 5;
const WHOLE: usize = LEN & !15;
/// Length of the data of GCM, and of the first of two pieces. The second piece is long enough for the fused loops of every
/// kernel.
const GCM_LEN: usize = LEN + 1024;
const GCM_FIRST: usize = 700;
/// Serial modes use shorter data, because they take as long for one block as parallel modes take for eight.
const SERIAL_LEN: usize = 64;

/// Key lengths and ciphertexts of the examples in FIPS 197, appendix C. The bytes of the key are 00, 01, 02 and so on; the
/// bytes of the plaintext are 00, 11, 22 and so on.
const CIPHERTEXTS: [(usize, u128); 3] = [
    (16, 0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a),
    (24, 0xdda9_7ca4_864c_dfe0_6eaf_70a0_ec0d_7191),
    (32, 0x8ea2_b7ca_5167_45bf_eafc_4990_4b49_6089),
];

fn prove(kernel: InlineKernel) -> Option<()> {
    let key_bytes: [u8; 32] = std::array::from_fn(|i| i as u8);
    for (len, ciphertext) in CIPHERTEXTS {
        let key = InlineKey::new(kernel, &key_bytes[..len])?;
        let mut block = std::array::from_fn(|i| 0x11 * i as u8);
        key.encrypt_block(&mut block);
        (block == ciphertext.to_be_bytes()).then_some(())?;
        prove_parallel(&key)?;
        prove_serial(&key)?;
        prove_gcm(kernel, &key, &key_bytes[..len])?;
        prove_gcm_siv(kernel, &key, &key_bytes[..len])?;
        prove_ocb(key, len == 16)?;
    }
    Some(())
}

/// Pseudorandom bytes.
fn sample<const N: usize>() -> [u8; N] {
    let mut state = 0x9E37_79B9u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::array::from_fn(|_| next())
}

fn encrypted(key: &InlineKey, mut block: Block) -> Block {
    key.encrypt_block(&mut block);
    block
}

fn xor(a: &[u8], b: &[u8]) -> Block {
    std::array::from_fn(|i| a.get(i).unwrap_or(&0) ^ b.get(i).unwrap_or(&0))
}

/// `Some` if the output and the register are as expected.
fn same<const N: usize>(got: ([u8; N], Block), expected: ([u8; N], Block)) -> Option<()> {
    (got == expected).then_some(())
}

/// Calls `run` in place and returns the output and the register.
fn run<const N: usize>(
    register: Block,
    input: &[u8; N],
    run: impl Fn(&mut Block, Span<'_>),
) -> ([u8; N], Block) {
    let (mut output, mut register) = (*input, register);
    run(&mut register, Span::in_place(&mut output));
    (output, register)
}

/// The output and the register of a mode, computed block by block. `step` maps the register and a block (the last may be
/// partial) to the output and the next register.
fn by_blocks<const N: usize>(
    register: Block,
    input: &[u8; N],
    step: impl Fn(Block, &[u8]) -> (Block, Block),
) -> ([u8; N], Block) {
    let (mut output, mut register) = (*input, register);
    for block in output.chunks_mut(16) {
        let (result, next) = step(register, block);
        block.copy_from_slice(&result[..block.len()]);
        register = next;
    }
    (output, register)
}

fn prove_parallel(key: &InlineKey) -> Option<()> {
    let input: [u8; LEN] = sample();
    let whole: &[u8; WHOLE] = input[..WHOLE].try_into().expect("at least that long");
    // The low half of this counter overflows within the data.
    let start = (0xFEDC_BA98_7654_3210u128 << 64 | u128::from(u64::MAX - 20)).to_be_bytes();
    let (unused, as_block) = ([0; 16], |block: &[u8]| -> Block { block.try_into().expect("16 bytes") });

    for counting in [u128::MAX, u128::from(u32::MAX)] {
        let expected = by_blocks(start, &input, |counter, block| {
            let number = u128::from_be_bytes(counter);
            let next = (number & !counting) | (number.wrapping_add(1) & counting);
            (xor(block, &encrypted(key, counter)), next.to_be_bytes())
        });
        let got = run(start, &input, |register, data| match counting {
            u128::MAX => key.ctr(register, data),
            _ => key.ctr32(register, data),
        });
        same(got, expected)?;
    }

    let expected = by_blocks(unused, whole, |register, block| (encrypted(key, as_block(block)), register));
    same(run(unused, whole, |_, data| key.ecb_encrypt(data)), expected)?;
    let decrypted = run(unused, whole, |_, data| key.ecb_decrypt(data));
    same(run(unused, &expected.0, |_, data| key.ecb_decrypt(data)), (*whole, unused))?;

    let expected = by_blocks(start, whole, |tweak, block| {
        let mut next = tweak;
        advance_tweak(&mut next, 1);
        (xor(&encrypted(key, xor(block, &tweak)), &tweak), next)
    });
    same(run(start, whole, |register, data| key.xts_encrypt(register, data)), expected)?;
    let decrypted_unit = run(start, &expected.0, |register, data| key.xts_decrypt(register, data));
    same(decrypted_unit, (*whole, expected.1))?;

    // CBC decryption is ECB decryption (tested above) XORed with the preceding block. CFB decryption is the encrypted
    // preceding block XORed with the data.
    let mut expected = by_blocks(start, whole, |before, block| (before, as_block(block)));
    expected.0.iter_mut().zip(decrypted.0).for_each(|(byte, decrypted)| *byte ^= decrypted);
    same(run(start, whole, |register, data| key.cbc_decrypt(register, data)), expected)?;
    let expected =
        by_blocks(start, whole, |before, block| (xor(block, &encrypted(key, before)), as_block(block)));
    same(run(start, whole, |register, data| key.cfb128_decrypt(register, data)), expected)
}

fn prove_serial(key: &InlineKey) -> Option<()> {
    let input: [u8; SERIAL_LEN] = sample();
    let iv: Block = std::array::from_fn(|i| 0xA0 ^ i as u8);
    let cbc = by_blocks(iv, &input, |before, block| {
        let block = encrypted(key, xor(block, &before));
        (block, block)
    });
    same(run(iv, &input, |register, data| key.cbc_encrypt(register, data)), cbc)?;
    let mut mac = iv;
    key.cbc_mac(&mut mac, &input);
    (mac == cbc.1).then_some(())?;
    let cfb = by_blocks(iv, &input, |before, block| {
        let block = xor(block, &encrypted(key, before));
        (block, block)
    });
    same(run(iv, &input, |register, data| key.cfb128_encrypt(register, data)), cfb)?;
    let ofb = by_blocks(iv, &input, |before, block| {
        let keystream = encrypted(key, before);
        (xor(block, &keystream), keystream)
    });
    same(run(iv, &input, |register, data| key.ofb(register, data)), ofb)?;

    // CFB8 and CFB1 (SP 800-38A, 6.3): the ciphertext byte or bit is shifted into the register.
    const BYTES: usize = 4;
    let plain: &[u8; BYTES] = input[..BYTES].try_into().expect("at least that long");
    let (mut register, mut cfb8) = (u128::from_be_bytes(iv), *plain);
    for byte in &mut cfb8 {
        *byte ^= encrypted(key, register.to_be_bytes())[0];
        register = (register << 8) | u128::from(*byte);
    }
    let after = register.to_be_bytes();
    same(run(iv, plain, |register, data| key.cfb8_encrypt(register, data)), (cfb8, after))?;
    same(run(iv, &cfb8, |register, data| key.cfb8_decrypt(register, data)), (*plain, after))?;

    let (mut register, mut cfb1) = (u128::from_be_bytes(iv), *plain);
    for bit in 0..8 * BYTES {
        let shift = 7 - bit % 8;
        cfb1[bit / 8] ^= (encrypted(key, register.to_be_bytes())[0] >> 7) << shift;
        register = (register << 1) | u128::from((cfb1[bit / 8] >> shift) & 1);
    }
    let after = register.to_be_bytes();
    let bits = 8 * BYTES;
    same(run(iv, plain, |register, data| key.cfb1_encrypt(register, data, bits)), (cfb1, after))?;
    same(run(iv, &cfb1, |register, data| key.cfb1_decrypt(register, data, bits)), (*plain, after))
}

/// The product of two elements in the field of GHASH (SP 800-38D, algorithm 1).
fn product(x: u128, mut y: u128) -> u128 {
    let mut z = 0;
    for bit in (0..128).rev() {
        z ^= y & (0u128.wrapping_sub((x >> bit) & 1));
        y = (y >> 1) ^ ((0xE1 << 120) & 0u128.wrapping_sub(y & 1));
    }
    z
}

/// GHASH of strings (SP 800-38D, 6.4), each padded with zeros, and of a last block.
fn ghash(h: u128, strings: &[&[u8]], last: u128) -> u128 {
    let blocks = strings.iter().flat_map(|string| string.chunks(16));
    let blocks = blocks.map(|block| u128::from_be_bytes(xor(block, &[])));
    blocks.chain([last]).fold(0, |hash, block| product(hash ^ block, h))
}

/// GCM with IVs of 12 and of 16 bytes, whose J0 have other low bits, by an original and by a copy: a copy has all powers of H,
/// and uses the fused loops for shorter data.
fn prove_gcm(kernel: InlineKernel, key: &InlineKey, key_bytes: &[u8]) -> Option<()> {
    let input: [u8; GCM_LEN] = sample();
    let aad = &input[3..40];
    let h = u128::from_be_bytes(encrypted(key, [0; 16]));
    let mut original = InlineGcm::new(kernel, key_bytes)?;
    let mut copy = original.duplicate()?;
    for iv in [&input[..12], &input[..16]] {
        let first = match iv.len() {
            12 => u128::from_be_bytes(xor(iv, &[])) | 1,
            len => ghash(h, &[iv], 8 * len as u128),
        };
        let mask = u128::from_be_bytes(encrypted(key, first.to_be_bytes()));
        let low = u128::from(u32::MAX);
        let mut counter = (first & !low | first.wrapping_add(1) & low).to_be_bytes();
        let mut expected = input;
        key.ctr32(&mut counter, Span::in_place(&mut expected));
        let lengths = (u128::from(8 * aad.len() as u64) << 64) | u128::from(8 * GCM_LEN as u64);
        let tag = (ghash(h, &[aad, &expected], lengths) ^ mask).to_be_bytes();
        for gcm in [&mut original, &mut copy] {
            seals_and_opens(gcm, (iv, aad, &input), (&expected, &tag))?;
        }
    }
    Some(())
}

/// Seals a message in one piece, and in two pieces; the second piece does not begin with a step. Then opens it, with the right tag
/// and with a wrong tag, which must be refused.
fn seals_and_opens(
    gcm: &mut InlineGcm,
    (iv, aad, input): (&[u8], &[u8], &[u8; GCM_LEN]),
    (expected, tag): (&[u8; GCM_LEN], &Block),
) -> Option<()> {
    for first in [GCM_LEN, GCM_FIRST] {
        let mut output = *input;
        let (head, tail) = output.split_at_mut(first);
        let sealed = gcm.start(true, iv)
            && gcm.aad(aad)
            && gcm.update(Span::in_place(head))
            && gcm.update(Span::in_place(tail))
            && gcm.finish_seal() == Some(*tag);
        (sealed && output == *expected).then_some(())?;
    }
    let mut output = *expected;
    let opened = gcm.start(false, iv)
        && gcm.aad(aad)
        && gcm.update(Span::in_place(&mut output))
        && gcm.finish_open(tag);
    (opened && output == *input).then_some(())?;
    let mut wrong = *tag;
    wrong[7] ^= 1;
    output = *expected;
    let refused = gcm.start(false, iv) && gcm.aad(aad) && gcm.update(Span::in_place(&mut output));
    (refused && !gcm.finish_open(&wrong)).then_some(())
}

/// GCM-SIV (RFC 8452), computed from the block cipher and the product in the field of GHASH.
fn prove_gcm_siv(kernel: InlineKernel, key: &InlineKey, key_bytes: &[u8]) -> Option<()> {
    let input: [u8; LEN] = sample();
    let (aad, nonce) = (&input[3..40], &input[..12]);
    let derived: [Block; 6] = std::array::from_fn(|number| {
        let mut block: Block = [0; 16];
        block[0] = number as u8;
        block[4..].copy_from_slice(nonce);
        encrypted(key, block)
    });
    let mut halves = [[0; 8]; 6];
    halves.iter_mut().zip(&derived).for_each(|(half, block)| half.copy_from_slice(&block[..8]));
    let (hash_key, encryption) = halves.as_flattened().split_at(16);
    // POLYVAL is GHASH with the bytes of each block in reverse, under the product of the reversed key and the element x
    // (RFC 8452, appendix A).
    let reversed = |block: &[u8]| u128::from_le_bytes(xor(block, &[]));
    let h = product(reversed(hash_key), 1 << 126);
    let lengths = u128::from(8 * aad.len() as u64) | u128::from(8 * LEN as u64) << 64;
    let blocks = aad.chunks(16).chain(input.chunks(16)).map(reversed);
    let hash = blocks.chain([lengths]).fold(0, |hash, block| product(hash ^ block, h));
    let tag = (hash ^ reversed(nonce)) & !(1 << 127);
    let key = InlineKey::new(kernel, &encryption[..key_bytes.len()])?;
    let tag = encrypted(&key, tag.to_le_bytes());
    let mut counter = u128::from_le_bytes(tag) | 1 << 127;
    let mut expected = input;
    for block in expected.chunks_mut(16) {
        let keystream = encrypted(&key, counter.to_le_bytes());
        block.iter_mut().zip(keystream).for_each(|(byte, key)| *byte ^= key);
        counter = counter & !u128::from(u32::MAX) | u128::from((counter as u32).wrapping_add(1));
    }

    let key = Key::new(key_bytes).ok()?;
    let run = |fused, data: &mut [u8], tag: Tag<'_>| {
        let (data, status) = (Data::in_place(data), Status::Pending);
        let mut message = [AeadMessage { key: &key, nonce, aad, data, tag, status }];
        kernel.run(Task::Fused(fused, &mut message)).ok()?;
        Some(message[0].status)
    };
    let (mut output, mut made) = (input, [0; 16]);
    let sealed = run(FusedAead::GcmSivSeal, &mut output, Tag::Write(&mut made))? == Status::Done;
    (sealed && output == expected && made == tag).then_some(())?;
    let opened = run(FusedAead::GcmSivOpen, &mut output, Tag::Expect(&tag))? == Status::Done;
    (opened && output == input).then_some(())?;
    made[7] ^= 1;
    output = expected;
    let refused = run(FusedAead::GcmSivOpen, &mut output, Tag::Expect(&made))?;
    (refused == Status::AuthenticationFailed).then_some(())
}

/// OCB3: an example of RFC 7253 (appendix A), for the key of 16 bytes; and two long pieces, of which the second does not begin
/// with a step, compared with single blocks.
fn prove_ocb(key: InlineKey, has_example: bool) -> Option<()> {
    let input: [u8; LEN] = sample();
    let nonce = &input[..12];
    let mut ocb = InlineOcb::new(key);
    if has_example {
        let text: [u8; 8] = std::array::from_fn(|i| i as u8);
        let mut output = text;
        ocb.start(true, &[0xbb, 0xaa, 0x99, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x01], 16);
        ocb.aad(&text);
        ocb.last(Span::in_place(&mut output));
        let tag = 0x5725_bda0_d3b4_eb3a_257c_9af1_f8f0_3009u128;
        let expected = 0x6820_b365_7b6f_615au64;
        (u64::from_be_bytes(output) == expected && ocb.finish_seal() == tag.to_be_bytes()).then_some(())?;
    }
    let mut single = input;
    ocb.start(true, nonce, 16);
    ocb.aad(nonce);
    single[..WHOLE].chunks_mut(16).for_each(|block| ocb.blocks(Span::in_place(block)));
    ocb.last(Span::in_place(&mut single[WHOLE..]));
    let tag = ocb.finish_seal();
    let mut output = input;
    let (head, tail) = output[..WHOLE].split_at_mut(16 * 37);
    ocb.start(true, nonce, 16);
    ocb.aad(nonce);
    ocb.blocks(Span::in_place(head));
    ocb.blocks(Span::in_place(tail));
    ocb.last(Span::in_place(&mut output[WHOLE..]));
    (output == single && ocb.finish_seal() == tag).then_some(())?;
    ocb.start(false, nonce, 16);
    ocb.aad(nonce);
    ocb.blocks(Span::in_place(&mut output[..WHOLE]));
    ocb.last(Span::in_place(&mut output[WHOLE..]));
    let mut wrong = tag;
    wrong[7] ^= 1;
    (output == input && !ocb.finish_open(&wrong) && ocb.finish_open(&tag)).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcm::SHORTEST_FUSED;
    use crate::inline::{SingleStreamKernel, with_kernel};

    #[test]
    fn every_kernel_passes_its_self_test() {
        for kernel in InlineKernel::all() {
            assert!(is_proven(kernel) && is_proven(kernel), "{}", kernel.name());
        }
    }

    #[test]
    fn the_self_test_runs_the_fused_loops_of_gcm() {
        fn shortest<K: SingleStreamKernel>(_: K) -> usize {
            (SHORTEST_FUSED * K::GCM_STEP).max(K::GCM_FROM)
        }
        for kernel in InlineKernel::all() {
            // The second piece first completes the last block of the first piece. The loops process the rest.
            let second = GCM_LEN - GCM_FIRST.next_multiple_of(16);
            let shortest = with_kernel!(kernel.0, kernel => shortest(kernel));
            assert!(second >= shortest, "{}: {second} bytes", kernel.name());
        }
    }

    #[test]
    fn the_product_matches_the_oracle() {
        let both: [u8; 32] = sample();
        let (a, b): (Block, Block) = (both[..16].try_into().unwrap(), both[16..].try_into().unwrap());
        let expected = lockstep_reference::ghash::ghash(&b, &a);
        assert_eq!(product(u128::from_be_bytes(a), u128::from_be_bytes(b)).to_be_bytes(), expected);
    }
}
