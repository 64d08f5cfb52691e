//! OCB: IV and tag lengths, pieces of any length, setting and getting tags, copies, and errors.

use crate::evp::{DECRYPT, ENCRYPT};
use crate::harness::bytes;
use crate::script::Call::{self, *};
use crate::script::{Outcome, compare, key_and_iv, start_decrypting, start_encrypting};

const OCB: [&str; 3] = ["AES-128-OCB", "AES-192-OCB", "AES-256-OCB"];

fn key(name: &str) -> Option<Vec<u8>> {
    Some(key_and_iv(name).0)
}

/// The calls that start a message with an IV and a tag of these lengths.
fn setup(name: &str, way: i32, iv: usize, tag: i32) -> Vec<Call> {
    let lengths = [Init(way, None, None), IvLength(iv as i32), TagLength(tag)];
    [lengths.to_vec(), vec![Init(-1, key(name), Some(bytes(iv, 3)))]].concat()
}

fn sealed(name: &str, aad: &[u8], data: &[u8], iv: usize, tag: usize) -> (Vec<u8>, Vec<u8>) {
    let calls = [Aad(aad.to_vec()), Update(data.to_vec()), Final, Tag(tag as i32)];
    let outcomes = compare(name, &[setup(name, ENCRYPT, iv, tag as i32), calls.to_vec()].concat());
    let out = |at: usize| outcomes[4 + at].out.clone();
    // The buffer for the tag has 16 bytes at least.
    ([out(1), out(2)].concat(), out(3)[..tag].to_vec())
}

#[test]
fn ocb_with_every_iv_length_and_tag_length() {
    for (i, name) in OCB.into_iter().enumerate() {
        for n in 0..48 {
            let (iv, tag, len) = (1 + n % 15, 1 + n % 16, [0, 1, 15, 16, 17, 40, 64, 100][(n + i) % 8]);
            let (aad, data) = (bytes(n % 40, 5), bytes(len, 6));
            let (encrypted, made) = sealed(name, &aad, &data, iv, tag);
            for wrong in [false, true] {
                let mut made = made.clone();
                made[tag - 1] ^= u8::from(wrong);
                let calls = [SetTag(made), Aad(aad.clone()), Update(encrypted.clone()), Final, State];
                let script = [setup(name, DECRYPT, iv, tag as i32), calls.to_vec()].concat();
                let outcomes = compare(name, &script);
                assert_eq!(outcomes[7].ok(), !wrong, "{name}: {n} {outcomes:?}");
            }
        }
    }
}

#[test]
fn ocb_in_pieces_of_any_length() {
    for name in OCB {
        for n in [1, 7, 15, 16, 17, 33, 48, 255, 512, 530] {
            let pieces = |data: &[u8], call: fn(Vec<u8>) -> Call| -> Vec<Call> {
                data.chunks(n).map(|piece| call(piece.to_vec())).collect()
            };
            let (aad, data) = (bytes(100, 5), bytes(1300, 6));
            let calls =
                [pieces(&aad, Aad), pieces(&data, Update), vec![Update(vec![]), Final, Tag(16), State]];
            compare(name, &[vec![start_encrypting(name)], calls.concat()].concat());
            let whole: Vec<_> = data.chunks(16 * n).map(|piece| InPlace(piece.to_vec())).collect();
            compare(name, &[vec![start_encrypting(name)], whole, vec![Final, Tag(16)]].concat());
        }
        // Additional data between and after the data.
        let calls = [start_encrypting(name), Update(bytes(33, 1)), Aad(bytes(20, 2)), Update(bytes(9, 3))];
        compare(name, &[calls.to_vec(), vec![Aad(bytes(3, 4)), Final, Tag(16)]].concat());
    }
}

#[test]
fn ocb_refuses_other_iv_and_tag_lengths() {
    let name = OCB[0];
    for n in (0..=20).chain([-1, 1000]) {
        for way in [ENCRYPT, DECRYPT] {
            compare(name, &[Init(way, None, None), IvLength(n), State]);
        }
        // The default provider accepts a tag length of 0, with which no message can be started.
        if n != 0 {
            compare(name, &[Init(ENCRYPT, None, None), TagLength(n), State]);
        }
        let script = [start_encrypting(name), Update(bytes(20, 1)), Final, Tag(n)];
        if n != 0 {
            compare(name, &script);
        }
    }
    for n in 1..=17 {
        compare(name, &[start_decrypting(name), SetTag(bytes(n, 1)), Update(bytes(20, 1)), Final]);
        compare(name, &[start_encrypting(name), SetTag(bytes(n, 1))]);
    }
}

#[test]
fn an_ocb_context_processes_several_messages() {
    for name in OCB {
        let (key, iv) = key_and_iv(name);
        let mut script = vec![start_encrypting(name)];
        for n in 0..4 {
            script.extend([Aad(bytes(n, 7)), Update(bytes(30 * n, 8)), Final, Tag(16), State]);
            // The message has ended: only a new IV starts another one.
            script.extend([Update(bytes(5, 9)), Final, Init(-1, None, Some(bytes(12, n as u64)))]);
        }
        script.extend([Init(ENCRYPT, Some(bytes(key.len(), 3)), None), Update(bytes(20, 1)), Final, Tag(16)]);
        compare(name, &script);
        // A message is abandoned for another one.
        let calls =
            [Update(bytes(21, 1)), Init(-1, None, Some(iv.clone())), Update(bytes(40, 2)), Final, Tag(16)];
        compare(name, &[vec![start_encrypting(name)], calls.to_vec()].concat());
    }
}

#[test]
fn ocb_copies_are_independent() {
    for name in OCB {
        let script = [
            start_encrypting(name),
            Aad(bytes(20, 1)),
            Copy,
            Update(bytes(35, 2)),
            Copy,
            Update(bytes(30, 3)),
            Final,
            Copy,
            Tag(16),
        ];
        assert!(compare(name, &script).iter().all(Outcome::ok));
    }
}

#[test]
fn ocb_without_a_key_or_an_iv_does_nothing() {
    for name in OCB {
        let iv = Some(key_and_iv(name).1);
        for start in [Init(ENCRYPT, None, None), Init(ENCRYPT, key(name), None), Init(ENCRYPT, None, iv)] {
            compare(name, &[start.clone(), Aad(bytes(5, 1)), Update(bytes(20, 1)), Final]);
            compare(name, &[start, Final]);
        }
    }
}
