//! Which release of OpenSSL the tests are linked to.

use std::env;
use std::ffi::CStr;
use std::io::{self, Write};

use crate::libcrypto::OpenSSL_version;

/// Such as `OpenSSL 3.0.19 27 Jan 2026`.
fn version() -> &'static str {
    // SAFETY: the answer to any number is a constant of libcrypto.
    unsafe { CStr::from_ptr(OpenSSL_version(0)) }.to_str().expect("ASCII")
}

/// Prints the version, also without `--nocapture`: where releases differ, the log of a run must show which one it was.
/// `LOCKSTEP_TEST_OPENSSL`, which `tools/openssl_release.sh` sets, demands a version.
#[test]
fn the_release_is_the_one_that_was_asked_for() {
    // Not by a macro, whose output the harness would keep back.
    writeln!(io::stderr(), "linked to {}", version()).expect("written");
    if let Ok(wanted) = env::var("LOCKSTEP_TEST_OPENSSL") {
        assert_eq!(version().split(' ').nth(1), Some(&*wanted), "LOCKSTEP_TEST_OPENSSL");
    }
}
