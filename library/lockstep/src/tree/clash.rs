//! Names that a file system does not distinguish, for example because it ignores case, normalises Unicode or drops dots
//! at the end: two inputs would then have the same output.

use std::ffi::OsStr;
use std::path::Path;

use lockstep::quoted;

use super::folder::{Entry, Folder};
use crate::error::{Error, Result, failed};

/// The error for the output `path`, whose name finds a file that is stored under the name `stored`.
pub(crate) fn error(path: &Path, stored: Option<&OsStr>) -> Error {
    let stored = stored.map_or_else(|| "a similar name".to_owned(), |stored| quoted(stored).to_string());
    failed(format!(
        "the file system does not distinguish the name of the output {} from {stored}, which exists in the same \
         folder: rename one of the two, or choose another output folder",
        quoted(path)
    ))
}

/// Returns the [`error`] if the folder stores the last component of `path` under another name.
///
/// # Errors
/// This error, and those of the file system.
pub(crate) fn check(folder: &Folder, path: &Path) -> Result<()> {
    let name = path.file_name().unwrap_or_default();
    match folder.entry(name).map_err(Error::io("look at", path))? {
        Entry::Alias(stored) => Err(error(path, stored.as_deref())),
        Entry::Missing | Entry::Stored => Ok(()),
    }
}
