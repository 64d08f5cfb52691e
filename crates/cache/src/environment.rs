//! Environment variables that name code to load, or directories.
#![allow(unsafe_code)] // one call of the C library

use std::ffi::OsString;

/// The value of a variable. `None` in a program with more privileges than its user (`setuid` and the like): the user must not
/// choose what it loads and where it writes.
pub fn variable(name: &str) -> Option<OsString> {
    if is_privileged() { None } else { std::env::var_os(name) }
}

fn is_privileged() -> bool {
    // SAFETY: it reads a number that the kernel passed to the process.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    return false;
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_unprivileged_program_reads_its_environment() {
        assert_eq!(super::variable("PATH"), std::env::var_os("PATH"));
    }
}
