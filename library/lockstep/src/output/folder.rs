//! System calls on an open folder, which query, create, rename and remove names in the folder.
//!
//! The path of the folder is resolved once, when it is opened. Later changes of the path have no effect.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{self, Access, AtFlags, Mode, OFlags, Stat};
use rustix::io::{Errno, Result, retry_on_intr};

/// A kind of system call. Tests name the kind before which they change the folder, or which they make fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
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

/// An open folder.
#[derive(Debug)]
pub(super) struct Folder {
    folder: OwnedFd,
    /// The folder, opened for reading as `fsync` requires; `None` if the folder is not to be synced.
    synced: Option<OwnedFd>,
}

/// On Linux and Android a folder is opened for path lookups only, which needs no permission to list the folder. On
/// other systems it is opened for reading.
#[cfg(any(target_os = "linux", target_os = "android"))]
const NAMES_ONLY: OFlags = OFlags::PATH;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const NAMES_ONLY: OFlags = OFlags::RDONLY;

impl Folder {
    pub(super) fn open(path: &Path, sync: bool) -> Result<Folder> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        before(Step::OpenFolder)?;
        let folder = fs::open(path, flags | NAMES_ONLY, Mode::empty())?;
        let synced = if sync {
            before(Step::OpenFolder)?;
            Some(fs::openat(&folder, ".", flags | OFlags::RDONLY, Mode::empty())?)
        } else {
            None
        };
        Ok(Folder { folder, synced })
    }

    /// Creates a `Folder` from a folder that is open for reading.
    pub(super) fn from_open(folder: OwnedFd, sync: bool) -> std::io::Result<Folder> {
        let synced = if sync { Some(folder.try_clone()?) } else { None };
        Ok(Folder { folder, synced })
    }

    /// The status of the folder.
    pub(super) fn stat(&self) -> Result<Stat> {
        fs::fstat(&self.folder)
    }

    /// The status of a name, without following a symbolic link.
    pub(super) fn look(&self, name: &OsStr) -> Result<Option<Stat>> {
        before(Step::Look)?;
        match fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The status of the target of a symbolic link; `None` if the target cannot be reached.
    pub(super) fn follow(&self, name: &OsStr) -> Option<Stat> {
        before(Step::Follow).ok()?;
        fs::statat(&self.folder, name, AtFlags::empty()).ok()
    }

    /// Opens an existing file for writing, without creating or truncating it. For a FIFO the call waits until another
    /// process opens it for reading.
    pub(super) fn open_existing(&self, name: &OsStr) -> Result<OwnedFd> {
        before(Step::OpenExisting)?;
        let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
        retry_on_intr(|| fs::openat(&self.folder, name, flags, Mode::empty()))
    }

    pub(super) fn check_writable(&self, name: &OsStr) -> Result<()> {
        fs::accessat(&self.folder, name, Access::WRITE_OK, AtFlags::EACCESS)
    }

    /// Creates a file under an unused name.
    pub(super) fn create(&self, name: &OsStr, mode: u32) -> Result<OwnedFd> {
        before(Step::Create)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        fs::openat(&self.folder, name, flags, Mode::from_raw_mode(mode))
    }

    /// Creates a file without a name. Not supported by all systems and file systems.
    pub(super) fn create_unnamed(&self, mode: u32) -> Result<OwnedFd> {
        before(Step::CreateUnnamed)?;
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
            fs::openat(&self.folder, ".", flags, Mode::from_raw_mode(mode))
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        {
            let _ = mode;
            Err(Errno::NOSYS)
        }
    }

    /// Gives a file that was created without a name this name, if the name is unused.
    pub(super) fn link_open(&self, file: &std::fs::File, to: &OsStr) -> Result<()> {
        before(Step::LinkOpen)?;
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file));
            match fs::linkat(fs::CWD, path, &self.folder, to, AtFlags::SYMLINK_FOLLOW) {
                // There is no /proc. The other call needs Linux 6.10, or a capability.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => {
                    fs::linkat(file, "", &self.folder, to, AtFlags::EMPTY_PATH)
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
    pub(super) fn rename(&self, from: &OsStr, to: &OsStr) -> Result<()> {
        before(Step::Rename)?;
        fs::renameat(&self.folder, from, &self.folder, to)
    }

    /// Renames a file if the new name is unused. Not supported by all systems and file systems.
    pub(super) fn rename_no_replace(&self, from: &OsStr, to: &OsStr) -> Result<()> {
        before(Step::RenameNoReplace)?;
        #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
        return fs::renameat_with(&self.folder, from, &self.folder, to, fs::RenameFlags::NOREPLACE);
        #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
        return Err(Errno::NOSYS);
    }

    /// Creates a hard link, if its name is unused.
    pub(super) fn link(&self, from: &OsStr, to: &OsStr) -> Result<()> {
        before(Step::Link)?;
        fs::linkat(&self.folder, from, &self.folder, to, AtFlags::empty())
    }

    pub(super) fn remove(&self, name: &OsStr) -> Result<()> {
        before(Step::Remove)?;
        self.remove_at_exit(name)
    }

    /// [`Folder::remove`] at the end of the process, when the hook of the tests does not exist any more.
    pub(super) fn remove_at_exit(&self, name: &OsStr) -> Result<()> {
        fs::unlinkat(&self.folder, name, AtFlags::empty())
    }

    /// Puts the names in the folder on stable storage, if the folder was opened with `sync`.
    pub(super) fn sync(&self) -> Result<()> {
        let Some(folder) = &self.synced else { return Ok(()) };
        before(Step::SyncFolder)?;
        fs::fsync(folder)
    }
}

pub(super) fn set_mode(file: &std::fs::File, mode: u32) -> Result<()> {
    before(Step::SetMode)?;
    fs::fchmod(file, Mode::from_raw_mode(mode))
}

pub(super) fn sync_file(file: &std::fs::File) -> Result<()> {
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
pub(super) fn with_hook<T>(hook: impl FnMut(Step) -> Result<()> + 'static, run: impl FnOnce() -> T) -> T {
    HOOK.set(Some(Box::new(hook)));
    let result = run();
    HOOK.set(None);
    result
}
