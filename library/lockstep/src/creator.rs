//! The process that has created a value. After a fork, the child process has a copy of the value. It must not use the copy:
//! both processes would write to the same file, and use the same nonces.

use std::io;

/// The process that has created a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Creator(u32);

impl Creator {
    /// The process that makes this call.
    pub(crate) fn current() -> Creator {
        Creator(std::process::id())
    }

    pub(crate) fn is_current(self) -> bool {
        self == Creator::current()
    }

    /// Returns an error if the current process is not the creator.
    pub(crate) fn check(self) -> io::Result<()> {
        if self.is_current() {
            return Ok(());
        }
        Err(io::Error::other(
            "it was created before a fork, by the parent process: write and close it there, or create another one",
        ))
    }
}
