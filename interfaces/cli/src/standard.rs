//! Detects standard streams that were closed when the program started (`<&-`, `>&-`).
//!
//! Before `main`, the Rust runtime opens `/dev/null` in place of a closed stream, so that no other file gets the number of the stream.
//! In `python -m lockstep`, `__main__.py` does the same. Without a check, the command would therefore read no data or lose its output,
//! and still report success.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::error::{Result, ensure};

/// The standard streams that were closed: bit 0 is for standard input, bit 1 for standard output, bit 2 for standard error.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// Records that a standard stream was closed when the program started. `number` is 0 for standard input, 1 for standard output, and 2
/// for standard error.
pub fn set_closed(number: u8) {
    CLOSED.fetch_or(1_u8.checked_shl(number.into()).unwrap_or(0), Ordering::Relaxed);
}

/// The metadata of standard output. They are read from the descriptor, because the path `/dev/stdout` is missing in some containers.
pub(crate) fn output_metadata() -> io::Result<Metadata> {
    File::from(io::stdout().as_fd().try_clone_to_owned()?).metadata()
}

/// Checks that standard input was not closed.
pub(crate) fn check_input() -> Result<()> {
    check(0, "standard input is closed: give a file, or redirect standard input")
}

/// Checks that standard output was not closed.
pub(crate) fn check_output() -> Result<()> {
    check(1, "standard output is closed: redirect it, or give the output with -o if the command has it")
}

fn check(number: u8, message: &str) -> Result<()> {
    ensure(CLOSED.load(Ordering::Relaxed) >> number & 1 == 0, message)
}
