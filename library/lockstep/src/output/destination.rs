//! The destination of an output file: a folder and a name in the folder, with all checks that are possible before any
//! data are written.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lockstep_core::shown;
use rustix::fs::{FileType, Stat, fstat};
use rustix::io::Errno;

use super::folder::Folder;
use super::temporary::{self, Outcome, Temporary};
use super::{OnExisting, OutputOptions};
use crate::error::{Error, Result};
use crate::quoted::quoted;

/// The sticky bit.
const STICKY: u32 = 0o1000;

/// A name in an open folder.
#[derive(Debug)]
pub(super) struct Destination {
    path: PathBuf,
    folder: Arc<Folder>,
    name: OsString,
    pub(super) options: OutputOptions,
    pub(super) existing: OnExisting,
    /// The name refers to a device or a FIFO, or to a symbolic link to one.
    is_special: bool,
}

impl Destination {
    /// Opens the folder, and refuses a name that cannot be written.
    pub(super) fn find(path: &Path, options: OutputOptions) -> Result<Destination> {
        let (folder_path, name) = split(path)?;
        let folder = Folder::open(folder_path, options.sync);
        let folder = folder.map_err(|error| no_folder(path, folder_path, error))?;
        Destination::in_folder(folder, path, name, options, OnExisting::of(options))
    }

    /// Like [`Destination::find`], in a folder that is already open.
    pub(super) fn find_in(
        folder: OwnedFd,
        path: &Path,
        options: OutputOptions,
        existing: OnExisting,
    ) -> Result<Destination> {
        let (_, name) = split(path)?;
        let folder = Folder::from_open(folder, options.sync).map_err(Error::file("create", path))?;
        Destination::in_folder(folder, path, name, options, existing)
    }

    fn in_folder(
        folder: Folder,
        path: &Path,
        name: &OsStr,
        options: OutputOptions,
        existing: OnExisting,
    ) -> Result<Destination> {
        let (path, folder, name) = (path.into(), Arc::new(folder), name.into());
        let mut destination = Destination { path, folder, name, options, existing, is_special: false };
        let name = &*destination.name;
        let Some(entry) = destination.folder.look(name).map_err(destination.failed("create"))? else {
            return Ok(destination);
        };
        let target = match file_type(&entry) {
            FileType::Symlink => destination.folder.follow(name),
            _ => Some(entry),
        };
        match target.map(|target| file_type(&target)) {
            Some(FileType::Directory) => Err(destination.failed("write to")(Errno::ISDIR)),
            None | Some(FileType::RegularFile | FileType::Symlink) => {
                destination.check_replaceable(&entry)?;
                Ok(destination)
            }
            Some(kind) => {
                destination.check_special(kind)?;
                destination.is_special = true;
                Ok(destination)
            }
        }
    }

    /// Checks that files can be created in a folder. No particular name is checked.
    pub(super) fn check_folder(path: &Path, options: OutputOptions) -> Result<()> {
        let folder = Folder::open(path, options.sync).map_err(|error| no_folder(path, path, error))?;
        let (folder, name, existing) = (Arc::new(folder), OsString::new(), OnExisting::of(options));
        let destination =
            Destination { path: path.into(), folder, name, options, existing, is_special: false };
        match temporary::trial(&destination.folder, existing) {
            Ok(_) => Ok(()),
            Err(temporary::TrialError::Io(error)) => Err(destination.failed("create a file in")(error)),
            Err(error) => Err(destination.trial_failed(error)),
        }
    }

    /// Opens the device or FIFO. Returns `None` if the output is a new file. For a FIFO the call waits until another
    /// process opens it for reading.
    pub(super) fn open_special(&self) -> Result<Option<File>> {
        if !self.is_special {
            return Ok(None);
        }
        let file = File::from(self.folder.open_existing(&self.name).map_err(self.failed("write to"))?);
        // The open file is checked again, since another process may have replaced the name meanwhile.
        let kind = file_type(&fstat(&file).map_err(self.failed("write to"))?);
        if matches!(kind, FileType::RegularFile | FileType::Directory) {
            return Err(self.refused("another process put something else in its place: try again"));
        }
        self.check_special(kind)?;
        Ok(Some(file))
    }

    /// Checks permissions and, for a new file, tries the final rename with an empty file.
    pub(super) fn check(&self) -> Result<()> {
        if self.is_special {
            return self.folder.check_writable(&self.name).map_err(self.failed("write to"));
        }
        self.trial().map(drop)
    }

    /// Device and inode number of the folder.
    pub(super) fn folder_id(&self) -> Result<(u64, u64)> {
        let stat = self.folder.stat().map_err(self.failed("create"))?;
        Ok((stat.st_dev, stat.st_ino))
    }

    /// Tests with an empty file how the new file can be created and named.
    pub(super) fn trial(&self) -> Result<Outcome> {
        temporary::trial(&self.folder, self.existing).map_err(|error| self.trial_failed(error))
    }

    /// Creates the temporary file for a new file, as a trial in this folder has shown.
    pub(super) fn start(&self, outcome: Outcome) -> Result<Temporary> {
        let started = Temporary::start(Arc::clone(&self.folder), &self.name, outcome, self.options);
        started.map_err(self.failed("create"))
    }

    /// Refuses to replace a file that must not or cannot be replaced.
    fn check_replaceable(&self, entry: &Stat) -> Result<()> {
        if self.existing != OnExisting::Replace {
            return Err(Error::Exists { path: self.path.clone() });
        }
        let folder = self.folder.stat().map_err(self.failed("create"))?;
        let user = rustix::process::geteuid().as_raw();
        if is_protected(&folder, entry.st_uid, user) && !may_act_as_any_owner() {
            return Err(self.refused(
                "the existing file belongs to another user, and in a folder with the sticky bit only its owner can \
                 replace it: choose another name",
            ));
        }
        Ok(())
    }

    /// Refuses files that the options do not permit: any special file with `regular_only`, a block device without
    /// `force`, and a file that cannot be synced with `sync`.
    fn check_special(&self, kind: FileType) -> Result<()> {
        if self.options.regular_only {
            return Err(self.refused("it is not a regular file"));
        }
        if kind == FileType::BlockDevice {
            return match self.existing {
                OnExisting::Replace => Ok(()),
                _ => Err(Error::Exists { path: self.path.clone() }),
            };
        }
        if self.options.sync {
            return Err(self.refused("it is neither a file nor a disk, and cannot be synced: omit the sync"));
        }
        Ok(())
    }

    fn trial_failed(&self, error: temporary::TrialError) -> Error {
        match error {
            temporary::TrialError::CannotKeepExisting => self.refused(
                "this file system can neither rename without replacing nor make hard links, so a file that gets the \
                 name meanwhile would be lost: force overwriting, or choose another folder",
            ),
            temporary::TrialError::Io(error) => self.failed("create")(error),
        }
    }

    fn failed(&self, action: &'static str) -> impl FnOnce(Errno) -> Error {
        let failed = Error::file(action, &self.path);
        move |error| failed(error.into())
    }

    fn refused(&self, reason: &str) -> Error {
        Error::file("write to", &self.path)(io::Error::new(io::ErrorKind::PermissionDenied, reason))
    }
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
        b"." | b".." => Err(Error::file("write to", path)(io::ErrorKind::IsADirectory.into())),
        _ if folder.is_empty() => Ok((Path::new("."), OsStr::from_bytes(name))),
        _ => Ok((Path::new(OsStr::from_bytes(folder)), OsStr::from_bytes(name))),
    }
}

fn no_folder(path: &Path, folder: &Path, error: Errno) -> Error {
    if shown::is_only_key(path.as_os_str().as_bytes()) {
        // Digits of a key in base64 that contain a slash, so that the first part looks like a folder.
        return Error::file("create", path)(error.into());
    }
    // The path of the folder, without trailing slashes.
    let named = path.parent().unwrap_or(folder);
    let reason = match error {
        Errno::NOENT => {
            io::Error::new(io::ErrorKind::NotFound, format!("there is no folder {}", quoted(named)))
        }
        Errno::NOTDIR => {
            io::Error::new(io::ErrorKind::NotADirectory, format!("{} is not a folder", quoted(named)))
        }
        other => other.into(),
    };
    Error::file("create", path)(reason)
}

fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// True if the sticky bit of the folder prevents `user` from replacing a file of `owner`.
fn is_protected(folder: &Stat, owner: u32, user: u32) -> bool {
    folder.st_mode & STICKY != 0 && user != owner && user != folder.st_uid
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
