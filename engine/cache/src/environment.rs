//! Reads environment variables whose values name directories, or code that the process loads.
#![allow(unsafe_code, reason = "one call of the C library")]

use std::ffi::OsString;

/// The value of a variable. `None` if the process runs with more privileges than its user, as a `setuid` program does. The
/// user must not choose which code such a process loads or where it writes.
pub fn variable(name: &str) -> Option<OsString> {
    if is_privileged() { None } else { std::env::var_os(name) }
}

fn is_privileged() -> bool {
    // SAFETY: `getauxval` reads a number that the kernel passed to the process.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    return false;
}

#[cfg(test)]
mod tests;
