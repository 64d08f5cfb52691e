//! Detection of names that a file system does not distinguish, for example because it ignores case, normalises Unicode or drops
//! dots at the end. Two outputs with such names would be the same file.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::Path;

use rustix::io;

use crate::error::{Error, Result, failed};
use crate::folder::{Folder, Id, id};
use crate::quoted::quoted;

/// The names that a folder stored when it was listed.
#[derive(Debug)]
pub(super) struct StoredNames {
    pub(super) names: HashSet<OsString>,
    by_id: OnceCell<HashMap<Id, OsString>>,
}

impl StoredNames {
    pub(super) fn list(folder: &Folder) -> io::Result<StoredNames> {
        let names = folder.names()?.into_iter().collect();
        Ok(StoredNames { names, by_id: OnceCell::new() })
    }

    /// Checks that the folder stores the last component of `path`. A lookup of this name has found the file with the identity
    /// `found`.
    ///
    /// # Errors
    /// If the folder stores the file under another name.
    pub(super) fn check(&self, folder: &Folder, path: &Path, found: Id) -> Result<()> {
        if self.names.contains(path.file_name().unwrap_or_default()) {
            return Ok(());
        }
        match self.name_of(folder, found) {
            Some(stored) => Err(not_distinguished(path, Some(stored))),
            // Another process may have created the file after the folder was listed.
            None => check(folder, path).map(drop),
        }
    }

    /// The name under which the folder stores the file with the identity `file`.
    fn name_of(&self, folder: &Folder, file: Id) -> Option<&OsStr> {
        let with_id = |name: &OsString| Some((id(&folder.look(name).ok()??), name.clone()));
        let by_id = self.by_id.get_or_init(|| self.names.iter().filter_map(with_id).collect());
        by_id.get(&file).map(OsString::as_os_str)
    }
}

/// Compares the last component of `path` with the names that its folder stores, and returns these names; `None` if the file does
/// not exist. During the comparison, other processes may create, replace and remove files in the folder: a name that another
/// process adds or removes is not an error.
///
/// # Errors
/// If the folder stores another name for which the file system finds the same file; errors of the file system.
pub(super) fn check(folder: &Folder, path: &Path) -> Result<Option<StoredNames>> {
    let name = path.file_name().unwrap_or_default();
    let mut before = None;
    loop {
        // The folder is listed after the name was found. If the folder were listed first, a file that is created between the two
        // calls would be missing in the list.
        let found = folder.look(name).map_err(Error::file("look at", path))?;
        let Some(found) = found.map(|stat| id(&stat)) else { return Ok(None) };
        let names = StoredNames::list(folder).map_err(Error::file("look at", path))?;
        if names.names.contains(name) {
            return Ok(Some(names));
        }
        // If no name is stored for the file, another process has probably removed or replaced it since it was found. If the next
        // attempt finds the same file, and again no name, the folder stores it under another name.
        match names.name_of(folder, found) {
            None if before != Some(found) => before = Some(found),
            stored => return Err(not_distinguished(path, stored)),
        }
    }
}

/// The error for the output `path`, whose name finds a file that is stored under the name `stored`.
fn not_distinguished(path: &Path, stored: Option<&OsStr>) -> Error {
    let stored = stored.map_or_else(|| "a similar name".to_owned(), |stored| quoted(stored).to_string());
    failed(format!(
        "the file system does not distinguish the name of the output {} from {stored}, which exists in the same \
         folder: rename one of the two, or choose another output folder",
        quoted(path)
    ))
}

#[cfg(test)]
mod tests;
