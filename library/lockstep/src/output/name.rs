//! Temporary names. A name is removed by the process that has created it: on drop, or at the end of the process.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, TryLockError};
use std::time::Duration;

use rustix::io::{Errno, Result};

use crate::creator::Creator;
use crate::folder::Folder;

/// The names that exist. After a fork, the list in the child also has the names of the parent.
static NAMES: Mutex<Vec<Arc<Entry>>> = Mutex::new(Vec::new());
/// True once the process is ending. A file that is created afterwards is removed at once.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// The operation that gives a finished file its final name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placement {
    /// A rename that replaces an existing name. A file without a name first gets a temporary name.
    Replace,
    /// The rename of [`Placement::Replace`], after a lookup has shown that the name is unused. If another process creates a file with this
    /// name after the lookup, the rename replaces that file. Threads of this process take turns, so that no file of another thread is
    /// lost.
    ReplaceUnused,
    /// A rename that fails if the name exists.
    NoReplace,
    /// A hard link, whose creation fails if the name exists. If the file has a temporary name, this name is removed afterwards.
    Link,
}

#[derive(Debug)]
struct Entry {
    folder: Arc<Folder>,
    name: OsString,
    creator: Creator,
}

/// A temporary name in a folder. The name is removed on drop if a file has it.
///
/// The name is also removed if the process ends by `exit` or by a return from `main` while the value exists, because the values of
/// other threads are then not dropped.
#[derive(Debug)]
pub(super) struct TemporaryName {
    entry: Arc<Entry>,
    has_file: bool,
}

impl TemporaryName {
    /// A name with 64 random bits, so that it is unused and cannot be guessed.
    pub(super) fn unused(folder: &Arc<Folder>) -> Result<TemporaryName> {
        static AT_EXIT: Once = Once::new();
        AT_EXIT.call_once(|| lockstep_cache::exit::at_exit(remove_all));
        let mut random = [0; 8];
        // This fails only on a system without random numbers.
        getrandom::fill(&mut random).map_err(|_| Errno::IO)?;
        let name = format!(".lockstep-{:016x}.tmp", u64::from_ne_bytes(random)).into();
        let entry = Arc::new(Entry { folder: Arc::clone(folder), name, creator: Creator::current() });
        with_names(|names| names.push(Arc::clone(&entry)));
        Ok(TemporaryName { entry, has_file: false })
    }

    pub(super) fn as_os_str(&self) -> &OsStr {
        &self.entry.name
    }

    /// Creates a file with this name.
    pub(super) fn create(&mut self, mode: u32) -> Result<File> {
        let file = self.entry.folder.create(&self.entry.name, mode)?;
        self.set_exists().map(|()| file.into())
    }

    /// Gives this name to a file that was created without a name.
    pub(super) fn link(&mut self, file: &File) -> Result<()> {
        self.entry.folder.link_open(file, &self.entry.name)?;
        self.set_exists()
    }

    /// Records that a file has this name.
    ///
    /// # Errors
    /// If the process is ending, because nothing would remove the name later.
    pub(super) fn set_exists(&mut self) -> Result<()> {
        self.has_file = true;
        if IS_ENDING.load(Ordering::Acquire) { Err(Errno::CANCELED) } else { Ok(()) }
    }

    /// Removes the name, if a file has it.
    pub(super) fn remove(mut self) -> Result<()> {
        if std::mem::take(&mut self.has_file) { self.entry.folder.remove(&self.entry.name) } else { Ok(()) }
    }

    /// Gives the file the name `to`. After a rename, no file has the temporary name any more.
    pub(super) fn place(&mut self, placement: Placement, to: &OsStr) -> Result<()> {
        let Entry { folder, name, .. } = &*self.entry;
        match placement {
            Placement::Replace => folder.rename(name, to)?,
            Placement::ReplaceUnused => {
                static TURN: Mutex<()> = Mutex::new(());
                let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                if folder.look(to)?.is_some() {
                    return Err(Errno::EXIST);
                }
                folder.rename(name, to)?;
            }
            Placement::NoReplace => folder.rename_no_replace(name, to)?,
            Placement::Link => return folder.link(name, to),
        }
        self.has_file = false;
        Ok(())
    }
}

impl Drop for TemporaryName {
    fn drop(&mut self) {
        if self.has_file && self.entry.creator.is_current() {
            // `drop` cannot return an error.
            let _ = self.entry.folder.remove(&self.entry.name);
        }
        with_names(|names| names.retain(|entry| !Arc::ptr_eq(entry, &self.entry)));
    }
}

/// True for the names that [`TemporaryName::unused`] creates.
pub(super) fn is_temporary(name: &OsStr) -> bool {
    let digits = name.as_bytes().strip_prefix(b".lockstep-").and_then(|rest| rest.strip_suffix(b".tmp"));
    digits.is_some_and(|digits| digits.len() == 16 && digits.iter().all(u8::is_ascii_hexdigit))
}

/// Removes all names at the end of the process. Names of a parent process, which a fork has copied, are kept.
extern "C" fn remove_all() {
    IS_ENDING.store(true, Ordering::Release);
    with_names(|names| {
        for entry in names.iter().filter(|entry| entry.creator.is_current()) {
            // A file that cannot be removed remains, and a later run of the program removes it.
            let _ = entry.folder.remove(&entry.name);
        }
    });
}

/// Calls a function with the list of names. A fork can copy the mutex in its locked state into a child process, where no thread
/// unlocks it. Therefore the wait is limited, and after it the function is not called. The functions that are passed make no slow
/// calls, except the function that runs at the end of the process.
fn with_names(action: impl FnOnce(&mut Vec<Arc<Entry>>)) {
    for _ in 0..1000 {
        match NAMES.try_lock() {
            Ok(mut names) => return action(&mut names),
            Err(TryLockError::Poisoned(names)) => return action(&mut names.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}
