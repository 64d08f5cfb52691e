//! Tests of open folders, and the system calls with a hook and with a simulated file system.

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

/// A umask such as 0477 makes new folders in which files can be created, but which cannot be listed.
#[cfg(target_os = "linux")]
#[test]
fn new_folders_that_cannot_be_listed_are_synced() {
    let base = tempfile::tempdir().unwrap();
    let root = Folder::open(base.path(), false).unwrap();
    let unlisted = |step| if step == sys::Step::ListFolder { Err(Errno::ACCESS) } else { Ok(()) };
    let make = || root.make_folder(Path::new("a/b"), 0o777, true);
    let made = sys::with_hook(unlisted, make).unwrap();
    assert_eq!(made.id().unwrap(), root.open_below(Path::new("a/b")).unwrap().id().unwrap());
    assert!(made.names().unwrap().is_empty(), "the file for the sync has no name");
}

#[test]
fn files_that_are_not_regular_are_refused() {
    let base = tempfile::tempdir().unwrap();
    let made = std::process::Command::new("mkfifo").arg(base.path().join("fifo")).status().unwrap();
    assert!(made.success());
    let root = Folder::open(base.path(), false).unwrap();
    // The call returns an error instead of waiting for a process that opens the FIFO for writing.
    assert!(root.open_file(Path::new("fifo")).is_err());
}

/// The functions of `rustix::fs` that [`Folder`] uses, with a hook before each call that has a [`Step`](sys::Step). Below a folder with
/// the name [`IGNORES_CASE`](sys::IGNORES_CASE), names are found as in a file system that ignores the case of ASCII letters.
pub(crate) mod sys {
    use std::cell::RefCell;
    use std::ffi::{CString, OsStr};
    use std::os::fd::{AsFd, AsRawFd, OwnedFd};
    use std::os::unix::ffi::{OsStrExt, OsStringExt};

    pub(crate) use rustix::fs::accessat;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) use rustix::fs::syncfs;
    use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
    use rustix::io::Result;
    use rustix::path::Arg;

    pub(crate) const IGNORES_CASE: &str = "ignores-case";

    /// The name that is passed to the system calls. In a folder that ignores case, this is the stored name that differs only in
    /// case.
    fn stored(folder: impl AsFd, name: impl Arg) -> Result<CString> {
        let name = name.into_c_str()?.into_owned();
        let path = format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd());
        let Ok(path) = std::fs::read_link(path) else { return Ok(name) };
        if name.as_c_str() == c"." || path.iter().all(|part| part != IGNORES_CASE) {
            return Ok(name);
        }
        let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
        let wanted = OsStr::from_bytes(name.as_bytes());
        let found = entries.into_iter().find(|entry| entry.eq_ignore_ascii_case(wanted));
        Ok(found.map_or(name, |found| CString::new(found.into_vec()).unwrap()))
    }

    /// The kinds of system calls that have a hook.
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
        ListFolder,
        SyncFolder,
    }

    type Hook = Box<dyn FnMut(Step) -> Result<()>>;

    thread_local! {
        static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
    }

    /// Runs `run` with a hook that is called before each [`Step`] on this thread.
    pub(crate) fn with_hook<T>(hook: impl FnMut(Step) -> Result<()> + 'static, run: impl FnOnce() -> T) -> T {
        HOOK.set(Some(Box::new(hook)));
        let result = run();
        HOOK.set(None);
        result
    }

    fn before(step: Step) -> Result<()> {
        // The hook is taken out of the variable while it runs, so that its own system calls do not call it again. At the end of the
        // thread, the variable may be destroyed already; then there is no hook.
        let Ok(Some(mut hook)) = HOOK.try_with(RefCell::take) else { return Ok(()) };
        let outcome = hook(step);
        HOOK.set(Some(hook));
        outcome
    }

    pub(crate) fn openat(folder: impl AsFd, name: impl Arg, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let is_unnamed = flags.contains(OFlags::TMPFILE);
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let is_unnamed = false;
        if is_unnamed {
            before(Step::CreateUnnamed)?;
        } else if flags.contains(OFlags::CREATE) {
            before(Step::Create)?;
        } else if flags == super::super::LIST | OFlags::NOFOLLOW | OFlags::CLOEXEC {
            before(Step::ListFolder)?;
        } else if flags.contains(OFlags::DIRECTORY) {
            before(Step::OpenFolder)?;
        } else if flags.contains(OFlags::WRONLY) {
            before(Step::OpenExisting)?;
        }
        let name = stored(&folder, name)?;
        fs::openat(folder, name, flags, mode)
    }

    pub(crate) fn statat(folder: impl AsFd, name: impl Arg, flags: AtFlags) -> Result<Stat> {
        let follows = !flags.contains(AtFlags::SYMLINK_NOFOLLOW);
        before(if follows { Step::Follow } else { Step::Look })?;
        let name = stored(&folder, name)?;
        fs::statat(folder, name, flags)
    }

    pub(crate) fn linkat(
        from_folder: impl AsFd,
        from: impl Arg,
        folder: impl AsFd,
        name: impl Arg,
        flags: AtFlags,
    ) -> Result<()> {
        before(if flags.is_empty() { Step::Link } else { Step::LinkOpen })?;
        let name = stored(&folder, name)?;
        fs::linkat(from_folder, from, folder, name, flags)
    }

    pub(crate) fn renameat(
        from_folder: impl AsFd,
        from: impl Arg,
        folder: impl AsFd,
        name: impl Arg,
    ) -> Result<()> {
        before(Step::Rename)?;
        let name = stored(&folder, name)?;
        fs::renameat(from_folder, from, folder, name)
    }

    pub(crate) fn renameat_with(
        from_folder: impl AsFd,
        from: impl Arg,
        folder: impl AsFd,
        name: impl Arg,
        flags: RenameFlags,
    ) -> Result<()> {
        before(Step::RenameNoReplace)?;
        let name = stored(&folder, name)?;
        fs::renameat_with(from_folder, from, folder, name, flags)
    }

    pub(crate) fn mkdirat(folder: impl AsFd, name: impl Arg, mode: Mode) -> Result<()> {
        let name = stored(&folder, name)?;
        fs::mkdirat(folder, name, mode)
    }

    pub(crate) fn unlinkat(folder: impl AsFd, name: impl Arg, flags: AtFlags) -> Result<()> {
        before(Step::Remove)?;
        fs::unlinkat(folder, name, flags)
    }

    pub(crate) fn fchmod(file: impl AsFd, mode: Mode) -> Result<()> {
        before(Step::SetMode)?;
        fs::fchmod(file, mode)
    }

    pub(crate) fn fsync(file: impl AsFd) -> Result<()> {
        let is_folder = FileType::from_raw_mode(fs::fstat(&file)?.st_mode) == FileType::Directory;
        before(if is_folder { Step::SyncFolder } else { Step::SyncFile })?;
        fs::fsync(file)
    }
}
