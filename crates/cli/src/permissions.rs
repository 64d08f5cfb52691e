//! Files with secrets that others than their owner can read.

use std::path::Path;

use lockstep::{keyfile, quoted};

use crate::terminal;

/// Warns if others can read or change a file that holds a secret. Pipes, such as those of a shell's process substitution,
/// have no permissions that matter.
pub(crate) fn warn_if_open_to_others(path: &Path, what: &str, quiet: bool) {
    // The file has been read: what cannot be said of it any more is no failure.
    if path != Path::new("-") && keyfile::is_open_to_others(path).unwrap_or(false) {
        let name = quoted(path);
        terminal::warn(
            quiet,
            &format!("others can read or change the {what} {name}: chmod 600 keeps it private"),
        );
    }
}
