//! Tests of the parts that the provider takes from the other provider.

use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::crypto::{CryptoProvider, ring};
use rustls::{ConnectionTrafficSecrets, SupportedCipherSuite, Tls13CipherSuite};

use crate::common::{Pair, SUITES, client_config, ours, server_config, suite};

/// The address of a suite.
fn address(suite: SupportedCipherSuite) -> usize {
    match suite {
        SupportedCipherSuite::Tls13(suite) => std::ptr::from_ref(suite).addr(),
        SupportedCipherSuite::Tls12(suite) => std::ptr::from_ref(suite).addr(),
    }
}

#[test]
fn only_suites_with_aes_gcm_change() {
    let (ours, other) = (ours(), ring::default_provider());
    assert_eq!(ours.cipher_suites.len(), other.cipher_suites.len());
    for (ours, other) in ours.cipher_suites.iter().zip(&other.cipher_suites) {
        assert_eq!(ours.suite(), other.suite(), "the order of the suites");
        assert_eq!(address(*ours) != address(*other), SUITES.contains(&ours.suite()), "{other:?}");
    }
    let names =
        |provider: &CryptoProvider| provider.kx_groups.iter().map(|group| group.name()).collect::<Vec<_>>();
    assert_eq!(names(&ours), names(&other));
}

#[test]
fn a_suite_is_made_once() {
    let addresses =
        |provider: &CryptoProvider| provider.cipher_suites.iter().map(|it| address(*it)).collect::<Vec<_>>();
    let first = ours();
    assert_eq!(addresses(&first), addresses(&ours()));
    let again = lockstep_rustls::provider(first.clone()).unwrap();
    assert_eq!(addresses(&first), addresses(&again), "a provider that is Lockstep's already");
}

/// The suite of TLS 1.3 with our AES-GCM, made from ring's suite whose limit of records has been set to this limit.
fn with_limit(confidentiality_limit: u64, has_quic: bool) -> &'static Tls13CipherSuite {
    let other = suite(&ring::default_provider(), SUITES[0]).tls13().unwrap();
    let rustls::CipherSuiteCommon { suite: name, hash_provider, .. } = other.common;
    let other = Box::leak(Box::new(Tls13CipherSuite {
        common: rustls::CipherSuiteCommon { suite: name, hash_provider, confidentiality_limit },
        hkdf_provider: other.hkdf_provider,
        aead_alg: other.aead_alg,
        quic: other.quic.filter(|_| has_quic),
    }));
    let cipher_suites = vec![SupportedCipherSuite::Tls13(other)];
    let other = CryptoProvider { cipher_suites, ..ring::default_provider() };
    suite(&lockstep_rustls::provider(other).unwrap(), name).tls13().unwrap()
}

#[test]
fn a_suite_without_quic_stays_without_it() {
    assert!(with_limit(1000, false).quic.is_none());
    assert!(with_limit(1000, true).quic.is_some());
}

#[test]
fn suites_have_the_limit_of_aes_gcm_or_a_lower_one() {
    assert_eq!(with_limit(u64::MAX, true).common.confidentiality_limit, 1 << 24);
    assert_eq!(with_limit(1000, true).common.confidentiality_limit, 1000);
}

/// Checks that our algorithms state that they are not FIPS-approved. The suites alone do not show this: a suite is not FIPS-approved if any
/// part of it is not, and no part of ring is.
#[test]
fn algorithms_are_not_fips() {
    for name in SUITES {
        match suite(&ours(), name) {
            SupportedCipherSuite::Tls13(suite) => {
                assert!(!suite.aead_alg.fips() && !suite.quic.unwrap().fips(), "{name:?}");
            }
            SupportedCipherSuite::Tls12(suite) => assert!(!suite.aead_alg.fips(), "{name:?}"),
        }
    }
}

/// The bytes of secrets, and the name of their cipher.
fn shown(secrets: &ConnectionTrafficSecrets) -> (&'static str, Vec<u8>, Vec<u8>) {
    let parts = |key: &AeadKey, iv: &Iv| (key.as_ref().to_vec(), iv.as_ref().to_vec());
    let (name, (key, iv)) = match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv } => ("AES-128-GCM", parts(key, iv)),
        ConnectionTrafficSecrets::Aes256Gcm { key, iv } => ("AES-256-GCM", parts(key, iv)),
        _ => panic!("secrets of another cipher"),
    };
    (name, key, iv)
}

/// Compares the secrets that kTLS needs: our side sends with the secrets with which ring's side receives, and receives with the secrets
/// with which ring's side sends.
#[test]
fn secrets_can_be_extracted() {
    for name in SUITES {
        let (mut client, mut server) =
            (client_config(ours(), name), server_config(ring::default_provider(), name));
        (client.enable_secret_extraction, server.enable_secret_extraction) = (true, true);
        let Pair { client, server } = Pair::new(client, server);
        let ours = client.dangerous_extract_secrets().unwrap();
        let others = server.dangerous_extract_secrets().unwrap();
        assert_eq!((ours.tx.0, shown(&ours.tx.1)), (others.rx.0, shown(&others.rx.1)), "{name:?}");
        assert_eq!((ours.rx.0, shown(&ours.rx.1)), (others.tx.0, shown(&others.tx.1)), "{name:?}");
    }
}
