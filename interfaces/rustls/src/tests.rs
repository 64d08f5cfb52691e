use std::sync::PoisonError;

use lockstep::hazmat::inline::InlineKernel;
use rustls::SupportedCipherSuite;
use rustls::crypto::{CryptoProvider, ring};

use crate::suites::MADE;
use crate::with_kernel;

/// The addresses of suites. The equality of rustls compares only their names.
fn addresses(provider: &CryptoProvider) -> Vec<usize> {
    let address = |suite: &SupportedCipherSuite| match suite {
        SupportedCipherSuite::Tls13(suite) => std::ptr::from_ref(*suite).addr(),
        SupportedCipherSuite::Tls12(suite) => std::ptr::from_ref(*suite).addr(),
    };
    provider.cipher_suites.iter().map(address).collect()
}

#[test]
fn suites_remain_if_the_processor_has_no_aes_instructions() {
    let kernel = InlineKernel::all().find(|kernel| !kernel.has_aes_instructions()).unwrap();
    let other = ring::default_provider();
    assert_eq!(addresses(&with_kernel(kernel, other.clone())), addresses(&other));
}

/// Repeated calls with the same provider make no new suites. This also holds if this crate is built without the feature `tls12` and the
/// other provider has suites of TLS 1.2.
#[test]
fn repeated_calls_make_no_more_suites() {
    let made = || MADE.lock().unwrap_or_else(PoisonError::into_inner).len();
    let first = crate::provider(ring::default_provider()).unwrap();
    let before = made();
    let again = crate::provider(ring::default_provider()).unwrap();
    assert_eq!((addresses(&again), made()), (addresses(&first), before));
}
