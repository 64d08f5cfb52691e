//! Key wrap, with and without padding, and with the inverse cipher: lengths, integrity check values, changed keys.
//!
//! Some calls are not tested, because the result of the default provider is accidental: data without a key (up to 3.x it
//! crashes), and another direction without a new key (it uses the wrong key schedule).
//!
//! Releases differ in a second update without an init in between: up to 3.x it wraps another key, and 4.0 refuses it. This
//! provider wraps another key with every release, since programs written for 3.x may depend on it. Releases also differ in
//! EVP_Cipher if the data are refused: up to 3.x, EVP_Cipher returns 1 without output, since the error is a large length.

use std::ptr::{null, null_mut};

use proptest::prelude::*;

use crate::evp::{self, Cipher, DECRYPT, ENCRYPT};
use crate::harness::{ALGORITHMS, Mode, bytes, ours, subject_is_default, theirs};
use crate::libcrypto::EVP_Cipher;
use crate::script::Call::*;
use crate::script::{Call, Side, compare, compare_until_failure, key_and_iv, start, start_encrypting};

fn names() -> impl Iterator<Item = &'static str> {
    ALGORITHMS.iter().filter(|algorithm| algorithm.mode == Mode::Wrap).map(|algorithm| algorithm.name())
}

/// An init with a key and without an IV. The check value is then the one of the standard.
fn with_standard_icv(name: &str, way: i32) -> Call {
    Init(way, Some(key_and_iv(name).0), None)
}

fn wrap(name: &str, data: &[u8]) -> Vec<u8> {
    compare(name, &[with_standard_icv(name, ENCRYPT), Update(data.to_vec()), State, Final])[1].out.clone()
}

#[test]
fn keys_of_every_length_with_the_standard_check_value() {
    for name in names() {
        // With 400 semiblocks (3,200 bytes), the counter t needs more than one byte; with 12,000 semiblocks, it needs more than two
        // bytes.
        for n in (0..=130usize).chain([255, 256, 257, 3200, 96_000]) {
            let data = bytes(n, n as u64);
            let sealed = wrap(name, &data);
            let valid = if name.contains("PAD") { n > 0 } else { n >= 16 && n.is_multiple_of(8) };
            assert_eq!(!sealed.is_empty(), valid, "{name}: {n} bytes");
            // Bytes that are not a wrapped key are refused, too.
            compare(name, &[with_standard_icv(name, DECRYPT), Update(data.clone()), State, Final]);
            if valid {
                let script = |open: fn(Vec<u8>) -> Call| {
                    [with_standard_icv(name, DECRYPT), open(sealed.clone()), State, Final]
                };
                assert!(compare(name, &script(Update))[1].out == data, "{name}: {n} bytes");
                assert!(compare(name, &script(InPlace))[1].out == data, "{name}: {n} bytes");
                compare(name, &[with_standard_icv(name, ENCRYPT), InPlace(data), Final]);
            }
        }
    }
}

#[test]
fn an_iv_is_the_check_value() {
    for name in names() {
        let data = bytes(40, 1);
        let sealed = compare(name, &[start_encrypting(name), Update(data.clone()), State])[1].out.clone();
        assert!(sealed != wrap(name, &data), "{name}: the IV has no effect");
        let opened = compare(name, &[start(name, DECRYPT), Update(sealed.clone()), State]);
        assert!(opened[1].out == data, "{name}");
        assert!(!compare(name, &[with_standard_icv(name, DECRYPT), Update(sealed)])[1].ok(), "{name}");
        // The check value that was set also applies to the next key.
        let again = [start_encrypting(name), with_standard_icv(name, -1), Update(data), State];
        compare(name, &again);
    }
}

#[test]
fn a_changed_key_is_refused() {
    for name in names() {
        for n in [8, 16, 24, 40] {
            if n == 8 && !name.contains("PAD") {
                continue;
            }
            let sealed = wrap(name, &bytes(n, 2));
            for at in 0..sealed.len() {
                let mut changed = sealed.clone();
                changed[at] ^= 1 << (at % 8);
                let refused = compare(
                    name,
                    &[with_standard_icv(name, DECRYPT), Update(changed), with_standard_icv(name, -1), State],
                );
                assert!(!refused[1].ok(), "{name}: byte {at} of {n}");
            }
            // The context works after a failure.
            let mut short = sealed.clone();
            short.truncate(sealed.len() - 8);
            let open =
                [with_standard_icv(name, DECRYPT), Update(short), Init(-1, None, None), Update(sealed)];
            assert!(compare(name, &open)[3].ok(), "{name}");
        }
    }
}

/// Creates the inputs by key wrap without padding. With an IV that consists of the prefix and a length, the plaintext may end
/// with any bytes in place of the padding.
#[test]
fn wrong_lengths_and_padding_are_refused() {
    for bits in [128, 192, 256] {
        for suffix in ["", "-INV"] {
            let (plain, padded) =
                (format!("AES-{bits}-WRAP{suffix}"), format!("AES-{bits}-WRAP-PAD{suffix}"));
            let key = key_and_iv(&plain).0;
            for length in (0..=34u32).chain([256, 1 << 16, 1 << 24, 1 << 31, u32::MAX]) {
                for used in 15..=24 {
                    let mut icv = vec![0xa6, 0x59, 0x59, 0xa6];
                    icv.extend(length.to_be_bytes());
                    let mut data = vec![0; 24];
                    data[..used].fill(0x11);
                    let sealed =
                        compare(&plain, &[Init(1, Some(key.clone()), Some(icv)), Update(data.clone())]);
                    let open = [Init(0, Some(key.clone()), None), Update(sealed[1].out.clone())];
                    let opened = compare(&padded, &open);
                    let valid = (17..=24).contains(&length) && used <= length as usize;
                    assert_eq!(opened[1].ok(), valid, "{padded}: length {length}, {used} bytes used");
                }
            }
        }
    }
}

#[test]
fn a_refused_key_has_no_output() {
    if subject_is_default("wiping of the output") {
        return;
    }
    for name in names() {
        let data = bytes(32, 3);
        let mut sealed = compare(name, &[start_encrypting(name), Update(data.clone())])[1].out.clone();
        let mut side = Side::new(ours(name));
        // If another check value is set, the plaintext is computed, and then refused.
        assert!(side.run(&with_standard_icv(name, DECRYPT)).ok());
        let mut n = -1;
        let at = sealed.as_mut_ptr();
        assert_ne!(side.context.update_raw(at, &mut n, at, 40), 1, "{name}");
        assert!(sealed[..32].iter().all(|byte| *byte == 0), "{name}");
        assert_eq!(n, 0);
        assert!(evp::errors().join(";").contains("wrong key"), "{name}");
    }
}

#[test]
fn a_null_output_is_a_query_of_the_length() {
    for name in names() {
        for way in [ENCRYPT, DECRYPT] {
            for n in (0..=40).chain([1000, 1001]) {
                let run = |cipher: Cipher| {
                    let mut side = Side::new(cipher);
                    assert!(side.run(&start(name, way)).ok());
                    let data = bytes(n, 1);
                    let mut outcomes = Vec::new();
                    for from in [data.as_ptr(), null()] {
                        let mut written = -1;
                        let returned = side.context.update_raw(null_mut(), &mut written, from, n);
                        // The number is not defined after a refused query.
                        outcomes.push((returned, if returned == 1 { written } else { 0 }));
                    }
                    outcomes
                };
                assert_eq!(run(ours(name)), run(theirs(name)), "{name}: {n} bytes");
            }
        }
    }
}

/// EVP_Cipher calls the function for updates, and returns its status.
#[test]
fn evp_cipher_returns_a_status() {
    for name in names() {
        let data = bytes(32, 1);
        let run = |cipher: Cipher| {
            let mut side = Side::new(cipher);
            assert!(side.run(&with_standard_icv(name, ENCRYPT)).ok());
            let mut out = vec![0; 64];
            // SAFETY: the context is live, and there is enough space.
            let returned = unsafe { EVP_Cipher(side.context.raw, out.as_mut_ptr(), data.as_ptr(), 32) };
            (returned, out, side.run(&CipherEnd))
        };
        let (returned, out, end) = run(ours(name));
        assert_eq!(returned, 1, "{name}");
        assert!(out[..40] == wrap(name, &data), "{name}");
        assert_eq!((returned, out, end), run(theirs(name)), "{name}");
    }
}

#[test]
fn input_and_output_may_overlap() {
    for name in names() {
        let data = bytes(64, 4);
        let sealed = wrap(name, &data);
        for (way, input, output) in [(ENCRYPT, &data, &sealed), (DECRYPT, &sealed, &data)] {
            for shift in [0usize, 1, 7, 8, 9, 16, 50] {
                for forwards in [false, true] {
                    let (from, to) = if forwards { (0, shift) } else { (shift, 0) };
                    let run = |cipher: Cipher| {
                        let mut side = Side::new(cipher);
                        assert!(side.run(&with_standard_icv(name, way)).ok());
                        let (mut memory, mut n) = (vec![0; 200], 0);
                        memory[from..from + input.len()].copy_from_slice(input);
                        let at = memory.as_mut_ptr();
                        let returned = side.context.update_raw(
                            at.wrapping_add(to),
                            &mut n,
                            at.wrapping_add(from).cast_const(),
                            input.len(),
                        );
                        (returned, memory[to..to + n as usize].to_vec())
                    };
                    let got = run(ours(name));
                    assert_eq!(got, (1, output.clone()), "{name}: from {from} to {to}");
                    assert_eq!(got, run(theirs(name)), "{name}: from {from} to {to}");
                }
            }
        }
    }
}

#[test]
fn a_context_wraps_many_keys_and_is_copied() {
    for name in names() {
        let mut script = vec![Init(ENCRYPT, None, None), Copy, start_encrypting(name)];
        for n in 2..10 {
            script.extend([Copy, Update(bytes(8 * n, n as u64)), Copy, Init(-1, None, None), State]);
        }
        script.extend([
            with_standard_icv(name, 0),
            Update(bytes(32, 1)),
            start(name, 1),
            Update(bytes(32, 1)),
        ]);
        compare(name, &script);
    }
}

/// See the comment at the start of this module.
#[test]
fn every_update_wraps_a_key() {
    if subject_is_default("releases differ in a second update") {
        return;
    }
    for name in names() {
        let mut side = Side::new(ours(name));
        assert!(side.run(&with_standard_icv(name, ENCRYPT)).ok());
        for n in [16, 40, 16] {
            assert!(side.run(&Update(bytes(n, 1))).out == wrap(name, &bytes(n, 1)), "{name}");
        }
        assert!(side.run(&Update(vec![])).ok() && side.run(&Final).ok());
    }
}

#[test]
fn lengths_that_are_refused_have_a_reason() {
    for name in names().filter(|name| !name.contains("PAD")) {
        for (way, n) in [(ENCRYPT, 8), (ENCRYPT, 17), (DECRYPT, 8), (DECRYPT, 16), (DECRYPT, 31)] {
            evp::clear_errors();
            let mut side = Side::new(ours(name));
            assert!(side.run(&start(name, way)).ok());
            assert!(!side.run(&Update(bytes(n, 1))).ok(), "{name}: {n}");
            if crate::harness::subject() != "default" {
                assert!(evp::errors().join(";").contains("semiblock"), "{name}: {n}");
            }
        }
    }
}

/// Processes one key: an init, optionally a copy, and an update. Releases differ if there is no init.
fn message(name: &'static str) -> impl Strategy<Value = Vec<Call>> {
    let (key, iv) = key_and_iv(name);
    let iv = prop::option::of(any::<u64>().prop_map(move |seed| bytes(iv.len(), seed)));
    let key = prop::option::of(any::<u64>().prop_map(move |seed| bytes(key.len(), seed)));
    let length = prop_oneof![0..50usize, (0..20usize).prop_map(|n| 8 * n)];
    (0..=1, key, iv, length, any::<[bool; 4]>()).prop_map(
        |(way, key, iv, n, [copy, state, end, in_place])| {
            let mut calls = vec![Init(if key.is_some() { way } else { -1 }, key, iv)];
            calls.extend(copy.then_some(Copy));
            calls.push(if in_place { InPlace(bytes(n, 6)) } else { Update(bytes(n, 6)) });
            calls.extend(state.then_some(State));
            calls.extend(end.then_some(Final));
            calls
        },
    )
}

#[test]
fn any_script() {
    let config = ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() };
    let name = prop::sample::select(names().collect::<Vec<_>>());
    let script = name.prop_flat_map(|name| (Just(name), 0..=1, prop::collection::vec(message(name), 1..6)));
    proptest!(config, |((name, way, messages) in script)| {
        compare_until_failure(name, &[vec![start(name, way)], messages.concat()].concat());
    });
}
