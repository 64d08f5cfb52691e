//! The provider from inside of OpenSSL, call by call against the default provider of the same libcrypto.
//!
//! Run it against the distribution's libcrypto by `cargo test -p lockstep-provider --test openssl`, and against another
//! release by `tools/openssl_release.sh 3.0.2` (or 3.5, or 4.0) in front of it.
//! `LOCKSTEP_TEST_SUBJECT=default` in the environment checks the tests themselves: see [`harness::subject`].
//!
//! Most tests are scripts of EVP calls that both providers run ([`script`]). Where they differ from what the default
//! provider does by accident, a comment says so and the call is left out. Where the default providers of two releases
//! differ, a test states what ours does, and a comment names the releases.

// These names are libcrypto's.
#[allow(non_camel_case_types)]
mod libcrypto;

mod evp;
mod harness;
mod script;

mod aead;
mod bad_input;
mod macs;
mod modes;
mod names;
mod params;
mod random;
mod release;
mod robust;
mod settings;
mod state;
mod tls;
mod trace;
