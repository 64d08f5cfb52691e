//! The user's cache directory: what took long to find out, kept for the next process. Nothing in it is needed: a file that
//! is not there, cannot be read or cannot be written costs time and nothing else.

pub mod environment;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// A folder of small files in the user's cache directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    folder: PathBuf,
    /// Whatever lies in the folder is a cache's.
    is_ours: bool,
}

impl Cache {
    /// `lockstep/PART` in the user's cache: `$XDG_CACHE_HOME`, `$HOME/.cache` or `%LOCALAPPDATA%`, whichever is there and
    /// an absolute path.
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

    /// This folder, which need not be there yet.
    pub fn at(folder: impl Into<PathBuf>) -> Cache {
        Cache { folder: folder.into(), is_ours: false }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A name for a file that depends on all of this: 128 bits against accidents. Nobody gains by a collision in a cache
    /// of his own.
    pub fn name_of(all: &str) -> String {
        let (first, second) = (fnv(0xcbf2_9ce4_8422_2325, all.as_bytes()), fnv(GOLDEN, all.as_bytes()));
        format!("{first:016x}{second:016x}")
    }

    /// True if there is a file of this name that can be read.
    pub fn contains(&self, name: &str) -> bool {
        self.open(name).is_some()
    }

    /// The files there are, by name.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    /// What a file of this name holds, if it is there, can be read and is no longer than `most` bytes. What others could have
    /// written is not read: drivers are given what lies here.
    pub fn read(&self, name: &str, most: u64) -> Option<Vec<u8>> {
        let (file, metadata) = self.open(name)?;
        let written = metadata.modified().ok();
        if written.and_then(|then| then.elapsed().ok()).is_some_and(|age| age > RENEWED) {
            // It is of use, and stays.
            let _ = file.set_modified(SystemTime::now());
        }
        let mut content = Vec::new();
        file.take(most + 1).read_to_end(&mut content).ok()?;
        (content.len() as u64 <= most).then_some(content)
    }

    fn open(&self, name: &str) -> Option<(fs::File, fs::Metadata)> {
        let mut options = fs::OpenOptions::new();
        options.read(true);
        // Anything but a file might wait for somebody to write to it.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
        let file = options.open(self.folder.join(name)).ok()?;
        let metadata = file.metadata().ok()?;
        (metadata.is_file() && is_own(&metadata)).then_some((file, metadata))
    }

    /// Writes a file that appears whole or not at all, for nobody else to write to.
    ///
    /// # Errors
    /// Those of the file system. Nothing is left behind then.
    pub fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.folder)?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let fresh = self.folder.join(format!("{name}.{}-{number}{UNFINISHED}", std::process::id()));
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = match options.open(&fresh) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Of a process of the same number that was killed.
                fs::remove_file(&fresh)?;
                options.open(&fresh)?
            }
            opened => opened?,
        };
        let written = file.write_all(content).and_then(|()| fs::rename(&fresh, self.folder.join(name)));
        match written {
            Ok(()) if self.is_ours => self.prune(SystemTime::now()),
            Ok(()) => {}
            Err(_) => drop(fs::remove_file(&fresh)),
        }
        written
    }

    /// Removes what nobody reads any more: files of drivers and versions that are gone, and what was being written when its
    /// process was killed.
    fn prune(&self, now: SystemTime) {
        for name in self.names() {
            let most = if name.ends_with(UNFINISHED) { UNFINISHED_KEPT } else { KEPT };
            let path = self.folder.join(&name);
            let is_old = fs::symlink_metadata(&path).is_ok_and(|metadata| {
                let age = metadata.modified().ok().and_then(|written| now.duration_since(written).ok());
                metadata.is_file() && age.is_some_and(|age| age > most)
            });
            if is_old {
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Removes a file, if it is there.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.folder.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            outcome => outcome,
        }
    }
}

/// How long a file is kept that nobody reads.
const KEPT: Duration = Duration::from_secs(180 * 24 * 3600);

/// After what time reading a file is worth noting.
const RENEWED: Duration = Duration::from_secs(24 * 3600);

/// How long somebody may take to write one.
const UNFINISHED_KEPT: Duration = Duration::from_secs(3600);

/// True if nobody but this user can have written the file.
#[cfg(unix)]
#[allow(unsafe_code, reason = "one call of the C library")]
fn is_own(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    // SAFETY: it reads a number, and cannot fail.
    let user = unsafe { libc::geteuid() };
    metadata.uid() == user && metadata.mode() & 0o022 == 0
}

#[cfg(not(unix))]
fn is_own(_: &fs::Metadata) -> bool {
    true
}

/// How the names of files end that are being written, or were when their process was killed.
pub const UNFINISHED: &str = ".new";

/// 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// FNV-1a from a beginning of its own.
pub fn fnv(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that goes with the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("lockstep-cache-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn it_lies_where_users_expect_it() {
        let of = |pairs: &'static [(&str, &str)]| {
            let found = Cache::of("part", |name| {
                pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value))
            });
            found.map(|cache| cache.folder().to_string_lossy().into_owned())
        };
        assert_eq!(of(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]).unwrap(), "/x/lockstep/part");
        assert_eq!(of(&[("XDG_CACHE_HOME", "x"), ("HOME", "/h")]).unwrap(), "/h/.cache/lockstep/part");
        assert_eq!(of(&[("HOME", "relative")]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn what_is_old_goes() {
        let folder = Folder::new("old");
        let cache = Cache { is_ours: true, ..Cache::at(&folder.0) };
        fs::create_dir_all(folder.0.join("sub")).unwrap();
        let unfinished = format!("b.1-0{UNFINISHED}");
        cache.write("a", b"one").unwrap();
        fs::write(folder.0.join(&unfinished), b"tw").unwrap();
        let names = || {
            let mut names = cache.names();
            names.sort();
            names
        };
        cache.prune(SystemTime::now());
        assert_eq!(names(), ["a", &unfinished, "sub"]);
        cache.prune(SystemTime::now() + UNFINISHED_KEPT * 2);
        assert_eq!(names(), ["a", "sub"]);
        cache.prune(SystemTime::now() + KEPT * 2);
        assert_eq!(names(), ["sub"], "no folder is ours");
        // Whoever writes cleans up, in a folder of our own; what is read stays.
        let ours = ["old", "read"];
        ours.iter().for_each(|name| cache.write(name, b"").unwrap());
        for name in ours {
            let file = fs::File::open(folder.0.join(name)).unwrap();
            file.set_modified(SystemTime::now() - KEPT * 2).unwrap();
        }
        Cache::at(&folder.0).write("a", b"one").unwrap();
        assert_eq!(names(), ["a", "old", "read", "sub"]);
        assert_eq!(cache.read("read", 1).unwrap(), b"");
        cache.write("a", b"one").unwrap();
        assert_eq!(names(), ["a", "read", "sub"]);
    }

    #[test]
    fn files_are_whole_or_not_there() {
        let folder = Folder::new("whole");
        let cache = Cache::at(folder.0.join("deep").join("er"));
        assert!(!cache.contains("a") && cache.read("a", 100).is_none() && cache.names().is_empty());
        cache.write("a", b"one").unwrap();
        cache.write("a", b"two").unwrap();
        assert_eq!(cache.read("a", 3).unwrap(), b"two");
        assert!(cache.read("a", 2).is_none(), "longer than it may be");
        assert_eq!(cache.names(), ["a"]);
        cache.remove("a").unwrap();
        cache.remove("a").unwrap();
        assert!(cache.names().is_empty());
        // A folder in the way: an error, and nothing left.
        fs::create_dir(cache.folder().join("b")).unwrap();
        fs::write(cache.folder().join("b").join("c"), b"").unwrap();
        cache.write("b", b"one").unwrap_err();
        assert_eq!(cache.names(), ["b"]);
        assert!(cache.read("b", 100).is_none());
        #[cfg(unix)]
        {
            use std::os::unix::fs::{PermissionsExt, symlink};
            cache.write("c", b"three").unwrap();
            let mode = fs::metadata(cache.folder().join("c")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            // What others may write to is not read.
            for mode in [0o620, 0o602] {
                fs::set_permissions(cache.folder().join("c"), fs::Permissions::from_mode(mode)).unwrap();
                assert!(cache.read("c", 100).is_none() && !cache.contains("c"));
            }
            // A link to nowhere is replaced, not followed.
            symlink(folder.0.join("nowhere"), cache.folder().join("d")).unwrap();
            assert!(cache.read("d", 100).is_none());
            cache.write("d", b"four").unwrap();
            assert!(cache.read("d", 100).unwrap() == b"four" && !folder.0.join("nowhere").exists());
            // Who reads a pipe that nobody writes to would wait.
            let pipe = cache.folder().join("e");
            assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            assert!(cache.read("e", 100).is_none());
        }
    }
}
