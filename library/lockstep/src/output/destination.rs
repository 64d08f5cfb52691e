//! The destination of an output file: a folder and a name in the folder. This module makes all checks that are possible before any
//! data are written.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lockstep_core::shown;
use rustix::fs::{FileType, Mode, Stat, fstat};
use rustix::io::Errno;

use super::temporary::{self, Outcome, Temporary};
use super::{OnExisting, OutputOptions};
use crate::error::{Error, Result, ensure};
use crate::folder::{Folder, sys};
use crate::quoted::quoted;

/// The sticky bit.
const STICKY: u32 = 0o1000;

/// A name in an open folder.
#[derive(Debug)]
pub(super) struct Destination {
    pub(super) path: PathBuf,
    pub(super) folder: Arc<Folder>,
    name: OsString,
    pub(super) options: OutputOptions,
    pub(super) existing: OnExisting,
    /// The name refers to a device, to a FIFO, or to a symbolic link to a device or a FIFO.
    is_special: bool,
}

impl Destination {
    /// Opens the folder, and refuses a name that cannot be written.
    pub(super) fn find(path: &Path, options: OutputOptions) -> Result<Destination> {
        let folder = open_folder(path, split(path)?.0)?;
        Destination::find_in(folder, path, options, OnExisting::of(options))
    }

    /// Does the same as [`Destination::find`] in a folder that is already open.
    pub(super) fn find_in(
        folder: Folder,
        path: &Path,
        options: OutputOptions,
        existing: OnExisting,
    ) -> Result<Destination> {
        let (path, name, folder) = (path.into(), split(path)?.1.into(), Arc::new(folder));
        let mut destination = Destination { path, folder, name, options, existing, is_special: false };
        let Destination { path, folder, name, .. } = &destination;
        let Some(entry) = folder.look(name).map_err(Error::file("create", path))? else {
            return Ok(destination);
        };
        let target = match file_type(&entry) {
            FileType::Symlink => folder.follow(name),
            _ => Some(entry),
        };
        match target.map(|target| file_type(&target)) {
            Some(FileType::Directory) => return Err(Error::file("write to", path)(Errno::ISDIR)),
            None | Some(FileType::RegularFile | FileType::Symlink) => {
                destination.check_replaceable(&entry)?
            }
            Some(kind) => {
                destination.check_special(kind)?;
                destination.is_special = true;
            }
        }
        Ok(destination)
    }

    /// Opens the device or FIFO. Returns `None` if the output is a new file. For a FIFO the call waits until another
    /// process opens it for reading.
    pub(super) fn open_special(&self) -> Result<Option<File>> {
        if !self.is_special {
            return Ok(None);
        }
        let failed = || Error::file("write to", &self.path);
        let file = File::from(self.folder.open_existing(&self.name).map_err(failed())?);
        // The open file is checked again, since another process may have replaced the file since the first check.
        let kind = file_type(&fstat(&file).map_err(failed())?);
        let is_special = !matches!(kind, FileType::RegularFile | FileType::Directory);
        ensure(is_special, || self.refused("another process put something else in its place: try again"))?;
        self.check_special(kind)?;
        Ok(Some(file))
    }

    /// Checks permissions and, for a new file, tries the final rename with an empty file.
    pub(super) fn check(&self) -> Result<()> {
        if self.is_special {
            return self.folder.check_writable(&self.name).map_err(Error::file("write to", &self.path));
        }
        self.trial("create").map(drop)
    }

    /// Tests with an empty file how the new file can be created and named. `action` is for messages.
    pub(super) fn trial(&self, action: &'static str) -> Result<Outcome> {
        let reason = "this file system can neither rename without replacing nor make hard links, so a file that gets the \
             name meanwhile would be lost: allow overwriting, or choose another folder";
        let outcome =
            temporary::trial(&self.folder, self.existing).map_err(Error::file(action, &self.path))?;
        outcome.ok_or_else(|| self.refused(reason))
    }

    /// Gives a complete file its permissions and its final name.
    pub(super) fn place(&self, temporary: Temporary, file: &File) -> Result<()> {
        let failed = |action| Error::file(action, &self.path);
        let mode = Mode::from_raw_mode(temporary.outcome.permissions & self.options.mode.0);
        sys::fchmod(file, mode).map_err(failed("set the mode of"))?;
        if self.options.sync {
            sys::fsync(file).map_err(failed("sync"))?;
        }
        const RENAME: &str = "rename the finished file to";
        match temporary.rename(file, &self.folder, &self.name) {
            Ok(true) if self.options.sync => self.folder.sync(|| Ok(file)).map_err(failed("sync")),
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::file(RENAME, &self.path)(io::Error::other(
                "another process removed or replaced the temporary file: use a folder in which no other user can write",
            ))),
            Err(Errno::EXIST) => Err(Error::Exists { path: self.path.clone() }),
            Err(error) => Err(failed(RENAME)(error)),
        }
    }

    /// Refuses to replace a file that must not or cannot be replaced.
    fn check_replaceable(&self, entry: &Stat) -> Result<()> {
        self.check_may_replace()?;
        let folder = self.folder.stat().map_err(Error::file("create", &self.path))?;
        let user = rustix::process::geteuid().as_raw();
        let reason = "the existing file belongs to another user, and in a folder with the sticky bit only its owner can \
                      replace it: choose another name";
        let is_owner = user == entry.st_uid || user == folder.st_uid;
        let may_replace = folder.st_mode & STICKY == 0 || is_owner || may_act_as_any_owner();
        ensure(may_replace, || self.refused(reason))
    }

    /// Checks a special file against the options. With `regular_only`, any special file is refused. Without `force`, a block device is
    /// refused. With `sync`, a file that cannot be synced is refused.
    fn check_special(&self, kind: FileType) -> Result<()> {
        ensure(!self.options.regular_only, || self.refused("it is not a regular file"))?;
        if kind == FileType::BlockDevice {
            return self.check_may_replace();
        }
        let reason = "it is neither a file nor a disk, and cannot be synced: omit the sync";
        ensure(!self.options.sync, || self.refused(reason))
    }

    fn check_may_replace(&self) -> Result<()> {
        ensure(self.existing == OnExisting::Replace, || Error::Exists { path: self.path.clone() })
    }

    fn refused(&self, reason: &str) -> Error {
        Error::file("write to", &self.path)(io::Error::new(io::ErrorKind::PermissionDenied, reason))
    }
}

/// Checks in advance that files can be created in a folder. The check leaves no file behind.
///
/// # Errors
/// [`Error::File`].
pub(crate) fn check_folder(path: &Path, options: OutputOptions) -> Result<()> {
    let folder = Arc::new(open_folder(path, path)?);
    let (path, name, existing) = (path.into(), OsString::new(), OnExisting::of(options));
    let destination = Destination { path, folder, name, options, existing, is_special: false };
    destination.trial("create a file in").map(drop)
}

impl OnExisting {
    fn of(options: OutputOptions) -> OnExisting {
        if options.force { OnExisting::Replace } else { OnExisting::Fail }
    }
}

/// The folder of a path, and the name in it.
fn split(path: &Path) -> Result<(&Path, &OsStr)> {
    let bytes = path.as_os_str().as_bytes();
    let start = bytes.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let (folder, name) = bytes.split_at(start);
    let wrong =
        |reason: &str| Err(Error::file("create", path)(io::Error::new(io::ErrorKind::InvalidInput, reason)));
    match name {
        b"" if bytes.is_empty() => wrong("the name is empty"),
        b"" => wrong("it ends in `/`: add the name of a file"),
        b"." | b".." => Err(Error::file("write to", path)(io::ErrorKind::IsADirectory)),
        _ if folder.is_empty() => Ok((Path::new("."), OsStr::from_bytes(name))),
        _ => Ok((Path::new(OsStr::from_bytes(folder)), OsStr::from_bytes(name))),
    }
}

/// Opens the folder of the output `path`.
fn open_folder(path: &Path, folder: &Path) -> Result<Folder> {
    let explain = |error: Errno| {
        if shown::is_only_key(path.as_os_str().as_bytes()) {
            // The path is a key in base64 that contains a slash, so that its first part looks like a folder. The message must not
            // show it.
            return error.into();
        }
        // The path of the folder, without trailing slashes.
        let named = quoted(path.parent().unwrap_or(folder));
        match error {
            Errno::NOENT => io::Error::new(io::ErrorKind::NotFound, format!("there is no folder {named}")),
            Errno::NOTDIR => io::Error::new(io::ErrorKind::NotADirectory, format!("{named} is not a folder")),
            other => other.into(),
        }
    };
    Folder::find(folder, true).map_err(|error| Error::file("create", path)(explain(error)))
}

fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// True if the sticky bit does not apply to this process: it is root or has the corresponding capability.
fn may_act_as_any_owner() -> bool {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use rustix::thread::{CapabilitySet, capabilities};
        capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::FOWNER))
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        rustix::process::geteuid().is_root()
    }
}
