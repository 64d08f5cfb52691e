//! Warnings about files with secrets that other users can read.

use std::path::Path;

use lockstep::{keyfile, quoted};

use crate::terminal;

/// Prints a warning if other users can read or change a file that contains a secret. The permissions of pipes, such as
/// those of a shell's process substitution, are irrelevant.
pub(crate) fn warn_if_open_to_others(path: &Path, what: &str, quiet: bool) {
    // The file has already been read, so a failure to query its permissions is ignored.
    if path != Path::new("-") && keyfile::is_open_to_others(path).unwrap_or(false) {
        let name = quoted(path);
        terminal::warn(
            quiet,
            &format!("others can read or change the {what} {name}: chmod 600 keeps it private"),
        );
    }
}
