//! Tests of single records: they must equal those of ring, and the limits must hold.

use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, Iv, MessageDecrypter, MessageEncrypter, OutboundChunks,
    OutboundPlainMessage,
};
use rustls::crypto::ring;
use rustls::crypto::tls13::OkmBlock;
use rustls::internal::{derive_traffic_iv, derive_traffic_key};
use rustls::{CipherSuite, ContentType, Error, ProtocolVersion, SupportedCipherSuite};

use crate::common::{SUITES, bytes, ours, suite};

/// The key and the IV of a suite of TLS 1.3, derived from a secret.
fn secrets(suite: SupportedCipherSuite, secret: &[u8]) -> (AeadKey, Iv) {
    let suite = suite.tls13().expect("a suite of TLS 1.3");
    let expander = suite.hkdf_provider.expander_for_okm(&OkmBlock::new(secret));
    (derive_traffic_key(&*expander, suite.aead_alg), derive_traffic_iv(&*expander))
}

/// The encrypter and the decrypter of one direction.
pub(crate) fn ends(suite: SupportedCipherSuite) -> (Box<dyn MessageEncrypter>, Box<dyn MessageDecrypter>) {
    match suite {
        SupportedCipherSuite::Tls13(algorithms) => {
            let make = || secrets(suite, &bytes(32, 11));
            let ((key, iv), (same_key, same_iv)) = (make(), make());
            let algorithm = algorithms.aead_alg;
            (algorithm.encrypter(key, iv), algorithm.decrypter(same_key, same_iv))
        }
        SupportedCipherSuite::Tls12(algorithms) => {
            // A key of the right length is only available from a suite of TLS 1.3.
            let is_128 = algorithms.aead_alg.key_block_shape().enc_key_len == 16;
            let other = if is_128 { SUITES[0] } else { SUITES[1] };
            let key = || secrets(crate::common::suite(&ring::default_provider(), other), &bytes(32, 12)).0;
            let algorithm = algorithms.aead_alg;
            (algorithm.encrypter(key(), b"salt", b"explicit"), algorithm.decrypter(key(), b"salt"))
        }
    }
}

fn version(name: CipherSuite) -> ProtocolVersion {
    suite(&ours(), name).version().version
}

fn sealed(encrypter: &mut dyn MessageEncrypter, name: CipherSuite, data: &[u8], number: u64) -> Vec<u8> {
    let payload = OutboundChunks::Single(data);
    let message = OutboundPlainMessage { typ: ContentType::ApplicationData, version: version(name), payload };
    let record = encrypter.encrypt(message, number).unwrap();
    assert_eq!(record.payload.as_ref().len(), encrypter.encrypted_payload_len(data.len()));
    record.encode()
}

/// The plaintext of a record with its header. If the record is not authentic, no plaintext may remain in its memory.
fn opened(
    decrypter: &mut dyn MessageDecrypter,
    name: CipherSuite,
    record: &[u8],
    number: u64,
) -> Result<Vec<u8>, Error> {
    let mut body = record[5..].to_vec();
    // The version in the header of each record is that of TLS 1.2, which TLS 1.2 authenticates.
    let version = ProtocolVersion::TLSv1_2;
    let message = InboundOpaqueMessage::new(ContentType::ApplicationData, version, &mut body);
    let outcome = decrypter.decrypt(message, number).map(|plain| {
        assert_eq!(plain.typ, ContentType::ApplicationData, "{name:?}");
        plain.payload.to_vec()
    });
    if outcome == Err(Error::DecryptError) {
        let start = if suite(&ours(), name).tls13().is_some() { 0 } else { 8 };
        // `None` if the record is shorter than a tag.
        let data = body.len().checked_sub(16).and_then(|end| body.get(start..end));
        assert!(data.is_none_or(|data| data.iter().all(|byte| *byte == 0)), "{name:?}");
    }
    outcome
}

#[test]
fn records_equal_those_of_ring() {
    for name in SUITES {
        let (mut our_encrypter, mut our_decrypter) = ends(suite(&ours(), name));
        let (mut encrypter, mut decrypter) = ends(suite(&ring::default_provider(), name));
        for (i, len) in (0..300).chain([1023, 1024, 4096, 8191, 8192, 9000, 16_383, 16_384]).enumerate() {
            let (data, number) = (bytes(len, i as u64), (i as u64) << 13);
            let record = sealed(&mut *our_encrypter, name, &data, number);
            assert!(record == sealed(&mut *encrypter, name, &data, number), "{name:?}, {len} bytes");
            assert!(
                opened(&mut *our_decrypter, name, &record, number).as_ref() == Ok(&data),
                "{name:?}, {len}"
            );
            assert!(opened(&mut *decrypter, name, &record, number) == Ok(data), "{name:?}, {len} bytes");
        }
    }
}

#[test]
fn every_failure_is_the_same_error() {
    for name in SUITES {
        let (mut encrypter, mut decrypter) = ends(suite(&ours(), name));
        let record = sealed(&mut *encrypter, name, &bytes(40, 5), 7);
        for changed in 5..record.len() {
            let mut wrong = record.clone();
            wrong[changed] ^= 0x80;
            let outcome = opened(&mut *decrypter, name, &wrong, 7);
            assert_eq!(outcome, Err(Error::DecryptError), "{name:?}, byte {changed}");
        }
        for len in 5..record.len() {
            let outcome = opened(&mut *decrypter, name, &record[..len], 7);
            assert_eq!(outcome, Err(Error::DecryptError), "{name:?}, {len} bytes");
        }
        // With another record number, the nonce differs in TLS 1.3, and the associated data differ in TLS 1.2.
        assert_eq!(opened(&mut *decrypter, name, &record, 8), Err(Error::DecryptError), "{name:?}");
        assert!(opened(&mut *decrypter, name, &record, 7).is_ok(), "{name:?}: the decrypter is still usable");
    }
}

#[test]
fn a_record_with_too_much_content_is_refused() {
    for name in SUITES {
        let (mut encrypter, mut decrypter) = ends(suite(&ours(), name));
        let record = sealed(&mut *encrypter, name, &bytes(16_385, 6), 0);
        let outcome = opened(&mut *decrypter, name, &record, 0);
        assert_eq!(outcome, Err(Error::PeerSentOversizedRecord), "{name:?}");
    }
}

#[test]
fn no_two_records_of_tls_1_2_have_the_same_nonce() {
    let name = CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256;
    let (mut encrypter, _) = ends(suite(&ours(), name));
    let explicit = |record: Vec<u8>| record[5..13].to_vec();
    let mut nonces: Vec<_> = (0..1000).map(|i| explicit(sealed(&mut *encrypter, name, b"", i))).collect();
    nonces.sort();
    nonces.dedup();
    assert_eq!(nonces.len(), 1000);
}
