//! A program that is run by memcheck. Memcheck reports the branches and addresses that depend on secrets.
//!
//!     valgrind -q --error-exitcode=9 leak_probe KERNEL [OPERATION]
//!     valgrind -q leak_probe verdicts
//!
//! Keys and data are marked undefined, so valgrind's memcheck reports every branch and every address that depends on them.
//! `cpu/soft`, with registers of each width, and `cpu/aesni` must cause no report. `table` and `branch` leak on purpose. If they
//! cause no report, the method does not work. The results of each operation must be undefined too. Otherwise the operation has not
//! used the secrets.
//!
//! `verdicts` runs the operations that must branch on a result that depends on secrets: the comparison of a tag, and the removal of
//! padding. The number of reports must not depend on the position of the wrong byte. `early-exit` is a comparison that leaks this
//! position on purpose, to prove that `verdicts` detects such a leak.
//!
//! `engine/cpu/tests/cpu/leak.rs` runs the program with all of these arguments.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod probe;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod valgrind;

fn main() {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    probe::main();
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    {
        eprintln!("leak_probe: runs on x86-64 Linux only");
        std::process::exit(2);
    }
}
