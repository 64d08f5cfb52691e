//! Inline calls: every kernel of this processor, compared with the reference implementation.

mod gcm;
mod ocb;
mod proof;
#[cfg(target_arch = "x86_64")]
mod registers;
#[cfg(target_arch = "x86_64")]
mod stack;

use std::panic::AssertUnwindSafe;

use lockstep_core::work::Pass;
use lockstep_cpu::inline::{Block, InlineGcm, InlineKernel, InlineKey, InlineOcb, Span};
use lockstep_reference::{Aes, cbc, cbc_mac, cfb, ctr, ecb, ofb, pcbc, xts};

const KEY_LENGTHS: [usize; 3] = [16, 24, 32];

/// Pseudorandom bytes that depend on `seed` (splitmix64).
fn bytes(seed: usize, len: usize) -> Vec<u8> {
    let mut state = seed as u64;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    (0..len.div_ceil(8)).flat_map(|_| next().to_le_bytes()).take(len).collect()
}

fn block(seed: usize) -> Block {
    bytes(seed, 16).try_into().unwrap()
}

/// Calls `test` for each kernel and each key length.
fn each_key(mut test: impl FnMut(InlineKernel, &Aes, &InlineKey, &str)) {
    for kernel in InlineKernel::all() {
        for len in KEY_LENGTHS {
            let key = bytes(len, len);
            let inline = InlineKey::new(kernel, &key).unwrap();
            test(kernel, &Aes::new(&key), &inline, &format!("{} AES-{}", kernel.name(), 8 * len));
        }
    }
}

/// Lengths of whole blocks in bytes: all up to 200 bytes, and a few larger ones.
fn whole() -> impl Iterator<Item = usize> {
    (0..=200).step_by(16).chain([256, 512, 528, 1008, 1024, 4112, 20_000])
}

/// Lengths in bytes: all from 0 to 200, and a few larger ones.
fn any() -> impl Iterator<Item = usize> {
    (0..=200).chain([255, 257, 511, 513, 1000, 4099, 20_001])
}

/// Checks `call` in place, out of place and at an odd address. `register` holds the register before the call and, if it is
/// checked, the register after the call.
fn check(
    what: &str,
    data: &[u8],
    expected: &[u8],
    register: (Block, Option<Block>),
    call: impl Fn(&mut Block, Span<'_>),
) {
    let len = data.len();
    let (start, end) = register;
    for shift in [0, 1] {
        let mut place = vec![0xa5; shift];
        place.extend_from_slice(data);
        place.extend([0xa5; 64]);
        let source = place.clone();
        let mut found = start;
        call(&mut found, Span::in_place(&mut place[shift..shift + len]));
        assert!(place[shift..shift + len] == *expected, "{what}: {len} bytes in place");
        assert!(end.is_none_or(|end| end == found), "{what}: register after {len} bytes in place");

        place[shift..shift + len].fill(0x5a);
        found = start;
        call(&mut found, Span::copy(&source[shift..shift + len], &mut place[shift..shift + len]));
        assert!(place[shift..shift + len] == *expected, "{what}: {len} bytes out of place");
        assert!(end.is_none_or(|end| end == found), "{what}: register after {len} bytes out of place");
        let around = place[..shift].iter().chain(&place[shift + len..]);
        assert!(around.into_iter().all(|&byte| byte == 0xa5), "{what}: {len} bytes: written beyond the end");
    }
}

/// The last block of the data, or `before` if the data are shorter than a block.
fn last(data: &[u8], before: Block) -> Option<Block> {
    Some(data.last_chunk().copied().unwrap_or(before))
}

#[test]
fn kernels_have_names() {
    let kernels: Vec<_> = InlineKernel::all().collect();
    assert_eq!(kernels[0], InlineKernel::best());
    for kernel in kernels {
        assert_eq!(InlineKernel::by_name(kernel.name()), Some(kernel));
        assert_eq!(kernel.has_aes_instructions(), kernel.name() != "cpu/soft");
        assert_eq!(InlineKey::new(kernel, &[0; 16]).unwrap().kernel(), kernel);
    }
    assert_eq!(InlineKernel::by_name("cpu/z80"), None);
}

#[test]
fn other_key_lengths_are_refused() {
    for kernel in InlineKernel::all() {
        for len in (0..=64).filter(|len| !KEY_LENGTHS.contains(len)) {
            assert!(InlineKey::new(kernel, &vec![0; len]).is_none());
            assert!(InlineGcm::new(kernel, &vec![0; len]).is_none());
        }
    }
}

#[test]
fn types_are_send_and_sync() {
    fn sound<T: Send + Sync>() {}
    sound::<InlineKernel>();
    sound::<InlineKey>();
    sound::<InlineGcm>();
}

#[test]
fn a_key_is_replaced_in_its_place() {
    for kernel in InlineKernel::all() {
        // Longer keys are set before shorter ones, so that the last round keys of the longer keys must be erased.
        let mut key = InlineKey::new(kernel, &bytes(9, 32)).unwrap();
        for len in [24, 16, 32] {
            let new = bytes(len, len);
            assert!(key.set(&new, true) && !key.set(&new[1..], true), "{}", kernel.name());
            assert_eq!(key.bytes(), new);
            let (mut data, aes) = ([block(1); 9], Aes::new(&new));
            key.ecb_encrypt(Span::in_place(data.as_flattened_mut()));
            assert_eq!(data, [aes.encrypt(block(1)); 9], "{}", kernel.name());
            key.ecb_decrypt(Span::in_place(data.as_flattened_mut()));
            assert_eq!(data, [block(1); 9], "{}", kernel.name());
        }
    }
}

#[test]
fn a_key_for_encryption_decrypts_only_after_its_second_expansion() {
    for kernel in InlineKernel::all() {
        let mut key = InlineKey::for_directions(kernel, &bytes(9, 32), false).unwrap();
        for len in KEY_LENGTHS {
            assert!(key.set(&bytes(len, len), false), "{}", kernel.name());
            let aes = Aes::new(&bytes(len, len));
            let decrypted = |key: &InlineKey| {
                let (mut ecb, mut cbc) = ([aes.encrypt(block(1)); 9], [aes.encrypt(block(1)); 9]);
                key.ecb_decrypt(Span::in_place(ecb.as_flattened_mut()));
                key.cbc_decrypt(&mut [0; 16], Span::in_place(&mut cbc[0]));
                (ecb, cbc[0])
            };
            let mut data = [block(1); 9];
            key.ecb_encrypt(Span::in_place(data.as_flattened_mut()));
            assert_eq!(data, [aes.encrypt(block(1)); 9], "{}", kernel.name());
            data = [block(2); 9];
            // A key that shares its memory, a key that does not, and a key in the place of a key for both directions.
            let alone = InlineKey::for_directions(kernel, &bytes(len, len), false).unwrap();
            let mut replaced = InlineKey::new(kernel, &bytes(8, 32)).unwrap();
            assert!(replaced.set(&bytes(len, len), false));
            for (what, mut both) in [("clone", key.clone()), ("alone", alone), ("replaced", replaced)] {
                assert!(both.ensure_decryption() && both.bytes() == key.bytes());
                assert_eq!(decrypted(&both), ([block(1); 9], block(1)), "{}: {what}", kernel.name());
                both.ecb_encrypt(Span::in_place(data.as_flattened_mut()));
                assert_eq!(data, [aes.encrypt(block(2)); 9], "{}: {what}", kernel.name());
                data = [block(2); 9];
            }
            type Decrypt<'a> = &'a dyn Fn(&mut Block, Span<'_>);
            let decrypts: [(&str, Decrypt<'_>); 6] = [
                ("ECB", &|_, data| key.ecb_decrypt(data)),
                ("CBC", &|iv, data| key.cbc_decrypt(iv, data)),
                ("XTS", &|tweak, data| key.xts_decrypt(tweak, data)),
                ("a unit of XTS", &|number, data| key.xts_unit(&key, false, number, None, data)),
                ("serial CBC", &|iv, data| key.serial(Pass::CbcDecrypt, iv, 8 * data.len(), data)),
                ("PCBC", &|iv, data| key.serial(Pass::PcbcDecrypt, iv, 8 * data.len(), data)),
            ];
            for (mode, decrypt) in decrypts {
                let call = || decrypt(&mut [0; 16], Span::in_place(&mut [0; 16]));
                let refused = std::panic::catch_unwind(AssertUnwindSafe(call));
                assert!(refused.is_err(), "{}: {mode}", kernel.name());
            }
        }
    }
}

#[test]
fn a_new_key_does_not_change_clones() {
    for kernel in InlineKernel::all() {
        let (old, new) = (bytes(1, 16), bytes(2, 32));
        let mut key = InlineKey::new(kernel, &old).unwrap();
        let clones = [key.clone(), key.clone()];
        assert!(key.set(&new, true));
        for (key, bytes) in clones.iter().chain([&key]).zip([&old, &old, &new]) {
            assert_eq!(key.bytes(), bytes, "{}", kernel.name());
            let mut found = block(1);
            key.encrypt_block(&mut found);
            assert_eq!(found, Aes::new(bytes).encrypt(block(1)), "{}", kernel.name());
        }
    }
}

#[test]
fn single_blocks() {
    each_key(|_, aes, key, what| {
        let mut found = block(1);
        key.encrypt_block(&mut found);
        assert_eq!(found, aes.encrypt(block(1)), "{what}");
        key.ecb_decrypt(Span::in_place(&mut found));
        assert_eq!(found, block(1), "{what}");
    });
}

#[test]
fn modes_of_whole_blocks() {
    each_key(|_, aes, key, what| {
        for len in whole() {
            let (data, iv) = (bytes(len, len), block(len + 1));
            let name = |mode: &str| format!("{what} {mode}");
            let any = (iv, Some(iv));
            check(&name("ECB"), &data, &ecb::encrypt(aes, &data), any, |_, span| key.ecb_encrypt(span));
            check(&name("ECB decryption"), &data, &ecb::decrypt(aes, &data), any, |_, span| {
                key.ecb_decrypt(span);
            });
            let out = cbc::encrypt(aes, &iv, &data);
            check(&name("CBC"), &data, &out, (iv, last(&out, iv)), |iv, span| key.cbc_encrypt(iv, span));
            let out = cbc::decrypt(aes, &iv, &data);
            check(&name("CBC decryption"), &data, &out, (iv, last(&data, iv)), |iv, span| {
                key.cbc_decrypt(iv, span);
            });
            let out = cfb::encrypt128(aes, &iv, &data);
            check(&name("CFB128"), &data, &out, (iv, last(&out, iv)), |iv, span| {
                key.serial(Pass::Cfb128Encrypt, iv, 8 * len, span);
            });
            let out = cfb::decrypt128(aes, &iv, &data);
            check(&name("CFB128 decryption"), &data, &out, (iv, last(&data, iv)), |iv, span| {
                key.cfb128_decrypt(iv, span);
            });
            let out = ofb::apply(aes, &iv, &data);
            let keystream: Vec<u8> = out.iter().zip(&data).map(|(a, b)| a ^ b).collect();
            check(&name("OFB"), &data, &out, (iv, last(&keystream, iv)), |iv, span| {
                key.serial(Pass::Ofb, iv, 8 * len, span);
            });
            check(&name("PCBC"), &data, &pcbc::encrypt(aes, &iv, &data), (iv, None), |iv, span| {
                key.serial(Pass::PcbcEncrypt, iv, 8 * len, span);
            });
            check(
                &name("PCBC decryption"),
                &data,
                &pcbc::decrypt(aes, &iv, &data),
                (iv, None),
                |iv, span| {
                    key.serial(Pass::PcbcDecrypt, iv, 8 * len, span);
                },
            );
            let mut mac = iv;
            key.cbc_mac(&mut mac, &data);
            assert_eq!(mac, cbc_mac::update(aes, iv, &data), "{what} CBC-MAC");
        }
    });
}

#[test]
fn ccm_of_any_length() {
    each_key(|_, aes, key, what| {
        // The counter wraps at 2^64.
        let (mac, mut first) = (block(2), block(3));
        first[8..].copy_from_slice(&(u64::MAX - 2).to_be_bytes());
        let start = (u128::from_be_bytes(first) + 1).to_be_bytes();
        for len in any() {
            let plain = bytes(1, len);
            let mut padded = [&mac[..], &plain].concat();
            padded.resize(16 + len.next_multiple_of(16), 0);
            let (chain, mask) = (cbc_mac::update(aes, [0; 16], &padded), aes.encrypt(first));
            let tag = std::array::from_fn(|i| chain[i] ^ mask[i]);
            let sealed = ctr::apply(aes, &start, &plain);
            check(&format!("{what} CCM"), &plain, &sealed, (mac, Some(tag)), |mac, data| {
                key.ccm(true, mac, &first, data);
            });
            check(&format!("{what} CCM opened"), &sealed, &plain, (mac, Some(tag)), |mac, data| {
                key.ccm(false, mac, &first, data);
            });
        }
    });
}

#[test]
fn modes_of_whole_blocks_go_on() {
    each_key(|_, aes, key, what| {
        let (data, iv) = (bytes(1, 640), block(2));
        let expected = [
            cbc::encrypt(aes, &iv, &data),
            cbc::decrypt(aes, &iv, &data),
            cfb::encrypt128(aes, &iv, &data),
            cfb::decrypt128(aes, &iv, &data),
            ofb::apply(aes, &iv, &data),
        ];
        let modes: [fn(&InlineKey, &mut Block, Span<'_>); 5] = [
            InlineKey::cbc_encrypt,
            InlineKey::cbc_decrypt,
            |key, iv, data| key.serial(Pass::Cfb128Encrypt, iv, 8 * data.len(), data),
            InlineKey::cfb128_decrypt,
            |key, iv, data| key.serial(Pass::Ofb, iv, 8 * data.len(), data),
        ];
        for (number, (mode, expected)) in modes.into_iter().zip(expected).enumerate() {
            let (mut found, mut register) = (data.clone(), iv);
            let (mut rest, mut step) = (&mut found[..], 0);
            while !rest.is_empty() {
                let (piece, after) = rest.split_at_mut((16 * step).min(rest.len()));
                mode(key, &mut register, Span::in_place(piece));
                (rest, step) = (after, (step + 1) % 7);
            }
            assert!(found == expected, "{what}: mode {number} in pieces");
        }
    });
}

#[test]
fn xts_by_an_encrypted_tweak() {
    each_key(|_, aes, key, what| {
        let tweak_key = Aes::new(&bytes(9, 16));
        for len in whole().filter(|len| *len > 0) {
            let (data, number) = (bytes(len, len), block(len));
            let start = tweak_key.encrypt(number);
            let end = (0..len / 16).fold(start, |tweak, _| xts::mul_alpha(tweak));
            let out = xts::encrypt(aes, &tweak_key, &number, &data);
            check(&format!("{what} XTS"), &data, &out, (start, Some(end)), |tweak, span| {
                key.xts_encrypt(tweak, span);
            });
            check(&format!("{what} XTS decryption"), &out, &data, (start, Some(end)), |tweak, span| {
                key.xts_decrypt(tweak, span);
            });
        }
    });
}

#[test]
fn counters() {
    let mut wraps_32 = block(3);
    wraps_32[12..].copy_from_slice(&[0xff, 0xff, 0xff, 0xfe]);
    let mut wraps_64 = block(3);
    wraps_64[8..].fill(0xff);
    each_key(|_, aes, key, what| {
        for counter in [block(3), wraps_32, wraps_64, [0xff; 16]] {
            for len in any() {
                let data = bytes(len, len);
                let number = u128::from_be_bytes(counter);
                let blocks = len.div_ceil(16) as u128;
                let after = number.wrapping_add(blocks);
                let out = ctr::apply(aes, &counter, &data);
                let register = (counter, Some(after.to_be_bytes()));
                check(&format!("{what} CTR"), &data, &out, register, |counter, span| key.ctr(counter, span));
                let low = 0xffff_ffff;
                let after = (number & !low) | (after & low);
                let out = ctr::apply32(aes, &counter, &data);
                let register = (counter, Some(after.to_be_bytes()));
                check(&format!("{what} CTR32"), &data, &out, register, |counter, span| {
                    key.ctr32(counter, span);
                });
            }
        }
    });
}

#[test]
fn cfb8_of_any_length() {
    each_key(|_, aes, key, what| {
        for len in (0..=200).filter(|len| len % 7 == 0 || *len < 40).chain([1000]) {
            let (data, iv) = (bytes(len, len), block(len));
            let after = |ciphertext: &[u8]| {
                let all = [&iv, ciphertext].concat();
                (iv, Some(*all.last_chunk().unwrap()))
            };
            let out = cfb::encrypt8(aes, &iv, &data);
            check(&format!("{what} CFB8"), &data, &out, after(&out), |iv, span| {
                key.serial(Pass::Cfb8Encrypt, iv, 8 * len, span);
            });
            let out = cfb::decrypt8(aes, &iv, &data);
            check(&format!("{what} CFB8 decryption"), &data, &out, after(&data), |iv, span| {
                key.serial(Pass::Cfb8Decrypt, iv, 8 * len, span);
            });
        }
    });
}

#[test]
fn cfb1_of_any_number_of_bits() {
    each_key(|_, aes, key, what| {
        for bits in (0..100).chain([1000]) {
            let len = bits / 8 + 2;
            let (data, iv) = (bytes(bits, len), block(bits));
            let modes = [
                ("CFB1", cfb::encrypt1(aes, &iv, &data, bits), Pass::Cfb1Encrypt),
                ("CFB1 decryption", cfb::decrypt1(aes, &iv, &data, bits), Pass::Cfb1Decrypt),
            ];
            for (mode, result, pass) in modes {
                // Bits of the output after the first `bits` bits must not change.
                let over = |before: &[u8]| {
                    let mut expected = before.to_vec();
                    expected[..bits / 8].copy_from_slice(&result[..bits / 8]);
                    if bits % 8 > 0 {
                        let kept = 0xff >> (bits % 8);
                        expected[bits / 8] = result[bits / 8] | (before[bits / 8] & kept);
                    }
                    expected
                };
                let mut place = data.clone();
                let mut register = iv;
                key.serial(pass, &mut register, bits, Span::in_place(&mut place));
                assert!(place == over(&data), "{what} {mode}: {bits} bits in place");
                let mut apart = vec![0x5a; len];
                let mut again = iv;
                key.serial(pass, &mut again, bits, Span::copy(&data, &mut apart));
                assert!(apart == over(&vec![0x5a; len]), "{what} {mode}: {bits} bits out of place");
                assert_eq!(register, again);
                // Processes the same bits in two calls.
                let cut = bits / 16 * 8;
                let (mut place, mut register) = (data.clone(), iv);
                key.serial(pass, &mut register, cut, Span::in_place(&mut place[..cut / 8]));
                key.serial(pass, &mut register, bits - cut, Span::in_place(&mut place[cut / 8..]));
                assert!(place == over(&data), "{what} {mode}: {bits} bits in two calls");
                assert_eq!(register, again);
            }
        }
    });
}

#[test]
fn raw_spans() {
    let key = InlineKey::new(InlineKernel::best(), &[7; 16]).unwrap();
    let (source, mut place) = (bytes(1, 40), vec![0; 40]);
    // SAFETY: the pointers belong to two vectors of 40 bytes each.
    key.ctr(&mut block(2), unsafe { Span::from_raw(source.as_ptr(), place.as_mut_ptr(), 40) });
    assert_eq!(place, ctr::apply(&Aes::new(&[7; 16]), &block(2), &source));
    // SAFETY: the span has no bytes, so any pointers are valid.
    key.ctr(&mut block(2), unsafe { Span::from_raw(std::ptr::null(), std::ptr::null_mut(), 0) });
    // SAFETY: the span has no bytes, so any pointers are valid.
    key.ecb_encrypt(unsafe { Span::from_raw(std::ptr::null(), std::ptr::null_mut(), 0) });
}
