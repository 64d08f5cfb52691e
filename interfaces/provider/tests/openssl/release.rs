//! The release of OpenSSL that the tests are linked to.

use std::env;
use std::ffi::CStr;
use std::io::{self, Write};

use crate::libcrypto::OpenSSL_version;

/// For example `OpenSSL 3.0.19 27 Jan 2026`.
pub(crate) fn version() -> &'static str {
    // SAFETY: the result for any number is a constant of libcrypto.
    unsafe { CStr::from_ptr(OpenSSL_version(0)) }.to_str().expect("ASCII")
}

/// The numbers of a version, for example (3, 0, 19).
pub(crate) type Release = (u32, u32, u32);

/// The numbers of [`version`].
pub(crate) fn release() -> Release {
    let text = version().split(' ').nth(1).expect("a name and a number");
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().expect("a number"));
    let mut next = || numbers.next().expect("three numbers");
    (next(), next(), next())
}

/// Prints the version, also without `--nocapture`: where releases differ, the log of a run must show the release.
/// `LOCKSTEP_TEST_OPENSSL`, which `tools/openssl_release.sh` sets, requires a version.
#[test]
fn the_release_is_the_required_one() {
    // `eprintln!` is not used, because the harness would capture its output.
    writeln!(io::stderr(), "linked to {}", version()).expect("written");
    if let Ok(wanted) = env::var("LOCKSTEP_TEST_OPENSSL") {
        assert_eq!(version().split(' ').nth(1), Some(&*wanted), "LOCKSTEP_TEST_OPENSSL");
    }
}
