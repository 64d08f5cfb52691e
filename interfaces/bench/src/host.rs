//! The interface to the program that runs a measurement.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Services of the program that runs a measurement: progress, signals, memory, temporary files.
pub trait Host {
    /// True if the measurement must stop. It is checked between timed calls.
    fn is_stopped(&self) -> bool;

    /// Shows which step is being measured.
    fn show_step(&self, step: &str);

    /// Checks that `bytes` bytes can be allocated. In the error message, `purpose` is printed after the amount of
    /// memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if there is too little memory.
    fn check_memory(&self, bytes: u64, purpose: &str) -> Result<()>;

    /// Called before a temporary folder is created. The guard is dropped after the folder was removed.
    fn guard_folder(&self) -> Box<dyn FolderGuard>;

    /// The program `lockstep`, which the suite `files` runs.
    ///
    /// # Errors
    /// If its path is not known.
    fn program(&self) -> io::Result<PathBuf>;
}

/// Removes a temporary folder if the process ends before the folder was removed.
pub trait FolderGuard {
    /// Sets the path of the folder, once it exists.
    fn set_path(&mut self, path: &Path);
}

impl dyn Host {
    /// Returns an error if the measurement must stop.
    pub(crate) fn check_stopped(&self) -> Result<()> {
        if self.is_stopped() { Err(Error::Stopped) } else { Ok(()) }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A host that never stops a measurement and shows nothing.
    pub(crate) struct TestHost;

    impl Host for TestHost {
        fn is_stopped(&self) -> bool {
            false
        }

        fn show_step(&self, _step: &str) {}

        fn check_memory(&self, _bytes: u64, _purpose: &str) -> Result<()> {
            Ok(())
        }

        fn guard_folder(&self) -> Box<dyn FolderGuard> {
            unreachable!("no test measures the suite `files`")
        }

        fn program(&self) -> io::Result<PathBuf> {
            unreachable!("no test measures the suite `files`")
        }
    }
}
