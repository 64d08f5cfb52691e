//! Output files that appear complete or not at all.
//!
//! The rule for an existing name: without [`OutputOptions::force`] it is refused. With it, one rename puts the new file,
//! which the caller owns, in the place of whatever bears the name, a regular file or a symbolic link. No symbolic link to
//! a regular file is followed, and nothing of what was there is kept or looked at twice: neither its content nor its
//! owner nor its permissions. Devices, FIFOs and symbolic links to them are opened and written directly.

mod folder;
mod place;
mod temporary;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use place::Place;
use temporary::{Failed, Temporary};

pub use temporary::TemporaryName;

/// How an output file is made.
#[derive(Debug, Clone, Copy, Default)]
pub struct OutputOptions {
    /// Replace the file or the symbolic link that bears the name, or overwrite a block device.
    pub force: bool,
    /// The permissions of a new file.
    pub mode: FileMode,
    /// Put the data, and for a new file its name in the folder, on stable storage before the commit returns. Pipes,
    /// terminals and other devices than block devices are refused.
    pub sync: bool,
    /// Refuse devices, FIFOs and symbolic links to them.
    pub regular_only: bool,
}

/// The permission bits of a new file, from which the umask of the process takes some away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMode(u32);

impl FileMode {
    /// Those of any new file: 0666.
    pub const ORDINARY: FileMode = FileMode(0o666);
    /// For its owner alone: 0600.
    pub const PRIVATE: FileMode = FileMode(0o600);

    /// The permission bits of a regular file, without set-user-ID, set-group-ID and the sticky bit; of anything else,
    /// [`FileMode::ORDINARY`].
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn of_input(input: &File) -> Result<FileMode> {
        let metadata = input.metadata().map_err(Error::Read)?;
        let permissions = metadata.permissions().mode() & 0o777;
        Ok(if metadata.is_file() { FileMode(permissions) } else { FileMode::ORDINARY })
    }
}

impl Default for FileMode {
    fn default() -> FileMode {
        FileMode::ORDINARY
    }
}

/// A file being written. [`commit`](OutputFile::commit) makes it appear under its name; dropped without that, it was
/// never there.
///
/// Until then it is a temporary file in the same folder that only its owner can read. What is not a regular file (a
/// terminal, a pipe, `/dev/null`) is written directly.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Temporary(Temporary),
    Direct { file: File, sync: bool },
}

impl OutputFile {
    /// Starts a file.
    ///
    /// The folder is opened, and its path is not resolved again. A file system that cannot do what the commit needs is
    /// found out here, by a trial with an empty file. A FIFO waits for its reader.
    ///
    /// # Errors
    /// [`Error::Exists`] if something bears the name and `force` is not set, [`Error::File`].
    pub fn create(path: &Path, options: OutputOptions) -> Result<OutputFile> {
        OutputFile::start(Place::find(path, options)?, path, options)
    }

    /// Starts a file in a folder that is open for reading. The name in it is the last component of `path`; the rest of
    /// `path` is used for messages only.
    ///
    /// # Errors
    /// As [`OutputFile::create`].
    pub fn create_in(folder: OwnedFd, path: &Path, options: OutputOptions) -> Result<OutputFile> {
        OutputFile::start(Place::find_in(folder, path, options)?, path, options)
    }

    fn start(place: Place, path: &Path, options: OutputOptions) -> Result<OutputFile> {
        let kind = match place.open_special()? {
            Some(file) => Kind::Direct { file, sync: options.sync },
            None => Kind::Temporary(place.start()?),
        };
        Ok(OutputFile { path: path.into(), kind })
    }

    /// Finds out whether [`create`](OutputFile::create) and [`commit`](OutputFile::commit) will succeed, as far as that
    /// can be known, and leaves nothing behind. A FIFO is not opened.
    ///
    /// # Errors
    /// Those of [`create`](OutputFile::create).
    pub fn check(path: &Path, options: OutputOptions) -> Result<()> {
        Place::find(path, options)?.check()
    }

    /// Makes the file appear under its name; with [`OutputOptions::sync`], on stable storage.
    ///
    /// # Errors
    /// [`Error::Exists`] if another file has taken the name meanwhile and `force` is not set, [`Error::File`]. The
    /// temporary file is removed then. Only if the folder cannot be synced does the file stay, under its name.
    pub fn commit(self) -> Result<()> {
        let OutputFile { path, kind } = self;
        match kind {
            Kind::Direct { file, sync: true } => file.sync_all().map_err(Error::file("sync", path)),
            Kind::Direct { .. } => Ok(()),
            Kind::Temporary(temporary) => temporary.place().map_err(|failed| place_error(path, failed)),
        }
    }

    /// The temporary file that holds the bytes until the commit; nothing if they are written directly.
    pub fn temporary(&self) -> Option<&TemporaryName> {
        match &self.kind {
            Kind::Temporary(temporary) => Some(temporary.name()),
            Kind::Direct { .. } => None,
        }
    }

    /// True if it is written directly, since it is not a regular file.
    pub fn is_direct(&self) -> bool {
        matches!(self.kind, Kind::Direct { .. })
    }

    /// The file being written.
    pub fn as_file(&self) -> &File {
        match &self.kind {
            Kind::Temporary(temporary) => temporary.file(),
            Kind::Direct { file, .. } => file,
        }
    }
}

/// Removes the temporary files that processes of this user have left behind in a folder because they were killed. Those of
/// processes that are still running are locked, and stay. The result is the number of files removed.
///
/// # Errors
/// The folder cannot be read. A file that cannot be removed stays.
pub fn remove_abandoned(folder: impl AsFd) -> io::Result<usize> {
    Ok(temporary::remove_abandoned(folder.as_fd())?)
}

fn place_error(path: PathBuf, failed: Failed) -> Error {
    match failed {
        Failed::Mode(error) => Error::file("set the mode of", path)(error.into()),
        Failed::Sync(error) => Error::file("sync", path)(error.into()),
        Failed::Rename(rustix::io::Errno::EXIST) => Error::Exists { path },
        Failed::Rename(error) => Error::file("rename the finished file to", path)(error.into()),
        Failed::Taken => Error::file("rename the finished file to", path)(io::Error::other(
            "another process removed or replaced the temporary file: use a folder in which nobody else may write",
        )),
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.as_file().write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.as_file().write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
