//! Messages that are truncated, changed, reordered or opened with the wrong key: the right error, and no output except
//! a prefix of the plaintext.

use crate::common;

use common::*;
use lockstep::{Error, FileKey, Options, Reader, Suite, decrypt, open, open_into};
use proptest::prelude::*;

const SUITE: Suite = Suite::Cobblestone256;

/// Opens a message by all functions; all must refuse it. Returns the error of the parallel stream.
fn refuse(message: &[u8], plain: &[u8]) -> Error {
    let key = key(SUITE);
    let mut first = None;
    for threads in [1, 3] {
        let mut output = Vec::new();
        let error =
            decrypt(engine(threads), &key, b"", message, &mut output, Options::default()).unwrap_err();
        assert!(error.is_authentication_failure(), "{error}");
        assert!(plain.starts_with(&output), "the output is not a prefix of the plaintext");
        let text = error.to_string();
        let before = first.get_or_insert((error, output.len()));
        assert_eq!(
            (text, output.len()),
            (before.0.to_string(), before.1),
            "depends on the number of threads"
        );
    }
    assert!(open(engine(2), &key, b"", message).unwrap_err().is_authentication_failure());
    let mut output = vec![7; plain.len() + (1 << 20)];
    assert!(open_into(engine(2), &key, b"", message, &mut output).unwrap_err().is_authentication_failure());
    let zeros = output.iter().take_while(|byte| **byte == 0).count();
    assert!(output[zeros..].iter().all(|byte| *byte == 7), "plaintext after an error");

    let random =
        Reader::open(engine(1), &key, b"", message).and_then(|reader| reader.read_range(0, u64::MAX));
    assert!(random.unwrap_err().is_authentication_failure());
    first.unwrap().0
}

#[test]
fn truncation_anywhere_in_a_small_message() {
    let plain = plaintext(100);
    let message = oracle_seal(SUITE, b"", &plain);
    for cut in 0..message.len() {
        let error = refuse(&message[..cut], &plain);
        let expected_truncated = cut < 56 + 16;
        assert_eq!(
            matches!(error, Error::Truncated { got } if got == cut as u64),
            expected_truncated,
            "{cut}"
        );
    }
}

#[test]
fn truncation_near_the_borders_of_chunks() {
    let plain = plaintext(3 * 16384 + 100);
    let message = oracle_seal(SUITE, b"", &plain);
    for border in 0..=3 {
        let border = 56 + border * 16400;
        for cut in border - 20..border + 20 {
            let error = refuse(&message[..cut], &plain);
            if cut >= border && cut < border + 16 {
                assert!(matches!(error, Error::Truncated { .. }), "{cut}: {error}");
            }
        }
    }
    // The message is truncated at the boundaries of pieces.
    let plain = plaintext(65 * 16384);
    let message = oracle_seal(SUITE, b"", &plain);
    for chunks in [31, 32, 33, 64, 65] {
        for more in [0, 1, 15] {
            let cut = 56 + chunks * 16400 + more;
            assert!(matches!(refuse(&message[..cut], &plain), Error::Truncated { got } if got == cut as u64));
        }
    }
}

#[test]
fn a_flipped_bit_in_every_byte_of_a_small_message() {
    let plain = plaintext(50);
    let message = oracle_seal(SUITE, b"", &plain);
    for at in 0..message.len() {
        let mut changed = message.clone();
        changed[at] ^= 1 << (at % 8);
        match refuse(&changed, &plain) {
            Error::WrongKeyOrContext => assert!(at < 56),
            Error::Damaged { chunk: 0 } => assert!(at >= 56),
            error => panic!("{at}: {error}"),
        }
    }
}

#[test]
fn chunks_swapped_doubled_and_dropped() {
    let plain = plaintext(40 * 16384 + 5);
    let message = oracle_seal(SUITE, b"", &plain);
    let chunks: Vec<&[u8]> = message[56..].chunks(16400).collect();
    let rebuilt = |chunks: &[&[u8]]| [&message[..56], &chunks.concat()].concat();
    assert_eq!(rebuilt(&chunks), message);
    for at in [0, 1, 30, 31, 32, 38] {
        let mut swapped = chunks.clone();
        swapped.swap(at, at + 1);
        assert!(matches!(refuse(&rebuilt(&swapped), &plain), Error::Damaged { chunk } if chunk == at as u64));
        let mut doubled = chunks.clone();
        doubled.insert(at, chunks[at]);
        assert!(
            matches!(refuse(&rebuilt(&doubled), &plain), Error::Damaged { chunk } if chunk == at as u64 + 1)
        );
        let mut dropped = chunks.clone();
        dropped.remove(at);
        assert!(matches!(refuse(&rebuilt(&dropped), &plain), Error::Damaged { chunk } if chunk == at as u64));
    }
    // Replaces a chunk by a chunk of another message that has the same key.
    let other = lockstep::seal(engine(1), &key(SUITE), b"", &plain).unwrap();
    let mut mixed = message.clone();
    mixed[56 + 16400..56 + 2 * 16400].copy_from_slice(&other[56 + 16400..56 + 2 * 16400]);
    assert!(matches!(refuse(&mixed, &plain), Error::Damaged { chunk: 1 }));
}

#[test]
fn trailing_bytes() {
    for len in [0, 10, 16383, 16384, 32 * 16384 - 1] {
        let plain = plaintext(len);
        let mut message = oracle_seal(SUITE, b"", &plain);
        for more in [1, 15, 16, 17, 16399, 16400, 16401, 40 * 16400] {
            let end = message.len();
            message.extend(plaintext(more));
            refuse(&message, &plain);
            message.truncate(end);
        }
        // A complete message follows a complete message.
        let twice = [&message[..], &message].concat();
        refuse(&twice, &plain);
    }
}

#[test]
fn wrong_key_context_and_empty_input() {
    let plain = plaintext(100);
    let message = oracle_seal(SUITE, b"context", &plain);
    let mut output = Vec::new();
    for (key, context) in [
        (FileKey::from_bytes(&[9; 32]).unwrap(), &b"context"[..]),
        (FileKey::from_bytes(&[9; 16]).unwrap(), b"context"),
        (key(SUITE), b""),
        (key(SUITE), b"Context"),
        (key(SUITE), b"context\0"),
    ] {
        let error =
            decrypt(engine(2), &key, context, &message[..], &mut output, Options::default()).unwrap_err();
        assert!(matches!(error, Error::WrongKeyOrContext), "{error}");
        assert!(error.is_authentication_failure());
        // The commitment is checked before the length: a wrong key is reported even for a truncated message.
        let error =
            decrypt(engine(2), &key, context, &message[..60], &mut output, Options::default()).unwrap_err();
        assert!(matches!(error, Error::WrongKeyOrContext), "{error}");
    }
    assert!(output.is_empty());
    assert!(matches!(refuse(&[], &[]), Error::Truncated { got: 0 }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_change_to_a_large_message_is_detected(at in 0usize..(56 + 70 * 16400 + 116), bit in 0..8u32) {
        let plain = plaintext(70 * 16384 + 100);
        let mut message = oracle_message();
        message[at] ^= 1u8 << bit;
        let mut output = Vec::new();
        let error = decrypt(engine(3), &key(SUITE), b"", &message[..], &mut output, Options::default()).unwrap_err();
        prop_assert!(plain.starts_with(&output));
        match error {
            Error::WrongKeyOrContext => prop_assert!(at < 56 && output.is_empty()),
            Error::Damaged { chunk } => prop_assert!(chunk == (at as u64 - 56) / 16400),
            error => prop_assert!(false, "{}", error),
        }
    }
}

fn oracle_message() -> Vec<u8> {
    static MESSAGE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    MESSAGE.get_or_init(|| oracle_seal(SUITE, b"", &plaintext(70 * 16384 + 100))).clone()
}
