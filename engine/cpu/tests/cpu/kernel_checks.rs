//! Checks of a kernel against the oracle. They are generic over the kernel.
//!
//! Passes are given to the comparison as `&dyn Fn`, so that it is compiled once and not for each pass of each kernel.

use std::io::{Write, stderr};

use lockstep_cpu::kernel::{Block, Kernel, LANES, Lane, Span};
use lockstep_reference::{Aes, cbc, cfb, ctr, ecb, ghash, xts};

const KEY_SIZES: [usize; 3] = [16, 24, 32];

/// Lengths in blocks: all up to 71, and some around and beyond the widest steps.
fn block_counts() -> impl Iterator<Item = usize> {
    (0..=71).chain([95, 96, 97, 100, 127, 128, 129, 160, 255, 256, 257, 300, 1024, 4099])
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

/// Returns `kernel`. Prints a notice if it is `None`, which means that this processor lacks the kernel's instructions.
pub(crate) fn found<K: Kernel>(kernel: Option<K>, name: &str) -> Option<K> {
    if kernel.is_none() {
        // `eprintln!` is not used, because the test harness captures its output.
        let _ = writeln!(stderr(), "NOT TESTED: this processor cannot run {name}");
    }
    kernel
}

/// The chaining value before and after a pass. Passes without a chaining value leave the block unchanged.
struct Register {
    before: Block,
    after: Block,
}

const NO_REGISTER: Register = Register { before: [0; 16], after: [0; 16] };

/// Runs `pass` out of place and in place, at odd addresses, and compares data and register. Also checks that the pass writes
/// nothing else.
fn compare(
    what: &str,
    input: &[u8],
    expected: &[u8],
    register: &Register,
    pass: &dyn Fn(&mut Block, Span<'_>),
) {
    const GUARD: [u8; 64] = [0xa5; 64];
    let len = input.len();
    // The source and the destination have different alignments.
    for shift in [0, 1, 7] {
        let guarded = |body: &[u8], shift: usize| [&GUARD[..64 - shift], body, &GUARD].concat();
        let (from, to) = (64 - 2 * shift..64 - 2 * shift + len, 64 - shift..64 - shift + len);

        let source = guarded(input, 2 * shift);
        let mut data = guarded(&vec![0x5a; len], shift);
        let mut after = register.before;
        pass(&mut after, Span::copy(&source[from], &mut data[to.clone()]));
        assert!(data == guarded(expected, shift), "{what}: {len} bytes out of place, shift {shift}");
        assert!(source == guarded(input, 2 * shift), "{what}: the source was written");
        assert_eq!(after, register.after, "{what}: register after {len} bytes out of place");

        let mut data = guarded(input, shift);
        let mut after = register.before;
        pass(&mut after, Span::in_place(&mut data[to]));
        assert!(data == guarded(expected, shift), "{what}: {len} bytes in place, shift {shift}");
        assert_eq!(after, register.after, "{what}: register after {len} bytes in place");
    }
}

pub(crate) fn fips_197<K: Kernel>(kernel: Option<K>) {
    let Some(kernel) = kernel else { return };
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
        kernel.ecb(&schedule, true, Span::in_place(&mut data));
        assert_eq!(data, cipher.to_be_bytes(), "FIPS 197, appendix C, key of {size} bytes");
        kernel.ecb(&schedule, false, Span::in_place(&mut data));
        assert_eq!(data, plain);
    }
}

/// Expands many keys, so that an error in any round constant or in any word of a schedule changes a result.
pub(crate) fn expansion<K: Kernel>(kernel: Option<K>) {
    let Some(kernel) = kernel else { return };
    let mut random = Random(9);
    for i in 0..300 {
        let key = random.bytes(KEY_SIZES[i % 3]);
        let (aes, schedule, block) = (Aes::new(&key), kernel.expand(&key), random.block());
        let mut data = block;
        kernel.ecb(&schedule, true, Span::in_place(&mut data));
        assert_eq!(data, aes.encrypt(block), "key {i}");
        kernel.ecb(&schedule, false, Span::in_place(&mut data));
        assert_eq!(data, block, "key {i}");
    }
}

pub(crate) fn ecb<K: Kernel>(kernel: Option<K>) {
    let Some(kernel) = kernel else { return };
    let mut random = Random(1);
    for size in KEY_SIZES {
        for blocks in block_counts() {
            let key = random.bytes(size);
            let (aes, schedule) = (Aes::new(&key), kernel.expand(&key));
            let data = random.bytes(16 * blocks);
            let expected = ecb::encrypt(&aes, &data);
            compare("ECB encryption", &data, &expected, &NO_REGISTER, &|_, span| {
                kernel.ecb(&schedule, true, span);
            });
            compare("ECB decryption", &expected, &data, &NO_REGISTER, &|_, span| {
                kernel.ecb(&schedule, false, span);
            });
        }
    }
}

/// Counters that soon wrap at each possible width, with random and with zero upper bits.
fn counters(random: &mut Random) -> Vec<Block> {
    let base = u128::from_be_bytes(random.block());
    let mut counters = vec![base];
    for bits in [16, 32, 48, 64, 96, 127, 128] {
        let low = u128::MAX >> (128 - bits);
        for before in [0, 1, 2, 3, 4, 5, 7, 8, 13, 31, 32, 33, 40, 69] {
            counters.extend([base & !low, 0].map(|upper| upper | (low - before)));
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

fn ctr_both<K: Kernel>(kernel: K, aes: &Aes, schedule: &K::Schedule, counter: Block, data: &[u8]) {
    let blocks = data.len().div_ceil(16);
    let register = Register { before: counter, after: advanced(&counter, blocks) };
    compare("CTR", data, &ctr::apply(aes, &counter, data), &register, &|c, span| {
        kernel.ctr(schedule, c, span);
    });
    let register = Register { before: counter, after: advanced32(&counter, blocks) };
    compare("CTR-32", data, &ctr::apply32(aes, &counter, data), &register, &|c, span| {
        kernel.ctr32(schedule, c, span);
    });
}

pub(crate) fn ctr_lengths<K: Kernel>(kernel: Option<K>) {
    let Some(kernel) = kernel else { return };
    let mut random = Random(2);
    for size in KEY_SIZES {
        let key = random.bytes(size);
        let (aes, schedule) = (Aes::new(&key), kernel.expand(&key));
        let starts = counters(&mut random);
        for len in (0..=700).chain([1023, 1024, 1025, 4096, 16384, 65537, 100_003]) {
            ctr_both(kernel, &aes, &schedule, starts[len % starts.len()], &random.bytes(len));
        }
    }
}

pub(crate) fn ctr_wraps<K: Kernel>(kernel: Option<K>) {
    let Some(kernel) = kernel else { return };
    let mut random = Random(10);
    let key = random.bytes(16);
    let (aes, schedule) = (Aes::new(&key), kernel.expand(&key));
    for counter in counters(&mut random) {
        for len in [0, 1, 16, 40, 16 * 33, 16 * 70 + 5] {
            ctr_both(kernel, &aes, &schedule, counter, &random.bytes(len));
        }
    }
}

pub(crate) fn feedback<K: Kernel>(kernel: Option<K>) {
    let Some(kernel) = kernel else { return };
    let mut random = Random(3);
    for size in KEY_SIZES {
        for blocks in block_counts() {
            let key = random.bytes(size);
            let (aes, schedule, iv) = (Aes::new(&key), kernel.expand(&key), random.block());
            let data = random.bytes(16 * blocks);
            let register = Register { before: iv, after: data.last_chunk().copied().unwrap_or(iv) };
            compare("CBC decryption", &data, &cbc::decrypt(&aes, &iv, &data), &register, &|iv, span| {
                kernel.cbc_decrypt(&schedule, iv, span);
            });
            compare("CFB decryption", &data, &cfb::decrypt128(&aes, &iv, &data), &register, &|iv, span| {
                kernel.cfb128_decrypt(&schedule, iv, span);
            });
        }
    }
}

pub(crate) fn xts<K: Kernel>(kernel: Option<K>) {
    let Some(kernel) = kernel else { return };
    let mut random = Random(5);
    for size in KEY_SIZES {
        for blocks in block_counts() {
            let (key, tweak_key) = (random.bytes(size), random.bytes(size));
            let (aes, tweak_aes, schedule) = (Aes::new(&key), Aes::new(&tweak_key), kernel.expand(&key));
            let unit = random.block();
            let data = random.bytes(16 * blocks);
            let expected =
                if blocks == 0 { Vec::new() } else { xts::encrypt(&aes, &tweak_aes, &unit, &data) };
            let before = tweak_aes.encrypt(unit);
            let after = (0..blocks).fold(before, |tweak, _| xts::mul_alpha(tweak));
            let register = Register { before, after };
            compare("XTS encryption", &data, &expected, &register, &|tweak, span| {
                kernel.xts(&schedule, true, tweak, span);
            });
            compare("XTS decryption", &expected, &data, &register, &|tweak, span| {
                kernel.xts(&schedule, false, tweak, span);
            });
        }
    }
}

pub(crate) fn ghash<K: Kernel>(kernel: Option<K>) {
    let Some(kernel) = kernel else { return };
    let mut random = Random(6);
    let mut keys = vec![[0; 16], [0xff; 16], 1u128.to_be_bytes(), (1u128 << 127).to_be_bytes()];
    keys.extend((0..16).map(|i| (1u128 << (8 * i + i / 2)).to_be_bytes()));
    keys.extend((0..16).map(|_| random.block()));
    for h in &keys {
        let key = kernel.hash_key(h);
        for blocks in (0..=71).chain([127, 129, 257]) {
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

/// Encrypts messages of `lengths` bytes in CBC mode, message `i` under key `key_of(i)` of twelve, at odd addresses: all in
/// place, all out of place, and every other one in place.
fn cbc_messages<K: Kernel>(
    kernel: K,
    random: &mut Random,
    lengths: &[usize],
    key_of: &dyn Fn(usize) -> usize,
) {
    for is_in_place in [|_| true, |_| false, |i| i % 2 == 0] {
        cbc_messages_placed(kernel, random, lengths, key_of, is_in_place);
    }
}

fn cbc_messages_placed<K: Kernel>(
    kernel: K,
    random: &mut Random,
    lengths: &[usize],
    key_of: &dyn Fn(usize) -> usize,
    is_in_place: fn(usize) -> bool,
) {
    let keys: Vec<_> = (0..12).map(|i| random.bytes(KEY_SIZES[i % 3])).collect();
    let schedules: Vec<_> = keys.iter().map(|key| kernel.expand(key)).collect();
    let messages: Vec<_> = lengths.iter().enumerate().map(|(i, len)| random.bytes(len + i % 3)).collect();
    let ivs: Vec<Block> = lengths.iter().map(|_| random.block()).collect();
    let (mut outputs, mut registers) = (messages.clone(), ivs.clone());
    let mut lanes: Vec<_> = outputs
        .iter_mut()
        .zip(&messages)
        .zip(&mut registers)
        .enumerate()
        .map(|(i, ((output, message), register))| {
            let (source, output) = (&message[i % 3..], &mut output[i % 3..]);
            let data = if is_in_place(i) {
                Span::in_place(output)
            } else {
                output.fill(0);
                Span::copy(source, output)
            };
            Lane { schedule: &schedules[key_of(i)], register, data }
        })
        .collect();
    kernel.cbc_encrypt(&mut lanes);
    drop(lanes);
    for (i, message) in messages.iter().enumerate() {
        let expected = cbc::encrypt(&Aes::new(&keys[key_of(i)]), &ivs[i], &message[i % 3..]);
        assert!(outputs[i][i % 3..] == expected, "message {i} of {}", messages.len());
        assert_eq!(registers[i], expected.last_chunk().copied().unwrap_or(ivs[i]), "register of message {i}");
    }
}

pub(crate) fn cbc_encrypt<K: Kernel>(kernel: Option<K>) {
    let Some(kernel) = kernel else { return };
    let mut random = Random(7);
    for count in 0..=70 {
        // The lengths of the messages are equal or mixed. Some mixed lengths are 0.
        for lengths in [vec![80; count], (0..count).map(|i| (i * 7 + count) % 11 * 16).collect()] {
            for one in 0..3 {
                cbc_messages(kernel, &mut random, &lengths, &|_| one);
            }
            // The keys have one length, or all lengths.
            cbc_messages(kernel, &mut random, &lengths, &|i| 3 * (i % 4));
            cbc_messages(kernel, &mut random, &lengths, &|i| i % 12);
        }
    }
    let long: Vec<_> = (0..50).map(|i| 16 * if i % 17 == 3 { 300 } else { i % 40 }).collect();
    cbc_messages(kernel, &mut random, &long, &|_| 2);
    cbc_messages(kernel, &mut random, &long, &|i| (i / 3) % 12);
}

/// Messages that start a page apart, and so map to the same set of the L1 cache.
pub(crate) fn cbc_encrypt_of_colliding_messages<K: Kernel>(kernel: Option<K>) {
    const LEN: usize = 4096;
    let Some(kernel) = kernel else { return };
    let mut random = Random(11);
    let keys: Vec<_> = (0..3).map(|_| random.bytes(16)).collect();
    let schedules: Vec<_> = keys.iter().map(|key| kernel.expand(key)).collect();
    for count in [8, 16, 17, 31, 40] {
        for different in [1, 3] {
            let data = random.bytes(count * LEN);
            let mut output = data.clone();
            let ivs: Vec<Block> = (0..count).map(|_| random.block()).collect();
            let mut registers = ivs.clone();
            let mut lanes: Vec<_> = output
                .chunks_mut(LEN)
                .zip(&mut registers)
                .enumerate()
                .map(|(i, (data, register))| {
                    // This message is shorter, but long enough to collide.
                    let data = if i == 5 { &mut data[..2048] } else { data };
                    Lane { schedule: &schedules[i % different], register, data: Span::in_place(data) }
                })
                .collect();
            kernel.cbc_encrypt(&mut lanes);
            drop(lanes);
            for (i, message) in data.chunks(LEN).enumerate() {
                let (head, tail) = message.split_at(if i == 5 { 2048 } else { LEN });
                let expected = cbc::encrypt(&Aes::new(&keys[i % different]), &ivs[i], head);
                assert!(output[i * LEN..][..LEN] == [&expected, tail].concat(), "message {i} of {count}");
                assert_eq!(registers[i], expected[head.len() - 16..]);
            }
        }
    }
}

pub(crate) fn each<K: Kernel>(kernel: Option<K>) {
    let Some(kernel) = kernel else { return };
    let mut random = Random(8);
    let keys: Vec<_> = (0..LANES).map(|i| random.bytes(KEY_SIZES[i / 2 % 3])).collect();
    let oracles: Vec<_> = keys.iter().map(|key| Aes::new(key)).collect();
    let schedules: Vec<_> = keys.iter().map(|key| kernel.expand(key)).collect();
    // All blocks have the same key, each block has its own key, or several blocks share a key.
    let key_of: [fn(usize) -> usize; 5] = [|_| 0, |i| i, |i| 5 * i % 16, |i| i / 4 * 6 % 16, |i| i % 2];
    for count in 0..=LANES {
        for key_of in key_of {
            let chosen: Vec<_> = (0..count).map(|i| &schedules[key_of(i)]).collect();
            let plain: Vec<Block> = (0..count).map(|_| random.block()).collect();
            let expected: Vec<Block> = (0..count).map(|i| oracles[key_of(i)].encrypt(plain[i])).collect();
            let mut blocks = plain.clone();
            kernel.each(&chosen, true, &mut blocks);
            assert_eq!(blocks, expected, "{count} blocks encrypted");
            kernel.each(&chosen, false, &mut blocks);
            assert_eq!(blocks, plain, "{count} blocks decrypted");
        }
    }
}

/// Declares one test for each check, in a module for each kernel. The kernel is `None` if this processor lacks its instructions.
macro_rules! kernel_suite {
    ($module:ident: $kernel:expr, $name:expr) => {
        $crate::kernel_checks::kernel_suite! {
            $module: $kernel, $name, {
                fips_197, expansion, ecb, ctr_lengths, ctr_wraps, feedback, xts, ghash, cbc_encrypt,
                cbc_encrypt_of_colliding_messages, each
            }
        }
    };
    ($module:ident: $kernel:expr, $name:expr, { $($check:ident),* }) => {
        mod $module {
            use super::*;

            $(
                #[test]
                fn $check() {
                    $crate::kernel_checks::$check($crate::kernel_checks::found($kernel, $name));
                }
            )*
        }
    };
}
pub(crate) use kernel_suite;
