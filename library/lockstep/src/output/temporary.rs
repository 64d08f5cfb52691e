//! The temporary file, and the operation that gives it its final name.
//!
//! If the system and the file system support it (`O_TMPFILE` of Linux), the file has no name until it is complete, so that
//! nothing of it remains if the process is killed. Otherwise it has a temporary name.

use std::ffi::OsStr;
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::{FileType, FlockOperation, OFlags, Stat, flock, fstat};
use rustix::io::{Errno, Result};

use super::OnExisting;
use super::name::{Placement, TemporaryName, is_temporary};
use crate::folder::{Folder, id};

/// Permission bits of a temporary file: no other user may open it while it is incomplete.
const WHILE_WRITING: u32 = 0o600;
/// Mask of the permission bits of a mode, without set-user-ID, set-group-ID and the sticky bit.
const PERMISSIONS: u32 = 0o777;
/// A temporary file that is not locked counts as abandoned if its last modification was at least this long ago. On some network
/// file systems, a lock is visible only on the machine that holds it, so that a file of a process on another machine appears
/// unlocked. A running process usually modifies its file more often than once in this time.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The result of a trial.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcome {
    placement: Placement,
    /// True if a file can be created without a name.
    is_unnamed: bool,
    /// A mask of permission bits: the umask of the process or the default access list of the folder removes all other bits from the
    /// mode of a new file.
    pub(super) permissions: u32,
}

/// Tests how a file can be created and named in this folder. The test uses an empty file, which it then removes. Returns `None` if
/// the file system has no operation that names a file without replacing an existing file.
pub(super) fn trial(folder: &Arc<Folder>, existing: OnExisting) -> Result<Option<Outcome>> {
    trial_unnamed(folder, existing).or_else(|_| trial_named(folder, existing))
}

fn trial_unnamed(folder: &Arc<Folder>, existing: OnExisting) -> Result<Option<Outcome>> {
    // Tests set this variable, so that files get temporary names on every file system.
    if cfg!(debug_assertions) && std::env::var_os("LOCKSTEP_TEST_NAMED_FILES").is_some() {
        return Err(Errno::OPNOTSUPP);
    }
    let file = create_unnamed(folder, PERMISSIONS)?;
    let mut permissions = fstat(&file)?.st_mode & PERMISSIONS;
    if permissions == PERMISSIONS {
        // The umask is zero, or was not applied: Linux before 6.0 ignores it for files without a name on file systems without
        // access lists.
        let (name, named) = create_named(folder, PERMISSIONS)?;
        permissions = fstat(&named)?.st_mode & PERMISSIONS;
        name.remove()?;
    }
    let mut name = TemporaryName::unused(folder)?;
    name.link(&file)?;
    name.remove()?;
    // A file system that can give a file a name by a link can also rename the file.
    let placement = if existing == OnExisting::Replace { Placement::Replace } else { Placement::Link };
    Ok(Some(Outcome { placement, is_unnamed: true, permissions }))
}

fn trial_named(folder: &Arc<Folder>, existing: OnExisting) -> Result<Option<Outcome>> {
    let (mut from, file) = create_named(folder, PERMISSIONS)?;
    let permissions = fstat(&file)?.st_mode & PERMISSIONS;
    let mut to = TemporaryName::unused(folder)?;
    let placement = choose_placement(&mut from, to.as_os_str(), existing)?;
    if placement.is_some() {
        to.set_exists()?;
        to.remove()?;
    }
    from.remove()?;
    Ok(placement.map(|placement| Outcome { placement, is_unnamed: false, permissions }))
}

fn choose_placement(from: &mut TemporaryName, to: &OsStr, existing: OnExisting) -> Result<Option<Placement>> {
    if existing == OnExisting::Replace {
        from.place(Placement::Replace, to)?;
        return Ok(Some(Placement::Replace));
    }
    if from.place(Placement::NoReplace, to).is_ok() {
        return Ok(Some(Placement::NoReplace));
    }
    match from.place(Placement::Link, to) {
        Ok(()) => Ok(Some(Placement::Link)),
        Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::IO | Errno::NOENT)) => Err(error),
        Err(_) if existing == OnExisting::FailByLookup => {
            from.place(Placement::ReplaceUnused, to)?;
            Ok(Some(Placement::ReplaceUnused))
        }
        Err(_) => Ok(None),
    }
}

/// The name of a file that is being written. On drop, the file is removed, unless it has its final name.
#[derive(Debug)]
pub(super) struct Temporary {
    /// `None` while the file has no name.
    name: Option<TemporaryName>,
    pub(super) outcome: Outcome,
}

impl Temporary {
    /// Creates a file in the folder by the operations that succeeded in a trial in this folder.
    pub(super) fn start(folder: &Arc<Folder>, outcome: Outcome) -> Result<(File, Temporary)> {
        let (name, file) = if outcome.is_unnamed {
            (None, create_unnamed(folder, WHILE_WRITING)?)
        } else {
            let (name, file) = create_named(folder, WHILE_WRITING)?;
            (Some(name), file)
        };
        Ok((file, Temporary { name, outcome }))
    }

    /// Gives the file its final name; returns false if another process with write access to the folder has removed or replaced the
    /// temporary name.
    pub(super) fn rename(self, file: &File, folder: &Arc<Folder>, target: &OsStr) -> Result<bool> {
        let placement = self.outcome.placement;
        let mut name = match self.name {
            None if placement == Placement::Link => return folder.link_open(file, target).map(|()| true),
            None => {
                let mut name = TemporaryName::unused(folder)?;
                name.link(file)?;
                name
            }
            Some(name) => name,
        };
        if folder.look(name.as_os_str())?.map(|found| id(&found)) != Some(id(&fstat(file)?)) {
            return Ok(false);
        }
        name.place(placement, target).map(|()| true)
    }
}

/// Creates a file without a name. Locks it, because it may get a temporary name later: see [`remove_abandoned`].
fn create_unnamed(folder: &Folder, mode: u32) -> Result<File> {
    let file = File::from(folder.create_unnamed(mode)?);
    lock(&file);
    Ok(file)
}

/// Creates a file with a temporary name, and locks it: see [`remove_abandoned`].
fn create_named(folder: &Arc<Folder>, mode: u32) -> Result<(TemporaryName, File)> {
    loop {
        let mut name = TemporaryName::unused(folder)?;
        let file = name.create(mode)?;
        // Another process may have removed the file as abandoned before this process locked it.
        if lock(&file) && fstat(&file)?.st_nlink > 0 {
            return Ok((name, file));
        }
    }
}

/// Locks a file of this process; returns false if another process has locked the file. Other errors are ignored: on a file system
/// without locks, [`remove_abandoned`] cannot lock files either, and so removes none.
fn lock(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK)
}

/// Removes the temporary files that killed processes of this user have left in a folder: regular files with one name that were last
/// modified more than an hour ago. Files of running processes are locked and are kept. The limit of an hour is for network file
/// systems that do not show the locks of other machines.
///
/// # Errors
/// If the folder cannot be read. A file that cannot be removed is skipped.
pub(crate) fn remove_abandoned(folder: &Folder) -> Result<()> {
    let user = rustix::process::geteuid().as_raw();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let is_abandoned = |stat: &Stat| {
        let modified = u64::try_from(stat.st_mtime).map_or(Duration::ZERO, Duration::from_secs);
        FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && (stat.st_uid, stat.st_nlink) == (user, 1)
            && now.saturating_sub(modified) >= ABANDONED
    };
    let remove = |name: &OsStr| -> Result<()> {
        if !folder.look(name)?.is_some_and(|stat| is_abandoned(&stat)) {
            return Ok(());
        }
        // An exclusive lock on NFS needs a file that is open for writing.
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = folder.open_at(name, flags)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        // The status is read after the file was locked, because from then on no process that respects locks renames or removes the
        // file.
        let stat = fstat(&file)?;
        let is_same = folder.look(name)?.map(|found| id(&found)) == Some(id(&stat));
        if is_same && is_abandoned(&stat) { folder.remove(name) } else { Ok(()) }
    };
    for name in folder.names()?.iter().filter(|name| is_temporary(name)) {
        // Errors are ignored, because the files of other processes may disappear, be locked or not be writable at any time, and
        // because a file that remains is removed by a later call.
        let _ = remove(name);
    }
    Ok(())
}
