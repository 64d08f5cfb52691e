//! Folders that are held open by a descriptor, and the system calls on names in them.
//!
//! The path of a folder is resolved once, when it is opened. Later changes of the path have no effect. Paths below a folder are
//! resolved component by component, without following symbolic links: another user of a shared folder can rename files there at any
//! time, and must not be able to redirect a read or a write to another file.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{self, Access, AtFlags, CWD, Dir, Mode, OFlags, Stat};
use rustix::io::{Errno, Result, retry_on_intr};

/// A kind of system call. Tests name the kind before which they change the folder, or which they make fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    OpenFolder,
    Look,
    Follow,
    OpenExisting,
    Create,
    CreateUnnamed,
    SetMode,
    SyncFile,
    Rename,
    RenameNoReplace,
    Link,
    LinkOpen,
    Remove,
    SyncFolder,
}

/// Flags to open a folder only to resolve paths through it. On Linux and Android this needs no permission to list the folder.
#[cfg(any(target_os = "linux", target_os = "android"))]
const TRAVERSE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const TRAVERSE: OFlags = LIST;
/// Flags for a folder that is listed or synced.
const LIST: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// Below a folder of this name, tests simulate a file system that ignores the case of ASCII letters.
#[cfg(test)]
pub(crate) const IGNORES_CASE: &str = "ignores-case";

/// Device and inode number.
pub(crate) type Id = (u64, u64);

pub(crate) fn id(stat: &Stat) -> Id {
    (stat.st_dev, stat.st_ino)
}

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    fd: OwnedFd,
    /// Lookups ignore case, as in some file systems.
    #[cfg(test)]
    ignores_case: bool,
}

impl Folder {
    /// Opens a folder. Symbolic links in its path are followed, unless it is the last component and `follow` is false.
    pub(crate) fn open(path: &Path, follow: bool) -> io::Result<Folder> {
        let flags = if follow { TRAVERSE } else { TRAVERSE | OFlags::NOFOLLOW };
        Folder::open_with(path, flags).map_err(explain)
    }

    /// Opens a folder for a new file. With `sync`, [`Folder::sync`] can be called.
    pub(crate) fn open_for_file(path: &Path, sync: bool) -> Result<Folder> {
        before(Step::OpenFolder)?;
        Folder::open_with(path, if sync { LIST } else { TRAVERSE })
    }

    fn open_with(path: &Path, flags: OFlags) -> Result<Folder> {
        Ok(Folder {
            fd: fs::openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty())?,
            #[cfg(test)]
            ignores_case: path.iter().any(|name| name == IGNORES_CASE),
        })
    }

    /// Opens this folder again, to list or to sync it.
    pub(crate) fn readable(&self) -> Result<Folder> {
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

    /// Opens a folder below this one. All missing folders of the path are created, with the permission bits `mode`
    /// under the umask. With `sync`, the names of new folders are put on stable storage, and [`Folder::sync`] can be called.
    pub(crate) fn make_folder(&self, relative: &Path, mode: u32, sync: bool) -> io::Result<Folder> {
        let flags = if sync { LIST } else { TRAVERSE };
        let mut folder = self.child(OsStr::new("."), flags)?;
        for name in names(relative)? {
            match fs::mkdirat(&folder.fd, &*folder.resolved(name), Mode::from_raw_mode(mode)) {
                Ok(()) if sync => folder.sync()?,
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            folder = folder.child(name, flags).map_err(explain)?;
        }
        Ok(folder)
    }

    fn child(&self, name: &OsStr, flags: OFlags) -> Result<Folder> {
        Ok(Folder {
            fd: self.open_at(name, flags | OFlags::NOFOLLOW)?,
            #[cfg(test)]
            ignores_case: self.ignores_case,
        })
    }

    pub(crate) fn open_at(&self, name: &OsStr, flags: OFlags) -> Result<OwnedFd> {
        fs::openat(&self.fd, &*self.resolved(name), flags | OFlags::CLOEXEC, Mode::empty())
    }

    pub(crate) fn id(&self) -> Result<Id> {
        Ok(id(&self.stat()?))
    }

    /// The status of the folder.
    pub(crate) fn stat(&self) -> Result<Stat> {
        fs::fstat(&self.fd)
    }

    /// The names that this folder stores, in the order of the file system.
    pub(crate) fn names(&self) -> Result<Vec<OsString>> {
        let name =
            |entry: Result<fs::DirEntry>| Ok(OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned());
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
            let stat = fs::statat(&folder.fd, &name, AtFlags::SYMLINK_NOFOLLOW);
            (name, stat)
        };
        Ok(names.into_iter().map(entry).collect())
    }

    /// The status of a name, without following a symbolic link; `None` if it does not exist.
    pub(crate) fn look(&self, name: &OsStr) -> Result<Option<Stat>> {
        before(Step::Look)?;
        match fs::statat(&self.fd, &*self.resolved(name), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The status of the target of a symbolic link; `None` if the target cannot be reached.
    pub(crate) fn follow(&self, name: &OsStr) -> Option<Stat> {
        before(Step::Follow).ok()?;
        fs::statat(&self.fd, &*self.resolved(name), AtFlags::empty()).ok()
    }

    /// Opens an existing file for writing, without creating or truncating it. For a FIFO the call waits until another
    /// process opens it for reading.
    pub(crate) fn open_existing(&self, name: &OsStr) -> Result<OwnedFd> {
        before(Step::OpenExisting)?;
        retry_on_intr(|| self.open_at(name, OFlags::WRONLY | OFlags::NOCTTY))
    }

    pub(crate) fn check_writable(&self, name: &OsStr) -> Result<()> {
        fs::accessat(&self.fd, name, Access::WRITE_OK, AtFlags::EACCESS)
    }

    /// Creates a file under an unused name.
    pub(crate) fn create(&self, name: &OsStr, mode: u32) -> Result<OwnedFd> {
        before(Step::Create)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        fs::openat(&self.fd, name, flags, Mode::from_raw_mode(mode))
    }

    /// Creates a file without a name. Not supported by all systems and file systems.
    pub(crate) fn create_unnamed(&self, mode: u32) -> Result<OwnedFd> {
        before(Step::CreateUnnamed)?;
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
            fs::openat(&self.fd, ".", flags, Mode::from_raw_mode(mode))
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        {
            let _ = mode;
            Err(Errno::NOSYS)
        }
    }

    /// Gives a file that was created without a name this name, if the name is unused.
    pub(crate) fn link_open(&self, file: &File, to: &OsStr) -> Result<()> {
        before(Step::LinkOpen)?;
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file));
            match fs::linkat(fs::CWD, path, &self.fd, &*self.resolved(to), AtFlags::SYMLINK_FOLLOW) {
                // There is no /proc. The other call needs Linux 6.10, or a capability.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => {
                    fs::linkat(file, "", &self.fd, &*self.resolved(to), AtFlags::EMPTY_PATH)
                }
                linked => linked,
            }
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        {
            let _ = (file, to);
            Err(Errno::NOSYS)
        }
    }

    /// Renames a file. An existing file or symbolic link with the new name is replaced.
    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> Result<()> {
        before(Step::Rename)?;
        fs::renameat(&self.fd, from, &self.fd, &*self.resolved(to))
    }

    /// Renames a file if the new name is unused. Not supported by all systems and file systems.
    pub(crate) fn rename_no_replace(&self, from: &OsStr, to: &OsStr) -> Result<()> {
        before(Step::RenameNoReplace)?;
        #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
        return fs::renameat_with(&self.fd, from, &self.fd, &*self.resolved(to), fs::RenameFlags::NOREPLACE);
        #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
        return Err(Errno::NOSYS);
    }

    /// Creates a hard link, if its name is unused.
    pub(crate) fn link(&self, from: &OsStr, to: &OsStr) -> Result<()> {
        before(Step::Link)?;
        fs::linkat(&self.fd, from, &self.fd, &*self.resolved(to), AtFlags::empty())
    }

    pub(crate) fn remove(&self, name: &OsStr) -> Result<()> {
        before(Step::Remove)?;
        self.remove_at_exit(name)
    }

    /// [`Folder::remove`] at the end of the process, when the hook of the tests does not exist any more.
    pub(crate) fn remove_at_exit(&self, name: &OsStr) -> Result<()> {
        fs::unlinkat(&self.fd, name, AtFlags::empty())
    }

    /// Removes a folder, if it is empty.
    pub(crate) fn remove_empty(&self, name: &OsStr) -> Result<()> {
        fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR)
    }

    /// Puts the names in the folder on stable storage. The folder must have been opened for this.
    pub(crate) fn sync(&self) -> Result<()> {
        before(Step::SyncFolder)?;
        fs::fsync(&self.fd)
    }

    /// The name that the system calls get. Tests simulate a file system that ignores case: there, this is the stored
    /// name that differs only in case.
    #[cfg(not(test))]
    #[allow(clippy::unused_self, reason = "the function for tests uses it")]
    fn resolved<'n>(&self, name: &'n OsStr) -> Cow<'n, OsStr> {
        Cow::Borrowed(name)
    }

    #[cfg(test)]
    fn resolved<'n>(&self, name: &'n OsStr) -> Cow<'n, OsStr> {
        // The name `.` is used to list the folder.
        let is_listed = self.ignores_case && name != ".";
        let stored = if is_listed { self.names().unwrap() } else { Vec::new() };
        let found = stored.into_iter().find(|stored| stored.eq_ignore_ascii_case(name));
        found.map_or(Cow::Borrowed(name), Cow::Owned)
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

pub(crate) fn set_mode(file: &File, mode: u32) -> Result<()> {
    before(Step::SetMode)?;
    fs::fchmod(file, Mode::from_raw_mode(mode))
}

pub(crate) fn sync_file(file: &File) -> Result<()> {
    before(Step::SyncFile)?;
    fs::fsync(file)
}

/// Called before every system call that has a [`Step`]. Tests use this function to change the folder as an attacker
/// would, or to make the call fail.
#[cfg(not(test))]
fn before(_step: Step) -> Result<()> {
    Ok(())
}

#[cfg(test)]
fn before(step: Step) -> Result<()> {
    // The hook is removed while it runs, so that its own system calls do not call it again.
    let Some(mut hook) = HOOK.take() else { return Ok(()) };
    let outcome = hook(step);
    HOOK.set(Some(hook));
    outcome
}

#[cfg(test)]
type Hook = Box<dyn FnMut(Step) -> Result<()>>;

#[cfg(test)]
thread_local! {
    static HOOK: std::cell::RefCell<Option<Hook>> = const { std::cell::RefCell::new(None) };
}

/// Runs `run` with a hook that is called before each [`Step`] on this thread.
#[cfg(test)]
pub(crate) fn with_hook<T>(hook: impl FnMut(Step) -> Result<()> + 'static, run: impl FnOnce() -> T) -> T {
    HOOK.set(Some(Box::new(hook)));
    let result = run();
    HOOK.set(None);
    result
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
