//! Outputs of earlier runs whose inputs do not exist any more.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::inputs::{MAX_DEPTH, MAX_PATH, decrypted};
use crate::error::{Error, Result};
use crate::folder::{Folder, Id, id};

/// The encrypted files in the output folder that have no input.
#[derive(Debug, Default)]
pub(super) struct Leftovers {
    /// Paths below the output folder. The files had these identities before the run.
    files: BTreeMap<PathBuf, Id>,
    /// Folders for which there is no input folder, as paths below the output folder. Each folder comes after its
    /// parent.
    folders: Vec<PathBuf>,
}

impl Leftovers {
    /// The paths of the files below the output folder, in ascending order.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.keys().map(PathBuf::as_path)
    }

    /// Adds an entry for which there is no input, and its content if it is a folder. `path` is the path of `folder` below the output
    /// folder. A file is added only if it is a regular file, its name ends in `.enc`, and `is_known` returns false for its identity.
    /// Symbolic links, entries whose status cannot be read, and folders beyond `MAX_PATH` or `MAX_DEPTH` are skipped.
    pub(super) fn add(&mut self, folder: &Folder, path: &Path, name: &OsStr, is_known: impl Fn(Id) -> bool) {
        let Ok(Some(stat)) = folder.look(name) else { return };
        let mut pending = vec![(PathBuf::from(name), stat)];
        while let Some((relative, stat)) = pending.pop() {
            let path = path.join(&relative);
            let name = relative.file_name().unwrap_or_default();
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile if decrypted(name).is_some() && !is_known(id(&stat)) => {
                    self.files.insert(path, id(&stat));
                }
                FileType::Directory
                    if path.as_os_str().len() <= MAX_PATH && relative.iter().count() <= MAX_DEPTH =>
                {
                    self.folders.push(path);
                    let entries = folder.list(&relative).unwrap_or_default().into_iter();
                    pending
                        .extend(entries.filter_map(|(name, stat)| Some((relative.join(name), stat.ok()?))));
                }
                _ => {}
            }
        }
    }

    /// Removes the files for which `is_own` returns true, and then the empty folders below which a file was removed. If another file
    /// has taken the name of a leftover during the run, the other file is kept, unless this happens immediately before the removal.
    /// Returns for each leftover whether it was removed.
    pub(super) fn delete(
        &self,
        output: &Folder,
        sync: bool,
        is_own: impl Fn(&File) -> bool,
    ) -> Vec<(&Path, Result<bool>)> {
        let delete = |path: &Path, expected: Id| -> io::Result<bool> {
            let folder = output.open_below(path.parent().unwrap_or(Path::new("")))?;
            let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
            let file = folder.open_file(Path::new(name))?;
            let metadata = file.metadata()?;
            let is_leftover = (metadata.dev(), metadata.ino()) == expected && is_own(&file);
            // The name is compared again, since the check may have taken some time.
            if !is_leftover || folder.look(name)?.is_none_or(|now| id(&now) != expected) {
                return Ok(false);
            }
            folder.remove(name)?;
            if sync {
                folder.sync(|| Ok(&file))?;
            }
            Ok(true)
        };
        let files = self.files.iter();
        let results =
            files.map(|(path, id)| (path.as_path(), delete(path, *id).map_err(Error::file("delete", path))));
        let results: Vec<_> = results.collect();
        let deleted = results.iter().filter(|(_, deleted)| matches!(deleted, Ok(true)));
        let changed: HashSet<_> = deleted.flat_map(|(path, _)| path.ancestors().skip(1)).collect();
        // In this order, subfolders precede their parents. A folder that is not empty remains.
        for path in self.folders.iter().rev().filter(|path| changed.contains(path.as_path())) {
            if let (Some(parent), Some(name)) = (path.parent(), path.file_name())
                && let Ok(parent) = output.open_below(parent)
            {
                let _ = parent.remove_empty(name);
            }
        }
        results
    }
}
