//! CBC with ciphertext stealing: all variants and lengths, the parameter `cts_mode`, and the order of calls.
//!
//! Some calls are not tested, because the result of the default provider is accidental: data without a key (it crashes),
//! another direction without a new key (it uses the wrong key schedule), and EVP_Cipher with a partial block (it reads
//! beyond the input). EVP_Cipher with whole blocks is plain CBC in every variant.

use std::ptr::{null, null_mut};

use proptest::prelude::*;

use crate::evp::{Cipher, DECRYPT, ENCRYPT, Params};
use crate::harness::{ALGORITHMS, Mode, bytes, ours, subject_is_default, theirs};
use crate::script::Call::*;
use crate::script::{
    Call, Side, compare, compare_until_failure, key_and_iv, start, start_decrypting, start_encrypting,
};

const VARIANTS: [&str; 3] = ["CS1", "CS2", "CS3"];

fn names() -> impl Iterator<Item = &'static str> {
    ALGORITHMS.iter().filter(|algorithm| algorithm.mode == Mode::Cts).map(|algorithm| algorithm.name())
}

/// Encrypts and decrypts a message on both providers; the decryption must return the message.
fn round_trip(name: &str, variant: &'static str, data: &[u8], call: fn(Vec<u8>) -> Call) {
    let mode = SetText("cts_mode", variant);
    let sealed =
        compare(name, &[start_encrypting(name), mode.clone(), call(data.to_vec()), State, Final, State]);
    let sealed = sealed[2].out.clone();
    assert_eq!(sealed.len(), data.len(), "{name} {variant}");
    let opened = compare(name, &[start_decrypting(name), mode, call(sealed), State, Final, State]);
    assert!(opened[2].out == data, "{name} {variant}: {} bytes", data.len());
}

#[test]
fn messages_of_every_length_in_every_variant() {
    for name in names() {
        for variant in VARIANTS {
            for n in (16..=100).chain([255, 256, 257, 4095, 4096, 4097, 65_537]) {
                round_trip(name, variant, &bytes(n, n as u64), Update);
                round_trip(name, variant, &bytes(n, n as u64), InPlace);
            }
        }
    }
}

/// Messages longer than this are processed by the planner.
#[test]
fn large_messages() {
    for variant in VARIANTS {
        for n in [4 << 20, (4 << 20) + 1, (4 << 20) + 31] {
            round_trip("AES-256-CBC-CTS", variant, &bytes(n, 5), Update);
            round_trip("AES-256-CBC-CTS", variant, &bytes(n, 5), InPlace);
        }
    }
}

#[test]
fn less_than_a_block_is_refused() {
    for name in names() {
        for variant in VARIANTS {
            for way in [ENCRYPT, DECRYPT] {
                for n in [0, 1, 15] {
                    let mode = SetText("cts_mode", variant);
                    compare(
                        name,
                        &[start(name, way), mode, Update(bytes(n, 1)), Update(bytes(20, 1)), Final],
                    );
                }
            }
        }
    }
}

#[test]
fn a_message_is_one_update() {
    for name in names() {
        for way in [ENCRYPT, DECRYPT] {
            let again = Init(-1, None, None);
            compare(
                name,
                &[
                    start(name, way),
                    Update(bytes(40, 1)),
                    Update(bytes(40, 2)),
                    State,
                    Final,
                    Update(bytes(40, 3)),
                    again.clone(),
                    State,
                    Update(bytes(50, 4)),
                    Copy,
                    Update(bytes(50, 4)),
                    again,
                    Copy,
                    Update(bytes(51, 5)),
                    Init(-1, None, Some(vec![3; 16])),
                    Update(bytes(51, 5)),
                    State,
                ],
            );
        }
    }
}

#[test]
fn the_variant_stays_through_a_reinit_and_in_a_copy() {
    for name in names() {
        compare(
            name,
            &[
                start_encrypting(name),
                SetText("cts_mode", "CS3"),
                Copy,
                Update(bytes(48, 1)),
                Init(-1, None, None),
                Update(bytes(48, 1)),
                SetText("cts_mode", "CS1"),
                Init(-1, None, None),
                Update(bytes(48, 1)),
                start_decrypting(name),
                Update(bytes(33, 1)),
            ],
        );
    }
}

#[test]
fn names_of_variants() {
    for name in names() {
        for text in ["CS1", "cs2", "Cs3", "CS4", "", "CS", "CS11", "cts"] {
            let run = |cipher: Cipher| {
                let mut context = cipher.context();
                let (key, iv) = key_and_iv(name);
                assert_eq!(context.init(Some(&cipher), ENCRYPT, Some(&key), Some(&iv), &Params::new()), 1);
                let before = context.get_text("cts_mode", 4);
                let returned = context.set(&Params::new().string("cts_mode", text));
                let rooms = [0, 2, 3, 4, 5, 20].map(|room| context.get_text("cts_mode", room));
                let others = [
                    context.set(&Params::new().number("cts_mode", 1)),
                    context.set(&Params::new().bytes("cts_mode", b"CS1")),
                ];
                (before, returned, rooms, others, context.update(&bytes(48, 1)))
            };
            assert_eq!(run(ours(name)), run(theirs(name)), "{name}: {text:?}");
        }
    }
}

/// The variant in the parameters of an init. Some releases of 3.0 ignore it there.
#[test]
fn an_init_sets_the_variant() {
    if subject_is_default("releases differ in cts_mode at init") {
        return;
    }
    let name = "AES-128-CBC-CTS";
    let (key, iv) = key_and_iv(name);
    for variant in VARIANTS {
        let cipher = ours(name);
        let mut context = cipher.context();
        let params = Params::new().string("cts_mode", variant);
        assert_eq!(context.init(Some(&cipher), ENCRYPT, Some(&key), Some(&iv), &params), 1);
        let mode = SetText("cts_mode", variant);
        let expected = compare(name, &[start_encrypting(name), mode, Update(bytes(48, 1))]);
        assert_eq!(context.update(&bytes(48, 1)), Some(expected[2].out.clone()), "{variant}");
    }
}

#[test]
fn a_null_output_is_a_query_of_the_length() {
    for name in names() {
        for way in [ENCRYPT, DECRYPT] {
            for n in [0, 1, 15, 16, 17, 100] {
                let run = |cipher: Cipher| {
                    let mut side = Side::new(cipher);
                    assert!(side.run(&start(name, way)).ok());
                    let (data, mut out) = (bytes(n, 1), Vec::new());
                    for from in [data.as_ptr(), null()] {
                        let mut written = -1;
                        let returned = side.context.update_raw(null_mut(), &mut written, from, n);
                        out.push((returned, written));
                    }
                    // The query does not count as the update.
                    (out, side.run(&Update(data)))
                };
                assert_eq!(run(ours(name)), run(theirs(name)), "{name}: {n} bytes");
            }
        }
    }
}

/// Only whole blocks are tested (see the comment of this module). A message may use both an update and EVP_Cipher.
#[test]
fn evp_cipher_is_plain_cbc() {
    for name in names() {
        for way in [ENCRYPT, DECRYPT] {
            for variant in VARIANTS {
                compare(
                    name,
                    &[
                        start(name, way),
                        SetText("cts_mode", variant),
                        Cipher(bytes(48, 1)),
                        State,
                        Cipher(bytes(16, 2)),
                        Update(bytes(40, 3)),
                        Cipher(bytes(32, 4)),
                        CipherEnd,
                        State,
                    ],
                );
            }
        }
    }
}

#[test]
fn padding_and_tls_parameters_have_no_effect_on_updates() {
    for name in names() {
        for set in [Padding(false), Set("tls-version", 0x303), Set("tls-mac-size", 20), Set("use-bits", 1)] {
            compare(name, &[start_encrypting(name), set, Update(bytes(45, 1)), State, Final]);
        }
    }
}

/// As in the default provider, an update that is refused leaves no entry on the error queue.
#[test]
fn refusals() {
    let name = "AES-128-CBC-CTS";
    for refused in [
        vec![start_encrypting(name), Update(bytes(15, 1))],
        vec![start_encrypting(name), Update(bytes(20, 1)), Update(bytes(20, 1))],
        vec![start_encrypting(name), SetText("cts_mode", "CS4")],
        vec![start_encrypting(name), Set("cts_mode", 1)],
    ] {
        assert!(!compare(name, &refused).last().unwrap().ok(), "{refused:?}");
    }
}

fn call(name: &'static str) -> impl Strategy<Value = Call> {
    let data = |n: std::ops::Range<usize>| (n, any::<u64>()).prop_map(|(n, seed)| bytes(n, seed));
    let iv = prop::option::of(any::<u64>().prop_map(|seed| bytes(16, seed)));
    let key = prop::option::of(any::<u64>().prop_map(move |seed| bytes(key_and_iv(name).0.len(), seed)));
    prop_oneof![
        6 => data(0..200).prop_map(Update),
        2 => data(16..5000).prop_map(InPlace),
        1 => data(0..9).prop_map(|data| Cipher(data.repeat(16))),
        4 => (0..=1, key, iv).prop_map(|(way, key, iv)| Init(if key.is_some() { way } else { -1 }, key, iv)),
        3 => prop::sample::select(&VARIANTS[..]).prop_map(|variant| SetText("cts_mode", variant)),
        1 => Just(Final),
        2 => Just(State),
        2 => Just(Copy),
    ]
}

#[test]
fn any_script() {
    let config = ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() };
    let name = prop::sample::select(names().collect::<Vec<_>>());
    let script = name.prop_flat_map(|name| (Just(name), 0..=1, prop::collection::vec(call(name), 1..14)));
    proptest!(config, |((name, way, calls) in script)| {
        compare_until_failure(name, &[vec![start(name, way)], calls].concat());
    });
}
