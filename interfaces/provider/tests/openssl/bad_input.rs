//! Bad input: calls fail, and no call crashes. If the default provider leaves an entry on the error queue, this provider leaves one too,
//! and the entry describes the problem.

use std::ptr::{null, null_mut};

use crate::evp::{self, DECRYPT, ENCRYPT};
use crate::harness::{ALGORITHMS, Algorithm, Mode, bytes, ours, subject_is_default};
use crate::libcrypto::*;
use crate::script::Call::*;
use crate::script::{Call, Side, compare, key_and_iv, start, start_decrypting, start_encrypting};

/// Checks that an entry of the queue contains one of `words`, and that all entries have a text. An empty queue is accepted here, because
/// the scripts compare the queues of both providers. The entries of the default provider are not checked.
fn has_reason(what: &str, words: &[&str]) {
    let errors = evp::errors();
    if crate::harness::subject() == "default" || errors.is_empty() {
        return;
    }
    let text = errors.join("; ").to_lowercase();
    assert!(!text.contains("no reason"), "{what}: an error without a text: {errors:?}");
    assert!(
        words.iter().any(|word| text.contains(word)),
        "{what}: {errors:?} does not contain any of {words:?}"
    );
}

/// A script whose last call fails on both providers, with a reason that contains one of the words.
fn refused(name: &str, words: &[&str], script: &[Call]) {
    refused_by_subject(name, words, script);
    compare(name, script);
}

/// A script whose last call fails on this provider.
fn refused_by_subject(name: &str, words: &[&str], script: &[Call]) {
    let mut side = Side::new(ours(name));
    let (last, before) = script.split_last().unwrap();
    for call in before {
        assert!(side.run(call).ok(), "{name}: {call:?} of {script:?}: {:?}", evp::errors());
    }
    evp::clear_errors();
    assert!(!side.run(last).ok(), "{name}: {script:?} was accepted");
    has_reason(&format!("{name}: {script:?}"), words);
}

fn of(mode: Mode) -> impl Iterator<Item = &'static str> {
    ALGORITHMS.iter().filter(move |algorithm| algorithm.mode == mode).map(Algorithm::name)
}

#[test]
fn wrong_key_lengths() {
    for algorithm in ALGORITHMS {
        refused(algorithm.name(), &["key length"], &[Init(1, None, None), KeyLength(17)]);
    }
    for name in of(Mode::Xts) {
        refused(name, &["key length"], &[Init(1, None, None), Set("keylen", 17)]);
    }
}

#[test]
fn wrong_iv_lengths() {
    for name in of(Mode::Gcm) {
        for n in [0, 129, 100_000] {
            refused(name, &["iv length"], &[Init(1, None, None), IvLength(n)]);
        }
    }
    for name in of(Mode::Ccm) {
        for n in [0, 1, 6, 14, 15, 16, 100_000] {
            refused(name, &["iv length"], &[Init(1, None, None), IvLength(n)]);
        }
    }
}

#[test]
fn data_with_a_partial_block_without_padding() {
    for name in of(Mode::Ecb).chain(of(Mode::Cbc)) {
        for way in [ENCRYPT, DECRYPT] {
            for n in [1, 15, 17, 33] {
                let script = [start(name, way), Padding(false), Update(bytes(n, 1)), Final];
                refused(name, &["block length"], &script);
            }
        }
        // With padding, the end refuses a ciphertext that is truncated or empty.
        for n in [1, 17] {
            refused(name, &["block length"], &[start_decrypting(name), Update(bytes(n, 1)), Final]);
        }
        refused(name, &["block length"], &[start_decrypting(name), Final]);
    }
}

#[test]
fn wrong_padding() {
    for name in of(Mode::Ecb).chain(of(Mode::Cbc)) {
        for wrong in [[0; 16], [17; 16], [255; 16]] {
            let seal = [start_encrypting(name), Padding(false), Update(wrong.into())];
            let encrypted = compare(name, &seal).pop().unwrap().out;
            refused(name, &["bad decrypt"], &[start_decrypting(name), Update(encrypted), Final]);
        }
    }
}

/// Some failures leave an entry on the error queue in newer releases only. With every release, this provider leaves the entry that 4.0.3
/// leaves. The failures are: setting the tag of OCB, which leaves no entry in 3.0.2; the end of a decryption by GCM or CCM without a tag,
/// which leaves none in 3.0.2 and 3.0.19; and the update of such a decryption by CCM, which leaves no entry for the missing tag in 3.0.2
/// and 3.0.19.
#[test]
fn failures_that_only_newer_releases_report() {
    if subject_is_default("releases differ") {
        return;
    }
    let entries = |name: &str, script: &[Call]| {
        let mut side = Side::new(ours(name));
        evp::clear_errors();
        assert!(!script.iter().map(|call| side.run(call)).last().unwrap().ok(), "{name}: {script:?}");
        evp::take_queue().iter().map(|entry| (entry.lib, entry.reason)).collect::<Vec<_>>()
    };
    let ocb = |way, call: Call| entries("AES-128-OCB", &[start("AES-128-OCB", way), call]);
    assert_eq!(ocb(ENCRYPT, SetTag(vec![0; 16])), [(57, 2 << 18 | 262)]);
    assert_eq!(ocb(DECRYPT, SetTag(vec![0; 15])), [(57, 118)]);
    assert_eq!(ocb(DECRYPT, TagLength(17)), [(57, 118)]);
    for name in of(Mode::Gcm) {
        assert_eq!(entries(name, &[start_decrypting(name), Update(bytes(40, 1)), Final]), [(57, 119)]);
    }
    for name in of(Mode::Ccm) {
        let update = entries(name, &[start_decrypting(name), Update(bytes(40, 1))]);
        assert_eq!(update, [(57, 119), (57, 102)]);
        assert_eq!(entries(name, &[start_decrypting(name), Final]), [(57, 119)]);
    }
}

#[test]
fn wrong_tags() {
    for name in of(Mode::Gcm) {
        let script = [start_decrypting(name), SetTag(vec![0; 16]), Update(bytes(40, 1)), Final];
        refused(name, &["tag mismatch", "bad decrypt"], &script);
        refused(name, &["tag"], &[start_decrypting(name), Update(bytes(40, 1)), Final]);
        refused(name, &["tag"], &[start_encrypting(name), SetTag(vec![0; 16])]);
    }
    for name in of(Mode::Ccm) {
        let setup = [Init(DECRYPT, None, None), SetTag(vec![0; 12]), start_decrypting(name)];
        refused(name, &["tag mismatch", "bad decrypt"], &[&setup[..], &[Update(bytes(40, 1))]].concat());
        refused(name, &["tag"], &[start_decrypting(name), Update(bytes(40, 1))]);
        refused(name, &["tag"], &[start_encrypting(name), SetTag(vec![0; 12])]);
        for n in [0, 1, 2, 3, 5, 15, 17, 100] {
            refused(name, &["tag length"], &[start_encrypting(name), TagLength(n)]);
        }
    }
}

/// The output of a tampered message contains no plaintext.
#[test]
fn a_refused_ccm_message_has_no_output() {
    if subject_is_default("wiping of the output") {
        return;
    }
    for name in of(Mode::Ccm) {
        let encrypted = compare(name, &[start_encrypting(name), Update(bytes(100, 1))]).pop().unwrap().out;
        let mut side = Side::new(ours(name));
        for call in [Init(DECRYPT, None, None), SetTag(vec![0; 12]), start_decrypting(name)] {
            assert!(side.run(&call).ok());
        }
        let (mut out, mut n) = (vec![0xa5; 116], 0);
        assert_ne!(side.context.update_raw(out.as_mut_ptr(), &mut n, encrypted.as_ptr(), 100), 1);
        assert!(out.windows(8).all(|window| !bytes(100, 1).windows(8).any(|plain| plain == window)));
        assert_eq!(n, 0);
    }
}

#[test]
fn a_tag_that_is_not_available() {
    for name in of(Mode::Gcm) {
        refused(name, &["tag"], &[start_encrypting(name), Tag(16)]);
        refused(name, &["tag"], &[start_encrypting(name), Update(bytes(5, 1)), Tag(16)]);
        refused(name, &["tag"], &[start_decrypting(name), Update(bytes(5, 1)), Tag(16)]);
    }
    for name in of(Mode::Ccm) {
        refused(name, &["tag"], &[start_encrypting(name), Tag(12)]);
        refused(name, &["tag"], &[start_decrypting(name), Tag(12)]);
    }
}

#[test]
fn additional_data_after_the_data_and_data_after_the_end() {
    for name in of(Mode::Gcm) {
        let (init, data) = (start_encrypting(name), Update(bytes(5, 1)));
        refused(name, &["additional data"], &[init.clone(), data.clone(), Aad(bytes(5, 1))]);
        for more in [data.clone(), Aad(bytes(5, 1)), Final] {
            refused(name, &["ended", "iv"], &[init.clone(), data.clone(), Final, more]);
        }
    }
    for name in of(Mode::Ccm) {
        refused(name, &["length"], &[start_encrypting(name), Aad(bytes(5, 1))]);
        refused(name, &["length"], &[start_encrypting(name), Length(20), Update(bytes(19, 1))]);
        let twice = [start_encrypting(name), Update(bytes(5, 1)), Tag(12), Update(bytes(5, 1))];
        refused(name, &["ended", "iv"], &twice);
    }
}

/// Only this provider refuses data without a key or an IV. The default provider of 3.0.2 crashes, because it uses a key that was never
/// set.
#[test]
fn data_before_a_key_or_an_iv() {
    if subject_is_default("releases differ in data before a key") {
        return;
    }
    for algorithm in ALGORITHMS {
        let (name, iv) = (algorithm.name(), key_and_iv(algorithm.name()).1);
        let iv = Some(iv).filter(|iv| !iv.is_empty());
        for way in [ENCRYPT, DECRYPT] {
            refused_by_subject(name, &["no key"], &[Init(way, None, None), Update(bytes(32, 1))]);
            refused_by_subject(name, &["no key"], &[Init(way, None, iv.clone()), Update(bytes(32, 1))]);
            refused_by_subject(name, &["no key"], &[Init(way, None, iv.clone()), Cipher(bytes(32, 1))]);
            if algorithm.mode != Mode::Xts && !algorithm.is_one_update() {
                refused_by_subject(name, &["no key"], &[Init(way, None, iv.clone()), Final]);
            }
        }
        if matches!(algorithm.mode, Mode::Xts | Mode::Gcm | Mode::Ccm | Mode::Ocb) {
            let key = Some(key_and_iv(name).0);
            refused_by_subject(name, &["no iv", "iv"], &[Init(DECRYPT, key, None), Update(bytes(32, 1))]);
        }
    }
}

#[test]
fn calls_before_init_and_null_contexts_data() {
    // libcrypto refuses updates and ends without an init, so they do not reach the provider.
    for algorithm in ALGORITHMS {
        let mut context = ours(algorithm.name()).context();
        assert!(context.update(&[1; 16]).is_none());
        assert!(context.finish().is_none());
    }
    evp::clear_errors();
}

#[test]
fn xts_keys_and_data_units() {
    for name in of(Mode::Xts) {
        let (key, iv) = key_and_iv(name);
        let twin = key[..key.len() / 2].repeat(2);
        refused(name, &["xts"], &[Init(ENCRYPT, Some(twin.clone()), Some(iv.clone()))]);
        // Decryption with such a key is still possible, for old data.
        compare(name, &[Init(DECRYPT, Some(twin), Some(iv)), Update(bytes(32, 1))]);
        for n in [0, 1, 15] {
            refused(name, &["16 bytes", "data unit"], &[start_encrypting(name), Update(bytes(n, 1))]);
            refused(name, &["16 bytes", "data unit"], &[start_encrypting(name), Cipher(bytes(n, 1))]);
        }
        let long = bytes((16 << 20) + 1, 1);
        refused(name, &["data unit"], &[start_encrypting(name), Update(long)]);
    }
}

#[test]
fn null_buffers_with_lengths() {
    if subject_is_default("it crashes on null buffers") {
        return;
    }
    for algorithm in ALGORITHMS {
        let name = algorithm.name();
        for way in [ENCRYPT, DECRYPT] {
            let ready = || {
                let mut side = Side::new(ours(name));
                assert!(side.run(&start(name, way)).ok());
                evp::clear_errors();
                side
            };
            let (data, mut out, mut n) = (bytes(64, 1), vec![0; 128], 0);
            let mut side = ready();
            assert_ne!(side.context.update_raw(out.as_mut_ptr(), &mut n, null(), 32), 1, "{name}");
            has_reason(name, &["null"]);
            // A call without output passes additional data to AEADs. For CTS and key wrap it is a query of the output length.
            let has_such_calls =
                matches!(algorithm.mode, Mode::Gcm | Mode::Ccm | Mode::Ocb) || algorithm.is_one_update();
            if !has_such_calls {
                let mut side = ready();
                assert_ne!(side.context.update_raw(null_mut(), &mut n, data.as_ptr(), 32), 1, "{name}");
                has_reason(name, &["null"]);
                let mut side = ready();
                assert_ne!(side.context.update_raw(null_mut(), &mut n, null(), 32), 1, "{name}");
                has_reason(name, &["null"]);
                let side = ready();
                // SAFETY: the test passes null with a length.
                let to_null = unsafe { EVP_Cipher(side.context.raw, null_mut(), data.as_ptr(), 32) };
                // SAFETY: as above.
                let from_null = unsafe { EVP_Cipher(side.context.raw, out.as_mut_ptr(), null(), 32) };
                assert!(to_null <= 0 && from_null <= 0, "{name}");
                has_reason(name, &["null"]);
            }
            if algorithm.is_block() && way == ENCRYPT {
                let mut side = ready();
                assert!(side.run(&Update(data[..20].to_vec())).ok());
                // SAFETY: the test passes null for the final block.
                assert_ne!(unsafe { EVP_CipherFinal_ex(side.context.raw, null_mut(), &mut n) }, 1, "{name}");
                has_reason(name, &["null"]);
            }
        }
    }
}

#[test]
fn null_controls_with_lengths() {
    if subject_is_default("it crashes on null controls") {
        return;
    }
    for name in of(Mode::Gcm).chain(of(Mode::Ccm)) {
        for way in [ENCRYPT, DECRYPT] {
            let controls = [
                (EVP_CTRL_AEAD_TLS1_AAD, 13),
                (EVP_CTRL_AEAD_SET_IV_FIXED, 4),
                (EVP_CTRL_GCM_SET_IV_INV, 8),
                (EVP_CTRL_GCM_IV_GEN, 8),
                (EVP_CTRL_AEAD_GET_TAG, 16),
            ];
            for (control, n) in controls {
                let mut side = Side::new(ours(name));
                assert!(side.run(&start(name, way)).ok());
                // The controls must not crash. CCM does not support some of them and ignores them.
                side.context.control(control, n, None);
            }
        }
    }
    evp::clear_errors();
}

#[test]
fn parameters_of_the_wrong_type() {
    for (name, key) in [
        ("AES-128-CBC", "padding"),
        ("AES-128-CBC", "tls-version"),
        ("AES-128-CFB", "num"),
        ("AES-128-GCM", "ivlen"),
    ] {
        let mut side = Side::new(ours(name));
        assert!(side.run(&start_encrypting(name)).ok());
        evp::clear_errors();
        assert_ne!(side.context.set(&evp::Params::new().string(key, "much")), 1, "{name}: {key}");
        has_reason(key, &["parameter"]);
        assert_ne!(side.context.set(&evp::Params::new().bytes(key, &[1; 4])), 1, "{name}: {key}");
        has_reason(key, &["parameter"]);
    }
}
