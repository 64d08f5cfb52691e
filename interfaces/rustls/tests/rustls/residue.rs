//! Keys do not remain in memory: a process makes, uses and drops the keys of each kind, and its memory is searched.

#![cfg(target_os = "linux")]

use std::process::Command;

use lockstep::hazmat::Key;
use lockstep_testkit::residue;
use rustls::crypto::cipher::{AeadKey, InboundOpaqueMessage, OutboundChunks, OutboundPlainMessage};
use rustls::crypto::cipher::{MessageDecrypter, MessageEncrypter};
use rustls::{ContentType, ProtocolVersion, SupportedCipherSuite};

use crate::common::{ours, suite};

/// This variable is set only in the process that uses the keys.
const VARIABLE: &str = "LOCKSTEP_TEST_RESIDUE";

type Step = (&'static str, fn(&[u8]));

/// The content of a record of this length is copied to the payload, and encrypted there.
const SHORT: usize = 5000;
/// The content of a record of this length, the longest one, is encrypted from its place to the payload.
const LONG: usize = 16 << 10;

const STEPS: [Step; 8] = [
    ("encrypter of TLS 1.3", |key| encrypt(tls13().aead_alg.encrypter(owned(key), [1; 12].into()), SHORT)),
    ("encrypter of TLS 1.3, long record", |key| {
        encrypt(tls13().aead_alg.encrypter(owned(key), [1; 12].into()), LONG);
    }),
    ("decrypter of TLS 1.3", |key| decrypt(tls13().aead_alg.decrypter(owned(key), [1; 12].into()))),
    ("encrypter of TLS 1.2", |key| {
        encrypt(tls12().aead_alg.encrypter(owned(key), b"salt", b"explicit"), SHORT);
    }),
    ("encrypter of TLS 1.2, long record", |key| {
        encrypt(tls12().aead_alg.encrypter(owned(key), b"salt", b"explicit"), LONG);
    }),
    ("decrypter of TLS 1.2", |key| decrypt(tls12().aead_alg.decrypter(owned(key), b"salt"))),
    ("packet key", |key| {
        let key = tls13().quic.unwrap().packet_key(owned(key), [1; 12].into());
        key.encrypt_in_place(1, b"header", &mut [5; 1200]).unwrap();
        key.decrypt_in_place(1, b"header", &mut [5; 1200]).unwrap_err();
    }),
    ("header key", |key| {
        let key = tls13().quic.unwrap().header_protection_key(owned(key));
        key.encrypt_in_place(&[5; 16], &mut 0xc1, &mut [1, 2]).unwrap();
    }),
];

fn tls13() -> &'static rustls::Tls13CipherSuite {
    suite(&ours(), rustls::CipherSuite::TLS13_AES_256_GCM_SHA384).tls13().unwrap()
}

fn tls12() -> &'static rustls::Tls12CipherSuite {
    match suite(&ours(), rustls::CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384) {
        SupportedCipherSuite::Tls12(suite) => suite,
        SupportedCipherSuite::Tls13(_) => unreachable!(),
    }
}

fn owned(key: &[u8]) -> AeadKey {
    let key: [u8; 32] = key.try_into().unwrap();
    key.into()
}

fn encrypt(mut encrypter: Box<dyn MessageEncrypter>, len: usize) {
    let (typ, version) = (ContentType::ApplicationData, ProtocolVersion::TLSv1_2);
    let payload = OutboundChunks::Single(&[5; LONG][..len]);
    encrypter.encrypt(OutboundPlainMessage { typ, version, payload }, 1).unwrap();
}

fn decrypt(mut decrypter: Box<dyn MessageDecrypter>) {
    let (typ, version) = (ContentType::ApplicationData, ProtocolVersion::TLSv1_2);
    let mut record = [5; SHORT];
    let outcome = decrypter.decrypt(InboundOpaqueMessage::new(typ, version, &mut record), 1);
    assert!(outcome.is_err(), "the record is not authentic");
}

/// The process whose memory is searched.
#[test]
fn uses_keys() {
    if std::env::var_os(VARIABLE).is_some() {
        residue::use_keys(&STEPS, |key| Key::new(key).unwrap());
    }
}

#[test]
fn no_key_remains_in_memory() {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["residue::uses_keys", "--exact", "--nocapture", "--test-threads=1"]).env(VARIABLE, "1");
    residue::assert_no_residue(child, STEPS.len());
}
