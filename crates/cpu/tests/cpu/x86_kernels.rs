//! The x86-64 kernels that this processor can run, against the oracle.
#![cfg(target_arch = "x86_64")]

use std::io::{Write, stderr};

use lockstep_cpu::kernel::{Block, Kernel, LANES, Lane, Span};
use lockstep_cpu::x86::{AesNi, Vaes256, Vaes512};
use lockstep_reference::{Aes, cbc, cfb, ctr, ecb, ghash, xts};

const KEY_LENGTHS: [usize; 3] = [16, 24, 32];

/// Pseudorandom bytes that depend on the seed (splitmix64).
fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        out.extend_from_slice(&next().to_le_bytes());
    }
    out.truncate(len);
    out
}

fn block(seed: u64) -> Block {
    bytes(seed, 16).try_into().unwrap()
}

/// Lengths in blocks: all small ones, and some around and beyond the widest steps.
fn block_counts() -> impl Iterator<Item = usize> {
    (0..=40).chain([63, 64, 65, 71, 100, 127, 129, 257, 1000])
}

/// Runs a pass out of place, in place and at odd addresses, and checks that it writes nothing but its output.
fn check(what: &str, data: &[u8], expected: &[u8], mut pass: impl FnMut(Span<'_>)) {
    const GUARD: [u8; 64] = [0xa5; 64];
    for shift in [0, 1, 7] {
        let guarded = |body: &[u8]| [&GUARD[..64 - shift], body, &GUARD].concat();
        let range = 64 - shift..64 - shift + data.len();

        let src = guarded(data);
        let mut dst = guarded(&vec![0x5a; data.len()]);
        pass(Span::copy(&src[range.clone()], &mut dst[range.clone()]));
        assert!(dst == guarded(expected), "{what}: {} bytes out of place, shift {shift}", data.len());
        assert!(src == guarded(data), "{what}: the source was written");

        let mut both = guarded(data);
        pass(Span::in_place(&mut both[range]));
        assert!(both == guarded(expected), "{what}: {} bytes in place, shift {shift}", data.len());
    }
}

fn ecb_both<K: Kernel>(kernel: K) {
    for key_len in KEY_LENGTHS {
        let key = bytes(1, key_len);
        let (aes, schedule) = (Aes::new(&key), kernel.expand(&key));
        for blocks in block_counts() {
            let data = bytes(2, 16 * blocks);
            check("ECB encryption", &data, &ecb::encrypt(&aes, &data), |span| {
                kernel.ecb_encrypt(&schedule, span);
            });
            check("ECB decryption", &data, &ecb::decrypt(&aes, &data), |span| {
                kernel.ecb_decrypt(&schedule, span);
            });
        }
    }
}

/// Many keys, so that every round constant and every word of each schedule matters.
fn expansion<K: Kernel>(kernel: K) {
    for seed in 0..300 {
        let key = bytes(seed, KEY_LENGTHS[seed as usize % 3]);
        let (aes, schedule) = (Aes::new(&key), kernel.expand(&key));
        let data = bytes(seed + 1000, 16);
        check("a key", &data, &ecb::encrypt(&aes, &data), |span| kernel.ecb_encrypt(&schedule, span));
        check("a key", &data, &ecb::decrypt(&aes, &data), |span| kernel.ecb_decrypt(&schedule, span));
    }
}

fn ctr_lengths<K: Kernel>(kernel: K) {
    for key_len in KEY_LENGTHS {
        let key = bytes(3, key_len);
        let (aes, schedule) = (Aes::new(&key), kernel.expand(&key));
        let start = block(4);
        for len in (0..700).chain([1023, 1024, 1025, 4096, 16384, 65537]) {
            let data = bytes(5, len);
            let after = (u128::from_be_bytes(start) + len.div_ceil(16) as u128).to_be_bytes();
            check("CTR", &data, &ctr::apply(&aes, &start, &data), |span| {
                let mut counter = start;
                kernel.ctr(&schedule, &mut counter, span);
                assert_eq!(counter, after);
            });
            check("CTR32", &data, &ctr::apply32(&aes, &start, &data), |span| {
                let mut counter = start;
                kernel.ctr32(&schedule, &mut counter, span);
                assert_eq!(counter, after);
            });
        }
    }
}

fn ctr_wraps<K: Kernel>(kernel: K) {
    let key = bytes(6, 16);
    let (aes, schedule) = (Aes::new(&key), kernel.expand(&key));
    for bits in [16, 32, 48, 64, 96, 127, 128] {
        for before in [0, 1, 2, 3, 4, 5, 7, 8, 31, 32, 33, 40, 69] {
            for upper in [0, 0x1234_5678 << 96] {
                let wrap = if bits == 128 { 0 } else { 1u128 << bits } | if bits < 96 { upper } else { 0 };
                let start = wrap.wrapping_sub(before);
                for len in [0, 1, 16, 40, 16 * 33, 16 * 70 + 5] {
                    let data = bytes(7, len);
                    let blocks = len.div_ceil(16) as u128;
                    let start_block = start.to_be_bytes();
                    check("CTR", &data, &ctr::apply(&aes, &start_block, &data), |span| {
                        let mut counter = start_block;
                        kernel.ctr(&schedule, &mut counter, span);
                        assert_eq!(u128::from_be_bytes(counter), start.wrapping_add(blocks));
                    });
                    check("CTR32", &data, &ctr::apply32(&aes, &start_block, &data), |span| {
                        let mut counter = start_block;
                        kernel.ctr32(&schedule, &mut counter, span);
                        let low = (start as u32).wrapping_add(blocks as u32);
                        assert_eq!(u128::from_be_bytes(counter), start >> 32 << 32 | u128::from(low));
                    });
                }
            }
        }
    }
}

fn feedback<K: Kernel>(kernel: K) {
    for key_len in KEY_LENGTHS {
        let key = bytes(8, key_len);
        let (aes, schedule) = (Aes::new(&key), kernel.expand(&key));
        let iv = block(9);
        for blocks in block_counts() {
            let data = bytes(10, 16 * blocks);
            let after = data.last_chunk().copied().unwrap_or(iv);
            check("CBC decryption", &data, &cbc::decrypt(&aes, &iv, &data), |span| {
                let mut register = iv;
                kernel.cbc_decrypt(&schedule, &mut register, span);
                assert_eq!(register, after);
            });
            check("CFB decryption", &data, &cfb::decrypt128(&aes, &iv, &data), |span| {
                let mut register = iv;
                kernel.cfb128_decrypt(&schedule, &mut register, span);
                assert_eq!(register, after);
            });
        }
    }
}

fn xts_both<K: Kernel>(kernel: K) {
    for key_len in KEY_LENGTHS {
        let key = bytes(11, key_len);
        let (aes, schedule) = (Aes::new(&key), kernel.expand(&key));
        let tweak_key = Aes::new(&bytes(12, key_len));
        for seed in 0..8 {
            let sector = block(100 + seed);
            let start = tweak_key.encrypt(sector);
            for blocks in block_counts() {
                let data = bytes(13, 16 * blocks);
                let after = (0..blocks).fold(start, |tweak, _| xts::mul_alpha(tweak));
                let expected =
                    if blocks > 0 { xts::encrypt(&aes, &tweak_key, &sector, &data) } else { Vec::new() };
                check("XTS encryption", &data, &expected, |span| {
                    let mut tweak = start;
                    kernel.xts_encrypt(&schedule, &mut tweak, span);
                    assert_eq!(tweak, after);
                });
                check("XTS decryption", &expected, &data, |span| {
                    let mut tweak = start;
                    kernel.xts_decrypt(&schedule, &mut tweak, span);
                    assert_eq!(tweak, after);
                });
            }
        }
    }
}

fn ghash_all<K: Kernel>(kernel: K) {
    let extremes = [[0; 16], [0xff; 16], 1u128.to_be_bytes(), (1u128 << 127).to_be_bytes()];
    for h in extremes.into_iter().chain((0..6).map(|seed| block(200 + seed))) {
        let key = kernel.hash_key(&h);
        for blocks in block_counts() {
            for state in [[0; 16], [0xff; 16], block(14)] {
                let data = bytes(15, 16 * blocks + 1);
                let data = &data[1..];
                let mut found = state;
                kernel.ghash(&key, &mut found, data);
                assert_eq!(found, ghash::update(&h, state, data), "GHASH of {blocks} blocks");
            }
        }
    }
}

/// CBC encryption of messages of `lengths` blocks, message `i` under key `key_of(i)`.
fn chains_of<K: Kernel>(kernel: K, lengths: &[usize], key_of: impl Fn(usize) -> usize) {
    let keys: Vec<_> = (0..12).map(|i| bytes(300 + i, KEY_LENGTHS[i as usize % 3])).collect();
    let oracles: Vec<_> = keys.iter().map(|key| Aes::new(key)).collect();
    let schedules: Vec<_> = keys.iter().map(|key| kernel.expand(key)).collect();
    let messages: Vec<_> =
        lengths.iter().enumerate().map(|(i, blocks)| bytes(400 + i as u64, 16 * blocks + i % 3)).collect();
    for in_place in [false, true] {
        let mut outputs = messages.clone();
        let mut registers: Vec<_> = (0..messages.len()).map(|i| block(500 + i as u64)).collect();
        let mut lanes: Vec<_> = outputs
            .iter_mut()
            .zip(&messages)
            .zip(&mut registers)
            .enumerate()
            .map(|(i, ((output, message), register))| {
                // Odd addresses.
                let (src, dst) = (&message[i % 3..], &mut output[i % 3..]);
                if !in_place {
                    dst.fill(0);
                }
                let data = if in_place { Span::in_place(dst) } else { Span::copy(src, dst) };
                Lane { schedule: &schedules[key_of(i)], register, data }
            })
            .collect();
        kernel.cbc_encrypt(&mut lanes);
        drop(lanes);
        for (i, message) in messages.iter().enumerate() {
            let iv = block(500 + i as u64);
            let expected = cbc::encrypt(&oracles[key_of(i)], &iv, &message[i % 3..]);
            assert!(outputs[i][i % 3..] == expected, "message {i} of {}", messages.len());
            assert_eq!(registers[i], expected.last_chunk().copied().unwrap_or(iv));
        }
    }
}

fn chains<K: Kernel>(kernel: K) {
    for count in 0..=70usize {
        let mixed: Vec<_> = (0..count).map(|i| (i * 7 + count) % 11).collect();
        for lengths in [vec![5; count], mixed] {
            for one in 0..3 {
                chains_of(kernel, &lengths, |_| one);
            }
            // Keys of one length, then of all lengths.
            chains_of(kernel, &lengths, |i| 3 * (i % 4));
            chains_of(kernel, &lengths, |i| i % 12);
        }
    }
    let long: Vec<_> = (0..50).map(|i| if i % 17 == 3 { 300 } else { i % 40 }).collect();
    chains_of(kernel, &long, |_| 2);
    chains_of(kernel, &long, |i| (i / 3) % 12);
}

/// Messages that start a page apart, and so map to the same set of the L1 cache.
fn colliding_chains<K: Kernel>(kernel: K) {
    const LEN: usize = 4096;
    let keys: Vec<_> = (0..3).map(|i| bytes(800 + i, 16)).collect();
    let schedules: Vec<_> = keys.iter().map(|key| kernel.expand(key)).collect();
    for count in [8, 16, 17, 31, 40] {
        for different in [1, 3] {
            let data = bytes(801, count * LEN);
            let mut output = data.clone();
            let mut registers: Vec<_> = (0..count).map(|i| block(900 + i as u64)).collect();
            let mut lanes: Vec<_> = output
                .chunks_mut(LEN)
                .zip(&mut registers)
                .enumerate()
                .map(|(i, (data, register))| {
                    // One is shorter, but long enough to collide.
                    let data = if i == 5 { &mut data[..2048] } else { data };
                    Lane { schedule: &schedules[i % different], register, data: Span::in_place(data) }
                })
                .collect();
            kernel.cbc_encrypt(&mut lanes);
            drop(lanes);
            for (i, message) in data.chunks(LEN).enumerate() {
                let (head, tail) = message.split_at(if i == 5 { 2048 } else { LEN });
                let aes = Aes::new(&keys[i % different]);
                let expected = [&cbc::encrypt(&aes, &block(900 + i as u64), head), tail].concat();
                assert!(output[i * LEN..][..LEN] == expected, "message {i} of {count}");
                assert_eq!(registers[i], expected[head.len() - 16..head.len()]);
            }
        }
    }
}

fn each<K: Kernel>(kernel: K) {
    let keys: Vec<_> = (0..LANES as u64).map(|i| bytes(600 + i, KEY_LENGTHS[(i / 2 % 3) as usize])).collect();
    let oracles: Vec<_> = keys.iter().map(|key| Aes::new(key)).collect();
    let schedules: Vec<_> = keys.iter().map(|key| kernel.expand(key)).collect();
    for count in 0..=LANES {
        for key_of in [|_| 0, |i| i, |i| 5 * i % 16, |i| i / 4 * 6 % 16, |i| i % 2] as [fn(usize) -> usize; 5]
        {
            let chosen: Vec<_> = (0..count).map(|i| &schedules[key_of(i)]).collect();
            let plain: Vec<_> = (0..count).map(|i| block(700 + i as u64)).collect();
            let mut blocks = plain.clone();
            kernel.encrypt_each(&chosen, &mut blocks);
            for i in 0..count {
                assert_eq!(blocks[i], oracles[key_of(i)].encrypt(plain[i]), "block {i} of {count}");
            }
            kernel.decrypt_each(&chosen, &mut blocks);
            assert_eq!(blocks, plain);
        }
    }
}

macro_rules! suite {
    ($($kernel:ident: $module:ident { $($test:ident),* })*) => {
        $(mod $module {
            use super::*;
            $(#[test]
            fn $test() {
                match $kernel::detect() {
                    Some(kernel) => super::$test(kernel),
                    // `writeln!` is not captured by the test harness.
                    None => writeln!(stderr(), "SKIPPED: this processor cannot run {}", $kernel::NAME).unwrap(),
                }
            })*
        })*
    };
    ($($kernel:ident: $module:ident,)*) => {
        suite! { $($kernel: $module {
            ecb_both, expansion, ctr_lengths, ctr_wraps, feedback, xts_both, ghash_all, chains, colliding_chains, each
        })* }
    };
}

suite! { AesNi: aesni, Vaes256: vaes256, Vaes512: vaes512, }
