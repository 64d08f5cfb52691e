//! Folders that are held open by a descriptor, and the system calls on names in them.
//!
//! The path of a folder is resolved once, when it is opened. Later changes of the path have no effect. Paths below a folder are
//! resolved component by component, without following symbolic links: another user of a shared folder can rename files there at any
//! time, and must not be able to redirect a read or a write to another file.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{Access, AtFlags, CWD, Dir, DirEntry, Mode, OFlags, RenameFlags, Stat};
use rustix::io::{Errno, Result, retry_on_intr};

#[cfg(test)]
pub(crate) mod tests;

/// The system calls. In tests, a module with the same functions replaces them. A hook in it runs before each call, and changes the
/// folder as an attacker would, or makes the call fail.
#[cfg(not(test))]
pub(crate) use rustix::fs as sys;
#[cfg(test)]
pub(crate) use tests::sys;

/// Flags to open a folder only to resolve paths through it. On Linux and Android this needs no permission to list the folder.
#[cfg(any(target_os = "linux", target_os = "android"))]
const TRAVERSE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const TRAVERSE: OFlags = LIST;
/// The flag to create a file without a name.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNNAMED: Result<OFlags> = Ok(OFlags::TMPFILE);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const UNNAMED: Result<OFlags> = Err(Errno::NOSYS);
/// Flags for a folder that is listed or synced.
const LIST: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// Device and inode number.
pub(crate) type Id = (u64, u64);

pub(crate) fn id(stat: &Stat) -> Id {
    (stat.st_dev, stat.st_ino)
}

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    fd: OwnedFd,
}

impl Folder {
    /// Opens a folder. Symbolic links in its path are followed. If `follow` is false, the last component must not be a symbolic
    /// link.
    pub(crate) fn open(path: &Path, follow: bool) -> io::Result<Folder> {
        Folder::find(path, follow).map_err(explain)
    }

    /// Does the same as [`Folder::open`], but returns the error of the system without an explanation.
    pub(crate) fn find(path: &Path, follow: bool) -> Result<Folder> {
        let flags = if follow { TRAVERSE } else { TRAVERSE | OFlags::NOFOLLOW };
        Ok(Folder { fd: sys::openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty())? })
    }

    /// Opens this folder again, to list or to sync it.
    fn readable(&self) -> Result<Folder> {
        self.child(OsStr::new("."), LIST)
    }

    /// Opens the folder with the path `relative` below this folder.
    pub(crate) fn open_below(&self, relative: &Path) -> io::Result<Folder> {
        let mut folder = self.child(OsStr::new("."), TRAVERSE)?;
        for name in names(relative)? {
            folder = folder.child(name, TRAVERSE).map_err(explain)?;
        }
        Ok(folder)
    }

    /// Opens a regular file below this folder for reading.
    ///
    /// # Errors
    /// If a component of the path is a symbolic link, or if the file is not a regular file.
    pub(crate) fn open_file(&self, relative: &Path) -> io::Result<File> {
        let name = relative.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = self.open_below(relative.parent().unwrap_or(Path::new("")))?;
        // Without NONBLOCK, opening a FIFO that has replaced the file would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = File::from(parent.open_at(name, flags).map_err(explain)?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file any more"));
        }
        Ok(file)
    }

    /// Opens a folder below this folder. All missing folders of the path are created, with the permission bits `mode` under the
    /// umask. With `sync`, the names of new folders are put on stable storage.
    pub(crate) fn make_folder(&self, relative: &Path, mode: u32, sync: bool) -> io::Result<Folder> {
        let mut folder = self.child(OsStr::new("."), TRAVERSE)?;
        for name in names(relative)? {
            let is_new = match sys::mkdirat(&folder.fd, name, Mode::from_raw_mode(mode)) {
                Ok(()) => true,
                Err(Errno::EXIST) => false,
                Err(error) => return Err(error.into()),
            };
            let child = folder.child(name, TRAVERSE).map_err(explain)?;
            if is_new && sync {
                // Because of the umask, the owner may be unable to list the new folder. A file without a name is then created in it
                // and opened, because a sync needs an open file on the file system.
                let unnamed = |denied| child.create_unnamed(0o600).map_err(|_| denied);
                folder.sync(|| child.readable().map(|child| child.fd).or_else(unnamed))?;
            }
            folder = child;
        }
        Ok(folder)
    }

    fn child(&self, name: &OsStr, flags: OFlags) -> Result<Folder> {
        Ok(Folder { fd: self.open_at(name, flags | OFlags::NOFOLLOW)? })
    }

    pub(crate) fn open_at(&self, name: &OsStr, flags: OFlags) -> Result<OwnedFd> {
        sys::openat(&self.fd, name, flags | OFlags::CLOEXEC, Mode::empty())
    }

    pub(crate) fn id(&self) -> Result<Id> {
        Ok(id(&self.stat()?))
    }

    /// The status of the folder.
    pub(crate) fn stat(&self) -> Result<Stat> {
        rustix::fs::fstat(&self.fd)
    }

    /// The names that this folder stores, in the order of the file system.
    pub(crate) fn names(&self) -> Result<Vec<OsString>> {
        let name = |entry: Result<DirEntry>| Ok(OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned());
        let is_entry = |name: &Result<OsString>| !matches!(name, Ok(name) if name == "." || name == "..");
        Dir::read_from(self.readable()?.fd)?.map(name).filter(is_entry).collect()
    }

    /// Lists the folder with the path `relative` below this folder: its names, sorted, each with its status. An empty
    /// path means this folder.
    pub(crate) fn list(&self, relative: &Path) -> io::Result<Vec<(OsString, Result<Stat>)>> {
        let folder = self.open_below(relative)?;
        let mut names = folder.names()?;
        names.sort();
        let entry = |name: OsString| {
            let stat = sys::statat(&folder.fd, &name, AtFlags::SYMLINK_NOFOLLOW);
            (name, stat)
        };
        Ok(names.into_iter().map(entry).collect())
    }

    /// The status of a name, without following a symbolic link; `None` if it does not exist.
    pub(crate) fn look(&self, name: &OsStr) -> Result<Option<Stat>> {
        match sys::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The status of the target of a symbolic link; `None` if the target cannot be reached.
    pub(crate) fn follow(&self, name: &OsStr) -> Option<Stat> {
        sys::statat(&self.fd, name, AtFlags::empty()).ok()
    }

    /// Opens an existing file for writing, without creating or truncating it. For a FIFO the call waits until another
    /// process opens it for reading.
    pub(crate) fn open_existing(&self, name: &OsStr) -> Result<OwnedFd> {
        retry_on_intr(|| self.open_at(name, OFlags::WRONLY | OFlags::NOCTTY))
    }

    pub(crate) fn check_writable(&self, name: &OsStr) -> Result<()> {
        sys::accessat(&self.fd, name, Access::WRITE_OK, AtFlags::EACCESS)
    }

    /// Creates a file with this name, which must be unused.
    pub(crate) fn create(&self, name: &OsStr, mode: u32) -> Result<OwnedFd> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        sys::openat(&self.fd, name, flags, Mode::from_raw_mode(mode))
    }

    /// Creates a file without a name. Some systems and file systems do not support this.
    pub(crate) fn create_unnamed(&self, mode: u32) -> Result<OwnedFd> {
        let flags = OFlags::RDWR | UNNAMED? | OFlags::CLOEXEC;
        sys::openat(&self.fd, ".", flags, Mode::from_raw_mode(mode))
    }

    /// Gives the name `to`, if it is unused, to a file that was created without a name. The call needs `/proc`.
    pub(crate) fn link_open(&self, file: &File, to: &OsStr) -> Result<()> {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        sys::linkat(CWD, path, &self.fd, to, AtFlags::SYMLINK_FOLLOW)
    }

    /// Renames a file. An existing file or symbolic link with the new name is replaced.
    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> Result<()> {
        sys::renameat(&self.fd, from, &self.fd, to)
    }

    /// Renames a file if the new name is unused. Some systems and file systems do not support this.
    pub(crate) fn rename_no_replace(&self, from: &OsStr, to: &OsStr) -> Result<()> {
        #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
        return sys::renameat_with(&self.fd, from, &self.fd, to, RenameFlags::NOREPLACE);
        #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
        return Err(Errno::NOSYS);
    }

    /// Creates a hard link, if its name is unused.
    pub(crate) fn link(&self, from: &OsStr, to: &OsStr) -> Result<()> {
        sys::linkat(&self.fd, from, &self.fd, to, AtFlags::empty())
    }

    pub(crate) fn remove(&self, name: &OsStr) -> Result<()> {
        sys::unlinkat(&self.fd, name, AtFlags::empty())
    }

    /// Removes a folder, if it is empty.
    pub(crate) fn remove_empty(&self, name: &OsStr) -> Result<()> {
        sys::unlinkat(&self.fd, name, AtFlags::REMOVEDIR)
    }

    /// Puts the names in the folder on stable storage. `open` returns an open file or folder on the file system of this folder.
    ///
    /// A process without permission to list the folder cannot sync only the folder. On Linux, this function then syncs the whole
    /// file system.
    pub(crate) fn sync<F: AsFd>(&self, open: impl FnOnce() -> Result<F>) -> Result<()> {
        match self.readable() {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Err(Errno::ACCESS) => sys::syncfs(open()?),
            folder => {
                drop(open);
                sys::fsync(folder?.fd)
            }
        }
    }
}

/// The components of a relative path, which must be plain names: no `..`, no root.
fn names(relative: &Path) -> io::Result<Vec<&OsStr>> {
    let name = |component| match component {
        Component::Normal(name) => Ok(name),
        _ => Err(io::Error::from(io::ErrorKind::InvalidInput)),
    };
    relative.components().map(name).collect()
}

fn explain(error: Errno) -> io::Error {
    match error {
        Errno::LOOP | Errno::MLINK => io::Error::other("it is a symbolic link, which is not followed"),
        // The system also returns this error for a symbolic link in the place of a folder.
        Errno::NOTDIR => io::Error::other("a part of its path is not a folder, or is a symbolic link"),
        other => other.into(),
    }
}
