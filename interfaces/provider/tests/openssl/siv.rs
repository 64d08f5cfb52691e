//! SIV and GCM-SIV: one update is a message. Lengths, several strings of additional data, forged messages, copies, the order of
//! calls, and errors; compared with the reference implementation, and with the default provider.
//!
//! Some calls are not compared, because the default provider accepts them: SIV with additional data after the message; GCM-SIV
//! without a key or an IV (the default provider uses zeros), with additional data after the message, or with those of the
//! previous message; and decryption without a tag.

use std::slice;

use lockstep_reference as reference;

use crate::evp::{self, DECRYPT, ENCRYPT};
use crate::harness::{bytes, library, ours, query, subject, subject_is_default};
use crate::script::Call::{self, *};
use crate::script::{Outcome, Side, compare};

const SIV: [(&str, usize); 3] = [("AES-128-SIV", 32), ("AES-192-SIV", 48), ("AES-256-SIV", 64)];
const GCM_SIV: [(&str, usize); 3] =
    [("AES-128-GCM-SIV", 16), ("AES-192-GCM-SIV", 24), ("AES-256-GCM-SIV", 32)];

/// Runs a script on the subject.
fn run(name: &str, script: &[Call]) -> Vec<Outcome> {
    let mut side = Side::new(ours(name));
    evp::clear_errors();
    script.iter().map(|call| side.run(call)).collect()
}

/// Runs a script on the subject, and also on the default provider if its release has the cipher (GCM-SIV since 3.2).
fn run_on_both(name: &str, script: &[Call]) -> Vec<Outcome> {
    if library().cipher(name, "provider=default").is_some() {
        compare(name, script)
    } else {
        run(name, script)
    }
}

/// True for releases whose default provider ignores empty updates of SIV.
fn default_ignores_empty_updates() -> bool {
    let cipher = library().cipher("AES-128-SIV", "provider=default").expect("all releases have SIV");
    let mut side = Side::new(cipher);
    [Init(ENCRYPT, Some(bytes(32, 1)), None), Update(vec![])].iter().for_each(|call| {
        side.run(call);
    });
    !side.run(&Final).ok()
}

fn init(way: i32, key: &[u8]) -> Call {
    Init(way, Some(key.to_vec()), None)
}

/// The lengths of messages: around blocks, and above the length from which the planner does the work.
fn lengths() -> impl Iterator<Item = usize> {
    (0..=66).chain([255, 256, 257, 4096, 65_537, (2 << 20) + 5])
}

#[test]
fn siv_with_strings_of_additional_data() {
    let old = default_ignores_empty_updates();
    for (name, key_len) in SIV {
        let key = bytes(key_len, 1);
        for n in lengths() {
            let data = bytes(n, n as u64);
            for strings in [vec![], vec![0], vec![13], vec![20, 0, 16], vec![1, 2, 3, 100, 5]] {
                let strings: Vec<_> = strings.into_iter().map(|len| bytes(len, len as u64)).collect();
                let has_empty = n == 0 || strings.iter().any(Vec::is_empty);
                if has_empty && old && subject() == "default" {
                    continue;
                }
                let run = if has_empty && old { run } else { run_on_both };
                let aad = || strings.iter().cloned().map(Aad);
                let (sealed, tag) =
                    reference::siv::seal(&key, &strings.iter().map(|s| &s[..]).collect::<Vec<_>>(), &data);
                for update in [Update, InPlace] {
                    let script = [init(ENCRYPT, &key)].into_iter().chain(aad()).chain([
                        update(data.clone()),
                        Final,
                        Tag(16),
                    ]);
                    let outcomes = run(name, &script.collect::<Vec<_>>());
                    let [.., made, _, tag_made] = &outcomes[..] else { unreachable!() };
                    assert!(made.out == sealed && tag_made.out == tag, "{name}: {n} bytes: {outcomes:?}");
                    let front = [init(DECRYPT, &key), SetTag(tag.to_vec())];
                    let script = front.into_iter().chain(aad()).chain([update(sealed.clone()), Final]);
                    let outcomes = run(name, &script.collect::<Vec<_>>());
                    assert!(outcomes.iter().all(Outcome::ok), "{name}: {n} bytes: {outcomes:?}");
                    assert!(outcomes[2 + strings.len()].out == data, "{name}: {n} bytes");
                }
            }
        }
    }
}

#[test]
fn forged_siv_messages_fail_at_the_update_and_at_the_end() {
    for (name, key_len) in SIV {
        let key = bytes(key_len, 1);
        for n in [1, 15, 16, 17, 40, 3 << 20] {
            let (sealed, tag) = reference::siv::seal(&key, &[b"aad"], &bytes(n, 7));
            let (mut wrong_tag, mut wrong_data) = (tag, sealed.clone());
            wrong_tag[15] ^= 1;
            wrong_data[n - 1] ^= 0x80;
            for (tag, data, aad) in
                [(wrong_tag, &sealed, &b"aad"), (tag, &wrong_data, &b"aad"), (tag, &sealed, &b"abd")]
            {
                for update in [Update, InPlace] {
                    let script = [
                        init(DECRYPT, &key),
                        SetTag(tag.to_vec()),
                        Aad(aad.to_vec()),
                        update(data.clone()),
                        Final,
                    ];
                    let outcomes = run_on_both(name, &script);
                    assert_eq!(
                        outcomes.iter().map(Outcome::ok).collect::<Vec<_>>(),
                        [true, true, true, false, false]
                    );
                }
            }
        }
    }
}

/// With this provider, each init begins a message with the key of the context, even if the init passes no key.
///
/// Releases differ, and no release encrypts a second message without setting the key again. After an init without a key, the
/// default provider continues with the additional data of the last message and refuses data; up to 3.0.19 it even
/// returns the result of the last message at the end. The scripts therefore pass the key again to the default provider.
#[test]
fn each_init_of_a_siv_context_begins_a_message() {
    if subject_is_default("releases differ in an init without a key") {
        return;
    }
    for (name, key_len) in SIV {
        let key = bytes(key_len, 2);
        for n in [1, 16, 50] {
            let (sealed, tag) = reference::siv::seal(&key, &[b"aad"], &bytes(n, 3));
            let encrypt = [Aad(b"aad".to_vec()), Update(bytes(n, 3)), Final, Tag(16)];
            let decrypt = [SetTag(tag.to_vec()), Aad(b"aad".to_vec()), Update(sealed.clone()), Final];
            let forged = [SetTag(vec![1; 16]), Aad(b"aad".to_vec()), Update(sealed.clone()), Final];
            let [none, to_encrypt, to_decrypt] = [-1, ENCRYPT, DECRYPT].map(|way| Init(way, None, None));
            // An init begins a message: after an end, without an end, after additional data alone, after a failure, and in the other
            // direction.
            let script = [
                &[init(ENCRYPT, &key)][..],
                &encrypt,
                slice::from_ref(&none),
                &encrypt,
                slice::from_ref(&to_decrypt),
                &decrypt,
                slice::from_ref(&none),
                &forged,
                slice::from_ref(&none),
                &decrypt[..3],
                slice::from_ref(&to_encrypt),
                &encrypt[..1],
                slice::from_ref(&none),
                &encrypt,
            ]
            .concat();
            let outcomes = compare(name, &script);
            // The script passes this tag to two decryptions, and three encryptions make it.
            let tags = outcomes.iter().filter(|outcome| outcome.out == tag).count();
            let texts = outcomes.iter().filter(|outcome| outcome.out == bytes(n, 3)).count();
            assert_eq!((tags, texts), (5, 2), "{name}: {n} bytes: {outcomes:?}");
            let failed = outcomes.iter().filter(|outcome| !outcome.ok()).count();
            assert_eq!(failed, 2, "the forged message: {name}: {n} bytes: {outcomes:?}");
        }
    }
}

/// The sequence of OpenSSL's own test of reused contexts (3.0.22): additional data are accepted after an init without a key, and
/// a message without data is not authentic.
#[test]
fn a_used_siv_context_accepts_additional_data_and_does_not_authenticate_without_data() {
    if subject_is_default("up to 3.0.19, it returns the result of the last message") {
        return;
    }
    let (name, key) = (SIV[0].0, bytes(32, 1));
    let (sealed, tag) = reference::siv::seal(&key, &[b"aad"], &bytes(20, 1));
    let outcomes = run(
        name,
        &[
            init(DECRYPT, &key),
            SetTag(tag.to_vec()),
            Aad(b"aad".to_vec()),
            Update(sealed),
            Final,
            Init(DECRYPT, None, None),
            SetTag(tag.to_vec()),
            Aad(bytes(14, 1)),
            Final,
        ],
    );
    let expected = [true, true, true, true, true, true, true, true, false];
    assert_eq!(outcomes.iter().map(Outcome::ok).collect::<Vec<_>>(), expected);
}

#[test]
fn a_siv_message_is_one_update() {
    let (name, key) = (SIV[1].0, bytes(48, 2));
    let data = Update(bytes(50, 3));
    compare(name, &[init(ENCRYPT, &key), data.clone(), data.clone(), data.clone()]);
    let mut script = Vec::new();
    for n in 0..5 {
        let message = [Aad(bytes(n, 9)), Update(bytes(40 * n + 1, 4)), Final, Tag(16), State];
        script.push(init(ENCRYPT, &bytes(48, n as u64)));
        script.extend(message.into_iter().skip(usize::from(n == 0)));
    }
    assert!(compare(name, &script).iter().all(Outcome::ok));
    // For measurements, one context encrypts any number of messages.
    compare(name, &[init(ENCRYPT, &key), Set("speed", 1), data.clone(), data.clone(), data.clone(), Tag(16)]);
    // Without an update there is no message.
    compare(name, &[init(ENCRYPT, &key), Final]);
    compare(name, &[init(DECRYPT, &key), SetTag(vec![1; 16]), Final]);
}

#[test]
fn the_order_of_calls_and_wrong_lengths() {
    if subject_is_default("these errors are those of this provider") {
        return;
    }
    let siv = bytes(32, 1);
    let gcm_siv = || Init(ENCRYPT, Some(bytes(16, 1)), Some(bytes(12, 2)));
    let too_many = [vec![init(ENCRYPT, &siv)], vec![Aad(vec![1]); 127]].concat();
    let scripts: Vec<(&str, &str, Vec<Call>)> = vec![
        ("AES-128-SIV", "no key", vec![Init(ENCRYPT, None, None), Aad(vec![1])]),
        ("AES-128-SIV", "additional data after", vec![init(ENCRYPT, &siv), Update(vec![1]), Aad(vec![2])]),
        ("AES-128-SIV", "tag not set", vec![init(DECRYPT, &siv), Update(vec![1; 20])]),
        ("AES-128-SIV", "invalid tag length", vec![init(DECRYPT, &siv), SetTag(vec![1; 12])]),
        ("AES-128-SIV", "there is no tag", vec![init(ENCRYPT, &siv), Tag(16)]),
        ("AES-128-SIV", "tag length", vec![init(ENCRYPT, &siv), Update(vec![1; 20]), Tag(15)]),
        ("AES-128-SIV", "126 strings", too_many),
        ("AES-128-GCM-SIV", "no key", vec![Init(ENCRYPT, None, Some(bytes(12, 1))), Update(vec![1])]),
        ("AES-128-GCM-SIV", "no key", vec![Init(ENCRYPT, None, None), Final]),
        ("AES-128-GCM-SIV", "no iv", vec![Init(ENCRYPT, Some(bytes(16, 1)), None), Update(vec![1])]),
        ("AES-128-GCM-SIV", "additional data after", vec![gcm_siv(), Update(vec![1]), Aad(vec![2])]),
        ("AES-128-GCM-SIV", "message has ended", vec![gcm_siv(), Update(vec![1]), Update(vec![2])]),
        ("AES-128-GCM-SIV", "tag length", vec![gcm_siv(), SetTag(vec![1; 12])]),
        ("AES-128-GCM-SIV", "there is no tag", vec![gcm_siv(), Tag(16)]),
        (
            "AES-128-GCM-SIV",
            "tag not set",
            vec![Init(DECRYPT, Some(bytes(16, 1)), Some(bytes(12, 2))), Update(vec![1; 20])],
        ),
    ];
    for (name, words, script) in scripts {
        let mut side = Side::new(ours(name));
        let (last, before) = script.split_last().unwrap();
        before.iter().for_each(|call| assert!(side.run(call).ok(), "{name}: {call:?} of {script:?}"));
        evp::clear_errors();
        assert!(!side.run(last).ok(), "{name}: {script:?}");
        // As in the default provider, no update and no end leaves an entry.
        let errors = evp::errors().join("; ");
        let is_silent = matches!(last, Aad(_) | Update(_) | Final);
        assert!(
            if is_silent { errors.is_empty() } else { errors.contains(words) },
            "{name}: {script:?}: {errors}"
        );
    }
}

/// False if the subject is the default provider of a release without GCM-SIV.
fn subject_has_gcm_siv() -> bool {
    library().cipher(GCM_SIV[0].0, &query()).is_some() || !subject_is_default("it has no GCM-SIV")
}

#[test]
fn gcm_siv_messages() {
    if !subject_has_gcm_siv() {
        return;
    }
    for (name, key_len) in GCM_SIV {
        let (key, nonce) = (bytes(key_len, 1), bytes(12, 2));
        for n in lengths() {
            let (data, aad) = (bytes(n, n as u64), bytes(n % 41, 5));
            let (sealed, tag) = reference::gcm_siv::seal(&key, nonce[..].try_into().unwrap(), &aad, &data);
            let init = |way| Init(way, Some(key.clone()), Some(nonce.clone()));
            let aad = || aad.chunks(16).map(|piece| Aad(piece.to_vec()));
            for update in [Update, InPlace] {
                let script = [init(ENCRYPT)].into_iter().chain(aad()).chain([
                    update(data.clone()),
                    Final,
                    Tag(16),
                    State,
                ]);
                let outcomes = run_on_both(name, &script.collect::<Vec<_>>());
                let [.., made, _, tag_made, _] = &outcomes[..] else { unreachable!() };
                assert!(made.out == sealed && tag_made.out == tag, "{name}: {n} bytes: {outcomes:?}");
                let script = [init(DECRYPT), SetTag(tag.to_vec())].into_iter();
                let script = script.chain(aad()).chain([update(sealed.clone()), Final]);
                let outcomes = run_on_both(name, &script.collect::<Vec<_>>());
                let [.., opened, end] = &outcomes[..] else { unreachable!() };
                assert!(opened.out == data && end.ok(), "{name}: {n} bytes: {outcomes:?}");
            }
        }
    }
}

#[test]
fn forged_gcm_siv_messages_fail_at_the_end_and_give_zeros() {
    if subject_is_default("it returns the plaintext of forged messages") {
        return;
    }
    for (name, key_len) in GCM_SIV {
        let (key, nonce) = (bytes(key_len, 1), bytes(12, 2));
        for n in [1, 15, 16, 17, 1000, 3 << 20] {
            let (mut sealed, mut tag) =
                reference::gcm_siv::seal(&key, nonce[..].try_into().unwrap(), &[], &bytes(n, 7));
            if n % 2 == 0 {
                tag[0] ^= 1
            } else {
                sealed[n - 1] ^= 1
            }
            for update in [Update, InPlace] {
                let start = Init(DECRYPT, Some(key.clone()), Some(nonce.clone()));
                let outcomes =
                    run(name, &[start, SetTag(tag.to_vec()), update(sealed.clone()), Final, Final]);
                assert_eq!(
                    outcomes.iter().map(Outcome::ok).collect::<Vec<_>>(),
                    [true, true, true, false, false]
                );
                assert!(outcomes[2].out == vec![0; n], "{name}: {n} bytes");
            }
        }
    }
}

#[test]
fn a_gcm_siv_context_processes_several_messages() {
    if !subject_has_gcm_siv() {
        return;
    }
    for (name, key_len) in GCM_SIV {
        let mut script = vec![Init(ENCRYPT, Some(bytes(key_len, 1)), Some(bytes(12, 1)))];
        for n in 0..5 {
            script.extend([Update(bytes(33 * n, 4)), Final, Tag(16), State]);
            // The script repeats the message, and then uses another nonce and another key.
            script.extend([Init(-1, None, None), Update(bytes(33 * n, 4)), Final, Tag(16)]);
            script.push(Init(-1, None, Some(bytes(12, n as u64))));
            script.extend([
                Update(bytes(20, 4)),
                Tag(16),
                Init(ENCRYPT, Some(bytes(key_len, n as u64)), None),
            ]);
        }
        assert!(run_on_both(name, &script).iter().all(Outcome::ok));
        let repeated = [Init(ENCRYPT, Some(bytes(key_len, 1)), Some(bytes(12, 1))), Set("speed", 1)];
        run_on_both(name, &[repeated.to_vec(), vec![Update(bytes(100, 1)); 3], vec![Tag(16)]].concat());
    }
    // Additional data belong to one message only.
    let (key, nonce) = (bytes(16, 1), bytes(12, 2));
    let start = Init(ENCRYPT, Some(key.clone()), Some(nonce.clone()));
    let once = [start.clone(), Aad(vec![5; 20]), Update(vec![6; 30]), Tag(16)];
    if !subject_is_default("it keeps additional data") {
        let twice = run(GCM_SIV[0].0, &[&once[..], &once[..]].concat());
        assert_eq!(twice[3], twice[7]);
        let empty_piece = [start, Aad(vec![5; 20]), Aad(vec![]), Update(vec![6; 30]), Tag(16)];
        assert_eq!(run(GCM_SIV[0].0, &empty_piece)[4], twice[3]);
    }
}

#[test]
fn an_empty_gcm_siv_message_needs_no_update() {
    if subject_is_default("releases differ") {
        return;
    }
    for (name, key_len) in GCM_SIV {
        let (key, nonce) = (bytes(key_len, 1), bytes(12, 2));
        let (_, tag) = reference::gcm_siv::seal(&key, nonce[..].try_into().unwrap(), b"aad", b"");
        let start = |way| Init(way, Some(key.clone()), Some(nonce.clone()));
        for middle in [vec![], vec![Update(vec![])]] {
            let script = [vec![start(ENCRYPT), Aad(b"aad".to_vec())], middle.clone(), vec![Final, Tag(16)]];
            assert_eq!(run(name, &script.concat()).last().unwrap().out, tag);
            let front = vec![start(DECRYPT), SetTag(tag.to_vec()), Aad(b"aad".to_vec())];
            assert!(run(name, &[front, middle, vec![Final]].concat()).iter().all(Outcome::ok));
        }
    }
}

#[test]
fn copies_are_independent() {
    if subject_is_default("not all releases copy these contexts") {
        return;
    }
    for (name, key_len, iv) in [("AES-256-SIV", 64, None), ("AES-256-GCM-SIV", 32, Some(bytes(12, 2)))] {
        let start = Init(ENCRYPT, Some(bytes(key_len, 1)), iv);
        let plain = [start.clone(), Aad(bytes(20, 1)), Update(bytes(35, 2)), Final, Tag(16)];
        let copied = [start, Copy, Aad(bytes(20, 1)), Copy, Update(bytes(35, 2)), Copy, Final, Tag(16)];
        let (plain, copied) = (run(name, &plain), run(name, &copied));
        assert_eq!([&plain[2], &plain[4]], [&copied[4], &copied[7]], "{name}");
    }
}
