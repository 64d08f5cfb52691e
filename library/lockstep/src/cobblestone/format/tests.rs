use super::*;
use proptest::prelude::*;

#[test]
fn the_examples_of_the_specification() {
    assert_eq!(ciphertext_len(0).unwrap(), 56 + 16);
    assert_eq!(ciphertext_len(1024).unwrap(), 56 + 1024 + 16);
    assert_eq!(ciphertext_len(16384).unwrap(), 56 + 16400 + 16);
    assert_eq!(ciphertext_len(20 * 1024).unwrap(), 56 + 16400 + 4096 + 16);
}

#[test]
fn impossible_lengths_are_refused() {
    for len in [0, 1, 55, 56, 57, 71, 56 + 16400, 56 + 16400 + 15, 56 + 2 * 16400] {
        assert!(matches!(plaintext_len(len), Err(Error::Truncated { got }) if got == len), "{len}");
    }
}

#[test]
fn the_limit() {
    let longest = ciphertext_len(MAX_PLAINTEXT).unwrap();
    assert_eq!(MAX_PLAINTEXT, (1 << 52) - 1);
    assert_eq!(longest, 56 + (1 << 38) * 16400 - 1);
    assert_eq!(plaintext_len(longest).unwrap(), MAX_PLAINTEXT);
    assert!(matches!(ciphertext_len(MAX_PLAINTEXT + 1), Err(Error::TooLong)));
    assert!(matches!(ciphertext_len(u64::MAX), Err(Error::TooLong)));
    assert!(matches!(plaintext_len(longest + 1), Err(Error::Truncated { .. })));
    assert!(matches!(plaintext_len(longest + 17), Err(Error::TooLong)));
    assert!(matches!(plaintext_len(u64::MAX), Err(Error::TooLong)));
    assert!(check_full_chunks(MAX_CHUNKS - 1).is_ok());
    assert!(check_full_chunks(MAX_CHUNKS).is_err());
}

/// Compares the computed lengths with a sum over the chunks, for every plaintext of up to three chunks.
#[test]
fn lengths_of_up_to_three_chunks() {
    let mut cipher_len = HEADER as u64;
    let mut next = 0;
    for plain in 0..=3 * CHUNK as u64 {
        // The message consists of full chunks and of the last one, which is not full.
        let (mut rest, mut expected) = (plain, HEADER as u64);
        while rest >= CHUNK as u64 {
            (rest, expected) = (rest - CHUNK as u64, expected + ENCRYPTED_CHUNK as u64);
        }
        expected += rest + TAG as u64;
        assert_eq!(ciphertext_len(plain).unwrap(), expected);
        assert_eq!(plaintext_len(expected).unwrap(), plain);
        // No message has a length between the lengths that belong to two successive plaintexts.
        for missing in next..expected {
            assert!(matches!(plaintext_len(missing), Err(Error::Truncated { got }) if got == missing));
        }
        (cipher_len, next) = (expected, expected + 1);
    }
    assert_eq!(cipher_len, chunk_offset(3) + TAG as u64);
}

proptest! {
    #[test]
    fn lengths_are_inverse(plain in 0..=MAX_PLAINTEXT) {
        prop_assert_eq!(plaintext_len(ciphertext_len(plain).unwrap()).unwrap(), plain);
    }

    #[test]
    fn a_length_is_refused_or_round_trips(cipher: u64) {
        if let Ok(plain) = plaintext_len(cipher) {
            prop_assert_eq!(ciphertext_len(plain).unwrap(), cipher);
        }
    }
}
