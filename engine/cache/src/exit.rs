//! A function that runs at the end of the process.
#![allow(unsafe_code, reason = "one call of the C library")]

/// Registers a function that runs when the process ends by `exit` or by a return from `main`. It does not run when a signal
/// ends the process. If the caller is part of a shared library, the function also runs when the library is unloaded. Child
/// processes that are created by `fork` run the function too. Other threads may still be running while the function runs. On
/// systems other than Unix, no function is registered.
pub fn at_exit(body: extern "C" fn()) {
    // SAFETY: the function has no preconditions and does not unwind. The C library calls it while the code of this library is
    // in memory: it removes the registrations of a library that is unloaded. If the registration fails, the function is not
    // called.
    #[cfg(unix)]
    unsafe {
        libc::atexit(body)
    };
    #[cfg(not(unix))]
    let _ = body;
}
