//! The user's cache directory. It stores results that take long to compute, for use by later processes. The cache is
//! optional: if a file is missing, or cannot be read or written, the program only takes longer.
//!
//! The modules [`environment`], [`exit`] and [`fresh`] contain calls of the operating system that are unrelated to the
//! cache, but are used by several crates.

pub mod environment;
pub mod exit;
pub mod fresh;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A folder of small files in the user's cache directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    folder: PathBuf,
    /// True if the folder contains only files of this cache, so that old files may be removed.
    is_ours: bool,
}

impl Cache {
    /// `lockstep/PART` in the user's cache directory. The cache directory is `$XDG_CACHE_HOME`, `$HOME/.cache` or
    /// `%LOCALAPPDATA%`: the first of these whose environment variable contains an absolute path.
    pub fn of_user(part: &str) -> Option<Cache> {
        Cache::of(part, crate::environment::variable)
    }

    fn of(part: &str, environment: impl Fn(&str) -> Option<OsString>) -> Option<Cache> {
        let folder = |name, below: &str| {
            let value = environment(name).filter(|value| Path::new(value).is_absolute())?;
            Some(Path::new(&value).join(below))
        };
        let cache = folder("XDG_CACHE_HOME", "").or_else(|| folder("HOME", ".cache"));
        let cache = cache.or_else(|| folder("LOCALAPPDATA", ""))?;
        Some(Cache { folder: cache.join("lockstep").join(part), is_ours: true })
    }

    /// A cache in this folder. The first write creates the folder.
    pub fn at(folder: impl Into<PathBuf>) -> Cache {
        Cache { folder: folder.into(), is_ours: false }
    }

    /// The folder that contains the files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Derives a file name from a text: a 128-bit hash of the whole text. The hash need not be cryptographic, because a
    /// user who constructs a collision damages only their own cache.
    pub fn name_of(all: &str) -> String {
        format!("{:016x}{:016x}", hash(all.as_bytes()), fnv(SECOND_BASIS, all.as_bytes()))
    }

    /// True if there is a file of this name that can be read.
    pub fn contains(&self, name: &str) -> bool {
        self.open(name).is_some()
    }

    /// The names of all entries of the folder.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    /// The content of a file of at most `max` bytes. `None` if the file is missing, longer, or cannot be read. Also
    /// returns `None` if another user could have written the file, because the caller may pass the content to a driver.
    pub fn read(&self, name: &str, max: u64) -> Option<Vec<u8>> {
        let (file, metadata) = self.open(name)?;
        let written = metadata.modified().ok();
        if written.and_then(|then| then.elapsed().ok()).is_some_and(|age| age > RENEW_AFTER) {
            // Sets the modification time to the current time, so that `prune` does not remove a file that is still in
            // use.
            let _ = file.set_modified(SystemTime::now());
        }
        let mut content = Vec::new();
        file.take(max + 1).read_to_end(&mut content).ok()?;
        (content.len() as u64 <= max).then_some(content)
    }

    fn open(&self, name: &str) -> Option<(fs::File, fs::Metadata)> {
        let mut options = fs::OpenOptions::new();
        options.read(true);
        // Without this flag, opening a FIFO would block until another process writes to it.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
        let file = options.open(self.folder.join(name)).ok()?;
        let metadata = file.metadata().ok()?;
        (metadata.is_file() && is_own(&metadata)).then_some((file, metadata))
    }

    /// Writes a file atomically, with permissions for this user only.
    ///
    /// # Errors
    /// Errors of the file system. After an error, no unfinished file remains.
    pub fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.folder)?;
        // On Unix, the mode of the new file is 0600.
        let mut file = tempfile::Builder::new().prefix(name).suffix(UNFINISHED).tempfile_in(&self.folder)?;
        file.write_all(content)?;
        file.persist(self.folder.join(name))?;
        if self.is_ours {
            self.prune(SystemTime::now());
        }
        Ok(())
    }

    /// Removes files that have not been read for a long time, such as those of earlier drivers and versions. Also removes
    /// unfinished files of processes that were killed.
    fn prune(&self, now: SystemTime) {
        for name in self.names() {
            let limit = if name.ends_with(UNFINISHED) { KEEP_UNFINISHED } else { KEEP };
            let path = self.folder.join(&name);
            let is_old = fs::symlink_metadata(&path).is_ok_and(|metadata| {
                let age = metadata.modified().ok().and_then(|written| now.duration_since(written).ok());
                metadata.is_file() && age.is_some_and(|age| age > limit)
            });
            if is_old {
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Removes a file if it exists.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.folder.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            outcome => outcome,
        }
    }
}

/// Files that have not been read for this time are removed. The value is half a year, which is longer than the time
/// between two releases of a driver.
const KEEP: Duration = Duration::from_secs(180 * 24 * 3600);

/// Reading a file sets its modification time to the current time, but only if the file was last modified longer ago
/// than this. Most reads therefore do not change the modification time.
const RENEW_AFTER: Duration = Duration::from_secs(24 * 3600);

/// Unfinished files are removed after this time. Writing a file takes only milliseconds.
const KEEP_UNFINISHED: Duration = Duration::from_secs(3600);

/// True if no other user can have written the file.
#[cfg(unix)]
#[allow(unsafe_code, reason = "one call of the C library")]
fn is_own(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    // SAFETY: `geteuid` has no preconditions and cannot fail.
    let user = unsafe { libc::geteuid() };
    metadata.uid() == user && metadata.mode() & 0o022 == 0
}

#[cfg(not(unix))]
fn is_own(_: &fs::Metadata) -> bool {
    true
}

/// The suffix of the names of files that are not yet completely written.
pub const UNFINISHED: &str = ".new";

/// The initial value of the second hash: 2^64 divided by the golden ratio.
const SECOND_BASIS: u64 = 0x9e37_79b9_7f4a_7c15;

/// FNV-1a with 64 bits. It detects accidental changes; it is not cryptographic.
pub fn hash(bytes: &[u8]) -> u64 {
    fnv(0xcbf2_9ce4_8422_2325, bytes)
}

fn fnv(basis: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(basis, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests;
