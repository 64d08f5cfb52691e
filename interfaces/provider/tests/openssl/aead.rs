//! GCM and CCM: IV and tag lengths, additional data, setting and getting tags, and errors.

use crate::evp::{DECRYPT, ENCRYPT};
use crate::harness::{bytes, ours, subject_is_default};
use crate::libcrypto::*;
use crate::script::Call::*;
use crate::script::{Call, Outcome, Side, compare, key_and_iv, start_decrypting, start_encrypting};

const GCM: [&str; 3] = ["AES-128-GCM", "AES-192-GCM", "AES-256-GCM"];
const CCM: [&str; 3] = ["AES-128-CCM", "AES-192-CCM", "AES-256-CCM"];

fn key(name: &str) -> Option<Vec<u8>> {
    Some(key_and_iv(name).0)
}

/// Encrypts with GCM; returns the ciphertext and the tag.
fn gcm_encrypted(name: &str, aad: &[u8], data: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let script = [start_encrypting(name), Aad(aad.to_vec()), Update(data.to_vec()), Final, Tag(16)];
    let mut outcomes = compare(name, &script);
    (outcomes.remove(2).out, outcomes.pop().unwrap().out)
}

#[test]
fn gcm_supports_ivs_of_every_length() {
    for name in GCM {
        for n in (0..=130).chain([1024, -1]) {
            let iv = bytes(n.clamp(1, 128) as usize, 3);
            for way in [ENCRYPT, DECRYPT] {
                let outcomes = compare(name, &[Init(way, None, None), IvLength(n)]);
                assert_eq!(outcomes[1].ok(), (1..=128).contains(&n), "{name}: {n}");
                if outcomes[1].ok() {
                    compare(
                        name,
                        &[
                            Init(way, None, None),
                            IvLength(n),
                            Init(-1, key(name), Some(iv.clone())),
                            State,
                            Aad(bytes(13, 1)),
                            Update(bytes(100, 2)),
                            State,
                        ],
                    );
                }
            }
        }
    }
}

#[test]
fn gcm_returns_tags_of_every_length() {
    for n in 0..=20 {
        let name = GCM[n as usize % 3];
        compare(
            name,
            &[start_encrypting(name), Aad(bytes(7, 1)), Update(bytes(50, 2)), Final, Tag(n), Tag(n)],
        );
    }
}

#[test]
fn gcm_compares_the_number_of_tag_bytes_that_were_set() {
    let (encrypted, tag) = gcm_encrypted(GCM[0], b"aad", &bytes(50, 2));
    for n in 0..=16 {
        for wrong_at in (0..n).map(Some).chain([None]) {
            let mut tag = tag[..n].to_vec();
            if let Some(at) = wrong_at {
                tag[at] ^= 0x80;
            }
            let script =
                [start_decrypting(GCM[0]), SetTag(tag), Aad(b"aad".into()), Update(encrypted.clone()), Final];
            let outcomes = compare(GCM[0], &script);
            assert_eq!(outcomes[4].ok(), n > 0 && wrong_at.is_none(), "{n} {wrong_at:?}");
        }
    }
    compare(GCM[0], &[start_decrypting(GCM[0]), SetTag(bytes(17, 1))]);
}

#[test]
fn gcm_accepts_the_tag_at_any_time_before_final() {
    for name in GCM {
        let (encrypted, tag) = gcm_encrypted(name, b"aad", &bytes(50, 2));
        let (init, tag, aad, data) =
            (start_decrypting(name), SetTag(tag), Aad(b"aad".into()), Update(encrypted.clone()));
        for script in [
            [init.clone(), tag.clone(), aad.clone(), data.clone(), Final],
            [init.clone(), aad.clone(), tag.clone(), data.clone(), Final],
            [init, aad, data, tag, Final],
        ] {
            assert!(compare(name, &script).iter().all(Outcome::ok));
        }
    }
}

#[test]
fn gcm_with_additional_data_only_with_none_with_nothing_and_in_pieces() {
    for name in GCM {
        let whole = compare(
            name,
            &[start_encrypting(name), Aad(bytes(1000, 5)), Update(bytes(99, 6)), Final, Tag(16)],
        );
        for n in [1, 5, 15, 16, 17, 100, 999] {
            let mut script = vec![start_encrypting(name)];
            script.extend(bytes(1000, 5).chunks(n).map(|piece| Aad(piece.to_vec())));
            script.extend([Aad(vec![]), Update(bytes(99, 6)), Final, Tag(16)]);
            assert_eq!(compare(name, &script).last(), whole.last());
        }
        for n in [0, 1, 15, 16, 17, 31, 33, 70_000] {
            compare(name, &[start_encrypting(name), Aad(bytes(n, 7)), Final, Tag(16)]);
            compare(name, &[start_encrypting(name), Aad(bytes(n, 7)), Update(vec![]), Final, Tag(16)]);
        }
        compare(name, &[start_encrypting(name), Final, Tag(16)]);
        compare(name, &[start_encrypting(name), Update(bytes(20, 8)), Final, Tag(16)]);
    }
}

#[test]
fn gcm_refuses_calls_out_of_order() {
    for name in GCM {
        let (init, data) = (start_encrypting(name), Update(bytes(20, 1)));
        let aad = Aad(bytes(20, 1));
        let again: &[&[Call]] = &[
            // The tag is requested before the end, with and without data.
            &[init.clone(), Tag(16), data.clone(), Tag(16), Final, Tag(16)],
            // Additional data are passed after data.
            &[init.clone(), data.clone(), aad.clone()],
            // Calls after the end of the message.
            &[init.clone(), data.clone(), Final, data.clone()],
            &[init.clone(), data.clone(), Final, aad.clone()],
            &[init.clone(), data.clone(), Final, Final],
            // A second message under the same IV.
            &[init.clone(), data.clone(), Final, Init(-1, None, None), data.clone()],
            &[init.clone(), data.clone(), Final, Init(-1, key(name), None), data.clone()],
            // Messages without a key, decryption without an IV, and messages without both.
            &[Init(1, None, Some(bytes(12, 1))), data.clone()],
            &[Init(0, key(name), None), data.clone()],
            &[Init(1, None, None), Final],
            &[Init(1, None, None), Tag(16)],
            // A tag is set for encryption; the tag of a decryption is requested; a decryption ends without a tag.
            &[init.clone(), SetTag(bytes(16, 1))],
            &[start_decrypting(name), data.clone(), Tag(16)],
            &[start_decrypting(name), data.clone(), Final],
        ];
        again.iter().for_each(|script| drop(compare(name, script)));
        // A new IV length requires a new IV. The default provider of 3.0.2 continues with the old IV instead.
        if !subject_is_default("releases differ in IV lengths under an IV") {
            let mut side = Side::new(ours(name));
            assert!(side.run(&init).ok() && side.run(&IvLength(13)).ok());
            assert!(!side.run(&data).ok(), "{name}: data without an IV of the new length");
        }
    }
}

#[test]
fn gcm_by_one_shot_calls() {
    for name in GCM {
        for n in [1, 16, 100, 5000] {
            let outcomes = compare(
                name,
                &[start_encrypting(name), Aad(bytes(9, 1)), Cipher(bytes(n, 2)), CipherEnd, Tag(16)],
            );
            let (encrypted, tag) = (outcomes[2].out.clone(), outcomes[4].out.clone());
            let open = [start_decrypting(name), Aad(bytes(9, 1)), SetTag(tag), Cipher(encrypted), CipherEnd];
            assert_eq!(compare(name, &open)[3].out, bytes(n, 2));
        }
    }
}

/// The calls that prepare a CCM context for a message.
fn ccm_setup(name: &str, way: i32, iv: usize, tag: Call) -> Vec<Call> {
    vec![Init(way, None, None), IvLength(iv as i32), tag, Init(-1, key(name), Some(bytes(iv, 2)))]
}

#[test]
fn ccm_with_every_iv_length_tag_length_and_shape_of_message() {
    for (i, name) in CCM.into_iter().enumerate() {
        for iv in 7..=13 {
            for tag in [4, 6, 8, 10, 12, 14, 16] {
                for (aad, n) in [(0, 0), (0, 33), (13, 0), (20, 16), (700, 1000 + i)] {
                    let aad = if aad == 0 { vec![] } else { vec![Aad(bytes(aad, 3))] };
                    let script = [
                        ccm_setup(name, ENCRYPT, iv, TagLength(tag)),
                        vec![Length(n)],
                        aad.clone(),
                        vec![Update(bytes(n, 4)), State, Final, Tag(tag)],
                    ];
                    let outcomes = compare(name, &script.concat());
                    assert!(outcomes.iter().all(Outcome::ok), "{name} {iv} {tag} {n}: {outcomes:?}");
                    let encrypted = outcomes[outcomes.len() - 4].out.clone();
                    let sealed_tag = outcomes.last().unwrap().out[..tag as usize].to_vec();
                    for wrong in [false, true] {
                        let mut tag = sealed_tag.clone();
                        tag[0] ^= u8::from(wrong);
                        let script = [
                            ccm_setup(name, DECRYPT, iv, SetTag(tag)),
                            vec![Length(n)],
                            aad.clone(),
                            vec![Update(encrypted.clone())],
                        ];
                        let outcomes = compare(name, &script.concat());
                        assert_eq!(outcomes.last().unwrap().ok(), !wrong, "{name} {iv} {n}");
                    }
                }
            }
        }
    }
}

/// The lengths may be set after the key. The default provider (3.0.2, 3.0.19 and 4.0.3) then still uses the lengths that were set before
/// the key: it encrypts with the first bytes of the nonce, and returns no tag of the other length.
#[test]
fn ccm_lengths_may_be_set_after_the_key() {
    if subject_is_default("it uses the lengths from before the key") {
        return;
    }
    for name in CCM {
        let [key, nonce] = [Init(-1, key(name), None), Init(-1, None, Some(bytes(12, 2)))];
        let message = [Update(bytes(50, 1)), Tag(16)];
        let run = |before: &[Call]| {
            let mut side = Side::new(ours(name));
            let calls = [&[Init(ENCRYPT, None, None)], before, &message].concat();
            calls.iter().map(|call| side.run(call)).skip(calls.len() - 2).collect::<Vec<_>>()
        };
        let expected =
            compare(name, &[ccm_setup(name, ENCRYPT, 12, TagLength(16)), message.to_vec()].concat());
        let [length, tag] = [IvLength(12), TagLength(16)];
        for before in [
            [key.clone(), length.clone(), tag.clone(), nonce.clone()],
            [length.clone(), key.clone(), nonce.clone(), tag.clone()],
            [tag, key, length, nonce],
        ] {
            assert!(run(&before) == expected[expected.len() - 2..], "{name}: {before:?}");
        }
    }
}

#[test]
fn ccm_refuses_other_iv_and_tag_lengths() {
    for n in -1..=20 {
        for way in [ENCRYPT, DECRYPT] {
            let name = CCM[0];
            compare(name, &[Init(way, None, None), IvLength(n), State]);
            compare(name, &[Init(way, None, None), Control(EVP_CTRL_CCM_SET_L, n, vec![0; 1]), State]);
            if n >= 0 {
                compare(name, &[Init(way, None, None), TagLength(n), State]);
                compare(name, &[Init(way, None, None), SetTag(bytes(n as usize, 1))]);
                let mut script = ccm_setup(name, ENCRYPT, 12, TagLength(16));
                script.extend([Update(bytes(20, 1)), Tag(n)]);
                compare(name, &script);
            }
        }
    }
}

#[test]
fn ccm_without_a_set_length_uses_that_of_the_data() {
    for name in CCM {
        for n in [0, 1, 16, 100, 70_000] {
            let mut script = ccm_setup(name, ENCRYPT, 12, TagLength(16));
            script.extend([Update(bytes(n, 1)), Tag(16)]);
            compare(name, &script);
        }
        // The default lengths: an IV of 7, a tag of 12 bytes.
        compare(name, &[start_encrypting(name), InPlace(bytes(100, 1)), Final, Tag(12)]);
    }
}

#[test]
fn ccm_refuses_calls_out_of_order() {
    for name in CCM {
        let after_setup = |way, tag, calls: &[Call]| {
            compare(name, &[ccm_setup(name, way, 12, tag), calls.to_vec()].concat());
        };
        // Three cases fail: additional data before the length is set, data of another length than was set, and the request of the
        // tag before the data.
        after_setup(ENCRYPT, TagLength(16), &[Aad(bytes(20, 1))]);
        after_setup(ENCRYPT, TagLength(16), &[Length(20), Aad(bytes(20, 1)), Update(bytes(19, 1))]);
        after_setup(ENCRYPT, TagLength(16), &[Length(20), Update(bytes(21, 1))]);
        after_setup(ENCRYPT, TagLength(16), &[Tag(16)]);
        after_setup(ENCRYPT, TagLength(16), &[Length(20), Tag(16)]);
        after_setup(ENCRYPT, TagLength(16), &[Update(bytes(20, 1)), Tag(16), Tag(16)]);
        after_setup(ENCRYPT, TagLength(16), &[Update(bytes(20, 1)), Tag(16), Update(bytes(20, 1))]);
        after_setup(ENCRYPT, SetTag(bytes(16, 1)), &[]);
        // Decryption fails without a tag, and after its end.
        after_setup(DECRYPT, TagLength(16), &[Update(bytes(20, 1))]);
        compare(name, &[Init(1, None, None), Update(bytes(20, 1))]);
        compare(name, &[Init(1, None, Some(bytes(7, 1))), Update(bytes(20, 1))]);
        compare(name, &[Init(1, key(name), None), Update(bytes(20, 1))]);
    }
}

#[test]
fn a_ccm_context_processes_several_messages() {
    for name in CCM {
        let mut script = ccm_setup(name, ENCRYPT, 12, TagLength(16));
        for n in 0..40usize {
            script.push(Init(-1, None, Some(bytes(12, n as u64))));
            script.extend([Length(n * 7), Aad(bytes(n + 1, 5)), Update(bytes(n * 7, 6)), Tag(16)]);
        }
        assert!(compare(name, &script).iter().all(Outcome::ok));
    }
}

#[test]
fn ccm_copies_are_independent() {
    for name in CCM {
        // A context is not copied after its additional data, because in some versions of the default provider, the copy shares the state
        // of the additional data with the original.
        let mut script = ccm_setup(name, ENCRYPT, 12, TagLength(16));
        script.extend([Copy, Update(bytes(50, 1)), Copy, Tag(16)]);
        assert!(compare(name, &script).iter().all(Outcome::ok));
    }
}
