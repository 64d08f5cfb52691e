//! Shows a memory checker what branches and addresses depend on secrets.
//!
//!     valgrind -q --error-exitcode=9 leak_probe KERNEL [OPERATION]
//!     valgrind -q leak_probe verdicts
//!
//! Keys and data are marked undefined, so valgrind's memcheck reports every branch and every address that depends on
//! them. `cpu/soft` and `cpu/aesni` must give no report. `table` and `branch` leak on purpose: if they give none, nothing
//! here is worth anything. What comes out must still be undefined, or the secrets never went in.
//!
//! `verdicts` is about what must branch on a secret once: the comparison of a tag, and the removal of padding. The number
//! of reports may not depend on where the fault is. `early-exit` is its control.
//!
//! `crates/cpu/tests/leak.rs` runs all of it.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod probe;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod valgrind;

fn main() {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    probe::main();
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    {
        eprintln!("leak_probe: talks to valgrind on x86-64 Linux only");
        std::process::exit(2);
    }
}
