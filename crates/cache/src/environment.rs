//! Variables that name code, or places for files.
#![allow(unsafe_code)] // one call of the C library

use std::ffi::OsString;

/// The value of a variable; none in a program that has more rights than its user (`setuid` and the like), who must not
/// choose what it runs and where it writes.
pub fn variable(name: &str) -> Option<OsString> {
    if has_more_rights_than_its_user() { None } else { std::env::var_os(name) }
}

fn has_more_rights_than_its_user() -> bool {
    // SAFETY: reads what the kernel keeps of the process itself.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    return false;
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_ordinary_program_reads_its_environment() {
        assert_eq!(super::variable("PATH"), std::env::var_os("PATH"));
    }
}
