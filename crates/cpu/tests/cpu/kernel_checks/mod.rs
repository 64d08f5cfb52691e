//! Checks of a kernel against the oracle, generic over the kernel.

use lockstep_cpu::kernel::{Block, Kernel, LANES, Lane, Span};
use lockstep_reference::{Aes, cbc, cfb, ctr, ecb, ghash, xts};

const KEY_SIZES: [usize; 3] = [16, 24, 32];

/// Lengths in blocks: all up to a few groups, and some large ones.
fn block_counts() -> impl Iterator<Item = usize> {
    (0..=70).chain([95, 96, 97, 127, 128, 129, 160, 255, 256, 257, 300, 1024, 4099])
}

/// A deterministic generator (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }

    fn block(&mut self) -> Block {
        std::array::from_fn(|_| self.next() as u8)
    }
}

fn kernel<K: Kernel>() -> Option<K> {
    let kernel = K::detect();
    if kernel.is_none() {
        eprintln!("NOT TESTED: this processor cannot run {}", K::NAME);
    }
    kernel
}

/// Runs `pass` in place and out of place, at several alignments, and compares data and register.
fn compare<R: Clone + PartialEq + std::fmt::Debug>(
    what: &str,
    input: &[u8],
    register: &R,
    expected: &[u8],
    register_after: &R,
    pass: impl Fn(&mut R, Span<'_>),
) {
    let offset = input.len() / 16 % 16;
    let len = input.len();

    let mut memory = vec![0xa5; len + 33];
    memory[offset..][..len].copy_from_slice(input);
    let mut after = register.clone();
    pass(&mut after, Span::in_place(&mut memory[offset..][..len]));
    assert!(memory[offset..][..len] == *expected, "{what}, in place, {len} bytes");
    assert!(
        memory[..offset].iter().chain(&memory[offset + len..]).all(|b| *b == 0xa5),
        "{what} wrote outside"
    );
    assert_eq!(after, *register_after, "{what}: register after {len} bytes in place");

    let mut memory = vec![0xa5; len + 33];
    let mut source = vec![0; len + 33];
    let shift = (offset * 7 + 3) % 17;
    source[shift..][..len].copy_from_slice(input);
    let mut after = register.clone();
    pass(&mut after, Span::copy(&source[shift..][..len], &mut memory[offset..][..len]));
    assert!(memory[offset..][..len] == *expected, "{what}, out of place, {len} bytes");
    assert!(
        memory[..offset].iter().chain(&memory[offset + len..]).all(|b| *b == 0xa5),
        "{what} wrote outside"
    );
    assert!(source[shift..][..len] == *input, "{what} changed its source");
    assert_eq!(after, *register_after, "{what}: register after {len} bytes out of place");
}

pub(crate) fn fips_197<K: Kernel>() {
    let Some(kernel) = kernel::<K>() else { return };
    let key: Vec<u8> = (0..32).collect();
    let plain: Vec<u8> = (0..16).map(|i| 17 * i).collect();
    let expected = [
        (16, 0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55au128),
        (24, 0xdda9_7ca4_864c_dfe0_6eaf_70a0_ec0d_7191),
        (32, 0x8ea2_b7ca_5167_45bf_eafc_4990_4b49_6089),
    ];
    for (size, cipher) in expected {
        let schedule = kernel.expand(&key[..size]);
        let mut data = plain.clone();
        kernel.ecb_encrypt(&schedule, Span::in_place(&mut data));
        assert_eq!(data, cipher.to_be_bytes(), "FIPS 197, appendix C, key of {size} bytes");
        kernel.ecb_decrypt(&schedule, Span::in_place(&mut data));
        assert_eq!(data, plain);
    }
}

pub(crate) fn ecb<K: Kernel>() {
    let Some(kernel) = kernel::<K>() else { return };
    let mut random = Random(1);
    for size in KEY_SIZES {
        for blocks in block_counts() {
            let key = random.bytes(size);
            let (aes, schedule) = (Aes::new(&key), kernel.expand(&key));
            let data = random.bytes(16 * blocks);
            let expected = ecb::encrypt(&aes, &data);
            compare("ECB encryption", &data, &(), &expected, &(), |(), span| {
                kernel.ecb_encrypt(&schedule, span)
            });
            compare("ECB decryption", &expected, &(), &data, &(), |(), span| {
                kernel.ecb_decrypt(&schedule, span)
            });
        }
    }
}

/// Counters shortly before each width at which they may wrap.
fn counters(random: &mut Random) -> Vec<Block> {
    let base = u128::from_be_bytes(random.block());
    let mut counters = vec![base];
    for bits in [32, 64, 96, 128] {
        let low = u128::MAX >> (128 - bits);
        for before in [0, 1, 5, 13, 40] {
            counters.push((base & !low) | (low - before));
        }
    }
    counters.into_iter().map(u128::to_be_bytes).collect()
}

fn advanced(counter: &Block, blocks: usize) -> Block {
    u128::from_be_bytes(*counter).wrapping_add(blocks as u128).to_be_bytes()
}

fn advanced32(counter: &Block, blocks: usize) -> Block {
    let mut after = *counter;
    let low = u32::from_be_bytes([counter[12], counter[13], counter[14], counter[15]]);
    after[12..].copy_from_slice(&low.wrapping_add(blocks as u32).to_be_bytes());
    after
}

pub(crate) fn ctr<K: Kernel>() {
    let Some(kernel) = kernel::<K>() else { return };
    let mut random = Random(2);
    for size in KEY_SIZES {
        let key = random.bytes(size);
        let (aes, schedule) = (Aes::new(&key), kernel.expand(&key));
        let starts = counters(&mut random);
        let check = |counter: &Block, data: &[u8]| {
            let blocks = data.len().div_ceil(16);
            let (expected, after) = (ctr::apply(&aes, counter, data), advanced(counter, blocks));
            compare("CTR", data, counter, &expected, &after, |c, span| kernel.ctr(&schedule, c, span));
            let (expected, after) = (ctr::apply32(&aes, counter, data), advanced32(counter, blocks));
            compare("CTR-32", data, counter, &expected, &after, |c, span| kernel.ctr32(&schedule, c, span));
        };
        for len in 0..=700 {
            let data = random.bytes(len);
            check(&starts[len % starts.len()], &data);
        }
        for (i, counter) in starts.iter().enumerate() {
            let data = random.bytes(1300 + 37 * i);
            check(counter, &data);
        }
        let data = random.bytes(100_003);
        check(&random.block(), &data);
    }
}

pub(crate) fn cbc_decrypt<K: Kernel>() {
    let Some(kernel) = kernel::<K>() else { return };
    let mut random = Random(3);
    for size in KEY_SIZES {
        for blocks in block_counts() {
            let key = random.bytes(size);
            let (aes, schedule, iv) = (Aes::new(&key), kernel.expand(&key), random.block());
            let data = random.bytes(16 * blocks);
            let expected = cbc::decrypt(&aes, &iv, &data);
            let after = data.last_chunk().copied().unwrap_or(iv);
            compare("CBC decryption", &data, &iv, &expected, &after, |iv, span| {
                kernel.cbc_decrypt(&schedule, iv, span)
            });
        }
    }
}

pub(crate) fn cfb128_decrypt<K: Kernel>() {
    let Some(kernel) = kernel::<K>() else { return };
    let mut random = Random(4);
    for size in KEY_SIZES {
        for blocks in block_counts() {
            let key = random.bytes(size);
            let (aes, schedule, iv) = (Aes::new(&key), kernel.expand(&key), random.block());
            let data = random.bytes(16 * blocks);
            let expected = cfb::decrypt128(&aes, &iv, &data);
            let after = data.last_chunk().copied().unwrap_or(iv);
            let pass = |iv: &mut Block, span: Span<'_>| kernel.cfb128_decrypt(&schedule, iv, span);
            compare("CFB decryption", &data, &iv, &expected, &after, pass);
        }
    }
}

pub(crate) fn xts<K: Kernel>() {
    let Some(kernel) = kernel::<K>() else { return };
    let mut random = Random(5);
    for size in KEY_SIZES {
        for blocks in block_counts().filter(|n| *n > 0) {
            let (key, tweak_key) = (random.bytes(size), random.bytes(size));
            let (aes, tweak_aes, schedule) = (Aes::new(&key), Aes::new(&tweak_key), kernel.expand(&key));
            let unit = random.block();
            let data = random.bytes(16 * blocks);
            let expected = xts::encrypt(&aes, &tweak_aes, &unit, &data);
            let first = tweak_aes.encrypt(unit);
            let mut after = u128::from_le_bytes(first);
            for _ in 0..blocks {
                after = (after << 1) ^ if after >> 127 == 1 { 0x87 } else { 0 };
            }
            let after = after.to_le_bytes();
            let pass = |t: &mut Block, span: Span<'_>| kernel.xts_encrypt(&schedule, t, span);
            compare("XTS encryption", &data, &first, &expected, &after, pass);
            let pass = |t: &mut Block, span: Span<'_>| kernel.xts_decrypt(&schedule, t, span);
            compare("XTS decryption", &expected, &first, &data, &after, pass);
        }
    }
}

pub(crate) fn ghash<K: Kernel>() {
    let Some(kernel) = kernel::<K>() else { return };
    let mut random = Random(6);
    let mut keys = vec![[0; 16], [0xff; 16]];
    keys.extend((0..16).map(|i| (1u128 << (8 * i + i / 2)).to_be_bytes()));
    keys.extend((0..16).map(|_| random.block()));
    for h in &keys {
        let key = kernel.hash_key(h);
        for blocks in 0..=40 {
            let offset = blocks % 16;
            let data = random.bytes(16 * blocks + offset);
            let data = &data[offset..];
            let state = random.block();
            let mut after = state;
            kernel.ghash(&key, &mut after, data);
            assert_eq!(after, ghash::update(h, state, data), "GHASH of {blocks} blocks under {h:02x?}");
        }
    }
    let key = kernel.hash_key(&keys[20]);
    let data = random.bytes(16 * 1029);
    let mut after = [0; 16];
    kernel.ghash(&key, &mut after, &data);
    assert_eq!(after, ghash::update(&keys[20], [0; 16], &data));
}

/// A message for the serial passes.
struct Message {
    key: Vec<u8>,
    register: Block,
    data: Vec<u8>,
}

pub(crate) fn cbc_encrypt<K: Kernel>() {
    let Some(kernel) = kernel::<K>() else { return };
    let mut random = Random(7);
    for lanes in 0..=70 {
        // Equal sizes; random sizes, including empty messages; one key size with random lengths.
        for mix in 0..3 {
            let mut messages: Vec<Message> = (0..lanes)
                .map(|_| {
                    let (size, blocks) = match mix {
                        0 => (16, 3),
                        1 => (KEY_SIZES[random.next() as usize % 3], random.next() as usize % 12),
                        _ => (32, random.next() as usize % 7),
                    };
                    Message {
                        key: random.bytes(size),
                        register: random.block(),
                        data: random.bytes(16 * blocks),
                    }
                })
                .collect();
            let expected: Vec<_> =
                messages.iter().map(|m| cbc::encrypt(&Aes::new(&m.key), &m.register, &m.data)).collect();
            let schedules: Vec<_> = messages.iter().map(|m| kernel.expand(&m.key)).collect();
            let registers: Vec<_> = messages.iter().map(|m| m.register).collect();
            let sources: Vec<_> = messages.iter().map(|m| m.data.clone()).collect();
            let mut lanes: Vec<_> = messages
                .iter_mut()
                .zip(&schedules)
                .zip(&sources)
                .enumerate()
                .map(|(i, ((m, schedule), source))| {
                    let data = match i % 2 {
                        0 => Span::in_place(&mut m.data),
                        _ => Span::copy(source, &mut m.data),
                    };
                    Lane { schedule, register: &mut m.register, data }
                })
                .collect();
            kernel.cbc_encrypt(&mut lanes);
            for (i, message) in messages.iter().enumerate() {
                assert!(message.data == expected[i], "CBC encryption, lane {i} of {}", expected.len());
                let last = expected[i].last_chunk().copied().unwrap_or(registers[i]);
                assert_eq!(message.register, last, "register of lane {i} of {}", expected.len());
            }
        }
    }
}

pub(crate) fn each<K: Kernel>() {
    let Some(kernel) = kernel::<K>() else { return };
    let mut random = Random(8);
    for n in 0..=LANES {
        for same in [true, false] {
            let first = random.bytes(16);
            let keys: Vec<_> = (0..n)
                .map(|_| match same {
                    true => first.clone(),
                    false => {
                        let size = KEY_SIZES[random.next() as usize % 3];
                        random.bytes(size)
                    }
                })
                .collect();
            let owned: Vec<_> = keys.iter().map(|key| kernel.expand(key)).collect();
            let schedules: Vec<_> = (0..n).map(|i| &owned[if same { 0 } else { i }]).collect();
            let blocks: Vec<Block> = (0..n).map(|_| random.block()).collect();
            let expected: Vec<Block> =
                keys.iter().zip(&blocks).map(|(key, b)| Aes::new(key).encrypt(*b)).collect();
            let mut work = blocks.clone();
            kernel.encrypt_each(&schedules, &mut work);
            assert_eq!(work, expected, "{n} blocks encrypted");
            kernel.decrypt_each(&schedules, &mut work);
            assert_eq!(work, blocks, "{n} blocks decrypted");
        }
    }
}

/// Declares one test for each check of a kernel.
macro_rules! checks {
    ($kernel:ty: $($check:ident),* $(,)?) => {
        $(
            #[test]
            fn $check() {
                kernel_checks::$check::<$kernel>();
            }
        )*
    };
}
pub(crate) use checks;
