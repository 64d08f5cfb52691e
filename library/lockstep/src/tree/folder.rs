//! Folders that are held open by a descriptor. Paths below them are resolved component by component, without following
//! symbolic links: another user of a shared folder can rename files there at any time, and must not be able to redirect
//! a read or a write to another file.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, Stat, fstat, fsync, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;

/// Flags to open a folder only to resolve paths through it. This needs no permission to list the folder.
#[cfg(any(target_os = "linux", target_os = "android"))]
const TRAVERSE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const TRAVERSE: OFlags = LIST;
/// Flags for a folder that is listed or synced.
const LIST: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Below a folder of this name, tests simulate a file system that ignores the case of ASCII letters.
#[cfg(test)]
pub(super) const IGNORES_CASE: &str = "ignores-case";

/// Device and inode number.
pub(super) type Id = (u64, u64);

pub(super) fn id(stat: &Stat) -> Id {
    (stat.st_dev, stat.st_ino)
}

/// An open folder.
#[derive(Debug)]
pub(super) struct Folder {
    fd: OwnedFd,
    /// Lookups ignore case, as in some file systems.
    #[cfg(test)]
    ignores_case: bool,
}

impl Folder {
    /// Opens a folder. Symbolic links in its path are followed, unless it is the last component and `follow` is false.
    pub(super) fn open(path: &Path, follow: bool) -> io::Result<Folder> {
        let flags = if follow { TRAVERSE } else { TRAVERSE | OFlags::NOFOLLOW };
        let fd = openat(CWD, path, flags, Mode::empty()).map_err(explain)?;
        Ok(Folder {
            fd,
            #[cfg(test)]
            ignores_case: path.iter().any(|name| name == IGNORES_CASE),
        })
    }

    pub(super) fn id(&self) -> io::Result<Id> {
        Ok(id(&fstat(&self.fd)?))
    }

    pub(super) fn try_clone(&self) -> io::Result<Folder> {
        Ok(self.derived(self.fd.try_clone()?))
    }

    /// Lists the folder with the path `relative` below this folder: its names, sorted, each with its status. An empty
    /// path means this folder.
    pub(super) fn list(&self, relative: &Path) -> io::Result<Vec<(OsString, io::Result<Stat>)>> {
        let folder = self.open_below(relative)?;
        let mut names = folder.names()?;
        names.sort();
        let stat = |name: &OsStr| Ok(statat(&folder.fd, name, AtFlags::SYMLINK_NOFOLLOW)?);
        Ok(names
            .into_iter()
            .map(|name| {
                let stat = stat(&name);
                (name, stat)
            })
            .collect())
    }

    /// Opens the folder with the path `relative` below this folder.
    pub(super) fn open_below(&self, relative: &Path) -> io::Result<Folder> {
        let mut folder = self.try_clone()?;
        for name in names(relative)? {
            folder = folder.open_child(name, TRAVERSE)?;
        }
        Ok(folder)
    }

    /// Opens a regular file below this folder for reading.
    ///
    /// # Errors
    /// If a component of the path is a symbolic link, or if the file is not a regular file.
    pub(super) fn open_file(&self, relative: &Path) -> io::Result<File> {
        let name = relative.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = self.open_below(relative.parent().unwrap_or(Path::new("")))?;
        // Without NONBLOCK, opening a FIFO that has replaced the file would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&parent.fd, &*parent.resolved(name), flags, Mode::empty()).map_err(explain)?;
        let file = File::from(file);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file any more"));
        }
        Ok(file)
    }

    /// Opens a folder below this one. All missing folders of the path are created, with the permission bits `mode`
    /// under the umask. With `sync`, the names of new folders are put on stable storage.
    pub(super) fn make_folder(&self, relative: &Path, mode: u32, sync: bool) -> io::Result<Folder> {
        let flags = if sync { LIST } else { TRAVERSE };
        let mut folder = self.derived(openat(&self.fd, ".", flags, Mode::empty())?);
        for name in names(relative)? {
            if folder.create_child(name, mode)? && sync {
                fsync(&folder.fd)?;
            }
            folder = folder.open_child(name, flags)?;
        }
        Ok(folder)
    }

    /// Opens this folder again, for listing or syncing.
    pub(super) fn reader(&self) -> io::Result<OwnedFd> {
        Ok(openat(&self.fd, ".", LIST, Mode::empty())?)
    }

    /// The names that this folder stores, in the order of the file system.
    pub(super) fn names(&self) -> io::Result<Vec<OsString>> {
        let mut found = Vec::new();
        for entry in Dir::read_from(self.reader()?)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                found.push(name.to_owned());
            }
        }
        Ok(found)
    }

    /// The status of a name in this folder, without following a symbolic link; `None` if it does not exist.
    pub(super) fn look(&self, name: &OsStr) -> io::Result<Option<Stat>> {
        match statat(&self.fd, &*self.resolved(name), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a folder in this folder. Returns false if its name exists.
    pub(super) fn create_child(&self, name: &OsStr, mode: u32) -> io::Result<bool> {
        match mkdirat(&self.fd, &*self.resolved(name), Mode::from_raw_mode(mode)) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a file from this folder.
    pub(super) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.fd, name, AtFlags::empty())?)
    }

    /// Removes a folder from this folder, if it is empty.
    pub(super) fn remove_empty(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.fd, name, AtFlags::REMOVEDIR)?)
    }

    fn open_child(&self, name: &OsStr, flags: OFlags) -> io::Result<Folder> {
        let opened = openat(&self.fd, &*self.resolved(name), flags | OFlags::NOFOLLOW, Mode::empty());
        Ok(self.derived(opened.map_err(explain)?))
    }

    /// A folder on the same file system.
    fn derived(&self, fd: OwnedFd) -> Folder {
        Folder {
            fd,
            #[cfg(test)]
            ignores_case: self.ignores_case,
        }
    }

    /// The name that the system calls get. Tests simulate a file system that ignores case: there, this is the stored
    /// name that differs only in case.
    #[cfg(not(test))]
    #[allow(clippy::unused_self, reason = "the function for tests uses it")]
    pub(super) fn resolved<'n>(&self, name: &'n OsStr) -> Cow<'n, OsStr> {
        Cow::Borrowed(name)
    }

    #[cfg(test)]
    pub(super) fn resolved<'n>(&self, name: &'n OsStr) -> Cow<'n, OsStr> {
        let stored = if self.ignores_case { self.names().unwrap() } else { Vec::new() };
        let found = stored.into_iter().find(|stored| stored.eq_ignore_ascii_case(name));
        found.map_or(Cow::Borrowed(name), Cow::Owned)
    }
}

impl From<Folder> for OwnedFd {
    fn from(folder: Folder) -> OwnedFd {
        folder.fd
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn symbolic_links_are_not_followed_at_any_depth() {
        let base = tempfile::tempdir().unwrap();
        let at = |name: &str| base.path().join(name);
        fs::create_dir_all(at("root/a/b")).unwrap();
        fs::create_dir(at("elsewhere")).unwrap();
        fs::write(at("elsewhere/file"), "secret").unwrap();
        fs::write(at("root/a/b/file"), "public").unwrap();
        let root = Folder::open(&at("root"), false).unwrap();
        let mut text = String::new();
        root.open_file(Path::new("a/b/file")).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "public");

        symlink(at("elsewhere"), at("root/a/link")).unwrap();
        symlink(at("elsewhere/file"), at("root/a/b/link")).unwrap();
        for path in ["a/link/file", "a/b/link"] {
            let error = root.open_file(Path::new(path)).unwrap_err().to_string();
            assert!(error.contains("symbolic link"), "{path}: {error}");
        }
        assert!(root.make_folder(Path::new("a/link/new"), 0o777, false).is_err());
        assert!(!at("elsewhere/new").exists());
        for path in ["../elsewhere/file", "/etc/passwd", ""] {
            assert!(root.open_file(Path::new(path)).is_err(), "{path}");
        }
        symlink(at("root"), at("root-link")).unwrap();
        assert!(Folder::open(&at("root-link"), false).is_err());
        assert!(Folder::open(&at("root-link"), true).is_ok());
    }

    #[test]
    fn listing_follows_no_links() {
        let base = tempfile::tempdir().unwrap();
        let at = |name: &str| base.path().join(name);
        fs::create_dir_all(at("root/a")).unwrap();
        fs::create_dir(at("elsewhere")).unwrap();
        fs::write(at("elsewhere/private"), "").unwrap();
        symlink(at("elsewhere"), at("root/link")).unwrap();
        let root = Folder::open(&at("root"), false).unwrap();
        let names: Vec<_> = root.list(Path::new("")).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "link"]);
        assert!(root.list(Path::new("link")).is_err());
        assert!(root.list(Path::new("a")).unwrap().is_empty());
    }

    #[test]
    fn folders_are_created_with_the_requested_permissions() {
        let base = tempfile::tempdir().unwrap();
        let root = Folder::open(base.path(), false).unwrap();
        let made = root.make_folder(Path::new("a/b"), 0o700, true).unwrap();
        let again = root.make_folder(Path::new("a/b"), 0o755, true).unwrap();
        assert_eq!(made.id().unwrap(), again.id().unwrap());
        let mode = fs::metadata(base.path().join("a/b")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn files_that_are_not_regular_are_refused() {
        let base = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("mkfifo").arg(base.path().join("fifo")).status().unwrap();
        assert!(made.success());
        let root = Folder::open(base.path(), false).unwrap();
        // The call returns an error and does not wait for a writer.
        assert!(root.open_file(Path::new("fifo")).is_err());
    }
}
