//! The provider in OpenSSL, compared call by call with the default provider of the same libcrypto.
//!
//! `cargo test -p lockstep-provider --test openssl` uses the libcrypto of the distribution. For another release, run
//! `tools/openssl_release.sh 3.0.2` (or 3.5, or 4.0) before that command. `LOCKSTEP_TEST_SUBJECT=default` in the
//! environment checks the tests themselves: see [`harness::subject`].
//!
//! Most tests are scripts of EVP calls that run on both providers ([`script`]). Calls for which the default provider's
//! result is an accident of its implementation are left out, with a comment. Where the default providers of two
//! releases differ, a test asserts the behaviour of this provider, and a comment names the releases.

// The module uses the names of libcrypto.
#[allow(non_camel_case_types)]
mod libcrypto;

mod evp;
mod harness;
mod script;
mod sequences;

mod aead;
mod bad_input;
mod cts;
mod macs;
mod modes;
mod names;
mod ocb;
mod params;
mod random;
mod release;
mod robust;
mod settings;
mod siv;
mod state;
mod tls;
mod trace;
mod wrap;
