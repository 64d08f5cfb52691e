//! No kernel works inline before it has proved itself on this very processor: its block cipher by the examples of
//! FIPS 197, everything else against that, block by block.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use zeroize::Zeroizing;

use super::{Block, InlineGcm, InlineKernel, InlineKey, Span, advance_tweak};

const UNKNOWN: u8 = 0;
const PASSED: u8 = 1;
const FAILED: u8 = 2;

/// Kernels by name, and what is known of each. No lock: a fork in the midst of a proof leaves nothing held, and a proof
/// done twice does no harm.
static OUTCOMES: [(&str, AtomicU8); 5] = [
    ("cpu/vaes512", AtomicU8::new(UNKNOWN)),
    ("cpu/vaes256", AtomicU8::new(UNKNOWN)),
    ("cpu/aesni", AtomicU8::new(UNKNOWN)),
    ("cpu/armv8", AtomicU8::new(UNKNOWN)),
    ("cpu/soft", AtomicU8::new(UNKNOWN)),
];

/// True if the kernel has proved itself. The proof is run at the first call and takes a quarter of a millisecond, of
/// the portable kernel one.
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

/// Bytes of a piece: the widest step of any kernel, half of it and so on, and a part of a block. A serial mode takes as
/// long for a block as a parallel one for eight, so it gets a part of them.
const LEN: usize = 1024 + 512 + 256 + 128 + 64 + 32 + 16 + 5;
const SERIAL_LEN: usize = 64;

/// Key, plaintext and ciphertext of FIPS 197, appendix C: key and plaintext count up, by 01 and by 11.
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
    }
    Some(())
}

/// Bytes without a pattern that a mistake could hide in.
fn sample(len: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn encrypted(key: &InlineKey, mut block: Block) -> Block {
    key.encrypt_block(&mut block);
    block
}

fn xor(a: &[u8], b: &[u8]) -> Block {
    std::array::from_fn(|i| a.get(i).unwrap_or(&0) ^ b.get(i).unwrap_or(&0))
}

/// True if both are the same, output and register.
fn same(got: (&[u8], Block), expected: (&[u8], Block)) -> Option<()> {
    (got == expected).then_some(())
}

fn prove_parallel(key: &InlineKey) -> Option<()> {
    let input = sample(LEN);
    let whole = &input[..LEN & !15];
    // A counter that carries out of its low half within the piece.
    let start = (0xFEDC_BA98_7654_3210u128 << 64) | u128::from(u64::MAX - 20);
    let run = |register: u128, input: &[u8], run: &dyn Fn(&mut Block, Span<'_>)| {
        let mut output = input.to_vec();
        let mut register = register.to_be_bytes();
        run(&mut register, Span::in_place(&mut output));
        (output, register)
    };

    for only_32 in [false, true] {
        let counter = |i: u128| match only_32 {
            true => (start & !u128::from(u32::MAX)) | (start.wrapping_add(i) & u128::from(u32::MAX)),
            false => start.wrapping_add(i),
        };
        let mut expected = input.clone();
        for (i, block) in expected.chunks_mut(16).enumerate() {
            let mask = encrypted(key, counter(i as u128).to_be_bytes());
            block.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
        }
        let (output, after) = run(start, &input, &|register, data| match only_32 {
            true => key.ctr32(register, data),
            false => key.ctr(register, data),
        });
        same((&output, after), (&expected, counter(LEN.div_ceil(16) as u128).to_be_bytes()))?;
    }

    let expected: Vec<u8> =
        whole.chunks(16).flat_map(|block| encrypted(key, block.try_into().expect("16 bytes"))).collect();
    let (output, _) = run(0, whole, &|_, data| key.ecb_encrypt(data));
    same((&output, [0; 16]), (&expected, [0; 16]))?;
    let (output, _) = run(0, &output, &|_, data| key.ecb_decrypt(data));
    same((&output, [0; 16]), (whole, [0; 16]))?;

    let last = whole[whole.len() - 16..].try_into().expect("16 bytes");
    let mut tweak = start.to_be_bytes();
    let mut encrypted_units = Vec::new();
    for block in whole.chunks(16) {
        encrypted_units.extend(xor(&encrypted(key, xor(block, &tweak)), &tweak));
        advance_tweak(&mut tweak, 1);
    }
    let (output, after) = run(start, whole, &|register, data| key.xts_encrypt(register, data));
    same((&output, after), (&encrypted_units, tweak))?;
    let (output, after) = run(start, &encrypted_units, &|register, data| key.xts_decrypt(register, data));
    same((&output, after), (whole, tweak))?;

    // Decryption of CBC is that of ECB, which has been proved, and of CFB encryption, each with the block before.
    let mut before = start.to_be_bytes();
    let (mut cbc, mut cfb) = (Vec::new(), Vec::new());
    let (decrypted, _) = run(0, whole, &|_, data| key.ecb_decrypt(data));
    for (block, decrypted) in whole.chunks(16).zip(decrypted.chunks(16)) {
        cbc.extend(xor(decrypted, &before));
        cfb.extend(xor(block, &encrypted(key, before)));
        before = block.try_into().expect("16 bytes");
    }
    let (output, after) = run(start, whole, &|register, data| key.cbc_decrypt(register, data));
    same((&output, after), (&cbc, last))?;
    let (output, after) = run(start, whole, &|register, data| key.cfb128_decrypt(register, data));
    same((&output, after), (&cfb, last))
}

fn prove_serial(key: &InlineKey) -> Option<()> {
    let input = sample(SERIAL_LEN);
    let iv: Block = std::array::from_fn(|i| 0xA0 ^ i as u8);
    let (mut cbc, mut cfb, mut ofb) = (Vec::new(), Vec::new(), Vec::new());
    let (mut cbc_last, mut cfb_last, mut ofb_last) = (iv, iv, iv);
    for block in input.chunks(16) {
        cbc_last = encrypted(key, xor(block, &cbc_last));
        cbc.extend(cbc_last);
        cfb_last = xor(block, &encrypted(key, cfb_last));
        cfb.extend(cfb_last);
        ofb_last = encrypted(key, ofb_last);
        ofb.extend(xor(block, &ofb_last));
    }
    let run = |run: &dyn Fn(&mut Block, Span<'_>)| {
        let (mut output, mut register) = (input.clone(), iv);
        run(&mut register, Span::in_place(&mut output));
        (output, register)
    };
    let (output, after) = run(&|register, data| key.cbc_encrypt(register, data));
    same((&output, after), (&cbc, cbc_last))?;
    let (output, after) = run(&|register, data| key.cfb128_encrypt(register, data));
    same((&output, after), (&cfb, cfb_last))?;
    let (output, after) = run(&|register, data| key.ofb(register, data));
    same((&output, after), (&ofb, ofb_last))?;
    let mut mac = iv;
    key.cbc_mac(&mut mac, &input);
    (mac == cbc_last).then_some(())?;

    // CFB8 and CFB1 (SP 800-38A, 6.3): the register moves on by what was encrypted of a byte or bit.
    const BYTES: usize = 4;
    let (mut register, mut cfb8) = (u128::from_be_bytes(iv), Vec::new());
    for byte in &input[..BYTES] {
        let byte = byte ^ encrypted(key, register.to_be_bytes())[0];
        cfb8.push(byte);
        register = (register << 8) | u128::from(byte);
    }
    let after_8 = register.to_be_bytes();
    let (mut register, mut cfb1) = (u128::from_be_bytes(iv), vec![0; BYTES]);
    for bit in 0..8 * BYTES {
        let shift = 7 - bit % 8;
        let keystream = encrypted(key, register.to_be_bytes())[0] >> 7;
        let bit_out = ((input[bit / 8] >> shift) & 1) ^ keystream;
        cfb1[bit / 8] |= bit_out << shift;
        register = (register << 1) | u128::from(bit_out);
    }
    let after_1 = register.to_be_bytes();
    let run = |data: &[u8], run: &dyn Fn(&mut Block, Span<'_>)| {
        let (mut output, mut register) = (data.to_vec(), iv);
        run(&mut register, Span::in_place(&mut output));
        (output, register)
    };
    let plain = &input[..BYTES];
    let (output, after) = run(plain, &|register, data| key.cfb8_encrypt(register, data));
    same((&output, after), (&cfb8, after_8))?;
    let (output, after) = run(&cfb8, &|register, data| key.cfb8_decrypt(register, data));
    same((&output, after), (plain, after_8))?;
    let (output, after) = run(plain, &|register, data| key.cfb1_encrypt(register, data, 8 * BYTES));
    same((&output, after), (&cfb1, after_1))?;
    let (output, after) = run(&cfb1, &|register, data| key.cfb1_decrypt(register, data, 8 * BYTES));
    same((&output, after), (plain, after_1))
}

/// A product of GHASH (SP 800-38D, algorithm 1).
fn product(x: u128, mut y: u128) -> u128 {
    let mut z = 0;
    for bit in (0..128).rev() {
        z ^= y & (0u128.wrapping_sub((x >> bit) & 1));
        y = (y >> 1) ^ ((0xE1 << 120) & 0u128.wrapping_sub(y & 1));
    }
    z
}

fn prove_gcm(kernel: InlineKernel, key: &InlineKey, key_bytes: &[u8]) -> Option<()> {
    let input = sample(LEN);
    let (aad, iv) = (&input[3..40], &input[..12]);
    let mut counter: Block = [0; 16];
    counter[..12].copy_from_slice(iv);
    counter[15] = 1;
    let mask = u128::from_be_bytes(encrypted(key, counter));
    counter[15] = 2;
    let mut expected = Zeroizing::new(input.clone());
    key.ctr32(&mut counter, Span::in_place(&mut expected));

    let h = u128::from_be_bytes(encrypted(key, [0; 16]));
    let lengths = (u128::from(8 * aad.len() as u64) << 64) | u128::from(8 * LEN as u64);
    let blocks = aad.chunks(16).chain(expected.chunks(16)).map(|block| u128::from_be_bytes(xor(block, &[])));
    let hash = blocks.chain([lengths]).fold(0, |hash, block| product(hash ^ block, h));
    let tag = (hash ^ mask).to_be_bytes();

    let mut gcm = InlineGcm::new(kernel, key_bytes)?;
    let mut output = input.clone();
    let (head, tail) = output.split_at_mut(700);
    let sealed = gcm.start(true, iv)
        && gcm.aad(aad)
        && gcm.update(Span::in_place(head))
        && gcm.update(Span::in_place(tail))
        && gcm.finish_seal() == Some(tag);
    (sealed && output == *expected).then_some(())?;
    let opened = gcm.start(false, iv)
        && gcm.aad(aad)
        && gcm.update(Span::in_place(&mut output))
        && gcm.finish_open(&tag);
    (opened && output == input).then_some(())?;
    // And it must be able to say no.
    let mut wrong = tag;
    wrong[7] ^= 1;
    let refused = gcm.start(false, iv) && gcm.aad(aad) && gcm.update(Span::in_place(&mut output));
    (refused && !gcm.finish_open(&wrong)).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_of_this_machine_proves_itself() {
        for kernel in InlineKernel::all() {
            assert!(is_proven(kernel) && is_proven(kernel), "{}", kernel.name());
        }
    }

    #[test]
    fn the_product_is_the_oracles() {
        let (a, b) = (sample(16), sample(32)[16..].to_vec());
        let (a, b): (Block, Block) = (a.try_into().unwrap(), b.try_into().unwrap());
        let expected = lockstep_reference::ghash::ghash(&b, &a);
        assert_eq!(product(u128::from_be_bytes(a), u128::from_be_bytes(b)).to_be_bytes(), expected);
    }
}
