//! What the provider takes from the other one.

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

#[test]
fn a_suite_without_quic_stays_without_it() {
    let SupportedCipherSuite::Tls13(other) = suite(&ring::default_provider(), SUITES[0]) else {
        unreachable!()
    };
    let without = Box::leak(Box::new(Tls13CipherSuite {
        common: rustls::CipherSuiteCommon { confidentiality_limit: 1000, ..copy(&other.common) },
        hkdf_provider: other.hkdf_provider,
        aead_alg: other.aead_alg,
        quic: None,
    }));
    let other = CryptoProvider {
        cipher_suites: vec![SupportedCipherSuite::Tls13(without)],
        ..ring::default_provider()
    };
    let ours = suite(&lockstep_rustls::provider(other).unwrap(), SUITES[0]).tls13().unwrap();
    assert!(ours.quic.is_none());
    assert_eq!(ours.common.confidentiality_limit, 1000, "a lower limit stays");
}

fn copy(common: &rustls::CipherSuiteCommon) -> rustls::CipherSuiteCommon {
    let rustls::CipherSuiteCommon { suite, hash_provider, confidentiality_limit } = *common;
    rustls::CipherSuiteCommon { suite, hash_provider, confidentiality_limit }
}

#[test]
fn suites_have_the_limit_of_aes_gcm_and_are_not_fips() {
    for name in SUITES {
        let suite = suite(&ours(), name);
        let common = match suite {
            SupportedCipherSuite::Tls13(suite) => &suite.common,
            SupportedCipherSuite::Tls12(suite) => &suite.common,
        };
        assert_eq!(common.confidentiality_limit, 1 << 24, "{name:?}");
        assert!(!suite.fips(), "{name:?}");
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

/// As kTLS needs them: the secrets of our side equal those of the side with ring, in reverse.
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
