//! Output files that appear complete or not at all.
//!
//! The rule for an existing name: without [`OutputOptions::force`] it is refused. With it, a single rename replaces the
//! existing regular file or symbolic link with the new file, which belongs to the caller. Symbolic links to regular
//! files are not followed, and content, owner and permissions of the replaced file are not kept. Devices, FIFOs and
//! symbolic links to them are opened and written directly.

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

/// How an output file is created.
#[derive(Debug, Clone, Copy, Default)]
pub struct OutputOptions {
    /// Replace an existing file or symbolic link, or overwrite a block device.
    pub force: bool,
    /// The permissions of a new file.
    pub mode: FileMode,
    /// Put the data, and for a new file its name in the folder, on stable storage before the commit returns. Pipes,
    /// terminals and other devices than block devices are refused.
    pub sync: bool,
    /// Refuse devices, FIFOs and symbolic links to them.
    pub regular_only: bool,
}

/// The permission bits of a new file, before the umask of the process is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMode(u32);

impl FileMode {
    /// The bits of an ordinary new file: 0666.
    pub const ORDINARY: FileMode = FileMode(0o666);
    /// For the owner only: 0600.
    pub const PRIVATE: FileMode = FileMode(0o600);

    /// The permission bits of a regular file, without set-user-ID, set-group-ID and the sticky bit; for other files
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

/// A file that is being written. [`commit`](OutputFile::commit) makes it appear under its name; if it is dropped before
/// that, it leaves nothing behind.
///
/// Until the commit it is a temporary file in the same folder that only its owner can read. A file that is not regular
/// (a terminal, a pipe, `/dev/null`) is written directly.
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
    /// Starts an output file.
    ///
    /// The folder is opened, and its path is not resolved again. A trial with an empty file detects file systems that
    /// do not support the operations of the commit. For a FIFO the call waits for a reader.
    ///
    /// # Errors
    /// [`Error::Exists`] if the name exists and `force` is not set, [`Error::File`].
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

    /// Checks whether [`create`](OutputFile::create) and [`commit`](OutputFile::commit) will succeed, as far as
    /// possible in advance, and leaves nothing behind. A FIFO is not opened.
    ///
    /// # Errors
    /// Those of [`create`](OutputFile::create).
    pub fn check(path: &Path, options: OutputOptions) -> Result<()> {
        Place::find(path, options)?.check()
    }

    /// Makes the file appear under its name; with [`OutputOptions::sync`], on stable storage.
    ///
    /// # Errors
    /// [`Error::Exists`] if another file has got the name meanwhile and `force` is not set, [`Error::File`]. The
    /// temporary file is then removed. Only if the folder cannot be synced does the file remain, under its name.
    pub fn commit(self) -> Result<()> {
        let OutputFile { path, kind } = self;
        match kind {
            Kind::Direct { file, sync: true } => file.sync_all().map_err(Error::file("sync", path)),
            Kind::Direct { .. } => Ok(()),
            Kind::Temporary(temporary) => temporary.place().map_err(|failed| place_error(path, failed)),
        }
    }

    /// The temporary file that contains the bytes until the commit; `None` if they are written directly.
    pub fn temporary(&self) -> Option<&TemporaryName> {
        match &self.kind {
            Kind::Temporary(temporary) => Some(temporary.name()),
            Kind::Direct { .. } => None,
        }
    }

    /// True if the file is written directly, since it is not a regular file.
    pub fn is_direct(&self) -> bool {
        matches!(self.kind, Kind::Direct { .. })
    }

    /// The file that is being written.
    pub fn as_file(&self) -> &File {
        match &self.kind {
            Kind::Temporary(temporary) => temporary.file(),
            Kind::Direct { file, .. } => file,
        }
    }
}

/// Removes the temporary files in a folder that belong to this user and were left by processes that were killed. Files
/// of running processes are locked and are kept. Returns the number of files removed.
///
/// # Errors
/// If the folder cannot be read. A file that cannot be removed is skipped.
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
