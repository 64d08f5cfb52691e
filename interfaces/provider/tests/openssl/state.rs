//! The state of a context between calls: all kinds of re-init, copies, IVs, num, key and IV lengths.

use std::ptr::null_mut;

use crate::evp::{Cipher, Context, ENCRYPT, Params};
use crate::harness::{ALGORITHMS, Algorithm, Mode, bytes, ours, subject_is_default, theirs};
use crate::script::Call::*;
use crate::script::{Call, compare, key_and_iv, start_decrypting, start_encrypting};

/// Every algorithm, each with a message length that it supports. CCM, which needs the message length first, CBC with ciphertext stealing,
/// and key wrap are left out: they have their own tests.
fn all() -> impl Iterator<Item = (&'static Algorithm, usize)> {
    ALGORITHMS
        .iter()
        .filter(|algorithm| algorithm.mode != Mode::Ccm && !algorithm.is_one_update())
        .map(|algorithm| (algorithm, if algorithm.mode == Mode::Ecb { 45 } else { 61 }))
}

#[test]
fn a_reinit_with_iv_alone_with_key_alone_and_with_neither() {
    for (algorithm, n) in all() {
        let name = algorithm.name();
        let (key, iv) = key_and_iv(name);
        let (key, iv) = (Some(key.iter().map(|b| b ^ 0x55).collect()), Some(vec![9u8; iv.len()]));
        let inits = [
            Init(-1, None, iv.clone()),
            Init(-1, key.clone(), None),
            Init(-1, key, iv),
            Init(-1, None, None),
        ];
        for start in [start_encrypting(name), start_decrypting(name)] {
            for init in &inits {
                // GCM and OCB keep no IV for a second message; the other modes may continue with the old one.
                for ended in [false, true] {
                    let mut script = vec![start.clone(), Update(bytes(n, 1)), State];
                    // The end of a decryption may fail in both providers, and the state of a context after a failure is not compared. So
                    // this test does not end decryptions.
                    if ended && matches!(&start, Init(1, ..)) {
                        script.push(Final);
                    }
                    script.extend([init.clone(), State]);
                    // With a new key in the middle of a message the default provider continues with a zero counter.
                    let takes_iv_once = matches!(algorithm.mode, Mode::Gcm | Mode::Ocb);
                    let without_iv = takes_iv_once && !matches!(init, Init(_, _, Some(_)));
                    let rekeyed = without_iv && matches!(init, Init(_, Some(_), _));
                    if !(without_iv && ended || rekeyed) {
                        script.extend([Update(bytes(n, 2)), Update(bytes(n, 3)), State]);
                    }
                    compare(name, &script);
                }
            }
        }
    }
}

#[test]
fn key_and_iv_may_be_set_one_after_the_other() {
    for (algorithm, n) in all() {
        let name = algorithm.name();
        let (key, iv) = key_and_iv(name);
        for way in [1, 0] {
            let bare = Init(way, None, None);
            let (key, iv) = (Init(-1, Some(key.clone()), None), Init(-1, None, Some(iv.clone())));
            let use_it = [Update(bytes(n, 1)), Update(bytes(n, 2)), State];
            compare(name, &[&[bare.clone(), key.clone(), iv.clone()][..], &use_it].concat());
            compare(name, &[&[bare, iv, key][..], &use_it].concat());
        }
    }
}

#[test]
fn a_context_changes_from_encryption_to_decryption_and_back() {
    for (algorithm, n) in all() {
        let name = algorithm.name();
        let (key, iv) = key_and_iv(name);
        let (key, iv) = (Some(key), Some(iv).filter(|iv| !iv.is_empty()));
        let n = n / 16 * 16;
        for turn in
            [Init(0, key.clone(), iv.clone()), Init(0, key, None), Init(0, None, iv), Init(0, None, None)]
        {
            let Init(_, key, iv) = turn.clone() else { unreachable!() };
            // ECB, CBC, XTS and OCB have a key schedule for each direction: without the key the default provider uses the
            // wrong one.
            if (algorithm.is_block() || matches!(algorithm.mode, Mode::Xts | Mode::Ocb)) && key.is_none() {
                continue;
            }
            // GCM and OCB accept no second message with the same IV.
            if matches!(algorithm.mode, Mode::Gcm | Mode::Ocb) && iv.is_none() {
                continue;
            }
            let there = [Update(bytes(n, 1)), State, turn, Update(bytes(n, 2)), State];
            let back = [Init(1, key, iv), Update(bytes(n, 3)), State];
            compare(name, &[&[start_encrypting(name)][..], &there, &back].concat());
        }
    }
}

#[test]
fn a_copy_is_independent() {
    for (algorithm, _) in all() {
        let name = algorithm.name();
        for start in [start_encrypting(name), start_decrypting(name)] {
            for n in [0, 16, 20, 33, 5000] {
                let rest = [Copy, Update(bytes(64, 2)), Copy, Update(bytes(48, 3)), State];
                let first =
                    if n == 0 { vec![start.clone()] } else { vec![start.clone(), Update(bytes(n, 1))] };
                compare(name, &[&first[..], &rest].concat());
            }
            // A context without a key is copied, and the key is set in the copy.
            let Init(way, key, iv) = start else { unreachable!() };
            compare(name, &[Init(way, None, None), Copy, Init(-1, key, iv), Update(bytes(64, 2)), State]);
        }
    }
}

/// A context and its copies share a key.
#[test]
fn a_new_key_in_a_context_of_gcm_does_not_change_its_copies() {
    for name in ["AES-128-GCM", "AES-192-GCM", "AES-256-GCM"] {
        let (key, _) = key_and_iv(name);
        let other: Vec<u8> = key.iter().map(|byte| byte ^ 0x5a).collect();
        let init = |context: &mut Context, cipher: Option<&Cipher>, key: Option<&[u8]>, iv: Option<&[u8]>| {
            assert_eq!(context.init(cipher, ENCRYPT, key, iv, &Params::new()), 1, "{name}");
        };
        let message = |context: &mut Context, key: Option<&[u8]>, number: u64| {
            init(context, None, key, Some(&bytes(12, number)));
            let mut n = 0;
            assert_eq!(context.update_raw(null_mut(), &mut n, bytes(20, 1).as_ptr(), 20), 1, "{name}");
            let mut out = context.update(&bytes(1024, number)).expect("encrypts");
            out.extend(context.finish().expect("ends"));
            out.extend(context.get_bytes("tag", 16).expect("a tag"));
            out
        };
        let (ours, theirs) = (ours(name), theirs(name));
        let expected = |key: &[u8], number| {
            let mut context = theirs.context();
            init(&mut context, Some(&theirs), Some(key), None);
            message(&mut context, None, number)
        };
        for rekeys_copy in [false, true] {
            for frees_copy_first in [false, true] {
                let mut original = ours.context();
                init(&mut original, Some(&ours), Some(&key), None);
                let mut copy = original.copy().expect("a copy");
                let mut second = copy.copy().expect("a copy of the copy");
                let mut keys = [&key, &key];
                keys[usize::from(rekeys_copy)] = &other;
                let new_key = |is_copy: bool| Some(&*other).filter(|_| is_copy == rekeys_copy);
                assert_eq!(
                    message(&mut original, new_key(false), 2),
                    expected(keys[0], 2),
                    "{name}: original"
                );
                assert_eq!(message(&mut copy, new_key(true), 3), expected(keys[1], 3), "{name}: copy");
                let (first, last) = if frees_copy_first { (copy, original) } else { (original, copy) };
                drop(first);
                assert_eq!(message(&mut second, None, 4), expected(&key, 4), "{name}: copy of the copy");
                drop(second);
                let last_key = keys[usize::from(!frees_copy_first)];
                let mut third = last.copy().expect("a copy");
                drop(last);
                assert_eq!(
                    message(&mut third, None, 5),
                    expected(last_key, 5),
                    "{name}: copy of the last one"
                );
            }
        }
    }
}

#[test]
fn a_copy_keeps_the_parameters() {
    let padding = [Padding(false), Copy, Update(bytes(32, 1)), Final, State];
    compare("AES-128-CBC", &[&[start_decrypting("AES-128-CBC")][..], &padding].concat());
    let (key, _) = key_and_iv("AES-128-GCM");
    compare(
        "AES-128-GCM",
        &[
            Init(1, None, None),
            IvLength(40),
            Copy,
            Init(-1, Some(key), Some(bytes(40, 1))),
            Aad(bytes(20, 2)),
            Copy,
            Aad(bytes(5, 3)),
            Copy,
            Update(bytes(77, 4)),
            Copy,
            Final,
            Copy,
            Tag(16),
        ],
    );
}

#[test]
fn the_updated_and_the_original_iv_can_be_read_after_every_update() {
    for (algorithm, _) in all() {
        let name = algorithm.name();
        for start in [start_encrypting(name), start_decrypting(name)] {
            let mut script = vec![start, State];
            for n in [16, 16, 20, 33, 64, 1000, 4096] {
                script.extend([Update(bytes(n, n as u64)), State]);
            }
            script.extend([Init(-1, None, Some(vec![3; key_and_iv(name).1.len()])), State]);
            compare(name, &script);
        }
    }
}

/// The behaviour of this provider when `num` is set.
#[derive(PartialEq)]
enum SetNum {
    /// The number is stored and can be read.
    Stored,
    /// The mode has no such number: the call succeeds and has no effect.
    Ignored,
    /// An error, and the context is unchanged.
    Refused,
}

/// The rule of this provider for `num`, the number of bytes of the current block that have been used. In a stream mode, `num` is an index
/// into a block, so values of 16 and more are refused. ECB and CBC refuse them too, although they only store the number.
///
/// Releases of OpenSSL differ. Up to 3.0.19 the default provider stores any number in every mode but XTS and AEADs; 3.0.22 and 4.0.3
/// refuse 16 and more in ECB and CBC, and all but 0 in the stream modes.
fn rule(mode: Mode, num: i32) -> SetNum {
    match mode {
        Mode::Xts | Mode::Gcm | Mode::Ccm | Mode::Ocb | Mode::Siv | Mode::Wrap => SetNum::Ignored,
        Mode::Ecb | Mode::Cbc | Mode::Cts | Mode::Stream if (0..16).contains(&num) => SetNum::Stored,
        _ => SetNum::Refused,
    }
}

#[test]
fn num_is_stored_if_it_is_an_index_into_a_block() {
    if subject_is_default("releases differ in num") {
        return;
    }
    for algorithm in ALGORITHMS {
        let name = algorithm.name();
        let (key, iv) = key_and_iv(name);
        for num in [0, 1, 7, 15, 16, 17, 1000, -1] {
            let start = || {
                let cipher = ours(name);
                let mut context = cipher.context();
                assert_eq!(context.init(Some(&cipher), 1, Some(&key), Some(&iv), &Params::new()), 1);
                context
            };
            let mut context = start();
            let rule = rule(algorithm.mode, num);
            let returned = context.set(&Params::new().int("num", num));
            assert_eq!(returned, i32::from(rule != SetNum::Refused), "{name}: num {num}");
            let stored = if rule == SetNum::Stored { num as usize } else { 0 };
            let reported = context.get_number("num").unwrap_or(0);
            assert_eq!(reported, stored, "{name}: num after {num} was set");
            // Only a stream mode uses the number: see the test of resumed streams.
            if algorithm.mode != Mode::Stream || stored == 0 {
                let data = bytes(48, 1);
                assert_eq!(context.update(&data), start().update(&data), "{name}: data after num {num}");
            }
        }
    }
}

/// Behaviour that is the same in all releases.
#[test]
fn num_equals_the_default_providers_where_releases_agree() {
    for (algorithm, _) in all() {
        let name = algorithm.name();
        // The IV is the buffer of a block only in CFB and OFB; for the other modes only the number is compared.
        let data = algorithm.mode == Mode::Stream && !name.contains("CTR");
        for num in [0, 1, 7, 15, 16, 17, 1000] {
            let agreed = match rule(algorithm.mode, num) {
                SetNum::Stored => num == 0 || algorithm.mode != Mode::Stream,
                SetNum::Ignored => true,
                SetNum::Refused => false,
            };
            if agreed {
                let more = if data { vec![Update(bytes(40, 1)), State] } else { vec![] };
                compare(name, &[&[start_encrypting(name), Num(num), State][..], &more].concat());
            }
        }
    }
}

#[test]
fn a_key_length_that_is_not_the_ciphers_is_refused_as_the_default_refuses_it() {
    for algorithm in ALGORITHMS {
        let name = algorithm.name();
        for n in [0, 1, 15, 16, 17, 24, 31, 32, 33, 64, 1000] {
            compare(name, &[Init(1, None, None), KeyLength(n)]);
        }
        let right = key_and_iv(name).0.len() as i32;
        compare(name, &[Init(1, None, None), KeyLength(right)]);
    }
}

#[test]
fn messages_continue_after_final_as_the_default_continues_them() {
    for (algorithm, n) in all().filter(|(algorithm, _)| matches!(algorithm.mode, Mode::Stream | Mode::Xts)) {
        let name = algorithm.name();
        compare(
            name,
            &[start_encrypting(name), Update(bytes(n, 1)), Final, Update(bytes(n, 2)), Final, Final, State],
        );
    }
    for name in ["AES-128-ECB", "AES-128-CBC"] {
        let off: &[Call] = &[Padding(false)];
        for padding in [&[][..], off] {
            let script = [
                &[start_encrypting(name)],
                padding,
                &[Update(bytes(32, 1)), Final, Update(bytes(32, 2)), Final, Final, State],
            ]
            .concat();
            compare(name, &script);
        }
    }
}

/// The updated IV and num of a context, set in another context of either provider, restore the position.
#[test]
fn a_stream_is_resumed_from_its_updated_iv_and_num() {
    if subject_is_default("releases differ in num") {
        return;
    }
    for (algorithm, _) in all().filter(|(algorithm, _)| algorithm.mode == Mode::Stream) {
        let name = algorithm.name();
        let (key, iv) = key_and_iv(name);
        for done in [0usize, 1, 5, 15, 16, 17, 63] {
            let start = |cipher: &Cipher, iv: &[u8]| {
                let mut context = cipher.context();
                assert_eq!(context.init(Some(cipher), 1, Some(&key), Some(iv), &Params::new()), 1);
                context
            };
            let (theirs, ours) = (theirs(name), ours(name));
            let mut first = start(&theirs, &iv);
            first.update(&bytes(done, 1)).expect("encrypts");
            let updated = first.get_bytes("updated-iv", 16).expect("an IV");
            let num = first.get_number("num").expect("a number");
            let mut second = start(&ours, &updated);
            assert_eq!(second.set(&Params::new().int("num", num as i32)), 1, "{name}: num {num}");
            let rest = bytes(100, 2);
            assert_eq!(second.update(&rest), first.update(&rest), "{name} after {done} bytes");
        }
    }
}
