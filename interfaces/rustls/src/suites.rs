//! The cipher suites that use the AES-GCM of this crate.

use std::sync::{Mutex, PoisonError};

use lockstep::hazmat::inline::InlineKernel;
#[cfg(feature = "tls12")]
use rustls::Tls12CipherSuite;
use rustls::{CipherSuite, CipherSuiteCommon, SupportedCipherSuite, Tls13CipherSuite, quic};

use crate::gcm::Gcm;

/// The maximum number of records for a key of AES-GCM: see [`CipherSuiteCommon::confidentiality_limit`].
const MAX_RECORDS: u64 = 1 << 24;

/// The suites of other providers, each with the suite that has been made from it.
pub(crate) static MADE: Mutex<Vec<[SupportedCipherSuite; 2]>> = Mutex::new(Vec::new());

/// The suite with our AES-GCM, or the same suite if it has another cipher.
pub(crate) fn with_kernel(kernel: InlineKernel, suite: SupportedCipherSuite) -> SupportedCipherSuite {
    let Some(key_len) = key_len(suite.suite()) else { return suite };
    // Another crate may have switched on TLS 1.2 in rustls.
    if cfg!(not(feature = "tls12")) && suite.tls13().is_none() {
        return suite;
    }
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some([_, ours]) = made.iter().find(|[other, ours]| is_same(*other, suite) || is_same(*ours, suite))
    {
        return *ours;
    }
    let ours = new(Gcm { kernel, key_len }, suite);
    made.push([suite, ours]);
    ours
}

/// The number of bytes of a key; `None` for a suite without AES-GCM.
fn key_len(suite: CipherSuite) -> Option<usize> {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256
        | CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
        | CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => Some(16),
        CipherSuite::TLS13_AES_256_GCM_SHA384
        | CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
        | CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => Some(32),
        _ => None,
    }
}

/// True if both suites are the same object. The equality of rustls compares only the names of suites.
fn is_same(first: SupportedCipherSuite, second: SupportedCipherSuite) -> bool {
    match (first, second) {
        (SupportedCipherSuite::Tls13(first), SupportedCipherSuite::Tls13(second)) => {
            std::ptr::eq(first, second)
        }
        #[cfg(feature = "tls12")]
        (SupportedCipherSuite::Tls12(first), SupportedCipherSuite::Tls12(second)) => {
            std::ptr::eq(first, second)
        }
        #[allow(unreachable_patterns)]
        _ => false,
    }
}

/// A copy of a suite in which Lockstep computes AES-GCM.
fn new(gcm: Gcm, suite: SupportedCipherSuite) -> SupportedCipherSuite {
    match suite {
        SupportedCipherSuite::Tls13(other) => {
            let gcm = Box::leak(Box::new(gcm));
            SupportedCipherSuite::Tls13(Box::leak(Box::new(Tls13CipherSuite {
                common: common(&other.common),
                hkdf_provider: other.hkdf_provider,
                aead_alg: gcm,
                quic: other.quic.map(|_| gcm as &dyn quic::Algorithm),
            })))
        }
        #[cfg(feature = "tls12")]
        SupportedCipherSuite::Tls12(other) => {
            SupportedCipherSuite::Tls12(Box::leak(Box::new(Tls12CipherSuite {
                common: common(&other.common),
                prf_provider: other.prf_provider,
                kx: other.kx,
                sign: other.sign,
                aead_alg: Box::leak(Box::new(gcm)),
            })))
        }
        // Suites of TLS 1.2, if this crate is built without the feature `tls12`.
        #[allow(unreachable_patterns)]
        other => other,
    }
}

fn common(other: &CipherSuiteCommon) -> CipherSuiteCommon {
    CipherSuiteCommon {
        suite: other.suite,
        hash_provider: other.hash_provider,
        confidentiality_limit: other.confidentiality_limit.min(MAX_RECORDS),
    }
}
