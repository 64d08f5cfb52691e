//! The temporary file, and the rename to its final name.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock, fstat, openat, unlinkat};
use rustix::io::{Errno, Result};

use super::OutputOptions;
use super::folder::{self, Folder};

/// Permission bits of a temporary file: no other user may open it while it is incomplete.
const WHILE_WRITING: u32 = 0o600;
/// Mask of the permission bits of a mode, without set-user-ID, set-group-ID and the sticky bit.
const PERMISSIONS: u32 = 0o777;

/// How a finished file gets its final name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placement {
    /// By a rename that replaces an existing name.
    Replace,
    /// By a rename that fails if the name exists.
    NoReplace,
    /// By a hard link, which fails if the name exists, and the removal of the temporary name.
    Link,
}

/// The result of a trial.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcome {
    placement: Placement,
    /// The permission bits of a new file, after the umask of the process or the default access list of the folder has
    /// been applied.
    permissions: u32,
}

/// The reason why a trial failed.
#[derive(Debug)]
pub(super) enum TrialError {
    /// The file system has no operation that names a file without replacing an existing file.
    CannotKeepExisting,
    Io(Errno),
}

impl From<Errno> for TrialError {
    fn from(error: Errno) -> TrialError {
        TrialError::Io(error)
    }
}

/// Tests whether a file can be created and renamed in this folder. The test uses an empty file, which it then removes.
pub(super) fn trial(folder: &Folder, options: OutputOptions) -> std::result::Result<Outcome, TrialError> {
    let (from, file) = create(folder, options.mode.0)?;
    let to = match unused_name() {
        Ok(to) => to,
        Err(error) => {
            folder.remove(&from)?;
            return Err(error.into());
        }
    };
    let permissions = fstat(&file).map(|stat| stat.st_mode & PERMISSIONS);
    let placed = choose_placement(folder, &from, &to, options.force);
    let removed = match placed {
        Ok(Placement::Replace | Placement::NoReplace) => folder.remove(&to),
        // The file still has its first name. For `Link`, `choose_placement` has removed the second name.
        Ok(Placement::Link) | Err(_) => folder.remove(&from),
    };
    let placement = placed?;
    removed?;
    Ok(Outcome { placement, permissions: permissions? })
}

fn choose_placement(
    folder: &Folder,
    from: &OsStr,
    to: &OsStr,
    force: bool,
) -> std::result::Result<Placement, TrialError> {
    if force {
        folder.rename(from, to)?;
        return Ok(Placement::Replace);
    }
    if folder.rename_no_replace(from, to).is_ok() {
        return Ok(Placement::NoReplace);
    }
    match folder.link(from, to) {
        Ok(()) => folder.remove(to)?,
        Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::IO | Errno::NOENT)) => return Err(error.into()),
        Err(_) => return Err(TrialError::CannotKeepExisting),
    }
    Ok(Placement::Link)
}

/// A file that is being written. Its temporary name is removed on drop, unless the file has its final name.
#[derive(Debug)]
pub(super) struct Temporary {
    file: File,
    name: TemporaryName,
    target: OsString,
    outcome: Outcome,
    sync: bool,
    is_placed: bool,
}

impl Temporary {
    pub(super) fn start(
        folder: Arc<Folder>,
        target: &OsStr,
        outcome: Outcome,
        sync: bool,
    ) -> Result<Temporary> {
        let (name, file) = create(&folder, WHILE_WRITING)?;
        let name = TemporaryName { folder, name };
        Ok(Temporary { file, name, target: target.into(), outcome, sync, is_placed: false })
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn name(&self) -> &TemporaryName {
        &self.name
    }

    /// Gives the file its permissions and its final name. The error is the step that failed.
    pub(super) fn place(mut self) -> std::result::Result<(), Failed> {
        let TemporaryName { folder, name } = &self.name;
        folder::set_mode(&self.file, self.outcome.permissions).map_err(Failed::Mode)?;
        if self.sync {
            folder::sync_file(&self.file).map_err(Failed::Sync)?;
        }
        if !self.bears_its_name().map_err(Failed::Rename)? {
            return Err(Failed::Taken);
        }
        match self.outcome.placement {
            Placement::Replace => folder.rename(name, &self.target),
            Placement::NoReplace => folder.rename_no_replace(name, &self.target),
            Placement::Link => folder.link(name, &self.target).map(|()| {
                // An error is ignored: the file has its final name, and a remaining temporary name does no harm.
                let _ = folder.remove(name);
            }),
        }
        .map_err(Failed::Rename)?;
        let synced = folder.sync().map_err(Failed::Sync);
        self.is_placed = true;
        synced
    }

    /// True if the temporary name still refers to this file. Another process with write access to the folder may have
    /// replaced the file.
    fn bears_its_name(&self) -> Result<bool> {
        let ours = fstat(&self.file)?;
        let found = self.name.folder.look(&self.name.name)?;
        Ok(found.is_some_and(|found| (found.st_dev, found.st_ino) == (ours.st_dev, ours.st_ino)))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_placed {
            // `drop` cannot return an error.
            let _ = self.name.remove();
        }
    }
}

/// The step of [`Temporary::place`] that failed.
#[derive(Debug)]
pub(super) enum Failed {
    Mode(Errno),
    Sync(Errno),
    Rename(Errno),
    /// Another process has removed or replaced the temporary name.
    Taken,
}

/// The name of a temporary file, in its open folder.
#[derive(Debug, Clone)]
pub struct TemporaryName {
    folder: Arc<Folder>,
    name: OsString,
}

impl TemporaryName {
    /// Removes the file. A program calls this if it ends without dropping its [`OutputFile`](super::OutputFile).
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn remove(&self) -> std::io::Result<()> {
        Ok(self.folder.remove(&self.name)?)
    }
}

/// Creates a file with a random name, and locks it: see [`remove_abandoned`].
fn create(folder: &Folder, mode: u32) -> Result<(OsString, File)> {
    loop {
        let name = unused_name()?;
        let file = File::from(folder.create(&name, mode)?);
        // Errors other than `WOULDBLOCK` are ignored: on a file system without locks, [`remove_abandoned`] cannot lock
        // files either, and so removes none.
        let is_locked_by_another =
            flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK);
        // Another process may have removed the file as abandoned before this process locked it.
        if !is_locked_by_another && fstat(&file)?.st_nlink > 0 {
            return Ok((name, file));
        }
    }
}

/// Removes the files of this user that have the name of a temporary file and are not locked. Returns the number of
/// files removed.
pub(super) fn remove_abandoned(folder: BorrowedFd<'_>) -> Result<usize> {
    let mut removed = 0;
    let user = rustix::process::geteuid().as_raw();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if !is_temporary_name(name) {
            continue;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = openat(folder, name, flags, Mode::empty()) else { continue };
        let stat = fstat(&file)?;
        let is_ours = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_uid == user;
        if is_ours
            && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
            && unlinkat(folder, name, AtFlags::empty()).is_ok()
        {
            removed += 1;
        }
    }
    Ok(removed)
}

/// True for the names that [`unused_name`] creates.
fn is_temporary_name(name: &OsStr) -> bool {
    let digits = name.as_bytes().strip_prefix(b".lockstep-").and_then(|rest| rest.strip_suffix(b".tmp"));
    digits.is_some_and(|digits| digits.len() == 16 && digits.iter().all(u8::is_ascii_hexdigit))
}

/// Returns a name with 64 random bits, so that it is unused and cannot be guessed.
fn unused_name() -> Result<OsString> {
    let mut random = [0; 8];
    // This fails only on a system without random numbers.
    getrandom::fill(&mut random).map_err(|_| Errno::IO)?;
    Ok(format!(".lockstep-{:016x}.tmp", u64::from_ne_bytes(random)).into())
}
