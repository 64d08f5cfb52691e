//! Folders that are held open by a descriptor. Paths below them are resolved component by component, without following
//! symbolic links: another user of a shared folder can rename files there at any time, and must not be able to redirect
//! a read or a write to another file.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, Stat, fstat, fsync, mkdirat, openat, statat};
use rustix::io::Errno;

/// Flags to open a folder only to resolve paths through it. This needs no permission to list the folder.
#[cfg(any(target_os = "linux", target_os = "android"))]
const TRAVERSE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const TRAVERSE: OFlags = LIST;
/// Flags for a folder that is listed or synced.
const LIST: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Device and inode number.
pub(crate) type Id = (u64, u64);

pub(crate) fn id(stat: &Stat) -> Id {
    (stat.st_dev, stat.st_ino)
}

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder(OwnedFd);

impl Folder {
    /// Opens a folder. Symbolic links in its path are followed, unless it is the last component and `follow` is false.
    pub(crate) fn open(path: &Path, follow: bool) -> io::Result<Folder> {
        let flags = if follow { TRAVERSE } else { TRAVERSE | OFlags::NOFOLLOW };
        Ok(Folder(openat(CWD, path, flags, Mode::empty()).map_err(explain)?))
    }

    pub(crate) fn id(&self) -> io::Result<Id> {
        Ok(id(&fstat(&self.0)?))
    }

    /// Lists the folder with the path `relative` below this folder: its names, sorted, each with its status. An empty
    /// path means this folder.
    pub(crate) fn list(&self, relative: &Path) -> io::Result<Vec<(OsString, io::Result<Stat>)>> {
        let mut folder = self.0.try_clone()?;
        for name in names(relative)? {
            folder = openat(&folder, name, TRAVERSE | OFlags::NOFOLLOW, Mode::empty()).map_err(explain)?;
        }
        let mut found = Vec::new();
        for entry in Dir::read_from(openat(&folder, ".", LIST, Mode::empty())?)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                let stat = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(io::Error::from);
                found.push((name.to_owned(), stat));
            }
        }
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(found)
    }

    /// Opens a regular file below this folder for reading.
    ///
    /// # Errors
    /// If a component of the path is a symbolic link, or if the file is not a regular file.
    pub(crate) fn open_file(&self, relative: &Path) -> io::Result<File> {
        let (parent, name) = self.walk_to(relative)?;
        let parent = parent.as_ref().unwrap_or(&self.0);
        // Without NONBLOCK, opening a FIFO that has replaced the file would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(parent, name, flags, Mode::empty()).map_err(explain)?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file any more"));
        }
        Ok(file)
    }

    /// Opens a folder below this one. All missing folders of the path are created, with the permission bits `mode`
    /// under the umask. With `sync`, each new name is on stable storage before the function returns, and the returned
    /// folder can be synced.
    pub(crate) fn make_folder(&self, relative: &Path, mode: u32, sync: bool) -> io::Result<Folder> {
        let flags = if sync { LIST } else { TRAVERSE };
        let mut folder = openat(&self.0, ".", flags, Mode::empty())?;
        for name in names(relative)? {
            match mkdirat(&folder, name, Mode::from_raw_mode(mode)) {
                Ok(()) if sync => fsync(&folder)?,
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            folder = openat(&folder, name, flags | OFlags::NOFOLLOW, Mode::empty()).map_err(explain)?;
        }
        Ok(Folder(folder))
    }

    /// Opens this folder again, for listing or syncing.
    pub(crate) fn reader(&self) -> io::Result<OwnedFd> {
        Ok(openat(&self.0, ".", LIST, Mode::empty())?)
    }

    /// Returns the parent folder of `relative` (`None` if the parent is this folder) and the last component of
    /// `relative`.
    fn walk_to<'p>(&self, relative: &'p Path) -> io::Result<(Option<OwnedFd>, &'p OsStr)> {
        let mut folder: Option<OwnedFd> = None;
        let mut names = names(relative)?;
        let last = names.pop().ok_or(io::ErrorKind::InvalidInput)?;
        for name in names {
            let parent = folder.as_ref().unwrap_or(&self.0);
            folder = Some(openat(parent, name, TRAVERSE | OFlags::NOFOLLOW, Mode::empty()).map_err(explain)?);
        }
        Ok((folder, last))
    }
}

impl From<Folder> for OwnedFd {
    fn from(folder: Folder) -> OwnedFd {
        folder.0
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
